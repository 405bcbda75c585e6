//! `onsale rush`: a load test of a running engine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use engine::domain::payment::grace::Grace;

use super::crowd::{CrowdArgs, Otherwise};
use super::pages::PagesArgs;
use super::rehearsal::{RehearsalArgs, abort_by_hand, allow_this_machine};
use super::{DECLINED, Failure, out};
use loadtest::credentials::Credentials;
use loadtest::people::plan::Crowd;
use loadtest::profile::LoadProfile;
use loadtest::report::Report;
use loadtest::thresholds::Thresholds;
use loadtest::{CallbackRepeats, page, seconds};
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::throttled;

/// What is not said: an open loop.
const OTHERWISE: Otherwise = Otherwise::open(20_000, 600);
/// The same of a rehearsal.
const REHEARSAL: Otherwise = Otherwise::open(100, 300);

/// A seeded crowd competes for the seats of some sales, until nothing is left.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale rush --sale demo-stadium --sale demo-train --arrivals 20000 --within 60 --shape opening
  onsale rush --sale autumn --target https://tickets.example --token-command ./token --max-rate 20

docs/rush.md says what the figures mean. Exit code 1 if the crowd met what must never happen, or if
seats were left; with --thresholds, if a figure misses its threshold.")]
pub struct RushCommand {
    /// A sale to buy from; repeat it for several.
    #[arg(long = "sale", value_name = "ID", required = true)]
    sales: Vec<String>,
    #[command(flatten)]
    crowd: CrowdArgs,
    /// Open loop: which classes come: people at and after the opening, or people of all kinds and as many bots.
    #[arg(long, value_name = "CROWD", value_enum, default_value_t, conflicts_with_all = ["at_once", "target"])]
    people: Crowd,
    /// Append every acknowledged order and every captured payment to this file, for the audit.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Write the report as a page with plots, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write what happened in each second as CSV, by class of people, too.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Thresholds of figures of the report, as JSON: they alone decide the exit code.
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// The gateway to ask [default: that of the engine of the data directory]
    #[arg(long, env = "ONSALE_URL")]
    url: Option<String>,
    #[command(flatten)]
    pages: PagesArgs,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

impl RushCommand {
    /// Runs the crowd and prints its report.
    ///
    /// # Errors
    /// Fails if the crowd cannot begin.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        // What is wrong with the file is said before the crowd comes.
        let thresholds = self.thresholds.as_deref().map(Thresholds::read).transpose()?;
        let mut report = if self.rehearsal.is_wanted() {
            let Some(report) = self.rehearse(json).await? else { return Ok(ExitCode::SUCCESS) };
            report
        } else {
            self.rush(data_dir, json).await?
        };
        if let Some(thresholds) = &thresholds {
            report.hold_against(thresholds);
        }
        if let Some(file) = &self.csv {
            seconds::write(file, &report.series)?;
        }
        if let Some(file) = &self.html {
            page::write(file, &page::of_load_test(&report)?)?;
        }
        out(&if json { report.json() } else { report.tables() })?;
        Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }

    /// Loads the engine of the data directory, or the gateway of `--url`.
    async fn rush(&self, data_dir: &Path, json: bool) -> Result<Report, Failure> {
        let secrets = Secrets::read(data_dir)?;
        let (url, grace, endpoints) = match &self.url {
            // The engine behind it may be another than that of the data directory, if one runs there.
            Some(url) => {
                allow_this_machine(url)?;
                let running = Endpoints::read(data_dir).ok();
                (url.clone(), running.map_or(Grace::DEFAULT, |endpoints| endpoints.grace()), None)
            }
            None => {
                let endpoints = Endpoints::read(data_dir)?;
                (endpoints.gateway.clone(), endpoints.grace(), Some(endpoints))
            }
        };
        let options = loadtest::Options {
            url,
            load: self.crowd.load(OTHERWISE),
            profile: self.crowd.profile(),
            most: self.crowd.most(OTHERWISE),
            may_take_longer: false,
            ledger: self.ledger.clone(),
            grace,
            endpoints,
            ..self.options(json)
        };
        // What the engine's servers refuse is in its data directory, if it is the engine of that.
        let file = options.endpoints.is_some().then(|| data_dir.join(throttled::FILE));
        let before = file.as_deref().map(throttled::read).unwrap_or_default();
        let mut report = loadtest::run(&options, Credentials::new(&secrets)).await?;
        if let Some(file) = file {
            report.record_throttled(throttled::read(&file).since(&before));
        }
        Ok(report)
    }

    /// Loads a deployment; `None` if only its forecast was wanted.
    async fn rehearse(&self, json: bool) -> Result<Option<Report>, Failure> {
        let (load, most) = (self.crowd.load(REHEARSAL), self.crowd.most(REHEARSAL));
        let seconds = most.as_secs_f64();
        let rehearsal = self.rehearsal.prepare(load, self.sales.len(), seconds, json)?;
        let Some(rehearsal) = rehearsal else { return Ok(None) };
        let switch = Arc::clone(&rehearsal.abort);
        let options = loadtest::Options {
            url: rehearsal.target.url().to_owned(),
            load,
            profile: LoadProfile::Rehearsal,
            most,
            rehearsal: Some(rehearsal),
            ..self.options(json)
        };
        let run = loadtest::run(&options, Credentials::none());
        // The run ends by itself once the switch is thrown.
        let by_hand = async {
            abort_by_hand(switch).await;
            std::future::pending().await
        };
        tokio::select! {
            report = run => Ok(Some(report?)),
            () = by_hand => Ok(None),
        }
    }

    /// What both kinds have alike.
    fn options(&self, json: bool) -> loadtest::Options {
        loadtest::Options {
            url: String::new(),
            sales: self.sales.clone(),
            load: self.crowd.load(OTHERWISE),
            profile: self.crowd.profile(),
            seed: self.crowd.seed(),
            most: self.crowd.most(OTHERWISE),
            may_take_longer: false,
            ledger: None,
            progress: !json,
            callback_repeats: CallbackRepeats::default(),
            pages: self.pages.shares(),
            grace: Grace::DEFAULT,
            endpoints: None,
            rehearsal: None,
            crowd: self.people,
        }
    }
}
