//! The places of one row. A place's name is made only when a caller asks for it.
//!
//! A hall has tens of thousands of seats and a request is about a few of them: a function that reads
//! a sale would otherwise spend most of its first request on names that the request does not need.

use std::sync::Arc;

use crate::domain::basics::bitmap;
use crate::domain::basics::ids::SeatName;

/// The longest end of a made name: a number of 32 bits, or a column's letter.
pub const LONGEST_ENDING: usize = 10;

/// The places of one row from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowPlaces {
    /// Each with its name; `None` is an aisle or a pillar.
    Named(Arc<[Option<SeatName>]>),
    /// Numbered seats, some with an aisle to their right.
    Numbered(Numbered),
    /// A seat in each column that has a letter, called prefix and letter.
    Lettered {
        /// Text before the letter.
        prefix: String,
        /// The columns of the tier.
        columns: Arc<[Option<String>]>,
    },
}

/// A run of seats called prefix and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    prefix: String,
    first: u32,
    step: i32,
    seats: u32,
    /// The places that are aisles, ascending.
    aisles: Vec<u32>,
}

impl RowPlaces {
    /// A row without any place.
    #[must_use]
    pub fn none() -> Self {
        Self::Named(Arc::default())
    }

    /// Number of places of the row, aisles included.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Named(names) => names.len(),
            Self::Numbered(run) => bitmap::index(run.seats) + run.aisles.len(),
            Self::Lettered { columns, .. } => columns.len(),
        }
    }

    /// True if the row has no place.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if there is a seat at a place.
    #[must_use]
    pub fn is_seat(&self, place: usize) -> bool {
        match self {
            Self::Named(names) => names.get(place).is_some_and(Option::is_some),
            Self::Numbered(run) => place < self.len() && !run.is_aisle(place),
            Self::Lettered { columns, .. } => columns.get(place).is_some_and(Option::is_some),
        }
    }

    /// The name of the seat at a place; `None` if the place has no seat.
    #[must_use]
    pub fn name(&self, place: usize) -> Option<SeatName> {
        match self {
            Self::Named(names) => names.get(place)?.clone(),
            Self::Numbered(run) if self.is_seat(place) => {
                let before =
                    run.aisles.iter().filter(|aisle| bitmap::index(**aisle) < place).count();
                let number = run.number(u32::try_from(place - before).ok()?)?;
                SeatName::new(format!("{}{number}", run.prefix)).ok()
            }
            Self::Numbered(_) => None,
            Self::Lettered { prefix, columns } => {
                let letter = columns.get(place)?.as_ref()?;
                SeatName::new(format!("{prefix}{letter}")).ok()
            }
        }
    }

    /// The name of the seat at each place, from left to right; `None` if the place has no seat.
    pub fn names(&self) -> impl Iterator<Item = Option<SeatName>> + '_ {
        (0..self.len()).map(|place| self.name(place))
    }

    /// The text with which all names of the row begin, if the rest of each has at most [`LONGEST_ENDING`]
    /// bytes; `None` if each place has a name of its own.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Named(_) => None,
            Self::Numbered(run) => Some(&run.prefix),
            Self::Lettered { prefix, .. } => Some(prefix),
        }
    }

    /// The place of the seat that is called the row's prefix and this.
    #[must_use]
    pub fn place_of(&self, ending: &str) -> Option<usize> {
        match self {
            Self::Named(_) => None,
            Self::Numbered(run) => run.place_of(ending),
            Self::Lettered { columns, .. } => {
                columns.iter().position(|letter| letter.as_deref() == Some(ending))
            }
        }
    }
}

impl Numbered {
    /// `seats` seats called `prefix` and `first`, `first + step` and so on, with an aisle to the
    /// right of each whose number is in `aisles_after`.
    ///
    /// # Errors
    /// Returns the rule that is broken.
    pub fn new(
        prefix: String,
        first: u32,
        step: i32,
        seats: u32,
        aisles_after: &[u32],
    ) -> Result<Self, &'static str> {
        if step == 0 {
            return Err("step must not be 0");
        }
        let mut run = Self { prefix, first, step, seats, aisles: Vec::new() };
        if let Some(last) = seats.checked_sub(1) {
            let last = run.number(last).ok_or("seat numbers must not be negative")?;
            // If the longest name is one, so are the others.
            SeatName::new(format!("{}{}", run.prefix, first.max(last))).map_err(|_| NAME_RULE)?;
        }
        let mut after = aisles_after.iter().map(|number| run.index(*number)).collect::<Vec<_>>();
        after.sort_unstable();
        if after.windows(2).any(|two| two[0].is_some() && two[0] == two[1]) {
            return Err("aisles_after names a seat twice");
        }
        for (before, index) in (0..).zip(after) {
            let index = index.ok_or("aisles_after names no seat of its run")?;
            if index + 1 == seats {
                return Err("aisles_after names the last seat of its run");
            }
            run.aisles.push(index + 1 + before);
        }
        Ok(run)
    }

    /// The number of a seat, counted from 0; `None` if it would be negative or too large.
    fn number(&self, index: u32) -> Option<u32> {
        let number = i64::from(self.first) + i64::from(index) * i64::from(self.step);
        u32::try_from(number).ok()
    }

    /// The seat, counted from 0, that has a number.
    fn index(&self, number: u32) -> Option<u32> {
        let (distance, step) = (i64::from(number) - i64::from(self.first), i64::from(self.step));
        let index = u32::try_from(distance / step).ok()?;
        (distance % step == 0 && index < self.seats).then_some(index)
    }

    fn is_aisle(&self, place: usize) -> bool {
        self.aisles.iter().any(|aisle| bitmap::index(*aisle) == place)
    }

    fn place_of(&self, ending: &str) -> Option<usize> {
        let number: u32 = ending.parse().ok()?;
        // `+7` and `07` are numbers, and no seat is called so.
        if number.to_string() != ending {
            return None;
        }
        let place = |index: u32| {
            self.aisles.iter().fold(index, |place, aisle| place + u32::from(*aisle <= place))
        };
        self.index(number).map(|index| bitmap::index(place(index)))
    }
}

/// What every name of a seat must be.
pub const NAME_RULE: &str = "a seat name must have 1 to 64 bytes without control characters";

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(first: u32, step: i32, seats: u32, aisles_after: &[u32]) -> RowPlaces {
        let run = Numbered::new("1-".to_owned(), first, step, seats, aisles_after);
        RowPlaces::Numbered(run.unwrap())
    }

    #[test]
    fn each_name_leads_back_to_its_place() {
        let letters = ["A", "B", "", "AB"].map(|text| (!text.is_empty()).then(|| text.to_owned()));
        let names = ["x", "", "y"].map(|text| SeatName::new(text).ok());
        let rows = [
            (numbered(1, 1, 4, &[1, 3]), "1-1 _ 1-2 1-3 _ 1-4"),
            (numbered(9, -2, 4, &[5]), "1-9 1-7 1-5 _ 1-3"),
            (numbered(2, 2, 3, &[]), "1-2 1-4 1-6"),
            (
                RowPlaces::Lettered { prefix: "2-7".to_owned(), columns: letters.into() },
                "2-7A 2-7B _ 2-7AB",
            ),
            (RowPlaces::Named(names.into()), "x _ y"),
            (RowPlaces::none(), ""),
        ];
        for (row, expected) in rows {
            let text =
                |name: Option<SeatName>| name.map_or("_".to_owned(), |name| name.to_string());
            assert_eq!(row.names().map(text).collect::<Vec<_>>().join(" "), expected);
            assert_eq!(row.names().count(), row.len());
            for (place, name) in row.names().enumerate() {
                assert_eq!(row.is_seat(place), name.is_some(), "{row:?} {place}");
                let Some((name, prefix)) = name.as_ref().zip(row.prefix()) else { continue };
                let ending = name.as_str().strip_prefix(prefix).unwrap();
                assert!(ending.len() <= LONGEST_ENDING);
                assert_eq!(row.place_of(ending), Some(place), "{name}");
            }
            assert!(!row.is_seat(row.len()) && row.name(row.len()).is_none());
        }
    }

    #[test]
    fn what_only_looks_like_a_number_of_the_run_has_no_place() {
        let row = numbered(3, 2, 3, &[5]);
        for ending in ["", "1", "4", "9", "05", "+5", "5 ", "-5", "99999999999"] {
            assert_eq!(row.place_of(ending), None, "{ending:?}");
        }
        assert_eq!(row.place_of("7"), Some(3));
    }
}
