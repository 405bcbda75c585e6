//! `GET /operator/sales/{sale}/orders.csv`: the tickets of a sale, block by block of its seats.
//!
//! The export finds orders by the claims and by the returned seats, both of which are kept by blocks of seats: it needs
//! neither a scan nor an index. An order that ended without a payment has no seat, so the export leaves it out.

use std::collections::BTreeSet;

use engine::domain::basics::ids::{SaleId, Seat, TierId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::{Order, OrderLine, Ticket};
use engine::domain::sale::Sale;
use engine::flows::load::blocks_of;
use engine::ports::{Orders as _, Ports as _, StoreError, block_of};
use lambda_http::Request;
use shared::http::checks::Refusal;
use shared::http::respond::Csv;
use shared::http::{Problem, checks};
use shared::runtime::app::App;

/// Most blocks of a page: 1,024 seats.
const MAX_BLOCKS: usize = 8;
/// Tickets with which a page is full. A block more may have 8,192 of a train of 64 legs, so that a page has less
/// than 2 MB, of the 6 MB that a function may answer.
const FULL: usize = 4_000;
/// The heading of every page.
const HEADING: [&str; 14] = [
    "order",
    "state",
    "buyer",
    "created_at",
    "changed_at",
    "payment",
    "tier",
    "seat",
    "from",
    "to",
    "attendee",
    "price_minor",
    "currency",
    "refund",
];

/// A page of the tickets of a sale, by tier, seat and journey.
pub(super) async fn orders(app: &App, request: &Request, id: &SaleId) -> Result<Csv, Problem> {
    let cursor: Option<u32> = checks::query(request, "cursor")?;
    let published = checks::sale(&app.ports, id).await?;
    let sale = &published.sale;
    let blocks: Vec<(&TierId, u32)> = sale.tiers().iter().flat_map(blocks_of).collect();
    let first = cursor.map_or(Some(0), |cursor| usize::try_from(cursor).ok());
    let rest = first.and_then(|first| blocks.get(first..)).unwrap_or_default();
    if rest.is_empty() && cursor.is_some() {
        return Err(Refusal::invalid("cursor", "must be X-Next-Cursor of the page before").into());
    }
    let mut page = Page::new()?;
    let mut done = first.unwrap_or(0);
    for (tier, block) in rest.iter().take(MAX_BLOCKS) {
        for order in of_block(app, sale, tier, *block).await? {
            page.add(sale, &order, tier, *block)?;
        }
        page.end_block()?;
        done += 1;
        if page.tickets >= FULL {
            break;
        }
    }
    let next = (done < blocks.len()).then_some(done);
    Ok(Csv { text: page.finish()?, next: next.map(|next| next.to_string()) })
}

/// The orders that have seats of a block, or had them until a refund.
async fn of_block(
    app: &App,
    sale: &Sale,
    tier: &TierId,
    block: u32,
) -> Result<Vec<Order>, Problem> {
    let claims = app.ports.orders().block_claims(sale.id(), tier, block).await?;
    let numbers: BTreeSet<OrderNumber> = claims.holders().map(|(_, order)| order).collect();
    let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
    Ok(app.ports.orders().get_many(&numbers).await?)
}

/// A line of the page: by what it is sorted, and its fields.
type Row = ((Seat, u16, OrderNumber), [String; HEADING.len()]);

/// A page that is being written.
struct Page {
    writer: csv::Writer<Vec<u8>>,
    tickets: usize,
    block: Vec<Row>,
}

impl Page {
    fn new() -> Result<Self, Problem> {
        let mut writer =
            csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        writer.write_record(HEADING).map_err(unwritten)?;
        Ok(Self { writer, tickets: 0, block: Vec::new() })
    }

    /// Adds the tickets of an order that lie in a block.
    fn add(
        &mut self,
        sale: &Sale,
        order: &Order,
        tier: &TierId,
        block: u32,
    ) -> Result<(), Problem> {
        for line in order.lines.iter().filter(|line| line.tier == *tier) {
            let tickets = line.tickets.iter().filter(|ticket| block_of(ticket.seat) == block);
            self.block.extend(tickets.map(|ticket| row(sale, order, line, ticket)));
        }
        Ok(())
    }

    /// Writes what was added since the last block, sorted.
    fn end_block(&mut self) -> Result<(), Problem> {
        self.block.sort_by_key(|(place, _)| *place);
        self.tickets += self.block.len();
        for (_, fields) in self.block.drain(..) {
            self.writer.write_record(fields).map_err(unwritten)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<String, Problem> {
        let bytes = self.writer.into_inner().map_err(|error| unwritten(error.into_error()))?;
        String::from_utf8(bytes).map_err(unwritten)
    }
}

/// The line of a ticket.
fn row(sale: &Sale, order: &Order, line: &OrderLine, ticket: &Ticket) -> Row {
    let payment = order.payment.as_ref();
    let payment = payment.map(|key| format!("{}/{}", key.provider, key.payment));
    let attendee = ticket.attendee.as_ref().and_then(|attendee| attendee.id.as_ref());
    let stop = |index| sale.stop(index).map_or("", |stop| stop.as_str());
    let fields = [
        order.number.to_string(),
        order.state.as_str().to_owned(),
        as_text(order.user.as_str()),
        order.created_at.to_string(),
        order.changed_at.to_string(),
        as_text(&payment.unwrap_or_default()),
        line.tier.to_string(),
        as_text(ticket.name.as_str()),
        as_text(stop(line.legs.from())),
        as_text(stop(line.legs.to())),
        as_text(attendee.map_or("", |id| id.as_str())),
        line.price_minor.to_string(),
        order.total.currency.to_string(),
        ticket.refund.map(|refund| refund.to_string()).unwrap_or_default(),
    ];
    ((ticket.seat, line.legs.from(), order.number), fields)
}

/// Text that others wrote, which no spreadsheet takes for a formula.
/// Source: OWASP, "CSV Injection".
fn as_text(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

/// Why a page was not written: none of what an order has should do that.
fn unwritten(error: impl std::fmt::Display) -> Problem {
    StoreError::Contract(format!("a line of CSV: {error}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula() {
        for text in ["=1+1", "+49", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(as_text(text), format!("'{text}"));
        }
        for text in ["", "alice", "A-12-7", "1=1", "\u{4e0a}\u{94fa}"] {
            assert_eq!(as_text(text), text);
        }
    }
}
