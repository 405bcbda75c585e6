//! How a crowd comes, and what else a load test can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use engine::domain::payment::grace::Grace;
use local::endpoints::Endpoints;
use serde::Serialize;

use super::arrivals::Shape;
use super::pages::Shares;
use super::people::plan::Crowd;
use super::profile::{self, LoadProfile};
use super::rehearsal::Rehearsal;

/// Most requests under way at once unless chosen otherwise; the gateway takes 400 connections.
pub const CONNECTIONS: usize = 256;

/// Arrival of the crowd: open or closed loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "loop")]
pub enum Load {
    Open {
        arrivals: u64,
        /// Time in which they come, in seconds.
        within_seconds: f64,
        /// Distribution of the arrivals over that time.
        shape: Shape,
        /// Number of requests that may be under way at once.
        connections: usize,
    },
    /// The next one when one leaves.
    Closed {
        arrivals: u64,
        /// Number of people on the site at once.
        at_once: usize,
    },
}

impl Load {
    /// Number of people, without the late ones.
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

    /// Number of late people on the site at once.
    pub(super) fn late_at_once(self) -> usize {
        match self {
            Self::Open { connections, .. } => connections.min(64),
            Self::Closed { at_once, .. } => at_once.max(1),
        }
    }
}

/// How a payment provider repeats a callback that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallbackRepeats {
    /// As the table of limits has it ([`fake_limits::stripe::callback_gap`]): after a minute, and ever later.
    /// Until then the engine has to find the capture by itself.
    #[default]
    Later,
    /// Within seconds, as buyers repeat their requests: for faults, so that repeated callbacks meet what a fault
    /// has left, and nobody waits a minute for one.
    Soon,
}

/// The options of a load test.
#[derive(Debug, Clone)]
pub struct Options {
    /// The gateway, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The sales to buy from.
    pub sales: Vec<String>,
    /// Arrival of the crowd: open or closed loop.
    pub load: Load,
    /// Which classes of people and bots come in an open loop.
    pub crowd: Crowd,
    /// The shares of the behaviours.
    pub profile: LoadProfile,
    /// The seed of the crowd.
    pub seed: u64,
    /// The longest that it may take.
    pub most: Duration,
    /// True if a closed loop gets more time where its first seconds show that the machine is slow.
    pub may_take_longer: bool,
    /// File for the ledger, if one is written.
    pub ledger: Option<PathBuf>,
    /// True if progress bars are drawn.
    pub progress: bool,
    /// How the provider repeats callbacks that failed.
    pub callback_repeats: CallbackRepeats,
    /// Which share of the buyers pays on the page of which provider, if people pay there; else the crowd calls back
    /// itself, as Stripe would. What buyers do that is odd (another amount, a second payment, money that comes late)
    /// is always called back by the crowd. Needs `endpoints`.
    pub pages: Option<Shares>,
    /// How long the engine's unpaid orders wait past their deadline.
    pub grace: Grace,
    /// Where the engine's processor time is known, if it runs on this machine.
    pub endpoints: Option<Endpoints>,
    /// The deployment that is loaded in place of `url`, and what protects it. Nobody takes what is left then.
    pub rehearsal: Option<Rehearsal>,
}
