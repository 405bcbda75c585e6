//! What the metrics say of the last minutes: a port, and its adapter to CloudWatch ([`cloudwatch`]).
//!
//! On one machine the engine keeps them in memory itself. Both give figures minute by minute, as CloudWatch keeps
//! them; what is shown of several minutes is made of these here, so that it is the same for both.

pub mod cloudwatch;

use std::collections::BTreeMap;
use std::fmt;

use futures_util::future::BoxFuture;

use crate::http::problem::Kind;
use crate::runtime::functions::Function;
use crate::runtime::metrics::Metric;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::Stored;

/// Seconds of a minute: the period of every metric.
pub const PERIOD_SECONDS: u32 = 60;
const PERIOD_MS: i64 = 60_000;
/// Most minutes that are shown, and kept on one machine.
pub const MAX_MINUTES: u16 = 60;
/// The counts of a sale that are shown.
pub const OF_SALE: [Metric; 9] = [
    Metric::Admitted,
    Metric::Waiting,
    Metric::Held,
    Metric::Paid,
    Metric::Expired,
    Metric::Cancelled,
    Metric::Joined,
    Metric::Served,
    Metric::Came,
];

/// A minute of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(i64);

impl Minute {
    /// The minute that a moment is in.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        Self(at.ms().div_euclid(PERIOD_MS))
    }

    /// The minute that is so many minutes earlier.
    #[must_use]
    pub fn before(self, minutes: u16) -> Self {
        Self(self.0 - i64::from(minutes))
    }

    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp::from_ms(self.0 * PERIOD_MS)
    }

    /// The first moment after it.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        self.start().plus_ms(PERIOD_MS)
    }
}

/// How long a function's handlers took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Number of pieces of work.
    pub count: u64,
    /// Milliseconds that half of them took at most.
    pub p50_ms: f64,
    /// Milliseconds that 99 of a hundred took at most.
    pub p99_ms: f64,
}

/// What happened in a minute, whichever sale it was about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StageMinute {
    /// Requests that were answered with a problem, by its type.
    pub problems: BTreeMap<Kind, u64>,
    /// Latency of each function that worked.
    pub latency: BTreeMap<Function, Latency>,
}

/// Counts of a sale in a minute; what is not there is zero.
pub type SaleMinute = BTreeMap<Metric, u64>;

/// Figures of consecutive minutes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub last: Minute,
    /// Number of minutes up to the latest.
    pub minutes: u16,
    /// Time up to which everything is counted.
    pub as_of: Timestamp,
    /// Seconds that figures are behind at least.
    pub delay_seconds: u32,
    /// Minutes in which something was counted of the sale.
    pub sale: BTreeMap<Minute, SaleMinute>,
    /// Minutes in which something was counted of the stage.
    pub stage: BTreeMap<Minute, StageMinute>,
}

pub trait FigureSource: fmt::Debug + Send + Sync {
    /// The figures of a sale, and of the stage, of the last `minutes` ([`MAX_MINUTES`] at most) that are known.
    fn read<'a>(
        &'a self,
        sale: &'a SaleId,
        minutes: u16,
        now: Timestamp,
    ) -> BoxFuture<'a, Stored<Figures>>;
}

impl Figures {
    /// Its minutes, the earliest first.
    pub fn each_minute(&self) -> impl Iterator<Item = Minute> {
        (0..self.minutes).rev().map(|back| self.last.before(back))
    }

    fn stages(&self) -> impl Iterator<Item = &StageMinute> {
        self.each_minute().filter_map(|minute| self.stage.get(&minute))
    }

    /// A count of the sale in a minute.
    #[must_use]
    pub fn count(&self, minute: Minute, metric: Metric) -> u64 {
        let counts = self.sale.get(&minute);
        counts.and_then(|counts| counts.get(&metric)).copied().unwrap_or_default()
    }

    /// Requests that were answered with a problem, by its type.
    #[must_use]
    pub fn problems(&self) -> BTreeMap<Kind, u64> {
        let mut problems = BTreeMap::new();
        for (kind, count) in self.stages().flat_map(|stage| &stage.problems) {
            *problems.entry(*kind).or_default() += count;
        }
        problems
    }

    /// Latency of each function that worked, of all minutes together: the median of their medians, each as often as
    /// there was work in its minute; and the highest of their 99th percentiles, above which that of all is not.
    #[must_use]
    pub fn latency(&self) -> BTreeMap<Function, Latency> {
        let mut each: BTreeMap<Function, Vec<Latency>> = BTreeMap::new();
        for (function, latency) in self.stages().flat_map(|stage| &stage.latency) {
            each.entry(*function).or_default().push(*latency);
        }
        each.into_iter().filter_map(|(function, of)| Some((function, together(of)?))).collect()
    }
}

/// Several minutes as one; `None` if nothing was done in them.
fn together(mut minutes: Vec<Latency>) -> Option<Latency> {
    minutes.sort_by(|one, other| one.p50_ms.total_cmp(&other.p50_ms));
    let count: u64 = minutes.iter().map(|minute| minute.count).sum();
    let mut below = 0;
    let median = minutes.iter().find(|minute| {
        below += minute.count;
        below > 0 && below * 2 >= count
    })?;
    let p99_ms = minutes.iter().map(|minute| minute.p99_ms).fold(0.0, f64::max);
    Some(Latency { count, p50_ms: median.p50_ms, p99_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(count: u64, p50_ms: f64, p99_ms: f64) -> Latency {
        Latency { count, p50_ms, p99_ms }
    }

    #[test]
    fn minutes_are_those_of_the_clock() {
        let at = Timestamp::from_ms(1_800_000_059_999);
        let minute = Minute::of(at);
        assert_eq!(minute.start(), Timestamp::from_ms(1_800_000_000_000));
        assert_eq!(Minute::of(minute.end()), Minute(minute.0 + 1));
        assert_eq!(Minute::of(minute.end()).before(1), minute);
        assert_eq!(Minute::of(Timestamp::from_ms(-1)).start(), Timestamp::from_ms(-60_000));
    }

    #[test]
    fn several_minutes_are_the_median_of_their_medians_and_the_highest_percentile() {
        assert_eq!(together(Vec::new()), None);
        assert_eq!(together(vec![latency(0, 0.0, 0.0)]), None, "nothing was done");
        assert_eq!(together(vec![latency(3, 2.0, 9.0)]), Some(latency(3, 2.0, 9.0)));
        let busy = vec![latency(1, 80.0, 90.0), latency(98, 2.0, 9.0), latency(1, 1.0, 300.0)];
        assert_eq!(together(busy), Some(latency(100, 2.0, 300.0)));
    }

    #[test]
    fn figures_are_those_of_their_minutes_alone() {
        let last = Minute(100);
        let sale = |count| SaleMinute::from([(Metric::Paid, count)]);
        let stage = |count| StageMinute {
            problems: BTreeMap::from([(Kind::SoldOut, count), (Kind::Unavailable, 1)]),
            latency: BTreeMap::from([(Function::Reserve, latency(count, 1.0, 2.0))]),
        };
        let figures = Figures {
            last,
            minutes: 3,
            as_of: last.end(),
            delay_seconds: 0,
            sale: BTreeMap::from([(last, sale(4)), (last.before(3), sale(50))]),
            stage: BTreeMap::from([
                (last, stage(4)),
                (last.before(2), stage(5)),
                (last.before(3), stage(60)),
            ]),
        };
        let counts = figures.each_minute().map(|minute| figures.count(minute, Metric::Paid));
        assert_eq!(counts.collect::<Vec<u64>>(), [0, 0, 4]);
        assert_eq!(figures.count(last, Metric::Held), 0);
        let problems = BTreeMap::from([(Kind::SoldOut, 9), (Kind::Unavailable, 2)]);
        assert_eq!(figures.problems(), problems);
        assert_eq!(figures.latency(), BTreeMap::from([(Function::Reserve, latency(9, 1.0, 2.0))]));
    }
}
