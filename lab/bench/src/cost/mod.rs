//! `onsale cost`: what AWS would ask for a sale, from what this engine is seen to use.
//!
//! Each kind of work is done by the very handlers, on servers of their own, while proxies and the servers
//! themselves count what is paid for. A load test, as large as this machine likes, says how often each kind
//! of work comes. Both are multiplied by a table of prices. `docs/cost.md` says what is measured, what is
//! assumed and what is left out.

mod actions;
mod bill;
mod environment;
mod forecast;
mod money;
mod prices;
mod report;
mod room;
mod scenario;
mod usage;
pub mod watch;

pub use actions::{Action, Measured};
pub(crate) use actions::{Who, request};
pub use bill::{Bill, Fixed};
pub(crate) use environment::{Environment, Look};
pub use forecast::{Forecast, Plan, forecast};
pub use prices::{Prices, read_json};
pub use report::Report;
pub use scenario::{Assumptions, Scenario};
pub use usage::{Line, Usage};

use std::time::Duration;

use serde::Serialize;

/// Reason why it could not be measured, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Options of a cost estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Options {
    pub visitors: u64,
    pub seats: u32,
    /// Hours for which the sale is open.
    pub hours: f64,
    /// Number of orders of a quiet month.
    pub quiet_orders: u64,
    /// Divisor of people and seats for the load test that counts how often each kind of work occurs.
    pub scale: u32,
    /// The seconds within which the people of that load test come.
    pub within: Duration,
    /// Measurements of each kind of work.
    pub times: usize,
    /// Seed of that crowd.
    pub seed: u64,
    /// Assumptions about what cannot be measured here.
    pub assumptions: Assumptions,
    /// Prices of the services.
    pub prices: Prices,
}

/// Measures, and writes the bills.
///
/// # Errors
/// The servers do not start, or the engine does not do what it is asked.
pub async fn run(options: Options) -> Result<Report, Failure> {
    let environment = Environment::start().await?;
    let measured = actions::measure(&environment, &options).await;
    environment.stop().await?;
    let measured = measured?;
    let scenario = scenario::run(&options).await?;
    Ok(Report::from_load_test(options, measured, scenario))
}
