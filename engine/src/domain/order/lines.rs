//! The lines of an order and its tickets: what each is for, and what has become of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::attendee::Attendee;
use super::order_refund::RefundNumber;
use crate::domain::basics::ids::{DoorName, Legs, Seat, SeatName, TierId};
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::HeldLine;
use crate::domain::sale::RefundTerms;

/// One ticket of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The seat of the line's tier.
    pub seat: Seat,
    /// Its name, as printed.
    pub name: SeatName,
    /// The person who will use it, if named.
    pub attendee: Option<Attendee>,
    /// The refund that took it back; `None` while it lives.
    pub refund: Option<RefundNumber>,
    /// Its issue: only codes of this one are good.
    pub issue: Issue,
    /// The first check-in by it; `None` while it has let nobody in.
    pub checked_in: Option<CheckIn>,
}

impl Ticket {
    /// True until it is refunded.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.refund.is_none()
    }
}

/// Tickets of one tier on one journey at one price.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderLine {
    /// Id of the tier.
    pub tier: TierId,
    /// The legs of the journey.
    pub legs: Legs,
    /// The price of each ticket.
    pub price_minor: MinorUnits,
    /// Until when its buyer may give a ticket back, and for what fee; `None` if never.
    pub terms: Option<RefundTerms>,
    /// Until when its buyer may exchange a ticket, and for what fee; `None` if never.
    pub exchange: Option<RefundTerms>,
    /// The tickets, live and refunded.
    pub tickets: Vec<Ticket>,
}

impl OrderLine {
    /// The tickets that are not refunded.
    pub fn live(&self) -> impl Iterator<Item = &Ticket> {
        self.tickets.iter().filter(|ticket| ticket.is_live())
    }

    /// The seats of some of the line's tickets, as the inventory knows them; `None` without any ticket.
    pub(crate) fn held_line_of<'a>(
        &self,
        tickets: impl Iterator<Item = &'a Ticket>,
    ) -> Option<HeldLine> {
        let seats: Vec<Seat> = tickets.map(|ticket| ticket.seat).collect();
        let (tier, legs) = (self.tier.clone(), self.legs);
        (!seats.is_empty()).then_some(HeldLine { tier, legs, seats })
    }

    /// Number of its live tickets.
    #[must_use]
    pub fn count(&self) -> Tickets {
        Tickets::of_seats(self.live().count())
    }

    /// The price of its live tickets.
    #[must_use]
    pub fn total_minor(&self) -> MinorUnits {
        self.price_minor * self.count()
    }
}

/// A ticket of an order, named as the order shows it: an order has one line a tier.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct TicketName {
    /// The tier.
    pub tier: TierId,
    /// The seat.
    pub seat: SeatName,
}

impl Ticket {
    /// Its name within its order.
    #[must_use]
    pub fn named(&self, line: &OrderLine) -> TicketName {
        TicketName { tier: line.tier.clone(), seat: self.name.clone() }
    }
}

/// The issue of a ticket, from 1: how often a code was made for it under another serial.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(inline)]
pub struct Issue(#[schemars(range(min = 1))] u32);

/// A number that no issue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an issue's number is at least 1")]
pub struct InvalidIssue;

impl Issue {
    /// The issue of a ticket that was never issued anew.
    pub const FIRST: Self = Self(1);

    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The one after it. The last of them is followed by itself: at ten a second a ticket meets it after
    /// thirteen years.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl TryFrom<u32> for Issue {
    type Error = InvalidIssue;
    fn try_from(number: u32) -> Result<Self, InvalidIssue> {
        (number > 0).then_some(Self(number)).ok_or(InvalidIssue)
    }
}

impl From<Issue> for u32 {
    fn from(issue: Issue) -> Self {
        issue.0
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Somebody was let in by a ticket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckIn {
    /// When its code was scanned, by the clock of the device at the door.
    pub at: Timestamp,
    pub door: DoorName,
}
