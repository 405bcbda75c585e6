//! The three ways to choose seats, over one bitmap of what is taken on the whole journey.
//!
//! These rules are the oracle: `lua/hold.lua` must answer as they do.

use serde::{Deserialize, Serialize};

use crate::domain::basics::bitmap;
use crate::domain::basics::ids::Seat;

/// Whether `best` may split a party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Together {
    /// Adjacent in one row, or nothing.
    Required,
    /// Adjacent in one row if possible, else the best single seats.
    Preferred,
}

/// One further seat of a pattern, relative to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Offset {
    /// 0 for the first seat's row, 1 for the next.
    pub row: u16,
    /// Columns to the right; negative is to the left.
    pub column: i16,
}

/// The way in which one line of an order chooses its seats.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Exactly these seats, in ascending order, none twice.
    Seats(Vec<Seat>),
    /// The best that are left.
    Best {
        count: u16,
        /// Whether the seats may be scattered.
        together: Together,
    },
    /// A first seat in this column and others around it, anywhere in the tier.
    Pattern {
        /// The first seat's column.
        column: u16,
        /// The other seats, in the order asked for.
        offsets: Vec<Offset>,
    },
}

impl Choice {
    /// Number of seats that the choice takes.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Seats(seats) => seats.len(),
            Self::Best { count, .. } => usize::from(*count),
            Self::Pattern { offsets, .. } => offsets.len() + 1,
        }
    }
}

/// Why no seats could be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoChoice {
    /// These of the chosen seats are taken (or not for sale).
    SeatTaken(Vec<Seat>),
    /// Fewer seats are free than asked for, or the pattern fits nowhere.
    SoldOut,
    /// Enough seats are free, but nowhere enough of them side by side.
    NoAdjacent,
}

/// The bitmap of the seats that are taken on a journey: the OR of the bitmaps of its legs.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// One bit a place, most significant bit first; 1 is taken.
    pub bits: &'a [u8],
    /// Bytes of one row.
    pub row_bytes: u32,
}

impl Taken<'_> {
    fn row_bits(&self) -> u32 {
        self.row_bytes * 8
    }

    fn rows(&self) -> u32 {
        bitmap::places(self.bits) / self.row_bits()
    }

    fn is_free(&self, seat: Seat) -> bool {
        bitmap::get(self.bits, seat) == Some(false)
    }

    /// Picks seats, ascending for `Seats` and `Best`, in the pattern's order for `Pattern`.
    ///
    /// # Errors
    /// Says why nothing fits; see [`NoChoice`].
    pub fn choose(&self, choice: &Choice) -> Result<Vec<Seat>, NoChoice> {
        match choice {
            Choice::Seats(seats) => self.exactly(seats),
            Choice::Best { count, together } => self.best(u32::from(*count), *together),
            Choice::Pattern { column, offsets } => {
                self.pattern(u32::from(*column), offsets).ok_or(NoChoice::SoldOut)
            }
        }
    }

    fn exactly(&self, seats: &[Seat]) -> Result<Vec<Seat>, NoChoice> {
        let taken: Vec<Seat> = seats.iter().copied().filter(|seat| !self.is_free(*seat)).collect();
        if taken.is_empty() { Ok(seats.to_vec()) } else { Err(NoChoice::SeatTaken(taken)) }
    }

    /// The leftmost run of `count` free seats in the first row that has one; failing that, and if
    /// the party may be split, the first `count` free seats.
    fn best(&self, count: u32, together: Together) -> Result<Vec<Seat>, NoChoice> {
        if let Some(first) = self.first_run(count) {
            return Ok((first.0..first.0 + count).map(Seat).collect());
        }
        let all = (0..bitmap::places(self.bits)).map(Seat);
        let free: Vec<Seat> =
            all.filter(|seat| self.is_free(*seat)).take(bitmap::index(count)).collect();
        match together {
            _ if free.len() < bitmap::index(count) => Err(NoChoice::SoldOut),
            Together::Required => Err(NoChoice::NoAdjacent),
            Together::Preferred => Ok(free),
        }
    }

    fn first_run(&self, count: u32) -> Option<Seat> {
        (0..self.rows()).find_map(|row| {
            let start = row * self.row_bits();
            let mut run = 0;
            (start..start + self.row_bits()).map(Seat).find_map(|seat| {
                run = if self.is_free(seat) { run + 1 } else { 0 };
                (run == count).then(|| Seat(seat.0 + 1 - count))
            })
        })
    }

    /// The first row in which the whole pattern is free. A pattern never wraps: a column left of
    /// the first or right of the last, or a row past the last, is no place.
    fn pattern(&self, column: u32, offsets: &[Offset]) -> Option<Vec<Seat>> {
        let place = |row: u32, offset: Offset| {
            let column = i64::from(column) + i64::from(offset.column);
            let inside = (0..i64::from(self.row_bits())).contains(&column);
            let row = row + u32::from(offset.row);
            let seat = Seat(row * self.row_bits() + u32::try_from(column).ok()?);
            (inside && row < self.rows() && self.is_free(seat)).then_some(seat)
        };
        (0..self.rows()).find_map(|row| {
            let first = place(row, Offset { row: 0, column: 0 });
            std::iter::once(first).chain(offsets.iter().map(|offset| place(row, *offset))).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn taken(bits: &[u8]) -> Taken<'_> {
        Taken { bits, row_bytes: 1 }
    }

    fn best(bits: &[u8], count: u16, together: Together) -> Result<Vec<u32>, NoChoice> {
        let seats = taken(bits).choose(&Choice::Best { count, together })?;
        Ok(seats.into_iter().map(|seat| seat.0).collect())
    }

    #[test]
    fn best_prefers_the_first_row_with_a_run_over_an_earlier_scatter() {
        let bits = [0b1010_1011, 0b1100_0111];
        assert_eq!(best(&bits, 2, Together::Required), Ok(vec![10, 11]));
        assert_eq!(best(&bits, 4, Together::Preferred), Ok(vec![1, 3, 5, 10]));
        assert_eq!(best(&bits, 4, Together::Required), Err(NoChoice::NoAdjacent));
        assert_eq!(best(&bits, 7, Together::Preferred), Err(NoChoice::SoldOut));
    }

    #[test]
    fn a_run_does_not_cross_the_end_of_a_row() {
        assert_eq!(best(&[0xfe, 0x7f], 2, Together::Required), Err(NoChoice::NoAdjacent));
        assert_eq!(best(&[0xfe, 0x7f], 2, Together::Preferred), Ok(vec![7, 8]));
    }

    #[test]
    fn a_pattern_never_wraps_round_the_edges() {
        let next_row_right =
            Choice::Pattern { column: 7, offsets: vec![Offset { row: 0, column: 1 }] };
        assert_eq!(taken(&[0, 0]).choose(&next_row_right), Err(NoChoice::SoldOut));
        let diagonal = Choice::Pattern { column: 2, offsets: vec![Offset { row: 1, column: 1 }] };
        assert_eq!(taken(&[0, 0xff, 0, 0]).choose(&diagonal), Ok(vec![Seat(18), Seat(27)]));
        assert_eq!(taken(&[0]).choose(&diagonal), Err(NoChoice::SoldOut));
        let left = Choice::Pattern { column: 0, offsets: vec![Offset { row: 0, column: -1 }] };
        assert_eq!(taken(&[0]).choose(&left), Err(NoChoice::SoldOut));
    }

    #[test]
    fn chosen_seats_name_every_one_that_is_taken() {
        let choice = Choice::Seats(vec![Seat(0), Seat(1), Seat(8), Seat(99)]);
        let refusal = NoChoice::SeatTaken(vec![Seat(1), Seat(8), Seat(99)]);
        assert_eq!(taken(&[0b0100_0000, 0b1000_0000]).choose(&choice), Err(refusal));
    }
}
