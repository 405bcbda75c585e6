//! The token bucket, on which most rates rest.

use std::time::Duration;

use crate::Now;

/// A bucket of tokens that fills at a steady rate up to its capacity. What is taken may leave it below
/// zero: what a request costs is often known only when it is done.
#[derive(Debug, Clone)]
pub struct Bucket {
    per_second: f64,
    capacity: f64,
    tokens: f64,
    at: Now,
}

impl Bucket {
    #[must_use]
    pub fn full(per_second: f64, capacity: f64, now: Now) -> Self {
        Self { per_second, capacity, tokens: capacity, at: now }
    }

    /// A full bucket that holds what comes in one second.
    #[must_use]
    pub fn of_a_second(per_second: f64, now: Now) -> Self {
        Self::full(per_second, per_second, now)
    }

    fn fill(&mut self, now: Now) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.capacity);
        self.at = self.at.max(now);
    }

    /// True if it has that number of tokens; a full bucket has enough for anything.
    pub fn has(&mut self, tokens: f64, now: Now) -> bool {
        self.fill(now);
        self.tokens >= tokens.min(self.capacity)
    }

    /// The tokens that are there; none while it is below zero.
    pub fn available(&mut self, now: Now) -> f64 {
        self.fill(now);
        self.tokens.max(0.0)
    }

    /// Takes tokens, whether they are there or not.
    pub fn take(&mut self, tokens: f64, now: Now) {
        self.fill(now);
        self.tokens = (self.tokens - tokens).min(self.capacity);
    }

    /// Takes tokens if they are there.
    pub fn try_take(&mut self, tokens: f64, now: Now) -> bool {
        let may = self.has(tokens, now);
        if may {
            self.take(tokens, now);
        }
        may
    }

    /// Time until it has that number of tokens.
    pub fn wait(&mut self, tokens: f64, now: Now) -> Duration {
        self.fill(now);
        let lacking = (tokens.min(self.capacity) - self.tokens).max(0.0);
        Duration::try_from_secs_f64(lacking / self.per_second).unwrap_or(Duration::MAX)
    }

    /// True if it holds all that it can.
    pub fn is_full(&mut self, now: Now) -> bool {
        self.has(self.capacity, now)
    }

    /// Changes the rate and the capacity; what is in it stays.
    pub fn set(&mut self, per_second: f64, capacity: f64, now: Now) {
        self.fill(now);
        self.per_second = per_second;
        self.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Now {
        Now::from_millis(ms)
    }

    #[test]
    fn it_gives_its_capacity_at_once_and_then_its_rate() {
        let mut bucket = Bucket::full(10.0, 5.0, at(0));
        let taken = (0..20).filter(|_| bucket.try_take(1.0, at(0))).count();
        assert_eq!(taken, 5);
        let taken = (1..=1000).filter(|ms| bucket.try_take(1.0, at(*ms))).count();
        assert_eq!(taken, 10, "ten in a second");
        assert!(bucket.is_full(at(10_000)));
    }

    #[test]
    fn a_debt_is_paid_off_before_anything_is_given() {
        let mut bucket = Bucket::of_a_second(100.0, at(0));
        bucket.take(300.0, at(0));
        assert!(!bucket.has(1.0, at(2000)));
        assert_eq!(bucket.wait(1.0, at(2000)), Duration::from_millis(10));
        assert!(bucket.try_take(1.0, at(2010)));
    }

    #[test]
    fn what_is_larger_than_the_bucket_passes_when_it_is_full() {
        let mut bucket = Bucket::of_a_second(10.0, at(0));
        assert!(bucket.try_take(25.0, at(0)));
        assert!(!bucket.try_take(25.0, at(2000)));
        assert!(bucket.try_take(25.0, at(2500)));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_nothing() {
        let mut bucket = Bucket::of_a_second(1.0, at(5000));
        assert!(bucket.try_take(1.0, at(5000)));
        assert!(!bucket.try_take(1.0, at(1000)));
        assert!(!bucket.try_take(1.0, at(5999)));
        assert!(bucket.try_take(1.0, at(6000)));
    }
}
