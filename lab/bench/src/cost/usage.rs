//! What is used and paid for, and how much of it.

use std::ops::{Add, AddAssign, Mul};

use serde::{Deserialize, Serialize};

use super::prices::Prices;

/// Usage of one or many pieces of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Requests to the HTTP API.
    pub http_requests: f64,
    pub invocations: f64,
    /// Processor time in functions, in milliseconds of a whole processor.
    pub cpu_ms: f64,
    /// Memory of functions × time, in gigabyte-seconds.
    pub gb_seconds: f64,
    /// Round trips to DynamoDB.
    pub dynamodb_calls: f64,
    pub read_units: f64,
    pub write_units: f64,
    /// Requests to queues, the receiving and deleting that Lambda does included.
    pub sqs_requests: f64,
    /// Round trips to Redis.
    pub redis_trips: f64,
    /// Processing units (ECPU) of the cache.
    pub cache_units: f64,
    pub egress_bytes: f64,
    /// Bytes that are logged.
    pub log_bytes: f64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.http_requests += other.http_requests;
        self.invocations += other.invocations;
        self.cpu_ms += other.cpu_ms;
        self.gb_seconds += other.gb_seconds;
        self.dynamodb_calls += other.dynamodb_calls;
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.sqs_requests += other.sqs_requests;
        self.redis_trips += other.redis_trips;
        self.cache_units += other.cache_units;
        self.egress_bytes += other.egress_bytes;
        self.log_bytes += other.log_bytes;
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Mul<f64> for Usage {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            http_requests: self.http_requests * times,
            invocations: self.invocations * times,
            cpu_ms: self.cpu_ms * times,
            gb_seconds: self.gb_seconds * times,
            dynamodb_calls: self.dynamodb_calls * times,
            read_units: self.read_units * times,
            write_units: self.write_units * times,
            sqs_requests: self.sqs_requests * times,
            redis_trips: self.redis_trips * times,
            cache_units: self.cache_units * times,
            egress_bytes: self.egress_bytes * times,
            log_bytes: self.log_bytes * times,
        }
    }
}

impl Usage {
    /// What this used more than `other`. Nothing is used less than not at all: where the two differ by
    /// the noise of a clock alone, the difference is 0, and no line of a bill is negative.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        let more = self + other * -1.0;
        Self {
            http_requests: more.http_requests.max(0.0),
            invocations: more.invocations.max(0.0),
            cpu_ms: more.cpu_ms.max(0.0),
            gb_seconds: more.gb_seconds.max(0.0),
            dynamodb_calls: more.dynamodb_calls.max(0.0),
            read_units: more.read_units.max(0.0),
            write_units: more.write_units.max(0.0),
            sqs_requests: more.sqs_requests.max(0.0),
            redis_trips: more.redis_trips.max(0.0),
            cache_units: more.cache_units.max(0.0),
            egress_bytes: more.egress_bytes.max(0.0),
            log_bytes: more.log_bytes.max(0.0),
        }
    }
}

/// One line of a bill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Item that is paid for.
    pub what: &'static str,
    /// The amount of it.
    pub amount: f64,
    /// The unit of the amount.
    pub unit: &'static str,
    /// What it costs, in the currency of the prices.
    pub cost: f64,
}

impl Line {
    /// An amount of something, at a price for one unit.
    #[must_use]
    pub fn new(what: &'static str, amount: f64, unit: &'static str, price: f64) -> Self {
        Self { what, amount, unit, cost: amount * price }
    }
}

impl Usage {
    /// The bill for it.
    #[must_use]
    pub fn bill(&self, prices: &Prices) -> Vec<Line> {
        const MILLION: f64 = 1e6;
        const GIGABYTE: f64 = 1e9;
        let million =
            |what, amount: f64, unit, price| Line::new(what, amount, unit, price / MILLION);
        vec![
            million("HTTP API", self.http_requests, "requests", prices.http_api_million),
            million("Lambda", self.invocations, "invocations", prices.lambda_million),
            Line::new("Lambda", self.gb_seconds, "GB-seconds", prices.lambda_gb_second),
            million("DynamoDB", self.read_units, "read units", prices.dynamodb_reads_million),
            million("DynamoDB", self.write_units, "write units", prices.dynamodb_writes_million),
            million("SQS", self.sqs_requests, "requests", prices.sqs_million),
            million("Cache", self.cache_units, "ECPU", prices.cache_units_million),
            Line::new("Logs", self.log_bytes / GIGABYTE, "GB", prices.logs_gb),
            Line::new("Data out", self.egress_bytes / GIGABYTE, "GB", prices.egress_gb),
        ]
    }

    #[must_use]
    pub fn cost(&self, prices: &Prices) -> f64 {
        self.bill(prices).iter().map(|line| line.cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_everything_that_was_used() {
        let prices = Prices::published().unwrap();
        let one = Usage {
            http_requests: 1.0,
            invocations: 1.0,
            gb_seconds: 1.0,
            read_units: 1.0,
            write_units: 1.0,
            sqs_requests: 1.0,
            cache_units: 1.0,
            egress_bytes: 1.0,
            log_bytes: 1.0,
            ..Usage::default()
        };
        let bill = (one * 1e6).bill(&prices);
        assert!(bill.iter().all(|line| line.cost > 0.0), "{bill:?}");
        let million = prices.http_api_million
            + prices.lambda_million
            + prices.lambda_gb_second * 1e6
            + prices.dynamodb_reads_million
            + prices.dynamodb_writes_million
            + prices.sqs_million
            + prices.cache_units_million
            + (prices.logs_gb + prices.egress_gb) / 1000.0;
        assert!(((one * 1e6).cost(&prices) - million).abs() < 1e-9);
        let mut twice = one;
        twice += one;
        assert_eq!(twice, one * 2.0);
    }
}
