//! How long to wait before another attempt. Random, so that clients which failed together do not
//! come again together.

use std::time::Duration;

use aws_lc_rs::rand;

/// A time at random, from the least to the most.
#[must_use]
pub fn between(least: Duration, most: Duration) -> Duration {
    let mut bytes = [0; 4];
    // Without entropy the pauses are equal, which is slower and nothing worse.
    let _ = rand::fill(&mut bytes);
    at(least, most, u32::from_be_bytes(bytes))
}

/// The time that a random number stands for.
fn at(least: Duration, most: Duration, random: u32) -> Duration {
    let share = f64::from(random) / (f64::from(u32::MAX) + 1.0);
    least + most.saturating_sub(least).mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(5);
    const MAX: Duration = Duration::from_millis(50);

    #[test]
    fn every_number_stands_for_a_time_within_the_bounds() {
        assert_eq!(at(LEAST, MAX, 0), LEAST);
        assert_eq!(at(LEAST, MAX, 1 << 31), (LEAST + MAX) / 2);
        let last = at(LEAST, MAX, u32::MAX);
        assert!(last <= MAX && last > MAX - Duration::from_micros(1), "{last:?}");
        assert_eq!(at(LEAST, LEAST, u32::MAX), LEAST);
        assert_eq!(at(MAX, LEAST, u32::MAX), MAX, "bounds the wrong way round are no panic");
    }

    #[test]
    fn draws_differ() {
        let drawn: Vec<Duration> = (0..8).map(|_| between(LEAST, MAX)).collect();
        assert!(drawn.iter().all(|pause| (LEAST..=MAX).contains(pause)), "{drawn:?}");
        assert!(drawn.iter().any(|pause| *pause != drawn[0]), "{drawn:?}");
    }
}
