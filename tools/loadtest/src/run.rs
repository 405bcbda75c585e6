//! A load test from its first buyer to its report, in a thread of its own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::domain::ids::Legs;
use futures_util::stream::{self, StreamExt as _};
use local::endpoints::Endpoints;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::arrivals;
use super::client::{BadAddress, Client};
use super::controller::Controller;
use super::cpu::{GENERATOR_THREADS, Meter, Shares};
use super::credentials::Credentials;
use super::ledger::Ledger;
use super::options::{Load, Options};
use super::progress::Progress;
use super::report::{Report, Sold};
use super::series::{self, Series};
use super::session::LoadTest;
use super::tally::Tally;
use super::venue::Venue;

/// How often the progress is drawn.
const REDRAW: Duration = Duration::from_millis(250);

/// Why a load test could not begin.
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

/// Runs a closed loop without an end, in a thread of its own, until its controller ends it.
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
                report = execute(&options, credentials, controller) => {
                    // Whoever asked may have lost interest meanwhile.
                    let _unheard = done.send(report);
                }
                () = done.closed() => {}
            }
        });
    })?;
    outcome.await.map_err(|_gone| LoadTestError::Ended)?
}

/// What the sessions share: the clients, the sales as the gateway shows them, the ledger.
async fn prepare(
    options: &Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<LoadTest, LoadTestError> {
    let connections = options.load.connections();
    let client = Client::new(&options.url, connections)?.watched(controller.clone());
    let endpoints = options.endpoints.as_ref();
    let provider = endpoints.map(|endpoints| Client::new(&endpoints.provider, connections));
    let mut venues = Vec::new();
    for sale in &options.sales {
        venues.push(Venue::read(&client, sale).await.map_err(LoadTestError::Sale)?);
    }
    let ledger =
        options.ledger.as_deref().map_or_else(|| Ok(Ledger::default()), Ledger::in_file)?;
    let weights: Vec<u64> = venues.iter().map(|venue| venue.sale.seat_legs()).collect();
    Ok(LoadTest {
        client,
        provider: provider.transpose()?,
        grace: options.grace,
        venues,
        weights,
        tally: Tally::default(),
        ledger,
        credentials,
        profile: options.profile,
        seed: options.seed,
        unhurried: matches!(options.load, Load::Open { .. }),
        tasks: Rc::default(),
        waiting: Cell::default(),
        controller,
    })
}

async fn execute(
    options: &Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<Report, LoadTestError> {
    let test = Rc::new(prepare(options, credentials, controller).await?);
    let seats = test.weights.iter().sum();
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
            Load::Open { .. } => test.open_loop(&plan, started, until).await,
            Load::Closed { arrivals, at_once } => test.closed_loop(arrivals, at_once, until).await,
        }
        match &test.controller {
            None => test.sell_the_rest(options.load.late_at_once(), until).await,
            Some(_) => {
                while test.tasks.count() > 0 && Instant::now() < until {
                    test.tasks.changed().await;
                }
                false
            }
        }
    };
    let sold_out = tokio::select! {
        sold_out = crowd => sold_out,
        () = watch(&test, meter.as_ref(), &series, &progress) => false,
    };
    let took = started.elapsed();
    let cpu = shares(meter.as_ref()).await;
    series.borrow_mut().take(&test, cpu.as_ref());
    progress.finish();
    let sales = test.sold().await;
    let samples = series.into_inner().into_samples();
    Ok(Report { cpu, ..Report::of(&test, options, started, took, sold_out, sales, samples) })
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
async fn watch(
    test: &LoadTest,
    meter: Option<&Meter>,
    series: &RefCell<Series>,
    progress: &Progress,
) {
    let mut ticks = tokio::time::interval(REDRAW);
    let mut sampled = Instant::now();
    loop {
        ticks.tick().await;
        progress.move_on(test);
        if sampled.elapsed() >= series::PERIOD {
            sampled += series::PERIOD;
            let cpu = shares(meter).await;
            progress.say(series.borrow_mut().take(test, cpu.as_ref()));
        }
    }
}

impl LoadTest {
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
                self.run_session(self.buyer(index)).await;
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
                let Some(leg) = Legs::new(leg.0, leg.0 + 1) else { continue };
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
