//! The records of the inventory: terms of a sale, lines of an order, and holds with their text.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::domain::choice::Choice;
use crate::domain::ids::{Legs, RequestFingerprint, Seat, TierId, UserId};
use crate::domain::sale::SaleState;
use crate::domain::time::Timestamp;

/// The terms of a sale that the scripts check.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terms {
    /// `Open` if the sale takes reservations.
    pub state: SaleState,
    /// Begin of selling.
    pub opens_at: Timestamp,
    /// End of selling, exclusive.
    pub closes_at: Timestamp,
    /// Most tickets of one buyer in the sale.
    pub limit: u16,
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
    pub leg: u16,
    /// The seat of the tier.
    pub seat: Seat,
}

/// Number of tickets of some lines: one a seat.
#[must_use]
pub fn tickets(lines: &[HeldLine]) -> u16 {
    let seats: usize = lines.iter().map(|line| line.seats.len()).sum();
    u16::try_from(seats).unwrap_or(u16::MAX)
}

/// A hold as Redis keeps it, as text: `deadline|content|tickets|lines|user`.
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

/// The text in Redis is not a hold record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a hold record: {0:?}")]
pub struct MalformedRecord(pub String);

/// Lines as text: `tier,from,to,seat.seat` joined by `;`.
#[must_use]
pub fn pack_lines(lines: &[HeldLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let separator = if text.is_empty() { "" } else { ";" };
        let seats: Vec<String> = line.seats.iter().map(|seat| seat.0.to_string()).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{separator}{},{},{},{}",
            line.tier,
            line.legs.from(),
            line.legs.to(),
            seats.join(".")
        );
    }
    text
}

/// Reads what [`pack_lines`] wrote.
///
/// # Errors
/// Returns the text if it is anything else.
pub fn unpack_lines(text: &str) -> Result<Vec<HeldLine>, MalformedRecord> {
    let line = |text: &str| {
        let mut parts = text.split(',');
        let tier = TierId::new(parts.next()?).ok()?;
        let legs = Legs::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)?;
        let seats = parts.next()?;
        let seats: Option<Vec<Seat>> =
            seats.split('.').map(|seat| seat.parse().ok().map(Seat)).collect();
        parts.next().is_none().then_some(HeldLine { tier, legs, seats: seats? })
    };
    let malformed = || MalformedRecord(text.to_owned());
    text.split(';').map(line).collect::<Option<_>>().ok_or_else(malformed)
}

impl HoldRecord {
    /// Number of tickets that it holds.
    #[must_use]
    pub fn tickets(&self) -> u16 {
        tickets(&self.lines)
    }

    /// The record as text. The user comes last because it is free text.
    #[must_use]
    pub fn pack(&self) -> String {
        let Self { user, fingerprint, deadline, lines } = self;
        let (deadline, tickets) = (deadline.ms(), self.tickets());
        format!("{deadline}|{}|{tickets}|{}|{user}", fingerprint.as_str(), pack_lines(lines))
    }

    /// Reads what [`HoldRecord::pack`] wrote.
    ///
    /// # Errors
    /// Returns the text if it is anything else.
    pub fn unpack(text: &str) -> Result<Self, MalformedRecord> {
        let read = || {
            let mut parts = text.splitn(5, '|');
            let deadline = Timestamp::from_ms(parts.next()?.parse().ok()?);
            let fingerprint = RequestFingerprint::new(parts.next()?).ok()?;
            let tickets: u16 = parts.next()?.parse().ok()?;
            let lines = unpack_lines(parts.next()?).ok()?;
            let user = UserId::new(parts.next()?).ok()?;
            let record = Self { user, fingerprint, deadline, lines };
            (record.tickets() == tickets).then_some(record)
        };
        read().ok_or_else(|| MalformedRecord(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ask, best, held, line, loaded};
    use super::*;

    #[test]
    fn records_survive_being_text() {
        let hold =
            ask(1, "auth0|x;y,z", vec![line("a", (0, 2), best(2)), line("b", (0, 1), best(1))]);
        let record = held(&mut loaded(), &hold);
        assert_eq!(HoldRecord::unpack(&record.pack()), Ok(record.clone()));
        let text = record.pack();
        for bad in [
            "",
            "1|2",
            &text.replace("|3|", "|2|"),
            &text.replace("a,0,2", "a,2,0"),
            &text.replace("0.1", "0.x"),
            &text.replace("00000000000000aa", "aa"),
        ] {
            assert_eq!(HoldRecord::unpack(bad), Err(MalformedRecord(bad.to_owned())));
        }
    }
}
