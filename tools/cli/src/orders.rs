//! `onsale orders`: what an operator does to the records of orders.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::ids::SaleId;
use engine::domain::number::OrderNumber;
use engine::domain::time::Timestamp;
use engine::ports::Ports as _;
use serde_json::json;
use shared::dynamodb::{Erased, Selection};

use super::engine::EngineArgs;
use super::{Failure, out};

/// Erase personal data from orders.
#[derive(Debug, Args)]
pub struct OrdersCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    EraseAttendees(EraseAttendees),
}

/// Erase the ids of attendees from the orders of a sale: afterwards nobody can say who was to use a
/// ticket.
///
/// Orders, seats and payments stay as they are, and so do the keyed hashes by which nobody gets a second
/// ticket. It may run while the sale goes on, and be repeated at will: what was erased before is passed
/// over, so a run that was cut off is finished by another. It reads the whole table of orders, unless one
/// order is named.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale orders erase-attendees --sale club-undertow
  onsale orders erase-attendees --sale club-undertow --before 2026-12-31T00:00:00Z --from-environment
  onsale orders erase-attendees --sale club-undertow --order 169218430493097984")]
struct EraseAttendees {
    /// The sale.
    #[arg(long, value_name = "SALE")]
    sale: SaleId,
    /// Only from orders made before this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    before: Option<Timestamp>,
    /// Only from this order.
    #[arg(long, value_name = "NUMBER", conflicts_with = "before")]
    order: Option<OrderNumber>,
    #[command(flatten)]
    engine: EngineArgs,
}

impl OrdersCommand {
    /// Erases, and prints how much.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails on the way.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Action::EraseAttendees(erase) = self.action;
        let EraseAttendees { sale, before, order, engine } = erase;
        let reached = engine.reach(data_dir).await?;
        let selection = Selection { sale, before, order };
        let erased = reached.app.ports.orders().orders.0.erase_attendees(&selection).await?;
        let Erased { looked_at, orders, tickets } = erased;
        out(&if json {
            let (sale, before, order) = (selection.sale, selection.before, selection.order);
            reporting::json(&json!({
                "sale": sale, "before": before, "order": order,
                "looked_at": looked_at, "orders": orders, "tickets": tickets,
            }))
        } else {
            format!(
                "{looked_at} orders looked at; ids erased from {tickets} tickets of {orders} orders"
            )
        })
    }
}
