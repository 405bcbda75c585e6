//! `onsale money takings`: what a sale sold and took, minute by minute.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::ids::{SaleId, TierId};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::takings::{Taking, Takings, TierTaking};
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use serde_json::{Value, json};
use shared::dynamodb::ALL_TIME;

use super::minor;
use crate::engine::EngineArgs;
use crate::{Failure, out};

/// Print what a sale sold and took, minute by minute.
///
/// It is read from the log: each fact once, in the minute in which it was settled, some seconds after it happened.
/// Minutes in which nothing was settled are left out. Amounts are minor units of the sale's currency.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money takings demo-club
  onsale money takings demo-club --json")]
pub struct OfMinutes {
    /// The sale.
    #[arg(value_name = "SALE")]
    sale: SaleId,
    #[command(flatten)]
    engine: EngineArgs,
}

impl OfMinutes {
    /// Prints the minutes of the sale, its tiers and all together.
    ///
    /// # Errors
    /// The engine cannot be reached, DynamoDB fails, or there is no such sale.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { sale, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let published = reached.app.ports.catalogue().sale(&sale, Freshness::Fresh).await?;
        let published = published.ok_or_else(|| format!("there is no sale {sale}"))?;
        let currency = published.sale.file().currency;
        let mut takings = Takings::new(currency);
        let log = reached.app.ports.orders().orders.0.log();
        log.of_sale(&sale, ALL_TIME, |records| {
            records.iter().for_each(|placed| takings.add(&placed.record));
        })
        .await?;
        if json {
            let minutes: Vec<Value> = takings.minutes().map(minute_json).collect();
            let tiers: Vec<Value> = takings.tiers().map(tier_json).collect();
            let total = taking_json(&takings.total());
            return out(&json!({
                "sale": sale, "currency": currency, "minutes": minutes, "tiers": tiers, "total": total,
            }));
        }
        let [orders, tickets, returned] = ["orders", "tickets", "returned"];
        let [taken, commission, back, unowned] = ["taken", "commission", "given back", "unowned"];
        out(&format!(
            "{:24} {orders:>7} {tickets:>7} {returned:>8} {taken:>14} {commission:>12} {back:>14} {unowned:>10}",
            currency.to_string()
        ))?;
        for (at, taking) in takings.minutes() {
            out(&line(&at.to_string(), taking))?;
        }
        out(&line("all", &takings.total()))?;
        for (tier, TierTaking { sold, returned }) in takings.tiers() {
            out(&format!("{tier}: {sold} sold, {returned} returned"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What was sold and taken, as a line behind its name.
fn line(name: &str, taking: &Taking) -> String {
    let Taking { orders, tickets, returned, taken, commission, given_back, unowned } = taking;
    format!(
        "{name:24} {orders:>7} {tickets:>7} {returned:>8} {taken:>14} {commission:>12} {given_back:>14} {unowned:>10}"
    )
}

fn minute_json((at, taking): (Timestamp, &Taking)) -> Value {
    let mut minute = taking_json(taking);
    minute["at"] = json!(at);
    minute
}

fn tier_json((tier, taking): (&TierId, &TierTaking)) -> Value {
    let TierTaking { sold, returned } = taking;
    json!({ "tier": tier, "sold": sold, "returned": returned })
}

fn taking_json(taking: &Taking) -> Value {
    let Taking { orders, tickets, returned, taken, commission, given_back, unowned } = taking;
    json!({
        "orders": orders,
        "tickets": tickets,
        "returned": returned,
        "taken_minor": minor(*taken),
        "commission_minor": minor(*commission),
        "given_back_minor": minor(*given_back),
        "unowned_minor": minor(*unowned),
    })
}
