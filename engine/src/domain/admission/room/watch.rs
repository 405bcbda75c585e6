//! The figures of a turn for operators: the number of waiting members, the progress of serving, and the reason if
//! nobody was served.

use super::log::{Entry, Record};
use super::serving::{Mode, State};

/// Marks over which a room must have served nobody to be halted: two minutes.
const HALTED_MARKS: usize = 12;

/// What a turn shows of its room, its groups together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Watched {
    /// Indices that are not due: they wait.
    pub waiting: u64,
    /// S: places below it are due.
    pub serving: u64,
    /// E: places below it whose holder has not come have run out.
    pub passed: u64,
    /// Places that have run out with nobody come, as far as the counters go back.
    pub no_shows: u64,
    /// Places that are due and whose holder has not come.
    pub due: u64,
    /// Buyers whose visit has begun and who have not asked for an admission.
    pub looking: u64,
    /// Buyers who have asked for one and have no order.
    pub inside: u64,
    /// Places a second that the capacity and the operator allow.
    pub rate: u64,
    /// Places that this turn made due.
    pub served: u64,
    /// Whether the circuit breaker let nobody be served.
    pub is_tripped: bool,
    /// Whether it served nobody because what is left, or the counters, could not be read.
    pub is_blind: bool,
    /// Whether nobody has been served for two minutes, though the room is open, places wait, seats are free and
    /// everything is known.
    pub is_halted: bool,
}

impl Watched {
    /// What a record shows, if it is that of a turn that somebody's asking made: not of a publication, a draw or
    /// a command, for which nothing was counted.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let Entry::Turn { events, given } = &record.entry else { return None };
        if !events.is_empty() {
            return None;
        }
        let state = &record.state;
        let sum = |of: fn(&super::serving::GroupState) -> u32| -> u64 {
            state.groups.iter().map(|group| u64::from(of(group))).sum()
        };
        let (serving, passed) = (sum(|group| group.serving), sum(|group| group.passed));
        let came_late = given.counts.map_or(0, |counts| counts.passed_came);
        let is_blind = given.free.is_none() || given.counts.is_none();
        let is_free = given.free.is_some_and(|free| free > 0);
        let limit = state.limit_milli / 1_000;
        Some(Self {
            waiting: sum(|group| group.joined).saturating_sub(serving),
            serving,
            passed,
            no_shows: passed.saturating_sub(came_late),
            due: state.gave.flight.waiting,
            looking: state.gave.flight.looking + state.gave.flight.lingering,
            inside: state.gave.flight.inside,
            rate: state.rate.map_or(limit, |rate| limit.min(rate.into())),
            served: state.gave.served,
            is_tripped: state.tripped,
            is_blind,
            is_halted: !is_blind && is_free && is_halted(state),
        })
    }
}

/// Whether nobody has been served for two minutes, though the room may serve and places wait.
fn is_halted(state: &State) -> bool {
    let may_serve = state.mode == Mode::Open && !state.sold_out && !state.tripped;
    let waits = state.groups.iter().any(|group| group.serving < group.window_end);
    let stands = state.groups.iter().all(|group| {
        let mark = group.marks.iter().rev().nth(HALTED_MARKS - 1);
        mark.is_some_and(|mark| *mark == group.serving)
    });
    may_serve && waits && stands
}

#[cfg(test)]
mod tests {
    use super::super::draw::Terms;
    use super::super::serving::{Command, Counts, Event, Given, Room};
    use super::super::stock::InFlight;
    use super::*;
    use crate::domain::basics::bytes::Secret;
    use crate::domain::basics::ids::{GroupId, SaleId};
    use crate::domain::sale::serving::Settings;

    fn room() -> Room {
        let draw = Terms::Secret(Secret([4; 32]).commitment());
        let settings = Settings::new(GroupId::new("all").unwrap(), 0, 4);
        Room::new(SaleId::new("s").unwrap(), draw, 0, settings)
    }

    /// A turn in which everything is known, 100 joined, and S has stood at 40 for two minutes.
    fn turn(events: Vec<Event>) -> Record {
        let room = room();
        let counts = Counts { passed_came: 7, ..Counts::default() };
        let given =
            Given { free: Some(5), joined: vec![100], counts: Some(counts), ..Given::default() };
        let mut record = Record::first(room.clone(), 0).next(&room, 1, events, given).unwrap();
        let group = &mut record.state.groups[0];
        (group.serving, group.passed, group.window_end) = (40, 10, 100);
        group.marks = vec![40; HALTED_MARKS];
        record.state.gave.flight = InFlight { waiting: 3, looking: 4, lingering: 1, inside: 2 };
        record
    }

    #[test]
    fn a_turn_shows_its_numbers() {
        let expected = Watched {
            waiting: 60,
            serving: 40,
            passed: 10,
            no_shows: 3,
            due: 3,
            looking: 5,
            inside: 2,
            rate: 160,
            served: 0,
            is_tripped: false,
            is_blind: false,
            is_halted: true,
        };
        let mut record = turn(Vec::new());
        assert_eq!(Watched::of(&record), Some(expected));
        record.state.rate = Some(9);
        assert_eq!(Watched::of(&record), Some(Watched { rate: 9, ..expected }));
    }

    #[test]
    fn what_nobody_counted_for_shows_nothing() {
        assert_eq!(Watched::of(&Record::first(room(), 0)), None);
        assert_eq!(Watched::of(&turn(vec![Event::Command(Command::Rate(Some(5)))])), None);
    }

    /// Each reason why a room may stand still for a while, and the one that is a fault.
    #[test]
    fn a_room_is_halted_only_if_nothing_explains_it() {
        let with = |change: fn(&mut Record)| {
            let mut record = turn(Vec::new());
            change(&mut record);
            let watched = Watched::of(&record).unwrap();
            (watched.is_halted, watched.is_tripped, watched.is_blind)
        };
        let given = |record: &mut Record, change: fn(&mut Given)| {
            let Entry::Turn { given, .. } = &mut record.entry else { unreachable!() };
            change(given);
        };
        assert_eq!(with(|_| {}), (true, false, false), "the control");
        assert_eq!(with(|record| record.state.tripped = true), (false, true, false));
        assert_eq!(with(|record| record.state.mode = Mode::Paused), (false, false, false));
        assert_eq!(with(|record| record.state.sold_out = true), (false, false, false));
        assert_eq!(with(|record| record.state.groups[0].window_end = 40), (false, false, false));
        assert_eq!(with(|record| record.state.groups[0].marks[0] = 39), (false, false, false));
        let short = with(|record| record.state.groups[0].marks.truncate(HALTED_MARKS - 1));
        assert_eq!(short, (false, false, false), "less than two minutes");
        for (change, expected) in [
            ((|given| given.free = None) as fn(&mut Given), (false, false, true)),
            (|given| given.counts = None, (false, false, true)),
            (|given| given.free = Some(0), (false, false, false)),
        ] {
            let mut record = turn(Vec::new());
            given(&mut record, change);
            let watched = Watched::of(&record).unwrap();
            assert_eq!((watched.is_halted, watched.is_tripped, watched.is_blind), expected);
        }
    }
}
