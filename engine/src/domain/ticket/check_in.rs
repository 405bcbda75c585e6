//! Check-in: what a scan at a door comes to.

use super::{Serial, TicketNumber};
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::order::{CheckIn, Order};

/// An admission, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckInPlan {
    /// The order as it shall be: the ticket says who let its holder in.
    pub order: Order,
    /// The serial that was shown: the ticket's own.
    pub serial: Serial,
    pub check_in: CheckIn,
}

/// A ticket by which a door let somebody in although another check-in of it was there first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DoubleCheckIn {
    pub sale: SaleId,
    pub order: OrderNumber,
    pub ticket: TicketNumber,
    /// The check-in that was recorded first.
    pub first: CheckIn,
    pub again: CheckIn,
}

impl DoubleCheckIn {
    /// Its name among those of its sale: sorted as text, those of a ticket stand together, in order of time.
    #[must_use]
    pub fn key(&self) -> String {
        let Self { order, ticket, again: CheckIn { at, door }, .. } = self;
        format!("{:019}#{:02}#{:015}#{door}", order.get(), ticket.get(), at.ms().max(0))
    }
}

/// A page of the tickets that let in more than one, by their [keys](DoubleCheckIn::key).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DoublesPage {
    /// The check-ins after the first.
    pub doubles: Vec<DoubleCheckIn>,
    /// The key after which the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// How often the doors of a sale let somebody in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CheckInCounts {
    /// Tickets that let somebody in.
    pub admitted: u64,
    /// Check-ins of tickets that had let somebody in before.
    pub doubles: u64,
}

/// What a scan at a door comes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CheckInDecision {
    /// The ticket lets its holder in.
    Admit(Box<CheckInPlan>),
    /// This very scan was recorded as the ticket's check-in before.
    Repeated(CheckIn),
    /// The ticket has let somebody in before.
    Double(DoubleCheckIn),
    /// The ticket was refunded, or the issue is an old one.
    Revoked,
    /// There is no such ticket in the sale.
    Unknown,
}

/// Decides a scan of a code whose signature was verified. `order` is the order of the serial, if there is one.
/// Reads nothing but its arguments.
#[must_use]
pub fn decide_check_in(
    order: Option<&Order>,
    sale: &SaleId,
    serial: &Serial,
    scan: &CheckIn,
) -> CheckInDecision {
    let order = order.filter(|order| order.sale == *sale && order.number == serial.order);
    let found = order.and_then(|order| {
        Some((order, order.issued().find(|issued| issued.number == serial.ticket)?.ticket))
    });
    let Some((order, ticket)) = found.filter(|(_, ticket)| serial.issue <= ticket.issue) else {
        return CheckInDecision::Unknown;
    };
    if let Some(first) = ticket.checked_in.as_ref().filter(|first| *first == scan) {
        return CheckInDecision::Repeated(first.clone());
    }
    if !ticket.is_live() || serial.issue < ticket.issue {
        return CheckInDecision::Revoked;
    }
    if let Some(first) = ticket.checked_in.clone() {
        return CheckInDecision::Double(DoubleCheckIn {
            sale: sale.clone(),
            order: order.number,
            ticket: serial.ticket,
            first,
            again: scan.clone(),
        });
    }
    let mut order = order.clone();
    if let Some(ticket) = order.ticket_mut(serial.ticket) {
        ticket.checked_in = Some(scan.clone());
    }
    CheckInDecision::Admit(Box::new(CheckInPlan { order, serial: *serial, check_in: scan.clone() }))
}
