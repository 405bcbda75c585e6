//! The view of a room, by which a gate decides: which places are due, which have expired, and whether the room serves.
//!
//! A view follows from a record of the log. It is small, kept in Redis, and a gate's own copy is a second old at
//! most. Serving numbers only grow, so a view that is too old may refuse a member whose place is due, but never admits
//! a member whose place is not.

use serde::{Deserialize, Serialize};

use super::log::Record;
use super::serving::{Mode, State};
use crate::domain::basics::bytes::Hash;
use crate::domain::sale::serving::MARK_MS;

/// What a gate knows of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupView {
    /// S: places below it are due.
    pub serving: u32,
    /// E: places below it whose holder has not come have run out.
    pub passed: u32,
    /// The seed of the first window and its number of indices; none before its draw.
    pub drawn: Option<(Hash, u32)>,
    /// One past the last index that is drawn.
    pub window_end: u32,
    /// S at the last marks, the oldest first.
    pub marks: Vec<u32>,
}

/// The view of a room, by which a gate decides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// The number of the log's record from which the view follows.
    pub number: u64,
    /// Whether the room serves.
    pub mode: Mode,
    /// True if no seat is left, or if the operator has declared the sale sold out.
    pub sold_out: bool,
    /// The clock of visits, in milliseconds.
    pub clock_ms: u64,
    /// Requests a second that may go to the sale's slot, by the classic rule.
    pub requests_per_second: u64,
    /// The groups, in the order of the settings.
    pub groups: Vec<GroupView>,
}

/// The ten-second mark that comes next when the clock of visits is here.
#[must_use]
pub const fn mark_after(clock_ms: u64) -> u64 {
    clock_ms / MARK_MS + 1
}

/// How a place stands at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// It is not due: this number of places are served before it.
    NotDue {
        /// Places that are served before it.
        ahead: u32,
    },
    Due,
    /// It was due, and has run out unless its holder has come.
    RunOut,
}

impl GroupView {
    /// How a place stands.
    #[must_use]
    pub fn turn(&self, place: u32) -> Turn {
        match place.checked_sub(self.serving) {
            Some(ahead) => Turn::NotDue { ahead },
            None if place < self.passed => Turn::RunOut,
            None => Turn::Due,
        }
    }
}

impl View {
    /// The view of a record. `nothing_left`: nothing is free or held.
    #[must_use]
    pub fn of(record: &Record, nothing_left: bool) -> Self {
        let State { mode, sold_out, clock_ms, groups, gave, .. } = &record.state;
        let group = |group: &super::serving::GroupState| GroupView {
            serving: group.serving,
            passed: group.passed,
            drawn: group.seed.zip(group.closed.map(|closed| closed.closing.count)),
            window_end: group.window_end,
            marks: group.marks.clone(),
        };
        Self {
            number: record.number,
            mode: *mode,
            sold_out: *sold_out || nothing_left,
            clock_ms: *clock_ms,
            requests_per_second: gave.requests_per_second,
            groups: groups.iter().map(group).collect(),
        }
    }

    /// The ten-second mark of the clock of visits that comes next.
    #[must_use]
    pub const fn mark(&self) -> u64 {
        mark_after(self.clock_ms)
    }

    /// The mark by which a place of a group that is due was due: the first one at which S was above it. A
    /// place that became due since the last mark belongs to the next one.
    #[must_use]
    pub fn due_mark(&self, group: usize, place: u32) -> u64 {
        let marks = self.groups.get(group).map_or(&[][..], |group| &group.marks);
        // S only grows, so that the marks are in order.
        let later = marks.len() - marks.partition_point(|serving| *serving <= place);
        self.mark().saturating_sub(u64::try_from(later).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let group = GroupView {
            serving: 50,
            passed: 10,
            drawn: None,
            window_end: 100,
            marks: vec![20, 30, 30],
        };
        View {
            number: 7,
            mode: Mode::Open,
            sold_out: false,
            clock_ms: 64_999,
            requests_per_second: 0,
            groups: vec![group],
        }
    }

    #[test]
    fn a_place_is_due_below_the_serving_number_until_it_runs_out() {
        let group = &view().groups[0];
        for (place, expected) in [
            (0, Turn::RunOut),
            (9, Turn::RunOut),
            (10, Turn::Due),
            (49, Turn::Due),
            (50, Turn::NotDue { ahead: 0 }),
            (u32::MAX, Turn::NotDue { ahead: u32::MAX - 50 }),
        ] {
            assert_eq!(group.turn(place), expected, "{place}");
        }
    }

    /// The clock has passed mark 6; the marks are those of 4, 5 and 6.
    #[test]
    fn a_place_belongs_to_the_first_mark_at_which_it_was_due() {
        let view = view();
        assert_eq!(view.mark(), 7);
        for (place, mark) in [(19, 4), (20, 5), (29, 5), (30, 7), (49, 7)] {
            assert_eq!(view.due_mark(0, place), mark, "{place}");
        }
        assert_eq!(view.due_mark(1, 3), 7, "a group that is not there has no marks");
    }
}
