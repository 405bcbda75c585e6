//! Serving: how far the serving number moves in a turn. Serving is a pure function in integers: the process that makes
//! the room document computes it, and everybody who checks the log computes it again.
//!
//! A turn takes the last record's state, the time, the event since then ([`Event`]) and the counters and stock that
//! were read ([`Given`]), and makes the next state. The rules:
//!
//! - *The serving number never goes back*. It does not move while the counters or the stock are unknown, nor while the
//!   room is not open yet, is paused or closed, or is not drawn.
//! - *Time*: a step counts the time since the last record, between 0 and 5 s for serving and 60 s for visits.
//!   A last record from the future counts as one second ago. So a wrong clock neither stops nor jumps it, and
//!   an outage eats a minute of a visit at most. A pause stops the clock of visits.
//! - *Capacity*: additive increase, multiplicative decrease. It begins at 80 % of the maximum, grows by 1 % of
//!   it a second, and shrinks to seven tenths, once in five seconds, when more than a tenth of the
//!   reservations of the last five seconds failed or were late. Operator and provider bound it.
//! - *Circuit breaker*: while more than half of them failed or were late, nobody is served; the capacity then
//!   begins again at a hundredth of the maximum.
//!   Source of the form: Chiu and Jain, Analysis of the Increase and Decrease Algorithms for Congestion
//!   Avoidance, 1989.
//! - *Stock*: see [`super::stock`]. Towards the end it waits for single people; whoever is due and has not come for ten
//!   seconds probably comes late or never, so while nobody is inside and anything is free the next one is served then.
//! - *No-shows*: a place that is due and unused runs out by the time since it was due, never by distance: E is
//!   S of that long ago, kept as marks ten seconds apart.
//! - *Groups* share what is served in proportion (stride scheduling: Waldspurger and Weihl, 1995); what a
//!   group does not use passes on to the others.
//! - *Later windows* end after a minute, or when serving reaches them.
//! - *The classic rule* bounds the requests at the sale's slot: 80 % of the maximum, and with fewer than 1,000
//!   left at most five times the stock, a second.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::draw::{Closing, Commitment, GIVE_UP_MS, Latest, NoRound, Source, Terms, WrongSource};
use super::stock::{Expected, InFlight, MILLION, Smoothed};
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::{GroupId, SaleId};
use crate::domain::sale::serving::{InvalidSettings, MARK_MS, Settings};

/// Most time that a step counts for serving, in milliseconds.
pub const MAX_SERVING_MS: u64 = 5_000;
/// Most time that a step counts for visits and windows, in milliseconds.
pub const MAX_VISIT_STEP_MS: u64 = 60_000;
/// What a last record from the future counts as, in milliseconds.
pub const FUTURE_MS: u64 = 1_000;
/// Time between two decreases of the capacity, in milliseconds: what the sums of reservations are over.
pub const DECREASE_MS: u64 = 5_000;
/// Least reservations of five seconds by which the circuit breaker judges.
pub const MIN_JUDGED: u64 = 10;
/// Most bytes of a notice.
pub const MAX_NOTICE_BYTES: usize = 200;
/// Most bytes of the name of who gives a beacon up.
pub const MAX_NAME_BYTES: usize = 64;
/// The number of the rules by which rooms are published.
pub const RULES: u8 = 2;
/// Below this stock, in seat-legs, the classic rule goes by the stock.
pub const FEW: u64 = 1_000;

/// What a serving of a group of share 1 adds to its pass.
const STRIDE: u64 = 1 << 20;

/// What is published of a room before anybody joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Room {
    /// The number of the rules, [`RULES`]; none in rooms that were published by the rules before these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<u8>,
    pub sale: SaleId,
    /// What decides the draw.
    pub draw: Terms,
    /// Seat-legs that are for sale; none in rooms that were published before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stock: Option<u64>,
    pub settings: Settings,
}

/// Why the publication of a room cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRoom {
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The number of the rules, the terms of the draw and the stock are not of one set of rules.
    #[error("it is neither of these rules nor of those before")]
    Rules,
    #[error(transparent)]
    Round(#[from] NoRound),
    /// It names another round than the times of the room give.
    #[error("it names another round than the last one before the opening")]
    OtherRound,
}

impl Room {
    /// A room by the rules of now.
    #[must_use]
    pub const fn new(sale: SaleId, draw: Terms, stock: u64, settings: Settings) -> Self {
        Self { rules: Some(RULES), sale, draw, stock: Some(stock), settings }
    }

    /// A room by the rules before.
    #[must_use]
    pub const fn before(sale: SaleId, draw: Commitment, settings: Settings) -> Self {
        Self { rules: None, sale, draw: Terms::Before(draw), stock: None, settings }
    }

    /// True if it was published by the rules before these.
    #[must_use]
    pub const fn is_of_before(&self) -> bool {
        self.rules.is_none()
    }

    /// Checks that it can have been published at `at_ms`.
    ///
    /// # Errors
    /// Says what cannot be.
    pub fn check(&self, at_ms: i64) -> Result<(), InvalidRoom> {
        self.settings.check()?;
        match (self.rules, &self.draw, self.stock) {
            (None, Terms::Before(_), None) | (Some(RULES), Terms::Secret(_), Some(_)) => Ok(()),
            (Some(RULES), Terms::Beacon(named), Some(_)) => {
                let Settings { closes_at_ms, opens_at_ms, .. } = self.settings;
                let right = named.chain().name(closes_at_ms, opens_at_ms, at_ms)?;
                if right == *named { Ok(()) } else { Err(InvalidRoom::OtherRound) }
            }
            (_, Terms::Beacon(_) | Terms::Secret(_) | Terms::Before(_), _) => {
                Err(InvalidRoom::Rules)
            }
        }
    }

    /// The round of the beacon that decides a group, once it is closed; none if no round does.
    #[must_use]
    pub fn round(&self, closed: &Closed) -> Option<u64> {
        self.draw.round(&closed.closing, closed.at_ms)
    }

    /// The time of the round that decides a group, in milliseconds since the Unix epoch; none where the publication
    /// names no round.
    #[must_use]
    pub fn round_ms(&self, closed: &Closed) -> Option<i64> {
        match self.draw {
            Terms::Beacon(named) => Some(named.time_ms(named.decides(closed.at_ms))),
            Terms::Secret(_) | Terms::Before(_) => None,
        }
    }
}

/// What an operator does to a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Nobody is served or admitted, and no visit runs out.
    Pause,
    /// The end of a pause.
    Resume,
    /// Nobody is served any more.
    Close,
    /// At most this number of places is served a second; `None`: the operator sets no bound.
    Rate(Option<u32>),
    /// What everybody who waits reads, of at most [`MAX_NOTICE_BYTES`] without control characters; `None`:
    /// nothing.
    Notice(Option<String>),
    /// Whether the sale is said to be sold out, whatever is left: nobody is served or admitted meanwhile.
    SoldOut(bool),
    /// The beacon is waited for no longer: every group that is closed and not drawn is drawn by fresh randomness, from
    /// [`GIVE_UP_MS`] after its round on.
    BeaconGivenUp {
        /// Who says so, of at most [`MAX_NAME_BYTES`] without control characters.
        by: String,
        randomness: Hash,
    },
}

/// What happened to a room since the last record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The first window of a group was closed.
    Closed {
        group: GroupId,
        /// N and root.
        closing: Closing,
    },
    /// The first window of a group was drawn.
    Drawn {
        group: GroupId,
        /// What the seed is made of.
        source: Source,
    },
    Command(Command),
}

/// What the counters of the gates say. They may be lost: then they begin again in another epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub epoch: u64,
    /// Number of those who came, of the places that are due and have not run out by the last record.
    pub came: u64,
    /// Number of those who are inside and have no order.
    pub inside: u64,
    /// Number of those who came, in this epoch, of the places that have run out by the last record.
    pub passed_came: u64,
    /// Number of visits that ended in this epoch, with an order or without.
    pub visits: u64,
    /// Seat-legs that the orders of those visits held.
    pub held: u64,
    /// Those who look before they ask for an admission.
    #[serde(default, skip_serializing_if = "Looks::is_nobody")]
    pub looks: Looks,
}

/// What the counters say of those whose visit began without an admission, in this epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looks {
    /// Number of those who look, and began less than [`Settings::show_up_ms`] ago.
    pub looking: u64,
    /// Number of those who look for longer, and whose visit is not over.
    pub lingering: u64,
    /// Number of all who began by looking.
    pub all: u64,
    /// Those of them who began at least [`Settings::show_up_ms`] ago.
    pub looked: u64,
    /// Those of `looked` who asked for an admission by then.
    pub asked: u64,
    /// Those whose visit is over and who had not asked within [`Settings::show_up_ms`].
    pub lingered: u64,
    /// Those of `lingered` who asked later.
    pub asked_late: u64,
}

impl Looks {
    fn is_nobody(&self) -> bool {
        *self == Self::default()
    }
}

/// What was observed of those who look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookShares {
    /// Observations of the share that looks first, of those who come.
    pub look: Smoothed,
    /// Observations of the share that asks for an admission while the look is young.
    pub ask: Smoothed,
    /// Observations of the share that asks later, of the others.
    pub ask_late: Smoothed,
}

impl LookShares {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Reservations of the last five seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservations {
    pub all: u64,
    /// Those that failed or took longer than their target.
    pub bad: u64,
}

/// What was read for a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// Seat-legs that are free; none if that is unknown.
    pub free: Option<u64>,
    /// Number of indices given in each group, in the order of the settings.
    pub joined: Vec<u32>,
    /// The counters; none if they are unknown.
    pub counts: Option<Counts>,
    pub reservations: Reservations,
}

/// Whether a room serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Open,
    /// Not until it is resumed.
    Paused,
    Closed,
}

/// The closing of a first window, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    pub closing: Closing,
    /// The time of its record, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// The state of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupState {
    /// S: places below it are due.
    pub serving: u32,
    /// E: places below it whose holder has not come have run out.
    pub passed: u32,
    /// Indices that were given.
    pub joined: u32,
    /// The closing of the first window; none while people join it.
    pub closed: Option<Closed>,
    /// The seed of the first window; none before its draw.
    pub seed: Option<Hash>,
    /// The first index of the latest window that is drawn.
    pub window_first: u32,
    /// One past the last index that is drawn.
    pub window_end: u32,
    /// Time since that window ended, in milliseconds.
    pub window_age_ms: u64,
    /// S at the last marks, the oldest first.
    pub marks: Vec<u32>,
    /// Its pass in stride scheduling.
    pub pass: u64,
}

impl GroupState {
    /// Its first window is drawn.
    fn draw(&mut self, seed: Hash, count: u32) {
        self.seed = Some(seed);
        self.window_end = count;
        self.window_age_ms = 0;
    }
}

/// What is known of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// The counters as last read.
    pub counts: Counts,
    /// The sum of E that they were read with.
    pub passed: u64,
    /// The number inside, or looking for long, when an earlier epoch was lost, and the clock of visits then.
    pub lost: Option<(u64, u64)>,
}

/// What a turn found and gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gave {
    /// People in flight, before the turn served.
    pub flight: InFlight,
    /// Places that the capacity allowed.
    pub capacity: u64,
    /// Places that the stock allowed, at most those of the capacity.
    pub stock: u64,
    /// Places that were served.
    pub served: u64,
    /// Requests a second that may go to the sale's slot.
    pub requests_per_second: u64,
}

/// The state of a room after a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub mode: Mode,
    /// The clock of visits, in milliseconds.
    pub clock_ms: u64,
    /// Time since somebody waited or was due, by that clock, up to [`Settings::longest_visit_ms`]: then nobody is inside
    /// either, and no turn is made until somebody joins.
    pub idle_ms: u64,
    /// The operator's bound, in places a second.
    pub rate: Option<u32>,
    pub notice: Option<String>,
    /// Whether the operator says that the sale is sold out.
    pub sold_out: bool,
    /// Whether the circuit breaker serves nobody.
    pub tripped: bool,
    /// The capacity, in thousandths of a place a second.
    pub limit_milli: u64,
    /// Time since the capacity was last decreased, in milliseconds, up to [`DECREASE_MS`].
    pub steady_ms: u64,
    /// The part of a place that the capacity allows beyond whole ones, in thousandths.
    pub carry_milli: u64,
    /// Observations of the share that comes.
    pub comes: Smoothed,
    /// Observations of the seat-legs that one inside comes to hold.
    pub holds: Smoothed,
    /// Observations of those who look.
    #[serde(default, skip_serializing_if = "LookShares::is_empty")]
    pub looks: LookShares,
    /// The counters; none before they were first read.
    pub counters: Option<Counters>,
    /// The groups, in the order of the settings.
    pub groups: Vec<GroupState>,
    /// What this turn found and gave.
    pub gave: Gave,
}

/// Why a turn cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The number of groups is another than that of the settings.
    #[error("it is about another number of groups than the settings have")]
    Groups,
    /// An event names a group that the settings do not have.
    #[error("it names a group that the settings do not have")]
    UnknownGroup,
    /// A first window was closed twice.
    #[error("a window was closed that had been closed before")]
    ClosedTwice,
    /// A closing quotes a round; or, of a room of before, quotes one where no beacon is named, or none where one is and
    /// still had time to say one.
    #[error(
        "a closing quotes a round of the beacon in rooms of before alone, if one is named and says one in time"
    )]
    ClosingRound,
    /// A first window was closed before its time.
    #[error("a window was closed before its time")]
    ClosedEarly,
    /// The record is of a time before that of the last one.
    #[error("its time is before that of the record before")]
    TimeBack,
    /// The beacon was given up where none is awaited, or too early.
    #[error("the beacon is given up an hour after its round, and only if it is awaited")]
    NotSilent,
    /// The name of who gives a beacon up is too long, empty, or has control characters.
    #[error(
        "the name of who gives the beacon up has 1 to {MAX_NAME_BYTES} bytes without control characters"
    )]
    Name,
    /// A first window was drawn twice, or before it was closed.
    #[error("a window was drawn that was open, or drawn before")]
    DrawnTwice,
    /// The source may not decide.
    #[error(transparent)]
    Source(#[from] WrongSource),
    /// A command came after the closing of the room.
    #[error("a command came after the room was closed")]
    AfterClose,
    /// A notice is too long, empty, or has control characters.
    #[error("a notice has 1 to {MAX_NOTICE_BYTES} bytes without control characters")]
    Notice,
}

/// Whether a text has 1 to `most` bytes and no control characters.
fn is_text(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The requests a second that may go to the sale's slot, by the classic rule: 80 % of the maximum; with fewer
/// than [`FEW`] seat-legs left, at most five times the stock. None if the stock is unknown.
#[must_use]
pub fn classic_requests_per_second(max_per_second: u32, free: Option<u64>) -> u64 {
    let most = u64::from(max_per_second) * 8 / 10;
    match free {
        None => 0,
        Some(free) if free < FEW => most.min(free * 5),
        Some(_) => most,
    }
}

/// The time that a step counts, in milliseconds: for serving, and for visits and windows.
fn steps(last_ms: i64, now_ms: i64) -> (u64, u64) {
    let since = u64::try_from(now_ms.saturating_sub(last_ms)).unwrap_or(FUTURE_MS);
    (since.min(MAX_SERVING_MS), since.min(MAX_VISIT_STEP_MS))
}

impl State {
    /// The state in which a room is published.
    #[must_use]
    pub fn first(settings: &Settings) -> Self {
        let group = GroupState {
            serving: 0,
            passed: 0,
            joined: 0,
            closed: None,
            seed: None,
            window_first: 0,
            window_end: 0,
            window_age_ms: 0,
            marks: Vec::new(),
            pass: 0,
        };
        Self {
            mode: Mode::Open,
            clock_ms: 0,
            idle_ms: settings.longest_visit_ms(),
            rate: None,
            notice: None,
            sold_out: false,
            tripped: false,
            limit_milli: u64::from(settings.max_per_second) * 800,
            steady_ms: DECREASE_MS,
            carry_milli: 0,
            comes: Smoothed::default(),
            holds: Smoothed::default(),
            looks: LookShares::default(),
            counters: None,
            groups: settings.groups.iter().map(|_| group.clone()).collect(),
            gave: Gave::default(),
        }
    }

    /// Makes a turn at `now_ms`, where this state is that of a record of `last_ms`.
    ///
    /// # Errors
    /// Refuses what cannot have happened.
    pub fn turn(
        &self,
        room: &Room,
        last_ms: i64,
        now_ms: i64,
        events: &[Event],
        given: &Given,
    ) -> Result<Self, Refusal> {
        let settings = &room.settings;
        if given.joined.len() != settings.groups.len() || self.groups.len() != given.joined.len() {
            return Err(Refusal::Groups);
        }
        if !room.is_of_before() && now_ms < last_ms {
            return Err(Refusal::TimeBack);
        }
        let mut next = self.clone();
        // What a turn counts is the time that it ends: a pause that was.
        let (serving_ms, visit_ms) =
            if self.mode == Mode::Paused { (0, 0) } else { steps(last_ms, now_ms) };
        for event in events {
            next.apply(room, now_ms, event)?;
        }
        for (group, joined) in next.groups.iter_mut().zip(&given.joined) {
            let closed = group.closed.map_or(0, |closed| closed.closing.count);
            group.joined = group.joined.max(*joined).max(closed);
        }
        next.pass_time(settings, visit_ms);
        let (due, passed) = (self.due(), self.passed());
        let flight = given.counts.map(|counts| next.read(settings, counts, due, passed));
        next.adapt(settings, serving_ms, given.reservations);
        next.serve(settings, serving_ms, now_ms, given, flight);
        next.end_windows(settings, visit_ms);
        let is_awaited = next.groups.iter().any(|group| group.passed < group.joined);
        next.idle_ms = if is_awaited {
            0
        } else {
            next.idle_ms.saturating_add(visit_ms).min(settings.longest_visit_ms())
        };
        Ok(next)
    }

    fn apply(&mut self, room: &Room, now_ms: i64, event: &Event) -> Result<(), Refusal> {
        let at = |group: &GroupId| {
            let mut groups = room.settings.groups.iter();
            groups.position(|known| known.group == *group).ok_or(Refusal::UnknownGroup)
        };
        match event {
            Event::Closed { group, closing } => {
                let at = at(group)?;
                let state = self.groups.get_mut(at).ok_or(Refusal::Groups)?;
                if state.closed.is_some() {
                    return Err(Refusal::ClosedTwice);
                }
                let Settings { closes_at_ms, .. } = room.settings;
                match (&room.draw, closing.latest_round) {
                    (Terms::Beacon(_) | Terms::Secret(_), None) if now_ms < closes_at_ms => {
                        return Err(Refusal::ClosedEarly);
                    }
                    (Terms::Beacon(_) | Terms::Secret(_), None) => {}
                    (Terms::Before(before), Some(Latest(latest)))
                        if before.beacon.is_some() == latest.is_some()
                            || latest.is_none()
                                && now_ms >= room.settings.closes_without_round_ms() => {}
                    (_, Some(_) | None) => return Err(Refusal::ClosingRound),
                }
                state.closed = Some(Closed { closing: *closing, at_ms: now_ms });
            }
            Event::Drawn { group, source } => {
                let at = at(group)?;
                let state = self.groups.get_mut(at).ok_or(Refusal::Groups)?;
                let closed = state.closed.filter(|_| state.seed.is_none());
                let Closed { closing, at_ms } = closed.ok_or(Refusal::DrawnTwice)?;
                room.draw.check(&closing, source, at_ms, now_ms)?;
                state.draw(closing.seed(&room.sale, group, source), closing.count);
            }
            Event::Command(
                Command::Pause
                | Command::Resume
                | Command::Close
                | Command::Rate(_)
                | Command::SoldOut(_)
                | Command::BeaconGivenUp { .. },
            ) if self.mode == Mode::Closed => return Err(Refusal::AfterClose),
            Event::Command(Command::Pause) => self.mode = Mode::Paused,
            Event::Command(Command::Resume) => self.mode = Mode::Open,
            Event::Command(Command::Close) => self.mode = Mode::Closed,
            Event::Command(Command::Rate(rate)) => self.rate = *rate,
            Event::Command(Command::Notice(Some(text))) if !is_text(text, MAX_NOTICE_BYTES) => {
                return Err(Refusal::Notice);
            }
            Event::Command(Command::Notice(notice)) => self.notice.clone_from(notice),
            Event::Command(Command::SoldOut(is_said)) => self.sold_out = *is_said,
            Event::Command(Command::BeaconGivenUp { by, .. }) if !is_text(by, MAX_NAME_BYTES) => {
                return Err(Refusal::Name);
            }
            Event::Command(Command::BeaconGivenUp { randomness, .. }) => {
                self.give_up(room, now_ms, *randomness)?;
            }
        }
        Ok(())
    }

    /// Draws every group that awaits the beacon by fresh randomness.
    fn give_up(&mut self, room: &Room, now_ms: i64, randomness: Hash) -> Result<(), Refusal> {
        let awaits = |group: &GroupState| group.closed.filter(|_| group.seed.is_none());
        let round_ms: Option<i64> =
            self.groups.iter().filter_map(awaits).filter_map(|closed| room.round_ms(&closed)).max();
        let may = round_ms.is_some_and(|round_ms| now_ms >= round_ms.saturating_add(GIVE_UP_MS));
        if !may {
            return Err(Refusal::NotSilent);
        }
        for (group, of) in self.groups.iter_mut().zip(&room.settings.groups) {
            let Some(Closed { closing, .. }) = awaits(group) else { continue };
            let seed = closing.seed_after_giving_up(&room.sale, &of.group, randomness);
            group.draw(seed, closing.count);
        }
        Ok(())
    }

    /// Moves the clock of visits, and E with it.
    fn pass_time(&mut self, settings: &Settings, visit_ms: u64) {
        let marks = (self.clock_ms + visit_ms) / MARK_MS - self.clock_ms / MARK_MS;
        self.clock_ms += visit_ms;
        let kept = usize::try_from(settings.show_up_ms / MARK_MS).unwrap_or(usize::MAX);
        for group in &mut self.groups {
            group.marks.extend((0..marks).map(|_| group.serving));
            let run_out = group.marks.len().saturating_sub(kept);
            if let Some(passed) = group.marks.drain(..run_out).next_back() {
                group.passed = passed;
            }
        }
    }

    /// Whether places may be served: the room is open, not said to be sold out, and not tripped.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.mode == Mode::Open && !self.sold_out && !self.tripped
    }

    /// True once every group has its first draw: those who joined before it know their places.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.groups.iter().all(|group| group.seed.is_some())
    }

    /// Thousandths of a place that may be served a second: the capacity, within the bounds of operator and
    /// provider.
    #[must_use]
    pub fn rate_milli(&self, settings: &Settings) -> u64 {
        let bounds = [self.rate, settings.provider_per_second];
        let bounds = bounds.into_iter().flatten().map(|rate| u64::from(rate) * 1_000);
        bounds.fold(self.limit_milli, u64::min)
    }

    /// Number of places that are due and have not run out.
    fn due(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.serving - group.passed)).sum()
    }

    /// Sum of E over the groups.
    fn passed(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.passed)).sum()
    }

    /// Takes the counters in: what they add to the observations, and who is in flight. They count by the last
    /// record, by which `due` places had not run out, and `run_out` had.
    fn read(&mut self, settings: &Settings, counts: Counts, due: u64, run_out: u64) -> InFlight {
        let known = self.counters.filter(|known| known.counts.epoch == counts.epoch);
        let lost = match (known, self.counters) {
            (Some(known), _) => known.lost,
            // Whose places have run out are not among those who are due, and would be forgotten.
            (None, Some(_)) => {
                let InFlight { inside, lingering, .. } = self.gave.flight;
                Some((inside + lingering, self.clock_ms))
            }
            (None, None) => None,
        };
        // What was inside when the counters were lost fades over one visit.
        let fading = lost.and_then(|(inside, at_ms)| {
            let left =
                settings.visit_ms.checked_sub(self.clock_ms - at_ms).filter(|left| *left > 0)?;
            Some(inside.saturating_mul(left) / settings.visit_ms)
        });
        let before = match known {
            Some(known) => known,
            None => Counters { counts: Counts::default(), passed: 0, lost },
        };
        // While they lack those who came before they were lost, they say nothing about shares.
        if fading.is_none() {
            let since = |now: u64, before: u64| now.saturating_sub(before);
            let passed = since(run_out, before.passed);
            self.comes.add(since(counts.passed_came, before.counts.passed_came), passed);
            let visits = since(counts.visits, before.counts.visits);
            self.holds.add(since(counts.held, before.counts.held), visits);
            let (now, before) = (counts.looks, before.counts);
            let came = since(counts.came + counts.passed_came, before.came + before.passed_came);
            let before = before.looks;
            // While nobody looks there is nothing to learn: the records are those of before.
            if now.all > 0 {
                self.looks.look.add(since(now.all, before.all), came);
            }
            self.looks.ask.add(since(now.asked, before.asked), since(now.looked, before.looked));
            let lingered = since(now.lingered, before.lingered);
            self.looks.ask_late.add(since(now.asked_late, before.asked_late), lingered);
        }
        let lost = lost.filter(|_| fading.is_some());
        self.counters = Some(Counters { counts, passed: run_out, lost });
        InFlight {
            waiting: due.saturating_sub(counts.came),
            looking: counts.looks.looking,
            lingering: counts.looks.lingering,
            inside: counts.inside.max(fading.unwrap_or(0)),
        }
    }

    /// Adapts the capacity, and trips or resets the circuit breaker.
    fn adapt(&mut self, settings: &Settings, serving_ms: u64, reservations: Reservations) {
        let most = u64::from(settings.max_per_second) * 1_000;
        self.steady_ms = (self.steady_ms + serving_ms).min(DECREASE_MS);
        let Reservations { all, bad } = reservations;
        let is_bad = u128::from(bad) * 10 > u128::from(all);
        self.tripped = all >= MIN_JUDGED && u128::from(bad) * 2 > u128::from(all);
        if self.tripped {
            self.limit_milli = (most / 100).max(1_000);
            self.steady_ms = 0;
        } else if !is_bad {
            self.limit_milli = (self.limit_milli + most * serving_ms / 100_000).min(most);
        } else if self.steady_ms >= DECREASE_MS {
            self.limit_milli = (self.limit_milli * 7 / 10).max(1_000);
            self.steady_ms = 0;
        }
    }

    /// What is expected of those in flight.
    #[must_use]
    pub fn expected(&self, settings: &Settings) -> Expected {
        let LookShares { look, ask, ask_late } = &self.looks;
        let looks = look.mean(Expected::LOOKS);
        let (in_time, asks_late) = (ask.mean(Expected::ASKS), ask_late.mean(Expected::ASKS_LATE));
        let asks = in_time + (MILLION - in_time) * asks_late / MILLION;
        // Of those who come some look first, and some of these never ask.
        let come_and_ask = MILLION - looks + looks * asks / MILLION;
        Expected {
            comes: self.comes.mean(Expected::COMES) * come_and_ask / MILLION,
            asks,
            asks_late,
            holds: self.holds.mean(Expected::holds_prior(settings.max_units)),
            max_units: settings.max_units,
        }
    }

    /// What the two rules allow, and serves it.
    fn serve(
        &mut self,
        settings: &Settings,
        serving_ms: u64,
        now_ms: i64,
        given: &Given,
        flight: Option<InFlight>,
    ) {
        let rate_milli = self.rate_milli(settings);
        let budget_milli = self.carry_milli + rate_milli * serving_ms / 1_000;
        let capacity = budget_milli / 1_000;
        let is_open = self.serves() && now_ms >= settings.opens_at_ms;
        let expected = self.expected(settings);
        let stock = match (given.free, flight) {
            (Some(free), Some(flight)) if is_open => {
                let is_missing = free > 0 && flight.inside == 0 && self.stands();
                expected.most(free, flight, capacity).max(u64::from(is_missing).min(capacity))
            }
            (None | Some(_), None | Some(_)) => 0,
        };
        let served = self.share(settings, stock);
        // What is not used is not saved up, but for the part of a place.
        self.carry_milli = (budget_milli - served * 1_000).min(999);
        self.gave = Gave {
            flight: flight.unwrap_or(self.gave.flight),
            capacity,
            stock,
            served,
            requests_per_second: classic_requests_per_second(
                settings.max_requests_per_second,
                given.free,
            ),
        };
    }

    /// Whether nobody was served since the mark before the last one: for ten to twenty seconds.
    fn stands(&self) -> bool {
        self.groups.iter().all(|group| {
            let mut lately = group.marks.iter().rev();
            let before = lately.next().and_then(|_| lately.next());
            before == Some(&group.serving)
        })
    }

    /// Moves S of the groups by `places` together, as far as they are drawn; the number of places.
    fn share(&mut self, settings: &Settings, places: u64) -> u64 {
        let is_waiting = |group: &GroupState| group.serving < group.window_end;
        let mut served = 0;
        while served < places {
            let groups = self.groups.iter_mut().zip(&settings.groups);
            let waiting = groups.filter(|(group, _)| is_waiting(group));
            let Some((group, of)) = waiting.min_by_key(|(group, _)| group.pass) else { break };
            group.serving += 1;
            group.pass += STRIDE / u64::from(of.share.max(1));
            served += 1;
        }
        // Who has nobody waiting saves nothing up.
        let passes = self.groups.iter().filter(|group| is_waiting(group)).map(|group| group.pass);
        let least = passes.min().unwrap_or(0);
        for group in self.groups.iter_mut().filter(|group| !is_waiting(group)) {
            group.pass = group.pass.max(least);
        }
        served
    }

    /// Ends the windows that are over: who joined meanwhile is drawn by this turn's record.
    fn end_windows(&mut self, settings: &Settings, visit_ms: u64) {
        for group in self.groups.iter_mut().filter(|group| group.seed.is_some()) {
            group.window_age_ms = (group.window_age_ms + visit_ms).min(settings.window_ms);
            let is_over =
                group.window_age_ms == settings.window_ms || group.serving == group.window_end;
            if is_over && group.joined > group.window_end {
                group.window_first = group.window_end;
                group.window_end = group.joined;
                group.window_age_ms = 0;
            }
        }
    }
}
