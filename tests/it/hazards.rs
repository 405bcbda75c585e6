//! Tests of hazards (`docs/hazards.md`) that belong to no other subject: flows on the model stores.

use std::sync::{Mutex, PoisonError};

use crate::flows::ended::ended;
use engine::domain::basics::guard::{Guard, without};
use engine::domain::basics::ids::{Epoch, Legs, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::requested::RequestedLine;
use engine::domain::sale::Sale;
use engine::flows::admit::{self, admit};
use engine::flows::publish::publish;
use engine::flows::reserve::{self, Reservation, reserve};
use engine::ports::{Published, Stored};
use futures_util::FutureExt as _;
use model_stores::{Call, Caller, Driver, Reply, Stores};

const NOW: Timestamp = Timestamp::from_ms(1_795_000_000_000);

/// The stores, which answer at once and never fail.
struct Calm(Mutex<Stores>);

impl Driver for Calm {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).apply(NOW, &call)
    }
}

/// A sale of four standing places through one shard of a gate that admits to all of them.
async fn four_places() -> (Caller<Calm>, Published) {
    let file = serde_json::json!({
        "sale": "four", "title": "Four", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2040-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 600,
        "gate": { "shards": 1, "budget_percent": 100 },
        "tiers": [{ "tier": "all", "name": "All", "price_minor": 1000, "general_admission": 4 }],
    });
    let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
    let ports = Caller(Calm(Mutex::new(Stores::default())));
    let published = publish(&ports, &sale, &Epoch::new("e1").unwrap(), NOW).await.unwrap();
    (ports, published)
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

async fn order(
    ports: &Caller<Calm>,
    published: &Published,
    buyer: &str,
    number: OrderNumber,
) -> Result<reserve::Reserved, reserve::Refusal> {
    let line = Line {
        tier: TierId::new("all").unwrap(),
        legs: Legs::ONE,
        choice: Choice::Best { count: 2, together: Together::Preferred },
    };
    let lines = vec![RequestedLine { line, price_minor: MinorUnits(1000), attendees: Vec::new() }];
    let reservation = Reservation {
        published: published.clone(),
        number,
        user: user(buyer),
        lines,
        exchange: None,
    };
    reserve(ports, &reservation, NOW).await
}

/// No registry of processes keeps two of them from giving out one number: the order's own write does.
#[tokio::test]
async fn a_number_given_out_twice_is_one_buyers_and_costs_the_other_nothing() {
    let (ports, published) = four_places().await;
    // Both have the gene 7, as they must to be given one number.
    let number = Mint::new(1).mint(NOW, &user("7"));
    assert_eq!(number, Mint::new(1).mint(NOW, &user("1031")));
    let first = order(&ports, &published, "7", number).await.unwrap();
    // Redis forgot, so that nothing but the order itself stands in the way.
    ports.0.0.lock().unwrap().lose_redis();
    publish(&ports, &published.sale, &Epoch::new("e2").unwrap(), NOW).await.unwrap();
    let again = order(&ports, &published, "1031", number).await;
    assert!(matches!(again, Err(reserve::Refusal::NumberClash)), "{again:?}");
    assert_eq!(order(&ports, &published, "7", number).await.unwrap().order, first.order);
    let other = Mint::new(2).mint(NOW, &user("1031"));
    assert_ne!(other, number);
    order(&ports, &published, "1031", other).await.unwrap();
}

#[tokio::test]
async fn the_places_of_those_who_left_are_given_to_the_next() {
    let (ports, published) = four_places().await;
    for buyer in ["a", "b"] {
        admit(&ports, &published, &user(buyer), 2, NOW).await.unwrap();
    }
    // Four were admitted to four places, and none of them has ordered: the next waits for them, but
    // not for ever.
    let promised = admit(&ports, &published, &user("c"), 2, NOW).await;
    assert!(matches!(promised, Err(admit::Refusal::Waiting { retry_ms: 1000 })), "{promised:?}");
    let again = NOW.plus_seconds(3);
    admit(&ports, &published, &user("c"), 2, again).await.unwrap();
    let numbers = ["a", "b"].map(|buyer| Mint::new(1).mint(NOW, &user(buyer)));
    for (buyer, number) in ["a", "b"].into_iter().zip(numbers) {
        order(&ports, &published, buyer, number).await.unwrap();
    }
    // Both have ordered, and somebody asks before the gate looks again.
    admit(&ports, &published, &user("d"), 2, again).await.unwrap();
    let full = admit(&ports, &published, &user("e"), 2, again.plus_seconds(1)).await;
    assert!(matches!(full, Err(admit::Refusal::Waiting { .. })), "{full:?}");
    // Two were held and not paid for: they go to the next, who had been told to wait.
    let late = NOW.plus_seconds(601);
    ended(&ports, &published.sale.inventories()[0], numbers[0], late).await.unwrap();
    admit(&ports, &published, &user("e"), 2, late).await.unwrap();
}

/// Tries this number of names, each beside one who has a ticket, so that no order is ever made. Returns
/// of how many there was an answer.
async fn learned(names: usize) -> usize {
    let (ports, published) = four_places().await;
    let lines = |names: &[&str]| {
        let count = u16::try_from(names.len()).unwrap();
        let choice = Choice::Best { count, together: Together::Preferred };
        let line = Line { tier: TierId::new("all").unwrap(), legs: Legs::ONE, choice };
        let attendees = names.iter().map(|name| model_stores::attendee(name)).collect();
        vec![RequestedLine { line, price_minor: MinorUnits(1000), attendees }]
    };
    let request = async |buyer: &str, lines| {
        let number = Mint::new(1).mint(NOW, &user(buyer));
        let published = published.clone();
        let reservation =
            Reservation { published, number, user: user(buyer), lines, exchange: None };
        reserve(&ports, &reservation, NOW).await
    };
    request("a", lines(&["bait"])).await.unwrap();
    let mut learned = 0;
    for name in 0..names {
        let name = format!("p{name}");
        match request("stranger", lines(&[name.as_str(), "bait"])).await {
            Err(reserve::Refusal::AttendeeTaken(_)) => learned += 1,
            Err(reserve::Refusal::AttendeeLimit { max_named: 12 }) => {}
            other => panic!("{other:?}"),
        }
    }
    learned
}

#[test]
fn a_stranger_learns_of_few_people_and_of_all_without_the_guard() {
    // The model's stores answer at once, so that all of it happens on this thread.
    let all = || learned(1000).now_or_never().unwrap();
    let (with_guard, without_guard) = (all(), without(Guard::AttendeeLimit, all));
    println!("of 1000 people a stranger learns of {with_guard}, without the guard {without_guard}");
    assert_eq!((with_guard, without_guard), (10, 1000));
}
