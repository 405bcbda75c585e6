//! How long things take, without coordinated omission.
//!
//! Each request has a moment at which it was *due*: when its person meant to send it. Its response time
//! runs from there, so that a request which had to wait for the generator or for a free connection, because
//! others before it were answered slowly, is as late as its person found it. The service time runs from the
//! moment it was sent. How late the generator itself took requests up is measured apart: where that is
//! more than a trifle, the generator was the bottleneck, and no figure of the run means anything.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

/// The endpoints that are timed, by the name that the report gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// `POST /sales/{sale}/places`.
    Join,
    /// `POST /sales/{sale}/visits`.
    Visit,
    /// `POST /sales/{sale}/admissions`.
    Admission,
    /// `POST /sales/{sale}/orders`.
    Reserve,
    /// `POST /orders/{order}/cancel`.
    Cancel,
    /// `POST /callbacks/{key}/{provider}`.
    TakeCallback,
    /// `POST /orders/{order}/payments`.
    StartPayment,
    /// `POST /payments/{provider}/callback`.
    PayCallback,
    Query,
}

impl Endpoint {
    /// Every endpoint, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Join,
        Self::Visit,
        Self::Admission,
        Self::Reserve,
        Self::StartPayment,
        Self::TakeCallback,
        Self::PayCallback,
        Self::Cancel,
        Self::Query,
    ];

    /// Its place in an array of all.
    const fn index(self) -> usize {
        match self {
            Self::Admission => 0,
            Self::Reserve => 1,
            Self::TakeCallback => 2,
            Self::PayCallback => 3,
            Self::Cancel => 4,
            Self::Query => 5,
            Self::Join => 6,
            Self::StartPayment => 7,
            Self::Visit => 8,
        }
    }

    /// The endpoint's name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Join => "waiting-room",
            Self::Visit => "token-gate, visits",
            Self::Admission => "token-gate",
            Self::Reserve => "reserve",
            Self::StartPayment => "start-payment",
            Self::Cancel => "cancel",
            Self::TakeCallback => "take-callback",
            Self::PayCallback => "pay-callback",
            Self::Query => "queries",
        }
    }
}

/// A distribution of times, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub count: u64,
    /// Half were no longer.
    pub p50_ms: f64,
    /// 90 of 100 were no longer.
    pub p90_ms: f64,
    /// 95 of 100 were no longer.
    pub p95_ms: f64,
    /// 99 of 100 were no longer.
    pub p99_ms: f64,
    /// 999 of 1,000 were no longer.
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl Percentiles {
    /// Percentiles of a histogram of microseconds.
    #[must_use]
    pub fn from_histogram(times: &Histogram<u64>) -> Self {
        let ms = |quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
        Self {
            count: times.len(),
            p50_ms: ms(0.5),
            p90_ms: ms(0.9),
            p95_ms: ms(0.95),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: times.max() as f64 / 1000.0,
        }
    }
}

/// An empty histogram of microseconds: up to ten minutes, to three digits.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3)
        .unwrap_or_else(|error| unreachable!("these bounds are always good: {error}"))
}

/// The times of one endpoint.
#[derive(Debug)]
pub struct Timing {
    /// From the moment a request was due to its answer.
    pub response: Histogram<u64>,
    /// From the moment it was sent to its answer.
    pub service: Histogram<u64>,
}

/// All that is measured of a run.
#[derive(Debug)]
pub struct Stopwatch {
    timings: [Timing; Endpoint::ALL.len()],
    /// The generator's lag behind the schedule.
    pub lag: Histogram<u64>,
    /// Time that requests waited for a free connection, once they were taken up.
    pub wait: Histogram<u64>,
    /// Response times of all endpoints since the last sample.
    pub recent: Histogram<u64>,
    /// The lag since the last sample.
    pub recent_lag: Histogram<u64>,
}

impl Default for Stopwatch {
    fn default() -> Self {
        let timing = || Timing { response: histogram(), service: histogram() };
        Self {
            timings: std::array::from_fn(|_| timing()),
            lag: histogram(),
            wait: histogram(),
            recent: histogram(),
            recent_lag: histogram(),
        }
    }
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(micros(time));
}

impl Stopwatch {
    /// A request that was due has been taken up now.
    pub fn took_up(&mut self, due: Instant, now: Instant) {
        let lag = now.saturating_duration_since(due);
        record(&mut self.lag, lag);
        record(&mut self.recent_lag, lag);
    }

    /// A request that had been taken up has a connection now.
    pub fn waited(&mut self, taken_up: Instant, now: Instant) {
        record(&mut self.wait, now.saturating_duration_since(taken_up));
    }

    /// A request that was due and was sent has its answer now, or will never have one.
    pub fn answered(&mut self, endpoint: Endpoint, due: Instant, sent: Instant, now: Instant) {
        let response = now.saturating_duration_since(due);
        let timing = &mut self.timings[endpoint.index()];
        record(&mut timing.response, response);
        record(&mut timing.service, now.saturating_duration_since(sent));
        record(&mut self.recent, response);
    }

    /// The times of an endpoint.
    #[must_use]
    pub fn of(&self, endpoint: Endpoint) -> &Timing {
        &self.timings[endpoint.index()]
    }

    /// Response time and lag since the last call.
    pub fn sample(&mut self) -> (Percentiles, Percentiles) {
        let sample = (
            Percentiles::from_histogram(&self.recent),
            Percentiles::from_histogram(&self.recent_lag),
        );
        self.recent.reset();
        self.recent_lag.reset();
        sample
    }
}

/// A duration in whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_late_as_its_person_found_it() {
        let due = Instant::now();
        let after = |ms| due + Duration::from_millis(ms);
        let mut stopwatch = Stopwatch::default();
        // Due at 0, taken up at 2, connected and sent at 900, answered at 1,000.
        stopwatch.took_up(due, after(2));
        stopwatch.waited(after(2), after(900));
        stopwatch.answered(Endpoint::Reserve, due, after(900), after(1000));
        let timing = stopwatch.of(Endpoint::Reserve);
        let about = |histogram: &Histogram<u64>| histogram.max() / 1000;
        assert_eq!(about(&timing.response), 1000);
        assert_eq!(about(&timing.service), 100);
        assert_eq!(about(&stopwatch.wait), 898);
        assert_eq!(about(&stopwatch.lag), 2);
        let (response, lag) = stopwatch.sample();
        assert_eq!((response.count, lag.count), (1, 1));
        assert!((response.max_ms - 1000.0).abs() < 1.0);
        let (response, _) = stopwatch.sample();
        assert_eq!(response.count, 0, "a sample is of what happened since the last");
        assert!(stopwatch.of(Endpoint::Admission).response.is_empty());
    }
}
