//! `onsale cost`: what AWS would ask for a sale.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{Failure, out};
use bench::cost::{self, Assumptions, Options, Prices};

/// What AWS would ask for a sale and for a quiet month, from what the engine is seen to use.
#[derive(Debug, Args)]
#[command(after_help = "\
Each kind of work is done by its handler on servers of its own and counted: requests, capacity units,
cache units, messages, processor time. A load test on this machine says how often each comes. Build it with
ONSALE_PROFILE=measure, or the processor time is that of a debug build. docs/cost.md says what is
measured, what is assumed and what is left out.

Examples:
  onsale cost
  onsale cost --visitors 200000 --seats 15000 --hours 2
  onsale cost --prices eu-central-1.json --json")]
pub struct CostCommand {
    /// How many people come.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    visitors: u64,
    /// How many seats there are.
    #[arg(long, value_name = "N", default_value_t = 60_000,
          value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    seats: u32,
    /// For how many hours the sale is open.
    #[arg(long, value_name = "HOURS", default_value_t = 24.0, value_parser = positive)]
    hours: f64,
    /// How many orders a quiet month has.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    quiet_orders: u64,
    /// The load test has one in N of the people and of the seats.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// The seconds within which the people of the load test come.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = positive)]
    within: f64,
    /// How often each kind of work is measured.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    times: u16,
    /// Seed of the crowd.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Prices in place of the built-in ones, in the form of lab/bench/src/cost/prices.json.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Assumed: a round trip from a function to the cache, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = Assumptions::default().redis_ms, value_parser = positive)]
    redis_ms: f64,
    /// Assumed: a round trip to DynamoDB, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = Assumptions::default().dynamodb_ms, value_parser = positive)]
    dynamodb_ms: f64,
    /// Assumed: a round trip to SQS, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = Assumptions::default().sqs_ms, value_parser = positive)]
    sqs_ms: f64,
    /// Assumed: a provider's answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = Assumptions::default().provider_ms, value_parser = positive)]
    provider_ms: f64,
    /// Assumed: how often each visitor looks at what is left before asking to be let in.
    #[arg(long, value_name = "N", default_value_t = Assumptions::default().looks)]
    looks: f64,
    /// Assumed: what one invocation logs, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = Assumptions::default().log_bytes, value_parser = positive)]
    log_bytes: f64,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number < 1e6 { Ok(number) } else { Err("must be more than 0".to_owned()) }
}

impl CostCommand {
    /// Measures and prints the report.
    ///
    /// # Errors
    /// Fails if it cannot be measured.
    pub async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { redis_ms, dynamodb_ms, sqs_ms, provider_ms, log_bytes, looks, .. } = self;
        let prices = self.prices.as_deref().map_or_else(Prices::published, Prices::read)?;
        let options = Options {
            visitors: self.visitors,
            seats: self.seats,
            hours: self.hours,
            quiet_orders: self.quiet_orders,
            scale: self.scale,
            within: Duration::from_secs_f64(self.within),
            times: usize::from(self.times),
            seed: self.seed,
            assumptions: Assumptions {
                redis_ms,
                dynamodb_ms,
                sqs_ms,
                provider_ms,
                log_bytes,
                looks,
                ..Assumptions::default()
            },
            prices,
        };
        let report = cost::run(options).await?;
        out(&if json { report.json() } else { report.tables() })
    }
}
