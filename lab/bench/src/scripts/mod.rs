//! What each script costs the server, beside a script that does nothing and beside the usual way.
//!
//! A server of its own is started and sales are [loaded](halls) and filled through the
//! production adapter. At each fill everything the server holds is kept; each round sets it back, so
//! that every round meets the same state, with the cursors that a real sale has left. What a call
//! took is the server's own count ([`counters`]): `usec` of `evalsha`, in which the commands that the
//! script ran are contained; these are counted beside it.
//!
//! All cases of a state take turns, round by round, so that what else the machine does meets all of
//! them. The report gives the best round and the median of the rounds.

pub mod baselines;
mod cases;
pub mod counters;
mod crowd;
mod growth;
pub mod halls;
mod parts;
mod report;
mod rig;
mod throughput;

use engine::ports::StoreError;
use serde::Serialize;

use local::servers::{self, Flavour};
use rig::Rig;

pub use baselines::Baseline;
pub use parts::Part;
pub use report::{FROM_THE_FRONT, Figure, Report, Row};
pub use throughput::Throughput;

/// Options of the measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server to measure.
    pub server: Flavour,
    /// The sizes of the tiers of a show, in seats.
    pub seats: Vec<u32>,
    /// True if the train is measured too.
    pub train: bool,
    /// Shares of a sale that are taken when it is measured, in per cent, ascending.
    pub fills: Vec<u32>,
    /// Number of times that everything is measured.
    pub rounds: usize,
    /// Calls of each kind in a round; fewer where that number would change the fill.
    pub calls: usize,
    /// The seed of the crowd.
    pub seed: u64,
    /// Loads under which the throughput is compared.
    pub throughput: Vec<Load>,
    pub subject: Subject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Every script in every state, and the throughput.
    Scripts,
    /// How `hold` grows with seats, tiers and legs.
    Growth,
    /// `hold`, cut off after each of its parts.
    Parts,
}

/// Number of requests that are under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Load {
    pub connections: usize,
    /// Requests sent on each before their replies are read.
    pub depth: usize,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server did not start.
    #[error(transparent)]
    Server(#[from] servers::Error),
    #[error("a script failed: {0}")]
    Store(#[from] StoreError),
    /// The server refused something else.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
    #[error("the connection: {0}")]
    Io(#[from] std::io::Error),
    /// The server answered what it cannot have meant.
    #[error("{0}")]
    Unexpected(String),
}

/// Measures.
///
/// # Errors
/// Fails if the server does not start, or does not do what it is asked.
pub async fn run(options: &Options) -> Result<Report, Error> {
    let mut rig = Rig::start(options.server).await?;
    let mut report = Report::new(&mut rig, options).await?;
    match options.subject {
        Subject::Scripts => {
            for hall in halls::of(options)? {
                report.rows.extend(cases::measure(&mut rig, &hall, options).await?);
            }
            for load in &options.throughput {
                report.throughput.push(throughput::measure(&mut rig, *load, options).await?);
            }
        }
        Subject::Growth => report.rows = growth::measure(&mut rig, options).await?,
        Subject::Parts => report.parts = parts::measure(&mut rig, options).await?,
    }
    report.noop = rig.noop(options.rounds, options.calls.max(1)).await?;
    report.compare();
    Ok(report)
}
