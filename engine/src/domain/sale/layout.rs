//! Where the seats of a tier lie: rows of equal length in one bitmap a leg.
//!
//! Bit `row * row_bytes * 8 + column` is one place, most significant bit of a byte first, as Redis
//! numbers bits. A row is a whole number of bytes, so adjacency is a run of zero bits inside a byte
//! range. Bits that are not for sale (padding, aisles, kills, blank rows between coaches) are marked as taken from
//! the start, so that no rule needs to know about them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::focus::Focus;
use super::places::{LONGEST_ENDING, Numbered, RowPlaces};
use crate::domain::basics::bitmap;
use crate::domain::basics::ids::{Seat, SeatName};

/// Spots of a general admission tier are kept in rows of this many; neighbours mean nothing there.
pub const SPOTS_PER_ROW: u32 = 64;

/// One row of the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the row is called, for messages; blank between two sections.
    pub label: String,
    /// What is in each column, from the first on.
    pub places: RowPlaces,
    /// What its best seats are nearest to.
    pub focus: Focus,
}

/// The grid of one tier.
#[derive(Debug, Clone)]
pub struct Layout {
    rows: Vec<Row>,
    row_bytes: u32,
    columns: Arc<[Option<String>]>,
    /// Made when a seat is first looked for by its name.
    by_name: OnceLock<ByName>,
    initial: Vec<u8>,
    sellable: u32,
    general_admission: bool,
}

/// Where the seats lie that bear a name.
#[derive(Debug, Clone, Default)]
struct ByName {
    /// Seats with names of their own.
    seats: HashMap<SeatName, Seat>,
    /// Rows by what the names of their seats begin with.
    rows: HashMap<String, Vec<u32>>,
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
    /// `columns` are the column letters (a train's `A B C _ D F`), empty if the tier has none. Every
    /// seat is for sale until [`Layout::withhold`].
    #[must_use]
    pub fn new(rows: Vec<Row>, columns: Arc<[Option<String>]>) -> Self {
        let longest = rows.iter().map(|row| row.places.len()).max().unwrap_or(0).max(1);
        let width = longest.div_ceil(8);
        let row_bytes = u32::try_from(width).unwrap_or(u32::MAX);
        let mut initial = vec![0xff; rows.len() * width];
        let mut sellable = 0;
        for (row, bits) in rows.iter().zip(initial.chunks_mut(width)) {
            for place in (0..row.places.len()).filter(|place| row.places.is_seat(*place)) {
                bits[place / 8] &= !(0x80 >> (place % 8));
                sellable += 1;
            }
        }
        let by_name = OnceLock::new();
        Self { rows, row_bytes, columns, by_name, initial, sellable, general_admission: false }
    }

    /// `spots` numbered spots without a place: standing, or a train's 无座票. Spot *n* is called
    /// `<prefix>-<n>`, from 1.
    ///
    /// # Errors
    /// Returns the rule that such names break.
    pub fn general_admission(prefix: &str, spots: u32) -> Result<Self, &'static str> {
        let row = |row: u32| {
            let first = row * SPOTS_PER_ROW;
            let seats = SPOTS_PER_ROW.min(spots - first);
            let run = Numbered::new(format!("{prefix}-"), first + 1, 1, seats, &[])?;
            Ok::<_, &str>(Row {
                label: String::new(),
                places: RowPlaces::Numbered(run),
                focus: Focus::Percent(0),
            })
        };
        let rows = (0..spots.div_ceil(SPOTS_PER_ROW)).map(row).collect::<Result<_, _>>()?;
        Ok(Self { general_admission: true, ..Self::new(rows, Arc::default()) })
    }

    /// Takes a seat off sale; false if the tier has no seat of that name.
    pub fn withhold(&mut self, name: &SeatName) -> bool {
        let Some(seat) = self.seat(name) else { return false };
        if self.sells(seat) {
            bitmap::set(&mut self.initial, seat, true);
            self.sellable -= 1;
        }
        true
    }

    /// The first name that two places bear. This names every seat.
    #[must_use]
    pub fn duplicate(&self) -> Option<DuplicateSeat> {
        let mut row_of: HashMap<SeatName, &Row> =
            HashMap::with_capacity(bitmap::index(self.sellable));
        let names = self.rows.iter().flat_map(|row| {
            let names = row.places.names().flatten();
            names.map(move |name| (name, row))
        });
        for (name, row) in names {
            if let Some(first) = row_of.insert(name.clone(), row) {
                let (first_row, second_row) = (first.label.clone(), row.label.clone());
                return Some(DuplicateSeat { name, first_row, second_row });
            }
        }
        None
    }

    /// The name of each seat, row by row.
    pub fn names(&self) -> impl Iterator<Item = SeatName> + '_ {
        self.rows.iter().flat_map(|row| row.places.names().flatten())
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

    /// Twice the column of the middle of each row, which its best seats are nearest to; empty for general admission,
    /// where spots are best in the order of their numbers.
    #[must_use]
    pub fn middles(&self) -> Vec<u16> {
        let rows = if self.general_admission { &[][..] } else { &self.rows };
        rows.iter().map(|row| row.focus.doubled_column(&row.places)).collect()
    }

    /// True if another layout has the same seats under the same names in the same places, and sells the
    /// same of them. What rows are called, and where the best of them are, does not matter.
    #[must_use]
    pub fn is_the_same(&self, other: &Self) -> bool {
        self.row_bytes == other.row_bytes
            && self.columns == other.columns
            && self.initial == other.initial
            && self.general_admission == other.general_admission
            && self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(ours, theirs)| {
                ours.places == theirs.places || ours.places.names().eq(theirs.places.names())
            })
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
        self.columns.iter().position(bears).and_then(|index| u16::try_from(index).ok())
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

    /// Number of places, aisles and padding included.
    #[must_use]
    pub fn places(&self) -> u32 {
        bitmap::places(&self.initial)
    }

    /// Number of seats that are for sale.
    #[must_use]
    pub fn sellable(&self) -> u32 {
        self.sellable
    }

    /// True if the seat is one that the tier sells.
    #[must_use]
    pub fn sells(&self, seat: Seat) -> bool {
        bitmap::get(&self.initial, seat) == Some(false)
    }

    /// The seat that bears a name.
    #[must_use]
    pub fn seat(&self, name: &SeatName) -> Option<Seat> {
        let by_name = self.by_name.get_or_init(|| ByName::from_layout(self));
        if let Some(seat) = by_name.seats.get(name) {
            return Some(*seat);
        }
        let starts = name.as_str().char_indices().rev().take(LONGEST_ENDING);
        starts.map(|(at, _)| name.as_str().split_at(at)).find_map(|(prefix, ending)| {
            let mut rows = by_name.rows.get(prefix)?.iter();
            rows.find_map(|row| {
                let place = self.rows.get(bitmap::index(*row))?.places.place_of(ending)?;
                self.seat_at(*row, place)
            })
        })
    }

    fn seat_at(&self, row: u32, place: usize) -> Option<Seat> {
        Some(Seat(row * self.row_bytes * 8 + u32::try_from(place).ok()?))
    }

    /// The name of a seat; `None` for padding and aisles.
    #[must_use]
    pub fn name(&self, seat: Seat) -> Option<SeatName> {
        self.rows
            .get(bitmap::index(self.row(seat)))?
            .places
            .name(bitmap::index(self.column_of(seat)))
    }

    /// The row of a seat, counted from 0.
    #[must_use]
    pub fn row(&self, seat: Seat) -> u32 {
        seat.0 / (self.row_bytes * 8)
    }

    /// The column of a seat, counted from 0.
    #[must_use]
    pub fn column_of(&self, seat: Seat) -> u32 {
        seat.0 % (self.row_bytes * 8)
    }
}

impl ByName {
    fn from_layout(layout: &Layout) -> Self {
        let mut by_name = Self::default();
        for (index, row) in (0..).zip(&layout.rows) {
            if let Some(prefix) = row.places.prefix() {
                by_name.rows.entry(prefix.to_owned()).or_default().push(index);
                continue;
            }
            for (place, name) in row.places.names().enumerate() {
                let seat = layout.seat_at(index, place);
                by_name.seats.extend(name.zip(seat));
            }
        }
        by_name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, seats: &[&str]) -> Row {
        let name = |text: &&str| SeatName::new(*text).ok();
        let places = RowPlaces::Named(seats.iter().map(name).collect());
        Row { label: label.to_owned(), places, focus: Focus::MIDDLE }
    }

    #[test]
    fn aisles_kills_and_padding_are_taken_from_the_start() {
        let rows = vec![row("1", &["a1", "", "a3"]), row("2", &["b1", "b2"])];
        let mut layout = Layout::new(rows, Arc::default());
        assert_eq!(layout.sellable(), 4);
        let b2 = SeatName::new("b2").unwrap();
        assert!(layout.withhold(&b2) && layout.withhold(&b2), "once is as good as twice");
        assert!(!layout.withhold(&SeatName::new("b3").unwrap()));
        assert_eq!(layout.row_bytes(), 1);
        assert_eq!(layout.initial(), &[0b0101_1111, 0b0111_1111]);
        assert_eq!(layout.sellable(), 3);
        let b1 = layout.seat(&SeatName::new("b1").unwrap()).unwrap();
        assert_eq!((b1, layout.row(b1), layout.column_of(b1)), (Seat(8), 1, 0));
        assert_eq!(layout.name(b1).unwrap().as_str(), "b1");
        assert_eq!(layout.name(Seat(1)), None);
        assert!(!layout.sells(Seat(9)) && layout.sells(Seat(2)) && !layout.sells(Seat(400)));
    }

    #[test]
    fn a_name_used_twice_is_reported_with_both_rows() {
        let rows = vec![row("1", &["x", "y"]), row("2", &["x"])];
        let clash = Layout::new(rows, Arc::default()).duplicate().unwrap();
        assert_eq!((clash.first_row.as_str(), clash.second_row.as_str()), ("1", "2"));
    }

    #[test]
    fn a_seat_is_found_by_its_name_however_the_name_was_made() {
        let numbered = |prefix: &str, first| {
            let run = Numbered::new(prefix.to_owned(), first, 1, 3, &[]).unwrap();
            Row { label: prefix.to_owned(), places: RowPlaces::Numbered(run), focus: Focus::MIDDLE }
        };
        let columns: Arc<[_]> = [Some("5".to_owned()), None, Some("席".to_owned())].into();
        let lettered = RowPlaces::Lettered { prefix: "a2".to_owned(), columns: columns.clone() };
        let lettered = Row { label: "a2".to_owned(), places: lettered, focus: Focus::MIDDLE };
        // `a15` is a number after `a1`, `a10` one after `a`; `a25` is a column.
        let rows = vec![numbered("a1", 4), numbered("a", 10), lettered, row("n", &["a1", "7"])];
        let layout = Layout::new(rows, columns);
        assert_eq!(layout.duplicate(), None);
        let names: Vec<SeatName> = layout.names().collect();
        assert_eq!(names.len(), layout.sellable() as usize);
        for name in names {
            let seat = layout.seat(&name).unwrap();
            assert_eq!(layout.name(seat), Some(name));
        }
        for absent in ["a13", "a9", "a", "a2", "a26", "8", "a010"] {
            assert_eq!(layout.seat(&SeatName::new(absent).unwrap()), None, "{absent}");
        }
    }

    #[test]
    fn general_admission_is_numbered_spots() {
        let layout = Layout::general_admission("floor", 130).unwrap();
        assert_eq!((layout.rows().len(), layout.row_bytes(), layout.sellable()), (3, 8, 130));
        assert_eq!(layout.middles(), [0_u16; 0], "spots are taken in order");
        assert_eq!(layout.name(Seat(129)).unwrap().as_str(), "floor-130");
        assert!(!layout.sells(Seat(130)));
    }
}
