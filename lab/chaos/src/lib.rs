//! `onsale chaos`: breaks real servers while a crowd buys, one fault after the other, and after each
//! has the stores audited with the crowd's ledger.
//!
//! A [`rig`] is everything that runs: real servers, [`proxy`]s in front of them, and the engine as a
//! process of its own. A crowd without an end buys from it. In each [`round`] a [fault](faults) begins
//! at a moment drawn from the seed, lasts, and is mended; the crowd buys on, rests, and both stores
//! are compared. Each round opens one of the waiting [`rooms`] too, which is verified at the end, an operator
//! refunds paid orders, a buyer pays from a wallet and exchanges tickets, and a webhook hears of everything.
//! `docs/chaos.md` says what is measured and how.

pub mod engine_process;
pub mod fakes;
pub mod faults;
mod hearer;
mod joiner;
mod persistent;
pub mod proxy;
mod refunder;
pub mod report;
pub mod rig;
pub mod rooms;
pub mod round;
mod trader;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use engine::domain::basics::ids::InvalidId;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use loadtest::controller::Controller;
use loadtest::credentials::Credentials;
use loadtest::profile::LoadProfile;
use loadtest::{CallbackRepeats, Load, LoadTestError};
use local::data_dir;
use local::endpoints::{Endpoints, EndpointsError};
use local::payment::{SEARCH_LAG_SECONDS, grace};
use local::servers;
use ops::audit::AuditError;

use self::faults::{Fault, FaultContext, Kind};
use self::hearer::Hearer;
use self::refunder::Refunder;
use self::report::{Report, Season};
use self::rig::{Profile, Rig, Setup};
use self::rooms::Rooms;
use self::round::{Ledger, Rounds};
use self::trader::Trader;

/// The most rounds on one rig: every audit reads all that was ever sold on it.
const MAX_ROUNDS: usize = 25;
/// Number of seats for each round, on each of two legs: more than the crowd buys in it.
const SEATS_A_ROUND: u32 = 400;
/// The longest that a crowd may be there.
const MAX_CROWD: Duration = Duration::from_secs(24 * 3600);

/// Options of a chaos run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Options of each rig; the number of seats follows from the number of rounds.
    pub setup: Setup,
    /// Number of buyers at once.
    pub buyers: usize,
    /// Time that anything may take before it is a violation that it has not happened.
    pub deadline: Duration,
    /// Time that the stores may take to agree when the crowd rests.
    pub settle: Duration,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A server did not start, stop or answer.
    #[error(transparent)]
    Servers(#[from] servers::Error),
    /// Redis did not answer us.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
    /// The cluster is not what it should be.
    #[error("the cluster: {0}")]
    Cluster(String),
    /// A process ended that should not.
    #[error("{0}")]
    Ended(String),
    /// A fault was asked for on a rig that has nothing it could break.
    #[error("this fault needs another Redis than the rig has")]
    WrongProfile,
    /// The engine refused the sale.
    #[error("the sale was refused: {0}")]
    Refused(String),
    /// The engine did not answer the operator.
    #[error("the engine does not answer: {0}")]
    Client(#[from] reqwest::Error),
    /// Our sale is no sale file.
    #[error("the sale cannot be read: {0}")]
    Sale(#[from] serde_json::Error),
    /// One of our own names is refused by our own rules.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// A development token could not be signed.
    #[error(transparent)]
    Token(#[from] fake_identity::Refused),
    /// The engine's secrets cannot be read.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// The engine's endpoints cannot be read.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// The crowd could not begin.
    #[error(transparent)]
    LoadTest(#[from] LoadTestError),
    /// A store could not be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// The action that took too long.
        what: String,
        source: io::Error,
    },
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// What is broken, in which order, on which rigs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan(Vec<(Profile, Vec<Kind>)>);

impl Plan {
    /// These faults, each `times` times, those of one profile together.
    #[must_use]
    pub fn from_faults(faults: &[Kind], times: usize) -> Self {
        let seasons = [Profile::Single, Profile::Cluster].into_iter().flat_map(|profile| {
            let of_profile = || faults.iter().filter(move |kind| kind.profile() == profile);
            let all: Vec<Kind> = (0..times).flat_map(|_| of_profile()).copied().collect();
            let chunks: Vec<_> =
                all.chunks(MAX_ROUNDS).map(|chunk| (profile, chunk.to_vec())).collect();
            chunks
        });
        Self(seasons.collect())
    }

    /// `kills` kills, drawn from a seed: of the engine, of a Valkey whose replica lags, and of the
    /// master of a cluster.
    #[must_use]
    pub fn from_kills(kills: usize, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut seasons = Vec::new();
        let mut left = kills;
        for profile in [Profile::Single, Profile::Cluster].into_iter().cycle() {
            if left == 0 {
                break;
            }
            let server = match profile {
                Profile::Single => Kind::KillRedis,
                Profile::Cluster => Kind::KillMaster,
            };
            let here = left.min(MAX_ROUNDS);
            let draw = |_| if random.random_bool(0.5) { Kind::KillEngine } else { server };
            seasons.push((profile, (0..here).map(draw).collect()));
            left -= here;
        }
        Self(seasons)
    }

    /// Number of its faults.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.0.iter().map(|(_, faults)| faults.len()).sum()
    }
}

/// Runs a plan. `progress` is called with each round when it is over.
///
/// # Errors
/// Fails if something cannot be started or read; what breaks a rule is in the report.
pub async fn run(
    options: &Options,
    plan: &Plan,
    mut progress: impl FnMut(&round::Round),
) -> Result<Report, Error> {
    let mut seasons = Vec::new();
    for (index, (profile, kinds)) in plan.0.iter().enumerate() {
        let faults = kinds.iter().map(|kind| (kind.fault(), kind.bound_seconds())).collect();
        let seed = options.setup.seed.wrapping_add(reporting::count(index));
        let setup = Setup { seed, ..options.setup.clone() };
        let options = Options { setup, ..options.clone() };
        let season = season(&options, *profile, faults, &mut progress).await?;
        let goes_on = season.violations().next().is_none();
        seasons.push(season);
        if !goes_on {
            break;
        }
    }
    Ok(Report::new(&options.setup, options.buyers, seasons))
}

/// Starts a rig and a crowd, and breaks these things, each with the bound that I7 has for it, until one
/// leaves something broken.
///
/// # Errors
/// As [`run`].
pub async fn season(
    options: &Options,
    profile: Profile,
    faults: Vec<(Box<dyn Fault>, u32)>,
    mut progress: impl FnMut(&round::Round),
) -> Result<Season, Error> {
    let seats = SEATS_A_ROUND * (faults.len() as u32 + 2);
    let setup = Setup { seats, ..options.setup.clone() };
    let rig = Rig::start(profile, &setup).await?;
    let ledger = Ledger::new(rig.dir().join("ledger.jsonl"));
    let controller = Arc::new(Controller::default());
    // First: a webhook hears of what is settled from its making on.
    let hearer = Hearer::start(&rig, &setup.program, setup.seed).await?;
    let crowd = start_crowd(options, &rig, &ledger, &controller)?;
    let random = StdRng::seed_from_u64(setup.seed);
    let refunder = Refunder::new(&rig, setup.seed)?;
    let trader = timeout(options.deadline, Trader::start(&rig, setup.seed)).await;
    let trader = trader.map_err(|_elapsed| Error::Refused("no wallet was filled".to_owned()))??;
    let context = FaultContext { rig, controller: Arc::clone(&controller), random };
    let people = (Rooms::new(&setup), refunder, trader, hearer);
    let mut rounds = Rounds::new(context, ledger, people, options);
    let mut done = Vec::new();
    let most_bound = faults.iter().map(|(_, bound_seconds)| *bound_seconds).max().unwrap_or(0);
    for (fault, bound_seconds) in faults {
        let round = rounds.round(fault, bound_seconds).await?;
        progress(&round);
        let is_over = !round.violations.is_empty();
        done.push(round);
        if is_over {
            break;
        }
    }
    controller.go_on();
    controller.leave();
    let mut violations = rounds.defects()?;
    let mut acknowledged = controller.acknowledged();
    match timeout(options.deadline, crowd).await {
        Ok(ended) => {
            let crowd = ended.map_err(|_panicked| LoadTestError::Ended)??;
            acknowledged = acknowledged.max(crowd.orders);
            violations.extend(crowd.anomalies.into_iter().map(|what| format!("a buyer: {what}")));
            if done.iter().all(|round| round.violations.is_empty()) {
                violations.extend(rounds.last(most_bound).await?);
                violations.extend(rounds.last_of_trades(most_bound).await?);
                violations.extend(rounds.last_of_events(&setup.program, most_bound).await?);
                violations.extend(rounds.last_of_rooms(&setup.program, most_bound).await?);
            }
        }
        Err(_elapsed) => violations.push("the crowd did not come to an end".to_owned()),
    }
    let throttled = rounds.throttled();
    let tiers_apart = setup.keeps_tiers_apart();
    let (rooms, refunded, told) = (rounds.rooms(), rounds.refunded(), rounds.told());
    let exchanged = rounds.exchanged();
    Ok(Season {
        profile,
        tiers_apart,
        rounds: done,
        acknowledged,
        refunded,
        exchanged,
        told,
        rooms,
        violations,
        throttled,
    })
}

fn start_crowd(
    options: &Options,
    rig: &Rig,
    ledger: &Ledger,
    controller: &Arc<Controller>,
) -> Result<JoinHandle<Result<loadtest::report::Report, LoadTestError>>, Error> {
    let crowd = loadtest::Options {
        url: rig.url().to_owned(),
        sales: vec![rig.sale().to_string()],
        load: Load::Closed { arrivals: u64::MAX, at_once: options.buyers },
        profile: LoadProfile::Fickle,
        seed: options.setup.seed,
        most: MAX_CROWD,
        may_take_longer: false,
        ledger: Some(ledger.path().to_owned()),
        progress: false,
        callback_repeats: CallbackRepeats::Soon,
        pages: None,
        grace: grace(SEARCH_LAG_SECONDS),
        // Their money is at the provider, or none of it could go back.
        endpoints: Some(Endpoints::read(rig.dir())?),
        rehearsal: None,
        crowd: loadtest::people::plan::Crowd::default(),
    };
    let credentials = Credentials::new(&rig.secrets()?);
    let controller = Arc::clone(controller);
    Ok(tokio::spawn(async move { loadtest::run_on(&crowd, credentials, controller).await }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_puts_together_what_needs_the_same_redis() {
        let faults = [Kind::KillMaster, Kind::Flush, Kind::KillEngine];
        let Plan(seasons) = Plan::from_faults(&faults, 2);
        let (single, cluster) = (&seasons[0], &seasons[1]);
        assert_eq!(single.0, Profile::Single);
        assert_eq!(single.1, [Kind::Flush, Kind::KillEngine, Kind::Flush, Kind::KillEngine]);
        assert_eq!(cluster, &(Profile::Cluster, vec![Kind::KillMaster; 2]));
    }

    #[test]
    fn kills_are_mixed_counted_and_repeated_by_their_seed() {
        let plan = Plan::from_kills(100, 7);
        assert_eq!((plan.rounds(), plan.0.len()), (100, 4));
        for kind in [Kind::KillEngine, Kind::KillRedis, Kind::KillMaster] {
            let count =
                plan.0.iter().flat_map(|(_, kinds)| kinds).filter(|is| **is == kind).count();
            assert!(count >= 15, "{} {count} times", kind.name());
        }
        assert_eq!(plan, Plan::from_kills(100, 7));
        assert_ne!(plan, Plan::from_kills(100, 8));
    }
}
