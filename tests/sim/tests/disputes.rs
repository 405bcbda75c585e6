//! Disputes by the flow itself, on models: the provider opens two, loses and wins them, and decides otherwise later, while an
//! operator refunds, the sale is cancelled, the queue of refunds is worked off, and two readers that die anywhere record what they heard. However it goes, no more goes
//! back of a payment than was captured, and at rest the order, its payment and the accounts say what the provider does.
//! Without each of the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::DisputeId;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::ledger::Account;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::fact::FactKind;
use engine::domain::order::order_refund::{AskedBy, OrderRefund};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Mark;
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::flows::dispute::{Refusal, record_dispute};
use engine::ports::StoreError;
use model_stores::{Caller, Stores, accounts_at_rest};
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::one_order::{PRICE, START, key, money, paid, provider, refund_request};
use sim::people::{self, BROKEN, operator, worker};
use sim::{Client, Flow, SeededRng, each_seed, finish};

const RUNS: u64 = 3_000;
/// Runs in which the absence of a guard must be found.
const CONTROL_RUNS: u64 = 5_000;
const STEPS: u32 = 120;
const DISPUTES: [&str; 2] = ["dp_1", "dp_2"];

/// Somebody at work: what came of it, in a word.
fn reader(client: &Client, dispute: &str) -> Flow {
    let (client, dispute) = (client.clone(), DisputeId::new(dispute).unwrap());
    Box::pin(async move {
        let now = client.now();
        match record_dispute(&Caller(client), &provider(), &dispute, now).await {
            Ok(()) => "recorded",
            // A reader passes by what no repetition would change.
            Err(Refusal::Store(StoreError::Contract(_))) => BROKEN,
            Err(_) => "not recorded",
        }
    })
}

/// The provider does something with a dispute: at most what is left of the payment is disputed.
fn move_dispute(rng: &mut SeededRng, stores: &mut Stores) {
    let id = DisputeId::new(DISPUTES[rng.below(2) as usize]).unwrap();
    // Of refunds that are made here and not sent it knows nothing.
    let left = MinorUnits(2 * PRICE) - stores.provider.back(&key());
    match stores.provider.disputes.get_mut(&id) {
        Some(dispute) if dispute.state == DisputeState::Open => {
            dispute.state = if rng.below(3) == 0 { DisputeState::Won } else { DisputeState::Lost };
        }
        // By arbitration, or by the bank.
        Some(dispute) if rng.below(3) == 0 => {
            let is_won = dispute.state == DisputeState::Won;
            dispute.state = if is_won { DisputeState::Lost } else { DisputeState::Won };
        }
        Some(_) => {}
        None if left > MinorUnits::ZERO => {
            let amount = money([400, 1000][rng.below(2) as usize].min(left.0));
            let (payment, state) = (key(), DisputeState::Open);
            let order = stores.provider.captured[&payment].order;
            let report =
                DisputeReport { id: id.clone(), payment, order, amount, state, mark: Mark::Ours };
            stores.provider.disputes.insert(id, report);
        }
        None => {}
    }
}

/// What must hold at any time.
fn check(stores: &Stores, order: OrderNumber) -> Result<(), String> {
    let payment = stores.orders.payment(order, &key()).unwrap();
    if payment.left().amount_minor < MinorUnits::ZERO {
        return Err(format!("I11: {} goes back of {}", payment.back, payment.capture.amount));
    }
    let refunds = stores.orders.order_refunds(order);
    for dispute in &payment.disputes {
        let is_of = |reason: Option<&str>| reason == Some(dispute.id.as_str());
        let made = refunds
            .iter()
            .filter(|one| one.asked_by == AskedBy::Dispute && is_of(one.reason.as_deref()));
        if made.count() > 1 {
            return Err(format!("I11: {} is refunded twice", dispute.id));
        }
    }
    let told = stores.orders.get(order).unwrap().facts.all;
    let count = |kind: FactKind| told.iter().filter(|fact| fact.kind == kind).count();
    DisputeState::ALL.into_iter().try_for_each(|state| {
        let kind = state.fact_kind();
        let (told, times) =
            (count(kind), payment.disputes.iter().map(|one| one.times(state)).sum::<usize>());
        (told == times)
            .then_some(())
            .ok_or_else(|| format!("I11: {times} times {}, told {told} times", kind.as_str()))
    })
}

/// True if a dispute of the payment is open here.
fn is_disputed(stores: &Stores, order: OrderNumber) -> bool {
    stores.orders.payment(order, &key()).unwrap().open_dispute().is_some()
}

/// At rest the engine says what the provider does.
fn check_at_rest(stores: &Stores, order: OrderNumber) -> Result<(), String> {
    let payment = stores.orders.payment(order, &key()).unwrap();
    for (id, report) in &stores.provider.disputes {
        let known = payment.disputes.iter().find(|known| known.id == *id);
        let says = known.map(|known| (known.state, known.amount_minor));
        if says != Some((report.state, report.amount.amount_minor)) {
            return Err(format!("dispute {id} is {report:?} and known as {known:?}"));
        }
    }
    // No dispute is open: what is left on the account is what disputes have taken beyond the rest.
    let disputed = stores.orders.accounts.get(&(Account::Disputed, money(0).currency));
    if let Some(balance) = disputed.filter(|balance| balance.left() > 0) {
        return Err(format!("I8: nothing is in dispute, and the account has {balance:?}"));
    }
    let says = |what| {
        let (order, refunds) = (stores.orders.get(order), stores.orders.order_refunds(order));
        format!("{what}: {order:?}, {refunds:?}, the provider has {:?}", stores.provider)
    };
    accounts_at_rest(stores).map_or(Ok(()), |what| Err(says(what)))
}

/// Nothing goes wrong any more: disputes are over and recorded, refunds are sent back, facts are settled.
fn come_to_rest(client: &Client, order: OrderNumber) -> Result<(), String> {
    for id in DISPUTES {
        let id = DisputeId::new(id).unwrap();
        let mut environment = client.locked();
        environment.fault = None;
        if let Some(dispute) = environment.stores.provider.disputes.get_mut(&id)
            && dispute.state == DisputeState::Open
        {
            dispute.state = DisputeState::Won;
        }
    }
    // A day later: nobody asks for anything any more, and what was refused may be asked for again.
    client.locked().stores.provider.refused.clear();
    for id in DISPUTES.iter().cycle().take(2 * DISPUTES.len()) {
        finish(reader(client, id));
    }
    people::come_to_rest(client, 0);
    let environment = client.locked();
    check(&environment.stores, order)?;
    check_at_rest(&environment.stores, order)
}

/// A request, or the same by the cancellation of the sale, if it is of everything.
fn or_cancelled(rng: &mut SeededRng, request: RefundRequest) -> RefundRequest {
    let is_whole = request.tickets == RefundedTickets::All && request.amount.is_none();
    let is_cancelled = is_whole && rng.below(2) == 0;
    let asked_by = if is_cancelled { AskedBy::SaleCancelled } else { request.asked_by };
    RefundRequest { asked_by, ..request }
}

/// One run. The outcomes, counted.
fn run(seed: u64, outcomes: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let (stores, order) = paid(2, None);
    let client = Client::new(START, stores);
    let mut flows: [Option<Flow>; 4] = [const { None }; 4];
    let mut context = Context::from_waker(Waker::noop());
    for step in 0..STEPS {
        match rng.below(20) {
            0 => move_dispute(&mut rng, &mut client.locked().stores),
            1 => client.locked().fault = Some(rng.below(2) == 0),
            2 => flows[rng.below(4) as usize] = None,
            3 => client.wait(70),
            _ => {}
        }
        let turn = rng.below(4) as usize;
        let (made, refunds, is_open) = {
            let stores = &client.locked().stores;
            let made = stores.orders.get(order).unwrap().refunds.made;
            (made, stores.orders.order_refunds(order), is_disputed(stores, order))
        };
        let begun = match turn {
            0 | 1 => Some(reader(&client, DISPUTES[rng.below(2) as usize])),
            2 if rng.below(4) == 0 => refund_request(&mut rng, made, 4, [100, 300, 700])
                .map(|request| operator(&client, order, or_cancelled(&mut rng, request))),
            3 if !refunds.is_empty() => {
                let of = rng.below(refunds.len() as u64) as usize;
                Some(worker(&client, refunds[of].key))
            }
            _ => None,
        };
        let Some(mut flow) = flows[turn].take().or(begun) else { continue };
        let polled = flow.as_mut().poll(&mut context);
        let stores = &client.locked().stores;
        check(stores, order).map_err(|what| format!("step {step}: {what}"))?;
        let new = stores.orders.order_refunds(order).into_iter().skip(refunds.len());
        let mut new = new.map(|refund| refund.asked_by);
        if is_open && new.any(|by| !matches!(by, AskedBy::Dispute | AskedBy::SaleCancelled)) {
            return Err(format!("step {step}: a refund is made while a dispute is open"));
        }
        let payment = stores.orders.payment(order, &key()).unwrap();
        let open = payment.disputes.iter().filter(|one| one.state == DisputeState::Open);
        if open.count() > 1 {
            *outcomes.entry("two at once").or_default() += 1;
        }
        let waits = |refund: &OrderRefund| refund.refund.waits_for_dispute();
        if stores.orders.order_refunds(order).iter().any(waits) {
            *outcomes.entry("waited").or_default() += 1;
        }
        match polled {
            Poll::Pending => flows[turn] = Some(flow),
            Poll::Ready(BROKEN) => return Err(format!("step {step}: a contract is broken")),
            Poll::Ready(outcome) => *outcomes.entry(outcome).or_default() += 1,
        }
    }
    drop(flows);
    come_to_rest(&client, order)?;
    for dispute in client.locked().stores.orders.payment(order, &key()).unwrap().disputes {
        for (times, what) in [(dispute.reopened, "reopened"), (dispute.reinstated, "reinstated")] {
            *outcomes.entry(what).or_default() += u64::from(times);
        }
    }
    for report in client.locked().stores.provider.disputes.values() {
        let outcome = if report.state == DisputeState::Won { "won" } else { "lost" };
        *outcomes.entry(outcome).or_default() += 1;
    }
    Ok(())
}

/// Seeds that once broke a promise: a reader that had heard of a loss recorded that it had paid a refund, after another one had
/// recorded that the dispute was won; and the other way round.
#[test]
fn what_was_found_once_holds() {
    for seed in [1_021_386_720_524_051_369, 1_021_386_720_524_053_043] {
        run(seed, &mut BTreeMap::new()).unwrap();
    }
}

#[test]
fn no_more_goes_back_than_was_captured_and_the_books_are_the_providers() {
    let outcomes = each_seed(RUNS, run);
    for outcome in [
        "recorded",
        "not recorded",
        "refunded",
        "not refunded",
        "sent back",
        "won",
        "lost",
        "two at once",
        "reopened",
        "reinstated",
        "waited",
    ] {
        assert!(outcomes.get(outcome).is_some_and(|times| *times > 0), "{outcome} never came");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_disputes_is_found() {
    each_absence("disputes", Guard::OF_DISPUTES, CONTROL_RUNS, run);
}
