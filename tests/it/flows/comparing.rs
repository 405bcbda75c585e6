//! What a comparison reads: every block of claims, and of the orders only those that can differ. On
//! the pure models, so that every seat-leg can be tried.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use engine::domain::basics::ids::{Legs, PaymentId, ProviderId, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{Inventory, Line, SeatLeg};
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, Order, PaymentKey};
use engine::domain::sale::Sale;
use engine::flows::cancel::cancel;
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::reconcile::dry_run;
use engine::flows::reserve::{Reservation, reserve};
use engine::flows::sync::sync;
use engine::ports::{Catalogue, Freshness, Stored};
use model_stores::{Call, Caller, Driver, Reply, Stores};
use serde_json::json;

use super::environment::{NOW, epoch};

/// A hall of two blocks and a balcony of one, over two legs.
const HALL: u32 = 130;
const BALCONY: u32 = 26;
/// The number of blocks of those seats.
const BLOCKS: usize = 3;
/// Seats of each line of an order.
const HALL_SEATS: u16 = 5;
const BALCONY_SEATS: u16 = 1;

/// Stores that answer at once, and the calls that were made to them.
struct Watched {
    stores: Mutex<Stores>,
    calls: Mutex<Vec<Call>>,
}

impl Driver for Watched {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).apply(NOW, &call)
    }
}

struct Fixture {
    ports: Caller<Watched>,
    sale: Sale,
    mint: Mint,
}

/// What a comparison found, of which kind and order, and which orders it read.
type Compared = (Vec<(&'static str, Option<OrderNumber>)>, BTreeSet<OrderNumber>);

impl Fixture {
    async fn start() -> Self {
        let file = json!({
            "sale": "pair", "title": "Pair", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2040-01-01T00:00:00Z",
            "limit_per_buyer": 6, "pay_window_seconds": 600,
            "stops": [{ "stop": "A", "name": "a" }, { "stop": "B", "name": "b" }, { "stop": "C", "name": "c" }],
            "tiers": [
                { "tier": "hall", "name": "Hall", "price_minor": 500, "general_admission": HALL },
                { "tier": "balcony", "name": "Balcony", "price_minor": 900, "general_admission": BALCONY },
            ],
        });
        let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
        let watched = Watched { stores: Mutex::default(), calls: Mutex::default() };
        let fixture = Self { ports: Caller(watched), sale, mint: Mint::new(3) };
        publish(&fixture.ports, &fixture.sale, &epoch("first"), NOW).await.unwrap();
        fixture
    }

    /// An order for seats of both tiers over both legs, by somebody who has not been here yet.
    async fn buy(&self, user: &str) -> Order {
        let user = UserId::new(user).unwrap();
        let published = self.ports.sale(self.sale.id(), Freshness::Fresh).await.unwrap().unwrap();
        let requested = |tier: &str, price, count| RequestedLine {
            line: Line {
                tier: TierId::new(tier).unwrap(),
                legs: Legs::new(0, 2).unwrap(),
                choice: Choice::Best { count, together: Together::Preferred },
            },
            price_minor: MinorUnits(price),
            attendees: vec![],
        };
        let lines =
            vec![requested("hall", 500, HALL_SEATS), requested("balcony", 900, BALCONY_SEATS)];
        let number = self.mint.mint(NOW, &user);
        let reservation = Reservation { published, number, user, lines, exchange: None };
        reserve(&self.ports, &reservation, NOW).await.unwrap().order
    }

    async fn pay(&self, order: &Order) {
        let key = PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new(format!("pi_{}", order.number)).unwrap(),
        };
        let capture = Capture { key, order: order.number, amount: order.total, attempt: None };
        pay(&self.ports, &capture, NOW).await.unwrap();
        sync(&self.ports, &[order.number], NOW).await.unwrap();
    }

    /// Every seat sold, paid and counted.
    async fn sold_out(&self) -> Vec<Order> {
        let mut orders = Vec::new();
        for buyer in 0..BALCONY {
            let order = self.buy(&format!("buyer-{buyer}")).await;
            self.pay(&order).await;
            orders.push(order);
        }
        orders
    }

    /// Does to Redis what no engine does.
    fn spoil<T>(&self, act: impl FnOnce(&mut Inventory) -> T) -> T {
        act(self.ports.0.stores.lock().unwrap().seats.of(&self.sale.inventories()[0]))
    }

    fn set(&self, bitmap: Bitmap, at: &SeatLeg, bit: bool) {
        self.spoil(|inventory| {
            let grid = inventory.tiers.get_mut(&at.tier).unwrap();
            let legs = match bitmap {
                Bitmap::Taken => &mut grid.taken,
                Bitmap::Sold => &mut grid.sold,
            };
            let byte = &mut legs[at.leg.index()][(at.seat.0 / 8) as usize];
            let mask = 0x80 >> (at.seat.0 % 8);
            *byte = if bit { *byte | mask } else { *byte & !mask };
        });
    }

    async fn compare(&self) -> Compared {
        self.ports.0.calls.lock().unwrap().clear();
        let run = dry_run(&self.ports, NOW).await.unwrap();
        assert!(run.unread.is_empty(), "{run:?}");
        let found = run.found.iter().map(|(discrepancy, _)| {
            let explained = discrepancy.explain();
            (explained.kind, explained.order)
        });
        let calls = self.ports.0.calls.lock().unwrap();
        let blocks = calls.iter().filter(|call| matches!(call, Call::Claims { .. })).count();
        assert_eq!(blocks, BLOCKS, "every block is read, once");
        let read = calls.iter().flat_map(|call| {
            if let Call::ManyOrders { numbers } = call {
                return numbers.clone();
            }
            if let Call::Order { number } = call { vec![*number] } else { vec![] }
        });
        (found.collect(), read.collect())
    }
}

#[derive(Debug, Clone, Copy)]
enum Bitmap {
    Taken,
    Sold,
}

fn of(orders: &[&Order]) -> BTreeSet<OrderNumber> {
    orders.iter().map(|order| order.number).collect()
}

#[tokio::test]
async fn a_sale_that_is_sold_out_and_settled_is_compared_without_reading_an_order() {
    let fixture = Fixture::start().await;
    let orders = fixture.sold_out().await;
    assert_eq!(fixture.compare().await, (vec![], BTreeSet::new()));

    // Whichever seat-leg Redis loses of whichever order, as sold or as taken: that order is read, and
    // no other, and the discrepancy is found.
    for order in &orders {
        let lines = order.held_lines();
        for at in lines.iter().flat_map(|line| line.seat_legs()) {
            for bitmap in [Bitmap::Sold, Bitmap::Taken] {
                fixture.set(bitmap, &at, false);
                let expected = (vec![("not-sold", Some(order.number))], of(&[order]));
                assert_eq!(fixture.compare().await, expected, "{bitmap:?} {at:?}");
                fixture.set(bitmap, &at, true);
            }
        }
    }
    assert_eq!(fixture.compare().await, (vec![], BTreeSet::new()));
}

/// The other states, each among orders that are settled.
#[tokio::test]
async fn an_order_that_holds_or_is_not_paid_is_read_whatever_redis_says_of_its_seats() {
    let fixture = Fixture::start().await;
    let paid = fixture.buy("paid").await;
    let pending = fixture.buy("pending").await;
    let forgotten = fixture.buy("forgotten").await;
    fixture.pay(&paid).await;
    fixture.spoil(|inventory| inventory.holds.remove(&forgotten.number).unwrap());
    let found = vec![("forgotten", Some(forgotten.number))];
    assert_eq!(fixture.compare().await, (found, of(&[&pending, &forgotten])));

    // Settled seats, and a hold that should be gone.
    fixture.spoil(|inventory| inventory.holds.insert(paid.number, paid.hold_record()));
    fixture.spoil(|inventory| inventory.holds.insert(forgotten.number, forgotten.hold_record()));
    let found = vec![("hold-differs", Some(paid.number))];
    assert_eq!(fixture.compare().await, (found, of(&[&paid, &pending, &forgotten])));
    fixture.spoil(|inventory| inventory.holds.remove(&paid.number));

    // Of a pending order that holds, one seat-leg is free.
    let at = pending.held_lines()[1].seat_legs().last().unwrap();
    fixture.set(Bitmap::Taken, &at, false);
    let found = vec![("held-and-free", Some(pending.number))];
    assert_eq!(fixture.compare().await, (found, of(&[&pending, &forgotten])));
    fixture.set(Bitmap::Taken, &at, true);

    // An order that has ended claims nothing; its hold came back with an older Redis, and then only
    // its bits did.
    cancel(&fixture.ports, &pending.user, pending.number, NOW).await.unwrap();
    let lines = pending.held_lines();
    let bits: Vec<SeatLeg> = lines.iter().flat_map(|line| line.seat_legs()).collect();
    bits.iter().for_each(|at| fixture.set(Bitmap::Taken, at, true));
    fixture.spoil(|inventory| inventory.holds.insert(pending.number, pending.hold_record()));
    let found = vec![("hold-differs", Some(pending.number))];
    assert_eq!(fixture.compare().await, (found, of(&[&pending, &forgotten])));
    fixture.spoil(|inventory| inventory.holds.remove(&pending.number));
    let found = vec![("leaked", None), ("leaked", None)];
    assert_eq!(fixture.compare().await, (found, of(&[&forgotten])));
}
