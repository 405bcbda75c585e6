//! The report of a load test: as tables for people and as JSON for programs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table};
use fake_limits::Throttled;
use fake_limits::gateway::FUNCTION_FAILED;
use serde::Serialize;

use crate::cpu::Shares;

use super::people::fairness::{Decile, Fairness};
use super::people::plan::Crowd;
use super::people::{Class, Deeds};
use super::profile::{Behaviour, LoadProfile};
use super::rehearsal::{Rehearsal, Rehearsed};
use super::series::Sample;
use super::session::LoadTest;
use super::stopwatch::{Endpoint, Percentiles, Stopwatch};
use super::tally::Tally;
use super::thresholds::{Checked, Thresholds};
use super::{Load, Options};

/// The generator was the bottleneck if it took up one request of a hundred later than this.
const MAX_LAG_MS: f64 = 100.0;
/// Number of anomalies that the tables show.
const ANOMALIES_SHOWN: usize = 20;

/// One sale of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Sold {
    /// Id of the sale.
    pub sale: String,
    /// Seats × legs for sale.
    pub seat_legs: u64,
    /// Seats × legs that nobody can buy any more.
    pub taken: u64,
}

/// The times of one endpoint.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// From the moment a request was due to its answer: what its person found.
    pub response: Percentiles,
    /// From the moment it was sent to its answer.
    pub service: Percentiles,
}

/// Schedule of the generator: its lag, and whether it kept up.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Generator {
    /// Lag behind the schedule.
    pub lag: Percentiles,
    /// Time that requests then waited for a connection, because others were not answered yet.
    pub wait: Percentiles,
    /// Connections that it opened.
    pub connections: u64,
    /// True if it kept its schedule, so that the other figures are the engine's.
    pub kept_up: bool,
}

/// One behaviour of the profile, and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct BehaviourCount {
    #[serde(rename = "conduct")]
    pub behaviour: &'static str,
    /// People of it in a thousand.
    pub per_mille: u32,
    /// Answers that are expected.
    pub expected: &'static str,
    /// Number of its people who came.
    pub people: u64,
    /// Those of them that got as far as showing it: the others were refused before.
    pub shown: u64,
    /// Those of these that were answered as expected; for every other there is an anomaly.
    pub as_expected: u64,
}

impl BehaviourCount {
    fn from_tally(behaviour: Behaviour, profile: LoadProfile, tally: &Tally) -> Self {
        let shown = tally.behaviour(behaviour);
        Self {
            behaviour: behaviour.name(),
            per_mille: profile.per_mille(behaviour),
            expected: behaviour.expected(),
            people: shown.people,
            shown: shown.shown,
            as_expected: shown.as_expected,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The seed that repeats the crowd.
    pub seed: u64,
    /// Arrival of the crowd: open or closed loop.
    pub load: Load,
    /// The profile: which share of people behaves how.
    #[serde(rename = "mix")]
    pub profile: LoadProfile,
    /// Ways of picking seats, in words.
    pub ways: &'static str,
    pub seconds: f64,
    /// Time at which the last order was paid, in seconds from the beginning.
    pub sold_out_seconds: Option<f64>,
    /// Number of buyers, with the late ones.
    pub buyers: u64,
    /// Of these, those who came late to take what was left.
    pub late_buyers: u64,
    /// Number of times that somebody came back because the gate had said so.
    pub returns: u64,
    /// Number of times that somebody gave up instead.
    pub gave_up: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Admissions that were given.
    pub admissions: u64,
    /// Reservations that were refused because there were no such seats: each attempt of a buyer.
    pub refused_reservations: u64,
    /// Those for each order that was paid.
    pub refused_reservations_per_order: f64,
    /// Orders that were made.
    pub orders: u64,
    /// Orders that were paid.
    pub paid: u64,
    /// Tickets that were paid.
    pub tickets: u64,
    /// Of the paid orders, those that had expired and were rescued.
    pub rescued: u64,
    /// Payments on the pages of providers, by provider; the others were called back by the crowd.
    pub paid_on_pages: BTreeMap<&'static str, u64>,
    /// Payments that came too late and are given back.
    pub refunds: u64,
    /// Orders that their buyers cancelled.
    pub cancelled: u64,
    /// Orders that were never paid.
    pub never_paid: u64,
    /// Requests that were repeated.
    pub repeats: u64,
    /// The same by what they were answered before.
    pub repeats_because: BTreeMap<Cow<'static, str>, u64>,
    /// Callbacks that failed; their provider repeats them after a minute and later.
    pub failed_callbacks: u64,
    /// Captures that were decided before a callback of theirs got through.
    pub decided_unreported: u64,
    pub requests_per_second: f64,
    pub orders_per_second: f64,
    /// Paid orders a second, until the last was paid.
    pub sales_per_second: f64,
    /// True if nothing is left to sell.
    pub sold_out: bool,
    pub sales: Vec<Sold>,
    /// Each behaviour, and what came of it.
    pub behaviours: Vec<BehaviourCount>,
    /// Refusals by the problem's type.
    pub refusals: BTreeMap<Cow<'static, str>, u64>,
    pub latency: BTreeMap<&'static str, Latency>,
    /// Schedule of the generator: its lag, and whether it kept up.
    pub generator: Generator,
    /// Number of things that happened that must never happen.
    pub anomaly_count: u64,
    /// The first hundred of them.
    pub anomalies: Vec<String>,
    /// What the servers refused for their limits, if the engine runs on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
    /// Where the processors' time went, if the engine runs on this machine.
    pub cpu: Option<Shares>,
    /// What the people of each class did.
    pub people: BTreeMap<Class, Deeds>,
    /// Which classes of people and bots came.
    pub crowd: Crowd,
    /// Who got what; absent in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// The deployment that was loaded and whether it was aborted; absent unless it was a rehearsal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsed>,
    /// Thresholds of a file with the figures that were measured; empty without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Checked>,
    pub series: Vec<Sample>,
}

impl Report {
    /// The report of a load test.
    pub(super) fn from_test(
        test: &LoadTest,
        options: &Options,
        started: Instant,
        took: Duration,
        sold_out: bool,
        sales: Vec<Sold>,
        series: Vec<Sample>,
    ) -> Self {
        let tally = &test.tally;
        let seconds = took.as_secs_f64();
        let sold_out_seconds = tally.last_sale().map(|at| (at - started).as_secs_f64());
        let stopwatch = test.client.stopwatch();
        let lag = Percentiles::from_histogram(&stopwatch.lag);
        let behaviours = Behaviour::ALL
            .into_iter()
            .map(|behaviour| BehaviourCount::from_tally(behaviour, options.profile, tally));
        Self {
            seed: options.seed,
            load: options.load,
            profile: options.profile,
            ways: options.profile.ways(),
            seconds,
            sold_out_seconds,
            buyers: tally.buyers.get() + tally.late_buyers.get(),
            late_buyers: tally.late_buyers.get(),
            returns: tally.returns.get(),
            gave_up: tally.gave_up.get(),
            requests: test.client.sent(),
            admissions: tally.admissions.get(),
            refused_reservations: tally.refused_reservations.get(),
            refused_reservations_per_order: tally.refused_reservations.get() as f64
                / tally.paid.get().max(1) as f64,
            orders: tally.orders.get(),
            paid: tally.paid.get(),
            tickets: tally.tickets.get(),
            rescued: tally.rescued.get(),
            paid_on_pages: tally.paid_at(),
            refunds: tally.refunds.get(),
            cancelled: tally.cancelled.get(),
            never_paid: tally.never_paid.get(),
            repeats: tally.repeats().values().sum(),
            repeats_because: tally.repeats(),
            failed_callbacks: tally.failed_callbacks.get(),
            decided_unreported: tally.decided_unreported.get(),
            requests_per_second: test.client.sent() as f64 / seconds,
            orders_per_second: tally.orders.get() as f64 / seconds,
            sales_per_second: tally.paid.get() as f64 / sold_out_seconds.unwrap_or(seconds),
            sold_out,
            sales,
            behaviours: behaviours.filter(|behaviour| behaviour.per_mille > 0).collect(),
            refusals: tally.refusals(),
            latency: latencies(&stopwatch),
            generator: Generator {
                lag,
                wait: Percentiles::from_histogram(&stopwatch.wait),
                connections: test.client.connections(),
                kept_up: lag.p99_ms <= MAX_LAG_MS,
            },
            anomaly_count: tally.anomaly_count.get(),
            anomalies: tally.anomalies(),
            throttled: None,
            cpu: None,
            people: tally.people(),
            crowd: options.crowd,
            fairness: test.fairness(),
            rehearsal: options.rehearsal.as_ref().map(Rehearsal::rehearsed),
            thresholds: Vec::new(),
            series,
        }
    }

    /// Takes what the servers refused for their limits. A function that failed there is an anomaly: whoever
    /// called it could not tell it from one that was throttled, and waited.
    pub fn record_throttled(&mut self, throttled: Throttled) {
        let failed = throttled.counts.iter().filter(|row| row.reason == FUNCTION_FAILED);
        for row in failed {
            self.anomaly_count += row.times;
            self.anomalies.push(format!("{}: {}: {} times", row.service, row.reason, row.times));
        }
        self.throttled = Some(throttled);
    }

    /// Holds the report against thresholds, which then decide whether it is good.
    pub fn hold_against(&mut self, thresholds: &Thresholds) {
        self.thresholds = thresholds.check(self);
    }

    /// True if every threshold is met; without thresholds, if everything was sold, unless it was a rehearsal,
    /// and nothing impossible was met. A rehearsal that was aborted is never good.
    #[must_use]
    pub fn is_good(&self) -> bool {
        if self.is_aborted() {
            return false;
        }
        if self.thresholds.is_empty() {
            return (self.sold_out || self.rehearsal.is_some()) && self.anomaly_count == 0;
        }
        self.thresholds.iter().all(|checked| checked.met)
    }

    /// True if it was a rehearsal that was aborted.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.rehearsal.as_ref().is_some_and(|rehearsed| rehearsed.aborted.is_some())
    }

    /// The rehearsal in words; empty if it was none.
    fn rehearsed(&self) -> String {
        let Some(Rehearsed { host, per_second, aborted }) = &self.rehearsal else {
            return String::new();
        };
        let requests = self.requests;
        let sent =
            format!("\nrehearsal of {host}: {requests} requests, at most {per_second} a second");
        match aborted {
            None => sent,
            Some(reason) => {
                let left = self.orders.saturating_sub(self.cancelled);
                format!("{sent}\nABORTED: {reason}; {left} orders are left to expire")
            }
        }
    }

    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }

    /// The report as tables.
    #[must_use]
    pub fn tables(&self) -> String {
        let tables = [
            self.sold(),
            self.behaviours(),
            self.people(),
            self.deciles(),
            self.refused(),
            self.repeated(),
            self.times(),
        ];
        let tables = tables.iter().filter(|table| !table.is_empty());
        let tables: String = tables.map(|table| format!("\n{table}")).collect();
        let refused = self.refused_reservations();
        let shown = self.anomalies.iter().take(ANOMALIES_SHOWN);
        let anomalies: String = shown.map(|anomaly| format!("\nanomaly: {anomaly}")).collect();
        let cpu = self.cpu.as_ref().map_or_else(String::new, |cpu| format!("\n{cpu}"));
        let throttled = self.throttled.as_ref().map_or_else(String::new, |all| format!("\n{all}"));
        let (summary, verdict, rehearsed) = (self.summary(), self.verdict(), self.rehearsed());
        let callbacks = self.callbacks();
        let fair =
            self.fairness.as_ref().map_or_else(String::new, |fair| format!("\n{}", fair.words()));
        let thresholds: String =
            self.thresholds.iter().map(|checked| format!("\n{checked}")).collect();
        format!(
            "{summary}{tables}{fair}\n{refused}\n{callbacks}\n{verdict}{cpu}{throttled}{rehearsed}{anomalies}{thresholds}"
        )
    }

    /// How many reservations were refused, in words.
    #[must_use]
    pub fn refused_reservations(&self) -> String {
        let Self { refused_reservations, refused_reservations_per_order, .. } = self;
        format!(
            "{refused_reservations} reservations were refused for want of seats: \
             {refused_reservations_per_order:.2} refused reservations per order sold"
        )
    }

    /// How many callbacks failed, in words.
    #[must_use]
    pub fn callbacks(&self) -> String {
        let Self { failed_callbacks, decided_unreported, .. } = self;
        format!(
            "{failed_callbacks} callbacks failed; {decided_unreported} captures were decided before a callback of \
             theirs got through"
        )
    }

    /// Arrival of the crowd, in words.
    #[must_use]
    pub fn how(&self) -> String {
        match self.load {
            Load::Open { within_seconds, shape, connections, .. } => format!(
                "open loop, shape {}, within {within_seconds:.0} s, at most {connections} requests under way",
                shape.name()
            ),
            Load::Closed { at_once, .. } => format!("closed loop, {at_once} at once"),
        }
    }

    fn summary(&self) -> String {
        format!(
            "{} buyers came in {:.0} s ({}; seed {}) and back {} times: {} requests ({:.0} a second), \
             {} orders ({:.0} a second), {} paid for {} tickets ({} rescued), {} cancelled, {} never paid, \
             {} paid too late; {} requests repeated{}",
            self.buyers,
            self.seconds,
            self.how(),
            self.seed,
            self.returns,
            self.requests,
            self.requests_per_second,
            self.orders,
            self.orders_per_second,
            self.paid,
            self.tickets,
            self.rescued,
            self.cancelled,
            self.never_paid,
            self.refunds,
            self.repeats,
            self.pages(),
        )
    }

    /// Who was paid on a page, in words; nothing if nobody was.
    fn pages(&self) -> String {
        if self.paid_on_pages.is_empty() {
            return String::new();
        }
        let each = self.paid_on_pages.iter().map(|(provider, count)| format!("{provider} {count}"));
        format!("; paid on pages: {}", each.collect::<Vec<_>>().join(", "))
    }

    /// The lag of the generator, and the time that people waited for a connection, in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Generator { lag, wait, connections, kept_up } = self.generator;
        let kept = if kept_up {
            "the generator kept its schedule"
        } else {
            "THE GENERATOR FELL BEHIND: the figures above are its own"
        };
        format!(
            "{kept}: it took requests up {:.1} ms late (p50), {:.1} ms (p99), {:.1} ms at most; they waited \
             {:.1} ms (p50), {:.1} ms (p99) for one of {connections} connections",
            lag.p50_ms, lag.p99_ms, lag.max_ms, wait.p50_ms, wait.p99_ms,
        )
    }

    fn sold(&self) -> Table {
        let mut sales = table(["sale", "seats × legs", "sold", "left"]);
        for sold in &self.sales {
            let left = sold.seat_legs.saturating_sub(sold.taken);
            let counts = [sold.seat_legs, sold.taken, left].map(|count| count.to_string());
            let [seat_legs, taken, left] = counts;
            sales.add_row([sold.sale.clone(), seat_legs, taken, left]);
        }
        sales
    }

    fn behaviours(&self) -> Table {
        let header = ["behaviour", "‰", "people", "shown", "as expected", "expected"];
        let mut rows = table(header);
        for behaviour in &self.behaviours {
            rows.add_row([
                behaviour.behaviour.to_owned(),
                behaviour.per_mille.to_string(),
                behaviour.people.to_string(),
                behaviour.shown.to_string(),
                behaviour.as_expected.to_string(),
                behaviour.expected.to_owned(),
            ]);
        }
        if let Some(column) = rows.column_mut(header.len() - 1) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        rows
    }

    fn people(&self) -> Table {
        let mut rows =
            table(["people", "came", "came back", "admitted", "orders", "paid", "tickets"]);
        for (class, deeds) in &self.people {
            let Deeds { arrived, returned, admitted, orders, paid, tickets } = *deeds;
            let counts = [arrived, returned, admitted, orders, paid, tickets];
            let counts = counts.iter().map(u64::to_string);
            rows.add_row(std::iter::once(class.name().to_owned()).chain(counts));
        }
        rows
    }

    fn deciles(&self) -> Table {
        let mut rows = table(["by arrival", "people", "admitted", "%", "bots", "admitted", "%"]);
        let percent = |part: u64, whole: u64| match whole {
            0 => String::new(),
            whole => format!("{:.0}", 100.0 * part as f64 / whole as f64),
        };
        let deciles = self.fairness.iter().flat_map(|fairness| &fairness.deciles);
        for (number, decile) in (1..).zip(deciles) {
            let Decile { people, people_admitted, bots, bots_admitted } = *decile;
            rows.add_row([
                format!("tenth {number}"),
                people.to_string(),
                people_admitted.to_string(),
                percent(people_admitted, people),
                bots.to_string(),
                bots_admitted.to_string(),
                percent(bots_admitted, bots),
            ]);
        }
        rows
    }

    fn refused(&self) -> Table {
        let mut refusals = table(["refused because", "times"]);
        for (why, times) in &self.refusals {
            refusals.add_row([why.to_string(), times.to_string()]);
        }
        refusals
    }

    fn repeated(&self) -> Table {
        let mut repeats = table(["repeated because", "times"]);
        for (why, times) in &self.repeats_because {
            repeats.add_row([why.to_string(), times.to_string()]);
        }
        repeats
    }

    fn times(&self) -> Table {
        let mut times = table([
            "function",
            "requests",
            "p50 ms",
            "p90 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "service p50",
            "p99 ms",
        ]);
        let ms = |value: f64| format!("{value:.1}");
        for (name, Latency { response, service }) in &self.latency {
            times.add_row([
                (*name).to_owned(),
                response.count.to_string(),
                ms(response.p50_ms),
                ms(response.p90_ms),
                ms(response.p99_ms),
                ms(response.p999_ms),
                ms(response.max_ms),
                ms(service.p50_ms),
                ms(service.p99_ms),
            ]);
        }
        times
    }
}

/// The times of every endpoint that was asked.
fn latencies(stopwatch: &Stopwatch) -> BTreeMap<&'static str, Latency> {
    let latency = |endpoint: Endpoint| {
        let of = stopwatch.of(endpoint);
        let response = Percentiles::from_histogram(&of.response);
        let service = Percentiles::from_histogram(&of.service);
        (endpoint.name(), Latency { response, service })
    };
    let all = Endpoint::ALL.into_iter().map(latency);
    all.filter(|(_, latency)| latency.response.count > 0).collect()
}

/// A table whose first column is text and whose others are numbers.
fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = reporting::table(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
