//! Codes of issued tickets: what makes one good, and what takes that away.
//!
//! A ticket's *serial* is its order, its number within the order, and its *issue*. A code says a serial and is
//! good while the ticket is live and the issue is the ticket's own. A refund takes the ticket back, and with it
//! every issue; issuing it anew raises the issue, and with it every older code is void. Neither is undone: the
//! issue never goes down, and a ticket that was taken back is never live again. Issue and check-in are kept on
//! the order's ticket, so that the conditions of one item decide between a refund, a new issue and a door.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::basics::limits::MAX_SEATS_PER_ORDER;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::within_order::numbered_within_order;
use crate::domain::order::order_refund::AskedBy;
use crate::domain::order::{Issue, Order, OrderLine, OrderState, Ticket, TicketName};
use crate::domain::payment::refund::RefundPlan;

/// Most tickets of one order, as the number of its last one.
pub const MAX_TICKET: u8 = 10;
#[expect(clippy::cast_possible_truncation, reason = "a constant below 256, which is asserted")]
const _: () = assert!(MAX_SEATS_PER_ORDER < 256 && MAX_TICKET == MAX_SEATS_PER_ORDER as u8);

numbered_within_order!(
    /// The number of a ticket within its order, from 1: its place among all tickets, line by line, which never
    /// changes.
    TicketNumber, MAX_TICKET,
    /// A number that no ticket has.
    InvalidTicket, "a ticket's number is from 1 to {MAX_TICKET}"
);

/// What a code stands for: one issue of one ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial {
    pub order: OrderNumber,
    /// The ticket of the order.
    pub ticket: TicketNumber,
    /// The issue of the ticket.
    pub issue: Issue,
}

/// The state of an issued ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TicketState {
    /// It lets one person in.
    Valid,
    /// A refund took it back.
    Revoked,
    /// It has let somebody in.
    CheckedIn,
}

impl Ticket {
    /// Its state, once it is issued.
    #[must_use]
    pub fn state(&self) -> TicketState {
        match (&self.refund, &self.checked_in) {
            (Some(_), _) => TicketState::Revoked,
            (None, Some(_)) => TicketState::CheckedIn,
            (None, None) => TicketState::Valid,
        }
    }
}

/// A ticket of an order, with its number and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedTicket<'a> {
    pub number: TicketNumber,
    pub line: &'a OrderLine,
    pub ticket: &'a Ticket,
}

impl Order {
    /// All tickets, live and refunded, with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = NumberedTicket<'_>> {
        let each = self.lines.iter().flat_map(|line| line.tickets.iter().map(move |of| (line, of)));
        (1..=MAX_TICKET).zip(each).map(|(number, (line, ticket))| NumberedTicket {
            number: TicketNumber(number),
            line,
            ticket,
        })
    }

    /// The tickets that were ever good for anything: all of a paid order, and those that refunds took back. An
    /// order that was never paid has none.
    pub fn issued(&self) -> impl Iterator<Item = NumberedTicket<'_>> {
        let is_paid = match self.state {
            OrderState::Paid => true,
            OrderState::Pending
            | OrderState::Cancelled
            | OrderState::Expired
            | OrderState::RefundDue
            | OrderState::Refunded => false,
        };
        self.numbered().filter(move |numbered| is_paid || !numbered.ticket.is_live())
    }

    pub(super) fn ticket_mut(&mut self, number: TicketNumber) -> Option<&mut Ticket> {
        let mut each = self.lines.iter_mut().flat_map(|line| &mut line.tickets);
        each.nth(usize::from(number.get()).checked_sub(1)?)
    }
}

/// Why a ticket is not issued anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReissueRefusal {
    /// The order is not paid.
    #[error("the order is {}", .0.as_str())]
    NotPaid(OrderState),
    /// The order has no such ticket.
    #[error("the order has no ticket {0}")]
    UnknownTicket(TicketNumber),
    /// The ticket was refunded, or is named twice.
    #[error("ticket {} of tier {} is refunded, or is named twice", .0.seat, .0.tier)]
    Refunded(TicketName),
}

/// Tickets that are issued anew, and what that changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReissuePlan {
    /// The order as it shall be: the issue of each of the tickets is the next one.
    pub order: Order,
    /// The tickets with the issues that they had.
    pub before: BTreeMap<TicketNumber, Issue>,
}

/// Decides a request to issue tickets anew: these, or all that live if none is named. Reads nothing but its
/// arguments.
///
/// # Errors
/// The first [`ReissueRefusal`].
pub fn decide_reissue(
    order: &Order,
    tickets: &[TicketNumber],
) -> Result<ReissuePlan, ReissueRefusal> {
    if order.state != OrderState::Paid {
        return Err(ReissueRefusal::NotPaid(order.state));
    }
    let live = order.numbered().filter(|numbered| numbered.ticket.is_live());
    let all: Vec<TicketNumber> = live.map(|numbered| numbered.number).collect();
    let wanted = if tickets.is_empty() { &all } else { tickets };
    let mut plan = ReissuePlan { order: order.clone(), before: BTreeMap::new() };
    for number in wanted {
        let unknown = || ReissueRefusal::UnknownTicket(*number);
        let found = order.numbered().find(|numbered| numbered.number == *number);
        let found = found.ok_or_else(unknown)?;
        let before = plan.before.insert(*number, found.ticket.issue);
        if !found.ticket.is_live() || before.is_some() {
            return Err(ReissueRefusal::Refunded(found.ticket.named(found.line)));
        }
        let ticket = plan.order.ticket_mut(*number).ok_or_else(unknown)?;
        ticket.issue = ticket.issue.next();
    }
    Ok(plan)
}

/// What became of the tickets of an order: for each the lowest issue that is still good; `None` if none is.
pub type Revocations = BTreeMap<TicketNumber, Option<Issue>>;

/// The tickets of an order that are not all what they were at first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RevokedOrder {
    pub order: OrderNumber,
    /// Its tickets that were refunded or issued anew.
    pub tickets: Revocations,
}

/// One page of what was revoked of a sale, by the number of the order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RevokedPage {
    pub orders: Vec<RevokedOrder>,
    /// The order with which the next page begins; `None` at the end.
    pub next: Option<OrderNumber>,
}

impl ReissuePlan {
    #[must_use]
    pub fn revokes(&self) -> Revocations {
        let raised = self.before.iter().map(|(number, issue)| (*number, Some(issue.next())));
        raised.collect()
    }
}

impl RefundPlan {
    /// What it revokes: of a cancelled sale nothing ticket by ticket, for all of them are void.
    #[must_use]
    pub fn revokes(&self) -> Revocations {
        match self.refund.asked_by {
            AskedBy::SaleCancelled => Revocations::new(),
            AskedBy::Buyer
            | AskedBy::Operator
            | AskedBy::Dispute
            | AskedBy::Exchange
            | AskedBy::Outside => {
                let number = Some(self.refund.key.number);
                let taken = self.order.numbered().filter(|of| of.ticket.refund == number);
                taken.map(|of| (of.number, None)).collect()
            }
        }
    }

    /// True if none of its tickets may have let anybody in: a buyer gives no such ticket back, and a debt takes none.
    #[must_use]
    pub fn must_be_unused(&self) -> bool {
        match self.refund.asked_by {
            AskedBy::Buyer | AskedBy::Exchange => true,
            // What was bought with the money of a top-up goes only if nobody has used it.
            AskedBy::Dispute => self.refund.payment.provider.is_wallet(),
            AskedBy::Operator | AskedBy::SaleCancelled | AskedBy::Outside => false,
        }
    }
}
