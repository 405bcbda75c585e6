//! How the seats of a row lie, and so who sits beside whom.
//!
//! A row is a line, straight or bent, or it goes round a table. Its seats are put in order along the axis
//! on which the row is longer, or around their centre, if the way from seat to seat is at least a tenth
//! shorter then. The row's usual pitch is the lower quartile of the distances between neighbours; a row of
//! fewer than five seats is too short to know it, and takes the zone's if that is smaller.

use super::plan::{Position, Row};

/// A row as it lies: listed index and position of each seat, in physical order.
pub(super) struct Lying {
    pub(super) seats: Vec<(usize, Position)>,
    /// True if the row runs up and down rather than from left to right.
    pub(super) upright: bool,
    /// True if its seats go round something.
    pub(super) round: bool,
    /// The middle of its seats, relative to the zone.
    pub(super) middle: Position,
}

impl Lying {
    /// Distance of the row from the upper edge of its zone.
    pub(super) fn height(&self) -> f64 {
        self.middle.y
    }

    /// Usual distance of neighbours in the row; `zone` is the usual one of its zone.
    pub(super) fn pitch(&self, zone: f64) -> f64 {
        let own = gaps(self);
        match pitch_of(&own) {
            Some(pitch) if own.len() >= KNOWS_ITS_PITCH => pitch,
            Some(pitch) => pitch.min(zone),
            None => zone,
        }
    }
}

/// The pitch that is usual in a zone.
pub(super) fn usual_pitch(rows: &[(usize, Lying)]) -> f64 {
    let mut all: Vec<f64> = rows.iter().flat_map(|(_, row)| gaps(row)).collect();
    all.sort_by(f64::total_cmp);
    pitch_of(&all).unwrap_or(f64::INFINITY)
}

/// Puts a row's seats in order.
pub(super) fn as_it_lies(row: &Row) -> Lying {
    let listed: Vec<(usize, Position)> =
        row.seats.iter().map(|seat| seat.position).enumerate().collect();
    let count = listed.len().max(1) as f64;
    let mean = |axis: fn(&Position) -> f64| {
        listed.iter().map(|(_, position)| axis(position)).sum::<f64>() / count
    };
    let middle = Position { x: mean(|position| position.x), y: mean(|position| position.y) };
    let (along, upright) = in_line(&listed);
    let around = around(&listed, middle);
    let round = way(&around) < ROUND_IF_SHORTER * way(&along);
    let seats = if round { around } else { along };
    let middle = Position { x: row.position.x + middle.x, y: row.position.y + middle.y };
    Lying { seats, upright: upright && !round, round, middle }
}

/// The seats along the axis on which the row is longer, and whether that is up and down.
fn in_line(listed: &[(usize, Position)]) -> (Vec<(usize, Position)>, bool) {
    let extent = |axis: fn(&Position) -> f64| {
        let values = || listed.iter().map(|(_, position)| axis(position));
        values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)
    };
    let upright = extent(|position| position.y) > extent(|position| position.x);
    let mut seats = listed.to_vec();
    seats.sort_by(|(_, a), (_, b)| {
        let across = a.x.total_cmp(&b.x);
        let along = a.y.total_cmp(&b.y);
        if upright { along.then(across) } else { across.then(along) }
    });
    (seats, upright)
}

/// The seats around their middle, from one side of the widest gap to the other; where all gaps are
/// equally wide, from the seat that is listed first.
fn around(listed: &[(usize, Position)], middle: Position) -> Vec<(usize, Position)> {
    let angle = |position: Position| (position.y - middle.y).atan2(position.x - middle.x);
    let mut seats = listed.to_vec();
    seats.sort_by(|(_, a), (_, b)| {
        let nearer = distance(*a, middle).total_cmp(&distance(*b, middle));
        angle(*a).total_cmp(&angle(*b)).then(nearer)
    });
    let count = seats.len();
    let before = |index: usize| distance(seats[(index + count - 1) % count].1, seats[index].1);
    let widest = (0..count).map(before).fold(0.0, f64::max);
    let is_widest = |index: &usize| before(*index) >= AS_WIDE_AS * widest;
    let start = (0..count).filter(is_widest).min_by_key(|index| seats[*index].0).unwrap_or(0);
    seats.rotate_left(start);
    seats
}

/// Length of the way from seat to seat.
fn way(seats: &[(usize, Position)]) -> f64 {
    seats.windows(2).map(|pair| distance(pair[0].1, pair[1].1)).sum()
}

/// The distances between neighbours, from the smallest; none of two seats at one point.
fn gaps(row: &Lying) -> Vec<f64> {
    let pairs = row.seats.windows(2).map(|pair| distance(pair[0].1, pair[1].1));
    let mut gaps: Vec<f64> = pairs.filter(|gap| *gap > ONE_POINT).collect();
    gaps.sort_by(f64::total_cmp);
    gaps
}

pub(super) fn distance(a: Position, b: Position) -> f64 {
    (a.x - b.x).hypot(a.y - b.y)
}

/// Seats closer than this lie at one point.
pub(super) const ONE_POINT: f64 = 1e-6;
/// Largest distance of neighbours, in pitches.
pub(super) const NEIGHBOURS_WITHIN: f64 = 1.5;
/// With fewer gaps than this a row does not know its own pitch.
const KNOWS_ITS_PITCH: usize = 4;
/// A row is round if the way around is shorter than this part of the way along.
const ROUND_IF_SHORTER: f64 = 0.9;
/// Gaps that differ by less are equally wide.
const AS_WIDE_AS: f64 = 0.99;

/// The lower quartile: small enough that aisles do not count, and not the one pair that is squeezed.
fn pitch_of(sorted_gaps: &[f64]) -> Option<f64> {
    sorted_gaps.get(sorted_gaps.len().saturating_sub(1) / 4).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The indexes of the seats in physical order, and whether they go round.
    fn order(points: &[(f64, f64)]) -> (Vec<usize>, bool) {
        let seats: Vec<serde_json::Value> =
            points.iter().map(|(x, y)| serde_json::json!({"position": {"x": x, "y": y}})).collect();
        let row = serde_json::from_value(serde_json::json!({"seats": seats})).unwrap();
        let lying = as_it_lies(&row);
        (lying.seats.iter().map(|(index, _)| *index).collect(), lying.round)
    }

    fn circle(angles: &[f64]) -> Vec<(f64, f64)> {
        let at = |angle: &f64| angle.to_radians().sin_cos();
        angles.iter().map(at).map(|(sin, cos)| (500.0 + 40.0 * cos, 300.0 + 40.0 * sin)).collect()
    }

    #[test]
    fn seats_at_a_table_go_round_it() {
        // Eight seats, listed every third one, so that neither the list nor an axis is the order.
        let listed: Vec<f64> = (0..8).map(|seat| f64::from(seat * 3 % 8) * 45.0).collect();
        let (seats, round) = order(&circle(&listed));
        assert!(round);
        let steps = |pair: &[usize]| (listed[pair[1]] - listed[pair[0]] + 360.0) % 360.0;
        assert!(seats.windows(2).all(|pair| (steps(pair) - 45.0).abs() < 1e-6), "{seats:?}");
        assert_eq!(seats[0], 0, "all gaps are alike: it begins with the first");
        // A seat is missing, where one looks at the stage: the row begins and ends there.
        let open = [45.0, 135.0, 180.0, 225.0, 270.0, 315.0, 360.0];
        assert_eq!(order(&circle(&open)), (vec![1, 2, 3, 4, 5, 6, 0], true));
        // A long table with four on each side, listed side by side.
        let side = |y: f64| (0..4).map(move |seat| (f64::from(seat) * 25.0, y));
        let long: Vec<(f64, f64)> = side(0.0).chain(side(30.0)).collect();
        let (seats, round) = order(&long);
        assert!(round);
        let position = |seat: usize| seats.iter().position(|other| *other == seat).unwrap();
        for (a, b) in [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)] {
            assert_eq!(position(a).abs_diff(position(b)), 1, "{seats:?}");
        }
        // A square of four.
        assert!(order(&circle(&[45.0, 135.0, 225.0, 315.0])).1);
    }

    #[test]
    fn a_bent_row_is_a_row() {
        let arc = |from: f64, to: f64| -> Vec<f64> {
            (0..9).map(|seat| from + (to - from) * f64::from(seat) / 8.0).collect()
        };
        for (from, to) in [(180.0, 360.0), (200.0, 340.0), (250.0, 290.0)] {
            assert_eq!(order(&circle(&arc(from, to))), ((0..9).collect(), false), "{from} to {to}");
        }
        // A horseshoe closes in on itself, and is still in order from end to end.
        let (seats, _) = order(&circle(&arc(-225.0, 45.0)));
        assert_eq!(seats, (0..9).collect::<Vec<_>>());
        // Seats that are staggered within one row do not make a table of it.
        let staggered: Vec<(f64, f64)> =
            (0..9).map(|seat| (f64::from(seat) * 25.0, f64::from(seat % 2) * 18.0)).collect();
        assert_eq!(order(&staggered), ((0..9).collect(), false));
        assert_eq!(order(&[]), (vec![], false));
        assert_eq!(order(&[(0.0, 0.0)]), (vec![0], false));
        assert_eq!(order(&[(5.0, 0.0), (5.0, 0.0), (0.0, 0.0)]), (vec![2, 0, 1], false));
    }
}
