//! `onsale replay`: an on-sale of which figures were published, once more on one machine: as many people
//! for as many tickets, in the time in which they were gone.

pub mod admission;
pub mod comparison;
pub mod stadium;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::domain::basics::ids::InvalidId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::GateSettings;
use serde::Serialize;

use self::admission::{ANSWER, AdmissionOptions};
use crate::cpu::{Meter, Part};
use crate::credentials::Credentials;
use crate::demo::{self, publish, settle};
use crate::profile::LoadProfile;
use crate::published::Published;
use crate::{LoadTestError, Shares};
use fake_limits::Limits;
use local::up::{self, Engine};
use ops::audit::facts::LedgerFacts;
use ops::audit::{self, AuditError, Target};

/// Time that buyers have to pay, in seconds: short, so that what is not paid is sold again in time.
pub const PAY_WINDOW_SECONDS: u32 = 20;
/// Time that the engine may take to settle after the last buyer.
const SETTLE: Duration = Duration::from_secs(120);

/// The options of a replay.
#[derive(Debug, Clone)]
pub struct Options {
    pub published: &'static Published,
    /// The part of it that is replayed: people and tickets alike.
    pub scale: f64,
    /// Arrival of the crowd: open or closed loop.
    pub load: crate::Load,
    /// The shares of the behaviours.
    pub profile: LoadProfile,
    /// Which share pays on the page of which provider; `None`: nobody opens a page, and the provider calls back.
    pub pages: Option<Shares>,
    /// The seed of the crowd.
    pub seed: u64,
    /// The longest that the crowd may take.
    pub most: Duration,
    /// Admissions a second of the gate.
    pub rate_per_second: u32,
    /// Who comes, and how they are let in.
    pub admission: AdmissionOptions,
    /// True if progress bars are drawn.
    pub progress: bool,
    /// The limits of the services.
    pub limits: Limits,
    pub spectators: Spectators,
}

/// How people look on at a replay by the pages.
#[derive(Debug, Clone, Default)]
pub struct Spectators {
    /// The directory of the built pages; `None`: nobody looks on.
    pub pages: Option<PathBuf>,
    /// Called once the sale can be seen, and again when the audit is done.
    pub on_change: Option<fn(&Seen)>,
    /// True if the engine goes on after the audit until its standard input ends.
    pub stay: bool,
}

/// Where a replay is to be seen.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    /// The address of the engine.
    pub url: String,
    /// The id of the sale.
    pub sale: String,
    /// Its data directory, for commands.
    pub data_dir: PathBuf,
    /// The audit is done: nothing changes any more but by those who look on.
    pub audited: bool,
}

impl Options {
    /// Number of tickets, at least one.
    #[must_use]
    pub fn tickets(&self) -> u32 {
        ((f64::from(self.published.tickets) * self.scale).round() as u32).max(1)
    }
}

/// Time that each part of a replay took, in seconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Times {
    /// Until the servers ran and the sale was open.
    pub starting: f64,
    /// From the first arrival until nothing was left.
    pub selling: f64,
    /// Until every paid order was counted, every hold resolved and nothing was left to reconcile.
    pub settling: f64,
    /// Reading both stores and checking every invariant.
    pub auditing: f64,
}

impl Times {
    #[must_use]
    pub fn total(&self) -> f64 {
        self.starting + self.selling + self.settling + self.auditing
    }
}

/// Result of a replay.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The published on-sale, with its source.
    pub published: Published,
    /// The part of it that was replayed, 1 for all.
    pub scale: f64,
    pub tickets: u32,
    /// Who came, and how they were let in.
    pub admission: AdmissionOptions,
    /// Commands that the engine sent to the slot of the sale in Redis, from the first arrival until everything was
    /// settled: each script is one, and so is each command.
    pub slot_commands: u64,
    /// Time of each part.
    pub seconds: Times,
    /// Admitted, ordered, paid, confirmed and counted: whole sales a second, while selling and settling.
    pub whole_sales_per_second: f64,
    /// The processors' time of each part while selling and settling, in seconds; empty where it is not
    /// known.
    pub cpu_seconds: BTreeMap<Part, f64>,
    #[serde(rename = "rush")]
    pub load_test: crate::report::Report,
    pub audit: audit::Report,
}

impl Outcome {
    /// True if everything was sold, nothing impossible was met and no invariant is broken.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.load_test.is_good() && self.audit.clean
    }

    /// In how much less time than the real sale, if that is known and all of it was replayed.
    #[must_use]
    pub fn against_real(&self) -> Option<(f64, f64)> {
        let real = self.published.seconds.filter(|_| self.scale >= 1.0)?;
        Some((self.seconds.total(), f64::from(real)))
    }

    /// The replay in a few lines, for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let Times { starting, selling, settling, auditing } = self.seconds;
        let all: f64 = self.cpu_seconds.values().sum();
        let share = |(part, seconds): (&Part, &f64)| {
            format!("{} {seconds:.0} s ({:.0} %)", part.name(), 100.0 * seconds / all.max(1e-9))
        };
        let cpu: Vec<String> = self.cpu_seconds.iter().map(share).collect();
        let processors = all / (selling + settling).max(1e-9);
        let verdict = match self.against_real() {
            Some((total, real)) if total < real && self.is_good() => {
                format!("{total:.0} s, everything included; the real sale took {real:.0} s")
            }
            Some((total, real)) => {
                format!("NOT in the real sale's {real:.0} s, or not clean: {total:.0} s")
            }
            None => format!("{:.0} s, everything included", self.seconds.total()),
        };
        format!(
            "{} people for {} tickets ({:.1} each), as {} ({})\n\
             started in {starting:.1} s, sold in {selling:.1} s, settled in {settling:.1} s, audited in \
             {auditing:.1} s\n\
             {:.0} whole sales a second (admitted, ordered, paid, counted); CPU {all:.0} s on {processors:.1} \
             processors: {}\n{verdict}",
            self.load_test.load.arrivals(),
            self.tickets,
            self.load_test.load.arrivals() as f64 / f64::from(self.tickets),
            self.published.sale,
            self.published.source,
            self.whole_sales_per_second,
            cpu.join(", "),
        )
    }
}

/// Why a replay could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine did not start, or not stop.
    #[error(transparent)]
    Engine(#[from] up::Error),
    /// The sale has no good name.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// The sale was not published, or the engine did not settle.
    #[error(transparent)]
    Demo(#[from] demo::Error),
    /// The crowd could not begin.
    #[error(transparent)]
    LoadTest(#[from] LoadTestError),
    /// A store could not be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The ledger cannot be read.
    #[error("the ledger cannot be read: {0}")]
    Ledger(#[from] std::io::Error),
}

/// Replays an on-sale on an engine of its own, which leaves nothing behind, and audits the result.
///
/// # Errors
/// Fails if it cannot be carried out; what went wrong in it is in the outcome.
pub async fn run(options: &Options) -> Result<Outcome, Error> {
    let started = Instant::now();
    let engine = Engine::start(up::Options {
        limits: options.limits,
        pages: options.spectators.pages.clone(),
        ..up::Options::ephemeral()
    })
    .await?;
    let gate = GateSettings { rate_per_second: options.rate_per_second, ..GateSettings::default() };
    let name = format!("replay-{}", options.published.name);
    let title = format!("Replay: {}", options.published.sale);
    let tickets = options.tickets();
    let sale = stadium::sale(&name, &title, tickets, PAY_WINDOW_SECONDS, gate)?;
    let sale = options.admission.terms(sale, tickets, options.scale);
    publish(&engine, &[sale]).await?;
    let tell = |audited| {
        if let Some(tell) = options.spectators.on_change {
            let (url, data_dir) = (engine.url().to_owned(), engine.data_dir().to_owned());
            tell(&Seen { url, sale: name.clone(), data_dir, audited });
        }
    };
    tell(false);
    // A stadium has one inventory, whose keys have the name of the sale as their hash tag.
    let slot = engine.app().meter();
    slot.watch(&name);
    let ledger = engine.data_dir().join("ledger.jsonl");
    let crowd = crowd(options, &engine, &name, &ledger);
    let starting = lap(started);
    let mut report = crate::run(&crowd, Credentials::new(engine.secrets()).told(ANSWER)).await?;
    let selling = report.seconds;

    let settled = Instant::now();
    let meter = Meter::start(engine.endpoints()).await.ok();
    settle(&engine, settled + SETTLE).await?;
    report.record_throttled(engine.throttled());
    let mut cpu_seconds =
        report.cpu.as_ref().map(|cpu| cpu.cpu_seconds.clone()).unwrap_or_default();
    if let Some(meter) = meter
        && let Ok(shares) = meter.read().await
    {
        for (part, seconds) in shares.cpu_seconds {
            *cpu_seconds.entry(part).or_default() += seconds;
        }
    }
    let settling = lap(settled);
    let slot_commands = slot.count(&name).unwrap_or(0);

    let audited = Instant::now();
    let audit = audit(&engine, &ledger).await?;
    let auditing = lap(audited);
    tell(true);
    if options.spectators.stay {
        end_of_input().await?;
    }
    engine.stop().await?;
    Ok(Outcome {
        published: *options.published,
        scale: options.scale,
        tickets,
        admission: options.admission,
        slot_commands,
        seconds: Times { starting, selling, settling, auditing },
        whole_sales_per_second: report.paid as f64 / (selling + settling),
        cpu_seconds,
        load_test: report,
        audit,
    })
}

/// The crowd of a replay.
fn crowd(options: &Options, engine: &Engine, name: &str, ledger: &Path) -> crate::Options {
    crate::Options {
        url: engine.url().to_owned(),
        sales: vec![name.to_owned()],
        load: options.load,
        profile: options.profile,
        seed: options.seed,
        most: options.most,
        may_take_longer: false,
        ledger: Some(ledger.to_owned()),
        progress: options.progress,
        callback_repeats: crate::CallbackRepeats::default(),
        pages: options.pages,
        grace: engine.endpoints().grace(),
        endpoints: Some(engine.endpoints().clone()),
        rehearsal: None,
        crowd: options.admission.crowd,
    }
}

async fn audit(engine: &Engine, ledger: &Path) -> Result<audit::Report, Error> {
    let ledger = LedgerFacts::read(ledger)?;
    let stores = engine.endpoints();
    let options = audit::Options {
        ledger: Some(ledger),
        bound_seconds: stores.grace().bound_seconds(),
        ..audit::Options::at(Timestamp::now())
    };
    let target = Target::at(&stores.redis, &stores.dynamodb, &stores.table_prefix);
    Ok(audit::run(&target, &options).await?)
}

/// Waits until whoever started us closes our standard input.
async fn end_of_input() -> std::io::Result<()> {
    let read =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    read.await.map_err(std::io::Error::other)?.map(drop)
}

fn lap(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}
