//! Waits promised against waits had: every promise that was shown to somebody whose place was served.
//!
//! A promise is the range of the wait that a page computes of the room document
//! ([`wait_behind`](engine::domain::admission::room::document::GroupDocument::wait_behind)). The wait that was had runs
//! from the moment of the promise until the first document by which the place is due.

use std::time::{Duration, Instant};

use serde::Serialize;

/// What the bounds are rounded to, as a page shows them: down, and up. A document is up to a second old.
const SHOWN_TO: Duration = Duration::from_secs(1);
/// Waits below this count as this long where an error is a part of the wait: pages look no more often.
const LEAST_WAIT: Duration = Duration::from_secs(2);

/// What somebody who waits was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    pub at: Instant,
    /// The shortest and the longest wait; none where the page says in words what the turn depends on.
    pub wait: Option<(Duration, Duration)>,
}

/// What is known of promises whose places were served.
#[derive(Debug, Default)]
pub struct Promises {
    /// Times that no wait was shown.
    without: u64,
    within: u64,
    /// Errors of the middle of the range, in parts of the wait that was had.
    errors: Vec<f32>,
    widest: f64,
}

/// Figures of all promises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PromiseFigures {
    pub count: u64,
    /// Share of all looks at the room that were shown a wait.
    pub of_looks: f64,
    /// Share of those whose wait was within the range, rounded outwards to whole seconds.
    pub within: f64,
    /// Half of them were off by no more than this part of the wait: from the middle of the range, of a wait of at
    /// least two seconds.
    pub median_error: f64,
    /// The longest wait of a range in parts of its shortest, of the widest range.
    pub widest_range: f64,
}

impl Promises {
    /// Holds what was shown against the moment at which its place was due.
    pub fn keep(&mut self, Shown { at, wait }: Shown, due: Instant) {
        let Some((least, most)) = wait else {
            self.without += 1;
            return;
        };
        let had = due.saturating_duration_since(at);
        let whole = |wait: Duration| Duration::from_secs(wait.as_secs());
        let is_within = (whole(least)..whole(most) + SHOWN_TO).contains(&had);
        self.within += u64::from(is_within);
        let error = had.abs_diff((least + most) / 2);
        self.errors.push(error.div_duration_f32(had.max(LEAST_WAIT)));
        if !least.is_zero() {
            self.widest = self.widest.max(most.div_duration_f64(least));
        }
    }

    /// The figures; `None` if there was no promise.
    #[must_use]
    pub fn figures(&self) -> Option<PromiseFigures> {
        let mut errors = self.errors.clone();
        errors.sort_unstable_by(f32::total_cmp);
        let median_error = f64::from(*errors.get(errors.len() / 2)?);
        let count = reporting::count(errors.len());
        let within = self.within as f64 / count as f64;
        let of_looks = count as f64 / (count + self.without) as f64;
        Some(PromiseFigures { count, of_looks, within, median_error, widest_range: self.widest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_held_against_the_moment_at_which_the_place_is_due() {
        assert_eq!(Promises::default().figures(), None);
        let at = Instant::now();
        let seconds = Duration::from_secs_f64;
        let mut promises = Promises::default();
        // The middle is 15 s. A page shows 10 to 20 s: the first two are within.
        for had in [10.0, 19.9, 20.5, 9.5, 40.0] {
            let wait = Some((seconds(10.6), seconds(19.4)));
            promises.keep(Shown { at, wait }, at + seconds(had));
        }
        assert_eq!(promises.figures().unwrap().of_looks, 1.0);
        // Whoever is shown no wait is promised nothing, and counts.
        (0..15).for_each(|_| promises.keep(Shown { at, wait: None }, at));
        let figures = promises.figures().unwrap();
        assert_eq!((figures.count, figures.of_looks, figures.within), (5, 0.25, 0.4));
        // 0.5, 0.246, 0.268, 0.579 and 0.625 of the wait.
        assert!((figures.median_error - 0.5).abs() < 1e-6, "{figures:?}");
        assert!((figures.widest_range - 19.4 / 10.6).abs() < 1e-9, "{figures:?}");
        // A place that is due at once is off by a part of two seconds, not of nothing.
        let mut promises = Promises::default();
        promises.keep(Shown { at, wait: Some((seconds(0.5), seconds(1.5))) }, at);
        assert_eq!(promises.figures().unwrap().median_error, 0.5);
        assert_eq!(promises.figures().unwrap().within, 1.0);
    }
}
