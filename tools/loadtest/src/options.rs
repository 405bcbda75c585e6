//! How a crowd comes, and what else a load test can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use engine::domain::grace::Grace;
use local::endpoints::Endpoints;
use serde::Serialize;

use super::arrivals::Shape;
use super::profile::{self, LoadProfile};

/// How many requests may be under way at once unless chosen otherwise; the gateway takes 400
/// connections.
pub const CONNECTIONS: usize = 256;

/// How the crowd comes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "loop")]
pub enum Load {
    /// By the clock.
    Open {
        /// How many people come.
        arrivals: u64,
        /// In how many seconds.
        within_seconds: f64,
        /// How they are spread over that time.
        shape: Shape,
        /// How many requests may be under way at once.
        connections: usize,
    },
    /// The next one when one leaves.
    Closed {
        /// How many people come.
        arrivals: u64,
        /// How many are on the site at once.
        at_once: usize,
    },
}

impl Load {
    /// How many people come, besides the late ones.
    #[must_use]
    pub fn arrivals(self) -> u64 {
        match self {
            Self::Open { arrivals, .. } | Self::Closed { arrivals, .. } => arrivals,
        }
    }

    pub(super) fn connections(self) -> usize {
        match self {
            Self::Open { connections, .. } => connections,
            // Whoever is on the site may have a bot's twenty requests or two at once.
            Self::Closed { at_once, .. } => at_once.max(1) + profile::HAMMERS,
        }
    }

    /// How many of the late are on the site at once.
    pub(super) fn late_at_once(self) -> usize {
        match self {
            Self::Open { connections, .. } => connections.min(64),
            Self::Closed { at_once, .. } => at_once.max(1),
        }
    }
}

/// The options of a load test.
#[derive(Debug, Clone)]
pub struct Options {
    /// The gateway, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The sales to buy from.
    pub sales: Vec<String>,
    /// How the crowd comes.
    pub load: Load,
    /// The shares of the behaviours.
    pub profile: LoadProfile,
    /// The seed of the crowd.
    pub seed: u64,
    /// The longest that it may take.
    pub most: Duration,
    /// Where to write what was promised, if anywhere.
    pub ledger: Option<PathBuf>,
    /// Whether to draw progress bars.
    pub progress: bool,
    /// How long the engine's unpaid orders wait past their deadline.
    pub grace: Grace,
    /// Where the engine's processor time is known, if it runs on this machine.
    pub endpoints: Option<Endpoints>,
}
