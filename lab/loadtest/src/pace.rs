//! The time that a crowd is given: what its options say, or more if the first seconds show that the machine is slow.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The part of a run that is measured.
pub const MEASURED: Duration = Duration::from_secs(20);
/// A crowd is given this many times what it takes at the measured pace: late people and payments come after it.
const MARGIN: u32 = 3;
/// The most that any crowd is given.
const MOST: Duration = Duration::from_secs(3600);

/// The end of a run, which may move away while it runs.
#[derive(Debug)]
pub struct Limit {
    started: Instant,
    most: Cell<Duration>,
}

impl Limit {
    /// A run that starts now and may take so long.
    #[must_use]
    pub fn new(most: Duration) -> Self {
        Self { started: Instant::now(), most: Cell::new(most) }
    }

    /// The time at which what is under way is given up.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.started + self.most.get()
    }

    /// Gives more time if a crowd of `people`, of whom `gone` have come and gone by now, needs it. True if it does.
    pub fn look(&self, gone: u64, people: u64) -> bool {
        let needed = needed(gone, people, self.started.elapsed());
        let is_slow = needed > self.most.get();
        if is_slow {
            self.most.set(needed);
        }
        is_slow
    }
}

/// The time that a crowd is given by its pace.
fn needed(gone: u64, people: u64, elapsed: Duration) -> Duration {
    let takes = elapsed.as_secs_f64() * people as f64 / gone.max(1) as f64;
    Duration::from_secs_f64((takes * f64::from(MARGIN)).min(MOST.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MINUTES: Duration = Duration::from_secs(600);

    #[test]
    fn a_slow_machine_gets_more_time_and_a_quick_one_what_was_said() {
        let quick = Limit::new(TEN_MINUTES);
        assert!(!quick.look(3_000, 20_000));
        assert_eq!(quick.most.get(), TEN_MINUTES);

        let slow = Limit { started: Instant::now() - MEASURED, ..Limit::new(TEN_MINUTES) };
        let before = slow.end();
        assert!(slow.look(500, 20_000));
        let given = slow.most.get();
        // 500 people in 20 s: 20,000 take 800 s, three times of which they get.
        assert!(
            given >= Duration::from_secs(2_400) && given < Duration::from_secs(2_460),
            "{given:?}"
        );
        assert_eq!(slow.end(), before + given - TEN_MINUTES);
    }

    #[test]
    fn nobody_waits_longer_than_an_hour() {
        assert_eq!(needed(0, 20_000, MEASURED), MOST);
        assert_eq!(needed(1, u64::MAX, MEASURED), MOST);
        assert_eq!(needed(2_000, 20_000, MEASURED), TEN_MINUTES);
    }
}
