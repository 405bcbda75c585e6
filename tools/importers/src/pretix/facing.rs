//! Where the best seats of a section are, if it is known what all seats face.

use std::collections::BTreeMap;

use engine::domain::sale::Focus;

use super::lying::{Lying, distance};
use super::plan::{Position, Row, Zone};

/// A section faces a point with its middle if that is no farther from the nearest seat than this, in per cent of a row.
const MIDDLE_WITHIN: f64 = 10.0;

/// Which seats of a zone are the nearest to the point that all face, tier by tier.
pub(super) struct Facing {
    point: Option<Position>,
    /// Of the row that is being read: distance and place of the nearest seat.
    nearest: BTreeMap<usize, (f64, usize)>,
    /// How far along each row the nearest seat is, in per cent.
    shares: BTreeMap<usize, Vec<f64>>,
}

impl Facing {
    pub(super) fn new(point: Option<Position>) -> Self {
        Self { point, nearest: BTreeMap::new(), shares: BTreeMap::new() }
    }

    /// A seat of a tier at a place of a row. A row that goes round faces nothing.
    pub(super) fn seat(
        &mut self,
        tier: usize,
        place: usize,
        (zone, row, lying): (&Zone, &Row, &Lying),
        seat: Position,
    ) {
        let Some(point) = self.point.filter(|_| !lying.round) else { return };
        let x = zone.position.x + row.position.x + seat.x;
        let y = zone.position.y + row.position.y + seat.y;
        let this = (distance(point, Position { x, y }), place);
        let nearest = self.nearest.entry(tier).or_insert(this);
        if this.0 < nearest.0 {
            *nearest = this;
        }
    }

    /// The row is at its end; a tier has so many places of it.
    pub(super) fn end_of_row(&mut self, tier: usize, places: usize) {
        if let Some((_, place)) = self.nearest.remove(&tier).filter(|_| places > 1) {
            let share = 100.0 * place as f64 / (places - 1) as f64;
            self.shares.entry(tier).or_default().push(share);
        }
    }

    /// The focus of the tier's section of the zone; `None` if it is in the middle of its rows, or not known.
    pub(super) fn focus(&self, tier: usize) -> Option<Focus> {
        let shares = self.shares.get(&tier)?;
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let percent = (0..=100).rfind(|percent| f64::from(*percent) <= mean)?;
        ((mean - 50.0).abs() > MIDDLE_WITHIN).then_some(Focus::Percent(percent))
    }
}
