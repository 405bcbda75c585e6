//! Wallets by the flows themselves, on models: buyers fill their wallets at a provider, pay two orders at once from
//! one, give back what has filled it while it is spent, have their banks take that money back, and exchange what it has
//! paid, while operators refund, orders run out and everybody may die anywhere. However it goes, no money is made or lost, no
//! wallet is below nothing but for what lost disputes have taken, and at rest a wallet with such a debt has no unused ticket
//! left, and the accounts are the provider's and the wallets'. Without the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{DisputeId, ProviderId, SaleId, UserId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::order_refund::{AskedBy, RefundKey, RefundNumber};
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Capture, Order, OrderState, PaymentKey};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Mark;
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::Sale;
use engine::flows::dispute::{self, record_dispute};
use engine::flows::wallet;
use engine::ports::StoreError;
use model_stores::{Caller, Stores, accounts_at_rest, wallets_as_told};
use serde_json::json;
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::people::{
    self, Walk, Wish, buyer, capture_of, deadline, failed, operator, payer, paying, publish, walk,
    worker,
};
use sim::{Client, Flow, SeededRng, each_seed, finish};

const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
const RUNS: u64 = 10_000;
/// Runs in which the absence of the guard must be found.
const CONTROL_RUNS: u64 = 20_000;
const STEPS: u32 = 200;
const WINDOW_SECONDS: i64 = 300;
/// The buyers; most is about the first.
const USERS: [&str; 2] = ["7", "8"];

fn fills() -> SaleId {
    SaleId::new("fills").unwrap()
}

fn takes() -> SaleId {
    SaleId::new("takes").unwrap()
}

/// The sale that fills wallets, and one that is paid from them.
fn sales() -> [Sale; 2] {
    let sale = |file| Sale::new(serde_json::from_value(file).unwrap()).unwrap();
    let fills = json!({
        "sale": fills(), "title": "F", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 100, "pay_window_seconds": WINDOW_SECONDS,
        "merchant": {"merchant": "wallet"},
        "tiers": [{"tier": "t", "name": "T", "price_minor": 500, "general_admission": 90}]
    });
    let takes = json!({
        "sale": takes(), "title": "T", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 100, "pay_window_seconds": WINDOW_SECONDS, "wallet": true,
        "merchant": {"merchant": "opera", "commission_basis_points": 700},
        "exchanges": {"until": "2098-01-01T00:00:00Z", "fee_minor": 50},
        "tiers": [
            {"tier": "t", "name": "Hall", "price_minor": 400, "general_admission": 90},
            {"tier": "box", "name": "Box", "price_minor": 700, "general_admission": 90},
        ]
    });
    [sale(fills), sale(takes)]
}

fn from_wallet(client: &Client, order: &Order) -> Flow {
    let (client, number, user) = (client.clone(), order.number, order.user.clone());
    Box::pin(async move {
        let at = client.now();
        match wallet::pay(&Caller(client), &user, number, at).await {
            Ok(_) => "paid from the wallet",
            Err(wallet::Refusal::Short(_)) => "too little",
            Err(wallet::Refusal::Store(error)) => failed(&error),
            Err(_) => "not paid from the wallet",
        }
    })
}

/// The stores with both sales.
fn on_sale(client: &Client) {
    for sale in sales() {
        publish(client, sale);
    }
}

/// The first buyer has filled a wallet.
fn filled(client: &Client, mint: &Mint) {
    let user = UserId::new(USERS[0]).unwrap();
    let number = mint.mint(START, &user);
    let wish = Wish { number, user, sale: fills(), tier: "t", count: 2, exchange: None };
    assert_eq!(finish(buyer(client, wish)), "ordered");
    let mut environment = client.locked();
    let captures: Vec<Capture> =
        environment.stores.orders.orders.values().map(capture_of).collect();
    for capture in &captures {
        environment.stores.provider.capture(capture.clone());
    }
    drop(environment);
    for capture in captures {
        assert_eq!(finish(payer(client, capture)), "paid at the provider");
    }
}

/// The dispute of a payment that has filled a wallet.
fn dispute_of(payment: &PaymentKey) -> DisputeId {
    DisputeId::new(format!("dp-{}", payment.payment)).unwrap()
}

/// The bank of somebody who has filled a wallet takes that money back, or decides: the dispute.
fn move_dispute(rng: &mut SeededRng, stores: &mut Stores) -> Option<DisputeId> {
    let of_wallets = stores.orders.orders.values().filter(|order| order.tops_up());
    let paid: Vec<PaymentKey> = of_wallets
        .filter(|order| order.state == OrderState::Paid)
        .filter_map(|order| order.payment.clone())
        .collect();
    let key = paid.get(rng.below(paid.len().max(1) as u64) as usize)?;
    let id = dispute_of(key);
    let left = stores.provider.captured[key].amount.amount_minor - stores.provider.back(key);
    match stores.provider.disputes.get_mut(&id) {
        Some(dispute) if dispute.state == DisputeState::Open => {
            dispute.state = if rng.below(4) == 0 { DisputeState::Won } else { DisputeState::Lost };
        }
        Some(dispute) if rng.below(4) == 0 => {
            let is_won = dispute.state == DisputeState::Won;
            dispute.state = if is_won { DisputeState::Lost } else { DisputeState::Won };
        }
        Some(_) => {}
        None if left > MinorUnits::ZERO => {
            let Capture { order, amount, .. } = stores.provider.captured[key].clone();
            let (payment, state) = (key.clone(), DisputeState::Open);
            let amount = Money { amount_minor: left, ..amount };
            let report =
                DisputeReport { id: id.clone(), payment, order, amount, state, mark: Mark::Ours };
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
        let (now, provider) = (client.now(), ProviderId::new("stripe").unwrap());
        match record_dispute(&Caller(client), &provider, &dispute, now).await {
            Ok(()) => "dispute recorded",
            Err(dispute::Refusal::Store(StoreError::Contract(_))) => people::BROKEN,
            Err(_) => "dispute not recorded",
        }
    })
}

/// A ticket that is good, of an order that the wallet of somebody with a debt has paid.
fn unused_of_debtor(stores: &Stores) -> Option<String> {
    let mut paid = stores.orders.orders.values().filter(|order| {
        let worth = || {
            let key = order.payment.as_ref()?;
            Some(stores.orders.payment(order.number, key)?.left().amount_minor)
        };
        order.state == OrderState::Paid
            && order.is_paid_from_wallet()
            && worth().is_some_and(|left| left > MinorUnits::ZERO)
            && order.has_live_tickets()
    });
    let has_debt =
        |order: &Order| stores.orders.wallet(&order.user, order.total.currency).left() < 0;
    paid.find(|order| has_debt(order)).map(|order| format!("H2: {order:?} of a wallet with a debt"))
}

/// Nothing goes wrong any more: disputes are decided, orders end, refunds are sent back, facts are settled.
fn come_to_rest(client: &Client, outcomes: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    client.locked().fault = None;
    let disputes: Vec<DisputeId> = {
        let disputes = &mut client.locked().stores.provider.disputes;
        for dispute in disputes.values_mut().filter(|one| one.state == DisputeState::Open) {
            dispute.state = DisputeState::Won;
        }
        disputes.keys().cloned().collect()
    };
    client.locked().stores.provider.refused.clear();
    people::come_to_rest(client, 2 * WINDOW_SECONDS);
    for dispute in disputes.iter().chain(&disputes) {
        finish(reader(client, dispute.clone()));
    }
    people::come_to_rest(client, 2 * WINDOW_SECONDS);
    let environment = client.locked();
    let stores = &environment.stores;
    let is_owed = |order: &Order| {
        let refunds = stores.orders.order_refunds(order.number);
        refunds.iter().any(|refund| refund.refund.state == RefundState::FailedLater)
    };
    if let Some(order) = stores.orders.orders.values().find(|order| {
        order.state == OrderState::Pending
            || order.state == OrderState::RefundDue && !is_owed(order)
    }) {
        return Err(format!("I7: {order:?} is {} at rest", order.state.as_str()));
    }
    if let Some(wrong) = unused_of_debtor(stores) {
        return Err(wrong);
    }
    let is_below = stores.orders.wallets.values().any(|wallet| wallet.balance.left() < 0);
    *outcomes.entry("debt").or_default() += u64::from(is_below);
    let taken = stores.orders.refunds.values().filter(|refund| {
        refund.asked_by == AskedBy::Dispute && refund.payment.provider.is_wallet()
    });
    *outcomes.entry("taken back").or_default() += taken.count() as u64;
    let wrong = wallets_as_told(&environment.stores);
    wrong.or_else(|| accounts_at_rest(&environment.stores)).map_or(Ok(()), Err)
}

/// A refund of a paid order that an operator asks for: all of it, a ticket, or some money.
fn asked_of(order: &Order, rng: &mut SeededRng) -> Option<RefundRequest> {
    let number = RefundNumber::try_from(order.refunds.made + 1).ok()?;
    let is_of_money = rng.below(4) == 0;
    let some = Money { amount_minor: MinorUnits(100), ..order.total };
    let first = order.live_tickets().map(|(line, ticket)| ticket.named(line)).take(1);
    let tickets = match rng.below(2) {
        _ if is_of_money => RefundedTickets::Named(Vec::new()),
        0 => RefundedTickets::All,
        _ => RefundedTickets::Named(first.collect()),
    };
    let amount = is_of_money.then_some(some);
    let asked_by = AskedBy::Operator;
    Some(RefundRequest { number, tickets, amount, asked_by, reason: None })
}

/// A request that somebody begins, on the orders as they are.
fn begun(client: &Client, rng: &mut SeededRng, turn: usize, mint: &Mint) -> Option<Flow> {
    let environment = client.locked();
    let orders: Vec<Order> = environment.stores.orders.orders.values().cloned().collect();
    let refunds: Vec<RefundKey> = environment.stores.orders.refunds.keys().copied().collect();
    let at = environment.now;
    drop(environment);
    let one_of = |rng: &mut SeededRng, is_it: &dyn Fn(&Order) -> bool| {
        let fitting: Vec<&Order> = orders.iter().filter(|order| is_it(order)).collect();
        fitting.get(rng.below(fitting.len().max(1) as u64) as usize).map(|order| (*order).clone())
    };
    let is_pending = |order: &Order| order.state == OrderState::Pending;
    let is_paid = |order: &Order| order.state == OrderState::Paid;
    match turn {
        0 if orders.len() < 16 => {
            let user = UserId::new(USERS[usize::from(rng.below(6) == 0)]).unwrap();
            let (number, exchange) = (mint.mint(at, &user), None);
            let count = 1 + rng.below(2) as u16;
            let tier = if rng.below(3) == 0 { "box" } else { "t" };
            let is_of_wallets = rng.below(2) == 0;
            let (sale, tier, count) =
                if is_of_wallets { (fills(), "t", count) } else { (takes(), tier, 1) };
            Some(buyer(client, Wish { number, user, sale, tier, count, exchange }))
        }
        1 if orders.len() < 16 => {
            let order = one_of(rng, &|order| is_paid(order) && !order.tops_up())?;
            let tickets =
                order.live_tickets().map(|(line, ticket)| ticket.named(line)).take(1).collect();
            let tier = if rng.below(2) == 0 { "box" } else { "t" };
            let exchange = Some(ExchangeRequest { order: order.number, tickets });
            let (number, user) = (mint.mint(at, &order.user), order.user);
            Some(buyer(client, Wish { number, user, sale: takes(), tier, count: 1, exchange }))
        }
        // Somebody pays at the provider, or the provider tells of it again.
        2 => {
            let is_of_wallets = rng.below(8) != 0;
            let order = one_of(rng, &|order| order.tops_up() == is_of_wallets)?;
            if order.is_covered() {
                return None;
            }
            paying(client, &order)
        }
        3 | 4 => {
            let is_any = rng.below(6) == 0;
            let order = one_of(rng, &|order| is_any || is_pending(order) && !order.tops_up())?;
            Some(from_wallet(client, &order))
        }
        5 => {
            let order = one_of(rng, &is_paid)?;
            let request = asked_of(&order, rng)?;
            Some(operator(client, order.number, request))
        }
        6 => refunds
            .get(rng.below(refunds.len().max(1) as u64) as usize)
            .map(|key| worker(client, *key)),
        7 if rng.below(4) == 0 => {
            let order = one_of(rng, &is_pending)?;
            Some(deadline(client, &order))
        }
        8 if rng.below(3) == 0 => {
            let dispute = move_dispute(rng, &mut client.locked().stores)?;
            Some(reader(client, dispute))
        }
        _ => None,
    }
}

/// One run. The outcomes, counted.
fn run(seed: u64, outcomes: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    const TURNS: usize = 9;
    let mut rng = SeededRng::new(seed);
    let (client, mint) = (Client::new(START, Stores::default()), Mint::new(0));
    on_sale(&client);
    if rng.below(3) != 0 {
        filled(&client, &mint);
    }
    let crowd = Walk { steps: STEPS, turns: TURNS, pause_seconds: 40 };
    let begun = |rng: &mut SeededRng, turn: usize| begun(&client, rng, turn, &mint);
    walk(
        &client,
        &mut rng,
        crowd,
        begun,
        |stores| wallets_as_told(stores).map_or(Ok(()), Err),
        outcomes,
    )?;
    come_to_rest(&client, outcomes)
}

#[test]
fn no_money_is_made_or_lost_and_no_wallet_is_below_nothing() {
    let outcomes = each_seed(RUNS, run);
    for outcome in [
        "ordered",
        "paid at the provider",
        "sent back whole",
        "paid from the wallet",
        "too little",
        "not paid from the wallet",
        "exchanged at once",
        "not exchanged",
        "refunded",
        "not refunded",
        "sent back",
        "over",
        "failed",
        "dispute recorded",
        "debt",
        "taken back",
    ] {
        assert!(outcomes.get(outcome).is_some_and(|times| *times > 0), "{outcome} never came");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_wallets_is_found() {
    let guards = Guard::OF_WALLETS.into_iter().chain([Guard::RefundsSeen]);
    each_absence("wallets", guards, CONTROL_RUNS, run);
}
