//! `onsale orders`: what an operator does to the records of orders.

use std::path::Path;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};
use engine::domain::basics::ids::{SaleId, SeatName, TierId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{
    AskedBy, InvalidRefund, OrderRefund, RefundKey, RefundNumber,
};
use engine::domain::order::{Order, TicketName};
use engine::domain::payment::refund::{RefundRefusal, RefundRequest, RefundedTickets};
use engine::flows::give_back::{Refusal, give_back};
use engine::flows::outside::{Told, keep, settle};
use engine::flows::refund::ask_again;
use engine::ports::{Orders as _, Ports as _};
use serde_json::json;
use shared::dynamodb::{Erased, Selection};
use shared::http::order_refund::OrderRefundReply;

use super::engine::EngineArgs;
use super::{DECLINED, Failure, out};

/// Refund orders, and erase personal data from them.
#[derive(Debug, Args)]
pub struct OrdersCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    EraseAttendees(EraseAttendees),
    Refund(RefundOrder),
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

/// Refund a paid order: tickets at their price, some of its money, or all that is left.
///
/// The seats are on sale again at once; the money follows, and `GET /orders/{order}/refunds` shows when it is
/// back. Never more than was captured goes back. Refunds of an order are numbered from 1: the same command
/// with the same `--number` makes nothing more, so that one that was cut off can be repeated.
///
/// `--again` has the provider asked again for a refund that it has refused. WeChat Pay and Alipay are asked again only
/// so: look first, in their bills up to yesterday, whether somebody has sent the money back by hand.
///
/// Exit code 1: it is refused; what is printed says why.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").required(true).multiple(true).args(["all", "ticket", "amount", "again", "keep", "settled"])),
    after_help = "\
Examples:
  onsale orders refund 169218430493097984 --ticket vip:A-1 --ticket vip:A-2
  onsale orders refund 169218430493097984 --number 2 --amount 500 --reason heating
  onsale orders refund 169218430493097984 --all --from-environment
  onsale orders refund 169218430493097984 --number 2 --again
  onsale orders refund 169218430493097984 --number 2 --settled cash"
)]
struct RefundOrder {
    /// The order.
    #[arg(value_name = "ORDER")]
    order: OrderNumber,
    /// A ticket that is taken back: its tier and its seat. May be repeated.
    #[arg(long, value_name = "TIER:SEAT", value_parser = ticket)]
    ticket: Vec<TicketName>,
    /// Every ticket that is still valid; without an amount with all the money that is left.
    #[arg(long, conflicts_with = "ticket")]
    all: bool,
    /// What goes back, in minor units of the order's currency, if that is not what the tickets cost. Without a
    /// ticket all of them stay valid.
    #[arg(long, value_name = "MINOR", requires = "number")]
    amount: Option<MinorUnits>,
    /// Has the provider asked again for the refund of that number, if it was refused.
    #[arg(long, requires = "number", conflicts_with_all = ["all", "ticket", "amount", "reason"])]
    again: bool,
    /// Keeps the tickets that are still good after the refund of that number, which was made outside.
    #[arg(long, requires = "number", conflicts_with_all = ["all", "ticket", "amount", "reason", "again"])]
    keep: bool,
    /// How the refund of that number was paid, which its provider did not send: nothing is sent any more.
    #[arg(
        long, value_name = "HOW", requires = "number",
        conflicts_with_all = ["all", "ticket", "amount", "reason", "again", "keep"]
    )]
    settled: Option<String>,
    /// The number of the refund within the order; without it the next one.
    #[arg(long, value_name = "N", value_parser = number)]
    number: Option<RefundNumber>,
    /// Why; kept with the refund.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    engine: EngineArgs,
}

fn number(text: &str) -> Result<RefundNumber, String> {
    let number: u8 = text.parse().map_err(|_| InvalidRefund.to_string())?;
    RefundNumber::try_from(number).map_err(|error| error.to_string())
}

fn ticket(text: &str) -> Result<TicketName, String> {
    let (tier, seat) = text.split_once(':').ok_or("a ticket is TIER:SEAT")?;
    let tier = TierId::new(tier).map_err(|error| error.to_string())?;
    Ok(TicketName { tier, seat: SeatName::new(seat).map_err(|error| error.to_string())? })
}

impl RefundOrder {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let number = self.order;
        let reached = self.engine.reach(data_dir).await?;
        let ports = &reached.app.ports;
        let Some(order) = ports.orders().get(number).await?.filter(|order| !order.is_tombstone())
        else {
            return declined(number, &Refusal::NotFound, json);
        };
        let now = Timestamp::now();
        if let Some(refund) = self.number.filter(|_| self.again) {
            let key = RefundKey { order: number, number: refund };
            return match ask_again(ports, key, now).await? {
                Some(refund) => shown(&refund, json),
                None => declined(number, &Refusal::NotFound, json),
            };
        }
        if let Some(refund) = self.number.filter(|_| self.keep || self.settled.is_some()) {
            let key = RefundKey { order: number, number: refund };
            let told = match &self.settled {
                Some(how) => settle(ports, key, how, now).await?,
                None => keep(ports, key, now).await?,
            };
            return match told {
                Some(Told::Done(refund)) => shown(&refund, json),
                Some(Told::NotNow(refund)) => {
                    let refusal = RefundRefusal::OtherState(refund.refund.state);
                    declined(number, &refusal.into(), json)
                }
                None => declined(number, &Refusal::NotFound, json),
            };
        }
        let request = match self.request(&order) {
            Ok(request) => request,
            Err(refused) => return declined(number, &refused.into(), json),
        };
        match give_back(ports, None, number, &request, now).await {
            Ok(given) => shown(&given.refund, json),
            Err(Refusal::Store(error)) => Err(error.into()),
            Err(refusal @ (Refusal::NotFound | Refusal::Refused(_))) => {
                declined(number, &refusal, json)
            }
        }
    }

    fn request(&self, order: &Order) -> Result<RefundRequest, RefundRefusal> {
        let next = || RefundNumber::try_from(order.refunds.made.saturating_add(1));
        let number = match self.number {
            Some(number) => number,
            None => next().map_err(|_| RefundRefusal::TooMany)?,
        };
        let tickets = if self.all {
            RefundedTickets::All
        } else {
            RefundedTickets::Named(self.ticket.clone())
        };
        let currency = order.total.currency;
        let amount = self.amount.map(|amount_minor| Money { amount_minor, currency });
        let (asked_by, reason) = (AskedBy::Operator, self.reason.clone());
        Ok(RefundRequest { number, tickets, amount, asked_by, reason })
    }
}

fn shown(refund: &OrderRefund, json: bool) -> Result<ExitCode, Failure> {
    let reply = OrderRefundReply::from(refund);
    out(&if json {
        reporting::json(&json!(reply))
    } else {
        let (key, amount, tickets) = (refund.key, refund.amount, refund.tickets.len());
        format!("{key}: {amount} for {tickets} tickets, {}", reply.state.as_str())
    })
}

fn declined(order: OrderNumber, why: &Refusal, json: bool) -> Result<ExitCode, Failure> {
    let what = why.to_string();
    out(&if json {
        reporting::json(&json!({ "order": order, "refused": what }))
    } else {
        format!("order {order}: {what}")
    })?;
    Ok(ExitCode::from(DECLINED))
}

impl OrdersCommand {
    /// Refunds or erases, and prints what or how much.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails on the way.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let erase = match self.action {
            Action::EraseAttendees(erase) => erase,
            Action::Refund(refund) => return refund.run(data_dir, json).await,
        };
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
