//! `onsale rush`: lets a crowd loose on a running engine.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::data_dir::{self, Secrets};
use crate::rush::credentials::Credentials;
use crate::rush::{self, RushError};

/// A seeded crowd competes for the seats of some sales, until nothing is left.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  onsale rush --sale demo-stadium --sale demo-train --buyers 20000\n\n\
    The same seed brings the same crowd. Exit code 1 if the crowd met anything that must\n\
    never happen, or if seats were left.")]
pub struct RushArgs {
    /// The sales to rush for; repeat it for several.
    #[arg(long = "sale", required = true)]
    pub sales: Vec<String>,
    /// How many buyers come, besides the late ones who take what is left.
    #[arg(long, default_value_t = 20_000)]
    pub buyers: u64,
    /// How many are on the site at once.
    #[arg(long, default_value_t = 96)]
    pub at_once: usize,
    /// Seed of the crowd.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Give up after so many seconds.
    #[arg(long, default_value_t = 600)]
    pub most_seconds: u64,
    /// Append every acknowledged order and every captured payment to this file, for the audit.
    #[arg(long)]
    pub ledger: Option<PathBuf>,
    /// The gateway.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// Where the engine keeps its development secrets.
    #[arg(long, default_value = data_dir::DEFAULT)]
    pub data_dir: PathBuf,
}

/// Why a rush could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no engine to rush at.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// The crowd could not begin.
    #[error(transparent)]
    Rush(#[from] RushError),
}

impl RushArgs {
    /// Runs the crowd and prints its report. Returns true if all went as it should.
    ///
    /// # Errors
    /// Fails if the crowd cannot begin.
    pub async fn run(self, json: bool) -> Result<bool, Error> {
        let secrets = Secrets::read(&self.data_dir)?;
        let options = rush::Options {
            url: self.url,
            sales: self.sales,
            buyers: self.buyers,
            at_once: self.at_once,
            seed: self.seed,
            most: Duration::from_secs(self.most_seconds),
            ledger: self.ledger,
            progress: !json,
        };
        let (report, _) = rush::run(&options, Credentials::new(&secrets)).await?;
        println!("{report}", report = if json { report.json() } else { report.tables() });
        Ok(report.anomalies.is_empty() && report.sold_out)
    }
}
