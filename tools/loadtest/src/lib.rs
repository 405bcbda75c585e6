//! `onsale rush`: a seeded crowd that competes for the seats of some sales over HTTP.
//!
//! In the open loop people come when a shape says so, whether those before them were answered or not.
//! In the closed loop so many are on the site at once, and the next comes when one leaves. Either way,
//! late buyers then take what was cancelled, expired or left over in single seats and single legs,
//! until nothing is left. `docs/rush.md` says what is measured and how.
//!
//! The crowd runs in a thread of its own: its processor time can be told from the engine's, and nothing
//! in it needs a lock.

pub mod arrivals;
mod behaviour;
mod charts;
pub mod client;
pub mod controller;
pub mod cpu;
pub mod credentials;
pub mod demo;
mod late;
pub mod ledger;
mod open_loop;
pub mod page;
pub mod profile;
mod progress;
pub mod published;
pub mod replay;
pub mod report;
pub mod series;
pub mod session;
pub mod stopwatch;
pub mod tally;
pub mod venue;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::domain::ids::Legs;
use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::cpu::{GENERATOR_THREADS, Meter, Shares};
use local::endpoints::Endpoints;

use self::arrivals::Shape;
use self::client::{BadAddress, Client};
use self::controller::Controller;
use self::credentials::Credentials;
use self::ledger::Ledger;
use self::profile::LoadProfile;
use self::progress::Progress;
use self::report::{Report, Sold};
use self::series::Series;
use self::session::Rush;
use self::tally::Tally;
use self::venue::Venue;

/// How many requests may be under way at once unless told otherwise; the gateway takes 400
/// connections.
pub const CONNECTIONS: usize = 256;
/// How often the progress is drawn.
const REDRAW: Duration = Duration::from_millis(250);

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

    fn connections(self) -> usize {
        match self {
            Self::Open { connections, .. } => connections,
            // Whoever is on the site may have a bot's twenty requests or two at once.
            Self::Closed { at_once, .. } => at_once.max(1) + profile::HAMMERS,
        }
    }

    /// How many of the late are on the site at once.
    fn late_at_once(self) -> usize {
        match self {
            Self::Open { connections, .. } => connections.min(64),
            Self::Closed { at_once, .. } => at_once.max(1),
        }
    }
}

/// What a rush is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The gateway, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The sales to rush for.
    pub sales: Vec<String>,
    /// How the crowd comes.
    pub load: Load,
    /// Who is in it.
    pub mix: LoadProfile,
    /// The seed of the crowd.
    pub seed: u64,
    /// The longest that it may take.
    pub most: Duration,
    /// Where to write what was promised, if anywhere.
    pub ledger: Option<PathBuf>,
    /// Whether to draw progress bars.
    pub progress: bool,
    /// Where the engine's processor time is known, if it runs on this machine.
    pub endpoints: Option<Endpoints>,
}

/// Why a rush could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadTestError {
    /// The gateway's address is none.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// The ledger could not be opened, or the crowd's thread not be started.
    #[error("the crowd cannot begin: {0}")]
    Io(#[from] std::io::Error),
    /// A sale could not be read.
    #[error("{0}")]
    Sale(String),
    /// The crowd's thread failed.
    #[error("the crowd's thread ended before its time")]
    Ended,
}

/// Runs the crowd, then the late buyers, in a thread of their own.
///
/// # Errors
/// Fails if it cannot begin; what goes wrong on the way is in the report.
pub async fn run(options: &Options, credentials: Credentials) -> Result<Report, LoadTestError> {
    in_a_thread(options.clone(), credentials, None).await
}

/// Runs a closed loop without an end, in a thread of its own, until its controller say that it is over.
/// Nobody sells the rest.
///
/// # Errors
/// As [`run`].
pub async fn run_on(
    options: &Options,
    credentials: Credentials,
    controller: Arc<Controller>,
) -> Result<Report, LoadTestError> {
    in_a_thread(options.clone(), credentials, Some(controller)).await
}

async fn in_a_thread(
    options: Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<Report, LoadTestError> {
    let (mut done, outcome) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(GENERATOR_THREADS.to_owned()).spawn(move || {
        LocalSet::new().block_on(&runtime, async move {
            tokio::select! {
                report = go(&options, credentials, controller) => {
                    // Whoever asked may have lost interest meanwhile.
                    let _unheard = done.send(report);
                }
                () = done.closed() => {}
            }
        });
    })?;
    outcome.await.map_err(|_gone| LoadTestError::Ended)?
}

async fn go(
    options: &Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<Report, LoadTestError> {
    let client = Client::new(&options.url, options.load.connections())?.watched(controller.clone());
    let provider = options
        .endpoints
        .as_ref()
        .map(|endpoints| Client::new(&endpoints.provider, options.load.connections()));
    let mut venues = Vec::new();
    for sale in &options.sales {
        venues.push(Venue::read(&client, sale).await.map_err(LoadTestError::Sale)?);
    }
    let ledger =
        options.ledger.as_deref().map_or_else(|| Ok(Ledger::default()), Ledger::in_file)?;
    let weights: Vec<u64> = venues.iter().map(|venue| venue.sale.seat_legs()).collect();
    let seats = weights.iter().sum();
    let rush = Rc::new(Rush {
        client,
        provider: provider.transpose()?,
        venues,
        weights,
        tally: Tally::default(),
        ledger,
        credentials,
        mix: options.mix,
        seed: options.seed,
        unhurried: matches!(options.load, Load::Open { .. }),
        busy: Rc::default(),
        waiting: Cell::default(),
        controller,
    });
    let progress = Progress::new(options.progress, options.load.arrivals(), seats);
    let plan = match options.load {
        Load::Open { arrivals, within_seconds, shape, .. } => {
            arrivals::plan(shape, arrivals, Duration::from_secs_f64(within_seconds), options.seed)
        }
        Load::Closed { .. } => Vec::new(),
    };
    let meter = meter(options.endpoints.as_ref()).await;
    let started = Instant::now();
    let until = started + options.most;
    let series = RefCell::new(Series::new(started));
    let crowd = async {
        match options.load {
            Load::Open { .. } => rush.open_loop(&plan, started, until).await,
            Load::Closed { arrivals, at_once } => rush.closed_loop(arrivals, at_once, until).await,
        }
        match &rush.controller {
            None => rush.sell_the_rest(options.load.late_at_once(), until).await,
            Some(_) => {
                while rush.busy.count() > 0 && Instant::now() < until {
                    rush.busy.changed().await;
                }
                false
            }
        }
    };
    let sold_out = tokio::select! {
        sold_out = crowd => sold_out,
        () = watch(&rush, meter.as_ref(), &series, &progress) => false,
    };
    let took = started.elapsed();
    let cpu = shares(meter.as_ref()).await;
    series.borrow_mut().take(&rush, cpu.as_ref());
    progress.finish();
    let sales = rush.sold().await;
    let samples = series.into_inner().into_samples();
    Ok(Report { cpu, ..Report::of(&rush, options, started, took, sold_out, sales, samples) })
}

/// Begins the account of the processors, where there is one to be had.
async fn meter(endpoints: Option<&Endpoints>) -> Option<Meter> {
    let meter = Meter::start(endpoints?).await;
    meter.inspect_err(|error| tracing::warn!(%error, "no account of the processors")).ok()
}

async fn shares(meter: Option<&Meter>) -> Option<Shares> {
    let shares = meter?.read().await;
    shares.inspect_err(|error| tracing::warn!(%error, "no account of the processors")).ok()
}

/// Samples and draws, for as long as it is let.
async fn watch(rush: &Rush, meter: Option<&Meter>, series: &RefCell<Series>, progress: &Progress) {
    let mut ticks = tokio::time::interval(REDRAW);
    let mut sampled = Instant::now();
    loop {
        ticks.tick().await;
        progress.move_on(rush);
        if sampled.elapsed() >= series::PERIOD {
            sampled += series::PERIOD;
            let cpu = shares(meter).await;
            progress.say(series.borrow_mut().take(rush, cpu.as_ref()));
        }
    }
}

impl Rush {
    /// The next one comes when one leaves.
    async fn closed_loop(self: &Rc<Self>, arrivals: u64, at_once: usize, until: Instant) {
        let next = Cell::new(0);
        let places = stream::iter(0..at_once.max(1)).for_each_concurrent(None, |_| async {
            loop {
                let index = next.get();
                let is_over =
                    self.controller.as_ref().is_some_and(|controller| controller.is_over());
                if index >= arrivals || is_over || Instant::now() >= until {
                    return;
                }
                next.set(index + 1);
                let _turn = self.turn().await;
                self.visit(self.buyer(index)).await;
            }
        });
        places.await;
    }

    /// How much of each sale is gone, as far as the gateway says.
    async fn sold(&self) -> Vec<Sold> {
        let mut sales = Vec::new();
        for venue in &self.venues {
            let seat_legs = venue.sale.seat_legs();
            let mut left = 0;
            for leg in venue.sale.whole().iter() {
                let Some(leg) = Legs::new(leg, leg + 1) else { continue };
                let tiers = self.left(venue, leg, true).await;
                left += tiers.map_or(seat_legs, |tiers| {
                    tiers.values().map(|tier| u64::from(tier.count)).sum::<u64>()
                });
            }
            let sale = venue.sale.id().to_string();
            sales.push(Sold { sale, seat_legs, taken: seat_legs.saturating_sub(left) });
        }
        sales
    }
}
