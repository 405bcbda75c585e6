//! The options of every command that has a crowd.

use std::time::Duration;

use clap::Args;

use loadtest::arrivals::Shape;
use loadtest::profile::LoadProfile;
use loadtest::{CONNECTIONS, Load};

/// How many are on the site at once in a closed loop.
const AT_ONCE: usize = 64;
/// In how many seconds the crowd of an open loop comes.
const WITHIN_SECONDS: f64 = 60.0;

/// Who comes, and how.
#[derive(Debug, Args)]
pub struct CrowdArgs {
    /// How many people come, besides the late ones who take what is left.
    #[arg(long, visible_alias = "buyers", value_name = "N")]
    arrivals: Option<u64>,
    /// Open loop: they come within this time, in seconds, whether those before them were answered or not.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    within: Option<f64>,
    /// Open loop: how they are spread over that time.
    #[arg(long, value_enum, value_name = "SHAPE")]
    shape: Option<Shape>,
    /// Open loop: how many requests may be under way at once, each on its own connection.
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS)]
    connections: usize,
    /// Closed loop: this number is on the site at once, and the next one comes when one leaves.
    #[arg(long, value_name = "N", conflicts_with_all = ["within", "shape", "connections"])]
    at_once: Option<usize>,
    /// How people behave: all that happens, or everyone takes the best and pays, or as many of each.
    #[arg(long = "mix", value_name = "MIX", value_enum, default_value_t)]
    profile: LoadProfile,
    /// Seed of the crowd: the same seed brings the same people at the same moments.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Give up after this time, in seconds.
    #[arg(long, value_name = "N")]
    most_seconds: Option<u64>,
}

/// How a crowd comes unless it is said.
#[derive(Debug, Clone, Copy)]
pub struct Otherwise {
    pub arrivals: u64,
    /// In an open loop: the seconds within which they come, and the shape; `None` for a closed loop.
    pub open: Option<(f64, Shape)>,
    /// How long it may take, in seconds.
    pub most_seconds: u64,
}

impl Otherwise {
    /// A closed loop of `arrivals` people.
    #[must_use]
    pub const fn closed(arrivals: u64, most_seconds: u64) -> Self {
        Self { arrivals, open: None, most_seconds }
    }

    /// An open loop of `arrivals` people.
    #[must_use]
    pub const fn open(arrivals: u64, most_seconds: u64) -> Self {
        Self { arrivals, open: Some((WITHIN_SECONDS, Shape::Opening)), most_seconds }
    }
}

impl CrowdArgs {
    /// How the crowd comes.
    #[must_use]
    pub fn load(&self, otherwise: Otherwise) -> Load {
        let arrivals = self.arrivals.unwrap_or(otherwise.arrivals);
        let is_closed = otherwise.open.is_none() && self.within.is_none() && self.shape.is_none();
        if self.at_once.is_some() || is_closed {
            return Load::Closed { arrivals, at_once: self.at_once.unwrap_or(AT_ONCE) };
        }
        let (within, shape) = otherwise.open.unwrap_or((WITHIN_SECONDS, Shape::Opening));
        Load::Open {
            arrivals,
            within_seconds: self.within.unwrap_or(within),
            shape: self.shape.unwrap_or(shape),
            connections: self.connections,
        }
    }

    /// The shares of the behaviours.
    #[must_use]
    pub fn profile(&self) -> LoadProfile {
        self.profile
    }

    /// The seed of the crowd.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// True if the command says how long it may take.
    #[must_use]
    pub fn says_how_long(&self) -> bool {
        self.most_seconds.is_some()
    }

    /// How long it may take.
    #[must_use]
    pub fn most(&self, otherwise: Otherwise) -> Duration {
        Duration::from_secs(self.most_seconds.unwrap_or(otherwise.most_seconds))
    }
}

/// A number of seconds: more than none, and at most a day.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let good = seconds > 0.0 && seconds <= 86_400.0;
    if good { Ok(seconds) } else { Err("more than 0 and at most 86400 are needed".to_owned()) }
}
