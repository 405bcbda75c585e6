//! The counts that the gates and `reserve` keep in Redis, and the counters of a turn that are computed from them.
//!
//! A member who comes is counted under two ten-second marks: the mark by which the place was due, from which a turn
//! knows the places that have expired, and the mark of coming, in which the visit began, from which a turn knows the
//! visits that have ended. An order is counted under the mark of coming too. Whoever looks before asking for an admission
//! is counted apart, as many who look never ask. There are totals as well, so marks that are too old to matter may be
//! dropped at any time. A counter that is lost, or counted twice, costs its time and nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::drop_percent;
use super::serving::{Counts, Looks, Reservations};
use crate::domain::sale::serving::{MARK_MS, Settings};

/// What is counted of one mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MarkCounts {
    /// Those who came, of the places that were due by this mark.
    pub came: u64,
    /// Those whose visit began in this mark and who asked for an admission.
    pub entered: u64,
    /// Those of them who have an order.
    pub ordered: u64,
    /// Those whose visit began in this mark without an admission.
    pub looked: u64,
    /// Those of them who asked for an admission before the time of [`Settings::show_up_ms`] was over.
    pub asked: u64,
    /// Those of them who asked for one later.
    pub asked_late: u64,
}

/// How a member has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coming {
    /// The visit began with an admission.
    Asks {
        /// The mark by which the place was due.
        due_mark: u64,
    },
    /// The visit began without one: the member looks at what there is.
    Looks {
        /// The mark by which the place was due.
        due_mark: u64,
    },
    /// Who has looked asks for the first admission.
    Decides {
        /// Whether the time of [`Settings::show_up_ms`] had passed since the visit began.
        is_late: bool,
    },
}

/// A member who came to the gate in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Came {
    /// The mark of coming, by which the board counts the member's order later.
    pub entry: Entry,
    pub how: Coming,
}

/// The counts of a room, as a turn reads them from the board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// The time at which counting began, in milliseconds since the Unix epoch. It changes if Redis loses the counts.
    pub epoch: u64,
    /// The number of members who came in this epoch.
    pub came: u64,
    /// The number of those who looked before they asked for an admission.
    pub looked: u64,
    /// The number of those who have asked for one in time, and late.
    pub asked_after_look: u64,
    pub asked_late: u64,
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

    /// Counts somebody who came.
    pub fn count(&mut self, came: &Came) {
        let mark = came.entry.mark;
        match came.how {
            Coming::Asks { due_mark } => {
                self.came += 1;
                self.marks.entry(due_mark).or_default().came += 1;
                self.marks.entry(mark).or_default().entered += 1;
            }
            Coming::Looks { due_mark } => {
                self.came += 1;
                self.looked += 1;
                self.marks.entry(due_mark).or_default().came += 1;
                self.marks.entry(mark).or_default().looked += 1;
            }
            Coming::Decides { is_late } => {
                let of = self.marks.entry(mark).or_default();
                of.entered += 1;
                let (total, of) = match is_late {
                    true => (&mut self.asked_late, &mut of.asked_late),
                    false => (&mut self.asked_after_look, &mut of.asked),
                };
                *total += 1;
                *of += 1;
            }
        }
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
        // Each decides once, but the counts of one who comes are not written in one step.
        let entered =
            (self.came + self.asked_after_look + self.asked_late).saturating_sub(self.looked);
        Counts {
            epoch: self.epoch,
            came,
            inside,
            passed_came: self.came.saturating_sub(came),
            visits: entered.saturating_sub(inside),
            held: self.held,
            looks: self.looks(mark.checked_sub(marks_in(settings.show_up_ms)), over),
        }
    }

    /// The counters of those who look, where a visit is `young` if it began after that mark, and over if it began up
    /// to the mark `over`.
    fn looks(&self, young: Option<u64>, over: Option<u64>) -> Looks {
        let (mut looks, mut looked, mut asked) = (Looks::default(), 0, 0);
        let (mut lingered, mut asked_late) = (0, 0);
        for (mark, of) in self.marks.range(over.map_or(0, |mark| mark + 1)..) {
            let undecided = of.looked.saturating_sub(of.asked);
            let still = undecided.saturating_sub(of.asked_late);
            if young.is_none_or(|young| *mark > young) {
                looks.looking += still;
                looked += of.looked;
                asked += of.asked;
            } else {
                looks.lingering += still;
            }
            lingered += undecided;
            asked_late += of.asked_late;
        }
        looks.all = self.looked;
        looks.looked = self.looked.saturating_sub(looked);
        looks.asked = self.asked_after_look.saturating_sub(asked);
        looks.lingered = self.looked.saturating_sub(self.asked_after_look).saturating_sub(lingered);
        looks.asked_late = self.asked_late.saturating_sub(asked_late);
        looks
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
        let counts = |came, entered| MarkCounts { came, entered, ..MarkCounts::default() };
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
        let counts = |entered, ordered| MarkCounts {
            came: entered,
            entered,
            ordered,
            ..MarkCounts::default()
        };
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

    /// So many begin to look in a mark; of those so many decide in time, and late.
    fn look(tally: &mut Tally, mark: u64, looked: u64, asked: u64, asked_late: u64) {
        let entry = Entry { mark };
        let mut count = |how, times| (0..times).for_each(|_| tally.count(&Came { entry, how }));
        count(Coming::Looks { due_mark: mark }, looked);
        count(Coming::Decides { is_late: false }, asked);
        count(Coming::Decides { is_late: true }, asked_late);
    }

    /// Those who look are young until mark 13, and their visit is over at mark 19.
    #[test]
    fn who_looks_is_a_class_of_its_own_until_the_visit_is_over() {
        let mut tally = tally(&[]);
        look(&mut tally, 1, 10, 5, 0);
        let looks = |tally: &Tally, clock_ms| tally.counts(&settings(), clock_ms).looks;
        let young = Looks { looking: 5, all: 10, ..Looks::default() };
        assert_eq!(looks(&tally, 129_999), young);
        let old = Looks { looking: 0, lingering: 5, looked: 10, asked: 5, ..young };
        assert_eq!(looks(&tally, 130_000), old);
        let mut decided = tally.clone();
        look(&mut decided, 1, 0, 0, 2);
        assert_eq!(looks(&decided, 129_999).looking, 3, "who is late by age and young by mark");
        look(&mut tally, 1, 0, 0, 2);
        assert_eq!(looks(&tally, 189_999), Looks { lingering: 3, ..old });
        let over = Looks { lingering: 0, lingered: 5, asked_late: 2, ..old };
        assert_eq!(looks(&tally, 190_000), over);
        let counts = tally.counts(&settings(), 130_000);
        assert_eq!((counts.inside, counts.visits), (7, 0), "who decided is inside");
        assert_eq!(tally.counts(&settings(), 190_000).visits, 7, "who never did is no visit");
        assert_eq!((counts.came, counts.passed_came), (0, 10), "who looks has come");
    }

    #[test]
    fn what_is_dropped_changes_nothing() {
        let counts = |came| MarkCounts { came, entered: came, ..MarkCounts::default() };
        let mut whole = tally(&(1..60).map(|mark| (mark, counts(mark))).collect::<Vec<_>>());
        (1..60).for_each(|mark| look(&mut whole, mark, 4, 2, 1));
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
