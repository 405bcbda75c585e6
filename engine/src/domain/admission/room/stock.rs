//! The stock rule: the number of members who may be served now, so that the free seats are enough for those who come.
//!
//! The rule is a base-stock policy on people in flight, in two classes: members who are due and have not come, and
//! members who are inside. The two hold seats with different likelihood: no-shows drop out first, so one share for both
//! would be too low for those who are left. With W members due and not come, I members inside without an order, c the
//! share of the due who come and μ the mean of the seat-legs that a member inside comes to hold, the room serves x
//! more where
//!
//! ```text
//! I·μ + (W + x)·c·μ + z·√variance ≤ free
//! ```
//!
//! The variance is bounded from above: a member holds at most m seat-legs, so the second moment is at most m·μ. All
//! numbers are integers: shares and means are in millionths.

use serde::{Deserialize, Serialize};

pub const MILLION: u64 = 1_000_000;

/// z in tenths: two standard deviations are kept free.
const Z_TENTHS: u128 = 20;

/// A mean of what was observed, in which what is older weighs less: beyond [`Smoothed::MAX_COUNT`] observations, all
/// that there are lose half of their weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smoothed {
    /// Sum of what was observed.
    pub sum: u64,
    pub count: u64,
}

/// What is expected before anything was observed, and the bounds of what is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prior {
    /// The expected mean, in millionths.
    pub mean: u64,
    /// The lowest mean that is believed, in millionths.
    pub min: u64,
    /// The highest mean that is believed, in millionths.
    pub max: u64,
}

impl Smoothed {
    /// Above this number of observations, the older ones lose half of their weight.
    pub const MAX_COUNT: u64 = 4_000;
    /// What the prior weighs, in observations.
    pub const PRIOR_COUNT: u64 = 100;

    /// Adds observations. A sum may be reported later than the number that it belongs to.
    pub fn add(&mut self, sum: u64, count: u64) {
        self.sum = self.sum.saturating_add(sum);
        self.count = self.count.saturating_add(count);
        while self.count > Self::MAX_COUNT {
            self.sum /= 2;
            self.count /= 2;
        }
    }

    /// The mean, in millionths.
    #[must_use]
    pub fn mean(&self, prior: Prior) -> u64 {
        let observed = u128::from(self.sum) * u128::from(MILLION);
        let expected = u128::from(prior.mean) * u128::from(Self::PRIOR_COUNT);
        let count = u128::from(self.count) + u128::from(Self::PRIOR_COUNT);
        let mean = (observed + expected) / count;
        u64::try_from(mean).unwrap_or(u64::MAX).clamp(prior.min, prior.max)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InFlight {
    /// W: due, not come, and their time has not run out.
    pub waiting: u64,
    /// I: inside, without an order.
    pub inside: u64,
}

/// What is expected of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// c: the share that comes, in millionths.
    pub comes: u64,
    /// μ: seat-legs that one inside comes to hold, in millionths.
    pub holds: u64,
    /// m: most seat-legs of an order.
    pub max_units: u32,
}

impl Expected {
    /// The prior of c. Four in five come; between a twentieth and all is believed. It is rather too high than
    /// too low: who is served too late comes some seconds later, who is served too early finds nothing.
    pub const COMES: Prior = Prior { mean: MILLION * 4 / 5, min: MILLION / 20, max: MILLION };

    /// The prior of μ where an order has at most `max_units`: half of that. A tenth of a seat-leg and as much
    /// as an order may have are the bounds.
    #[must_use]
    pub fn holds_prior(max_units: u32) -> Prior {
        let max = u64::from(max_units.max(1)) * MILLION;
        Prior { mean: max / 2, min: MILLION / 10, max }
    }

    /// Whether what is free, in seat-legs, is enough for those in flight.
    fn is_enough(&self, free: u64, waiting: u128, inside: u128) -> bool {
        let million = u128::from(MILLION);
        let most = u128::from(self.max_units.max(1)) * million;
        let holds = u128::from(self.holds).min(most);
        let comes_and_holds = u128::from(self.comes).min(million) * holds / million;
        let variance = |mean: u128| mean * most - mean * mean;
        let mean = inside * holds + waiting * comes_and_holds;
        let variance = inside * variance(holds) + waiting * variance(comes_and_holds);
        mean + Z_TENTHS * variance.isqrt() / 10 <= u128::from(free) * million
    }

    /// The most that may be served in addition, at most `cap`. Where nobody is in flight and anything is
    /// free, one may.
    #[must_use]
    pub fn most(&self, free: u64, flight: InFlight, cap: u64) -> u64 {
        // More people than there are indices would overflow.
        let people = |number: u64| u128::from(number.min(u64::from(u32::MAX)));
        let (waiting, inside) = (people(flight.waiting), people(flight.inside));
        let is_enough = |more: u64| self.is_enough(free, waiting + u128::from(more), inside);
        // It is enough for `low`, and not for `high`.
        let (mut low, mut high) = (0, cap.saturating_add(1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_enough(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        let is_alone = flight == InFlight::default() && free > 0;
        if is_alone { low.max(1).min(cap) } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_HOLD_TWO: Expected =
        Expected { comes: MILLION / 2, holds: 2 * MILLION, max_units: 4 };

    fn most(free: u64, waiting: u64, inside: u64) -> u64 {
        HALF_HOLD_TWO.most(free, InFlight { waiting, inside }, 1_000_000)
    }

    /// Worked out by hand: of x who are due, x come to hold on average, with a variance of 3 each (1·4 − 1²),
    /// so that x + 2·√(3x) ≤ free.
    #[test]
    fn the_most_are_served_that_what_is_free_is_enough_for() {
        for (free, expected) in [(0, 0), (1, 1), (5, 1), (10, 3), (100, 70), (10_000, 9_659)] {
            assert_eq!(most(free, 0, 0), expected, "{free}");
            let x = expected as f64;
            let need = |x: f64| x + 2.0 * (3.0 * x).sqrt();
            if expected > 1 {
                assert!(need(x) <= free as f64 && need(x + 1.0) > free as f64, "{free}");
            }
        }
        assert_eq!(HALF_HOLD_TWO.most(10_000, InFlight::default(), 50), 50);
        assert_eq!(HALF_HOLD_TWO.most(10_000, InFlight::default(), 0), 0);
    }

    #[test]
    fn who_is_inside_counts_for_more_than_who_has_not_come() {
        let (none, waiting, inside) = (most(1_000, 0, 0), most(1_000, 200, 0), most(1_000, 0, 200));
        assert_eq!(waiting, none - 200, "a place that is due counts as one that becomes due");
        assert!((390..=400).contains(&(none - inside)), "twice as much: {none} {inside}");
        assert_eq!(most(1_000, 1_000, 0), 0);
        // With people in flight nobody is served for the sake of being one.
        assert_eq!((most(1, 1, 0), most(1, 0, 1), most(0, 0, 0)), (0, 0, 0));
    }

    #[test]
    fn a_mean_begins_at_its_prior_and_forgets() {
        let mut smoothed = Smoothed::default();
        assert_eq!(smoothed.mean(Expected::COMES), 800_000);
        smoothed.add(0, 0);
        smoothed.add(90, 100);
        assert_eq!(smoothed.mean(Expected::COMES), 850_000);
        smoothed.add(1_000_000, 1_000_000);
        assert!(smoothed.mean(Expected::COMES) > 950_000);
        assert!(smoothed.count <= Smoothed::MAX_COUNT);
        (0..100).for_each(|_| smoothed.add(0, 1_000));
        assert_eq!(smoothed.mean(Expected::COMES), MILLION / 20, "bounded");
        let prior = Expected::holds_prior(6);
        assert_eq!(Smoothed { sum: u64::MAX, count: 1 }.mean(prior), 6 * MILLION);
        assert_eq!(Smoothed { sum: 0, count: 4_000 }.mean(prior), MILLION / 10);
    }

    #[test]
    fn nothing_overflows_at_the_bounds() {
        let expected = Expected { comes: u64::MAX, holds: u64::MAX, max_units: 65_535 };
        let flight = InFlight { waiting: u64::MAX, inside: u64::MAX };
        assert_eq!(expected.most(u64::MAX, flight, u64::from(u32::MAX)), u64::from(u32::MAX));
    }
}
