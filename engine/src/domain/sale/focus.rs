//! Where the best seats of a row are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::RowPlaces;

/// What the best seats of a row are nearest to, where that is not the row's middle: a block beside a stage faces it
/// with its edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", expecting = "a focus, which is a place or a percentage")]
pub enum Focus {
    /// The place of each row with this number, aisles included, from 1 at the left. Of a row that ends before it, or
    /// begins behind it, the seat at that end.
    Place(#[schemars(range(min = 1, max = 1024))] u16),
    /// So far along each row: 0 is its first seat, 50 its middle, 100 its last.
    Percent(#[schemars(range(max = 100))] u16),
}

impl Focus {
    /// The middle of each row.
    pub const MIDDLE: Self = Self::Percent(50);

    /// The rule that a focus breaks; `longest` is the number of places of the longest row that it is for.
    pub(super) fn broken_rule(self, longest: usize) -> Option<String> {
        match self {
            Self::Place(place) if !(1..=longest).contains(&usize::from(place)) => {
                Some(format!("must be a place of a row: 1 to {longest}"))
            }
            Self::Percent(percent) if percent > 100 => Some("must be 0 to 100 percent".to_owned()),
            Self::Place(_) | Self::Percent(_) => None,
        }
    }

    /// Twice the column of the focus in a row; 0 in a row without seats.
    pub(super) fn doubled_column(self, places: &RowPlaces) -> u16 {
        let is_seat = |place: &usize| places.is_seat(*place);
        let first = (0..places.len()).find(is_seat).unwrap_or(0);
        let last = (0..places.len()).rfind(is_seat).unwrap_or(0);
        let doubled = match self {
            Self::Place(place) => 2 * usize::from(place).saturating_sub(1).clamp(first, last),
            Self::Percent(percent) => {
                2 * first + (2 * (last - first) * usize::from(percent.min(100)) + 50) / 100
            }
        };
        u16::try_from(doubled).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::basics::ids::SeatName;

    /// Places, `.` where there is a seat.
    fn places(row: &str) -> RowPlaces {
        let name =
            |(place, kind)| (kind == '.').then(|| SeatName::new(format!("{place}")).unwrap());
        RowPlaces::Named(row.chars().enumerate().map(name).collect::<Arc<[_]>>())
    }

    #[test]
    fn a_focus_is_a_column_of_each_row_between_its_first_and_its_last_seat() {
        let cases = [
            (Focus::MIDDLE, "..........", 9),
            (Focus::MIDDLE, "...........", 10),
            (Focus::MIDDLE, ".", 0),
            (Focus::MIDDLE, "", 0),
            (Focus::MIDDLE, "_", 0),
            // Gaps at the ends are none of the row, an aisle within is.
            (Focus::MIDDLE, "__....__", 7),
            (Focus::MIDDLE, "..__.", 4),
            (Focus::Percent(0), "__....__", 4),
            (Focus::Percent(100), "__....__", 10),
            (Focus::Percent(75), ".....", 6),
            (Focus::Place(1), "....", 0),
            (Focus::Place(4), "....", 6),
            (Focus::Place(4), "..", 2),
            (Focus::Place(1), "__..", 4),
        ];
        for (focus, row, doubled) in cases {
            assert_eq!(focus.doubled_column(&places(row)), doubled, "{focus:?} {row}");
        }
    }
}
