//! The events to come, in the order of their times.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// A moment, in microseconds from the opening of the room or of the sale, whichever is first.
pub type Micros = u64;

/// Microseconds of a second.
pub const SECOND: Micros = 1_000_000;
/// Time whose events are sorted together. One heap of all of them is larger than a processor's caches: it took four
/// fifths of a run.
const SLICE: Micros = SECOND / 100;

/// Seconds as microseconds; nothing is before the beginning.
#[must_use]
pub fn micros(seconds: f64) -> Micros {
    (seconds.max(0.0) * SECOND as f64) as Micros
}

#[must_use]
pub fn seconds(at: Micros) -> f64 {
    at as f64 / SECOND as f64
}

/// An event and its moment. Of two at the same moment the one that was told first is first, so that a run is repeated
/// by its seed.
#[derive(Debug)]
struct Due<E> {
    at: Micros,
    number: u64,
    event: E,
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    /// The earliest is the greatest: a heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The clock of a simulation: it moves from event to event.
#[derive(Debug)]
pub struct Clock<E> {
    now: Micros,
    number: u64,
    waiting: u64,
    /// The slice that goes on, and its events.
    slice: u64,
    soon: BinaryHeap<Due<E>>,
    /// Those of the slices after it, as they were told.
    later: BTreeMap<u64, Vec<Due<E>>>,
}

impl<E> Clock<E> {
    /// A clock at its beginning.
    pub fn new() -> Self {
        Self {
            now: 0,
            number: 0,
            waiting: 0,
            slice: 0,
            soon: BinaryHeap::new(),
            later: BTreeMap::new(),
        }
    }

    /// The moment of the last event.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// The number of events that have come.
    pub fn events(&self) -> u64 {
        self.number - self.waiting
    }

    /// Something happens at a moment, or now if that is over.
    pub fn at(&mut self, at: Micros, event: E) {
        let at = at.max(self.now);
        self.number += 1;
        self.waiting += 1;
        let due = Due { at, number: self.number, event };
        if at / SLICE <= self.slice {
            self.soon.push(due);
        } else {
            self.later.entry(at / SLICE).or_default().push(due);
        }
    }

    pub fn after(&mut self, wait: Micros, event: E) {
        self.at(self.now.saturating_add(wait), event);
    }

    /// The next event, at whose moment it is then.
    pub fn next(&mut self) -> Option<E> {
        if self.soon.is_empty() {
            let (slice, due) = self.later.pop_first()?;
            (self.slice, self.soon) = (slice, due.into());
        }
        let due = self.soon.pop()?;
        self.waiting -= 1;
        self.now = due.at;
        Some(due.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_their_time_and_then_as_they_were_told() {
        let mut clock = Clock::new();
        for (at, name) in [(30, 'd'), (10, 'a'), (20, 'b'), (20, 'c')] {
            clock.at(at, name);
        }
        let mut seen = Vec::new();
        while let Some(event) = clock.next() {
            seen.push((clock.now(), event));
            if event == 'a' {
                clock.after(15, 'x');
                clock.at(1, 'y');
            }
        }
        assert_eq!(seen, [(10, 'a'), (10, 'y'), (20, 'b'), (20, 'c'), (25, 'x'), (30, 'd')]);
        assert_eq!(clock.events(), 6);
    }

    #[test]
    fn events_far_apart_come_in_the_order_of_their_times() {
        // Over many slices, and each tells of two more.
        let mut clock = Clock::new();
        clock.at(3 * SLICE, 0_u64);
        let (mut last, mut count) = (0, 0_u64);
        while let Some(depth) = clock.next() {
            assert!(clock.now() >= last);
            (last, count) = (clock.now(), count + 1);
            if depth < 10 {
                clock.after(depth * 7_919 % (3 * SLICE), depth + 1);
                clock.after(count * 104_729 % (40 * SLICE), depth + 1);
            }
        }
        assert_eq!((count, clock.events()), (2_047, 2_047));
    }
}
