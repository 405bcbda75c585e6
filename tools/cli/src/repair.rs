//! `onsale reconcile`, `onsale stuck` and `onsale dead-letters`: arguments and printed results.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use engine::domain::basics::time::Timestamp;
use engine::flows::discrepancy::Explanation;
use engine::flows::reconcile::{Outcome, Report, Run};
use engine::flows::stuck::{Found, Stuck};
use engine::ports::Ports as _;
use serde_json::json;
use shared::runtime::functions::QueueName;

use super::engine::{EngineArgs, Reached};
use super::{DECLINED, Failure, out};
use ops::dead_letters::{DeadLetters, Moved};
use ops::reconcile::Repair;
use ops::stuck;

/// Repair now what the schedule repairs each minute, and say what that was.
///
/// Everything that is due is finished, every sale that Redis has lost is loaded, and both stores are
/// compared, hold by hold, while the sales go on.
///
/// Exit code 0: nothing is left, 1: something could not be done and waits for the next run; of a dry
/// run 1: there are discrepancies.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale reconcile --dry-run       what it would do, and why
  onsale reconcile --json")]
pub struct ReconcileCommand {
    /// Only say what would be done: what Redis says, what DynamoDB says, why that can be, and what
    /// repairs it. While a sale goes on, orders on their way look like discrepancies too.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

impl ReconcileCommand {
    /// Runs, and prints each discrepancy and what became of it.
    ///
    /// # Errors
    /// The engine cannot be reached.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Reached { app, .. } = self.engine.reach(data_dir).await?;
        let repair = Repair::run(&app.ports, self.dry_run, Timestamp::now()).await?;
        let Repair { run, is_dry } = &repair;
        out(&if json { run_as_json(run, *is_dry) } else { run_as_text(run, *is_dry) })?;
        Ok(exit(repair.is_well()))
    }
}

fn exit(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) }
}

fn run_as_json(run: &Run, is_dry: bool) -> String {
    let discrepancy = |(discrepancy, outcome): &(_, Outcome)| {
        let mut written = json!(engine::flows::discrepancy::Discrepancy::explain(discrepancy));
        written["outcome"] = json!(outcome);
        written
    };
    let found: Vec<_> = run.found.iter().map(discrepancy).collect();
    let report = (!is_dry).then_some(run.report);
    reporting::json(&json!({
        "dry_run": is_dry, "differences": found, "unread": run.unread, "report": report,
    }))
}

fn run_as_text(run: &Run, is_dry: bool) -> String {
    let mut text = String::new();
    for (discrepancy, outcome) in &run.found {
        let Explanation { kind, sale, order, redis, dynamodb, why, repair } = discrepancy.explain();
        // Writing to a String cannot fail.
        let _ = write!(text, "{kind}");
        if let Some(order) = order {
            let _ = write!(text, ": order {order}");
        }
        if let Some(sale) = sale {
            let _ = write!(text, " of sale {sale}");
        }
        let done = match outcome {
            Outcome::Found => "would be done".to_owned(),
            Outcome::Repaired => "done".to_owned(),
            Outcome::Changed => "no longer there, or changed: the next run looks again".to_owned(),
            Outcome::Failed(why) => format!("FAILED: {why}"),
        };
        let _ = write!(
            text,
            "\n  Redis     {redis}\n  DynamoDB  {dynamodb}\n  why       {why}\n  repair    \
             {repair}\n            {done}\n\n"
        );
    }
    for unread in &run.unread {
        let _ = writeln!(text, "not looked at: {unread}");
    }
    match (run.found.len(), is_dry) {
        (0, _) if run.unread.is_empty() => {
            text.push_str("Redis and DynamoDB agree; nothing is due.")
        }
        (count, true) => {
            let _ = write!(text, "{count} discrepancies; nothing was changed.");
        }
        (_, false) => text.push_str(&summary(&run.report)),
    }
    text
}

fn summary(report: &Report) -> String {
    let Report {
        expired,
        synced,
        refunds,
        closing,
        loaded,
        terms,
        aligned,
        restored,
        sold,
        freed,
        unloaded,
        failed,
        left: _,
    } = report;
    format!(
        "ended {expired}, counted {synced}, refunds requested {refunds}, payments to close {closing}, sales loaded {loaded}, \
         terms told {terms}, holds aligned {aligned}, restored {restored}, sold {sold}, seats \
         freed {freed}, archived sales unloaded {unloaded}, failed {failed}"
    )
}

/// List everything that is past its bound, and what is known of why.
///
/// Pending orders past their deadline, paid ones that are not counted, refunds that the provider has
/// refused or nobody has asked for, holds without an order. It reads the index of due work and the
/// deadlines in Redis, not all orders.
///
/// Exit code 1: something is stuck.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale stuck
  onsale stuck --older-than 600 --json")]
pub struct StuckCommand {
    /// The least lateness to list, in seconds [default: the engine's grace and two minutes]
    #[arg(long, value_name = "SECONDS")]
    older_than: Option<u32>,
    #[command(flatten)]
    engine: EngineArgs,
}

impl StuckCommand {
    /// Looks, and prints what is stuck.
    ///
    /// # Errors
    /// The engine cannot be reached.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let reached = self.engine.reach(data_dir).await?;
        let now = Timestamp::now();
        let queues = reached.dead_letters();
        let bound_seconds = reached.config.providers.grace.bound_seconds();
        let older_than = self.older_than.unwrap_or(bound_seconds);
        let ports = &reached.app.ports;
        let mut found = stuck::find(ports, &queues, older_than, now).await?;
        stuck::add_bills(&mut found, ports.bills(), &ports.provider().accounts()).await?;
        out(&if json { reporting::json(&found) } else { found_as_text(&found, now) })?;
        Ok(exit(found.stuck.is_empty() && found.unread.is_empty()))
    }
}

fn found_as_text(found: &Found, now: Timestamp) -> String {
    let mut text = String::new();
    for Stuck { kind, sale, order, since, why } in &found.stuck {
        let _ = write!(text, "{}: order {order}", kind.as_str());
        if let Some(sale) = sale {
            let _ = write!(text, " of sale {sale}");
        }
        if let Some(since) = since {
            let _ = write!(text, ", {} s late", now.ms_since(*since) / 1000);
        }
        for why in why {
            let _ = write!(text, "\n  {why}");
        }
        text.push_str("\n\n");
    }
    for unread in &found.unread {
        let _ = writeln!(text, "not looked at: {unread}");
    }
    if found.more {
        text.push_str("There may be more: only the first of each shard were looked at.\n");
    }
    let _ = match found.stuck.len() {
        0 => write!(text, "Nothing is stuck."),
        count => write!(text, "{count} stuck."),
    };
    text
}

/// List the messages that no consumer could handle, and why; move them back, or drop one.
///
/// Exit code 1 of a list: there are some.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale dead-letters
  onsale dead-letters redrive                        all queues, once what failed them is repaired
  onsale dead-letters redrive sync
  onsale dead-letters drop expiry --message 3f1c…    one that can never be handled")]
pub struct DeadLettersCommand {
    #[command(subcommand)]
    action: Option<Action>,
    /// Most messages of each queue to look at.
    #[arg(long, value_name = "N", default_value_t = 100)]
    most: usize,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Move the messages back to where they came from, and wait until that is done. Handling one late
    /// or twice does no harm; one that is malformed comes back.
    Redrive {
        /// Of this queue only.
        #[arg(value_parser = queue_name())]
        queue: Option<QueueName>,
    },
    /// Throw one message away, and show it.
    Drop {
        /// The queue that it came from.
        #[arg(value_parser = queue_name())]
        queue: QueueName,
        /// The message's id, as the list has it.
        #[arg(long, value_name = "ID")]
        message: String,
        /// Also one that could still be handled.
        #[arg(long)]
        anyway: bool,
    },
}

/// Reads the name of a queue.
fn queue_name() -> impl TypedValueParser<Value = QueueName> {
    let value = |queue: QueueName| {
        PossibleValue::new(queue.as_str()).help(queue.about().trim_end_matches('.'))
    };
    PossibleValuesParser::new(QueueName::ALL.map(value)).try_map(|name| {
        let found = QueueName::ALL.into_iter().find(|queue| queue.as_str() == name);
        found.ok_or("there is no such queue")
    })
}

impl DeadLettersCommand {
    /// Lists, moves or drops.
    ///
    /// # Errors
    /// The engine cannot be reached, or SQS refuses.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let reached = self.engine.reach(data_dir).await?;
        let queues = reached.dead_letters();
        match self.action {
            None => {
                let lists = queues.list_all(self.most).await?;
                out(&if json { reporting::json(&lists) } else { lists_as_text(&lists) })?;
                Ok(exit(lists.iter().all(|list| list.count == 0)))
            }
            Some(Action::Redrive { queue }) => {
                let chosen = queue.map_or_else(|| QueueName::ALL.to_vec(), |queue| vec![queue]);
                let mut moved = Vec::new();
                for which in chosen {
                    moved.push(queues.redrive(which).await?);
                }
                let line =
                    |moved: &Moved| format!("{}: {} moved back", moved.queue.as_str(), moved.moved);
                let lines: Vec<String> = moved.iter().map(line).collect();
                out(&if json { reporting::json(&moved) } else { lines.join("\n") })
            }
            Some(Action::Drop { queue, message, anyway }) => {
                let dropped = queues.drop_one(queue, &message, anyway).await?;
                let shown = || format!("dropped {}: {}", dropped.message, dropped.body);
                out(&if json { reporting::json(&dropped) } else { shown() })
            }
        }
    }
}

fn lists_as_text(lists: &[DeadLetters]) -> String {
    let mut text = String::new();
    for DeadLetters { queue, name, count, oldest_sent_at, letters } in lists {
        let _ = write!(text, "{}: {count} in {name}", queue.as_str());
        if let Some(oldest) = oldest_sent_at {
            let _ = write!(text, ", the oldest sent at {oldest}");
        }
        text.push('\n');
        for letter in letters {
            let _ = writeln!(text, "  {} {}\n    {}", letter.message, letter.body, letter.why);
        }
        let unseen = usize::try_from(*count).unwrap_or(usize::MAX).saturating_sub(letters.len());
        if unseen > 0 {
            let _ = writeln!(text, "  and {unseen} that were not looked at");
        }
    }
    text.truncate(text.trim_end().len());
    text
}
