//! One buyer's session: through the gate to an order. What follows is in `behaviour.rs`.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::header::HeaderName;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use engine::domain::basics::ids::{Legs, SeatName};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::Together;
use engine::domain::order::OrderState;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::{AttendeeRule, Tier};

use super::client::{
    Bearer, Call, Client, FUNCTION_THROTTLED, NO_ANSWER, Place, Refused, Reply, THROTTLED,
};
use super::controller::{Controller, Turn};
use super::credentials::Credentials;
use super::ledger::{Entry, Ledger};
use super::options::CallbackRepeats;
use super::pages::Pages;
use super::people::Class;
use super::people::fairness::Visits;
use super::people::plan::Arrival;
use super::people::promises::Promises;
use super::people::windows::Member;
use super::profile::{self, Behaviour, Buyer, HAMMERS, LoadProfile, Way};
use super::rehearsal::tokens::Tokens;
use super::stopwatch::Endpoint;
use super::tally::Tally;
use super::venue::{Left, Venue};
use shared::http::problem::Kind;

/// Most repetitions of one request after a lost answer or a 503 before the buyer gives up. With
/// [`backoff`] that is over a minute: longer than the engine needs to be started again.
pub const REPEATS: u32 = 30;
/// Number of times that a buyer whose seats are gone asks for others with the same admission.
pub const OTHER_SEATS: u32 = 3;
/// Time after which a waiting room says again what is left of its tiers.
const PUBLISHED_EVERY: Duration = Duration::from_secs(1);
/// Time that a person looks at the seats before ordering, in milliseconds.
const CHOOSING_MS: Range<u64> = 300..3000;

/// Everything that the sessions of a load test share.
#[derive(Debug)]
pub struct LoadTest {
    /// The way to the gateway.
    pub client: Client,
    /// The payment provider, if it can be reached.
    pub provider: Option<Client>,
    /// The pages of providers, if people pay there.
    pub pages: Option<Pages>,
    /// How its provider repeats callbacks that failed.
    pub callback_repeats: CallbackRepeats,
    /// How long an unpaid order waits past its deadline.
    pub grace: Grace,
    pub venues: Vec<Venue>,
    pub weights: Vec<u64>,
    /// Counts of the load test.
    pub tally: Tally,
    /// Ledger of what was promised.
    pub ledger: Ledger,
    /// Credentials of the buyers and of the provider.
    pub credentials: Credentials,
    /// Tokens that a program has printed, in a rehearsal.
    pub tokens: Option<Tokens>,
    /// The shares of the behaviours.
    pub profile: LoadProfile,
    /// The seed of the crowd.
    pub seed: u64,
    /// Who comes, and when; empty in a closed loop.
    pub arrivals: Vec<Arrival>,
    /// What became of whom.
    pub visits: RefCell<Visits>,
    /// Everybody who joined a waiting room.
    pub members: RefCell<Vec<Member>>,
    /// Waits that were promised and had.
    pub promises: RefCell<Promises>,
    /// True if people look at the seats before they ask for an admission.
    pub people_look: bool,
    /// True if people take their time, as in an open loop.
    pub unhurried: bool,
    /// What goes on besides the sessions: those who wait for the end of a payment window.
    pub tasks: Rc<TaskCounter>,
    /// Number of people who wait for a connection to ask for an admission.
    pub waiting: Cell<u64>,
    /// People of a closed loop who have come and gone.
    pub gone: Cell<u64>,
    /// Controller that makes the crowd rest and leave, if there is one.
    pub controller: Option<Arc<Controller>>,
}

/// Counts tasks, so that their end can be waited for.
#[derive(Debug, Default)]
pub struct TaskCounter {
    count: Cell<u64>,
    changed: Notify,
}

impl TaskCounter {
    /// Begins a task; it ends when the guard is dropped.
    #[must_use]
    pub fn begin(self: &Rc<Self>) -> Task {
        self.count.set(self.count.get() + 1);
        Task(Rc::clone(self))
    }

    /// The number of tasks that run.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Wakes whoever waits in [`TaskCounter::changed`].
    pub fn change(&self) {
        self.changed.notify_one();
    }

    /// Waits until a task ends, or [`TaskCounter::change`] is called.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// A task that runs.
#[derive(Debug)]
pub struct Task(Rc<TaskCounter>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        self.0.change();
    }
}

/// The gate's reply to a request for an admission.
#[derive(Debug)]
pub enum GateReply {
    /// The buyer may order.
    Admitted(Admission),
    /// Too many ask: come back later.
    Later(Duration),
    /// Nothing is left but what is held or promised to others: perhaps later.
    Waiting(Duration),
    Refused,
}

/// An admission as the gate gives it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Admission {
    pub token: String,
    /// The number of the order that it admits to.
    pub order: OrderNumber,
}

/// An order as the engine answers with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Acknowledged {
    pub(super) order: OrderNumber,
    pub(super) state: OrderState,
    lines: Vec<AcknowledgedLine>,
    amount_minor: MinorUnits,
    currency: Currency,
    pub(super) pay_by: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct AcknowledgedLine {
    tickets: Vec<AcknowledgedTicket>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct AcknowledgedTicket {
    seat: SeatName,
}

impl Acknowledged {
    pub(super) fn amount(&self) -> Money {
        Money { amount_minor: self.amount_minor, currency: self.currency }
    }

    /// Number of its tickets.
    pub(super) fn tickets(&self) -> u16 {
        let tickets = self.lines.iter().map(|line| line.tickets.len()).sum::<usize>();
        u16::try_from(tickets).unwrap_or(u16::MAX)
    }
}

/// Next step of a buyer without an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Asks for other seats with the same admission, which a refusal does not burn.
    OtherSeats,
    Leave,
}

/// Time that a buyer waits before asking again, longer each time.
#[must_use]
pub fn backoff(attempt: u32, retry_after: Option<Duration>) -> Duration {
    retry_after.unwrap_or(Duration::from_millis(200 << attempt.min(4)))
}

/// Time to wait before the same request is sent again; `None` if it is not.
fn wait_after(endpoint: Endpoint, reply: &Reply, attempt: u32) -> Option<Duration> {
    // Whoever was let in is not sent away because the slot of the sale has enough requests in this second.
    let is_slot_busy = |refused: &Refused| {
        endpoint == Endpoint::Reserve && refused.kind == Kind::TooManyRequests.slug()
    };
    let wait = match reply {
        Reply::Lost(_) => backoff(attempt, None),
        Reply::Problem(refused) if is_passing(&refused.kind) || is_slot_busy(refused) => {
            backoff(attempt, refused.retry_after)
        }
        // The payment has a place, in which the same request starts it.
        Reply::Problem(refused) if refused.kind == Kind::PaymentWaits.slug() => {
            refused.retry_after.unwrap_or(Duration::from_secs(1))
        }
        Reply::Ok(_) | Reply::Problem(_) => return None,
    };
    (attempt < REPEATS).then_some(wait)
}

/// The kinds of problem that say: the same request again, later.
pub(super) fn is_passing(kind: &str) -> bool {
    matches!(
        kind,
        "unavailable" | "outcome-unknown" | "not-loaded" | THROTTLED | FUNCTION_THROTTLED
    )
}

/// What an answer is called by which a request is repeated.
pub(super) fn repeated_for(reply: &Reply) -> Cow<'static, str> {
    match reply {
        Reply::Problem(refused) => refused.kind.clone(),
        Reply::Ok(_) | Reply::Lost(_) => Cow::Borrowed(NO_ANSWER),
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

/// A token whose signature does not fit: one character of it is another one.
fn forged(token: &str) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let other = if signature.starts_with('A') { 'B' } else { 'A' };
    let rest: String = signature.chars().skip(1).collect();
    format!("{signed}.{other}{rest}")
}

impl LoadTest {
    /// Buyer number `index`.
    #[must_use]
    pub fn buyer(&self, index: u64) -> Buyer {
        let buyer = profile::buyer(self.profile, self.seed, index, &self.weights);
        let arrival = usize::try_from(index).ok().and_then(|index| self.arrivals.get(index));
        buyer.of_class(arrival.map_or(Class::Person, |arrival| arrival.class))
    }

    /// Repeats a request until it has an answer that is not "come back later".
    pub(super) async fn persist(&self, call: &Call, due: Instant, place: Option<Place>) -> Reply {
        let mut attempt = 0;
        let mut reply = self.client.send_due(call, due, place).await;
        loop {
            let Some(wait) = wait_after(call.endpoint, &reply, attempt) else { return reply };
            attempt += 1;
            self.tally.repeat(repeated_for(&reply));
            reply = self.client.send_due(call, self.later(wait).await, None).await;
        }
    }

    /// Waits until something may be changed, where anybody has a say in that.
    pub(super) async fn turn(&self) -> Option<Turn<'_>> {
        match &self.controller {
            Some(controller) => Some(controller.turn().await),
            None => None,
        }
    }

    /// Waits, and says for when the waiting was meant to end.
    pub(super) async fn later(&self, wait: Duration) -> Instant {
        let due = Instant::now() + wait;
        tokio::time::sleep_until(due.into()).await;
        self.client.stopwatch().took_up(due, Instant::now());
        due
    }

    /// Waits as long as a person takes for something; nobody does in a closed loop.
    pub(super) async fn think(&self, ms: Range<u64>, random: &mut StdRng) -> Instant {
        if self.unhurried {
            self.later(Duration::from_millis(random.random_range(ms))).await
        } else {
            Instant::now()
        }
    }

    /// A request that cannot even be made is our own fault.
    pub(super) fn made<T>(&self, made: Result<T, impl std::fmt::Display>) -> Option<T> {
        made.inspect_err(|error| self.tally.anomaly(format!("no request: {error}"))).ok()
    }

    /// The authorization of a buyer of the crowd.
    pub(super) fn bearer_of(&self, buyer: &Buyer) -> Option<Bearer> {
        match &self.tokens {
            None => self.bearer(&buyer.user, buyer.class()),
            Some(tokens) => {
                let none = || format!("there is no token for buyer {}", buyer.index);
                let bearer = self.made(tokens.of(buyer.index).ok_or_else(none))?;
                Some(bearer.clone().of_class(buyer.class()))
            }
        }
    }

    pub(super) fn bearer(&self, user: &str, class: Class) -> Option<Bearer> {
        let bearer = self.made(self.credentials.buyer(user, Timestamp::now()))?;
        Some(bearer.of_class(class))
    }

    /// One buyer of a closed loop comes, asks until the gate says yes or no, and leaves with an order
    /// or without.
    pub async fn run_session(self: &Rc<Self>, buyer: Buyer) {
        self.tally.arrived(buyer.class());
        self.tally.came(buyer.behaviour);
        for attempt in 0..=REPEATS {
            match self.ask(&buyer, None, attempt == 0, Instant::now(), None).await {
                GateReply::Admitted(admission) => return self.order_with(buyer, admission).await,
                GateReply::Later(wait) if attempt < REPEATS => tokio::time::sleep(wait).await,
                GateReply::Later(_) | GateReply::Waiting(_) | GateReply::Refused => return,
            }
        }
    }

    /// A buyer asks to be admitted, with the claim to a place where the sale has a waiting room: for the `first`
    /// time in the manner of the buyer's behaviour.
    pub async fn ask(
        &self,
        buyer: &Buyer,
        claim: Option<&Value>,
        first: bool,
        due: Instant,
        place: Option<Place>,
    ) -> GateReply {
        let venue = &self.venues[buyer.sale];
        let tickets = buyer.tickets.min(venue.sale.file().limit_per_buyer);
        let body = match claim {
            None => format!("{{\"tickets\":{tickets}}}"),
            Some(place) => json!({ "tickets": tickets, "place": place }).to_string(),
        };
        let call = self.made(Call::post(Endpoint::Admission, &venue.admissions, body));
        let Some(call) = call else { return GateReply::Refused };
        if buyer.behaviour == Behaviour::ForgeIdentity {
            let impostor = self.made(self.credentials.impostor(&buyer.user, Timestamp::now()));
            let Some(impostor) = impostor else { return GateReply::Refused };
            let impostor = impostor.of_class(buyer.class());
            let reply = self.persist(&call.by(&impostor), due, place).await;
            self.tally.shown(buyer.behaviour, is_refused(&reply, 401, "not-authenticated"));
            return GateReply::Refused;
        }
        let Some(bearer) = self.bearer_of(buyer) else { return GateReply::Refused };
        let call = call.by(&bearer);
        if first && buyer.behaviour == Behaviour::Hammer {
            return self.hammer(&call, venue, due, place).await;
        }
        let mut reply = self.persist(&call, due, place).await;
        if let Some(answered) = self.answered(buyer, &call, &reply).await {
            reply = self.persist(&answered, Instant::now(), None).await;
        }
        self.gate_reply(buyer.class(), reply)
    }

    /// What the gate's answer means; a refusal is counted.
    pub(super) fn gate_reply(&self, class: Class, reply: Reply) -> GateReply {
        if let Some(admission) = reply.read() {
            self.tally.admitted(class);
            return GateReply::Admitted(admission);
        }
        self.refused(Endpoint::Admission, &reply);
        match &reply {
            Reply::Problem(Refused { kind, retry_after: Some(wait), .. }) => match &**kind {
                // A gate may know of a turn up to a second later than the room document.
                "too-many-requests" | "place-not-due" => GateReply::Later(*wait),
                "waiting" => GateReply::Waiting(*wait),
                _ => GateReply::Refused,
            },
            Reply::Ok(_) | Reply::Problem(_) | Reply::Lost(_) => GateReply::Refused,
        }
    }

    /// A bot asks many times at once. While the gate's lock holds it may be admitted once: two
    /// admissions that were certainly given within the lock's time are one too many.
    async fn hammer(
        &self,
        call: &Call,
        venue: &Venue,
        due: Instant,
        place: Option<Place>,
    ) -> GateReply {
        let lock = Duration::from_millis(venue.sale.file().gate.user_lock_ms.into());
        let mut place = place;
        let asks = (0..HAMMERS).map(|_| {
            let place = place.take();
            async move {
                let reply = self.client.send_due(call, due, place).await;
                (reply, Instant::now())
            }
        });
        let began = Instant::now();
        let replies = join_all(asks).await;
        let mut admitted = Vec::new();
        let mut otherwise = GateReply::Refused;
        for (reply, at) in replies {
            match self.gate_reply(Class::Hammer, reply) {
                GateReply::Admitted(admission) => admitted.push((at, admission)),
                later @ (GateReply::Later(_) | GateReply::Waiting(_)) => otherwise = later,
                GateReply::Refused => {}
            }
        }
        // What was answered so soon after the first ask was sent, was given within the lock.
        let within_lock = admitted.iter().filter(|(at, _)| *at - began < lock).count();
        let Some((_, admission)) = admitted.into_iter().next() else { return otherwise };
        let held_off = match within_lock {
            0 | 1 => Ok(()),
            many => Err(format!("{many} admissions within {} ms", lock.as_millis())),
        };
        self.tally.shown(Behaviour::Hammer, held_off);
        GateReply::Admitted(admission)
    }

    /// Counts a refusal; anything that is not a refusal is an anomaly.
    pub(super) fn refused(&self, endpoint: Endpoint, reply: &Reply) {
        let endpoint = endpoint.name();
        match reply {
            Reply::Problem(refused) => {
                self.tally.refuse(refused.kind.clone());
                let is_refusal = matches!(refused.status.as_u16(), 403 | 409 | 410 | 429);
                if !is_refusal && !is_passing(&refused.kind) {
                    self.tally.anomaly(format!("{endpoint}: {reply}"));
                }
            }
            Reply::Lost(why) => {
                self.tally.refuse(NO_ANSWER);
                self.tally.anomaly(format!("{endpoint}: no answer in the end: {why}"));
            }
            Reply::Ok(_) => self.tally.anomaly(format!("{endpoint}: not understood: {reply}")),
        }
    }

    /// A buyer who was admitted orders, and does what the buyer's behaviour says.
    pub async fn order_with(self: &Rc<Self>, buyer: Buyer, admission: Admission) {
        let mut random = StdRng::seed_from_u64(buyer.seed);
        let venue = &self.venues[buyer.sale];
        let legs = venue.some_journey(&mut random);
        let Some(bearer) = self.bearer_of(&buyer) else { return };
        let tickets = buyer.tickets.min(venue.sale.file().limit_per_buyer);
        let mut way = buyer.way;
        self.visits.borrow_mut().of(buyer.index).admitted = true;
        for attempt in 0..=OTHER_SEATS {
            let mut due = match buyer.class().is_bot() {
                // What is left in a room is published once a second: earlier it is no other.
                true if attempt > 0 && venue.has_room() => self.later(PUBLISHED_EVERY).await,
                true => Instant::now(),
                false => self.think(CHOOSING_MS, &mut random).await,
            };
            if venue.has_room() {
                // What it says is remembered; without an answer, what it said before.
                let _document = venue.room(&self.client).await;
            }
            let lines = self.lines(venue, &buyer, way, legs, tickets, &mut random).await;
            let Some(lines) = lines else {
                self.tally.admitted_to_nothing.one();
                return self.tally.refuse("nothing-to-choose");
            };
            let body = |token: &str| json!({ "admission": token, "lines": lines }).to_string();
            let call = |token: &str| {
                let made = Call::post(Endpoint::Reserve, &venue.orders, body(token));
                Some(self.made(made)?.by(&bearer))
            };
            let Some(order) = call(&admission.token) else { return };
            if attempt == 0 && buyer.behaviour == Behaviour::ForgeAdmission {
                let Some(forged) = call(&forged(&admission.token)) else { return };
                let reply = self.persist(&forged, due, None).await;
                self.tally.shown(buyer.behaviour, is_refused(&reply, 403, "not-admitted"));
                due = Instant::now();
            }
            if attempt == 0 && buyer.class() == Class::Sharer {
                due = self.share_the_admission(&buyer, &order, due).await;
            }
            match self.order(buyer.behaviour, &order, &admission, due).await {
                Ok(order) => {
                    self.visits.borrow_mut().of(buyer.index).orders += 1;
                    return self.conclude(buyer, bearer, order, random).await;
                }
                Err(Next::OtherSeats) => way = Way::Best,
                Err(Next::Leave) => return,
            }
        }
        // Every attempt was refused for want of seats.
        self.tally.admitted_to_nothing.one();
    }

    /// Another account orders with the admission of a sharer: it must be refused. Says when the sharer goes on.
    async fn share_the_admission(&self, buyer: &Buyer, order: &Call, due: Instant) -> Instant {
        let friend = self.bearer(&format!("{}-friend", buyer.user), buyer.class());
        let Some(friend) = friend else { return due };
        let reply = self.persist(&order.clone().by(&friend), due, None).await;
        if let Err(other) = is_refused(&reply, 403, "not-admitted") {
            self.tally.anomaly(format!("the admission of {} was shared: {other}", buyer.user));
        }
        Instant::now()
    }

    /// What is left on a journey; an answer that does not say so is counted as what it is.
    pub(super) async fn left(
        &self,
        venue: &Venue,
        legs: Legs,
        fresh: bool,
    ) -> Option<Rc<HashMap<String, Left>>> {
        let mut attempt = 0;
        loop {
            let reply = match venue.left(&self.client, legs, fresh).await {
                Ok(left) => return Some(left),
                Err(reply) => reply,
            };
            let Some(wait) = wait_after(Endpoint::Query, &reply, attempt) else {
                self.refused(Endpoint::Query, &reply);
                return None;
            };
            attempt += 1;
            self.tally.repeat(repeated_for(&reply));
            self.later(wait).await;
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
        let tickets = venue.fitting(tier, tickets);
        let line = |tier: &Tier, choice: Value, people: Range<u16>| {
            line(venue, &buyer.user, tier, legs, choice, people)
        };
        let best =
            |count: u16| json!({ "best": { "count": count, "together": Together::Preferred } });
        let seats = match way {
            Way::Seats if !tier.layout.is_general_admission() => {
                let left = self.left(venue, legs, false).await?;
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
        // An order of a sale that keeps its tiers apart has one tier.
        let others = venue.sale.tiers().iter().filter(|_| !venue.sale.keeps_tiers_apart());
        let other = others
            .into_iter()
            .find(|other| other.tier != tier.tier && other.price_minor(legs).is_some());
        match other {
            Some(other) if way == Way::BestOfTwoTiers && tickets > 1 => Some(vec![
                line(tier, best(tickets - 1), 0..tickets - 1),
                line(other, best(1), tickets - 1..tickets),
            ]),
            Some(_) | None => Some(vec![line(tier, best(tickets), 0..tickets)]),
        }
    }

    /// Asks for the order, in the manner of a behaviour.
    pub(super) async fn order(
        &self,
        behaviour: Behaviour,
        call: &Call,
        admission: &Admission,
        due: Instant,
    ) -> Result<Acknowledged, Next> {
        let reply = match behaviour {
            Behaviour::DoubleSubmit => {
                let twice =
                    tokio::join!(self.persist(call, due, None), self.persist(call, due, None));
                self.must_agree(&twice.0, &twice.1);
                twice.0
            }
            Behaviour::Cut => {
                // Whether it was heard is for the repeat to find out.
                let cut = self.client.cut(call).await.is_ok();
                let reply = self.persist(call, due, None).await;
                if let Some(order) = reply.read::<Acknowledged>().filter(|_| cut) {
                    let same = order.order == admission.order;
                    let other = || format!("order {}, not {}", order.order, admission.order);
                    self.tally.shown(behaviour, same.then_some(()).ok_or_else(other));
                }
                reply
            }
            Behaviour::Pay
            | Behaviour::PayAgain
            | Behaviour::PaySecond
            | Behaviour::PayWrongAmount
            | Behaviour::ForgeCallback
            | Behaviour::PayLate
            | Behaviour::NeverPay
            | Behaviour::Cancel
            | Behaviour::Hammer
            | Behaviour::ForgeAdmission
            | Behaviour::ForgeIdentity => self.persist(call, due, None).await,
        };
        let reply = self.own_order(call, admission, reply).await;
        let Some(order) = reply.read::<Acknowledged>() else {
            self.refused(Endpoint::Reserve, &reply);
            let others = match &reply {
                Reply::Problem(refused) => {
                    matches!(&*refused.kind, "seat-taken" | "sold-out" | "no-adjacent")
                }
                Reply::Ok(_) | Reply::Lost(_) => false,
            };
            if others {
                self.tally.refused_reservations.one();
                return Err(Next::OtherSeats);
            }
            return Err(Next::Leave);
        };
        self.tally.ordered(call.class);
        if order.order != admission.order {
            let (is, named) = (order.order, admission.order);
            self.tally.anomaly(format!("reserve: order {is} for the admission to {named}"));
        }
        self.record(Entry::Acknowledged { order: order.order.to_string() });
        Ok(order)
    }

    /// The order that the refusal of a request names as the buyer's own, as it is now: a request that was
    /// given up may have made it, while an engine stood still. Any other reply stays as it is, and so
    /// does the refusal if the order has ended.
    async fn own_order(&self, call: &Call, admission: &Admission, reply: Reply) -> Reply {
        let Reply::Problem(refused) = &reply else { return reply };
        if refused.order() != Some(admission.order) {
            return reply;
        }
        let look = self.made(Call::get(&format!("/orders/{}", admission.order)));
        let Some(look) = look else { return reply };
        let look = Call { credential: call.credential.clone(), ..look };
        let shown = self.persist(&look, Instant::now(), None).await;
        let is_good =
            |order: &Acknowledged| matches!(order.state, OrderState::Pending | OrderState::Paid);
        if shown.read::<Acknowledged>().as_ref().is_some_and(is_good) { shown } else { reply }
    }

    /// Two identical requests at once must not make two orders, nor one order with other seats. One
    /// of them may be refused: seats may come back between the two.
    fn must_agree(&self, first: &Reply, second: &Reply) {
        let read = |reply: &Reply| reply.read::<Acknowledged>();
        if let (Some(first), Some(second)) = (read(first), read(second)) {
            let same = (first.order, &first.lines) == (second.order, &second.lines);
            let other = || format!("{first:?} and {second:?}");
            self.tally.shown(Behaviour::DoubleSubmit, same.then_some(()).ok_or_else(other));
        }
    }

    pub(super) fn record(&self, entry: Entry) {
        if let Err(error) = self.ledger.write(entry) {
            self.tally.anomaly(format!("the ledger cannot be written: {error}"));
        }
    }

    /// A request in the name of the payment provider, with this signature.
    pub(super) fn callback(
        &self,
        endpoint: Endpoint,
        path: &str,
        body: String,
        signature: Result<http::HeaderValue, String>,
    ) -> Option<Call> {
        let call = self.made(Call::post(endpoint, path, body))?;
        let header = HeaderName::from_bytes(local::payment::SIGNATURE_HEADER.as_bytes());
        Some(Call { credential: Some((self.made(header)?, self.made(signature)?)), ..call })
    }
}

/// Whether a reply is this refusal; else what it is.
pub(super) fn is_refused(reply: &Reply, status: u16, kind: &str) -> Result<(), String> {
    match reply {
        Reply::Problem(refused) if refused.status == status && refused.kind == kind => Ok(()),
        Reply::Ok(_) | Reply::Problem(_) | Reply::Lost(_) => Err(reply.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_token_differs_in_its_signature_only() {
        for (token, expected) in [("a.b.Abc", "a.b.Bbc"), ("a.b.xyz", "a.b.Ayz")] {
            assert_eq!(forged(token), expected);
        }
    }
}
