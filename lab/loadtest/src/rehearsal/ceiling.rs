//! A ceiling of the rate: requests are spaced, so that it cannot be exceeded, not even for a moment.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// Lets one request go at a time, no sooner than the ceiling allows after the one before.
#[derive(Debug)]
pub struct Ceiling {
    gap: Duration,
    /// The moment at which the last request was let go.
    last: Mutex<Option<Instant>>,
}

impl Ceiling {
    /// At most `per_second` requests a second; 0 counts as 1.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        // Rounded up: a nanosecond too little would let one request more go in a long run.
        let gap = 1_000_000_000_u64.div_ceil(per_second.max(1).into());
        Self { gap: Duration::from_nanos(gap), last: Mutex::default() }
    }

    /// Waits until a request may be sent, in the order of asking. The gap runs from the moment at which the
    /// last one was let go, not from when it was due: a timer that fires late shortens no gap.
    pub async fn pass(&self) {
        let mut last = self.last.lock().await;
        if let Some(last) = *last {
            tokio::time::sleep_until(last + self.gap).await;
        }
        *last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    /// Moments at which requests pass that ask at these moments, in milliseconds of virtual time.
    async fn passed(ceiling: &Ceiling, asked_ms: &[u64]) -> Vec<Instant> {
        let begun = Instant::now();
        let mut passed = join_all(asked_ms.iter().map(|ms| async move {
            tokio::time::sleep_until(begun + Duration::from_millis(*ms)).await;
            ceiling.pass().await;
            Instant::now()
        }))
        .await;
        passed.sort();
        passed
    }

    /// Most of these moments within any one second.
    fn most_in_a_second(moments: &[Instant]) -> usize {
        let within = |from: &Instant| {
            let second = *from..*from + Duration::from_secs(1);
            moments.iter().filter(|moment| second.contains(moment)).count()
        };
        moments.iter().map(within).max().unwrap_or(0)
    }

    #[tokio::test(start_paused = true)]
    async fn no_second_has_more_than_the_ceiling() {
        for per_second in [1, 3, 7, 10, 1000] {
            // All at once, then after a rest, in which nothing is saved up.
            let mut asked = vec![0; 40];
            asked.extend([100_000; 40]);
            let moments = passed(&Ceiling::new(per_second), &asked).await;
            let most = most_in_a_second(&moments);
            let most_allowed = usize::try_from(per_second).unwrap();
            assert!(most <= most_allowed, "{most} in a second, {per_second} allowed");
            assert!(
                most == most_allowed.min(40),
                "{most} in a second of {per_second}: it waits for nothing"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stays_below_the_ceiling_does_not_wait() {
        let begun = Instant::now();
        let moments = passed(&Ceiling::new(10), &[0, 100, 250, 400]).await;
        let after: Vec<u128> = moments.iter().map(|at| (*at - begun).as_millis()).collect();
        assert_eq!(after, [0, 100, 250, 400]);
    }
}
