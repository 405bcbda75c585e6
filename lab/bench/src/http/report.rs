//! The report: one row an endpoint, each beside the empty function.

use std::collections::BTreeMap;

use comfy_table::CellAlignment;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Options;
use super::load::{Sent, histogram};
use loadtest::cpu::{Part, Shares};

/// Cost of a batch.
#[derive(Debug)]
pub(super) struct Batch {
    latencies: Histogram<u64>,
    seconds: f64,
    cpu_seconds: BTreeMap<Part, f64>,
}

impl Batch {
    pub(super) fn new(sent: &Sent, shares: &Shares) -> Self {
        Self {
            latencies: sent.latencies.clone(),
            seconds: sent.elapsed.as_secs_f64(),
            cpu_seconds: shares.cpu_seconds.clone(),
        }
    }
}

/// What the batches of one kind cost together.
#[derive(Debug)]
struct Sum {
    latencies: Histogram<u64>,
    seconds: f64,
    cpu_seconds: BTreeMap<Part, f64>,
}

impl Default for Sum {
    fn default() -> Self {
        Self { latencies: histogram(), seconds: 0.0, cpu_seconds: BTreeMap::new() }
    }
}

impl Sum {
    fn add(&mut self, batch: Batch) {
        // Both have the bounds of every histogram here.
        self.latencies += batch.latencies;
        self.seconds += batch.seconds;
        for (part, seconds) in batch.cpu_seconds {
            *self.cpu_seconds.entry(part).or_default() += seconds;
        }
    }

    fn cost(&self) -> Cost {
        let requests = self.latencies.len() as f64;
        let ms = |percentile: f64| self.latencies.value_at_percentile(percentile) as f64 / 1000.0;
        let cpu = |part: Part| {
            self.cpu_seconds.get(&part).copied().unwrap_or_default() * 1e6 / requests.max(1.0)
        };
        Cost {
            requests: self.latencies.len(),
            per_second: requests / self.seconds.max(f64::EPSILON),
            p50_ms: ms(50.0),
            p90_ms: ms(90.0),
            p99_ms: ms(99.0),
            p999_ms: ms(99.9),
            engine_cpu_us: cpu(Part::Engine),
            stores_cpu_us: cpu(Part::DynamoDb) + cpu(Part::Sqs),
            redis_cpu_us: cpu(Part::Redis),
        }
    }
}

/// Cost of the requests of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    pub requests: u64,
    pub per_second: f64,
    pub p50_ms: f64,
    /// 90 of 100 were quicker.
    pub p90_ms: f64,
    /// 99 of 100 were quicker.
    pub p99_ms: f64,
    /// 999 of 1,000 were quicker.
    pub p999_ms: f64,
    /// Processor time of gateway and function, a request, in microseconds.
    pub engine_cpu_us: f64,
    /// Processor time of the fakes of DynamoDB and SQS, a request, in microseconds.
    pub stores_cpu_us: f64,
    /// Processor time of Redis, a request, in microseconds.
    pub redis_cpu_us: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub endpoint: &'static str,
    #[serde(flatten)]
    pub cost: Cost,
    /// Cost of the empty function in the same rounds.
    pub empty: Cost,
    /// Requests a second of the empty function, as a multiple of those of the endpoint.
    pub slower: f64,
    /// Processor time of gateway and function, as a multiple of that with the empty function.
    pub dearer: f64,
    /// Requests a second as a share of those of the empty function: the median of the batches, each compared with
    /// the one just before it. A pause of the machine falls on one batch, and moves the sums but not the median.
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Number of requests that were under way at a time.
    pub connections: usize,
    pub rounds: usize,
    /// True if the program was built with optimisation; figures of another build mean nothing.
    pub optimised: bool,
    /// In the order in which they were measured.
    pub endpoints: Vec<Row>,
}

/// The batches of an endpoint so far, and those of the empty function beside them.
#[derive(Debug)]
struct Batches {
    endpoint: &'static str,
    own: Sum,
    empty: Sum,
    /// By batch, how long the empty function's took for each second of the endpoint's.
    shares: Vec<f64>,
}

impl Batches {
    fn new(endpoint: &'static str) -> Self {
        Self { endpoint, own: Sum::default(), empty: Sum::default(), shares: Vec::new() }
    }

    fn row(&self) -> Row {
        let (cost, empty) = (self.own.cost(), self.empty.cost());
        let slower = empty.per_second / cost.per_second.max(f64::EPSILON);
        let dearer = cost.engine_cpu_us / empty.engine_cpu_us.max(f64::EPSILON);
        Row { endpoint: self.endpoint, cost, empty, slower, dearer, share: median(&self.shares) }
    }
}

/// The middle one of some numbers, the lower of two; 0 of none.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// The batches so far.
#[derive(Debug, Default)]
pub(super) struct Tally(Vec<Batches>);

impl Tally {
    /// Adds a batch of an endpoint, and one as large of the empty function just before it.
    pub(super) fn add(&mut self, endpoint: &'static str, own: Batch, empty: Batch) {
        let index = self.0.iter().position(|batches| batches.endpoint == endpoint);
        let index = index.unwrap_or_else(|| {
            self.0.push(Batches::new(endpoint));
            self.0.len() - 1
        });
        let batches = &mut self.0[index];
        batches.shares.push(empty.seconds / own.seconds.max(f64::EPSILON));
        batches.own.add(own);
        batches.empty.add(empty);
    }

    pub(super) fn report(&self, options: &Options) -> Report {
        Report {
            connections: options.connections,
            rounds: options.rounds,
            optimised: !cfg!(debug_assertions),
            endpoints: self.0.iter().map(Batches::row).collect(),
        }
    }
}

impl Report {
    /// As one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// As a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        const COLUMNS: [&str; 12] = [
            "endpoint",
            "requests",
            "req/s",
            "× slower",
            "of empty",
            "p50 ms",
            "p90",
            "p99",
            "p99.9",
            "engine CPU µs",
            "× dearer",
            "stores, Redis µs",
        ];
        let mut table = reporting::table(COLUMNS);
        for row in &self.endpoints {
            let Cost { requests, per_second, p50_ms, p90_ms, p99_ms, p999_ms, .. } = row.cost;
            table.add_row([
                row.endpoint.to_owned(),
                requests.to_string(),
                format!("{per_second:.0}"),
                format!("{:.1}", row.slower),
                format!("{:.2}", row.share),
                format!("{p50_ms:.2}"),
                format!("{p90_ms:.2}"),
                format!("{p99_ms:.2}"),
                format!("{p999_ms:.2}"),
                format!("{:.0}", row.cost.engine_cpu_us),
                format!("{:.1}", row.dearer),
                format!("{:.0}, {:.0}", row.cost.stores_cpu_us, row.cost.redis_cpu_us),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let Self { connections, rounds, optimised, .. } = self;
        let build = if *optimised {
            ""
        } else {
            "\nThis build is not optimised: ONSALE_PROFILE=measure scripts/onsale bench http"
        };
        format!(
            "{table}\n{connections} connections, {rounds} rounds. Slower and dearer: than a function that \
             does nothing behind the same gateway, in turns; of empty: its requests a second are 1, median of the \
             rounds.{build}"
        )
    }
}
