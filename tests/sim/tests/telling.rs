//! Telling by the flow itself, on models: two tellers of one subscription that die, freeze past their lease and get no
//! answers, and a subscriber that takes nothing for a while, refuses single orders, or takes what it does not say it took.
//! Whatever happens, each fact is heard or waits, and those of an order are first heard in their order. Without each of
//! the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{ReaderId, SubscriberId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::{LogPosition, LogShard, PlacedRecord, records};
use engine::domain::ledger::subscriber::{
    Event, GIVE_UP_SECONDS, Progress, Subscription, WaitingOrder, Wishes,
};
use engine::domain::order::Order;
use engine::domain::order::fact::{Cause, FactKind};
use engine::flows::tell::{Teller, Telling};
use engine::ports::{
    ChangeReply, Log, Receiver, StoreError, Stored, Subscriptions, TakeReply, Waiting,
};
use model_stores::{Call, Caller, Driver, Reply, Stores, SubscriptionsModel};
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::one_order::{START, pending};
use sim::{SeededRng, each_seed, let_others_come_between};

const RUNS: u64 = 1_500;
/// Runs in which the absence of a guard must be found: of one of them it takes some hundred.
const CONTROL_RUNS: u64 = 10_000;
const STEPS: u32 = 400;
/// Steps in which nothing goes wrong any more.
const CALM_STEPS: u32 = 400;
const ORDERS: usize = 7;
const FACTS: [FactKind; 4] =
    [FactKind::Made, FactKind::Paid, FactKind::RefundMade, FactKind::Refunded];

/// What the subscriber does at a time.
#[derive(Debug, Clone, Default)]
struct Mood {
    is_down: bool,
    /// It takes nothing of these orders.
    refuses: BTreeSet<OrderNumber>,
    /// It says that it has not taken what it has.
    is_unheard: bool,
}

struct Environment {
    now: Timestamp,
    stores: Stores,
    log: Vec<PlacedRecord>,
    subscriptions: SubscriptionsModel,
    mood: Mood,
    /// The facts that were heard of each order, in the order in which each was first heard.
    heard: BTreeMap<OrderNumber, Vec<NonZeroU32>>,
    broken: Option<String>,
    /// The next call of a store fails: with `true` it happens all the same.
    fault: Option<bool>,
}

#[derive(Clone)]
struct Client(Arc<Mutex<Environment>>);

fn locked(environment: &Mutex<Environment>) -> MutexGuard<'_, Environment> {
    environment.lock().unwrap()
}

impl Client {
    async fn act<T>(&self, act: impl FnOnce(&mut Environment) -> T) -> Stored<T> {
        let_others_come_between().await;
        let mut environment = locked(&self.0);
        match environment.fault.take() {
            None => Ok(act(&mut environment)),
            Some(false) => Err(StoreError::Unavailable("not now".to_owned())),
            Some(true) => {
                act(&mut environment);
                Err(StoreError::Unknown("the answer is lost".to_owned()))
            }
        }
    }
}

impl Driver for Client {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.act(|environment| environment.stores.apply(environment.now, &call)).await?
    }
}

impl Log for Client {
    async fn last(&self, _: LogShard) -> Stored<u64> {
        self.act(|environment| environment.log.last().map_or(0, |placed| placed.place.number)).await
    }

    async fn before(&self, _: LogShard, _: Timestamp) -> Stored<u64> {
        Ok(0)
    }

    async fn after(&self, place: LogPosition) -> Stored<Vec<PlacedRecord>> {
        let behind = |placed: &&PlacedRecord| placed.place.number > place.number;
        self.act(|environment| environment.log.iter().filter(behind).take(3).cloned().collect())
            .await
    }
}

impl Subscriptions for Client {
    async fn take(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<TakeReply> {
        self.act(|environment| environment.subscriptions.take(of, reader, now, until)).await
    }

    async fn keep(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        progress: &Progress,
        waiting: &[Waiting],
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        self.act(|environment| environment.subscriptions.keep(of, reader, progress, waiting, until))
            .await
    }

    async fn waiting(&self, of: &Subscription) -> Stored<Vec<WaitingOrder>> {
        self.act(|environment| environment.subscriptions.waiting(of)).await
    }
}

impl Receiver for Client {
    fn at_once(&self) -> usize {
        3
    }

    async fn tell(&self, events: &[Event]) -> Vec<bool> {
        let_others_come_between().await;
        let mut environment = locked(&self.0);
        events.iter().map(|event| environment.hear(event)).collect()
    }
}

impl Environment {
    fn hear(&mut self, event: &Event) -> bool {
        let Mood { is_down, refuses, is_unheard } = &self.mood;
        if *is_down || refuses.contains(&event.order) {
            return false;
        }
        let is_unheard = *is_unheard;
        let heard = self.heard.entry(event.order).or_default();
        if !heard.contains(&event.number) {
            if event.number.get() as usize != heard.len() + 1 {
                let what =
                    format!("fact {} of {} is heard after {heard:?}", event.number, event.order);
                self.broken.get_or_insert(what);
            }
            heard.push(event.number);
        }
        !is_unheard
    }

    fn new() -> Self {
        Self {
            now: START,
            stores: Stores::default(),
            log: Vec::new(),
            subscriptions: SubscriptionsModel::default(),
            mood: Mood::default(),
            heard: BTreeMap::new(),
            broken: None,
            fault: None,
        }
    }

    /// At the end everything of an order was heard, unless it was given up.
    fn has_heard_all(&self, of: &Subscription, order: &Order) -> Result<(), String> {
        let heard = self.heard.get(&order.number).map_or(0, Vec::len);
        let is_given_up = |waiting: &WaitingOrder| {
            waiting.order == order.number && waiting.failing.next.is_none()
        };
        let all = order.facts.settled().len();
        if heard == all || self.subscriptions.waiting(of).iter().any(is_given_up) {
            return Ok(());
        }
        Err(format!("{heard} of {all} facts of {} are heard at the end", order.number))
    }

    /// What the position has passed was heard, or waits.
    fn check(&self, of: &Subscription) -> Result<(), String> {
        if let Some(what) = &self.broken {
            return Err(what.clone());
        }
        let position = self.subscriptions.progress.get(of).map_or(0, |progress| progress.position);
        let waiting = self.subscriptions.waiting(of);
        for placed in self.log.iter().filter(|placed| placed.place.number <= position) {
            for event in Event::of_record(&placed.record) {
                let is_heard =
                    self.heard.get(&event.order).is_some_and(|heard| heard.contains(&event.number));
                let waits = waiting.iter().any(|waiting| {
                    waiting.order == event.order
                        && (waiting.from..=waiting.to).contains(&event.number)
                });
                if !is_heard && !waits {
                    let id = event.id();
                    return Err(format!("{id} was passed, and was neither heard nor waits"));
                }
            }
        }
        Ok(())
    }
}

fn order(index: usize) -> Order {
    let user = UserId::new((7 + 1024 * index).to_string()).unwrap();
    pending(u32::try_from(index).unwrap(), user, 1, None)
}

type Flow = Pin<Box<dyn Future<Output = Stored<Telling>>>>;

fn teller(
    environment: &Arc<Mutex<Environment>>,
    of: &Subscription,
    number: u64,
    stops_after: i64,
) -> Flow {
    let (client, of) = (Client(Arc::clone(environment)), of.clone());
    Box::pin(async move {
        let reader = ReaderId::new(format!("r{number}")).unwrap();
        let orders = Caller(client.clone());
        let teller = Teller {
            orders: &orders,
            log: &client,
            subscriptions: &client,
            receiver: &client,
            wishes: &Wishes::default(),
            since: START,
            reader: &reader,
        };
        let clock = || locked(&client.0).now;
        let stop_at = clock().plus_seconds(stops_after);
        teller.tell(&of, clock, stop_at).await
    })
}

/// Something happens: facts are settled, time passes, the subscriber is in another mood, a store does not answer, a
/// teller dies.
fn disturb(
    rng: &mut SeededRng,
    environment: &Mutex<Environment>,
    orders: &mut [Order],
    tellers: &mut [Option<Flow>; 2],
) {
    match rng.below(24) {
        0..4 => settle(rng, environment, orders),
        4 => {
            locked(environment).now =
                locked_now(environment).plus_seconds(rng.below(90).cast_signed())
        }
        5 => {
            let refused = orders[usize::try_from(rng.below(7)).unwrap()].number;
            let mood = match rng.below(5) {
                0 => Mood { is_down: true, ..Mood::default() },
                1 => Mood { refuses: [refused].into(), ..Mood::default() },
                2 => Mood { is_unheard: true, ..Mood::default() },
                _ => Mood::default(),
            };
            locked(environment).mood = mood;
        }
        6 => locked(environment).fault = Some(rng.below(2) == 0),
        7 => tellers[usize::try_from(rng.below(2)).unwrap()] = None,
        _ => {}
    }
}

/// One run: facts are settled, two tellers tell, and things go wrong; then nothing does any more.
fn run(seed: u64, reached: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let shard = LogShard::all().next().unwrap();
    let of = Subscription { subscriber: SubscriberId::new("erp").unwrap(), shard };
    let environment = Arc::new(Mutex::new(Environment::new()));
    let mut orders: Vec<Order> = (0..ORDERS).map(order).collect();
    let mut tellers: [Option<Flow>; 2] = [None, None];
    let mut begun = 0;
    let mut context = Context::from_waker(Waker::noop());
    for step in 0..STEPS + CALM_STEPS {
        let is_calm = step >= STEPS;
        if is_calm {
            let mut environment = locked(&environment);
            (environment.mood, environment.fault, tellers[1]) = (Mood::default(), None, None);
            if tellers[0].is_none() {
                // Between two runs, long enough for every lease and every pause.
                environment.now = environment.now.plus_seconds(20_000);
            }
        } else {
            disturb(&mut rng, &environment, &mut orders, &mut tellers);
        }
        let turn = if is_calm { 0 } else { usize::try_from(rng.below(2)).unwrap() };
        let mut flow = tellers[turn].take().unwrap_or_else(|| {
            begun += 1;
            let stops_after =
                if is_calm { 10 * GIVE_UP_SECONDS } else { 5 + rng.below(50).cast_signed() };
            teller(&environment, &of, begun, stops_after)
        });
        let polled = flow.as_mut().poll(&mut context);
        locked(&environment).check(&of).map_err(|what| format!("step {step}: {what}"))?;
        match polled {
            Poll::Pending => tellers[turn] = Some(flow),
            Poll::Ready(Ok(did)) => {
                for (name, count) in [
                    ("told", did.told),
                    ("not taken", did.failed),
                    ("stopped", did.stopped),
                    ("unfinished", did.unfinished),
                    ("given up", did.given_up),
                    ("waiting", did.waiting),
                ] {
                    *reached.entry(name).or_default() += count;
                }
            }
            Poll::Ready(Err(_)) => *reached.entry("a run failed").or_default() += 1,
        }
    }
    let environment = locked(&environment);
    orders.iter().try_for_each(|order| environment.has_heard_all(&of, order))
}

fn locked_now(environment: &Mutex<Environment>) -> Timestamp {
    locked(environment).now
}

/// One or two orders have something new, which is settled.
fn settle(rng: &mut SeededRng, environment: &Mutex<Environment>, orders: &mut [Order]) {
    let mut environment = locked(environment);
    let mut settled = BTreeSet::new();
    for _ in 0..=rng.below(5) {
        settled.insert(usize::try_from(rng.below(7)).unwrap());
    }
    let mut changed = Vec::new();
    for index in settled {
        let order = &mut orders[index];
        let all = order.facts.all.len();
        if order.facts.are_settled() {
            let Some(kind) = FACTS.get(all) else { continue };
            order.facts = order.facts.with(*kind, environment.now, Cause::BUYER);
        }
        changed.push(index);
    }
    let of_log = records(changed.iter().map(|index| &orders[*index]), environment.now);
    for record in of_log {
        let number = environment.log.len() as u64 + 1;
        let shard = LogShard::all().next().unwrap();
        environment.log.push(PlacedRecord { place: LogPosition { shard, number }, record });
    }
    for index in changed {
        let order = &mut orders[index];
        order.facts.settled = u32::try_from(order.facts.all.len()).unwrap();
        environment.stores.orders.orders.insert(order.number, order.clone());
    }
}

#[test]
fn each_fact_is_heard_or_waits_and_those_of_an_order_in_their_order() {
    let reached = each_seed(RUNS, run);
    for name in ["told", "not taken", "stopped", "unfinished", "waiting", "a run failed"] {
        assert!(reached.get(name).is_some_and(|count| *count > 0), "{name} never came");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_telling_is_found() {
    each_absence("telling", Guard::OF_TELLING, CONTROL_RUNS, run);
}
