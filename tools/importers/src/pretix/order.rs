//! Which zones and rows are the better ones.

use super::lying::{Lying, as_it_lies, distance};
use super::plan::{Plan, Position, RawPosition, Zone};

/// The order of the rows of a zone, from the front row on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum RowOrder {
    /// The one with the smallest y.
    #[default]
    ByHeight,
    /// The one that is listed first.
    AsListed,
    /// The one whose middle is nearest to a point of the plan; so for zones.
    NearestTo(Point),
}

/// A point of a plan, in its units, from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point(Position);

/// The text is no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("give X,Y in the units of the plan, such as 560,0")]
pub struct InvalidPoint;

impl std::str::FromStr for Point {
    type Err = InvalidPoint;
    fn from_str(text: &str) -> Result<Self, InvalidPoint> {
        let (x, y) = text.split_once(',').ok_or(InvalidPoint)?;
        let number = |text: &str| text.trim().parse().map_err(|_| InvalidPoint);
        let raw = RawPosition { x: number(x)?, y: number(y)? };
        Position::try_from(raw).map(Self).map_err(|_| InvalidPoint)
    }
}

impl RowOrder {
    /// The point that the seats face, if one is known.
    pub(super) fn faced(self) -> Option<Position> {
        match self {
            Self::NearestTo(Point(point)) => Some(point),
            Self::ByHeight | Self::AsListed => None,
        }
    }
}

/// The zones and their rows as they lie, in order of desirability.
pub(super) fn ordered(plan: &Plan, order: RowOrder) -> Vec<(usize, Vec<(usize, Lying)>)> {
    let lying = |zone: &Zone| zone.rows.iter().map(as_it_lies).enumerate().collect();
    let mut zones: Vec<(usize, Vec<(usize, Lying)>)> =
        plan.zones.iter().map(lying).enumerate().collect();
    match order {
        RowOrder::AsListed => {}
        RowOrder::ByHeight => {
            for (_, rows) in &mut zones {
                let upright = rows.iter().filter(|(_, row)| row.upright).count() * 2 > rows.len();
                if !upright {
                    rows.sort_by(|(_, a), (_, b)| a.height().total_cmp(&b.height()));
                }
            }
        }
        RowOrder::NearestTo(Point(point)) => {
            let from = |zone: usize, row: &Lying| {
                let origin = plan.zones[zone].position;
                let (x, y) = (origin.x + row.middle.x, origin.y + row.middle.y);
                distance(point, Position { x, y })
            };
            for (zone, rows) in &mut zones {
                rows.sort_by(|(_, a), (_, b)| from(*zone, a).total_cmp(&from(*zone, b)));
            }
            // A zone is as near as its seats are on the whole.
            let mean = |(zone, rows): &(usize, Vec<(usize, Lying)>)| {
                let seats: usize = rows.iter().map(|(_, row)| row.seats.len()).sum();
                let sum: f64 =
                    rows.iter().map(|(_, row)| from(*zone, row) * row.seats.len() as f64).sum();
                sum / seats.max(1) as f64
            };
            zones.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        }
    }
    zones
}
