//! `onsale money disputes`: what whoever paid has had the bank take back.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use shared::http::disputes::{DisputeReply, DisputesReply};

use crate::engine::EngineArgs;
use crate::{Failure, out};

/// Payments that are read at a time.
const PAGE: u16 = 100;

/// Print the disputes of payments, latest change first: the open ones, or those that are over.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money disputes
  onsale money disputes --over --json")]
pub struct Disputes {
    /// Those of payments of which none is open any more.
    #[arg(long)]
    over: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

impl Disputes {
    /// Prints them.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { over, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let operators = reached.app.ports.operators();
        let mut disputes: Vec<DisputeReply> = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let page = operators.disputed_page(!over, before.as_deref(), PAGE).await?;
            before = page.next.clone();
            disputes.extend(DisputesReply::from(page).disputes);
            if before.is_none() {
                break;
            }
        }
        if json {
            return out(&json!({ "disputes": disputes }));
        }
        for it in &disputes {
            let (amount, currency) = (it.amount_minor, it.currency);
            let state = it.state.as_str();
            out(&format!(
                "{} {state:5} {amount:>12} {currency}  {} {} of order {}",
                it.changed_at, it.provider, it.dispute, it.order
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
