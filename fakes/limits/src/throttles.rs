//! What was refused or slowed down, and how often.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Limits;

/// Counts of refusals, and the highest values that were measured, by service and name. Clones share
/// them.
#[derive(Debug, Clone, Default)]
pub struct Throttles(Arc<Mutex<Counts>>);

type ByName = BTreeMap<(String, String), u64>;

#[derive(Debug, Default)]
struct Counts {
    refusals: ByName,
    peaks: ByName,
}

fn rows(counts: &ByName) -> Vec<Throttle> {
    let row = |((service, reason), times): (&(String, String), &u64)| Throttle {
        service: service.clone(),
        reason: reason.clone(),
        times: *times,
    };
    counts.iter().map(row).collect()
}

/// How often one service refused for one reason, or one value that was measured of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// The service, such as `DynamoDB`.
    pub service: String,
    /// The reason, as the service names it where it does.
    pub reason: String,
    /// How often; of a measured value, the value.
    pub times: u64,
}

impl Throttles {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        // A panic under the lock leaves a count that was added or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn one(&self, service: &str, reason: &str) {
        self.add(service, reason, 1);
    }

    pub fn add(&self, service: &str, reason: &str, times: u64) {
        let name = (service.to_owned(), reason.to_owned());
        *self.counts().refusals.entry(name).or_default() += times;
    }

    /// Records a measured value, of which the highest is kept.
    pub fn peak(&self, service: &str, what: &str, value: u64) {
        let mut counts = self.counts();
        let highest = counts.peaks.entry((service.to_owned(), what.to_owned())).or_default();
        *highest = value.max(*highest);
    }

    /// Every refusal, by service and reason.
    #[must_use]
    pub fn rows(&self) -> Vec<Throttle> {
        rows(&self.counts().refusals)
    }

    /// Adds what an earlier run of the same engine has counted.
    pub fn resume(&self, earlier: &Throttled) {
        earlier.counts.iter().for_each(|row| self.add(&row.service, &row.reason, row.times));
        earlier.peaks.iter().for_each(|row| self.peak(&row.service, &row.reason, row.times));
    }
}

/// What was refused under some limits, for a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throttled {
    pub limits: Limits,
    /// Refusals, by service and reason.
    pub counts: Vec<Throttle>,
    /// The highest values that were measured, by service and name.
    #[serde(default)]
    pub peaks: Vec<Throttle>,
}

impl Throttled {
    /// The counts of an engine that runs under `limits`.
    #[must_use]
    pub fn new(limits: Limits, throttles: &Throttles) -> Self {
        let peaks = rows(&throttles.counts().peaks);
        Self { limits, counts: throttles.rows(), peaks }
    }

    /// What was counted since an earlier reading of the same engine, with the highest values of all its
    /// time. An engine that was started anew
    /// since then has counted from nothing: all that it counted is since then.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |row: &Throttle| {
            let same =
                |other: &&Throttle| (&other.service, &other.reason) == (&row.service, &row.reason);
            earlier.counts.iter().find(same).map_or(0, |other| other.times)
        };
        let since = |row: &Throttle| {
            let times = row.times.checked_sub(before(row)).unwrap_or(row.times);
            (times > 0).then(|| Throttle { times, ..row.clone() })
        };
        let counts = self.counts.iter().filter_map(since).collect();
        Self { limits: self.limits, counts, peaks: self.peaks.clone() }
    }

    /// The same with the counts of another process added.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for row in &other.counts {
            let same =
                |mine: &&mut Throttle| (&mine.service, &mine.reason) == (&row.service, &row.reason);
            match self.counts.iter_mut().find(same) {
                Some(mine) => mine.times += row.times,
                None => self.counts.push(row.clone()),
            }
        }
        self.peaks.extend(other.peaks.iter().cloned());
        self
    }
}

impl fmt::Display for Throttled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits::Aws(quotas) = self.limits else { return f.write_str("no limits of AWS") };
        write!(
            f,
            "limits of AWS; tables warmed for {} write and {} read units a second, {} payments a second, \
             cache: {}",
            quotas.warm_writes,
            quotas.warm_reads,
            quotas.payments_per_second,
            quotas.cache.as_str()
        )?;
        self.peaks.iter().try_for_each(|Throttle { service, reason, times }| {
            write!(f, "\nat most: {service}: {reason}: {times}")
        })?;
        if self.counts.is_empty() {
            return f.write_str("\nnothing was throttled");
        }
        self.counts.iter().try_for_each(|Throttle { service, reason, times }| {
            write!(f, "\nthrottled: {service}: {reason}: {times} times")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quotas;

    #[test]
    fn counts_are_summed_and_read_since_a_moment() {
        let throttles = Throttles::default();
        let limits = Limits::Aws(Quotas::default());
        let read = || Throttled::new(limits, &throttles);
        assert!(read().to_string().ends_with("nothing was throttled"));
        throttles.one("SQS", "OverLimit");
        let before = read();
        throttles.clone().add("SQS", "OverLimit", 2);
        throttles.one("API Gateway", "rate");
        let since = read().since(&before);
        let row = |service: &str, reason: &str, times| Throttle {
            service: service.to_owned(),
            reason: reason.to_owned(),
            times,
        };
        assert_eq!(since.counts, [row("API Gateway", "rate", 1), row("SQS", "OverLimit", 2)]);
        assert!(since.to_string().contains("SQS: OverLimit: 2 times"), "{since}");
        let both = since.and(&before).counts;
        assert_eq!(both[1], row("SQS", "OverLimit", 3));
        let counts = vec![row("SQS", "OverLimit", 2)];
        let anew = Throttled { limits, counts, ..Throttled::default() };
        assert_eq!(anew.since(&read()).counts, [row("SQS", "OverLimit", 2)], "it began anew");
        throttles.peak("Redis", "ECPU", 5);
        throttles.peak("Redis", "ECPU", 3);
        assert_eq!(read().peaks, [row("Redis", "ECPU", 5)]);
        let resumed = Throttles::default();
        resumed.resume(&read());
        assert_eq!(Throttled::new(limits, &resumed), read());
    }
}
