//! The counts that the gates and `reserve` keep in Redis, and the counters of a turn that are computed from them.
//!
//! A member who comes is counted under two ten-second marks: the mark by which the place was due, from which a turn
//! knows the places that have expired, and the mark of coming, from which a turn knows the visits that have ended. An
//! order is counted under the mark of coming too. There are totals as well, so marks that are too old to matter may be
//! dropped at any time. A counter that is lost, or counted twice, costs its time and nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::drop_percent;
use super::serving::{Counts, Reservations};
use crate::domain::sale::serving::{MARK_MS, Settings};

/// What is counted of one mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MarkCounts {
    /// Those who came, of the places that were due by this mark.
    pub came: u64,
    /// Those who came before this mark, and after the one before.
    pub entered: u64,
    /// Those of them who have an order.
    pub ordered: u64,
}

/// The counts of a room, as a turn reads them from the board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// The time at which counting began, in milliseconds since the Unix epoch. It changes if Redis loses the counts.
    pub epoch: u64,
    /// The number of members who came in this epoch.
    pub came: u64,
    /// The number of seat-legs that their orders held.
    pub held: u64,
    pub marks: BTreeMap<u64, MarkCounts>,
    /// Reservations of the last five seconds.
    pub reservations: Reservations,
    /// The requests to the sale's slot in those seconds, including requests that were refused before they reached it.
    pub asked: u64,
}

/// The mark by which a member who came is counted. The admission carries it to `reserve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The number of the ten-second mark in which the member came.
    pub mark: u64,
}

/// The outcome of one reservation, which `reserve` reports to the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReservationReport {
    /// The entry of the member who reserved; `None` for a repeated request, whose order is counted already.
    pub entry: Option<Entry>,
    /// The number of seat-legs of the order; 0 if no order was made.
    pub held: u64,
    /// True if the reservation failed, or took longer than its target.
    pub is_bad: bool,
}

/// Marks in a time.
fn marks_in(ms: u64) -> u64 {
    ms.div_ceil(MARK_MS)
}

impl Tally {
    /// The requests of a hundred that clients are to leave out.
    #[must_use]
    pub fn drop_percent(&self) -> u64 {
        let Reservations { all, bad } = self.reservations;
        drop_percent(self.asked, all.saturating_sub(bad))
    }

    /// The oldest mark that still matters, of those that a room has whose clock of visits is here.
    #[must_use]
    pub fn oldest_mark(settings: &Settings, clock_ms: u64) -> u64 {
        let longest = marks_in(settings.show_up_ms).max(marks_in(settings.visit_ms));
        (clock_ms / MARK_MS).saturating_sub(longest)
    }

    /// The counters by the last record, whose clock of visits is given.
    #[must_use]
    pub fn counts(&self, settings: &Settings, clock_ms: u64) -> Counts {
        let mark = clock_ms / MARK_MS;
        // E is S at the mark of that long ago: what was due by it has run out.
        let run_out = mark.checked_sub(settings.show_up_ms / MARK_MS);
        let since = |first: Option<u64>| self.marks.range(first.map_or(0, |mark| mark + 1)..);
        let came: u64 = since(run_out).map(|(_, counts)| counts.came).sum();
        let over = mark.checked_sub(marks_in(settings.visit_ms));
        let inside: u64 =
            since(over).map(|(_, counts)| counts.entered.saturating_sub(counts.ordered)).sum();
        Counts {
            epoch: self.epoch,
            came,
            inside,
            passed_came: self.came.saturating_sub(came),
            visits: self.came.saturating_sub(inside),
            held: self.held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::GroupId;

    fn settings() -> Settings {
        let settings = Settings::new(GroupId::new("all").unwrap(), 0, 4);
        Settings { show_up_ms: 120_000, visit_ms: 180_000, ..settings }
    }

    fn tally(marks: &[(u64, MarkCounts)]) -> Tally {
        let marks: BTreeMap<u64, MarkCounts> = marks.iter().copied().collect();
        let came = marks.values().map(|counts| counts.came).sum();
        Tally { epoch: 9, came, held: 5, marks, ..Tally::default() }
    }

    #[test]
    fn nothing_counted_is_nobody() {
        let counts = Tally { epoch: 9, ..Tally::default() }.counts(&settings(), 0);
        assert_eq!(counts, Counts { epoch: 9, ..Counts::default() });
    }

    #[test]
    fn who_came_is_told_apart_by_whether_the_place_would_have_run_out() {
        let counts = |came, entered| MarkCounts { came, entered, ordered: 0 };
        let tally = tally(&[(1, counts(3, 0)), (2, counts(5, 8))]);
        // Marks 1 and 2 have not run out while the clock is before mark 13.
        for (clock_ms, came, passed_came) in
            [(120_000, 8, 0), (129_999, 8, 0), (130_000, 5, 3), (140_000, 0, 8)]
        {
            let counts = tally.counts(&settings(), clock_ms);
            assert_eq!((counts.came, counts.passed_came), (came, passed_came), "{clock_ms}");
        }
    }

    #[test]
    fn a_visit_ends_with_an_order_or_by_its_time() {
        let counts = |entered, ordered| MarkCounts { came: entered, entered, ordered };
        // More orders than visits of one mark: somebody ordered twice.
        let tally = tally(&[(1, counts(4, 1)), (2, counts(1, 3)), (3, counts(2, 0))]);
        for (clock_ms, inside, visits) in
            [(30_000, 5, 2), (189_999, 5, 2), (190_000, 2, 5), (210_000, 0, 7)]
        {
            let counts = tally.counts(&settings(), clock_ms);
            assert_eq!((counts.inside, counts.visits), (inside, visits), "{clock_ms}");
            assert_eq!(counts.held, 5);
        }
    }

    #[test]
    fn what_is_dropped_changes_nothing() {
        let counts = |came| MarkCounts { came, entered: came, ordered: 0 };
        let whole = tally(&(1..60).map(|mark| (mark, counts(mark))).collect::<Vec<_>>());
        for clock_ms in (0..900_000).step_by(7_000) {
            let mut rest = whole.clone();
            let oldest = Tally::oldest_mark(&settings(), clock_ms);
            rest.marks.retain(|mark, _| *mark >= oldest);
            let (whole, rest) =
                (whole.counts(&settings(), clock_ms), rest.counts(&settings(), clock_ms));
            assert_eq!(whole, rest, "{clock_ms}");
        }
    }
}
