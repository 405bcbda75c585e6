//! `onsale replay`: a published on-sale once more, on this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::crowd::{CrowdArgs, Otherwise};
use super::limits::LimitsArgs;
use super::{DECLINED, Failure, out};
use loadtest::page;
use loadtest::published::{PUBLISHED, Published};
use loadtest::replay::{self, Outcome};

/// Replay an on-sale of which figures were published, and prove by audit that nothing went wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
It starts an engine of its own on free ports, with servers in memory, and leaves nothing behind.
--scale 0.01 brings a hundredth of the people for a hundredth of the tickets, as fast as the real ones.

Example:
  onsale replay tixcraft-2024 --scale 0.01 --html replay.html

Exit code 1 if a seat was left, an invariant is broken, or the crowd met what must never happen.")]
pub struct ReplayCommand {
    /// Which: tixcraft-2024, tixcraft-2024-release, coldplay-2024, glastonbury-2014, comic-con-2010.
    #[arg(value_name = "NAME", default_value = "tixcraft-2024", value_parser = published)]
    published: &'static Published,
    /// Which part of it: people and tickets alike, and the time in which they come.
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// How many admissions a second the gate gives: about what the engine can sell on this machine.
    #[arg(long, value_name = "N", default_value_t = 600,
          value_parser = clap::value_parser!(u32).range(1..))]
    gate_rate: u32,
    #[command(flatten)]
    crowd: CrowdArgs,
    #[command(flatten)]
    limits: LimitsArgs,
    /// Write the report as a page with plots, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl ReplayCommand {
    /// Runs it.
    ///
    /// # Errors
    /// Fails if it cannot be carried out.
    pub async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let published = self.published;
        let otherwise = Otherwise {
            arrivals: published.arrivals(self.scale),
            open: Some((published.arrival_seconds(self.scale), published.shape)),
            most_seconds: published.most_seconds(),
        };
        let options = replay::Options {
            published,
            scale: self.scale,
            load: self.crowd.load(otherwise),
            profile: self.crowd.profile(),
            seed: self.crowd.seed(),
            most: self.crowd.most(otherwise),
            rate_per_second: self.gate_rate,
            progress: !json,
            limits: self.limits.limits(),
        };
        let outcome = replay::run(&options).await?;
        if let Some(file) = &self.html {
            page::write(file, &page::of_replay(&outcome)?)?;
        }
        if json {
            out(&serde_json::to_string_pretty(&outcome)?)?;
        } else {
            out(&text(&outcome))?;
        }
        Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

fn text(outcome: &Outcome) -> String {
    format!("{}\n\n{}\n{}", outcome.load_test.tables(), outcome.audit, outcome.summary())
}

fn published(name: &str) -> Result<&'static Published, String> {
    Published::named(name).ok_or_else(|| {
        let names: Vec<&str> = PUBLISHED.iter().map(|published| published.name).collect();
        format!("known are {}", names.join(", "))
    })
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let good = scale > 0.0 && scale <= 1.0;
    if good { Ok(scale) } else { Err("more than 0 and at most 1 is needed".to_owned()) }
}
