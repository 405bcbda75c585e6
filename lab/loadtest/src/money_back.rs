//! The part of the demo in which money goes back: buyers exchange tickets, an operator refunds single ones, somebody sends
//! money back in Stripe's dashboard, and a small sale is sold out to people who pay at every provider, and then cancelled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use engine::domain::basics::ids::{Epoch, ProviderId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Order, OrderState};
use engine::domain::sale::SaleFile;
use engine::flows::cancel_sale::{Progress, stop, walk};
use engine::ports::{Orders as _, Ports as _};
use fake_payments::PROVIDER;
use local::payment::{SIGNATURE_HEADER, callback_path, sign};
use local::up::Engine;
use ops::refund_pace::{RefundPace, default_per_second};
use reqwest::Method;
use serde::Serialize;
use serde_json::json;
use tokio::time::sleep;

use crate::demo::Error;
use crate::exchanges::exchange;
use crate::ledger::Entry;

/// The sale that is cancelled.
const CLUB: &str = include_str!("../../../sales/demo-club.json");
/// Orders of each provider of which an operator refunds one ticket.
const REFUNDED: u64 = 3;
/// Payments of which somebody sends a part back in the dashboard, and what.
const BY_HAND: u64 = 3;
const HAND_MINOR: MinorUnits = MinorUnits(100);
/// The longest that the money may take. A refund that its provider has refused for want of calls (429) comes again with its
/// message, a minute or more later.
const MOST: Duration = Duration::from_secs(240);

#[derive(Debug, Clone, Default, Serialize)]
pub struct MoneyBack {
    /// Single tickets that an operator refunded, by the provider of their order's payment.
    pub tickets: BTreeMap<ProviderId, u64>,
    /// Tickets that buyers exchanged, by the provider of their order's payment.
    pub exchanged: BTreeMap<ProviderId, u64>,
    /// Orders that were paid from wallets, by the provider at which those were filled.
    pub from_wallets: BTreeMap<ProviderId, u64>,
    /// Orders of the cancelled sale that were refunded, by the provider of their payment.
    pub orders: BTreeMap<ProviderId, u64>,
    /// Tickets of the cancelled sale that were refunded.
    pub cancelled_tickets: u64,
    /// Refunds that somebody made in the dashboard, and those of them that are known here and wait for an operator.
    pub by_hand: u64,
    pub by_hand_known: u64,
    /// Refunds of which the provider has not yet said that the money is back.
    pub waiting: u64,
    /// Points that buyers of the play have.
    pub points: u64,
    /// Points that its orders give and that they have not.
    pub points_waiting: u64,
    /// What cannot be refunded, in words.
    pub left: Vec<String>,
    /// Time from the first refund until the last money was back, in seconds.
    pub seconds: f64,
}

impl MoneyBack {
    /// True if something went back through each of these providers, and nothing is left.
    #[must_use]
    pub fn is_good(&self, providers: &BTreeSet<ProviderId>) -> bool {
        let of_each = |back: &BTreeMap<ProviderId, u64>| back.keys().eq(providers);
        let all = [&self.tickets, &self.exchanged, &self.from_wallets, &self.orders];
        let is_all = self.waiting == 0
            && self.by_hand == self.by_hand_known
            && self.points_waiting == 0
            && self.points > 0;
        is_all && self.left.is_empty() && all.into_iter().all(of_each)
    }

    /// The whole of it in words.
    #[must_use]
    pub fn text(&self) -> String {
        let by = |back: &BTreeMap<ProviderId, u64>| {
            let each: Vec<String> =
                back.iter().map(|(provider, count)| format!("{provider} {count}")).collect();
            each.join(", ")
        };
        format!(
            "exchanged tickets: {}; orders paid from wallets that were filled at: {}; refunds: single tickets by an operator: {}; in the dashboard: {}, of which {} wait for an operator; demo-club cancelled, orders refunded: {} \
             ({} tickets); {} wait for their money, {} are left ({:.0} s); points given for the play: {}, {} are missing",
            by(&self.exchanged),
            by(&self.from_wallets),
            by(&self.tickets),
            self.by_hand,
            self.by_hand_known,
            by(&self.orders),
            self.cancelled_tickets,
            self.waiting,
            self.left.len(),
            self.seconds,
            self.points,
            self.points_waiting
        )
    }
}

/// The small sale.
///
/// # Errors
/// Fails if the repository's file is none.
pub fn club() -> Result<SaleFile, Error> {
    Ok(serde_json::from_str(CLUB)?)
}

/// Refunds single tickets of orders that the ledger has as paid, has others exchanged and paid from wallets, cancels the club, and waits for
/// the money.
///
/// # Errors
/// Fails if the engine does not do what it is asked for.
pub async fn give_back(engine: &Engine, ledger: &Path) -> Result<MoneyBack, Error> {
    let begun = Instant::now();
    let club = club()?.sale;
    let mut back = MoneyBack::default();
    let orders = orders(engine, &acknowledged(ledger)?).await?;
    let (of_club, others): (Vec<Order>, Vec<Order>) =
        orders.into_iter().partition(|order| order.sale == club);
    let of_club: Vec<OrderNumber> = of_club.iter().map(|order| order.number).collect();
    let mut refunded = of_club.clone();
    let client = reqwest::Client::new();
    for (order, provider) in others.iter().filter_map(paid_order) {
        let count = back.tickets.entry(provider.clone()).or_default();
        if *count < REFUNDED {
            refund_one_ticket(engine, &client, order).await?;
            refunded.push(order.number);
            *count += 1;
        }
    }
    let stripe = others.iter().filter_map(paid_order).filter(|(_, of)| of.as_str() == PROVIDER);
    let mut by_hand = Vec::new();
    for (order, _) in stripe.filter(|(order, _)| !refunded.contains(&order.number)) {
        if back.by_hand < BY_HAND && send_by_hand(engine, &client, order).await? {
            by_hand.push(order.number);
            back.by_hand += 1;
        }
    }
    let providers: Vec<ProviderId> = back.tickets.keys().cloned().collect();
    let exchanged = exchange(engine, &providers).await?;
    back.exchanged = exchanged.tickets;
    back.from_wallets = exchanged.from_wallets;
    refunded.extend(exchanged.orders);
    let progress = cancel(engine, &club).await?;
    back.cancelled_tickets = progress.tickets;
    back.left = progress.left.into_iter().map(|(order, why)| format!("{order}: {why}")).collect();
    loop {
        back.waiting = waiting(engine, &refunded).await?;
        (back.points, back.points_waiting) = points(engine, &exchanged.buyers).await?;
        back.by_hand_known = known(engine, &by_hand).await?;
        let is_known = back.by_hand_known == back.by_hand;
        if is_known && back.waiting + back.points_waiting == 0 || begun.elapsed() > MOST {
            break;
        }
        sleep(Duration::from_millis(500)).await;
    }
    for order in self::orders(engine, &of_club).await? {
        if let (OrderState::Refunded, Some(payment)) = (order.state, order.payment) {
            *back.orders.entry(payment.provider).or_default() += 1;
        }
    }
    back.seconds = begun.elapsed().as_secs_f64();
    Ok(back)
}

/// The points that buyers have, and how many more their orders give, or how many less.
async fn points(engine: &Engine, buyers: &[UserId]) -> Result<(u64, u64), Error> {
    let orders = engine.app().ports.orders();
    let (mut points, mut waiting) = (0, 0);
    for buyer in buyers {
        let has = orders.points(buyer).await?.has.points;
        let page = orders.of_user(buyer, None, 100).await?;
        let gives = page.orders.iter().filter_map(Order::award);
        let gives: u64 = gives.map(|award| award.given.points).sum();
        points += has;
        waiting += gives.abs_diff(has);
    }
    Ok((points, waiting))
}

/// The orders that the crowd was told of.
fn acknowledged(ledger: &Path) -> Result<Vec<OrderNumber>, Error> {
    let mut numbers = BTreeSet::new();
    for line in std::fs::read_to_string(ledger)?.lines() {
        if let Entry::Acknowledged { order } = serde_json::from_str(line)? {
            numbers.extend(order.parse::<OrderNumber>().ok());
        }
    }
    Ok(numbers.into_iter().collect())
}

/// Orders as they are now.
async fn orders(engine: &Engine, numbers: &[OrderNumber]) -> Result<Vec<Order>, Error> {
    let mut found = Vec::new();
    for some in numbers.chunks(100) {
        found.extend(engine.app().ports.orders().get_many(some).await?);
    }
    Ok(found)
}

/// A paid order with something to refund, and the provider of its payment.
fn paid_order(order: &Order) -> Option<(&Order, &ProviderId)> {
    let is_paid = order.state == OrderState::Paid
        && order.lines.iter().any(|line| line.price_minor > MinorUnits::ZERO);
    let payment = order.payment.as_ref().filter(|_| is_paid)?;
    Some((order, &payment.provider))
}

/// Refunds the first ticket of an order, through the API.
async fn refund_one_ticket(
    engine: &Engine,
    client: &reqwest::Client,
    order: &Order,
) -> Result<(), Error> {
    let Some((line, ticket)) = order.live_tickets().next() else { return Ok(()) };
    let name = ticket.named(line);
    let body = json!({ "number": 1, "tickets": [name], "reason": "A demo." });
    let url = format!("{}/orders/{}/refunds/operator", engine.url(), order.number);
    let post = client.request(Method::POST, url).bearer_auth(engine.operator_token()?);
    let reply = post.json(&body).send().await?;
    if reply.status().is_success() {
        return Ok(());
    }
    Err(Error::Refused(order.sale.clone(), reply.text().await?))
}

/// Sends some money of an order back in Stripe's dashboard, of which Stripe tells the engine; false if it has none left.
async fn send_by_hand(
    engine: &Engine,
    client: &reqwest::Client,
    order: &Order,
) -> Result<bool, Error> {
    let Some(key) = &order.payment else { return Ok(false) };
    let (payment, now) = (key.payment.as_str(), Timestamp::now());
    if engine.provider().refund_by_hand(payment, HAND_MINOR, now).is_err() {
        return Ok(false);
    }
    let event = json!({
        "id": format!("evt_hand_{payment}"), "object": "event", "type": "refund.created",
        "created": now.ms().div_euclid(1000),
        "data": { "object": { "object": "refund", "payment_intent": payment, "metadata": {} } },
    });
    let body = event.to_string();
    let signature = sign(engine.secrets(), body.as_bytes(), now);
    let post = client.post(format!("{}{}", engine.url(), callback_path()));
    let told = post.header(SIGNATURE_HEADER, signature).body(body).send().await?;
    if told.status().is_success() {
        return Ok(true);
    }
    Err(Error::Refused(order.sale.clone(), told.text().await?))
}

/// Refunds made outside of these orders that are recorded, and wait for an operator.
async fn known(engine: &Engine, orders: &[OrderNumber]) -> Result<u64, Error> {
    let mut known = 0;
    for number in orders {
        let refunds = engine.app().ports.orders().order_refunds(*number).await?;
        let waits = refunds.iter().filter(|one| one.refund.state == RefundState::Outside);
        known += waits.count() as u64;
    }
    Ok(known)
}

/// Cancels a sale of which nobody buys any more.
async fn cancel(
    engine: &Engine,
    sale: &engine::domain::basics::ids::SaleId,
) -> Result<Progress, Error> {
    let ports = &engine.app().ports;
    let refused = |why: String| Error::Refused(sale.clone(), why);
    let epoch = Epoch::new("cancelled-by-the-demo").map_err(|error| refused(error.to_string()))?;
    let now = Timestamp::now();
    let published =
        stop(ports, sale, &epoch, now).await.map_err(|error| refused(error.to_string()))?;
    let turns = RefundPace::per_second(default_per_second());
    let pace = async || turns.turn().await;
    let pause = async || sleep(Duration::from_millis(200)).await;
    Ok(walk(ports, &published.sale, now, Timestamp::now, pace, pause, |_| ()).await?)
}

/// Refunds of these orders whose money is not back.
async fn waiting(engine: &Engine, orders: &[OrderNumber]) -> Result<u64, Error> {
    let mut waiting = 0;
    for number in orders {
        let refunds = engine.app().ports.orders().order_refunds(*number).await?;
        let is_open = |refund: &&engine::domain::order::order_refund::OrderRefund| {
            refund.refund.state != RefundState::Refunded
        };
        waiting += refunds.iter().filter(is_open).count() as u64;
    }
    Ok(waiting)
}
