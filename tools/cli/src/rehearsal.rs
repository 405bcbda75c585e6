//! The options of a rehearsal: a load test of a deployment of one's own.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use bench::cost::{Plan, Prices, forecast};
use clap::Args;
use loadtest::Load;
use loadtest::rehearsal::abort::AbortSwitch;
use loadtest::rehearsal::{Confirmed, DEFAULT_PER_SECOND, MAX_PER_SECOND, Rehearsal, Target};
use shared::runtime::connections::Trust;

use super::Failure;

/// Share of errors among the target's answers, in percent, at which it is spared.
const MAX_ERROR_PERCENT: u32 = 10;

/// Which deployment is loaded, and what protects it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rehearsal of a deployment")]
pub struct RehearsalArgs {
    /// Load this deployment of your own: https, or plain http on this machine. Everyone orders and cancels.
    #[arg(long, value_name = "URL", requires = "token_command",
          conflicts_with_all = ["url", "ledger", "at_once", "profile"])]
    target: Option<String>,
    /// A program that prints the JWT of a buyer: it is given the buyer's number, from 0 on.
    #[arg(long, value_name = "PROGRAM", requires = "target")]
    token_command: Option<PathBuf>,
    /// Confirm the host that is loaded, which is asked for otherwise.
    #[arg(long, value_name = "NAME", requires = "target")]
    confirm_host: Option<String>,
    /// Most requests a second; nothing exceeds it.
    #[arg(long, value_name = "N", requires = "target", default_value_t = DEFAULT_PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PER_SECOND)))]
    max_rate: u32,
    /// End it once this file exists.
    #[arg(long, value_name = "FILE", requires = "target")]
    abort_file: Option<PathBuf>,
    /// End it once more than this share of the last hundred answers were errors, in percent.
    #[arg(long, value_name = "PERCENT", requires = "target", default_value_t = MAX_ERROR_PERCENT,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    abort_errors: u32,
    /// Trust the certificate authorities of this PEM file in place of the public ones.
    #[arg(long, value_name = "FILE", requires = "target")]
    ca_file: Option<PathBuf>,
    /// Prices of the forecast in place of the built-in ones, as of `onsale cost`.
    #[arg(long, value_name = "FILE", requires = "target")]
    prices: Option<PathBuf>,
    /// Only forecast the bill.
    #[arg(long, requires = "target")]
    forecast: bool,
}

impl RehearsalArgs {
    /// True if a deployment is to be loaded.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.target.is_some()
    }

    /// Forecasts the bill of a load of `sales` sales that may take `most_seconds`; then, unless no more is wanted,
    /// has the host confirmed.
    ///
    /// # Errors
    /// The host is not confirmed, or a file cannot be read.
    pub fn prepare(
        &self,
        load: Load,
        sales: usize,
        most_seconds: f64,
        json: bool,
    ) -> Result<Option<Rehearsal>, Failure> {
        let (Some(url), Some(token_command)) = (&self.target, &self.token_command) else {
            return Err("--target and --token-command belong together".into());
        };
        let target = Target::read(url)?;
        let plan = Plan {
            visitors: load.arrivals(),
            seconds: most_seconds,
            sales: reporting::count(sales),
            max_requests: f64::from(self.max_rate) * most_seconds,
        };
        let prices = self.prices.as_deref().map_or_else(Prices::published, Prices::read)?;
        let forecast = forecast(plan, &prices)?;
        if self.forecast {
            let text = if json { reporting::json(&forecast) } else { forecast.tables() };
            super::out(&text)?;
            return Ok(None);
        }
        eprintln!("{}", forecast.tables());
        let trust = match &self.ca_file {
            None => Trust::public(),
            Some(file) => {
                let named = |error: String| format!("{}: {error}", file.display());
                let pem = std::fs::read(file).map_err(|error| named(error.to_string()))?;
                Trust::only(pem).map_err(|error| named(error.to_string()))?
            }
        };
        Ok(Some(Rehearsal {
            target: self.confirmed(target)?,
            trust,
            per_second: self.max_rate,
            token_command: token_command.clone(),
            abort: Arc::new(AbortSwitch::default()),
            abort_file: self.abort_file.clone(),
            max_error_percent: self.abort_errors,
        }))
    }

    /// The host, confirmed by its option or typed once more by whoever sits there.
    fn confirmed(&self, target: Target) -> Result<Confirmed, Failure> {
        let is_asked =
            self.confirm_host.is_none() && target.needs_confirmation() && io::stdin().is_terminal();
        if !is_asked {
            return Ok(target.confirm(self.confirm_host.as_deref())?);
        }
        eprint!("{} will be loaded. Type its host to confirm: ", target.host());
        io::stderr().flush()?;
        let mut typed = String::new();
        io::stdin().lock().read_line(&mut typed)?;
        Ok(target.confirm(Some(&typed))?)
    }
}

/// Throws the switch when somebody presses Ctrl-C, for as long as it is awaited.
pub async fn abort_by_hand(switch: Arc<AbortSwitch>) {
    match tokio::signal::ctrl_c().await {
        Ok(()) => switch.abort("Ctrl-C"),
        // It cannot be aborted by hand then: it does not begin.
        Err(error) => switch.abort(format!("Ctrl-C cannot be awaited: {error}")),
    }
}

/// Refuses the gateway of a load test that is no rehearsal, unless it is on this machine.
///
/// # Errors
/// Says what to use.
pub fn allow_this_machine(url: &str) -> Result<(), Failure> {
    if Target::read(url)?.needs_confirmation() {
        return Err("--url is for an engine on this machine: --target is for another".into());
    }
    Ok(())
}
