//! Exchanges by the flows themselves, on models: a buyer gives tickets for others, dearer and cheaper, twice at once,
//! while operators refund, orders run out, refunds are sent, banks take payments back, and everybody may die anywhere.
//! However it goes, no ticket is given twice, none comes from nothing, no more goes back of a capture than it was, and at
//! rest the accounts are the provider's, and no ticket lives by money that a bank has taken. Without each of the guards one
//! of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::{BTreeMap, BTreeSet};

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{DisputeId, SaleId, UserId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::order_refund::{AskedBy, OrderRefund, RefundKey, RefundNumber};
use engine::domain::order::{Capture, Order, OrderState, PaymentKey};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Mark;
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::Sale;
use engine::flows::dispute::{self, record_dispute};
use engine::ports::StoreError;
use model_stores::{Caller, Stores, accounts_at_rest};
use serde_json::json;
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::people::{
    self, Walk, Wish, buyer, capture_of, deadline, operator, payer, paying, publish, walk, worker,
};
use sim::{Client, Flow, SeededRng, each_seed, finish};

const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
const RUNS: u64 = 10_000;
/// Runs in which the absence of a guard must be found.
const CONTROL_RUNS: u64 = 20_000;
const STEPS: u32 = 160;
const TIERS: [&str; 3] = ["hall", "box", "balcony"];
const WINDOW_SECONDS: i64 = 300;

fn sale_id() -> SaleId {
    SaleId::new("s").unwrap()
}

fn sale() -> Sale {
    let file = json!({
        "sale": sale_id(), "title": "S", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 2, "pay_window_seconds": WINDOW_SECONDS,
        "merchant": {"merchant": "opera", "commission_basis_points": 700},
        "exchanges": {"until": "2098-01-01T00:00:00Z", "fee_minor": 50},
        "tiers": [
            {"tier": "hall", "name": "Hall", "price_minor": 500, "general_admission": 9},
            {"tier": "box", "name": "Box", "price_minor": 800, "general_admission": 9},
            {"tier": "balcony", "name": "Balcony", "price_minor": 200, "general_admission": 9},
        ]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

fn user() -> UserId {
    UserId::new("7").unwrap()
}

/// Tickets of a tier for those of another order.
fn wish(
    number: OrderNumber,
    (tier, count): (&'static str, u16),
    exchange: Option<ExchangeRequest>,
) -> Wish {
    Wish { number, user: user(), sale: sale_id(), tier, count, exchange }
}

/// The stores with the sale, and an order of two tickets of the hall that is paid.
fn paid(client: &Client, mint: &Mint) {
    publish(client, sale());
    let number = mint.mint(START, &user());
    assert_eq!(finish(buyer(client, wish(number, ("hall", 2), None))), "ordered");
    let capture = capture_of(&client.locked().stores.orders.get(number).unwrap());
    client.locked().stores.provider.capture(capture.clone());
    assert_eq!(finish(payer(client, capture)), "paid at the provider");
}

/// The tickets of an order that are its buyer's.
fn live(order: &Order) -> Vec<engine::domain::order::TicketName> {
    let lines = order.lines.iter().flat_map(|line| {
        let live = line.tickets.iter().filter(|ticket| ticket.refund.is_none());
        live.map(|ticket| ticket.named(line)).collect::<Vec<_>>()
    });
    lines.collect()
}

/// What must hold at any time.
fn check(stores: &Stores) -> Result<(), String> {
    let orders = &stores.orders;
    let mut given: BTreeSet<OrderNumber> = BTreeSet::new();
    let mut of_capture: BTreeMap<PaymentKey, MinorUnits> = BTreeMap::new();
    let worth = |refund: &OrderRefund| refund.worth().amount_minor;
    for ((number, key), record) in &orders.payments {
        let refunds = orders.order_refunds(*number);
        let refunds: Vec<&OrderRefund> = refunds.iter().filter(|it| it.payment == *key).collect();
        let back: MinorUnits = refunds.iter().map(|refund| worth(refund)).sum();
        if back > record.capture.amount.amount_minor {
            return Err(format!("I11: {back} goes back of {record:?}"));
        }
        let sent: MinorUnits = refunds.iter().map(|refund| refund.amount.amount_minor).sum();
        *of_capture.entry(record.at_provider().capture.key).or_default() += sent;
        for refund in refunds.iter().filter(|refund| refund.asked_by == AskedBy::Exchange) {
            let new = refund.exchanged_for().ok_or("I11: an exchange for nothing")?;
            let new = orders.get(new).ok_or("I11: an exchange for an order that is not there")?;
            let is_its = new.exchange.as_ref().is_some_and(|exchange| {
                exchange.order == *number
                    && exchange.tickets == refund.tickets
                    && exchange.value_minor == worth(refund)
            });
            let is_moved = new.payment.as_ref().is_some_and(|key| new.is_moved(key));
            let kept = if is_moved { new.total.amount_minor } else { MinorUnits::ZERO };
            if !is_its || !given.insert(new.number) || refund.kept_minor != kept {
                return Err(format!("I11: {refund:?} is not for {new:?}"));
            }
        }
    }
    for (key, sent) in of_capture {
        let captured =
            stores.provider.captured.get(&key).map(|capture| capture.amount.amount_minor);
        if captured.is_none_or(|captured| captured < sent) {
            return Err(format!("I11: {sent} shall go back of {key:?}, {captured:?} was captured"));
        }
    }
    for (number, order) in &orders.orders {
        let is_paid = order.exchange.is_some()
            && match &order.payment {
                None => false,
                Some(key) => orders.payment(*number, key).is_some_and(|it| it.refund.is_none()),
            };
        if is_paid != given.contains(number) {
            return Err(format!("I11: {order:?} is paid ({is_paid}), and its tickets did not go"));
        }
    }
    // One ticket for one: what lives and what was given back for money are the two that were bought.
    let paid = orders.orders.values().filter(|order| order.state == OrderState::Paid);
    let alive: usize = paid.map(|order| live(order).len()).sum();
    let for_money = orders.refunds.values().filter(|refund| refund.asked_by != AskedBy::Exchange);
    let back: usize = for_money.map(|refund| refund.tickets.len()).sum();
    if alive + back != 2 {
        return Err(format!("{alive} tickets live and {back} are given back, of two"));
    }
    Ok(())
}

/// Nothing goes wrong any more: orders end, refunds are sent back, facts are settled.
fn come_to_rest(client: &Client) -> Result<(), String> {
    client.locked().fault = None;
    let disputes: Vec<DisputeId> = {
        let disputes = &mut client.locked().stores.provider.disputes;
        for dispute in disputes.values_mut().filter(|one| one.state == DisputeState::Open) {
            dispute.state = DisputeState::Won;
        }
        disputes.keys().cloned().collect()
    };
    // Nobody asks for anything any more, and what was refused may be asked for again.
    client.locked().stores.provider.refused.clear();
    // A dispute of a payment that is decided meanwhile is heard of after that.
    for _ in 0..2 {
        for dispute in &disputes {
            finish(reader(client, dispute.clone()));
        }
        people::come_to_rest(client, 2 * WINDOW_SECONDS);
    }
    let environment = client.locked();
    check(&environment.stores)?;
    check_money(&environment.stores)?;
    let orders = &environment.stores.orders.orders;
    if let Some(order) = orders.values().find(|order| order.state == OrderState::Pending) {
        return Err(format!("I7: {order:?} is pending at rest"));
    }
    accounts_at_rest(&environment.stores).map_or(Ok(()), Err)
}

/// The dispute of a payment.
fn dispute_of(payment: &PaymentKey) -> DisputeId {
    DisputeId::new(format!("dp-{}", payment.payment)).unwrap()
}

/// A bank takes all of a payment back that is left, or decides.
fn move_dispute(rng: &mut SeededRng, stores: &mut Stores) -> Option<DisputeId> {
    let captures: Vec<Capture> = stores.provider.captured.values().cloned().collect();
    let capture = &captures[rng.below(captures.len() as u64) as usize];
    let id = dispute_of(&capture.key);
    let left = capture.amount.amount_minor - stores.provider.back(&capture.key);
    match stores.provider.disputes.get_mut(&id) {
        Some(dispute) if dispute.state == DisputeState::Open => {
            dispute.state = if rng.below(3) == 0 { DisputeState::Won } else { DisputeState::Lost };
        }
        Some(_) => {}
        None if left > MinorUnits::ZERO && !stores.provider.refunded.contains_key(&capture.key) => {
            let report = DisputeReport {
                id: id.clone(),
                payment: capture.key.clone(),
                order: capture.order,
                amount: Money { amount_minor: left, ..capture.amount },
                state: DisputeState::Open,
                mark: Mark::Ours,
            };
            stores.provider.disputes.insert(id.clone(), report);
        }
        None => return None,
    }
    Some(id)
}

/// Somebody who has heard of a dispute.
fn reader(client: &Client, dispute: DisputeId) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        let now = client.now();
        let provider = engine::domain::basics::ids::ProviderId::new("stripe").unwrap();
        match record_dispute(&Caller(client), &provider, &dispute, now).await {
            Ok(()) => "recorded",
            Err(dispute::Refusal::Store(StoreError::Contract(_))) => people::BROKEN,
            Err(_) => "not recorded",
        }
    })
}

/// No ticket lives by money that is with the provider no more.
fn check_money(stores: &Stores) -> Result<(), String> {
    let mut of_capture: BTreeMap<PaymentKey, MinorUnits> = BTreeMap::new();
    for ((number, key), record) in &stores.orders.payments {
        let order = stores.orders.get(*number);
        let lives = order
            .filter(|order| order.payment.as_ref() == Some(key) && order.state == OrderState::Paid);
        if lives.is_some_and(|order| !live(&order).is_empty()) {
            let root = record.at_provider().capture.key;
            *of_capture.entry(root).or_default() += record.left().amount_minor;
        }
    }
    for (key, has) in of_capture {
        let Some(capture) = stores.provider.captured.get(&key) else { continue };
        let there = capture.amount.amount_minor - stores.provider.back(&key);
        if has > there {
            return Err(format!("tickets live by {has} of {key:?}, of which {there} is there"));
        }
    }
    Ok(())
}

/// A request that somebody begins, on the orders as they are.
fn begun(client: &Client, rng: &mut SeededRng, turn: usize, mint: &Mint) -> Option<Flow> {
    let environment = client.locked();
    let orders: Vec<Order> = environment.stores.orders.orders.values().cloned().collect();
    let (at, refunds) = (environment.now, &environment.stores.orders.refunds);
    let order = orders.get(rng.below(orders.len() as u64) as usize)?.clone();
    match turn {
        0 | 1 if order.state == OrderState::Paid && orders.len() < 12 => {
            let (tickets, mut given) = (live(&order), Vec::new());
            let count = 1 + rng.below(2) as usize;
            given.extend(tickets.into_iter().take(count));
            let count = u16::try_from(given.len()).ok().filter(|count| *count > 0)?;
            let tier = TIERS[rng.below(3) as usize];
            let exchange = Some(ExchangeRequest { order: order.number, tickets: given });
            drop(environment);
            Some(buyer(client, wish(mint.mint(at, &user()), (tier, count), exchange)))
        }
        // Somebody pays, or the provider tells of it again.
        2 if order.exchange.is_some() && !order.is_covered() => {
            drop(environment);
            paying(client, &order)
        }
        3 if order.state == OrderState::Paid && rng.below(4) == 0 => {
            let number = RefundNumber::try_from(order.refunds.made + 1).ok()?;
            let tickets = match rng.below(3) {
                0 => RefundedTickets::All,
                1 => RefundedTickets::Named(live(&order).into_iter().take(1).collect()),
                _ => RefundedTickets::Named(Vec::new()),
            };
            let is_of_money = tickets == RefundedTickets::Named(Vec::new());
            let some = Money { amount_minor: MinorUnits(100), ..order.total };
            let amount = is_of_money.then_some(some);
            let asked_by = AskedBy::Operator;
            let request = RefundRequest { number, tickets, amount, asked_by, reason: None };
            drop(environment);
            Some(operator(client, order.number, request))
        }
        4 => {
            let keys: Vec<RefundKey> = refunds.keys().copied().collect();
            drop(environment);
            let key = keys.get(rng.below(keys.len().max(1) as u64) as usize)?;
            Some(worker(client, *key))
        }
        6 if rng.below(12) == 0 => {
            drop(environment);
            let dispute = move_dispute(rng, &mut client.locked().stores)?;
            Some(reader(client, dispute))
        }
        5 if order.state == OrderState::Pending && rng.below(3) == 0 => {
            drop(environment);
            Some(deadline(client, &order))
        }
        _ => None,
    }
}

/// One run. The outcomes, counted.
fn run(seed: u64, outcomes: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let (client, mint) = (Client::new(START, Stores::default()), Mint::new(0));
    paid(&client, &mint);
    let crowd = Walk { steps: STEPS, turns: 7, pause_seconds: 70 };
    let begun = |rng: &mut SeededRng, turn: usize| begun(&client, rng, turn, &mint);
    walk(&client, &mut rng, crowd, begun, check, outcomes)?;
    come_to_rest(&client)
}

#[test]
fn no_ticket_is_given_twice_and_the_books_are_the_providers() {
    let outcomes = each_seed(RUNS, run);
    for outcome in [
        "exchanged at once",
        "ordered",
        "not exchanged",
        "called off",
        "paid at the provider",
        "sent back whole",
        "refunded",
        "not refunded",
        "sent back",
        "over",
        "failed",
        "recorded",
        "not recorded",
    ] {
        assert!(outcomes.contains_key(outcome), "{outcome} never came");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_exchanges_is_found() {
    each_absence(
        "exchanges",
        Guard::OF_EXCHANGES.into_iter().chain([Guard::RefundsSeen, Guard::RefundBound]),
        CONTROL_RUNS,
        run,
    );
}
