//! `onsale chaos`: breaks real servers while a crowd buys, and proves that nothing was lost.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::limits::LimitsArgs;
use super::{DECLINED, Failure, out};
use chaos::fakes;
use chaos::faults::Kind;
use chaos::rig::Setup;
use chaos::round::Round;
use chaos::{self, Options, Plan};

/// Break real servers while a crowd buys, and prove that nothing was oversold, lost or left undecided.
///
/// Starts servers of its own on free ports (Valkey with a replica, or a cluster of six; DynamoDB and
/// SQS in a process of their own), proxies in front of them, and the engine as a child process. After
/// each fault the crowd buys on, rests, and both stores are audited with what it was promised.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale chaos                                     every fault once
  onsale chaos --faults kill-redis,flush --times 10
  onsale chaos --kills 100                         100 kills, mixed, an audit after each
  onsale chaos --as-deployed                       with the times of template.yaml

docs/chaos.md says what is measured and how. Exit code 1 if anything is not as it must be.")]
pub struct ChaosCommand {
    /// What to break, in this order.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FAULT",
          default_values_t = Kind::ALL)]
    faults: Vec<Kind>,
    #[arg(long, value_name = "N", default_value_t = 1)]
    times: usize,
    /// Instead: N kills with -9 of the engine, of Valkey (a replica that lags is promoted) and
    /// of the master of a cluster, drawn from the seed.
    #[arg(long, value_name = "N", conflicts_with_all = ["faults", "times"])]
    kills: Option<usize>,
    /// Seed of the moments, the faults and the crowd, and of whether the sale keeps its tiers apart: with
    /// the default and faults of both kinds on one Valkey, with 9 on the cluster, with 6 on both, with 4 on
    /// neither.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// How many buy at once.
    #[arg(long, value_name = "N", default_value_t = 12)]
    buyers: usize,
    /// How often the engine reconciles, in seconds; shorter than deployed, so that a run takes
    /// minutes.
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..))]
    reconcile_seconds: u32,
    /// After how many seconds unfinished messages are given out again; shorter than deployed.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=43_200))]
    redelivery_seconds: u64,
    /// The times of `template.yaml` for both.
    #[arg(long, conflicts_with_all = ["reconcile_seconds", "redelivery_seconds"])]
    as_deployed: bool,
    /// How long buyers have to pay, in seconds.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(5..=86_400))]
    pay_window_seconds: u32,
    /// How long anything may take before it counts as broken, in seconds.
    #[arg(long, value_name = "N", default_value_t = 300)]
    patience_seconds: u64,
    #[command(flatten)]
    limits: LimitsArgs,
}

impl ChaosCommand {
    fn plan(&self) -> Plan {
        match self.kills {
            Some(kills) => Plan::from_kills(kills, self.seed),
            None => Plan::from_faults(&self.faults, self.times),
        }
    }

    fn options(&self) -> std::io::Result<Options> {
        let deployed = local::queues::Redelivery::default().visibility.as_secs();
        let (reconcile_seconds, redelivery_seconds) = match self.as_deployed {
            true => (local::up::RECONCILE_SECONDS, deployed),
            false => (self.reconcile_seconds, self.redelivery_seconds),
        };
        let deadline = Duration::from_secs(self.patience_seconds);
        Ok(Options {
            setup: Setup {
                program: std::env::current_exe()?,
                reconcile_seconds,
                redelivery_seconds,
                pay_window_seconds: self.pay_window_seconds,
                seats: 0,
                seed: self.seed,
                limits: self.limits.limits(),
            },
            buyers: self.buyers,
            deadline,
            settle: deadline,
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// Fails if something cannot be started or read.
    pub async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let plan = self.plan();
        let (mut done, all) = (0, plan.rounds());
        let progress = |round: &Round| {
            done += 1;
            eprintln!("{done}/{all} {}", line(round));
        };
        let report = chaos::run(&self.options()?, &plan, progress).await?;
        out(&if json { reporting::json(&report) } else { report.to_string() })?;
        Ok(if report.clean { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

/// A round in one line.
fn line(round: &Round) -> String {
    let seconds = |ms: u64| ms as f64 / 1000.0;
    format!(
        "{}: {} orders, pause {:.1} s, selling again after {:.1} s, stores agree after {:.1} s, {}",
        round.fault,
        round.acknowledged,
        seconds(round.pause_ms),
        seconds(round.selling_ms),
        seconds(round.settled_ms),
        match round.violations.len() {
            0 => "clean".to_owned(),
            many => format!("{many} VIOLATIONS"),
        }
    )
}

/// Run the fakes of DynamoDB and SQS until killed, for `onsale chaos`.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct FakesCommand {
    #[command(flatten)]
    limits: LimitsArgs,
}

impl FakesCommand {
    /// Runs them; where they are is written into the data directory.
    ///
    /// # Errors
    /// One of them does not start.
    pub async fn run(self, data_dir: &Path) -> Result<ExitCode, Failure> {
        fakes::serve(data_dir, self.limits.limits()).await?;
        Ok(ExitCode::SUCCESS)
    }
}
