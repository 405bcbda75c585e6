//! The three ways to choose seats, over one bitmap of what is taken on the whole journey.
//!
//! These rules are the oracle: `lua/hold.lua` must answer as they do.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::domain::basics::bitmap;
use crate::domain::basics::ids::Seat;

/// Whether `best` may split a party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Together {
    /// Adjacent in one row, or nothing.
    Required,
    /// Adjacent in one row if possible, else of the first rows that have free seats, as many side by side as there are.
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
    /// Twice the column of the middle of each row; of a row without one it is the left edge.
    pub middles: &'a [u16],
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

    /// In the first row that has `count` free seats side by side, those that [`nearest`] answers. If no row has them, and
    /// the party may be split: all that is free in the first rows, and of the last of those rows what is left to take, as
    /// many side by side as there are.
    fn best(&self, count: u32, together: Together) -> Result<Vec<Seat>, NoChoice> {
        let wanted = bitmap::index(count);
        let in_row = |row| Some((row, nearest(&self.free_in(row), wanted, self.middle(row))?));
        if let Some((row, column)) = (0..self.rows()).find_map(in_row) {
            return Ok(self.seats_in(row, column..column + wanted));
        }
        let all = (0..bitmap::places(self.bits)).map(Seat);
        let mut seats: Vec<Seat> = all.filter(|seat| self.is_free(*seat)).take(wanted).collect();
        match together {
            _ if seats.len() < wanted => return Err(NoChoice::SoldOut),
            Together::Required => return Err(NoChoice::NoAdjacent),
            Together::Preferred => {}
        }
        let Some(last) = seats.last().map(|seat| seat.0 / self.row_bits()) else {
            return Ok(seats);
        };
        seats.retain(|seat| seat.0 / self.row_bits() < last);
        let mut free = self.free_in(last);
        while seats.len() < wanted {
            // One alone there is: it was among the first that are free.
            let mut sizes = (1..=wanted - seats.len()).rev();
            let part =
                sizes.find_map(|size| Some((nearest(&free, size, self.middle(last))?, size)));
            let Some((column, size)) = part else { return Err(NoChoice::SoldOut) };
            free[column..column + size].fill(false);
            seats.extend(self.seats_in(last, column..column + size));
        }
        seats.sort_unstable();
        Ok(seats)
    }

    /// Twice the column of a row's middle.
    fn middle(&self, row: u32) -> u16 {
        self.middles.get(bitmap::index(row)).copied().unwrap_or_default()
    }

    /// Whether each place of a row is free.
    fn free_in(&self, row: u32) -> Vec<bool> {
        let start = row * self.row_bits();
        (start..start + self.row_bits()).map(|place| self.is_free(Seat(place))).collect()
    }

    fn seats_in(&self, row: u32, columns: Range<usize>) -> Vec<Seat> {
        let places = (row * self.row_bits()..(row + 1) * self.row_bits()).map(Seat);
        places.skip(columns.start).take(columns.len()).collect()
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

/// The column where `count` free places of a row begin whose centre is nearest to the row's middle, of equal ones the
/// left, and which leave no single free place beside them if any such places of the row do not. `middle` is twice its
/// column.
fn nearest(free: &[bool], count: usize, middle: u16) -> Option<usize> {
    let is_free = |column: Option<usize>| {
        column.and_then(|column| free.get(column)).is_some_and(|is_free| *is_free)
    };
    let leaves_single = |first: usize| {
        let left = is_free(first.checked_sub(1)) && !is_free(first.checked_sub(2));
        let right = is_free(Some(first + count)) && !is_free(Some(first + count + 1));
        left || right
    };
    // Twice the distance of the centre.
    let distance = |first: usize| (2 * first + count - 1).abs_diff(usize::from(middle));
    let fits = |first: &usize| free[*first..first + count].iter().all(|is_free| *is_free);
    let firsts = (0..(free.len() + 1).saturating_sub(count)).filter(fits);
    firsts.min_by_key(|first| (leaves_single(*first), distance(*first), *first))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn taken(bits: &[u8]) -> Taken<'_> {
        Taken { bits, row_bytes: 1, middles: &[] }
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

    /// A row, `.` where it is free, `x` where it is taken or no place; after it what a party of `count` gets.
    fn placed(row: &str, middle: u16, count: u16, together: Together) -> Result<String, NoChoice> {
        let width = row.len().next_multiple_of(8);
        let mut bits = vec![0xff; width / 8];
        let mut is_free: Vec<bool> = row.bytes().map(|place| place == b'.').collect();
        is_free.resize(width, false);
        for (column, _) in is_free.iter().enumerate().filter(|(_, is_free)| **is_free) {
            bitmap::set(&mut bits, Seat(column as u32), false);
        }
        let row_bytes = bits.len() as u32;
        let all = Taken { bits: &bits, row_bytes, middles: &[middle] };
        let mut after = row.to_owned().into_bytes();
        for seat in all.choose(&Choice::Best { count, together })? {
            assert_eq!(after[seat.0 as usize], b'.', "{row} {count}: {seat:?}");
            after[seat.0 as usize] = b'o';
        }
        Ok(String::from_utf8(after).unwrap())
    }

    #[test]
    fn the_best_of_a_row_are_nearest_to_its_middle_and_leave_no_single_seat() {
        // Row, twice the column of its middle, party, and what it gets.
        let cases = [
            ("..........", 9, 2, "....oo...."),
            ("..........", 9, 3, "...ooo...."),
            ("..........", 9, 1, "....o....."),
            ("..........", 9, 10, "oooooooooo"),
            ("....xx....", 9, 2, "..ooxx...."),
            ("....xx....", 9, 1, "...oxx...."),
            // Three at the middle would leave one at either end.
            (".....", 4, 3, "ooo.."),
            ("......", 5, 4, "oooo.."),
            // Farther away, two are left over whole.
            ("...xxx..xx", 9, 2, "...xxxooxx"),
            ("x...xxxxxx..", 6, 2, "x...xxxxxxoo"),
            // Nowhere can it be avoided: it is no refusal.
            ("...xxxxxxx", 9, 2, ".ooxxxxxxx"),
            ("xxxxxxx...", 9, 2, "xxxxxxxoo."),
            // Between a run that ends and one that begins at the same distance, the left.
            ("..xxxx..", 7, 2, "ooxxxx.."),
            // A row of one place; a row that is full but for its ends; an aisle in the middle.
            (".", 0, 1, "o"),
            (".xxxxxxxx.", 9, 1, "oxxxxxxxx."),
            ("....x....", 8, 2, "..oox...."),
            // Not the middle of the run but of the row.
            ("xxxx............", 15, 2, "xxxx...oo......."),
            // At the edges, and of a focus beyond what is free.
            ("........", 0, 2, "oo......"),
            ("........", 14, 2, "......oo"),
            ("....xxxx", 14, 2, "..ooxxxx"),
            ("........", 1, 2, "oo......"),
            ("........", 2, 2, "oo......"),
            ("........", 4, 2, "..oo...."),
            ("........", 10, 2, "....oo.."),
            ("................", 15, 2, ".......oo......."),
        ];
        for (row, middle, count, after) in cases {
            let placed = placed(row, middle, count, Together::Required);
            assert_eq!(placed.as_deref(), Ok(after), "{row} {count}");
        }
    }

    #[test]
    fn a_party_that_is_split_gets_as_many_side_by_side_as_there_are() {
        let split = |row, middle, count| placed(row, middle, count, Together::Preferred);
        // Three at once, and the nearest one: each of the others leaves a single seat too.
        assert_eq!(split("..x..x...x..", 11, 4).as_deref(), Ok("..x.oxooox.."));
        assert_eq!(split(".x.x..x.x.", 9, 3).as_deref(), Ok(".xoxoox.x."));
        assert_eq!(split(".x.x..x.x.", 9, 7), Err(NoChoice::SoldOut));
        // What earlier rows have is taken first.
        let bits = [0b1101_1111, 0b0101_0101];
        let all = Taken { bits: &bits, row_bytes: 1, middles: &[7, 7] };
        let choice = Choice::Best { count: 3, together: Together::Preferred };
        let seats: Vec<u32> = all.choose(&choice).unwrap().iter().map(|seat| seat.0).collect();
        assert_eq!(seats, [2, 10, 12]);
    }

    /// Of every row of 11 places, every party and every middle: the same row as any free run is in, no other seats that
    /// would be nearer, and a single seat only where each choice leaves one.
    #[test]
    fn no_other_seats_of_a_row_are_better() {
        const WIDTH: usize = 11;
        for bits in 0..1_u32 << WIDTH {
            let free: Vec<bool> = (0..WIDTH).map(|column| bits >> column & 1 == 0).collect();
            let singles = |free: &[bool]| {
                let at = |column: usize| free.get(column).copied().unwrap_or(false);
                let single =
                    |column: &usize| at(*column) && !at(column.wrapping_sub(1)) && !at(column + 1);
                (0..WIDTH).filter(single).count()
            };
            let before = singles(&free);
            for count in 2..=4 {
                for middle in [0, 7, 10, 20] {
                    let after = |first: usize| {
                        let mut free = free.clone();
                        free[first..first + count].fill(false);
                        // What was single before still is: two neighbours are no single seat's.
                        (singles(&free) > before, (2 * first + count - 1).abs_diff(middle))
                    };
                    let runs = (0..=WIDTH - count)
                        .filter(|first| free[*first..first + count].iter().all(|is_free| *is_free));
                    let best = runs.map(|first| (after(first), first)).min();
                    let chosen = nearest(&free, count, middle as u16);
                    assert_eq!(chosen, best.map(|(_, first)| first), "{free:?} {count} {middle}");
                }
            }
        }
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
