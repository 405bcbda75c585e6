//! Where the seats of a tier lie: rows of equal length in one bitmap a leg.
//!
//! Bit `row * row_bytes * 8 + column` is one place, most significant bit of a byte first, as Redis
//! numbers bits. A row is a whole number of bytes, so adjacency is a run of zero bits inside a byte
//! range. What is not for sale (padding, aisles, kills, blank rows between coaches) is taken from
//! the start, so that no rule needs to know about it.

use std::collections::HashMap;

use super::ids::{Seat, SeatName};

/// Spots of a general admission tier are kept in rows of this many; neighbours mean nothing there.
pub const SPOTS_PER_ROW: u32 = 64;

/// One row of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the row is called, for messages; blank between two sections.
    pub label: String,
    /// The place in each column; `None` is an aisle, a pillar or the end of the row.
    pub seats: Vec<Option<SeatName>>,
}

/// The grid of one tier.
#[derive(Debug, Clone)]
pub struct Layout {
    rows: Vec<Row>,
    row_bytes: u32,
    columns: Vec<Option<String>>,
    by_name: HashMap<SeatName, Seat>,
    initial: Vec<u8>,
    sellable: u32,
    general_admission: bool,
}

/// Two places of one tier bear the same name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seat {name} stands in row {first_row} and again in row {second_row}")]
pub struct DuplicateSeat {
    /// The name that is used twice.
    pub name: SeatName,
    /// Label of the row where it stands first.
    pub first_row: String,
    /// Label of the row where it stands again.
    pub second_row: String,
}

impl Layout {
    /// Lays out rows in the tier's order of desirability.
    ///
    /// `columns` are the column letters (a train's `A B C _ D F`), empty if the tier has none;
    /// `is_for_sale` says which seats are sold at all.
    ///
    /// # Errors
    /// Returns the first name that two places bear.
    pub fn new(
        rows: Vec<Row>,
        columns: Vec<Option<String>>,
        is_for_sale: impl Fn(&SeatName) -> bool,
    ) -> Result<Self, DuplicateSeat> {
        let longest = rows.iter().map(|row| row.seats.len()).max().unwrap_or(0).max(1);
        let row_bytes = longest.div_ceil(8) as u32;
        // A function reads a whole hall at its first request: a table that grows as it fills costs
        // twice.
        let named = rows.iter().map(|row| row.seats.iter().flatten().count()).sum();
        let mut by_name = HashMap::with_capacity(named);
        let mut initial = vec![0xff; rows.len() * row_bytes as usize];
        let mut sellable = 0;
        for (index, row) in rows.iter().enumerate() {
            for (column, name) in row.seats.iter().enumerate() {
                let Some(name) = name else { continue };
                let seat = Seat(index as u32 * row_bytes * 8 + column as u32);
                if let Some(first) = by_name.insert(name.clone(), seat) {
                    let first_row = &rows[(first.0 / (row_bytes * 8)) as usize];
                    return Err(DuplicateSeat {
                        name: name.clone(),
                        first_row: first_row.label.clone(),
                        second_row: row.label.clone(),
                    });
                }
                if is_for_sale(name) {
                    initial[(seat.0 / 8) as usize] &= !(0x80 >> (seat.0 % 8));
                    sellable += 1;
                }
            }
        }
        Ok(Self { rows, row_bytes, columns, by_name, initial, sellable, general_admission: false })
    }

    /// `spots` numbered spots without a place: standing, or a train's 无座票. Spot *n* is called
    /// `<prefix>-<n>`, from 1.
    #[must_use]
    pub fn general_admission(prefix: &str, spots: u32) -> Self {
        let name = |spot: u32| SeatName::new(format!("{prefix}-{}", spot + 1)).ok();
        let rows = (0..spots.div_ceil(SPOTS_PER_ROW))
            .map(|row| {
                let first = row * SPOTS_PER_ROW;
                let last = (first + SPOTS_PER_ROW).min(spots);
                Row { label: String::new(), seats: (first..last).map(name).collect() }
            })
            .collect();
        // Names made of one prefix and distinct numbers cannot clash.
        let layout = Self::new(rows, Vec::new(), |_| true)
            .unwrap_or_else(|clash| unreachable!("numbered spots clashed: {clash}"));
        Self { general_admission: true, ..layout }
    }

    /// The rows, most desirable first.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Bytes of one row in each leg's bitmap.
    #[must_use]
    pub fn row_bytes(&self) -> u32 {
        self.row_bytes
    }

    /// True if another layout has the same seats under the same names in the same places, and sells the
    /// same of them. What rows are called does not matter.
    #[must_use]
    pub fn is_the_same(&self, other: &Self) -> bool {
        self.row_bytes == other.row_bytes
            && self.columns == other.columns
            && self.initial == other.initial
            && self.general_admission == other.general_admission
            && self.rows.iter().map(|row| &row.seats).eq(other.rows.iter().map(|row| &row.seats))
    }

    /// The column letters, `None` for an aisle; empty when the tier has none.
    #[must_use]
    pub fn columns(&self) -> &[Option<String>] {
        &self.columns
    }

    /// The column that bears a letter.
    #[must_use]
    pub fn column(&self, letter: &str) -> Option<u16> {
        let bears = |column: &Option<String>| column.as_deref() == Some(letter);
        self.columns.iter().position(bears).map(|index| index as u16)
    }

    /// True if the spots have no place and cannot be chosen one by one.
    #[must_use]
    pub fn is_general_admission(&self) -> bool {
        self.general_admission
    }

    /// The bitmap of one leg before anything is sold: 1 is not for sale.
    #[must_use]
    pub fn initial(&self) -> &[u8] {
        &self.initial
    }

    /// How many seats are for sale.
    #[must_use]
    pub fn sellable(&self) -> u32 {
        self.sellable
    }

    /// True if the seat is one that the tier sells.
    #[must_use]
    pub fn sells(&self, seat: Seat) -> bool {
        self.initial
            .get((seat.0 / 8) as usize)
            .is_some_and(|byte| byte & (0x80 >> (seat.0 % 8)) == 0)
    }

    /// The seat that bears a name.
    #[must_use]
    pub fn seat(&self, name: &SeatName) -> Option<Seat> {
        self.by_name.get(name).copied()
    }

    /// The name of a seat; `None` for padding and aisles.
    #[must_use]
    pub fn name(&self, seat: Seat) -> Option<&SeatName> {
        self.rows.get(self.row(seat) as usize)?.seats.get(self.column_of(seat) as usize)?.as_ref()
    }

    /// Which row a seat lies in.
    #[must_use]
    pub fn row(&self, seat: Seat) -> u32 {
        seat.0 / (self.row_bytes * 8)
    }

    /// Which column a seat lies in.
    #[must_use]
    pub fn column_of(&self, seat: Seat) -> u32 {
        seat.0 % (self.row_bytes * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, seats: &[&str]) -> Row {
        let name = |text: &&str| SeatName::new(*text).ok();
        Row { label: label.to_owned(), seats: seats.iter().map(name).collect() }
    }

    #[test]
    fn aisles_kills_and_padding_are_taken_from_the_start() {
        let rows = vec![row("1", &["a1", "", "a3"]), row("2", &["b1", "b2"])];
        let layout = Layout::new(rows, Vec::new(), |name| name.as_str() != "b2").unwrap();
        assert_eq!(layout.row_bytes(), 1);
        assert_eq!(layout.initial(), &[0b0101_1111, 0b0111_1111]);
        assert_eq!(layout.sellable(), 3);
        let b1 = layout.seat(&SeatName::new("b1").unwrap()).unwrap();
        assert_eq!((b1, layout.row(b1), layout.column_of(b1)), (Seat(8), 1, 0));
        assert_eq!(layout.name(b1).map(SeatName::as_str), Some("b1"));
        assert_eq!(layout.name(Seat(1)), None);
        assert!(!layout.sells(Seat(9)) && layout.sells(Seat(2)) && !layout.sells(Seat(400)));
    }

    #[test]
    fn a_name_used_twice_is_reported_with_both_rows() {
        let rows = vec![row("1", &["x", "y"]), row("2", &["x"])];
        let clash = Layout::new(rows, Vec::new(), |_| true).unwrap_err();
        assert_eq!((clash.first_row.as_str(), clash.second_row.as_str()), ("1", "2"));
    }

    #[test]
    fn general_admission_is_numbered_spots() {
        let layout = Layout::general_admission("floor", 130);
        assert_eq!((layout.rows().len(), layout.row_bytes(), layout.sellable()), (3, 8, 130));
        assert_eq!(layout.name(Seat(129)).map(SeatName::as_str), Some("floor-130"));
        assert!(!layout.sells(Seat(130)));
    }
}
