//! `onsale rush`: a seeded crowd that competes for the seats of some sales over HTTP.
//!
//! The crowd is a closed loop: so many people are on the site at once, and the next comes when one
//! leaves. Afterwards late buyers take what was cancelled, expired or left over in single seats and
//! single legs, until nothing is left.

pub mod client;
pub mod credentials;
pub mod crowd;
mod late;
pub mod ledger;
pub mod report;
pub mod venue;
pub mod visit;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cpu::{Meter, Shares};
use crate::endpoints::Endpoints;
use crate::rush::client::Client;
use crate::rush::credentials::Credentials;
use crate::rush::ledger::Ledger;
use crate::rush::report::{Latency, Report, Sold};
use crate::rush::venue::Venue;
use crate::rush::visit::{Rush, Tally};

/// What a rush is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The gateway, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The sales to rush for.
    pub sales: Vec<String>,
    /// How many people come before the late ones.
    pub buyers: u64,
    /// How many are on the site at once.
    pub at_once: usize,
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
pub enum RushError {
    /// The HTTP client could not be built.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The ledger could not be opened.
    #[error("the ledger cannot be opened: {0}")]
    Ledger(#[from] std::io::Error),
    /// A sale could not be read.
    #[error("{0}")]
    Sale(String),
}

/// Runs the crowd, then the late buyers.
///
/// # Errors
/// Fails if it cannot begin; what goes wrong on the way is in the report.
pub async fn run(
    options: &Options,
    credentials: Credentials,
) -> Result<(Report, Ledger), RushError> {
    let client = Client::new(&options.url)?;
    let mut venues = Vec::new();
    for sale in &options.sales {
        venues.push(Venue::read(&client, sale).await.map_err(RushError::Sale)?);
    }
    let ledger =
        options.ledger.as_deref().map_or_else(|| Ok(Ledger::default()), Ledger::in_file)?;
    let rush = Rush { client, venues, tally: Tally::default(), ledger, credentials };
    let weights: Vec<u64> = rush.venues.iter().map(|venue| venue.sale.seat_legs()).collect();
    let meter = meter(options.endpoints.as_ref()).await;
    let started = Instant::now();
    let until = started + options.most;

    let bars = MultiProgress::with_draw_target(if options.progress {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    });
    let arrivals = bars.add(bar("buyers", options.buyers));
    let tickets = bars.add(bar("tickets sold", 0));
    let next = AtomicU64::new(0);
    let crowd = stream::iter(0..options.at_once.max(1)).for_each_concurrent(None, |_| async {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= options.buyers || Instant::now() >= until {
                return;
            }
            rush.visit(&crowd::buyer(options.seed, index, &weights)).await;
            arrivals.inc(1);
            tickets.set_position(rush.tally.tickets.load(Ordering::Relaxed));
        }
    });
    crowd.await;
    arrivals.finish();
    let came = rush.tally.buyers.load(Ordering::Relaxed);
    let sold_out = rush.sell_the_rest(options.at_once, until).await;
    tickets.finish();

    let took = started.elapsed();
    let cpu = shares(meter.as_ref()).await;
    let report = Report { cpu, ..rush.report(options, took, came, sold_out).await };
    Ok((report, rush.ledger))
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

fn bar(what: &'static str, length: u64) -> ProgressBar {
    let template = if length > 0 {
        "{msg:>14} {bar:40} {pos}/{len} {per_sec} {eta}"
    } else {
        "{msg:>14} {spinner} {pos} {per_sec}"
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style).with_message(what)
}

impl Rush {
    async fn report(&self, options: &Options, took: Duration, came: u64, sold_out: bool) -> Report {
        let tally = &self.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut sales = Vec::new();
        for venue in &self.venues {
            let mut left = 0;
            for leg in venue.sale.whole().iter() {
                let Some(leg) = shared::domain::ids::Legs::new(leg, leg + 1) else { continue };
                let tiers = venue.left(&self.client, leg, true).await;
                left +=
                    tiers.map_or(0, |tiers| tiers.values().map(|tier| u64::from(tier.count)).sum());
            }
            let seat_legs = venue.sale.seat_legs();
            sales.push(Sold {
                sale: venue.sale.id().to_string(),
                seat_legs,
                taken: seat_legs.saturating_sub(left),
            });
        }
        let seconds = took.as_secs_f64();
        let latency = self.client.latencies().into_iter().map(|(endpoint, of)| {
            let ms = |micros: u64| micros as f64 / 1000.0;
            let latency = Latency {
                requests: of.len(),
                p50_ms: ms(of.value_at_quantile(0.5)),
                p95_ms: ms(of.value_at_quantile(0.95)),
                p99_ms: ms(of.value_at_quantile(0.99)),
                max_ms: ms(of.max()),
            };
            (endpoint.name(), latency)
        });
        Report {
            seed: options.seed,
            mix: crowd::MIX,
            seconds,
            buyers: read(&tally.buyers),
            late_buyers: read(&tally.buyers) - came,
            orders: read(&tally.orders),
            paid: read(&tally.paid),
            tickets: read(&tally.tickets),
            cancelled: read(&tally.cancelled),
            forgotten: read(&tally.forgotten),
            repeats: read(&tally.repeats),
            orders_per_second: read(&tally.orders) as f64 / seconds,
            sold_out,
            sales,
            refusals: tally.refusals(),
            latency: latency.collect(),
            anomalies: tally.anomalies(),
            cpu: None,
        }
    }
}
