//! What happened in each second of a run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cpu::{Part, Shares};

use super::people::{Class, Deeds};
use super::session::LoadTest;

/// Time between two samples.
pub const PERIOD: Duration = Duration::from_secs(1);

/// One second. Counts are of what happened in it; `under_way` and `waiting` are of its end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sample {
    /// Time at which it ended, in seconds from the beginning.
    pub at_seconds: f64,
    pub arrived: u64,
    /// People who came back because the gate had said so.
    pub returned: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Admissions that were given.
    pub admitted: u64,
    /// Orders that were made.
    pub orders: u64,
    /// Orders that were paid.
    pub paid: u64,
    /// Tickets that were paid.
    pub tickets: u64,
    /// Refusals by the problem's type.
    pub refused: BTreeMap<Cow<'static, str>, u64>,
    pub under_way: u64,
    /// People who wait for a connection.
    pub waiting: u64,
    /// Half of the answers came so soon after they were due, in milliseconds.
    pub response_p50_ms: f64,
    /// 99 of 100 answers.
    pub response_p99_ms: f64,
    pub response_max_ms: f64,
    /// Lag behind the schedule at the 99th percentile, in milliseconds.
    pub lag_p99_ms: f64,
    /// Processor time of each part in this second, in seconds; empty where that is not known.
    pub cpu_seconds: BTreeMap<Part, f64>,
    /// The same second of each class of people.
    pub people: BTreeMap<Class, ClassSample>,
}

/// One second of the people of one class.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassSample {
    #[serde(flatten)]
    pub deeds: Deeds,
    /// Requests that they sent.
    pub sent: u64,
    /// Requests of theirs that were answered, or given up.
    pub answered: u64,
    /// Answers that refused, by the problem's type: those included whose request was then repeated.
    pub refused: BTreeMap<Cow<'static, str>, u64>,
    /// Half of the answers came so soon after they were due, in milliseconds.
    pub response_p50_ms: f64,
    /// 99 of 100 answers.
    pub response_p99_ms: f64,
}

/// Everything that is counted, at one moment.
#[derive(Debug, Clone, Default)]
struct Counts {
    arrived: u64,
    returned: u64,
    sent: u64,
    admitted: u64,
    orders: u64,
    paid: u64,
    tickets: u64,
    refused: BTreeMap<Cow<'static, str>, u64>,
    people: BTreeMap<Class, Deeds>,
}

impl Counts {
    fn from_test(test: &LoadTest) -> Self {
        let tally = &test.tally;
        Self {
            arrived: tally.buyers.get() + tally.late_buyers.get(),
            returned: tally.returns.get(),
            sent: test.client.sent(),
            admitted: tally.admissions.get(),
            orders: tally.orders.get(),
            paid: tally.paid.get(),
            tickets: tally.tickets.get(),
            refused: tally.refusals(),
            people: tally.people(),
        }
    }
}

/// The samples of a run.
#[derive(Debug)]
pub struct Series {
    started: Instant,
    last: Counts,
    last_cpu: BTreeMap<Part, f64>,
    samples: Vec<Sample>,
}

impl Series {
    /// None yet, of a run that started then.
    #[must_use]
    pub fn new(started: Instant) -> Self {
        Self { started, last: Counts::default(), last_cpu: BTreeMap::new(), samples: Vec::new() }
    }

    /// Takes a sample; `cpu` is the account of the processors since the beginning.
    pub fn take(&mut self, test: &LoadTest, cpu: Option<&Shares>) -> &Sample {
        let cpu_now = cpu.map(|cpu| cpu.cpu_seconds.clone()).unwrap_or_default();
        let cpu_last = std::mem::replace(&mut self.last_cpu, cpu_now.clone());
        let cpu_seconds = cpu_now.into_iter().map(|(part, seconds)| {
            let before = cpu_last.get(&part).copied().unwrap_or(0.0);
            (part, (seconds - before).max(0.0))
        });
        let now = Counts::from_test(test);
        let last = std::mem::replace(&mut self.last, now.clone());
        let (response, lag) = test.client.stopwatch().sample();
        let mut people = test.client.traffic().sample();
        for (class, deeds) in now.people {
            let before = last.people.get(&class).copied().unwrap_or_default();
            people.entry(class).or_default().deeds = deeds.since(before);
        }
        let refused = now.refused.into_iter().map(|(why, times)| {
            let before = last.refused.get(&why).copied().unwrap_or(0);
            (why, times - before)
        });
        self.samples.push(Sample {
            at_seconds: self.started.elapsed().as_secs_f64(),
            arrived: now.arrived - last.arrived,
            returned: now.returned - last.returned,
            sent: now.sent - last.sent,
            answered: response.count,
            admitted: now.admitted - last.admitted,
            orders: now.orders - last.orders,
            paid: now.paid - last.paid,
            tickets: now.tickets - last.tickets,
            refused: refused.filter(|(_, times)| *times > 0).collect(),
            under_way: test.client.under_way(),
            waiting: test.waiting.get(),
            response_p50_ms: response.p50_ms,
            response_p99_ms: response.p99_ms,
            response_max_ms: response.max_ms,
            lag_p99_ms: lag.p99_ms,
            cpu_seconds: cpu_seconds.collect(),
            people,
        });
        // There is one: it was pushed a moment ago.
        &self.samples[self.samples.len() - 1]
    }

    #[must_use]
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}
