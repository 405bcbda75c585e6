//! Refunds that somebody makes by hand at a provider that lists no refunds, as WeChat Pay and Alipay, by the flow itself, on
//! models: only the bill of the day tells of them. A provider that is out of money, hands that settle what it refused or give
//! money back for their own reasons, an operator, the queue of refunds, and readers of bills that die anywhere. However it
//! goes, at rest the refunds of the order say what the provider has sent, or what they do not say is kept for a person (I15).
//! Without each of the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{PageMark, ProviderId, ProviderRefundId, ReaderId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{AskedBy, OrderRefund, RefundKey, RefundName};
use engine::domain::order::refund::RefundState;
use engine::domain::payment::bill::{
    BillCursor, BillDay, BillPage, BillReply, Billed, BilledRefund, Difference, Line, Moved, Named,
    Report,
};
use engine::flows::bills::read_bills;
use engine::flows::outside::settle;
use engine::flows::refund::ask_again;
use engine::ports::{Bills, ChangeReply, StoreError, Stored, TakeBills};
use model_stores::{Caller, Stores, accounts_at_rest};
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::one_order::{START, key, money, paid, provider, refund_request};
use sim::people::{self, BROKEN, operator, worker};
use sim::{Client, Flow, SeededRng, each_seed, finish};

const RUNS: u64 = 2_000;
/// Runs in which the absence of a guard must be found.
const CONTROL_RUNS: u64 = 5_000;
const STEPS: u32 = 120;
/// What is given back: refunds of ours and of hands are of the same amounts, so that one may be taken for another.
const AMOUNTS: [i64; 3] = [100, 200, 400];
/// Seconds of half a day.
const HALF_DAY: i64 = 43_200;

/// What the provider's bills say, and what is kept of them.
#[derive(Default)]
struct Book {
    order: Option<OrderNumber>,
    lines: Vec<Line>,
    parts: BTreeSet<RefundName>,
    cursor: Option<BillCursor>,
    lease: Option<(ReaderId, Timestamp)>,
    differences: BTreeMap<String, Difference>,
    runs: u32,
}

impl Book {
    fn add(&mut self, id: &str, refund: Option<BilledRefund>, amount: Money, at: Timestamp) {
        let order = self.order.map(|order| Named { order, attempt: None });
        let (payment, number) = (key().payment, self.lines.len() as u64 + 1);
        let moved = match refund {
            None => Moved::Captured { payment, order, amount },
            refund => Moved::SentBack { payment, order, amount, refund },
        };
        let fee = Money { amount_minor: MinorUnits::ZERO, ..amount };
        let (id, at) = (id.to_owned(), Timestamp::from_ms(at.ms().div_euclid(1000) * 1000));
        self.lines.push(Line { number, id, merchant: None, deployment: None, at, moved, fee });
    }

    /// The provider's bill has what it has sent since this was last asked.
    fn follow(&mut self, stores: &Stores, now: Timestamp) {
        for (name, (_, amount)) in &stores.provider.parts {
            if self.parts.insert(*name) {
                self.add(&name.to_string(), Some(BilledRefund::Part(*name)), *amount, now);
            }
        }
    }
}

/// The bills as a run of the reader has them.
#[derive(Clone)]
struct Office {
    client: Client,
    book: Arc<Mutex<Book>>,
}

impl Office {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// The bill has what the provider has sent until now.
    fn follow(&self) {
        let now = self.client.now();
        self.book().follow(&self.client.locked().stores, now);
    }
}

impl Bills for Office {
    fn billed(&self) -> Vec<Billed> {
        vec![Billed {
            provider: provider(),
            day_ahead_ms: 0,
            ready_after_seconds: 3600,
            merchant: None,
            lists_refunds: false,
            own: None,
        }]
    }

    async fn bill(
        &self,
        _provider: &ProviderId,
        day: BillDay,
        _after: Option<&PageMark>,
    ) -> Stored<BillReply> {
        let of_day = |line: &&Line| BillDay::of(line.at, 0) == day;
        let lines: Vec<Line> = self.book().lines.iter().filter(of_day).cloned().collect();
        if lines.is_empty() {
            return Ok(BillReply::Absent);
        }
        let report = Report { lines, ..Report::default() };
        Ok(BillReply::Page(BillPage { report, next: None }))
    }

    async fn take_bills(
        &self,
        _provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<TakeBills> {
        let mut book = self.book();
        if book.lease.as_ref().is_some_and(|(other, until)| other != reader && now < *until) {
            return Ok(TakeBills::Held);
        }
        book.lease = Some((reader.clone(), until));
        Ok(TakeBills::Taken(book.cursor.clone()))
    }

    async fn move_bills(
        &self,
        _provider: &ProviderId,
        reader: &ReaderId,
        cursor: &BillCursor,
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        let mut book = self.book();
        if book.lease.as_ref().is_none_or(|(holder, _)| holder != reader) {
            return Ok(ChangeReply::Conflict);
        }
        book.lease = Some((reader.clone(), until));
        book.cursor = Some(cursor.clone());
        Ok(ChangeReply::Done)
    }

    async fn keep_difference(&self, difference: &Difference) -> Stored<()> {
        self.book().differences.insert(difference.key(), difference.clone());
        Ok(())
    }
}

/// What hands have done at the provider.
#[derive(Default)]
struct Hands {
    /// The refunds that they settled there.
    settled: BTreeSet<RefundKey>,
    /// What they sent.
    sent: i64,
    count: u32,
}

impl Hands {
    fn send(
        &mut self,
        stores: &mut Stores,
        book: &mut Book,
        amount: Money,
        now: Timestamp,
    ) -> bool {
        self.count += 1;
        let id = ProviderRefundId::new(format!("50{}", self.count)).unwrap();
        let went = stores.provider.send_by_hand(id.clone(), &key(), amount);
        if went {
            self.sent += amount.amount_minor.0;
            book.add(&id.to_string(), Some(BilledRefund::Outside(id)), amount, now);
        }
        went
    }

    /// Somebody sends money by hand: what the provider has refused, or what they like.
    fn act(&mut self, rng: &mut SeededRng, client: &Client, book: &mut Book, order: OrderNumber) {
        let now = client.now();
        let stores = &mut client.locked().stores;
        let refunds = stores.orders.order_refunds(order);
        let failed = refunds.iter().find(|one| {
            one.refund.state == RefundState::Failed && !self.settled.contains(&one.key)
        });
        if let Some(refund) = failed {
            if self.send(stores, book, refund.amount, now) {
                self.settled.insert(refund.key);
            }
        } else {
            let amount = money(AMOUNTS[rng.below(3) as usize]);
            self.send(stores, book, amount, now);
        }
    }

    /// What an operator says of a refund that the provider has refused and no hand has settled.
    fn word(&self, rng: &mut SeededRng, client: &Client, refund: &OrderRefund) -> Option<Flow> {
        let (client, key, now) = (client.clone(), refund.key, client.now());
        let is_again = rng.below(2) == 0;
        let waits = refund.refund.state == RefundState::Failed && !self.settled.contains(&key);
        waits.then(|| -> Flow {
            Box::pin(async move {
                let told = if is_again {
                    ask_again(&Caller(client), key, now).await.map(drop)
                } else {
                    settle(&Caller(client), key, "cash", now).await.map(drop)
                };
                match told {
                    Ok(()) => "said",
                    Err(StoreError::Contract(_)) => BROKEN,
                    Err(_) => "not said",
                }
            })
        })
    }
}

fn reader(office: &Office) -> Flow {
    let office = office.clone();
    let run = {
        let mut book = office.book();
        book.runs += 1;
        ReaderId::new(format!("r{}", book.runs)).unwrap()
    };
    Box::pin(async move {
        let caller = Caller(office.client.clone());
        let client = office.client.clone();
        let clock = move || client.now();
        let stop_at = office.client.now().plus_seconds(600);
        let reading = read_bills(&caller, &office, &run, clock, stop_at).await;
        match (reading.failed, reading.recorded) {
            (0, 0) => "read",
            (0, _) => "recorded",
            _ => "not read",
        }
    })
}

/// What must hold at any time.
fn check(stores: &Stores, order: OrderNumber) -> Result<(), String> {
    let payment = stores.orders.payment(order, &key()).unwrap();
    if payment.left().amount_minor < MinorUnits::ZERO {
        return Err(format!("I11: {} goes back of {}", payment.back, payment.capture.amount));
    }
    Ok(())
}

/// At rest the refunds say what the provider has sent; what they do not say is kept for a person.
fn check_at_rest(
    stores: &Stores,
    order: OrderNumber,
    hands: &Hands,
    book: &Book,
) -> Result<(), String> {
    let refunds = stores.orders.order_refunds(order);
    let sum = |takes: &dyn Fn(&OrderRefund) -> bool| -> i64 {
        refunds.iter().filter(|one| takes(one)).map(|one| one.amount.amount_minor.0).sum()
    };
    let by_provider =
        sum(&|one| matches!(one.refund.state, RefundState::Refunded | RefundState::Outside));
    let kept = || book.differences.values().filter(|one| one.is_of_what_went_back());
    let kept: i64 = kept().filter_map(|one| one.amount).map(|amount| amount.amount_minor.0).sum();
    let sent = stores.provider.back(&key()).0;
    if by_provider > sent || by_provider + kept < sent || (kept == 0 && by_provider != sent) {
        let what = format!("I15: the provider has sent {sent}, the refunds say {by_provider}");
        return Err(format!("{what}, {kept} is kept: {refunds:?} {:?}", book.lines));
    }
    let is_paid = |one: &OrderRefund| {
        let by =
            one.refund.refusal.as_deref().filter(|_| one.refund.state == RefundState::Refunded);
        by.is_some_and(|by| by.starts_with("by refund"))
    };
    let known = sum(&|one| one.asked_by == AskedBy::Outside || is_paid(one));
    if known > hands.sent || known + kept < hands.sent {
        return Err(format!("I15: hands sent {}, {known} is known: {refunds:?}", hands.sent));
    }
    if kept > 0 {
        return Ok(());
    }
    accounts_at_rest(stores).map_or(Ok(()), Err)
}

fn come_to_rest(office: &Office, order: OrderNumber, hands: &Hands) -> Result<(), String> {
    let client = &office.client;
    {
        let mut environment = client.locked();
        environment.fault = None;
        environment.stores.provider.is_poor = false;
    }
    for _ in 0..4 {
        client.wait(26 * 60 * 60);
        finish(reader(office));
        let refunds = client.locked().stores.orders.order_refunds(order);
        for refund in refunds {
            if refund.refund.state == RefundState::Failed && !hands.settled.contains(&refund.key) {
                let (caller, now) = (Caller(client.clone()), client.now());
                finish(Box::pin(async move {
                    ask_again(&caller, refund.key, now).await.map_or("not said", |_| "said")
                }));
            }
            client.wait(70);
            finish(worker(client, refund.key));
            office.follow();
        }
    }
    people::come_to_rest(client, 0);
    client.wait(50 * 60 * 60);
    finish(reader(office));
    let environment = client.locked();
    check(&environment.stores, order)?;
    check_at_rest(&environment.stores, order, hands, &office.book())
}

/// One run. The outcomes, counted.
fn run(seed: u64, outcomes: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let (mut stores, order) = paid(2, None);
    stores.provider.is_blind = true;
    let captured = stores.orders.get(order).unwrap().total;
    let client = Client::new(START, stores);
    let office = Office { client: client.clone(), book: Arc::default() };
    {
        let mut book = office.book();
        book.order = Some(order);
        book.cursor = Some(BillCursor::at(BillDay::of(START, 0)));
        book.add(key().payment.as_str(), None, captured, START);
    }
    let mut hands = Hands::default();
    let mut flows: [Option<Flow>; 5] = [const { None }; 5];
    let mut context = Context::from_waker(Waker::noop());
    for step in 0..STEPS {
        match rng.below(24) {
            0 => hands.act(&mut rng, &client, &mut office.book(), order),
            1 => client.locked().fault = Some(rng.below(2) == 0),
            2 => flows[rng.below(5) as usize] = None,
            3 => client.wait(70),
            4 => client.locked().stores.provider.is_poor = rng.below(2) == 0,
            5 => client.wait(HALF_DAY),
            _ => {}
        }
        let turn = rng.below(5) as usize;
        let (made, refunds) = {
            let stores = &client.locked().stores;
            let made = stores.orders.get(order).unwrap().refunds.made;
            (made, stores.orders.order_refunds(order))
        };
        let any = |rng: &mut SeededRng| rng.below(refunds.len() as u64) as usize;
        let begun = match turn {
            0 | 1 => Some(reader(&office)),
            2 if rng.below(4) == 0 => refund_request(&mut rng, made, 6, AMOUNTS)
                .map(|request| operator(&client, order, request)),
            3 if !refunds.is_empty() => {
                let of = any(&mut rng);
                Some(worker(&client, refunds[of].key))
            }
            4 if !refunds.is_empty() && rng.below(3) == 0 => {
                let of = any(&mut rng);
                hands.word(&mut rng, &client, &refunds[of])
            }
            _ => None,
        };
        let Some(mut flow) = flows[turn].take().or(begun) else { continue };
        let polled = flow.as_mut().poll(&mut context);
        office.follow();
        check(&client.locked().stores, order).map_err(|what| format!("step {step}: {what}"))?;
        match polled {
            Poll::Pending => flows[turn] = Some(flow),
            Poll::Ready(BROKEN) => return Err(format!("step {step}: a contract is broken")),
            Poll::Ready(outcome) => *outcomes.entry(outcome).or_default() += 1,
        }
    }
    drop(flows);
    come_to_rest(&office, order, &hands)?;
    for refund in client.locked().stores.orders.order_refunds(order) {
        *outcomes.entry(refund.refund.state.as_str()).or_default() += 1;
    }
    if !hands.settled.is_empty() {
        *outcomes.entry("settled by hand").or_default() += 1;
    }
    for difference in office.book().differences.values() {
        *outcomes.entry(difference.kind.as_str()).or_default() += 1;
    }
    Ok(())
}

#[test]
fn what_a_bill_tells_is_known_or_kept_for_a_person() {
    let outcomes = each_seed(RUNS, run);
    for outcome in [
        "read",
        "recorded",
        "not read",
        "refunded",
        "not refunded",
        "sent back",
        "said",
        "outside",
        "settled",
        "settled by hand",
        "unknown_refund",
    ] {
        assert!(outcomes.contains_key(outcome), "{outcome} never came: {outcomes:?}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_bills_is_found() {
    each_absence("bills", Guard::OF_BILLS, CONTROL_RUNS, run);
}
