//! `onsale sale tokens`: the tokens of a sale's gate, added by hand and looked at.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use comfy_table::{Table, presets};
use engine::domain::admission::gate::tokens::{TokenCounts, TokenSnapshot};
use engine::domain::basics::ids::{AdditionId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::flows::tokens::{Added, Refusal, add, show};
use serde_json::{Value, json};
use shared::runtime::app::new_epoch;

use super::{DECLINED, Error, FAILED, out, pretty};
use crate::engine::{EngineArgs, Reached};

/// What is done with the tokens of a gate.
#[derive(Debug, Subcommand)]
pub(super) enum TokensVerb {
    /// Add tokens by hand: the gate admits for as many tickets more, whatever is left.
    Add {
        /// The sale's id.
        sale: SaleId,
        /// Tokens: tickets for which the gate may admit buyers.
        tokens: u32,
        /// The addition's id. Repeated with the same id, it adds nothing [default: one that is new]
        #[arg(long, value_name = "ID")]
        id: Option<AdditionId>,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Show how many are issued, used and remaining, what was bought, and the snapshots of each minute.
    Show {
        /// The sale's id.
        sale: SaleId,
        /// Minutes of which the snapshots are shown; they are kept for seven days.
        #[arg(long, value_name = "N", default_value_t = 60)]
        minutes: u32,
        #[command(flatten)]
        engine: EngineArgs,
    },
}

impl TokensVerb {
    /// Carries the command out.
    pub(super) async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Error> {
        match self {
            Self::Add { sale, tokens, id, engine } => {
                let Reached { app, .. } = engine.reach(data_dir).await.map_err(Error::Engine)?;
                let now = Timestamp::now();
                let id = id.map_or_else(|| new_id(now), Ok);
                let (id, done) = match id {
                    Ok(id) => {
                        let done = add(&app.ports, &sale, &id, tokens, now).await;
                        (Some(id), done)
                    }
                    Err(refusal) => (None, Err(refusal)),
                };
                report_addition(&sale, tokens, id.as_ref(), &done, json)
            }
            Self::Show { sale, minutes, engine } => {
                let Reached { app, .. } = engine.reach(data_dir).await.map_err(Error::Engine)?;
                let since = Timestamp::now().plus_seconds(-60 * i64::from(minutes));
                match show(&app.ports, &sale, since).await {
                    Ok((counts, snapshots)) => {
                        let facts = || pretty(&facts(&sale, counts, &snapshots));
                        out(&if json { facts() } else { text(&sale, counts, &snapshots) })
                    }
                    Err(refusal) => {
                        let facts = json!({ "sale": sale, "what": refusal.to_string() });
                        out(&if json { pretty(&facts) } else { format!("{sale}: {refusal}\n") })?;
                        Ok(exit_code(&refusal))
                    }
                }
            }
        }
    }
}

/// The id of an addition that nobody has made.
fn new_id(now: Timestamp) -> Result<AdditionId, Refusal> {
    use engine::ports::StoreError;
    let name = new_epoch(now)?;
    let id = AdditionId::new(name.as_str());
    id.map_err(|error| StoreError::Contract(error.to_string()).into())
}

fn exit_code(refusal: &Refusal) -> ExitCode {
    match refusal {
        Refusal::Store(_) => ExitCode::from(FAILED),
        Refusal::NoSuchSale
        | Refusal::Archived
        | Refusal::ByTurns
        | Refusal::OutOfRange
        | Refusal::Differs(_)
        | Refusal::TooMany => ExitCode::from(DECLINED),
    }
}

fn report_addition(
    sale: &SaleId,
    tokens: u32,
    id: Option<&AdditionId>,
    done: &Result<Added, Refusal>,
    json: bool,
) -> Result<ExitCode, Error> {
    let what = match done {
        Ok(Added::Now) => format!("{tokens} tokens added"),
        Ok(Added::Already) => format!("{tokens} tokens were added already"),
        Err(Refusal::Store(error)) => {
            format!("perhaps not all added: {error}; repeat it by its id")
        }
        Err(refusal) => format!("not added: {refusal}"),
    };
    let by = id.map_or_else(String::new, |id| format!(" (addition {id})"));
    let facts =
        json!({ "sale": sale, "id": id, "tokens": tokens, "added": done.is_ok(), "what": what });
    out(&if json { pretty(&facts) } else { format!("{sale}: {what}{by}\n") })?;
    Ok(done.as_ref().map_or_else(exit_code, |_| ExitCode::SUCCESS))
}

/// Each snapshot with the tokens used a minute since the one before it.
fn with_rates(snapshots: &[TokenSnapshot]) -> impl Iterator<Item = (&TokenSnapshot, Option<i64>)> {
    let before = std::iter::once(None).chain(snapshots.iter().map(Some));
    snapshots.iter().zip(before).map(|(snapshot, before)| {
        (snapshot, before.and_then(|before| snapshot.used_per_minute(before)))
    })
}

fn facts(sale: &SaleId, counts: Option<TokenCounts>, snapshots: &[TokenSnapshot]) -> Value {
    let snapshots: Vec<Value> = with_rates(snapshots)
        .map(|(snapshot, rate)| {
            json!({
                "at": snapshot.at, "since": snapshot.counts.since, "issued": snapshot.counts.issued,
                "by_hand": snapshot.counts.by_hand, "used": snapshot.counts.used(),
                "remaining": snapshot.counts.remaining, "bought": snapshot.bought,
                "used_per_minute": rate,
            })
        })
        .collect();
    let now = counts.map(|counts| {
        json!({
            "since": counts.since, "issued": counts.issued, "by_hand": counts.by_hand,
            "used": counts.used(), "remaining": counts.remaining,
        })
    });
    json!({ "sale": sale, "now": now, "snapshots": snapshots })
}

fn text(sale: &SaleId, counts: Option<TokenCounts>, snapshots: &[TokenSnapshot]) -> String {
    let head = match counts {
        None => format!("{sale}: its gate counts nothing now\n"),
        Some(counts) => format!(
            "{sale}: {} tokens issued, {} of them by hand; {} used, {} remaining; since {}\n",
            counts.issued,
            counts.by_hand,
            counts.used(),
            counts.remaining,
            counts.since
        ),
    };
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["at", "issued", "by hand", "used", "remaining", "bought", "used a minute"]);
    for (snapshot, rate) in with_rates(snapshots) {
        let counts = &snapshot.counts;
        table.add_row([
            snapshot.at.to_string(),
            counts.issued.to_string(),
            counts.by_hand.to_string(),
            counts.used().to_string(),
            counts.remaining.to_string(),
            snapshot.bought.to_string(),
            rate.map_or_else(String::new, |rate| rate.to_string()),
        ]);
    }
    if snapshots.is_empty() { head } else { format!("{head}{table}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(minute: i64, used: i64, since_ms: i64) -> TokenSnapshot {
        let counts = TokenCounts {
            issued: 100,
            by_hand: 10,
            remaining: 100 - used,
            since: Timestamp::from_ms(since_ms),
        };
        TokenSnapshot { at: Timestamp::from_ms(minute * 60_000), counts, bought: 3 }
    }

    #[test]
    fn a_snapshot_is_shown_with_its_rate_unless_counts_were_lost() {
        let sale = SaleId::new("g1").unwrap();
        let snapshots = [snapshot(1, 5, 0), snapshot(3, 25, 0), snapshot(4, 2, 200_000)];
        let facts = facts(&sale, Some(snapshots[2].counts), &snapshots);
        let rates = [0, 1, 2].map(|index| facts["snapshots"][index]["used_per_minute"].clone());
        assert_eq!(rates, [Value::Null, json!(10), Value::Null]);
        assert_eq!((&facts["now"]["used"], &facts["now"]["remaining"]), (&json!(2), &json!(98)));
        let shown = text(&sale, Some(snapshots[2].counts), &snapshots);
        let head = "g1: 100 tokens issued, 10 of them by hand; 2 used, 98 remaining; since 1970-01-01T00:03:20.000Z\n";
        assert!(shown.starts_with(head), "{shown}");
        let row: Vec<&str> = shown.lines().nth(3).unwrap().split_whitespace().collect();
        assert_eq!(row, ["1970-01-01T00:03:00.000Z", "100", "10", "25", "75", "3", "10"]);
        assert_eq!(text(&sale, None, &[]), "g1: its gate counts nothing now\n");
    }
}
