//! What the inventory is told and remembers: the terms of a sale, lines, and holds.

use serde::{Deserialize, Serialize};

use crate::domain::choice::Choice;
use crate::domain::ids::{Legs, RequestFingerprint, Seat, TierId, UserId};
use crate::domain::sale::SaleState;
use crate::domain::time::Timestamp;

/// The terms of a sale that the scripts check.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terms {
    /// Whether the sale takes reservations.
    pub state: SaleState,
    /// When it begins to.
    pub opens_at: Timestamp,
    /// When it ends.
    pub closes_at: Timestamp,
    /// Most tickets of one buyer.
    pub limit: u16,
    /// How many legs a whole journey has.
    pub legs: u16,
}

/// One line of an order before its seats are known. An order has at most one line a tier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// Which tier.
    pub tier: TierId,
    /// Which journey.
    pub legs: Legs,
    /// Which seats, or how to pick them.
    pub choice: Choice,
}

/// Seats of one tier on one journey.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLine {
    /// Which tier.
    pub tier: TierId,
    /// Which journey.
    pub legs: Legs,
    /// Which seats, each once.
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
    /// Which tier.
    pub tier: TierId,
    /// Which leg.
    pub leg: u16,
    /// Which seat.
    pub seat: Seat,
}

/// How many tickets some lines are.
#[must_use]
pub fn tickets(lines: &[HeldLine]) -> u16 {
    let seats: usize = lines.iter().map(|line| line.seats.len()).sum();
    u16::try_from(seats).unwrap_or(u16::MAX)
}

/// What Redis remembers of a hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HoldRecord {
    /// Who holds.
    pub user: UserId,
    /// What was asked for.
    pub fingerprint: RequestFingerprint,
    /// Until when it may be paid.
    pub deadline: Timestamp,
    /// What is held.
    pub lines: Vec<HeldLine>,
}

impl HoldRecord {
    /// How many tickets it holds.
    #[must_use]
    pub fn tickets(&self) -> u16 {
        tickets(&self.lines)
    }
}
