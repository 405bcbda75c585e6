//! Reconcile counts the paid orders whose messages were lost together, not one by one.

use std::sync::{Mutex, PoisonError};

use engine::domain::basics::ids::{Epoch, Legs, PaymentId, ProviderId, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, PaymentKey};
use engine::domain::sale::Sale;
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::reconcile::reconcile;
use engine::flows::reserve::{Reservation, reserve};
use engine::ports::{DUE_SHARDS, Orders, Stored};
use model_stores::{Call, Caller, Driver, Reply, Stores};
use serde_json::json;

const NOW: Timestamp = Timestamp::from_ms(1_795_000_000_000);
const ORDERS: usize = 200;

/// The stores, which answer at once, and how often they were asked to count orders.
struct Counted(Mutex<(Stores, usize)>);

impl Driver for Counted {
    async fn call(&self, call: Call) -> Stored<Reply> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += usize::from(call.name() == "Orders::sync");
        state.0.apply(NOW, &call)
    }
}

#[tokio::test]
async fn orders_whose_messages_were_lost_are_counted_by_shards_not_one_by_one() {
    let file = json!({
        "sale": "train", "title": "Train", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2040-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 600,
        "tiers": [{ "tier": "all", "name": "All", "price_minor": 10, "general_admission": 900 }],
    });
    let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
    let ports = Caller(Counted(Mutex::new((Stores::default(), 0))));
    let published = publish(&ports, &sale, &Epoch::new("e1").unwrap(), NOW).await.unwrap();
    let mint = Mint::new(3);
    for buyer in 0..ORDERS {
        let user = UserId::new(buyer.to_string()).unwrap();
        let choice = Choice::Best { count: 2, together: Together::Preferred };
        let line = Line { tier: TierId::new("all").unwrap(), legs: Legs::ONE, choice };
        let lines = vec![RequestedLine { line, price_minor: MinorUnits(10), attendees: vec![] }];
        let number = mint.mint(NOW, &user);
        let reservation =
            Reservation { published: published.clone(), number, user, lines, exchange: None };
        let order = reserve(&ports, &reservation, NOW).await.unwrap().order;
        let payment = PaymentId::new(format!("pi_{buyer}")).unwrap();
        let key = PaymentKey { provider: ProviderId::new("stripe").unwrap(), payment };
        let capture = Capture { key, order: number, amount: order.total, attempt: None };
        pay(&ports, &capture, NOW).await.unwrap();
    }
    let later = NOW.plus_seconds(120);
    let report = reconcile(&ports, &Epoch::new("e2").unwrap(), later).await.unwrap();
    let calls = ports.0.0.lock().unwrap().1;
    println!("{ORDERS} paid orders were counted in {calls} calls");
    assert_eq!(usize::try_from(report.synced).unwrap(), ORDERS);
    assert!(calls <= usize::from(DUE_SHARDS), "{calls} calls for {ORDERS} orders");
    let statistics = ports.statistics(sale.id()).await.unwrap();
    assert_eq!(usize::try_from(statistics[0].1.tickets).unwrap(), 2 * ORDERS);
    let again = reconcile(&ports, &Epoch::new("e3").unwrap(), later).await.unwrap();
    assert!(again.is_quiet(), "{again:?}");
}
