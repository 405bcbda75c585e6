//! `onsale money debts`: what merchants and wallets owe.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::ledger::debts::Debt;
use serde_json::{Value, json};
use shared::debts::{Start, page};

use super::minor;
use crate::engine::EngineArgs;
use crate::{Failure, out};

/// Print what is owed to the platform: by merchants, whose account of a sale is below nothing because refunds or lost disputes
/// came after its settlement, and by wallets, from which a lost dispute has taken what they had spent.
///
/// The next settlement of a merchant is less by what it owes of its other sales.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money debts
  onsale money debts --json")]
pub struct Debts {
    #[command(flatten)]
    engine: EngineArgs,
}

impl Debts {
    /// Prints them.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let reached = self.engine.reach(data_dir).await?;
        let ports = &reached.app.ports;
        let (mut debts, mut start) = (BTreeSet::new(), Some(Start::FIRST));
        while let Some(at) = start {
            let found = page(ports, at).await?;
            debts.extend(found.owing.into_iter().map(|owing| owing.debt));
            start = found.next;
        }
        if json {
            let all: Vec<Value> = debts.iter().map(shown).collect();
            return out(&json!({ "debts": all }));
        }
        for Debt { debtor, currency, amount_minor } in &debts {
            out(&format!("{amount_minor:>14} {currency}  {debtor}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(debt: &Debt) -> Value {
    let Debt { debtor, currency, amount_minor } = debt;
    let owed = minor(*amount_minor);
    json!({ "debtor": debtor.to_string(), "currency": currency, "owed_minor": owed })
}
