//! The records of the inventory: terms of a sale, lines of an order, and holds.

use serde::{Deserialize, Serialize};

use super::choice::Choice;
use crate::domain::basics::ids::{Leg, Legs, RequestFingerprint, Seat, TierId, UserId};
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::SaleState;

/// The terms of a sale that the scripts check.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terms {
    /// `Open` if the sale takes reservations.
    pub state: SaleState,
    pub opens_at: Timestamp,
    /// End of selling, exclusive.
    pub closes_at: Timestamp,
    /// Most tickets of one buyer in the sale.
    pub limit: Tickets,
    /// Number of legs of a whole journey.
    pub leg_count: u16,
}

/// One line of an order before its seats are known. An order has at most one line a tier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// Id of the tier.
    pub tier: TierId,
    /// The legs of the journey.
    pub legs: Legs,
    /// The seats, or how to pick them.
    pub choice: Choice,
}

/// Seats of one tier on one journey.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLine {
    /// Id of the tier.
    pub tier: TierId,
    /// The legs of the journey.
    pub legs: Legs,
    /// The seats, each once.
    pub seats: Vec<Seat>,
}

impl HeldLine {
    /// Each seat on each leg of the line.
    pub fn seat_legs(&self) -> impl Iterator<Item = SeatLeg> + '_ {
        let of = move |seat: Seat| {
            self.legs.iter().map(move |leg| SeatLeg { tier: self.tier.clone(), leg, seat })
        };
        self.seats.iter().copied().flat_map(of)
    }
}

/// One seat on one leg: the smallest thing that can be sold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeatLeg {
    /// Id of the tier.
    pub tier: TierId,
    /// The leg, counted from 0.
    pub leg: Leg,
    /// The seat of the tier.
    pub seat: Seat,
}

/// Number of tickets of some lines: one a seat.
#[must_use]
pub fn tickets(lines: &[HeldLine]) -> Tickets {
    Tickets::of_seats(lines.iter().map(|line| line.seats.len()).sum())
}

/// A hold as Redis keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HoldRecord {
    /// The buyer who holds.
    pub user: UserId,
    /// The fingerprint of the request.
    pub fingerprint: RequestFingerprint,
    /// End of the payment window.
    pub deadline: Timestamp,
    /// The seats that are held, a line a tier.
    pub lines: Vec<HeldLine>,
}

impl HoldRecord {
    /// Number of tickets that it holds.
    #[must_use]
    pub fn tickets(&self) -> Tickets {
        tickets(&self.lines)
    }
}
