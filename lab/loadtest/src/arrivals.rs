//! When people come: the same seed makes the same moments.
//!
//! No per-second trace of a real on-sale was ever published, only totals (`published.rs`); the shapes
//! are readings of those, and each says which.

use std::time::Duration;

use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

/// Steepness with which the crowd of an opening thins out: with 3.3, half of it comes in the first
/// fifth of the time.
const DECAY: f64 = 3.3;

/// How arrivals are spread over the time in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Everyone waits for the opening: half come in the first fifth of the time, fewer and fewer
    /// afterwards. Of the Comic-Con test's 1,000 tickets, 529 went in the first of thirty minutes.
    Opening,
    /// One burst: 5 % come before it, 85 % in it, 10 % after it; it takes 15 % of the time. India's
    /// railways sold 31,814 tickets in the one minute in which the Tatkal quota opened.
    Tatkal,
    /// Evenly, as after the first minutes: Glastonbury sold 3,000 tickets a minute for an hour.
    Steady,
    /// As an opening, and again at 60 % of the time, when what was not paid comes back: 70 % come for
    /// the first, 30 % for the second. tixCraft released unpaid tickets to 800,000 people.
    SecondWave,
}

impl Shape {
    pub const ALL: [Self; 4] = [Self::Opening, Self::Tatkal, Self::Steady, Self::SecondWave];

    /// Its name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Tatkal => "tatkal",
            Self::Steady => "steady",
            Self::SecondWave => "second-wave",
        }
    }

    /// By which part of the time this part of the crowd has come; both between 0 and 1.
    #[must_use]
    pub fn time_of(self, part: f64) -> f64 {
        match self {
            Self::Opening => opening(part),
            Self::Tatkal => match part {
                before if before < 0.05 => 0.2 * before / 0.05,
                burst if burst < 0.90 => 0.2 + 0.15 * (burst - 0.05) / 0.85,
                after => 0.35 + 0.65 * (after - 0.90) / 0.10,
            },
            Self::Steady => part,
            Self::SecondWave => match part {
                first if first < 0.7 => 0.55 * opening(first / 0.7),
                second => 0.6 + 0.4 * opening((second - 0.7) / 0.3),
            },
        }
    }
}

/// The inverse of an exponential decay that is cut off at 1.
fn opening(part: f64) -> f64 {
    -(1.0 - part * (1.0 - (-DECAY).exp())).ln() / DECAY
}

/// Arrival of each of `count` people, in microseconds from the beginning, in order.
///
/// Between any two moments they come as a Poisson process does: each chooses a moment of the shape,
/// without regard to the others.
#[must_use]
pub fn plan(shape: Shape, count: u64, within: Duration, seed: u64) -> Vec<u64> {
    let mut random = StdRng::seed_from_u64(seed);
    // Sums of exponential gaps, divided by the last, are sorted uniform numbers.
    let mut sum = 0.0;
    let mut gap = || {
        sum -= (1.0 - random.random::<f64>()).ln();
        sum
    };
    let mut parts: Vec<f64> = (0..count).map(|_| gap()).collect();
    let all = gap();
    let micros = within.as_micros() as f64;
    for part in &mut parts {
        *part = shape.time_of(*part / all) * micros;
    }
    parts.into_iter().map(|micros| micros as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Share of a plan that comes between two parts of its time.
    fn share(plan: &[u64], from: f64, to: f64) -> f64 {
        let at = |part: f64| (part * MINUTE.as_micros() as f64) as u64;
        let here = plan.iter().filter(|micros| (at(from)..at(to)).contains(*micros)).count();
        here as f64 / plan.len() as f64
    }

    #[test]
    fn the_same_seed_makes_the_same_plan() {
        for shape in Shape::ALL {
            assert_eq!(plan(shape, 500, MINUTE, 7), plan(shape, 500, MINUTE, 7));
            assert_ne!(plan(shape, 500, MINUTE, 7), plan(shape, 500, MINUTE, 8));
        }
    }

    #[test]
    fn everyone_comes_once_in_order_and_in_time() {
        for shape in Shape::ALL {
            for count in [0, 1, 2, 10_000] {
                let plan = plan(shape, count, MINUTE, 3);
                assert_eq!(u64::try_from(plan.len()), Ok(count));
                assert!(plan.is_sorted(), "{}", shape.name());
                assert!(plan.last().is_none_or(|last| u128::from(*last) <= MINUTE.as_micros()));
            }
            assert!(shape.time_of(0.0).abs() < 1e-9);
            assert!((shape.time_of(1.0) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_shapes_are_what_they_say() {
        let about = |shape, from, to, expected: f64| {
            let share = share(&plan(shape, 100_000, MINUTE, 1), from, to);
            assert!((share - expected).abs() < 0.01, "{shape:?} {from}-{to}: {share}");
        };
        about(Shape::Opening, 0.0, 0.2, 0.5);
        about(Shape::Tatkal, 0.2, 0.35, 0.85);
        about(Shape::Steady, 0.4, 0.6, 0.2);
        about(Shape::SecondWave, 0.0, 0.55, 0.7);
        about(Shape::SecondWave, 0.55, 0.6, 0.0);
        about(Shape::SecondWave, 0.6, 0.68, 0.15);
    }
}
