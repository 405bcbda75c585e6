//! `onsale money bills`: what of the providers' bills differs from what the engine knows.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::{BillDay, Difference};
use engine::ports::{ChangeReply, Ports as _};
use serde_json::{Value, json};

use crate::engine::EngineArgs;
use crate::{DECLINED, Failure, out};

/// Print what of the providers' bills differs from what the engine knows, the latest day first; say what one was; or have
/// bills read again.
///
/// The function `read-bills` keeps what differs for 100 days. Exit code 1: something waits for an operator.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money bills
  onsale money bills --all --json
  onsale money bills --provider wechat --done 2026-11-25#unknown_refund#5042000001 --by ann --reason settled
  onsale money bills --provider wechat --read-from 2026-11-20")]
pub struct Bills {
    /// Of this account only.
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<ProviderId>,
    /// Those of which an operator has said what they were, too.
    #[arg(long)]
    all: bool,
    /// Say of the one with this name what it was: it waits for nobody any more.
    #[arg(long, value_name = "NAME", requires_all = ["provider", "by", "reason"])]
    done: Option<String>,
    /// Who says it.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// What it was.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Have the account's bills read again from this day on, or passed over until then; what was recorded is not recorded
    /// twice.
    #[arg(long, value_name = "DAY", requires = "provider", conflicts_with = "done", value_parser = day)]
    read_from: Option<BillDay>,
    #[command(flatten)]
    engine: EngineArgs,
}

fn day(text: &str) -> Result<BillDay, String> {
    BillDay::read(text).ok_or_else(|| "must be a day, YYYY-MM-DD".to_owned())
}

impl Bills {
    /// Prints them, or changes what was asked for.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { provider, all, done, by, reason, read_from, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let ports = &reached.app.ports;
        let bills = ports.bills();
        if let (Some(provider), Some(day)) = (&provider, read_from) {
            return match bills.read_from(provider, day, Timestamp::now()).await? {
                ChangeReply::Done => said(json, &format!("bills of {provider} from {day} on")),
                ChangeReply::Conflict => {
                    Err("a run of read-bills has them now: try again in a minute".to_owned().into())
                }
            };
        }
        if let (Some(provider), Some(key), Some(by), Some(reason)) = (&provider, done, by, reason) {
            let words: String = format!("{by}: {reason}").chars().take(200).collect();
            return match bills.explain(provider, &key, &words).await? {
                true => said(json, &format!("{key}: {words}")),
                false => Err(format!("{provider} has nothing by the name {key}").into()),
            };
        }
        let accounts = match provider {
            Some(provider) => vec![provider],
            None => ports.provider().accounts(),
        };
        let mut found: Vec<Difference> = Vec::new();
        for account in &accounts {
            found.extend(bills.differences(account).await?);
        }
        found.retain(|difference| all || difference.done.is_none());
        let waits = found.iter().any(|difference| difference.done.is_none());
        if json {
            out(&json!({ "differences": found.iter().map(shown).collect::<Vec<_>>() }))?;
        } else {
            for difference in &found {
                out(&line(difference))?;
            }
        }
        Ok(if waits { ExitCode::from(DECLINED) } else { ExitCode::SUCCESS })
    }
}

fn said(json: bool, text: &str) -> Result<ExitCode, Failure> {
    if json {
        out(&json!({ "done": text }))?;
    } else {
        out(&text.to_owned())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(difference: &Difference) -> Value {
    let Difference { provider, day, kind, order, payment, amount, what, found_at, done, .. } =
        difference;
    json!({
        "name": difference.key(), "provider": provider, "day": day.to_string(),
        "kind": kind.as_str(), "order": order, "payment": payment,
        "amount_minor": amount.map(|amount| amount.amount_minor),
        "currency": amount.map(|amount| amount.currency), "what": what, "found_at": found_at,
        "done": done,
    })
}

fn line(difference: &Difference) -> String {
    let Difference { provider, order, payment, what, done, .. } = difference;
    let mut line = format!("{provider} {}: {what}", difference.key());
    if let Some(order) = order {
        line.push_str(&format!(", order {order}"));
    }
    if let Some(payment) = payment {
        line.push_str(&format!(", payment {payment}"));
    }
    if let Some(done) = done {
        line.push_str(&format!(" ({done})"));
    }
    line
}
