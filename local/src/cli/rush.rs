//! `onsale rush`: lets a crowd loose on a running engine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{DECLINED, Failure, out};
use crate::data_dir::Secrets;
use crate::endpoints::Endpoints;
use crate::rush;
use crate::rush::credentials::Credentials;

/// A seeded crowd competes for the seats of some sales, until nothing is left.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale rush --sale demo-stadium --sale demo-train --buyers 20000

The same seed brings the same crowd. Exit code 1 if the crowd met what must never happen, or if
seats were left.")]
pub struct RushCommand {
    /// A sale to rush for; repeat it for several.
    #[arg(long = "sale", value_name = "ID", required = true)]
    sales: Vec<String>,
    /// How many buyers come, besides the late ones who take what is left.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    buyers: u64,
    /// How many are on the site at once.
    #[arg(long, value_name = "N", default_value_t = 64)]
    at_once: usize,
    /// Seed of the crowd.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Give up after so many seconds.
    #[arg(long, value_name = "N", default_value_t = 600)]
    most_seconds: u64,
    /// Append every acknowledged order and every captured payment to this file, for the audit.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// The gateway to ask [default: that of the engine of the data directory]
    #[arg(long, env = "ONSALE_URL")]
    url: Option<String>,
}

impl RushCommand {
    /// Runs the crowd and prints its report.
    ///
    /// # Errors
    /// Fails if the crowd cannot begin.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let secrets = Secrets::read(data_dir)?;
        let (url, endpoints) = match self.url {
            Some(url) => (url, None),
            None => {
                let endpoints = Endpoints::read(data_dir)?;
                (endpoints.gateway.clone(), Some(endpoints))
            }
        };
        let options = rush::Options {
            url,
            sales: self.sales,
            buyers: self.buyers,
            at_once: self.at_once,
            seed: self.seed,
            most: Duration::from_secs(self.most_seconds),
            ledger: self.ledger,
            progress: !json,
            endpoints,
        };
        let (report, _) = rush::run(&options, Credentials::new(&secrets)).await?;
        out(&if json { report.json() } else { report.tables() })?;
        let is_good = report.anomalies.is_empty() && report.sold_out;
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}
