//! Starting and closing payments: cut off at every call, repeated, refused and overtaken.

use std::sync::Mutex;

use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{
    Attempt, AttemptState, MAX_ASKS, MAX_HANDED, PaymentChoice, PaymentMethod,
};
use engine::domain::order::{Order, OrderState, PaymentOutcome};
use engine::domain::payment::start::Offer;
use engine::flows::close::{Closing, close};
use engine::flows::expire::{Expired, expire};
use engine::flows::pay::pay;
use engine::flows::reserve::reserve;
use engine::flows::start::{Refusal, Started, Waits, start};
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports as _, StoreError, Stored};
use fake_payments::{Fault, PROVIDER};
use model_stores::{Call, Caller, Driver, Reply, Stores};

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::ended::ended;
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, inventory};

fn form() -> PaymentChoice {
    let provider = ProviderId::new(PROVIDER).unwrap();
    PaymentChoice { provider, method: PaymentMethod::Form, return_url: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_was_started_is_found_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let reservation = fixture.reservation(&format!("s{call}-{cut:?}")).await;
        let order = reserve(&fixture.ports, &reservation, NOW).await.unwrap().order;
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let first = start(&crashing, &order.user, order.number, &form(), NOW).await;
        let again = start(&fixture.ports, &order.user, order.number, &form(), NOW).await;
        let again = again.expect("the same request starts it, or finds it");
        if let Ok(first) = first {
            assert_eq!((first.number, first.step), (again.number, again.step.clone()));
        }
        let now = fixture.ports.orders().get(order.number).await.unwrap().unwrap();
        assert_eq!(now.attempts.open().count(), 1, "{call} {cut:?}: {:?}", now.attempts);
        crashing.has_died()
    })
    .await;
    println!("starting a payment: cut off at each of {calls} calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_can_be_paid_of_an_order_that_has_ended_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let calls = at_every_call(async |call, cut| {
        let reservation = fixture.reservation(&format!("c{call}-{cut:?}")).await;
        let order = reserve(&fixture.ports, &reservation, NOW).await.unwrap().order;
        let begun = start(&fixture.ports, &order.user, order.number, &form(), NOW).await.unwrap();
        let open = begun.order.attempts.open().next().unwrap();
        let name = open.reference.clone().expect("the provider has named it");
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = close(&crashing, &inventory(), order.number, late).await;
        let again = close(&fixture.ports, &inventory(), order.number, late).await;
        assert_eq!(again, Ok(Closing::Done), "{call} {cut:?}");
        // It was closed before anything ended: the seats are still the buyer's.
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Pending));
        assert_eq!(fixture.provider.pay(name.as_str(), late).unwrap(), None, "{call} {cut:?}");
        let now = fixture.ports.orders().get(order.number).await.unwrap().unwrap();
        assert!(!now.attempts.any_open(), "{call} {cut:?}: {:?}", now.attempts);
        ended(&fixture.ports, &inventory(), order.number, late.plus_seconds(1)).await.unwrap();
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Expired));
        crashing.has_died()
    })
    .await;
    println!("closing a payment: cut off at each of {calls} calls");
}

/// The calls by which payments are started and closed that the provider has answered; its search is asked as well, as
/// payments of the fixture are also started elsewhere.
fn calls(fixture: &Fixture) -> u64 {
    let calls = fixture.provider.calls();
    let routes = ["create_intent", "create_session", "cancel_intent", "expire_session"];
    routes.iter().filter_map(|route| calls.get(route)).sum()
}

async fn pending(fixture: &Fixture, user: &str) -> Order {
    let reservation = fixture.reservation(user).await;
    reserve(&fixture.ports, &reservation, NOW).await.unwrap().order
}

async fn stored(fixture: &Fixture, order: &Order) -> Order {
    fixture.ports.orders().get(order.number).await.unwrap().unwrap()
}

/// H1: a repeated start asks nobody, so that no answer of the provider can write a live payment off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_was_started_is_answered_without_a_call_until_its_order_ends() {
    let fixture = Fixture::start().await;
    let order = pending(&fixture, "repeats").await;
    let first = start(&fixture.ports, &order.user, order.number, &form(), NOW).await.unwrap();
    let before = calls(&fixture);
    // A second before the deadline WeChat Pay and Alipay start nothing any more.
    let last = NOW.plus_seconds(PAY_WINDOW_SECONDS - 1);
    let again = start(&fixture.ports, &order.user, order.number, &form(), last).await.unwrap();
    assert_eq!((again.number, &again.step), (first.number, &first.step));
    assert_eq!(calls(&fixture), before);
    let reference = again.order.attempts.all[0].reference.clone().unwrap();
    let capture = fixture.provider.pay(reference.as_str(), NOW).unwrap().unwrap();
    let paid = pay(&fixture.ports, &capture, NOW).await.unwrap();
    assert_eq!(paid.outcome, PaymentOutcome::Accepted);
    let paid = stored(&fixture, &order).await;
    assert_eq!(paid.attempts.paid, Some(first.number));
    let items = fixture.items().await;
    assert!(items.values().all(|item| !item.contains_key("steps")), "{items:?}");
}

/// H5: what a provider repeats under a key is got past by another number, however often that happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_the_provider_repeats_leaves_the_order_payable() {
    let fixture = Fixture::start().await;
    let order = pending(&fixture, "unlucky").await;
    let begin = async || start(&fixture.ports, &order.user, order.number, &form(), NOW).await;
    let failures = MAX_HANDED + 2;
    for _ in 0..failures {
        fixture.provider.next(Fault::FailStart);
        let failed = begin().await;
        assert!(matches!(failed, Err(Refusal::Store(StoreError::Unavailable(_)))), "{failed:?}");
    }
    let started = begin().await.unwrap();
    assert_eq!(usize::from(started.number.get()), failures + 1);
    assert_eq!(started.order.attempts.open().count(), 1);
    // Another method closes this one alone: nobody has the others.
    let before = calls(&fixture);
    let other = PaymentChoice { method: PaymentMethod::Page, ..form() };
    let other = PaymentChoice { return_url: "https://shop.example/".parse().ok(), ..other };
    let page = start(&fixture.ports, &order.user, order.number, &other, NOW).await;
    // The fake's clock is not the test's, so that it refuses the life of the page: the former attempt is closed all the
    // same, by one call.
    assert!(matches!(page, Ok(_) | Err(Refusal::Refused)), "{page:?}");
    assert_eq!(calls(&fixture), before + 2);
}

/// No reference, no money: the process that ends the order closes it without its provider.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_handed_to_nobody_is_closed_without_a_call() {
    let fixture = Fixture::start().await;
    let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let mut unhanded = 0;
    at_every_call(async |call, cut| {
        let order = pending(&fixture, &format!("n{call}-{cut:?}")).await;
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let first = start(&crashing, &order.user, order.number, &form(), NOW).await;
        let left = stored(&fixture, &order).await;
        let is_handed = left.attempts.open().any(Attempt::may_be_handed);
        assert!(first.is_err() || is_handed, "{call} {cut:?}");
        let before = calls(&fixture);
        assert_eq!(
            close(&fixture.ports, &inventory(), order.number, late).await,
            Ok(Closing::Done),
            "{call} {cut:?}"
        );
        assert!(!stored(&fixture, &order).await.attempts.any_open());
        if !is_handed {
            unhanded += usize::from(left.attempts.any_open());
            assert_eq!(calls(&fixture), before, "{call} {cut:?}");
        }
        crashing.has_died()
    })
    .await;
    assert!(unhanded >= 3, "{unhanded} attempts that nobody has");
}

/// Who closes for nothing wins over who still asks: of what was started nothing is handed out, and it is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_is_closed_while_its_provider_is_asked_is_handed_to_nobody() {
    let fixture = Fixture::start().await;
    let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let mut overtaken = 0;
    for call in 1..12 {
        let order = pending(&fixture, &format!("o{call}")).await;
        let slow = Crashing::frozen_at(&fixture.ports, call);
        let choice = form();
        let asks = start(&slow, &order.user, order.number, &choice, NOW);
        let closes = async {
            close(&fixture.ports, &inventory(), order.number, late).await.unwrap();
            ended(&fixture.ports, &inventory(), order.number, late.plus_seconds(1)).await.unwrap();
        };
        let (asked, ()) = slow.while_frozen(asks, closes).await;
        let order = stored(&fixture, &order).await;
        assert_eq!(order.state, OrderState::Expired);
        if asked.is_ok() {
            // It had ended before the order was closed.
            assert!(order.attempts.all[0].reference.is_some());
            continue;
        }
        overtaken += usize::from(!order.attempts.all.is_empty());
        assert!(order.attempts.all.iter().all(|attempt| attempt.step.is_none()));
    }
    assert!(overtaken >= 2, "{overtaken}");
    let made = fixture.provider.calls()["create_intent"];
    assert!(made >= 2, "{made}");
    for number in 1..=made {
        let name = format!("pi_form_{number}");
        assert_eq!(fixture.provider.pay(&name, late).unwrap(), None, "{name}");
    }
}

/// Stores at a moment, at a provider that has a free start from another moment on, or none.
struct Busy {
    state: Mutex<BusyState>,
    offers: Vec<Offer>,
}

struct BusyState {
    stores: Stores,
    now: Timestamp,
    is_used_up: bool,
    /// True while the provider answers to no close.
    is_silent: bool,
    /// The starts that were asked for.
    turns: u32,
}

impl Driver for Busy {
    fn offers(&self) -> Vec<Offer> {
        self.offers.clone()
    }

    async fn call(&self, call: Call) -> Stored<Reply> {
        let mut state = self.state.lock().unwrap();
        if matches!(call, Call::StartTurn { .. }) {
            state.turns += 1;
            if state.is_used_up {
                return Err(StoreError::Limited(7));
            }
        }
        if matches!(call, Call::ClosePayment { .. }) && state.is_silent {
            return Err(StoreError::Unavailable("no answer".to_owned()));
        }
        let now = state.now;
        state.stores.apply(now, &call)
    }
}

/// An order at a provider without a free start for so many seconds; in none of the tests is its sale asked for more than the
/// departures that it has not.
struct Waiting {
    ports: Caller<Busy>,
    order: Order,
}

impl Waiting {
    async fn with_start_in(seconds: i64) -> Self {
        let fixture = Fixture::start().await;
        let order = pending(&fixture, "waits").await;
        let mut stores = Stores::default();
        let published =
            fixture.ports.catalogue().sale(&order.sale, Freshness::Fresh).await.unwrap().unwrap();
        stores.catalogue.publish(published.sale.file(), None).unwrap();
        stores.orders.create(&order, order.tickets()).unwrap();
        stores.provider.next_start = Some(NOW.plus_seconds(seconds));
        let state = BusyState { stores, now: NOW, is_used_up: false, is_silent: false, turns: 0 };
        let state = Mutex::new(state);
        Self { ports: Caller(Busy { state, offers: fixture.ports.offers() }), order }
    }

    fn set(&self, change: impl FnOnce(&mut BusyState)) {
        change(&mut self.ports.0.state.lock().unwrap());
    }

    async fn start_by(&self, choice: &PaymentChoice, seconds: i64) -> Result<Started, Refusal> {
        let now = NOW.plus_seconds(seconds);
        self.set(|state| state.now = now);
        start(&self.ports, &self.order.user, self.order.number, choice, now).await
    }

    async fn start(&self, seconds: i64) -> Result<Started, Refusal> {
        self.start_by(&form(), seconds).await
    }

    async fn stored(&self) -> Order {
        self.ports.orders().get(self.order.number).await.unwrap().unwrap()
    }

    fn turns(&self) -> u32 {
        self.ports.0.state.lock().unwrap().turns
    }
}

/// The place of a start that was answered with one, and the order's deadline, in seconds.
fn waits(answer: Result<Started, Refusal>) -> (i64, i64) {
    let Err(Refusal::Waits(Waits { place, payable_until, .. })) = answer else {
        panic!("{answer:?} is no place");
    };
    (place.at.ms_since(NOW) / 1000, payable_until.ms_since(NOW) / 1000)
}

/// Turn first: who has no turn leaves no attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_a_turn_writes_nothing() {
    let waiting = Waiting::with_start_in(0).await;
    waiting.set(|state| state.is_used_up = true);
    assert_eq!(waiting.start(0).await, Err(Refusal::Store(StoreError::Limited(7))));
    assert_eq!(waiting.stored().await.attempts, waiting.order.attempts);
}

/// A place instead of a retry: whoever waits has one start, keeps it, and has the time to use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_not_free_is_a_place_which_the_order_keeps() {
    let waiting = Waiting::with_start_in(90).await;
    // The payment window is over by then: the order is extended.
    assert_eq!(waits(waiting.start(1).await), (90, 210));
    assert_eq!(waits(waiting.start(30).await), (90, 210), "a reload");
    let page = PaymentChoice { method: PaymentMethod::Page, ..form() };
    let page = PaymentChoice { return_url: "https://shop.example/".parse().ok(), ..page };
    assert_eq!(waits(waiting.start_by(&page, 60).await), (90, 210), "another method");
    assert_eq!(waiting.turns(), 1);
    let stored = waiting.stored().await;
    assert!(stored.attempts.all.is_empty(), "no attempt waits");
    assert_eq!(stored.pay_by, waiting.order.pay_by);
    // In the place nothing is asked for before the provider is.
    waiting.set(|state| state.stores.provider.next_start = Some(NOW.plus_seconds(900)));
    let started = waiting.start(90).await.unwrap();
    assert_eq!(waiting.turns(), 1);
    let attempt = &started.order.attempts.all[0];
    assert!(attempt.expires_at >= NOW.plus_seconds(210), "it can be paid as long as the order");
    let stored = waiting.stored().await;
    assert_eq!(stored.attempts.places, []);
    assert_eq!(stored.payable_until(), NOW.plus_seconds(210));
}

/// Places do not keep seats from others for ever: one extends its order, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_late_has_a_new_place_at_the_end_and_no_more_time() {
    let waiting = Waiting::with_start_in(90).await;
    assert_eq!(waits(waiting.start(1).await), (90, 210));
    waiting.set(|state| state.stores.provider.next_start = Some(NOW.plus_seconds(200)));
    assert_eq!(waits(waiting.start(105).await), (200, 210));
    assert_eq!(waiting.turns(), 2);
    // A place behind the order's end is of no use, and is not taken again and again.
    waiting.set(|state| state.stores.provider.next_start = Some(NOW.plus_seconds(216)));
    let limited = |seconds| Err(Refusal::Store(StoreError::Limited(seconds)));
    let after_all = Waiting::with_start_in(90).await;
    assert_eq!(waits(after_all.start(1).await), (90, 210));
    after_all.set(|state| state.stores.provider.next_start = Some(NOW.plus_seconds(216)));
    assert_eq!(after_all.start(105).await, limited(112));
    assert_eq!(after_all.start(110).await, limited(107));
    assert_eq!(after_all.turns(), 2);
    assert_eq!(waiting.start(210).await, Err(Refusal::TooLate(NOW.plus_seconds(210))));
}

/// A place that leaves its buyer time enough extends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_extension_is_kept_for_the_place_that_needs_it() {
    let waiting = Waiting::with_start_in(5).await;
    let longer = Order { pay_by: NOW.plus_seconds(600), ..waiting.order.clone() };
    waiting.set(|state| {
        state.stores.orders.orders.insert(longer.number, longer);
    });
    assert_eq!(waits(waiting.start(1).await), (5, 600));
    assert_eq!(waiting.stored().await.attempts.extended_to, None);
    waiting.set(|state| state.stores.provider.next_start = Some(NOW.plus_seconds(650)));
    assert_eq!(waits(waiting.start(590).await), (650, 770));
}

/// Nothing ends an order before the time to which its place extends it, and its grace counts from then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extended_order_ends_after_its_extension() {
    let waiting = Waiting::with_start_in(90).await;
    assert_eq!(waits(waiting.start(1).await), (90, 210));
    let number = waiting.order.number;
    let end = async |seconds: i64| {
        let now = NOW.plus_seconds(seconds);
        waiting.set(|state| state.now = now);
        expire(&waiting.ports, &inventory(), number, now).await
    };
    assert_eq!(end(60).await, Ok(Expired::NotDue(NOW.plus_seconds(210))));
    assert_eq!(end(209).await, Ok(Expired::NotDue(NOW.plus_seconds(210))));
    waiting.start(92).await.unwrap();
    assert_eq!(end(210).await, Ok(Expired::HandedOver));
    assert_eq!(waiting.stored().await.due_at(), Some(NOW.plus_seconds(210)));
    let closed = close(&waiting.ports, &inventory(), number, NOW.plus_seconds(209)).await;
    assert_eq!(closed, Ok(Closing::Done));
    assert!(waiting.stored().await.attempts.any_open(), "it may be paid for another second");
    close(&waiting.ports, &inventory(), number, NOW.plus_seconds(210)).await.unwrap();
    assert!(!waiting.stored().await.attempts.any_open());
}

impl Waiting {
    /// Closes what is open from a moment on, for as long as that asks for another moment; the last one.
    async fn close_from(&self, from: Timestamp) -> Timestamp {
        let mut now = from;
        loop {
            self.set(|state| state.now = now);
            match close(&self.ports, &inventory(), self.order.number, now).await.unwrap() {
                Closing::Again(at) => now = at,
                Closing::Done => return now,
            }
        }
    }

    /// An order that has ended, whose attempt its provider did not close in time.
    async fn given_up() -> (Self, Attempt) {
        let waiting = Self::with_start_in(0).await;
        waiting.start(1).await.unwrap();
        waiting.set(|state| state.is_silent = true);
        let now = waiting.close_from(waiting.order.payable_until()).await;
        let over = ended(&waiting.ports, &inventory(), waiting.order.number, now).await;
        assert_eq!(over, Ok(Expired::Ended));
        let stored = waiting.stored().await;
        let attempt = stored.attempts.all[0].clone();
        assert_eq!((stored.state, attempt.state), (OrderState::Expired, AttemptState::GivenUp));
        (waiting, attempt)
    }

    /// Who is asked about again, once it is due.
    async fn ask_again(&self) -> Timestamp {
        let at = self.stored().await.attempts.asked_at().unwrap();
        self.close_from(at).await
    }
}

/// Money that comes by an attempt that was given up, and of which no call ever tells, is found by asking again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_paid_while_its_provider_is_silent_is_found() {
    let (waiting, attempt) = Waiting::given_up().await;
    let name = attempt.key(waiting.order.number);
    let paid_at = attempt.expires_at.plus_seconds(-1);
    let capture = Mutex::new(None);
    waiting.set(|state| *capture.lock().unwrap() = state.stores.provider.pay(name, paid_at));
    let capture = capture.into_inner().unwrap().expect("its page is still open");
    let payment =
        async || waiting.ports.orders().payment(capture.order, &capture.key).await.unwrap();
    // The provider is silent at first: another day.
    let asked_at = waiting.ask_again().await;
    assert_eq!(payment().await, None);
    waiting.set(|state| state.is_silent = false);
    assert_eq!(waiting.ask_again().await, asked_at.plus_seconds(24 * 3600));
    let record = payment().await.expect("the provider has said that it was paid");
    let stored = waiting.stored().await;
    // Its seats are free: it pays the order all the same.
    assert_eq!((record.outcome, stored.state), (PaymentOutcome::Accepted, OrderState::Paid));
    assert_eq!(stored.attempts.asked_at(), None, "nothing is left to ask");
}

/// A provider that never answers is not asked for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_up_is_asked_about_for_a_week() {
    let (waiting, attempt) = Waiting::given_up().await;
    let mut last = attempt.expires_at;
    for _ in 0..MAX_ASKS {
        let due_at = waiting.stored().await.due_at().unwrap();
        last = waiting.ask_again().await;
        assert!(due_at <= last, "the index names it in time");
    }
    assert_eq!(last, attempt.expires_at.plus_seconds(3600 + 7 * 24 * 3600));
    let stored = waiting.stored().await;
    assert_eq!(stored.attempts.asked_at(), None);
    assert_eq!(stored.attempts.all[0].state, AttemptState::GivenUp);
}
