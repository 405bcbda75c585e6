//! The waiting room of a sale: the engine's own turns and counters.

use std::collections::VecDeque;

use engine::domain::admission::room::counts::{Came, Coming, Entry, Tally};
use engine::domain::admission::room::draw::{Closing, Terms};
use engine::domain::admission::room::serving::{Closed, Given, Reservations, Room, State};
use engine::domain::basics::bytes::{Hash, Secret};
use engine::domain::sale::Sale;
use engine::domain::sale::serving::{MARK_MS, Settings};

/// Seconds over which reservations are summed up.
const SUMMED: usize = 5;

/// The room of one sale.
#[derive(Debug)]
pub struct Waiting {
    room: Room,
    state: State,
    tally: Tally,
    last_ms: i64,
    joined: f64,
    seconds: VecDeque<Reservations>,
}

impl Waiting {
    /// The room of a sale; none if it has none.
    #[must_use]
    pub fn new(sale: &Sale) -> Option<Self> {
        let settings = sale.room()?;
        let state = State::first(&settings);
        let draw = Terms::Secret(Secret([0; 32]).commitment());
        let last_ms = settings.opens_at_ms;
        let room = Room::new(sale.file().sale.clone(), draw, sale.seat_legs(), settings);
        let (tally, seconds) = (Tally::default(), VecDeque::from([Reservations::default()]));
        Some(Self { room, state, tally, last_ms, joined: 0.0, seconds })
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.room.settings
    }

    /// So many people join, a part of one included: sales that open together share a crowd.
    pub fn join(&mut self, people: f64) {
        self.joined += people;
    }

    /// Those who have joined.
    #[must_use]
    pub fn joined(&self) -> u32 {
        self.joined as u32
    }

    /// Those whose place is not due.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        u64::from(self.joined().saturating_sub(self.state.groups[0].serving))
    }

    /// Those who have no place yet, and are drawn with a later window.
    #[must_use]
    pub fn without_place(&self) -> u32 {
        self.joined().saturating_sub(self.state.groups[0].window_end)
    }

    /// Places that may be served a second now.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.state.rate_milli(self.settings()) as f64 / 1_000.0
    }

    /// Those who have joined know their places.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.state.is_drawn()
    }

    /// The first window is closed and drawn.
    pub fn draw(&mut self, now_ms: i64) {
        let count = self.joined();
        let closing = Closing { count, root: Hash([0; 32]), latest_round: None };
        for group in &mut self.state.groups {
            group.closed = Some(Closed { closing, at_ms: now_ms });
            group.seed = Some(Hash([0; 32]));
            group.window_end = count;
        }
        self.last_ms = now_ms;
    }

    /// A turn: the number of places that become due. What cannot be, serves nobody.
    pub fn turn(&mut self, now_ms: i64, free: u64) -> u64 {
        let (settings, clock_ms) = (&self.room.settings, self.state.clock_ms);
        let sum = |of: fn(&Reservations) -> u64| self.seconds.iter().map(of).sum();
        let reservations = Reservations { all: sum(|one| one.all), bad: sum(|one| one.bad) };
        let given = Given {
            free: Some(free),
            joined: vec![self.joined(); settings.groups.len()],
            counts: Some(self.tally.counts(settings, clock_ms)),
            reservations,
        };
        let oldest = Tally::oldest_mark(settings, clock_ms);
        self.tally.marks.retain(|mark, _| *mark >= oldest);
        self.seconds.push_back(Reservations::default());
        if self.seconds.len() > SUMMED {
            self.seconds.pop_front();
        }
        let Ok(next) = self.state.turn(&self.room, self.last_ms, now_ms, &[], &given) else {
            return 0;
        };
        self.last_ms = now_ms;
        self.state = next;
        self.state.gave.served
    }

    /// People come whose place was due at this mark; they are counted by the mark that is returned.
    pub fn came(&mut self, how: Coming, people: u64) -> Entry {
        let entry = Entry { mark: self.mark() };
        (0..people).for_each(|_| self.tally.count(&Came { entry, how }));
        entry
    }

    /// The mark of now.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.state.clock_ms / MARK_MS
    }

    /// Reservations that were answered: of `held` seat-legs each if they made an order, and badly if they failed or
    /// were late.
    pub fn reserved(&mut self, entry: Entry, people: u64, held: u64, is_bad: bool) {
        if let Some(second) = self.seconds.back_mut() {
            second.all += people;
            second.bad += if is_bad { people } else { 0 };
        }
        if held > 0 {
            self.tally.held += held * people;
            self.tally.marks.entry(entry.mark).or_default().ordered += people;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::tests::hall;

    #[test]
    fn a_room_serves_at_its_rate_and_halts_when_nothing_is_free() {
        let sale = hall(1_000, serde_json::json!({"max_per_second": 50}));
        let mut room = Waiting::new(&sale).unwrap();
        let opens_ms = room.settings().opens_at_ms;
        room.join(5_000.0);
        room.draw(opens_ms - 120_000);
        assert_eq!(room.turn(opens_ms - 1_000, 1_000), 0, "not yet");
        let served: u64 = (0..10).map(|second| room.turn(opens_ms + second * 1_000, 1_000)).sum();
        assert!((400..=500).contains(&served), "from 80 % of the rate up to all of it: {served}");
        assert_eq!(room.waiting(), 5_000 - served);
        assert_eq!(room.turn(opens_ms + 11_000, 0), 0);
    }
}
