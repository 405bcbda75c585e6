//! The limits that a sale meets, each with the meter of the fake that enforces it, and what met it.

use std::time::Duration;

use engine::domain::admission::call_rate::{
    Ahead, CallRate, TURNS_AHEAD_SECONDS, Take, held_back_ms,
};
use fake_limits::bucket::Bucket;
use fake_limits::lambda::{Account, Begun, Throttle};
use fake_limits::redis::{SLOTS, Slots, ecpu};
use fake_limits::table;
use fake_limits::{Cache, Now};
use serde::{Deserialize, Serialize};
use shared::http::routes::RouteName;
use shared::providers::Operation;
use shared::runtime::functions::Function;

use crate::clock::{Micros, SECOND, seconds};
use crate::deployment::{Deployment, burst};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Requests of the distribution.
    Edge,
    /// Sign-ins of the issuer.
    SignIns,
    /// Requests of the account's HTTP APIs.
    Gateway,
    Places,
    Admissions,
    Orders,
    /// Looks at what is left, and room documents.
    Reads,
    /// Starts of payments, and requests for refunds.
    Starts,
    /// Cancellations, and looks at orders.
    Others,
    Callbacks,
    Concurrency,
    /// Invocations at once of the function that takes callbacks.
    TakeCallback,
    /// New environments of a function.
    Environments,
    /// The slot of a sale.
    Slot,
    /// Write units of a table.
    Writes,
    /// Read units of a table.
    Reading,
    /// Payments that the provider lets start.
    Provider,
    /// Calls that the engine itself makes to start payments; to close and to refund them, where one has no turn.
    Calls,
    Expiries,
}

impl Limit {
    /// Every limit, in the order of a visitor's way.
    pub const ALL: [Self; 19] = [
        Self::Edge,
        Self::SignIns,
        Self::Gateway,
        Self::Places,
        Self::Admissions,
        Self::Orders,
        Self::Reads,
        Self::Starts,
        Self::Others,
        Self::Callbacks,
        Self::Concurrency,
        Self::TakeCallback,
        Self::Environments,
        Self::Slot,
        Self::Writes,
        Self::Reading,
        Self::Provider,
        Self::Calls,
        Self::Expiries,
    ];

    /// Its name for people, its unit, and the setting of a deployment that raises it; none if nothing does.
    #[must_use]
    pub const fn row(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Edge => ("CloudFront, a distribution", "requests/s", Some("edge_rate")),
            Self::SignIns => ("the issuer's sign-ins", "sign-ins/s", Some("sign_ins_per_second")),
            Self::Gateway => ("API Gateway, the account", "requests/s", Some("gateway_rate")),
            Self::Places => ("joins (PlaceRate)", "requests/s", Some("place_rate")),
            Self::Admissions => {
                ("admissions (AdmissionRate)", "requests/s", Some("admission_rate"))
            }
            Self::Orders => ("orders (OrderRate)", "requests/s", Some("order_rate")),
            Self::Reads => ("reads (ReadRate)", "requests/s", Some("read_rate")),
            Self::Starts => ("starts, refunds (RareRate)", "requests/s", Some("rare_rate")),
            Self::Others => ("other routes (OtherRate)", "requests/s", Some("other_rate")),
            Self::Callbacks => {
                ("callbacks (CallbackEntryRate)", "requests/s", Some("callback_entry_rate"))
            }
            Self::Concurrency => {
                ("Lambda, the account's concurrency", "invocations", Some("concurrent_executions"))
            }
            Self::TakeCallback => (
                "take-callback (TakeCallbackConcurrency)",
                "invocations",
                Some("take_callback_concurrency"),
            ),
            Self::Environments => ("Lambda, new environments of a function", "in 10 s", None),
            Self::Slot => ("the cache's slot of a sale", "s of work/s", None),
            Self::Writes => {
                ("DynamoDB, writes of a table (WarmWrites)", "units/s", Some("warm_writes"))
            }
            Self::Reading => {
                ("DynamoDB, reads of a table (WarmReads)", "units/s", Some("warm_reads"))
            }
            Self::Provider => {
                ("the payment provider's starts", "payments/s", Some("payments_per_second"))
            }
            Self::Calls => (
                "the engine's own starts (ProviderCallsPerSecond)",
                "calls/s",
                Some("provider_calls_per_second"),
            ),
            Self::Expiries => (
                "expire-orders (ExpireOrdersConcurrency)",
                "invocations",
                Some("expire_orders_concurrency"),
            ),
        }
    }
}

/// What met a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Met {
    /// The most that was asked of it: in a second, or at once.
    pub peak: f64,
    /// What was refused, or had to wait.
    pub refused: f64,
    /// When that happened first, in seconds from the beginning.
    pub first: Option<f64>,
    second: u64,
    sum: f64,
}

impl Met {
    /// Something is asked in this second.
    fn ask(&mut self, count: f64, now: Micros) {
        let second = now / SECOND;
        if second != self.second {
            (self.second, self.sum) = (second, 0.0);
        }
        self.sum += count;
        self.peak = self.peak.max(self.sum);
    }

    /// So much of it is refused.
    fn refuse(&mut self, count: f64, now: Micros) {
        if count > 0.0 {
            self.refused += count;
            self.first.get_or_insert(seconds(now));
        }
    }
}

/// The time as the meters of the fakes take it.
fn now_of(now: Micros) -> Now {
    Duration::from_micros(now)
}

/// A request that waits for its slot for longer than this is counted: there is a queue.
const SLOW: Micros = SECOND / 10;

/// The slots of the sales, each of which is on one.
#[derive(Debug)]
enum Cached {
    /// Servers that do one thing after the other, by the moments at which they have nothing more to do.
    Nodes(Vec<Micros>),
    /// Slots that have so many units a second.
    Serverless(Slots),
}

/// All the meters of a deployment.
#[derive(Debug)]
pub struct Meters {
    unlimited: bool,
    rates: Vec<(Limit, Bucket)>,
    lambda: Account,
    calls: Turns,
    /// Starts that the engine makes for each call of the setting.
    starts_of_a_call: f64,
    closes: Turns,
    refunds: Turns,
    slots: Cached,
    met: Vec<Met>,
    busy: f64,
    taking: f64,
}

/// What a slot is asked for: by how many people at once, each with so much work.
#[derive(Debug, Clone, Copy)]
pub struct SlotWork {
    pub sale: u32,
    pub count: u64,
    /// Time of the server for one of them, in microseconds.
    pub micros: f64,
    /// Bytes that move for one of them.
    pub bytes: u32,
}

/// The time ahead within which a start is a turn.
pub const TURNS_AHEAD: Micros = TURNS_AHEAD_SECONDS.unsigned_abs() * SECOND;

impl Meters {
    /// The meters of a deployment for so many sales, each of which has a slot of a node or of its own; without limits
    /// they count alone.
    #[must_use]
    pub fn new(deployment: &Deployment, sales: u32, unlimited: bool) -> Self {
        let of = |limit: Limit, rate: f64, capacity: f64| {
            (limit, Bucket::full(rate, capacity, Now::ZERO))
        };
        let second = |limit: Limit, rate: f64| of(limit, rate, rate);
        // People come in clumps here: those of a tenth of a second come together.
        let route = |limit: Limit, rate: u32, name: RouteName| {
            of(limit, f64::from(rate), burst(name).max(f64::from(rate) / 10.0))
        };
        let rates = vec![
            second(Limit::Edge, deployment.edge_rate),
            second(Limit::SignIns, deployment.sign_ins_per_second),
            of(Limit::Gateway, deployment.gateway_rate, deployment.gateway_burst),
            route(Limit::Places, deployment.place_rate, RouteName::JoinRoom),
            route(Limit::Admissions, deployment.admission_rate, RouteName::Admit),
            route(Limit::Orders, deployment.order_rate, RouteName::Reserve),
            route(Limit::Reads, deployment.read_rate, RouteName::ShowAvailability),
            route(Limit::Starts, deployment.rare_rate, RouteName::StartPayment),
            route(Limit::Others, deployment.other_rate, RouteName::ShowOrder),
            route(Limit::Callbacks, deployment.callback_entry_rate, RouteName::TakeCallback),
            second(Limit::Provider, f64::from(deployment.payments_per_second)),
            second(Limit::Writes, f64::from(deployment.warm_writes)),
            second(Limit::Reading, f64::from(deployment.warm_reads)),
        ];
        let calls = deployment.provider_calls_per_second.clamp(1, CallRate::MAX_PER_SECOND);
        let setting = CallRate::from_per_second(calls).unwrap_or_default();
        let calls = Operation::StartPayment.rate(setting);
        let starts = if deployment.payments_have_places { Ahead::Places } else { Ahead::Turns };
        let nodes = deployment.cache_shards.min(sales.max(1)) as usize;
        let slots = match deployment.cache {
            Cache::Nodes => Cached::Nodes(vec![0; nodes]),
            Cache::Serverless => Cached::Serverless(Slots::default()),
        };
        let taking = deployment.take_callback_concurrency.min(deployment.concurrent_executions / 2);
        Self {
            unlimited,
            rates,
            lambda: Account::with(
                deployment.concurrent_executions,
                [(Function::TakeCallback.as_str(), taking)],
                Now::ZERO,
            ),
            calls: Turns::new(calls, starts),
            starts_of_a_call: f64::from(calls.per_second()) / f64::from(setting.per_second()),
            closes: Turns::new(Operation::ClosePayment.rate(setting), Ahead::Turns),
            refunds: Turns::new(Operation::Refund.rate(setting), Ahead::Turns),
            slots,
            met: vec![Met::default(); Limit::ALL.len()],
            busy: 0.0,
            taking: 0.0,
        }
    }

    /// What met each limit.
    pub fn met(&self) -> impl Iterator<Item = (Limit, &Met)> {
        Limit::ALL.into_iter().zip(&self.met)
    }

    fn of(&mut self, limit: Limit) -> &mut Met {
        &mut self.met[limit as usize]
    }

    /// How many of so many requests a rate lets through now.
    pub fn pass(&mut self, limit: Limit, count: u64, now: Micros) -> u64 {
        self.of(limit).ask(count as f64, now);
        let unlimited = self.unlimited;
        let Some((_, bucket)) = self.rates.iter_mut().find(|(of, _)| *of == limit) else {
            return count;
        };
        if unlimited {
            return count;
        }
        // As many as the fake lets through one by one: each that finds a whole token.
        let granted = (bucket.available(now_of(now)) as u64).min(count);
        bucket.take(granted as f64, now_of(now));
        self.of(limit).refuse((count - granted) as f64, now);
        granted
    }

    /// How many of so many requests a route and the account let through: the route's share first.
    pub fn route(&mut self, share: Limit, count: u64, now: Micros) -> u64 {
        let passed = self.pass(share, count, now);
        if passed == 0 { 0 } else { self.pass(Limit::Gateway, passed, now) }
    }

    /// Whether a route and the account let somebody through who stands for so many people: all of them, or nobody.
    pub fn route_whole(&mut self, share: Limit, count: u64, now: Micros) -> bool {
        self.units(share, count as f64, now) && self.units(Limit::Gateway, count as f64, now)
    }

    /// Takes units of a table, or turns of a route or of a provider: what finds one is charged what it costs, and what
    /// finds none is refused. True if it was let through.
    pub fn units(&mut self, limit: Limit, units: f64, now: Micros) -> bool {
        if units <= 0.0 {
            return true;
        }
        self.of(limit).ask(units, now);
        let unlimited = self.unlimited;
        let Some((_, bucket)) = self.rates.iter_mut().find(|(of, _)| *of == limit) else {
            return true;
        };
        if unlimited {
            return true;
        }
        let is_there = bucket.has(1.0, now_of(now));
        if is_there {
            bucket.take(units, now_of(now));
        } else {
            self.of(limit).refuse(units, now);
        }
        is_there
    }

    /// Begins invocations of a function: how many begin, and how many of them in an environment that is new.
    pub fn invoke(&mut self, function: Function, count: u64, now: Micros) -> (u64, u64) {
        let asked = u32::try_from(count).unwrap_or(u32::MAX);
        let is_own = function == Function::TakeCallback;
        let (limit, at_once) = if is_own {
            (Limit::TakeCallback, self.taking + count as f64)
        } else {
            (Limit::Concurrency, self.busy + count as f64)
        };
        let met = self.of(limit);
        met.peak = met.peak.max(at_once);
        let begun = if self.unlimited {
            Begun { count: asked, new: 0, refused: None }
        } else {
            self.lambda.begin_many(function.as_str(), asked, now_of(now))
        };
        let refused = f64::from(asked - begun.count);
        match begun.refused {
            Some(Throttle::Growth) => self.of(Limit::Environments).refuse(refused, now),
            Some(_) => self.of(limit).refuse(refused, now),
            None => {}
        }
        if begun.new > 0 {
            self.of(Limit::Environments).ask(f64::from(begun.new), now);
        }
        if is_own {
            self.taking += f64::from(begun.count);
        } else {
            self.busy += f64::from(begun.count);
        }
        (begun.count.into(), begun.new.into())
    }

    /// Ends invocations that had begun.
    pub fn end(&mut self, function: Function, count: u64) {
        if !self.unlimited {
            self.lambda.end_many(function.as_str(), u32::try_from(count).unwrap_or(u32::MAX));
        }
        if function == Function::TakeCallback {
            self.taking -= count as f64;
        } else {
            self.busy -= count as f64;
        }
    }

    /// Work at a sale's slot: the wait for what is before it, and its own time; none if it is refused. Where several
    /// people ask at once, the mean one waits for half of the others.
    pub fn slot(&mut self, work: SlotWork, now: Micros) -> Option<Micros> {
        let SlotWork { sale, count, micros, bytes } = work;
        if micros <= 0.0 {
            return Some(0);
        }
        let (people, units) = (count as f64, ecpu(bytes, micros));
        let (busy, wait) = match &mut self.slots {
            Cached::Nodes(free_at) => {
                let at = sale as usize % free_at.len();
                let begins = free_at[at].max(now);
                free_at[at] = begins + (micros * people) as Micros;
                (
                    micros * people / 1e6,
                    Some(begins - now + (micros * (people + 1.0) / 2.0) as Micros),
                )
            }
            Cached::Serverless(slots) => {
                let slot = (sale % u32::from(SLOTS)) as u16;
                let delay = slots.delay(slot, units * people, now_of(now));
                let delay = delay.map(|delay| u64::try_from(delay.as_micros()).unwrap_or(SECOND));
                (
                    units * people / table::SLOT_ECPU.rate(),
                    delay.map(|delay| delay + micros as Micros),
                )
            }
        };
        let is_late = wait.is_none_or(|wait| wait > SLOW);
        let unlimited = self.unlimited;
        let met = self.of(Limit::Slot);
        met.ask(busy, now);
        if unlimited {
            return Some(micros as Micros);
        }
        if is_late {
            met.refuse(people, now);
        }
        wait
    }

    /// Orders expire, after a wait for those before them; each takes its consumer so long.
    pub fn expire(&mut self, orders: f64, wait: Micros, took: Micros, now: Micros) {
        let met = self.of(Limit::Expiries);
        // Invocations that would be needed at once to do a second's messages in a second.
        met.ask(orders * took as f64 / SECOND as f64, now);
        if wait > SECOND {
            met.refuse(orders, now);
        }
    }

    /// The time until it is the turn of so many starts of payments, by the engine's own limit on its calls; none if
    /// there is no turn soon.
    pub fn turn(&mut self, count: u64, now: Micros) -> Option<Micros> {
        // In calls, as the setting counts them.
        let calls = count as f64 / self.starts_of_a_call;
        self.of(Limit::Calls).ask(calls, now);
        if self.unlimited {
            return Some(0);
        }
        let wait = self.calls.take(count, now);
        // Who has a place waits as well, and is not refused.
        if wait.is_none_or(|wait| wait > TURNS_AHEAD) {
            self.of(Limit::Calls).refuse(calls, now);
        }
        wait
    }

    /// Whether nobody is let in, because the next free start of a payment is too far away.
    #[must_use]
    pub fn is_held_back(&self, now: Micros) -> bool {
        if self.unlimited || self.calls.ahead == Ahead::Turns {
            return false;
        }
        let starts_in_ms = self.calls.next.map_or(0, |next| {
            let now = i64::try_from(now).unwrap_or(next);
            u32::try_from((next - now).max(0) / 1_000).unwrap_or(u32::MAX)
        });
        held_back_ms(Some(starts_in_ms)).is_some()
    }

    /// The time until it is the turn to close so many payments at the provider; none if there is no turn soon.
    pub fn close(&mut self, count: u64, now: Micros) -> Option<Micros> {
        if self.unlimited {
            return Some(0);
        }
        let wait = self.closes.take(count, now);
        if wait.is_none() {
            self.of(Limit::Calls).refuse(count as f64, now);
        }
        wait
    }

    /// The time until it is the turn of so many refunds at the provider; none if there is no turn soon.
    pub fn give_back(&mut self, count: u64, now: Micros) -> Option<Micros> {
        if self.unlimited {
            return Some(0);
        }
        let wait = self.refunds.take(count, now);
        if wait.is_none() {
            self.of(Limit::Calls).refuse(count as f64, now);
        }
        wait
    }

    /// To be called once a second, before the turns of two more are over that the engine gives in advance.
    pub fn pay_off(&mut self, now: Micros) {
        let Ok(at) = i64::try_from(now) else { return };
        for turns in [&mut self.calls, &mut self.closes, &mut self.refunds] {
            turns.pay_off(at);
        }
    }

    /// Whether the provider lets so many payments start: all of them, or none.
    pub fn start(&mut self, count: u64, now: Micros) -> bool {
        self.units(Limit::Provider, count as f64, now)
    }
}

/// The turns of calls to a provider, as the engine gives them.
#[derive(Debug)]
struct Turns {
    rate: CallRate,
    ahead: Ahead,
    next: Option<i64>,
    /// Turns that somebody has had who stands for several people: they are taken as they come, before any other.
    owed: u32,
}

impl Turns {
    fn new(rate: CallRate, ahead: Ahead) -> Self {
        Self { rate, ahead, next: None, owed: 0 }
    }

    /// The time until it is the turn of so many calls; none if there is no turn soon. Who finds one has all of them.
    fn take(&mut self, count: u64, now: Micros) -> Option<Micros> {
        let (at, count) = (i64::try_from(now).ok()?, u32::try_from(count).ok()?);
        self.pay_off(at);
        if self.owed > 0 {
            return None;
        }
        let (calls, first) = self.take_some(count, at)?;
        self.owed = count - calls;
        u64::try_from(first - at).ok()
    }

    /// Takes what is there of what is owed.
    fn pay_off(&mut self, at: i64) {
        if self.owed > 0 {
            self.owed -= self.take_some(self.owed, at).map_or(0, |(calls, _)| calls);
        }
    }

    /// As many calls as there are of so many, and the time of the first.
    fn take_some(&mut self, count: u32, at: i64) -> Option<(u32, i64)> {
        match self.rate.take(self.next, count, self.ahead, at) {
            Take::Calls { calls, first_us, next_us } => {
                self.next = Some(next_us);
                Some((calls, first_us))
            }
            Take::UsedUp { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payments that start in so many seconds where a thousand times a second somebody asks, who stands for so many
    /// people.
    fn started(people: u64, seconds: u64) -> u64 {
        let deployment = Deployment { payments_have_places: false, ..Deployment::default() };
        let mut meters = Meters::new(&deployment, 1, false);
        let mut started = 0;
        for step in 0..seconds * 1_000 {
            let now = step * 1_000;
            if now.is_multiple_of(SECOND) {
                meters.pay_off(now);
            }
            let is_through = meters.route_whole(Limit::Starts, people, now);
            let turn = is_through.then(|| meters.turn(people, now)).flatten();
            let is_started = turn.is_some_and(|wait| meters.start(people, now + wait));
            started += if is_started { people } else { 0 };
        }
        started
    }

    #[test]
    fn who_stands_for_several_people_has_as_many_turns_as_they_would() {
        let each = started(1, 200);
        assert!((4_500..5_500).contains(&each), "25 a second: {each}");
        for people in [2, 7, 60, 600] {
            let all = started(people, 200);
            assert!(all.abs_diff(each) <= each / 10 + people, "{people}: {all}, {each}");
        }
    }
}
