//! Starting and closing payments: cut off at every call, repeated, refused and overtaken.

use std::sync::Mutex;

use engine::domain::basics::ids::ProviderId;
use engine::domain::order::attempt::{Attempt, MAX_HANDED, PaymentChoice, PaymentMethod};
use engine::domain::order::{Order, OrderState, PaymentOutcome};
use engine::domain::payment::start::Offer;
use engine::flows::close::{Closing, close};
use engine::flows::pay::pay;
use engine::flows::reserve::reserve;
use engine::flows::start::{Refusal, start};
use engine::ports::{Orders as _, Ports as _, StoreError, Stored};
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

/// Turn first: who has no turn leaves no attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_a_turn_writes_nothing() {
    struct NoTurn {
        stores: Mutex<Stores>,
        offers: Vec<Offer>,
    }
    impl Driver for NoTurn {
        fn offers(&self) -> Vec<Offer> {
            self.offers.clone()
        }

        async fn call(&self, call: Call) -> Stored<Reply> {
            if matches!(call, Call::StartTurn { .. }) {
                return Err(StoreError::Limited(7));
            }
            self.stores.lock().unwrap().apply(NOW, &call)
        }
    }
    let fixture = Fixture::start().await;
    let order = pending(&fixture, "waits").await;
    let mut stores = Stores::default();
    stores.orders.create(&order, order.tickets()).unwrap();
    let ports = Caller(NoTurn { stores: Mutex::new(stores), offers: fixture.ports.offers() });
    let refused = start(&ports, &order.user, order.number, &form(), NOW).await;
    assert_eq!(refused, Err(Refusal::Store(StoreError::Limited(7))));
    let stored = ports.orders().get(order.number).await.unwrap().unwrap();
    assert_eq!(stored.attempts, order.attempts);
}
