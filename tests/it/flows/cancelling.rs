//! A sale that does not take place: from every crash point on its pending orders end and its paid ones are
//! refunded once; what comes late goes back; nothing sells it again.

use std::sync::atomic::{AtomicI64, AtomicU16, Ordering};

use engine::domain::basics::ids::{
    InventoryId, Legs, PaymentId, ProviderId, SaleId, TierId, UserId,
};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::Mint;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::order_refund::AskedBy;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, Order, OrderState, PaymentKey, PaymentOutcome, RefundReason};
use engine::domain::sale::{Sale, SaleFile, SaleState};
use engine::flows::cancel_sale::{IN_FLIGHT_SECONDS, Progress, Refusal, stop, walk};
use engine::flows::expire::Expired;
use engine::flows::pay::pay;
use engine::flows::publish::{self, publish};
use engine::flows::reserve::{self, Reservation, reserve};
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports};
use serde_json::json;

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::ended::ended;
use super::environment::{Fixture, NOW, epoch};

/// How long the payments of the tests may take.
const PAY_WINDOW_SECONDS: i64 = 60;

fn sale(name: &str) -> Sale {
    let file = json!({
        "sale": name, "title": name, "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": PAY_WINDOW_SECONDS,
        "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": 500, "general_admission": 8 }]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

fn id(name: &str) -> SaleId {
    SaleId::new(name).unwrap()
}

async fn reservation(fixture: &Fixture, sale: &SaleId, user: &str) -> Reservation {
    static PROCESSES: AtomicU16 = AtomicU16::new(300);
    let mint = Mint::new(PROCESSES.fetch_add(1, Ordering::Relaxed).into());
    let published = fixture.ports.catalogue().sale(sale, Freshness::Fresh).await.unwrap().unwrap();
    let user = UserId::new(user).unwrap();
    let choice = Choice::Best { count: 2, together: Together::Preferred };
    let line = Line { tier: TierId::new("hall").unwrap(), legs: Legs::ONE, choice };
    let lines = vec![RequestedLine { line, price_minor: MinorUnits(500), attendees: vec![] }];
    Reservation { published, number: mint.mint(NOW, &user), user, lines, exchange: None }
}

async fn buy(fixture: &Fixture, sale: &SaleId, user: &str) -> Order {
    let reservation = reservation(fixture, sale, user).await;
    reserve(&fixture.ports, &reservation, NOW).await.unwrap().order
}

fn capture(order: &Order) -> Capture {
    let payment = PaymentId::new(format!("pi_{}", order.number)).unwrap();
    let key = PaymentKey { provider: ProviderId::new("stripe").unwrap(), payment };
    Capture { key, order: order.number, amount: order.total, attempt: None }
}

/// Stops a sale and walks its claims; each pause takes longer than anything is on its way.
async fn cancel(ports: &impl Ports, name: &str, token: &str) -> Result<Progress, Refusal> {
    let published = stop(ports, &id(name), &epoch(token), NOW).await?;
    let seconds = AtomicI64::new(1);
    let clock = || NOW.plus_seconds(seconds.load(Ordering::Relaxed));
    let pause = async || {
        seconds.fetch_add(61, Ordering::Relaxed);
    };
    Ok(walk(
        ports,
        &published.sale,
        NOW.plus_seconds(IN_FLIGHT_SECONDS),
        clock,
        async || (),
        pause,
        |_| (),
    )
    .await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_sale_ends_and_refunds_every_order_once_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let name = format!("c{call}-{}", format!("{cut:?}").to_lowercase());
        let token = |what: &str| format!("{name}-{what}");
        publish(&fixture.ports, &sale(&name), &epoch(&token("load")), NOW).await.unwrap();
        let pending = buy(&fixture, &id(&name), "wu").await;
        let paid = buy(&fixture, &id(&name), "li").await;
        pay(&fixture.ports, &capture(&paid), NOW).await.unwrap();

        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = cancel(&crashing, &name, &token("first")).await;
        let progress = cancel(&fixture.ports, &name, &token("second")).await.unwrap();
        assert_eq!(progress.left.len(), 0, "{call} {cut:?}: {progress:?}");
        assert_eq!(fixture.state(pending.number).await, Some(OrderState::Cancelled));
        assert_eq!(fixture.state(paid.number).await, Some(OrderState::RefundDue));
        let refunds = fixture.ports.orders().order_refunds(paid.number).await.unwrap();
        let [refund] = &refunds[..] else { panic!("{call} {cut:?}: {refunds:?}") };
        assert_eq!((refund.amount, refund.asked_by), (paid.total, AskedBy::SaleCancelled));
        let (sale, hall) = (id(&name), TierId::new("hall").unwrap());
        let block = fixture.ports.orders().block_claims(&sale, &hall, 0).await.unwrap();
        assert_eq!(block.claims, [], "{call} {cut:?}");
        crashing.has_died()
    })
    .await;
    println!("cancelling a sale: cut off at each of {calls} calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_sells_a_cancelled_sale_and_late_money_goes_back() {
    let fixture = Fixture::start().await;
    let name = "gone";
    publish(&fixture.ports, &sale(name), &epoch("load"), NOW).await.unwrap();
    let late = buy(&fixture, &id(name), "zhao").await;
    let over = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let at = InventoryId::whole(id(name));
    assert_eq!(ended(&fixture.ports, &at, late.number, over).await, Ok(Expired::Ended));
    let waiting = reservation(&fixture, &id(name), "sun").await;

    assert_eq!(cancel(&fixture.ports, "never", "no").await, Err(Refusal::NoSuchSale));
    cancel(&fixture.ports, name, "stop").await.unwrap();
    let refused = reserve(&fixture.ports, &waiting, NOW).await;
    assert_eq!(refused.map(|_| ()), Err(reserve::Refusal::SaleClosed));
    let again = publish(&fixture.ports, &sale(name), &epoch("again"), NOW).await;
    assert_eq!(again.map(|_| ()), Err(publish::Refusal::Cancelled));
    // Its terms may change: it is cancelled all the same.
    let file = SaleFile {
        title: "Cancelled".to_owned(),
        state: SaleState::Cancelled,
        ..sale(name).file().clone()
    };
    publish(&fixture.ports, &Sale::new(file).unwrap(), &epoch("terms"), NOW).await.unwrap();

    let record = pay(&fixture.ports, &capture(&late), over).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::Cancelled));
    assert_eq!(fixture.state(late.number).await, Some(OrderState::RefundDue));
    let nothing = cancel(&fixture.ports, name, "once-more").await.unwrap();
    assert_eq!((nothing.refunded, nothing.ended), (0, 0), "{nothing:?}");
}
