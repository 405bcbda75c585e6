//! The buyers: what they request, and what they do when they get it or not.

use engine::domain::admission::room::slot::{Asking, MayAsk};
use engine::domain::basics::ids::{Legs, PaymentId, Seat, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::basics::time::{Clock as _, Timestamp};
use engine::domain::inventory::Line as Wish;
use engine::domain::inventory::choice::{Choice, Offset, Together};
use engine::domain::order::attempt::{AttemptKey, PaymentChoice, PaymentMethod};
use engine::domain::order::attendee::Attendee;
use engine::domain::order::order_refund::{AskedBy, RefundNumber};
use engine::domain::order::requested::{RequestedLine, fingerprint};
use engine::domain::order::{Capture, Order, PaymentKey, TicketName};
use engine::domain::payment::ours::{Mark, Reported};
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::{AttendeeRule, Sale, Tier};
use engine::flows::admit::admit;
use engine::flows::cancel::{self, cancel};
use engine::flows::give_back::{self, give_back};
use engine::flows::reserve::{Refusal, Reservation, Reserved, reserve};
use engine::flows::room::enter::Entrance;
use engine::flows::room::published;
use engine::flows::room::slot::{Became, may_ask, report};
use engine::flows::start::{self, start};
use engine::flows::unmatched::Word;
use engine::ports::{Catalogue as _, Freshness, StoreError};
use model_stores::{Caller, InList};

use crate::actors::{call_back, decide_unmatched, never_call};
use crate::environment::PortHandle;
use crate::executor::Executor;
use crate::fault::Fault;
use crate::oracle::debug_head;
use crate::plan::{FAULTS_FROM_MS, MAX_LAG_MS, MAX_LIST_LAG_MS, START, provider_id, sale_id};
use crate::random::{SeededRng, mix};

/// The number of orders that a buyer tries to make in a storm.
pub(crate) const STORM_ROUNDS: u64 = 8;
/// The number of requests for one order.
const ATTEMPTS: u64 = 7;
/// The number of people whom one who tries out names asks for: more than the largest limit allows.
const PROBES: u64 = 20;

pub(crate) struct Buyer {
    executor: Executor,
    index: u64,
    /// The name of the buyer's draws.
    key: u64,
    user: UserId,
    number: OrderNumber,
    sale: Sale,
    /// The number of this attempt at an order, from 0.
    round: u64,
    /// True if everything goes quickly.
    is_storm: bool,
    /// What an order is counted by, of who was let in by a waiting room.
    entrance: Option<Entrance>,
}

/// A buyer comes, orders, and pays or does not.
pub(crate) async fn buyer(executor: Executor, index: u64) {
    let (seed, sale, arrivals_ms, is_storm) = {
        let plan = &executor.environment.lock().plan;
        (plan.seed, plan.sale.clone(), plan.arrivals_ms, plan.is_storm)
    };
    let key = mix(seed, 0x1000 + index);
    let mut rng = SeededRng::new(key);
    // One person in five comes twice. In a few runs two buyers' numbers clash.
    let person = if rng.chance(200) { index / 2 } else { index };
    let clash = executor.environment.lock().plan.numbers_clash();
    let user = UserId::new((7 + 1024 * person).to_string()).expect("it is plain text");
    executor.sleep(FAULTS_FROM_MS + rng.between(0, arrivals_ms)).await;
    for round in 0..if is_storm { STORM_ROUNDS } else { 1 } {
        let counter = if clash { 0 } else { (index * STORM_ROUNDS + round) as u16 };
        let gene = Gene::from_text(user.as_str());
        let number = OrderNumber::compose(START, (seed & 0xfff) as u16, counter, gene);
        let (executor, user, sale) = (executor.clone(), user.clone(), sale.clone());
        let key = mix(key, round);
        let entrance = None;
        let buyer = Buyer { executor, index, round, key, user, number, sale, is_storm, entrance };
        if rng.chance(150) {
            buyer.probe(&mut rng).await;
        }
        if let Some(order) = buyer.order(&mut rng).await {
            buyer.decide(&mut rng, order).await;
        }
    }
}

impl Buyer {
    /// Somebody whom a waiting room has let in: by index, round and the name of the draws, with a number from
    /// the seed and a counter.
    pub(crate) fn let_in(
        executor: Executor,
        (index, round, key): (u64, u64, u64),
        user: UserId,
        (seed, counter): (u64, u16),
        sale: Sale,
        entrance: Entrance,
    ) -> Self {
        let gene = Gene::from_text(user.as_str());
        let number = OrderNumber::compose(START, (seed & 0xfff) as u16, counter, gene);
        let (is_storm, entrance) = (false, Some(entrance));
        Self { executor, index, round, key, user, number, sale, is_storm, entrance }
    }

    fn name(&self, what: &str) -> String {
        format!("buyer {} {what}", self.index)
    }

    /// Tries until there is an order, or no hope.
    pub(crate) async fn order(&self, rng: &mut SeededRng) -> Option<Order> {
        if rng.chance(250) && self.entrance.is_none() {
            self.pass_the_gate().await;
        }
        let mut lines = wants(rng, &self.sale);
        for attempt in 0..ATTEMPTS {
            let place = mix(self.key, 100 + attempt);
            let answer = if rng.chance(120) {
                self.order_twice(rng, &lines, place).await
            } else {
                self.reserve(&lines, place).await
            };
            match answer {
                Some(Ok(reserved)) => return Some(reserved.order),
                // A refused attempt does not burn the admission: it is good for other seats.
                Some(Err(refusal)) if is_of_these_seats(&refusal) && rng.chance(600) => {
                    lines = wants(rng, &self.sale);
                }
                // A clock that is ahead may have let somebody in before the opening.
                Some(Err(Refusal::SaleClosed)) if self.entrance.is_some() => {
                    self.executor.sleep(rng.between(1_000, 20_000)).await;
                }
                Some(Err(refusal)) if !is_worth_repeating(&refusal) => return None,
                Some(Err(_)) | None => {
                    let most_ms = if self.is_storm { 600 } else { 8_000 };
                    self.executor.sleep(rng.between(300, most_ms)).await;
                }
            }
        }
        None
    }

    /// Tries out who has a ticket: names somebody who has one and, each time, somebody else. All of
    /// these are learned of, until the engine says no more.
    async fn probe(&self, rng: &mut SeededRng) {
        let first = self.index * STORM_ROUNDS + self.round;
        for turn in 0..PROBES {
            self.executor.sleep(rng.between(200, 5_000)).await;
            let Some(known) = self.somebody_with_a_ticket() else { continue };
            let mut line = wants(rng, &self.sale).remove(0);
            let other = model_stores::attendee(&format!("q{}", first * PROBES + turn));
            line.line.choice = Choice::Best { count: 2, together: Together::Preferred };
            line.attendees = vec![other, known];
            let place = mix(self.key, 700 + turn);
            let stops = match self.reserve(&[line], place).await {
                Some(Ok(_) | Err(Refusal::TokenReused(_))) => true,
                Some(Err(refusal)) => matches!(refusal, Refusal::AttendeeLimit { .. }),
                None => false,
            };
            if stops {
                return;
            }
        }
    }

    /// Somebody else whose name is on a ticket.
    fn somebody_with_a_ticket(&self) -> Option<Attendee> {
        let environment = self.executor.environment.lock();
        let mut orders = environment.stores.orders.orders.values();
        let order = orders.find(|order| {
            order.state.is_live() && order.user != self.user && order.attendees().next().is_some()
        });
        order?.attendees().next().cloned()
    }

    async fn pass_the_gate(&self) {
        let user = self.user.clone();
        let admitted = self
            .executor
            .invoke(self.name("admit"), mix(self.key, 90), |ports, now| async move {
                let published = ports.sale(&sale_id(), Freshness::Cached).await.ok().flatten()?;
                admit(&ports, &published, &user, 2, now).await.ok()
            })
            .await;
        let outcome = if admitted.flatten().is_some() { "admitted" } else { "not admitted" };
        self.executor.environment.lock().tally.reach(outcome);
    }

    /// The same request twice at once, or two that differ.
    async fn order_twice(
        &self,
        rng: &mut SeededRng,
        lines: &[RequestedLine],
        place: u64,
    ) -> Option<Result<Reserved, Refusal>> {
        let other = if rng.chance(250) { wants(rng, &self.sale) } else { lines.to_vec() };
        let duplicate = Self {
            executor: self.executor.clone(),
            index: self.index,
            key: self.key,
            user: self.user.clone(),
            number: self.number,
            sale: self.sale.clone(),
            round: self.round,
            is_storm: self.is_storm,
            entrance: self.entrance,
        };
        let wait = rng.between(0, 60);
        self.executor.act(async move {
            duplicate.executor.sleep(wait).await;
            let _unheard = duplicate.reserve(&other, mix(place, 21)).await;
        });
        self.reserve(lines, place).await
    }

    async fn reserve(
        &self,
        lines: &[RequestedLine],
        place: u64,
    ) -> Option<Result<Reserved, Refusal>> {
        let requested = fingerprint(lines, None);
        let before = self.live_order();
        let (number, user, lines) = (self.number, self.user.clone(), lines.to_vec());
        let entrance = self.entrance;
        let answer = self
            .executor
            .invoke(self.name("reserve"), place, |ports, now| async move {
                let published = ports.sale(&sale_id(), Freshness::Cached).await?;
                let missing = || StoreError::Unavailable("the sale is not published".to_owned());
                let published = published.ok_or_else(missing)?;
                let reservation = Reservation { published, number, user, lines, exchange: None };
                match entrance {
                    None => reserve(&ports, &reservation, now).await,
                    Some(entrance) => counted(&ports, &reservation, entrance, now).await,
                }
            })
            .await;
        let after = self.live_order();
        let mut environment = self.executor.environment.lock();
        match &answer {
            None => environment.tally.reach("reserve unheard"),
            Some(Ok(reserved)) => {
                environment.tally.reach("reserve answered with an order");
                let order = &reserved.order;
                environment.oracle.acknowledged.insert(order.number, order.all_lines());
                if order.fingerprint != requested || order.user != self.user {
                    let what = format!("{} is answered to another request", order.number);
                    environment.broken("acknowledged", what);
                }
                let stored = environment.stores.orders.orders.get(&order.number);
                if stored.map(Order::all_lines) != Some(order.all_lines()) {
                    let what =
                        format!("{} is acknowledged to its buyer and is not there", order.number);
                    environment.broken("acknowledged", what);
                }
            }
            Some(Err(refusal)) => {
                let kind = kind_of(refusal);
                environment.tally.reach(&format!("refused: {kind}"));
                let is_no = !matches!(refusal, Refusal::Store(_) | Refusal::TokenReused(_));
                // One that was cancelled and rescued meanwhile is answered as it was in between.
                if is_no && before.is_some() && before == after {
                    let what = format!("the buyer of the live {} is answered {kind}", self.number);
                    environment.broken("refusal", what);
                }
            }
        }
        answer
    }

    fn live_order(&self) -> Option<Order> {
        let environment = self.executor.environment.lock();
        let order = environment.stores.orders.orders.get(&self.number);
        order.filter(|order| order.user == self.user && order.state.is_live()).cloned()
    }

    /// Pays, cancels or abandons an order.
    pub(crate) async fn decide(&self, rng: &mut SeededRng, order: Order) {
        if rng.chance(150) {
            self.executor.sleep(rng.between(10, 5_000)).await;
            let lines = wants(rng, &self.sale);
            let _other = self.reserve(&lines, mix(self.key, 300)).await;
        }
        if rng.chance(60) {
            self.another_user_cancels(&order).await;
        }
        let left = order.pay_by.ms_since(self.executor.environment.lock().now);
        let think = if self.is_storm { rng.between(1, 300) } else { rng.between(100, 15_000) };
        let behaviour = if self.is_storm { rng.pick(&[1, 1, 1, 2, 6, 6]) } else { rng.below(10) };
        if behaviour > 1 {
            if behaviour == 7 {
                self.executor.sleep(left + rng.between(-1_500, 500)).await;
            }
            self.start(rng, &order).await;
        }
        match behaviour {
            // Never heard of again.
            0 => {}
            1 => {
                self.executor.sleep(think).await;
                self.cancel(&order).await;
            }
            // Pays and cancels at once.
            2 => {
                self.executor.sleep(think).await;
                self.pay_somehow(rng, &order);
                self.executor.sleep(rng.between(0, 300)).await;
                self.cancel(&order).await;
            }
            // Cancels, and pays all the same.
            3 => {
                self.executor.sleep(think).await;
                self.cancel(&order).await;
                self.executor.sleep(rng.between(0, 60_000)).await;
                self.pay_somehow(rng, &order);
            }
            // Pays when the time is up, or long after.
            4 => {
                self.executor.sleep(left + rng.between(-3_000, 3_000)).await;
                self.pay_somehow(rng, &order);
            }
            5 => {
                self.executor.sleep(left + rng.between(1_000, 400_000)).await;
                self.pay_somehow(rng, &order);
            }
            _ => {
                self.executor.sleep(think.min(left / 2)).await;
                self.pay_somehow(rng, &order);
            }
        }
        if rng.chance(if self.is_storm { 600 } else { 350 }) {
            self.give_back(rng, &order).await;
        }
        if rng.chance(100) && !self.is_storm {
            self.executor.sleep(rng.between(10, 20_000)).await;
            let lines = wants(rng, &self.sale);
            let _again = self.reserve(&lines, mix(self.key, 301)).await;
        }
    }

    /// Tickets of the order go back, by the buyer or an operator: again until it is answered, perhaps twice at
    /// once and not the same, perhaps more than there is.
    async fn give_back(&self, rng: &mut SeededRng, order: &Order) {
        for turn in 0..rng.between(1, 4) as u64 {
            let most_ms = if self.is_storm { 800 } else { 40_000 };
            self.executor.sleep(rng.between(10, most_ms)).await;
            let made = {
                let environment = self.executor.environment.lock();
                let now = environment.stores.orders.orders.get(&order.number);
                now.map_or(0, |order| order.refunds.made)
            };
            let mut request = self.refund_request(rng, order, made + 1);
            let twice = rng.chance(200);
            let next = made + u8::from(rng.chance(800));
            let other = self.refund_request(rng, order, next);
            for again in 0..3 {
                let number = order.number;
                let user = (request.asked_by == AskedBy::Buyer).then(|| self.user.clone());
                let place = mix(self.key, 1_000 + 10 * turn + again);
                let wish = request.clone();
                let done = self
                    .executor
                    .invoke(self.name("give back"), place, |ports, now| async move {
                        give_back(&ports, user.as_ref(), number, &wish, now).await
                    })
                    .await;
                let outcome = match &done {
                    None => "refund unheard".to_owned(),
                    Some(Ok(_)) => "refund made".to_owned(),
                    Some(Err(refused @ give_back::Refusal::Refused(why))) => {
                        format!("refund {}: {}", debug_head(refused), debug_head(why))
                    }
                    Some(Err(refusal)) => format!("refund not made: {}", debug_head(refusal)),
                };
                self.executor.environment.lock().tally.reach(&outcome);
                match done {
                    Some(Err(give_back::Refusal::Store(_))) | None => {
                        self.executor.sleep(rng.between(300, 3_000)).await;
                    }
                    Some(_) if twice && again == 0 => request = other.clone(),
                    Some(_) => break,
                }
            }
        }
    }

    fn refund_request(&self, rng: &mut SeededRng, order: &Order, number: u8) -> RefundRequest {
        let asked_by = rng.pick(&[AskedBy::Buyer, AskedBy::Operator, AskedBy::SaleCancelled]);
        let of_order = order
            .lines
            .iter()
            .flat_map(|line| line.tickets.iter().map(move |ticket| ticket.named(line)));
        let mut named: Vec<TicketName> = of_order.collect();
        named.retain(|_| rng.chance(500));
        if rng.chance(60) {
            named.extend(named.first().cloned());
        }
        let amount = rng.between(0, order.total.amount_minor.0 + 200);
        let amount = Money { amount_minor: MinorUnits(amount), ..order.total };
        RefundRequest {
            number: RefundNumber::try_from(number).unwrap_or(RefundNumber::FIRST),
            tickets: match rng.chance(300) {
                true => RefundedTickets::All,
                false => RefundedTickets::Named(named),
            },
            amount: (asked_by != AskedBy::Buyer && rng.chance(300)).then_some(amount),
            asked_by,
            reason: None,
        }
    }

    async fn cancel(&self, order: &Order) {
        for turn in 0..3 {
            let (user, number) = (self.user.clone(), order.number);
            let place = mix(self.key, 400 + turn);
            let done = self
                .executor
                .invoke(self.name("cancel"), place, |ports, now| async move {
                    cancel(&ports, &user, number, now).await
                })
                .await;
            match done {
                Some(Ok(_)) => {
                    return self.executor.environment.lock().tally.reach("cancelled by its buyer");
                }
                Some(Err(cancel::Refusal::NotFound | cancel::Refusal::Resolved(_))) => return,
                Some(Err(cancel::Refusal::Store(_))) | None => self.executor.sleep(2_000).await,
            }
        }
    }

    async fn another_user_cancels(&self, order: &Order) {
        let (user, number) = (UserId::new("mallory").expect("it is plain text"), order.number);
        let done = self
            .executor
            .invoke(
                "another user cancels".to_owned(),
                mix(self.key, 500),
                |ports, now| async move { cancel(&ports, &user, number, now).await },
            )
            .await;
        if let Some(Ok(_)) = done {
            self.executor
                .environment
                .lock()
                .broken("owner", format!("{number} is cancelled by another"));
        }
    }

    /// Begins to pay, where payments are started by the engine: perhaps in two ways.
    async fn start(&self, rng: &mut SeededRng, order: &Order) {
        if !self.executor.environment.lock().plan.only_here {
            return;
        }
        let methods = [PaymentMethod::Page, PaymentMethod::Form, PaymentMethod::Page];
        let ways = if rng.chance(250) { rng.between(2, 3) as usize } else { 1 };
        for (way, method) in methods.into_iter().take(ways).enumerate() {
            let choice = PaymentChoice { provider: provider_id(), method, return_url: None };
            for turn in 0..4 {
                let (user, number, choice) = (self.user.clone(), order.number, choice.clone());
                let place = mix(self.key, 800 + 10 * way as u64 + turn);
                let done = self
                    .executor
                    .invoke(self.name("start"), place, |ports, now| async move {
                        start(&ports, &user, number, &choice, now).await
                    })
                    .await;
                let outcome = match &done {
                    None => "start unheard".to_owned(),
                    Some(Ok(_)) => "started".to_owned(),
                    Some(Err(refusal)) => format!("not started: {}", debug_head(refusal)),
                };
                self.executor.environment.lock().tally.reach(&outcome);
                if let Some(Ok(started)) = &done {
                    self.executor.environment.lock().handed.insert(started.key());
                }
                match done {
                    Some(Err(start::Refusal::Store(_) | start::Refusal::BeingClosed)) | None => {
                        self.executor.sleep(rng.between(500, 4_000)).await;
                    }
                    // Most come in time for their place; some are early, and some late.
                    Some(Err(start::Refusal::Waits(waits))) => {
                        let late_ms = rng.pick(&[-1_000, 500, 500, 4_000, 25_000]);
                        self.executor.sleep((waits.wait_ms + late_ms).max(1)).await;
                    }
                    Some(Ok(_)) => break,
                    Some(Err(_)) => return,
                }
            }
            if rng.chance(300) {
                self.executor.sleep(rng.between(0, 4_000)).await;
            }
        }
    }

    /// Pays what was started, or at the provider's where that is another's business.
    fn pay_somehow(&self, rng: &mut SeededRng, order: &Order) {
        let mut environment = self.executor.environment.lock();
        if !environment.plan.only_here {
            drop(environment);
            return self.pay(rng, order, 0);
        }
        let now = environment.now;
        let own = environment.handed.iter().filter(|key| key.order == order.number);
        let own: Vec<AttemptKey> = own.copied().collect();
        let provider = &mut environment.stores.provider;
        let captures: Vec<Capture> =
            own.into_iter().filter_map(|key| provider.pay(key, now)).collect();
        let Some(capture) = captures.into_iter().next() else {
            return environment.tally.reach("nothing to pay: closed or never started");
        };
        environment.tally.reach("an attempt is paid");
        let place = mix(self.key, 900);
        let lag_ms = SeededRng::from_label(place, 9).between(0, MAX_LAG_MS);
        let list_lag_ms = SeededRng::from_label(place, 10).between(0, MAX_LIST_LAG_MS);
        let (made_at, from) = (now, now.plus_ms(list_lag_ms));
        let provider = &mut environment.stores.provider;
        provider.listed_at.insert(capture.key.clone(), now.plus_ms(lag_ms));
        provider.in_list.insert(capture.key.clone(), InList { made_at, from });
        let amount = capture.amount;
        let number = capture.order;
        environment.record(|| format!("PAYMENT {} of {amount} for {number}", capture.key.payment));
        let stored = environment.stores.orders.orders.get(&number);
        if now < stored.unwrap_or(order).payable_until() {
            environment.oracle.paid_in_time.insert(number);
        }
        environment.changes += 1;
        let mut strikes = |fault, label| environment.strikes(fault, mix(place, label), rng);
        let (late, never) = (strikes(Fault::CallLate, 3), strikes(Fault::CallNever, 4));
        drop(environment);
        if never {
            self.executor.act(never_call(self.executor.clone(), capture, mix(place, 6)));
        } else {
            let wait = if late { rng.between(60_000, 20_000_000) } else { rng.between(50, 4_000) };
            self.executor.act(call_back(self.executor.clone(), capture, wait, mix(place, 6)));
        }
    }

    /// Money is captured, and the provider will tell of it.
    fn pay(&self, rng: &mut SeededRng, order: &Order, turn: u64) {
        let place = mix(self.key, 600 + turn);
        let payment = PaymentId::new(format!("pi-{}-{}-{turn}", self.index, self.round))
            .expect("it is ASCII");
        let key = PaymentKey { provider: provider_id(), payment };
        let mut environment = self.executor.environment.lock();
        let mut strikes = |fault, label| environment.strikes(fault, mix(place, label), rng);
        let is_wrong = strikes(Fault::WrongAmount, 1);
        let (twice, late) = (strikes(Fault::CallTwice, 2), strikes(Fault::CallLate, 3));
        let (never, again) = (strikes(Fault::CallNever, 4), strikes(Fault::PayTwice, 5));
        let amount = if is_wrong { wrong(rng, order.total) } else { order.total };
        let number = if rng.chance(15) {
            OrderNumber::compose(START, 1, 511, Gene::from_text("7"))
        } else {
            order.number
        };
        let capture = Capture { key, order: number, amount, attempt: None };
        let mark = mark_of(place, number == order.number);
        environment.record(|| format!("PAYMENT {} of {amount} for {number}", capture.key.payment));
        let is_its_own = number == order.number && mark != Mark::Another;
        if is_its_own && !is_wrong && environment.now < order.pay_by {
            environment.oracle.paid_in_time.insert(number);
        }
        let lag_ms = SeededRng::from_label(place, 9).between(0, MAX_LAG_MS);
        let listed_at = environment.now.plus_ms(lag_ms);
        let list_lag_ms = SeededRng::from_label(place, 10).between(0, MAX_LIST_LAG_MS);
        let (made_at, from) = (environment.now, environment.now.plus_ms(list_lag_ms));
        let provider = &mut environment.stores.provider;
        match mark {
            Mark::Ours => {
                provider.marked.insert(capture.key.clone());
                provider.capture_listed_at(capture.clone(), listed_at);
                let word = SeededRng::from_label(place, 12).pick(&[Word::SendBack, Word::Explain]);
                let executor = self.executor.clone();
                let operator = decide_unmatched(executor, capture.clone(), word, mix(place, 13));
                self.executor.act(operator);
            }
            Mark::None if number == order.number => {
                provider.capture_listed_at(capture.clone(), listed_at);
            }
            Mark::None | Mark::Another => {
                let others = Reported { capture: capture.clone(), mark };
                provider.others.insert(capture.key.clone(), others);
            }
        }
        provider.in_list.insert(capture.key.clone(), InList { made_at, from });
        environment.changes += 1;
        drop(environment);
        let act = |wait: i64, place: u64| {
            self.executor.act(call_back(self.executor.clone(), capture.clone(), wait, place));
        };
        let soon = if self.is_storm { 100 } else { 4_000 };
        let hours = if late { rng.between(60_000, 20_000_000) } else { rng.between(50, soon) };
        if never {
            self.executor.act(never_call(self.executor.clone(), capture.clone(), mix(place, 6)));
        } else {
            act(hours, mix(place, 6));
        }
        if twice {
            act(rng.between(50, 8_000), mix(place, 7));
            act(rng.between(50, 8_000_000), mix(place, 8));
        }
        if again && turn == 0 {
            self.pay(rng, order, 1);
        }
    }
}

/// What a payment carries: that of an order nothing, as it is started elsewhere; one that names no order here the
/// deployment's id, another's, or none; and some that name an order another deployment's id, as a copy of its store has
/// the same orders.
fn mark_of(place: u64, is_its_own: bool) -> Mark {
    let mut rng = SeededRng::from_label(place, 11);
    match is_its_own {
        true if rng.chance(10) => Mark::Another,
        true => Mark::None,
        false => rng.pick(&[Mark::Ours, Mark::None, Mark::Another]),
    }
}

/// A reservation of somebody whom a waiting room let in, as its function makes it: requests to the sale's slot
/// are bounded, and what becomes of each is counted.
async fn counted(
    ports: &Caller<PortHandle>,
    reservation: &Reservation,
    entrance: Entrance,
    now: Timestamp,
) -> Result<Reserved, Refusal> {
    let missing = || StoreError::Unavailable("the sale is not published".to_owned());
    let room = published(ports, &sale_id()).await?.ok_or_else(missing)?;
    let memory = &ports.0.kept().memory;
    let Entrance { entry, attempt } = entrance;
    let asks = (&reservation.user, Asking { attempt, gave_up: false });
    match may_ask(ports, memory, &room, asks, now).await? {
        MayAsk::Yes => {}
        MayAsk::No { .. } => Err(StoreError::Unavailable("the sale's slot is busy".to_owned()))?,
        MayAsk::Replaced => Err(StoreError::Unavailable("the admission has ended".to_owned()))?,
    }
    let result = reserve(ports, reservation, now).await;
    let took_ms = u64::try_from(ports.0.time().ms_since(now)).unwrap_or(u64::MAX);
    let became = match &result {
        Ok(Reserved { order, .. }) if order.created_at == now => {
            let held: usize = order.held_lines().iter().map(|line| line.seat_legs().count()).sum();
            Became::Order { held: held as u64 }
        }
        Err(Refusal::Store(_)) => Became::Failure,
        Ok(_) | Err(_) => Became::Answer,
    };
    report(ports, &room, Some(entry), became, took_ms, now).await;
    result
}

/// Another amount than the right one, or another currency.
fn wrong(rng: &mut SeededRng, right: Money) -> Money {
    let dollar = Currency::new("USD").expect("it is a code");
    match rng.below(3) {
        0 => Money { amount_minor: right.amount_minor - MinorUnits(1), ..right },
        1 => Money { amount_minor: right.amount_minor + MinorUnits(100), ..right },
        _ => Money { currency: dollar, ..right },
    }
}

/// True if other seats might be had.
fn is_of_these_seats(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::SeatTaken(..)
            | Refusal::SoldOut(_)
            | Refusal::OneTierOnly
            | Refusal::NoAdjacent(_)
            | Refusal::LimitReached { .. }
            | Refusal::AttendeeTaken(_)
    )
}

/// True if the same request may be answered otherwise later.
fn is_worth_repeating(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::NotLoaded | Refusal::Contended | Refusal::Store(_))
}

/// The name of a refusal's variant, or of its store's failure.
fn kind_of(refusal: &Refusal) -> String {
    if let Refusal::Store(error) = refusal { debug_head(error) } else { debug_head(refusal) }
}

/// What somebody wants: one line, or one of each tier.
fn wants(rng: &mut SeededRng, sale: &Sale) -> Vec<RequestedLine> {
    let tiers = sale.tiers();
    let all = tiers.len() > 1 && rng.chance(if sale.keeps_tiers_apart() { 80 } else { 250 });
    let one = rng.below(tiers.len() as u64) as usize;
    let chosen = tiers.iter().enumerate().filter(|(index, _)| all || *index == one);
    let mut people: Vec<u64> = Vec::new();
    chosen.map(|(_, tier)| line(rng, sale, tier, &mut people)).collect()
}

fn line(rng: &mut SeededRng, sale: &Sale, tier: &Tier, people: &mut Vec<u64>) -> RequestedLine {
    let from = rng.below(sale.leg_count().into()) as u16;
    let to = rng.between(i64::from(from) + 1, sale.leg_count().into()) as u16;
    let legs = Legs::new(from, to).unwrap_or(Legs::ONE);
    let count = rng.between(1, 3) as u16;
    let places = tier.layout.initial().len() as u32 * 8;
    let seats: Vec<Seat> = (0..places).map(Seat).filter(|seat| tier.layout.sells(*seat)).collect();
    let is_lettered = tier.tier.as_str() == "seated";
    let choice = match rng.below(10) {
        0..4 => {
            let mut chosen: Vec<Seat> = (0..count).map(|_| rng.pick(&seats)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            Choice::Seats(chosen)
        }
        4 if is_lettered => {
            let next = Offset { row: 0, column: 1 };
            Choice::Pattern { column: rng.pick(&[0, 3]), offsets: vec![next] }
        }
        5 | 6 => Choice::Best { count, together: Together::Required },
        _ => Choice::Best { count, together: Together::Preferred },
    };
    let named = sale.file().attendees == AttendeeRule::Required || rng.chance(150);
    let mut attendees = Vec::new();
    while named && attendees.len() < choice.count() {
        let person = rng.below(14);
        if !people.contains(&person) {
            people.push(person);
            attendees.push(model_stores::attendee(&format!("p{person}")));
        }
    }
    let price_minor = tier.price_minor(legs).unwrap_or_default();
    RequestedLine { line: Wish { tier: tier.tier.clone(), legs, choice }, price_minor, attendees }
}
