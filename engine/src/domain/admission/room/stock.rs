//! The stock rule: the number of members who may be served now, so that the free seats are enough for those who come.
//!
//! The rule is a base-stock policy on people in flight, in four classes: members who are due and have not come, members
//! who look at what there is, members who have looked for long, and members who are inside: they have asked for an
//! admission and have no order. Each class holds seats with another likelihood: no-shows drop out first, and who has
//! looked for long seldom asks, so one share for all would be too low for those who are left. With W members due and not
//! come, L who look, M who look for long, I inside, c the share of the due who come and ask, a and b the shares of L and
//! M who ask, and μ the mean of the seat-legs that a member inside comes to hold, the room serves x more where
//!
//! ```text
//! (I + L·a + M·b + (W + x)·c)·μ + z·√variance ≤ free
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
    /// L: their visit has begun, and they have not asked for an admission.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub looking: u64,
    /// M: the same for as long as a place waits for its member, or longer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lingering: u64,
    /// I: inside, without an order.
    pub inside: u64,
}

/// Whether a number need not be written: records of a room in which nobody looks are those of before.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is expected of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// c: the share that comes and asks for an admission, in millionths.
    pub comes: u64,
    /// a: the share that asks for one of those who look, in millionths.
    pub asks: u64,
    /// b: the same of those who look for long.
    pub asks_late: u64,
    /// μ: seat-legs that one inside comes to hold, in millionths.
    pub holds: u64,
    /// m: most seat-legs of an order.
    pub max_units: u32,
}

impl Expected {
    /// The prior of c. Four in five come; between a twentieth and all is believed. It is rather too high than
    /// too low: who is served too late comes some seconds later, who is served too early finds nothing.
    pub const COMES: Prior = Prior { mean: MILLION * 4 / 5, min: MILLION / 20, max: MILLION };

    /// The prior of the share that asks while the look is young. Three in four do; between a twentieth and all is believed.
    pub const ASKS: Prior = Prior { mean: MILLION * 3 / 4, min: MILLION / 20, max: MILLION };

    /// The prior of b. One in four asks; between a hundredth and all is believed.
    pub const ASKS_LATE: Prior = Prior { mean: MILLION / 4, min: MILLION / 100, max: MILLION };

    /// The prior of the share that looks first, of those who come: none, as of a client that has no page.
    pub const LOOKS: Prior = Prior { mean: 0, min: 0, max: MILLION };

    /// The prior of μ where an order has at most `max_units`: half of that. A tenth of a seat-leg and as much
    /// as an order may have are the bounds.
    #[must_use]
    pub fn holds_prior(max_units: u32) -> Prior {
        let max = u64::from(max_units.max(1)) * MILLION;
        Prior { mean: max / 2, min: MILLION / 10, max }
    }

    /// Each class in flight: its people, and the seat-legs that one of them comes to hold on average, in millionths.
    fn classes(&self, flight: InFlight) -> [(u128, u128); 4] {
        // More people than there are indices would overflow.
        let people = |number: u64| u128::from(number.min(u64::from(u32::MAX)));
        let million = u128::from(MILLION);
        let holds = u128::from(self.holds).min(u128::from(self.max_units.max(1)) * million);
        let of = |share: u64| u128::from(share).min(million) * holds / million;
        [
            (people(flight.waiting), of(self.comes)),
            (people(flight.looking), of(self.asks)),
            (people(flight.lingering), of(self.asks_late)),
            (people(flight.inside), holds),
        ]
    }

    /// The seat-legs that those in flight come to hold on average, in millionths.
    #[must_use]
    pub fn promised(&self, flight: InFlight) -> u64 {
        let sum: u128 = self.classes(flight).into_iter().map(|(people, mean)| people * mean).sum();
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    /// Whether what is free, in seat-legs, is enough for those in flight and `more` who become due.
    fn is_enough(&self, free: u64, flight: InFlight, more: u64) -> bool {
        let most = u128::from(self.max_units.max(1)) * u128::from(MILLION);
        let more = InFlight { waiting: flight.waiting.saturating_add(more), ..flight };
        let (mut mean, mut variance) = (0, 0);
        for (people, of_one) in self.classes(more) {
            mean += people * of_one;
            variance += people * (of_one * most - of_one * of_one);
        }
        mean + Z_TENTHS * variance.isqrt() / 10 <= u128::from(free) * u128::from(MILLION)
    }

    /// The most that may be served in addition, at most `cap`. Where nobody is in flight and anything is
    /// free, one may.
    #[must_use]
    pub fn most(&self, free: u64, flight: InFlight, cap: u64) -> u64 {
        // It is enough for `low`, and not for `high`.
        let (mut low, mut high) = (0, cap.saturating_add(1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_enough(free, flight, middle) {
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

    const HALF_HOLD_TWO: Expected = Expected {
        comes: MILLION / 2,
        asks: MILLION / 2,
        asks_late: MILLION / 10,
        holds: 2 * MILLION,
        max_units: 4,
    };

    fn most(free: u64, waiting: u64, inside: u64) -> u64 {
        HALF_HOLD_TWO.most(free, InFlight { waiting, inside, ..InFlight::default() }, 1_000_000)
    }

    #[test]
    fn who_looks_counts_as_the_share_that_asks_and_who_looks_for_long_for_little() {
        let most = |flight| HALF_HOLD_TWO.most(1_000, flight, 1_000_000);
        let none = most(InFlight::default());
        let looking = most(InFlight { looking: 200, ..InFlight::default() });
        let lingering = most(InFlight { lingering: 200, ..InFlight::default() });
        assert_eq!(
            looking,
            none - 200,
            "as many ask of those who look as come of those who are due"
        );
        assert!((none - 60..none - 30).contains(&lingering), "{none} {lingering}");
        let all = InFlight { waiting: 1, looking: 2, lingering: 10, inside: 4 };
        assert_eq!(HALF_HOLD_TWO.promised(all), 13 * MILLION);
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
        let (comes, asks, asks_late) = (u64::MAX, u64::MAX, u64::MAX);
        let expected = Expected { comes, asks, asks_late, holds: u64::MAX, max_units: 65_535 };
        let most = u64::MAX;
        let flight = InFlight { waiting: most, looking: most, lingering: most, inside: most };
        assert_eq!(expected.promised(flight), u64::MAX);
        assert_eq!(expected.most(u64::MAX, flight, u64::from(u32::MAX)), u64::from(u32::MAX));
    }
}
