//! `onsale money buyer`: what a buyer has of money and points.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::ids::UserId;
use engine::ports::{Orders as _, Ports as _};
use serde_json::json;
use shared::http::points::PointsReply;
use shared::http::wallet::WalletsReply;

use crate::engine::EngineArgs;
use crate::{Failure, out};

/// Print a buyer's wallets with what has moved them, and points with what orders have given: as the buyer sees them, the
/// newest hundred of each.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money buyer alice
  onsale money buyer alice --json")]
pub struct OfBuyer {
    /// The buyer: the `sub` of the buyer's tokens.
    #[arg(value_name = "BUYER")]
    buyer: UserId,
    #[command(flatten)]
    engine: EngineArgs,
}

impl OfBuyer {
    /// Prints both.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { buyer, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let orders = reached.app.ports.orders();
        let wallets = WalletsReply::from(&orders.statement(&buyer).await?.sorted()).wallets;
        let points = PointsReply::from(&orders.points(&buyer).await?);
        if json {
            return out(&json!({ "buyer": buyer, "wallets": wallets, "points": points }));
        }
        for wallet in &wallets {
            out(&format!("wallet: {} {}", wallet.balance_minor, wallet.currency))?;
            for entry in &wallet.entries {
                let (at, amount, kind) = (entry.at, entry.amount_minor, json!(entry.kind));
                let kind = kind.as_str().unwrap_or_default();
                out(&format!(
                    "  {at} {amount:>12} {kind:11} order {} of {}",
                    entry.order, entry.sale
                ))?;
            }
        }
        out(&format!("points: {}, growth: {}", points.points, points.growth))?;
        for given in &points.orders {
            let (order, points, growth) = (given.order, given.points, given.growth);
            out(&format!("  {points:>12} {growth:>12} order {order}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
