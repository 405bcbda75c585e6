//! Points by the flows themselves, on models: buyers pay, operators refund, facts are settled, and what orders give is
//! written by workers that get their messages twice, late, in any order and side by side, and that may die anywhere.
//! However it goes, each buyer has what the orders have given at any time, and at rest each order has given what its
//! facts say. Without each of the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::order_refund::{AskedBy, RefundKey, RefundNumber};
use engine::domain::order::{Order, OrderState};
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::Sale;
use engine::flows::award::{Awarded, award};
use engine::flows::sync::sync;
use model_stores::{Caller, Message, Stores, points_as_given, points_at_rest};
use serde_json::json;
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::people::{
    self, Walk, Wish, buyer, deadline, failed, operator, paying, publish, walk, worker,
};
use sim::{Client, Flow, SeededRng, each_seed, finish};

const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
const RUNS: u64 = 5_000;
/// Runs in which the absence of a guard must be found.
const CONTROL_RUNS: u64 = 10_000;
const STEPS: u32 = 480;
const TURNS: usize = 10;
const WINDOW_SECONDS: i64 = 300;

fn sale() -> Sale {
    let file = json!({
        "sale": "s", "title": "S", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 100, "pay_window_seconds": WINDOW_SECONDS,
        "points": {"per_minor": 100, "points": 3, "growth": 1},
        "exchanges": {"until": "2098-01-01T00:00:00Z"},
        "tiers": [
            {"tier": "hall", "name": "Hall", "price_minor": 550, "general_admission": 90},
            {"tier": "box", "name": "Box", "price_minor": 900, "general_admission": 90},
        ]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// The facts of an order are settled, which asks for what it gives.
fn settler(client: &Client, order: OrderNumber) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        let at = client.now();
        let settled = sync(&Caller(client), &[order], at).await;
        settled.map_or_else(|error| failed(&error), |_| "settled")
    })
}

/// What an order gives is written.
fn awarder(client: &Client, order: OrderNumber) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        match award(&Caller(client), order).await {
            Ok(Awarded::Written) => "given",
            Ok(Awarded::Nothing) => "given already",
            Err(error) => failed(&error),
        }
    })
}

/// The orders of which the queue says that they give something, each as often as it says it.
fn asked_for(stores: &Stores) -> Vec<OrderNumber> {
    let sent = stores.queues.waiting.keys();
    let order = |message: &Message| {
        if let Message::Points(order) = message { Some(*order) } else { None }
    };
    sent.filter_map(|sent| order(&sent.message)).collect()
}

/// Nothing goes wrong any more, and the queue is emptied: what it has is handed out as often as it was sent.
fn come_to_rest(client: &Client) -> Result<(), String> {
    people::come_to_rest(client, 2 * WINDOW_SECONDS);
    let asked = asked_for(&client.locked().stores);
    for order in asked {
        finish(awarder(client, order));
    }
    let stores = &client.locked().stores;
    let wrong = points_as_given(stores).or_else(|| points_at_rest(stores));
    wrong.map_or(Ok(()), Err)
}

/// A refund of a paid order that an operator asks for: all of it, a ticket, or some money.
fn asked_of(order: &Order, rng: &mut SeededRng) -> Option<RefundRequest> {
    let number = RefundNumber::try_from(order.refunds.made + 1).ok()?;
    let first = order.live_tickets().map(|(line, ticket)| ticket.named(line)).take(1);
    let (tickets, amount) = match rng.below(4) {
        0 => (RefundedTickets::All, None),
        1 => (RefundedTickets::Named(first.collect()), None),
        _ => {
            let some = Money { amount_minor: MinorUnits(70), ..order.total };
            (RefundedTickets::Named(Vec::new()), Some(some))
        }
    };
    let asked_by = AskedBy::Operator;
    Some(RefundRequest { number, tickets, amount, asked_by, reason: None })
}

/// A request that somebody begins, on the orders as they are.
fn begun(client: &Client, rng: &mut SeededRng, turn: usize, mint: &Mint) -> Option<Flow> {
    let environment = client.locked();
    let orders: Vec<Order> = environment.stores.orders.orders.values().cloned().collect();
    let refunds: Vec<RefundKey> = environment.stores.orders.refunds.keys().copied().collect();
    let asked = asked_for(&environment.stores);
    let at = environment.now;
    drop(environment);
    let order =
        (!orders.is_empty()).then(|| orders[rng.below(orders.len() as u64) as usize].clone());
    let sale = SaleId::new("s").unwrap();
    match turn {
        // Not so many that none is left for an exchange.
        0 if orders.len() < 4 => {
            let user = UserId::new(["7", "8"][rng.below(2) as usize]).unwrap();
            let (number, tier) = (mint.mint(at, &user), ["hall", "box"][rng.below(2) as usize]);
            let count = 1 + rng.below(2) as u16;
            Some(buyer(client, Wish { number, user, sale, tier, count, exchange: None }))
        }
        1 if orders.len() < 6 => {
            let order = order.filter(|order| order.state == OrderState::Paid)?;
            let tickets =
                order.live_tickets().map(|(line, ticket)| ticket.named(line)).take(1).collect();
            let exchange = Some(ExchangeRequest { order: order.number, tickets });
            let (number, user) = (mint.mint(at, &order.user), order.user);
            let tier = ["hall", "box"][rng.below(2) as usize];
            Some(buyer(client, Wish { number, user, sale, tier, count: 1, exchange }))
        }
        2 => {
            let order = order.filter(|order| !order.is_covered())?;
            paying(client, &order)
        }
        3 => {
            let order = order.filter(|order| order.state == OrderState::Paid)?;
            let request = asked_of(&order, rng)?;
            Some(operator(client, order.number, request))
        }
        4 => refunds
            .get(rng.below(refunds.len().max(1) as u64) as usize)
            .map(|key| worker(client, *key)),
        5 if rng.below(4) == 0 => Some(deadline(client, &order?)),
        6 => Some(settler(client, order?.number)),
        7..=9 => {
            asked.get(rng.below(asked.len().max(1) as u64) as usize).map(|it| awarder(client, *it))
        }
        _ => None,
    }
}

/// One run. The outcomes, counted.
fn run(seed: u64, outcomes: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let (client, mint) = (Client::new(START, Stores::default()), Mint::new(0));
    publish(&client, sale());
    let crowd = Walk { steps: STEPS, turns: TURNS, pause_seconds: 40 };
    let begun = |rng: &mut SeededRng, turn: usize| begun(&client, rng, turn, &mint);
    walk(
        &client,
        &mut rng,
        crowd,
        begun,
        |stores| points_as_given(stores).map_or(Ok(()), Err),
        outcomes,
    )?;
    come_to_rest(&client)
}

#[test]
fn each_order_gives_what_its_facts_say_once() {
    let outcomes = each_seed(RUNS, run);
    for outcome in [
        "ordered",
        "exchanged at once",
        "paid at the provider",
        "refunded",
        "settled",
        "given",
        "given already",
        "over",
        "failed",
    ] {
        assert!(outcomes.contains_key(outcome), "{outcome} never came");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_points_is_found() {
    each_absence("points", Guard::OF_POINTS, CONTROL_RUNS, run);
}
