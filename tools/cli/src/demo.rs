//! `onsale demo`: the whole engine at work, in one command.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fake_payments::Notified;

use super::crowd::{CrowdArgs, Otherwise};
use super::limits::LimitsArgs;
use super::pages::{BuiltPagesArgs, PagesArgs};
use super::{DECLINED, Failure, out};
use loadtest::demo::{self, News, Outcome, TimedPart};

/// What is not said: a closed loop, which sells as fast as the machine can; one that is busy with other things takes
/// more than twice as long.
const OTHERWISE: Otherwise = Otherwise::closed(20_000, 600);

/// Sell out a stadium and a train to a crowd, and prove by audit that nothing went wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
It starts an engine of its own with servers in memory, on port 8080 or else a free one, and leaves nothing
behind. Its pages can be looked at while it runs.
Exit code 1 if a seat was left, an invariant is broken, or the crowd met what must never happen.")]
pub struct DemoCommand {
    /// Sell the real stadium and train of this folder instead of the repository's own.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    crowd: CrowdArgs,
    #[command(flatten)]
    limits: LimitsArgs,
    #[command(flatten)]
    pages: PagesArgs,
    #[command(flatten)]
    built: BuiltPagesArgs,
}

impl DemoCommand {
    /// Runs it.
    ///
    /// # Errors
    /// Fails if it cannot be carried out.
    pub async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let sales = match &self.data {
            Some(data) => demo::real_sales(data)?,
            None => demo::own_sales()?,
        };
        let options = demo::Options {
            load: self.crowd.load(OTHERWISE),
            profile: self.crowd.profile(),
            seed: self.crowd.seed(),
            most: self.crowd.most(OTHERWISE),
            may_take_longer: !self.crowd.says_how_long(),
            progress: !json,
            limits: self.limits.limits(),
            pages: self.pages.shares(),
            built_pages: self.built.directory(),
            on_news: if json { |_news| () } else { announce },
        };
        let outcome = demo::run(&sales, &options).await?;
        let good = outcome.is_good();
        if json {
            out(&serde_json::to_string_pretty(&outcome)?)?;
        } else {
            out(&text(&outcome))?;
        }
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

/// Says what can be looked at, as soon as it is there.
fn announce(news: &News) {
    // Whoever started us may not listen; the demo goes on all the same.
    let _unheard = writeln!(std::io::stderr(), "{news}");
}

fn text(outcome: &Outcome) -> String {
    let Outcome {
        seconds,
        load_test,
        audit,
        rates,
        notified,
        club: _,
        money_back,
        neighbours,
        parts,
    } = outcome;
    let wrong = outcome.wrong();
    let verdict = match wrong.is_empty() {
        true => "every seat sold, nothing oversold, lost or left undecided".to_owned(),
        false => format!("NOT as it should be: {}", wrong.join("; ")),
    };
    let tables = load_test.tables();
    let told: Vec<String> = notified
        .iter()
        .map(|(provider, told)| {
            let Notified { tries, taken, probes_refused, .. } = told;
            format!("{provider} {taken} taken in {tries} tries, {probes_refused} probes refused")
        })
        .collect();
    let told = told.join("; ");
    let back = money_back.as_ref().map(|back| format!("\n{}", back.text())).unwrap_or_default();
    let others = neighbours.text();
    let part = |TimedPart { part, seconds, unsettled }: &TimedPart| {
        let unsettled = unsettled.as_ref().map(|left| format!(" and not done: {left}"));
        format!("{part} {seconds:.0} s{}", unsettled.unwrap_or_default())
    };
    let parts = parts.iter().map(part).collect::<Vec<_>>().join(", ");
    format!(
        "{tables}\n{rates}\nnotifications: {told}{back}\n{others}\n\n{audit}\n{verdict} ({seconds:.0} s: {parts})"
    )
}
