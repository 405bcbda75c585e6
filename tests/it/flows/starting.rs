//! Starting and closing payments, cut off at every call.

use engine::domain::basics::ids::ProviderId;
use engine::domain::order::OrderState;
use engine::domain::order::attempt::{PaymentChoice, PaymentMethod};
use engine::flows::close::{Closing, close};
use engine::flows::reserve::reserve;
use engine::flows::start::start;
use engine::ports::{Orders as _, Ports as _};
use fake_payments::PROVIDER;

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
