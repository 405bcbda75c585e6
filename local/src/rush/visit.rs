//! One buyer's visit: admission, order, and what follows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Value, json};

use shared::domain::choice::Together;
use shared::domain::ids::Legs;
use shared::domain::money::{Currency, Money};
use shared::domain::number::OrderNumber;
use shared::domain::sale::{AttendeeRule, Tier};
use shared::domain::time::Timestamp;

use crate::payment::{PROVIDER, SIGNATURE_HEADER, callback_path, captured};

use super::client::{Client, Endpoint, Reply};
use super::credentials::Credentials;
use super::crowd::{Buyer, Conduct, Way};
use super::ledger::{Entry, Ledger};
use super::venue::Venue;

/// How often one request is repeated after a lost answer or a 503 before the buyer gives up. With
/// [`patience`] that is over a minute: longer than the engine needs to be started again.
const REPEATS: u32 = 30;
/// How often a buyer whose seats are gone asks for others with the same admission.
const OTHER_SEATS: u32 = 3;

/// What the crowd counts.
#[derive(Debug, Default)]
pub struct Tally {
    refusals: Mutex<BTreeMap<String, u64>>,
    anomalies: Mutex<Vec<String>>,
    unpaid: Mutex<Vec<Timestamp>>,
    /// Buyers who came.
    pub buyers: AtomicU64,
    /// Orders that were made.
    pub orders: AtomicU64,
    /// Orders that were paid.
    pub paid: AtomicU64,
    /// Tickets that were paid.
    pub tickets: AtomicU64,
    /// Orders that were cancelled.
    pub cancelled: AtomicU64,
    /// Orders that were left unpaid.
    pub forgotten: AtomicU64,
    /// Requests that were repeated because their answer was lost or said to come back.
    pub repeats: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Tally {
    fn refuse(&self, why: &str) {
        *lock(&self.refusals).entry(why.to_owned()).or_default() += 1;
    }

    /// Notes something that must never happen.
    pub fn anomaly(&self, what: String) {
        lock(&self.anomalies).push(what);
    }

    /// Refusals by the problem's type.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        lock(&self.refusals).clone()
    }

    /// Everything that should not have happened.
    #[must_use]
    pub fn anomalies(&self) -> Vec<String> {
        lock(&self.anomalies).clone()
    }

    /// When the last of the unpaid orders runs out.
    #[must_use]
    pub fn last_deadline(&self) -> Option<Timestamp> {
        lock(&self.unpaid).iter().max().copied()
    }
}

/// Everything that a visit needs.
#[derive(Debug)]
pub struct Rush {
    /// The way to the gateway.
    pub client: Client,
    /// The sales.
    pub venues: Vec<Venue>,
    /// What is counted.
    pub tally: Tally,
    /// What was promised.
    pub ledger: Ledger,
    /// How to be a buyer, and the provider.
    pub credentials: Credentials,
}

/// How long a buyer waits before asking again, longer each time.
fn patience(attempt: u32, retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or(Duration::from_millis(200 << attempt.min(4)))
}

/// The kinds of problem that say: the same request again, later.
fn is_passing(kind: &str) -> bool {
    matches!(kind, "unavailable" | "outcome-unknown" | "not-loaded")
}

/// What a buyer without an order does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Asks for other seats with the same admission, which a refusal does not burn.
    OtherSeats,
    /// Leaves.
    Leave,
}

/// An order as the engine acknowledged it.
pub(super) struct Acknowledged {
    order: OrderNumber,
    amount: Money,
    pay_by: Timestamp,
    seats: Vec<String>,
}

impl Acknowledged {
    fn read(body: &Value) -> Option<Self> {
        let lines = body["lines"].as_array()?;
        let tickets =
            lines.iter().flat_map(|line| line["tickets"].as_array().into_iter().flatten());
        Some(Self {
            order: body["order"].as_str()?.parse().ok()?,
            amount: Money {
                amount_minor: body["amount_minor"].as_i64()?,
                currency: Currency::new(body["currency"].as_str()?).ok()?,
            },
            pay_by: body["pay_by"].as_str()?.parse().ok()?,
            seats: tickets
                .map(|ticket| Some(ticket["seat"].as_str()?.to_owned()))
                .collect::<Option<_>>()?,
        })
    }
}

/// One line of a request: a choice in a tier on a journey, for these of the buyer's people.
pub(super) fn line(
    venue: &Venue,
    user: &str,
    tier: &Tier,
    legs: Legs,
    choice: Value,
    people: Range<u16>,
) -> Value {
    let mut line = choice;
    line["tier"] = json!(tier.tier);
    if let Some((from, to)) = venue.sale.stop(legs.from()).zip(venue.sale.stop(legs.to())) {
        line["from"] = json!(from);
        line["to"] = json!(to);
    }
    if venue.sale.file().attendees == AttendeeRule::Required {
        let names: Vec<String> = people.map(|index| format!("{user}-{index}")).collect();
        line["attendees"] = json!(names);
    }
    line
}

impl Rush {
    /// Repeats a request until it has an answer that is not "come back later".
    async fn persist(
        &self,
        endpoint: Endpoint,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut attempt = 0;
        loop {
            let body = Some(body.to_owned());
            let reply = self.client.send(endpoint, Method::POST, path, headers, body).await;
            let wait = match &reply {
                Reply::Lost(_) => patience(attempt, None),
                Reply::Problem { kind, retry_after, .. } if is_passing(kind) => {
                    patience(attempt, *retry_after)
                }
                Reply::Ok(_) | Reply::Problem { .. } => return reply,
            };
            if attempt == REPEATS {
                return reply;
            }
            attempt += 1;
            self.tally.repeats.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(wait).await;
        }
    }

    /// One buyer comes, and leaves with an order or without.
    pub async fn visit(&self, buyer: &Buyer) {
        self.tally.buyers.fetch_add(1, Ordering::Relaxed);
        let mut random = StdRng::seed_from_u64(buyer.seed);
        let venue = &self.venues[buyer.sale];
        let legs = venue.some_journey(&mut random);
        let Some(bearer) = self.bearer(&buyer.user) else { return };
        let tickets = buyer.tickets.min(venue.sale.file().limit_per_buyer);
        let Some(admission) = self.admission(venue, &bearer, tickets).await else { return };
        let mut way = buyer.way;
        for _ in 0..=OTHER_SEATS {
            let lines = self.lines(venue, buyer, way, legs, tickets, &mut random).await;
            let Some(lines) = lines else { return self.tally.refuse("nothing-to-choose") };
            let body = json!({ "admission": admission, "lines": lines }).to_string();
            let twice = buyer.conduct == Conduct::DoubleSubmit;
            match self.order(venue, &bearer, &body, twice).await {
                Ok(order) => return self.conclude(buyer, &bearer, order, tickets).await,
                Err(Next::OtherSeats) => way = Way::Best,
                Err(Next::Leave) => return,
            }
        }
    }

    pub(super) fn bearer(&self, user: &str) -> Option<String> {
        let bearer = self.credentials.buyer(user, Timestamp::now());
        bearer.inspect_err(|error| self.tally.anomaly(format!("no token: {error}"))).ok()
    }

    pub(super) async fn admission(
        &self,
        venue: &Venue,
        bearer: &str,
        tickets: u16,
    ) -> Option<String> {
        let path = format!("/sales/{}/admissions", venue.sale.id());
        let headers = [("authorization", bearer)];
        let body = json!({ "tickets": tickets }).to_string();
        for attempt in 0..=REPEATS {
            match self.persist(Endpoint::Admission, &path, &headers, &body).await {
                Reply::Ok(answer) => return answer["token"].as_str().map(str::to_owned),
                Reply::Problem { kind, retry_after, .. } if kind == "too-many-requests" => {
                    tokio::time::sleep(patience(attempt, retry_after)).await;
                }
                other @ (Reply::Problem { .. } | Reply::Lost(_)) => {
                    self.refused(Endpoint::Admission, other);
                    return None;
                }
            }
        }
        self.tally.refuse("too-many-requests");
        None
    }

    /// Counts a refusal; anything that is not a refusal is an anomaly.
    fn refused(&self, endpoint: Endpoint, reply: Reply) {
        match reply {
            Reply::Problem { status, kind, body, .. } => {
                self.tally.refuse(&kind);
                let is_refusal = matches!(status, 403 | 409 | 410 | 429) || is_passing(&kind);
                if !is_refusal {
                    self.tally.anomaly(format!("{}: {status} {body}", endpoint.name()));
                }
            }
            Reply::Lost(why) => {
                self.tally.refuse("no-answer");
                self.tally.anomaly(format!("{}: no answer in the end: {why}", endpoint.name()));
            }
            Reply::Ok(body) => {
                self.tally.anomaly(format!("{}: not understood: {body}", endpoint.name()));
            }
        }
    }

    async fn lines(
        &self,
        venue: &Venue,
        buyer: &Buyer,
        way: Way,
        legs: Legs,
        tickets: u16,
        random: &mut StdRng,
    ) -> Option<Vec<Value>> {
        let tier = venue.some_tier(legs, random)?;
        let line = |tier: &Tier, choice: Value, people: Range<u16>| {
            line(venue, &buyer.user, tier, legs, choice, people)
        };
        let best =
            |count: u16| json!({ "best": { "count": count, "together": Together::Preferred } });
        let seats = match way {
            Way::Seats if !tier.layout.is_general_admission() => {
                let left = venue.left(&self.client, legs, false).await?;
                let left = left.get(tier.tier.as_str())?;
                venue.some_seats(tier, left, tickets, random)
            }
            Way::Seats | Way::Best | Way::BestOfTwoTiers | Way::Pattern => None,
        };
        if let Some(seats) = seats {
            return Some(vec![line(tier, json!({ "seats": seats }), 0..tickets)]);
        }
        if way == Way::Pattern && tickets > 1 {
            let letters: Vec<&String> = tier.layout.columns().iter().flatten().collect();
            if letters.len() > 1 {
                let at = random.random_range(0..letters.len() - 1);
                let place = |index: u16| {
                    let column = letters[at + usize::from(index) % 2];
                    json!({ "column": column, "row": index / 2 })
                };
                let pattern: Vec<Value> = (0..tickets).map(place).collect();
                return Some(vec![line(tier, json!({ "pattern": pattern }), 0..tickets)]);
            }
        }
        let other = venue
            .sale
            .tiers()
            .iter()
            .find(|other| other.tier != tier.tier && other.price_minor(legs).is_some());
        match other {
            Some(other) if way == Way::BestOfTwoTiers && tickets > 1 => Some(vec![
                line(tier, best(tickets - 1), 0..tickets - 1),
                line(other, best(1), tickets - 1..tickets),
            ]),
            Some(_) | None => Some(vec![line(tier, best(tickets), 0..tickets)]),
        }
    }

    /// Asks for the order.
    pub(super) async fn order(
        &self,
        venue: &Venue,
        bearer: &str,
        body: &str,
        twice: bool,
    ) -> Result<Acknowledged, Next> {
        let path = format!("/sales/{}/orders", venue.sale.id());
        let headers = [("authorization", bearer)];
        let once = || self.persist(Endpoint::Reserve, &path, &headers, body);
        let reply = if twice {
            let (first, second) = tokio::join!(once(), once());
            self.must_agree(&first, &second);
            first
        } else {
            once().await
        };
        match reply {
            Reply::Ok(answer) => match Acknowledged::read(&answer) {
                Some(order) => {
                    self.tally.orders.fetch_add(1, Ordering::Relaxed);
                    self.note(Entry::Acknowledged { order: order.order.to_string() });
                    Ok(order)
                }
                None => {
                    self.refused(Endpoint::Reserve, Reply::Ok(answer));
                    Err(Next::Leave)
                }
            },
            Reply::Problem { ref kind, .. } => {
                let others = matches!(kind.as_str(), "seat-taken" | "sold-out" | "no-adjacent");
                self.refused(Endpoint::Reserve, reply);
                Err(if others { Next::OtherSeats } else { Next::Leave })
            }
            Reply::Lost(_) => {
                self.refused(Endpoint::Reserve, reply);
                Err(Next::Leave)
            }
        }
    }

    /// Two identical requests at once must not make two orders, nor one order with other seats.
    fn must_agree(&self, first: &Reply, second: &Reply) {
        let read = |reply: &Reply| match reply {
            Reply::Ok(body) => Acknowledged::read(body),
            Reply::Problem { .. } | Reply::Lost(_) => None,
        };
        if let (Some(first), Some(second)) = (read(first), read(second))
            && (first.order != second.order || first.seats != second.seats)
        {
            let (first, second) = (first.seats, second.seats);
            self.tally.anomaly(format!("submitted twice, answered {first:?} and {second:?}"));
        }
    }

    fn note(&self, entry: Entry) {
        if let Err(error) = self.ledger.write(entry) {
            self.tally.anomaly(format!("the ledger cannot be written: {error}"));
        }
    }

    async fn conclude(&self, buyer: &Buyer, bearer: &str, order: Acknowledged, tickets: u16) {
        match buyer.conduct {
            Conduct::Pay | Conduct::DoubleSubmit => self.pay(&order, tickets, 1).await,
            Conduct::PayTwice => self.pay(&order, tickets, 2).await,
            Conduct::Forget => {
                self.tally.forgotten.fetch_add(1, Ordering::Relaxed);
                lock(&self.tally.unpaid).push(order.pay_by);
            }
            Conduct::Cancel => {
                let path = format!("/orders/{}/cancel", order.order);
                let headers = [("authorization", bearer)];
                match self.persist(Endpoint::Cancel, &path, &headers, "").await {
                    Reply::Ok(_) => {
                        self.tally.cancelled.fetch_add(1, Ordering::Relaxed);
                    }
                    other @ (Reply::Problem { .. } | Reply::Lost(_)) => {
                        self.refused(Endpoint::Cancel, other)
                    }
                }
            }
        }
    }

    /// The provider captures the money, and calls until it is heard, `calls` times over.
    pub(super) async fn pay(&self, order: &Acknowledged, tickets: u16, calls: u32) {
        let payment = format!("pi_{}", order.order);
        self.note(Entry::Captured {
            order: order.order.to_string(),
            provider: PROVIDER.to_owned(),
            payment: payment.clone(),
            amount_minor: order.amount.amount_minor,
            currency: order.amount.currency.to_string(),
        });
        let event = captured(&payment, order.order, order.amount, Timestamp::now()).to_string();
        let path = callback_path();
        for call in 0..calls {
            let signature = self.credentials.signature(event.as_bytes(), Timestamp::now());
            let headers = [(SIGNATURE_HEADER, signature.as_str())];
            match self.persist(Endpoint::PayCallback, &path, &headers, &event).await {
                Reply::Ok(_) if call == 0 => {
                    self.tally.paid.fetch_add(1, Ordering::Relaxed);
                    self.tally.tickets.fetch_add(u64::from(tickets), Ordering::Relaxed);
                }
                Reply::Ok(_) => {}
                other @ (Reply::Problem { .. } | Reply::Lost(_)) => {
                    self.refused(Endpoint::PayCallback, other)
                }
            }
        }
    }
}
