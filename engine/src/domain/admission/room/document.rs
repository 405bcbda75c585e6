//! The room document: the small JSON document of a sale that every waiting member reads, again and again.
//!
//! The document follows from the last record of the log and from the seats that are left. It has at most [`MAX_BYTES`]
//! for a sale of 60,000 seats in 64 tiers with four groups, and the bytes of a notice besides: caches serve it to a
//! million people. Facts that no longer change are not in it: roots, counts and ended windows have addresses of their
//! own.

#[cfg(test)]
mod waits;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draw::Terms;
use super::log::Record;
use super::serving::{Closed, Gave, GroupState, Mode, Room, State};
use super::stock::{InFlight, MILLION};
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::GroupId;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::serving::{MARK_MS, MAX_POLL_MS};

/// Bytes that a document of a large sale stays below.
pub const MAX_BYTES: usize = 1_500;
/// The shortest poll of a page, in seconds.
pub const MIN_POLL_SECONDS: u64 = 2;
/// Requests a second that all who wait for a draw may make together, up to the crowd that asks so often by the longest
/// poll: less than half of what a distribution takes by its quota.
/// Source: <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/cloudfront-limits.html>
const POLLS_PER_SECOND: u64 = 100_000;
/// What a client adds or leaves out of a poll at random, in hundredths.
const POLL_JITTER_PERCENT: u64 = 30;
/// How many requests the sale's slot is asked for each that it carries out well, before clients are to leave any
/// out: K of the rule of [`drop_percent`].
const REQUESTS_PER_ACCEPT: u64 = 2;
/// Most requests of a hundred that clients are to leave out: some must come, for the share to fall again.
pub const MAX_DROP_PERCENT: u64 = 90;
/// Marks over which the advance is measured: a minute.
const ADVANCE_MARKS: usize = 6;
/// The bounds of what is said of an advance or of a last place, in hundredths of the estimate: a wait between
/// them is the longest less than twice the shortest.
const LOW_PERCENT: u64 = 75;
const HIGH_PERCENT: u64 = 135;

/// What a room does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoomState {
    /// People join the first window.
    Joining,
    /// The first window is closed, and its places are being drawn.
    Drawing,
    /// Places are known, and the sale has not opened.
    Drawn,
    /// Places are served.
    Serving,
    /// The operator has paused it.
    Paused,
    /// Too many reservations fail or come too late: nobody is served until they do not.
    Recovering,
    /// A turn could not be made: nobody is served until one can.
    Stalled,
    /// Nothing is left, or the operator says so.
    SoldOut,
    /// The operator has closed it.
    Closed,
}

/// What a document says of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupDocument {
    /// The group.
    pub group: GroupId,
    /// The serving number: places below it are due.
    pub serving: u32,
    /// Places below it whose holder has not come have run out.
    pub passed: u32,
    /// Indices that were given.
    pub joined: u32,
    /// One past the last index that is drawn.
    pub window: u32,
    /// The root of the tree over the first window, from its closing until its draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Hash>,
    /// The beacon's round that decides the draw, from the closing until the draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// The seed of the first window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Hash>,
    /// Number of indices of the first window, from its closing on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Places that are served a minute, from the least to the most that is expected; none before it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advance: Option<(u64, u64)>,
    /// The place up to which what is left is expected to last, from the least to the most; none before the draw. Places
    /// below the least wait for those before them alone; the others, for what those who are due leave or give back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts_to: Option<(u32, u32)>,
}

impl GroupDocument {
    /// The shortest and the longest wait behind so many places. None where that is not known: before places were served
    /// for a while, and from the least place on to which what is left is expected to last, for nobody knows how long those
    /// take who are due.
    #[must_use]
    pub fn wait_behind(&self, ahead: u32) -> Option<(Duration, Duration)> {
        if self.lasts_to.is_some_and(|(least, _)| least.saturating_sub(self.serving) <= ahead) {
            return None;
        }
        let (least, most) = self.advance.filter(|(least, _)| *least > 0)?;
        Some((wait_at(ahead, most), wait_at(ahead, least)))
    }
}

/// The wait behind so many places if so many, at least one, are served a minute; at most a day.
#[must_use]
pub fn wait_at(ahead: u32, a_minute: u64) -> Duration {
    Duration::from_secs_f64((f64::from(ahead) * 60.0 / a_minute.max(1) as f64).min(86_400.0))
}

/// How often a client asks again: a tenth of its wait, within these bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Poll {
    /// Shortest time between two requests, in seconds.
    pub min_seconds: u64,
    /// Longest time between two requests, in seconds.
    pub max_seconds: u64,
    /// What a client adds to it or takes from it at random, in hundredths.
    pub jitter_percent: u64,
    /// Requests of a hundred that a client leaves out at random, because the sale is asked for more than it carries
    /// out. The request of whoever's place is due is never left out.
    // The document has few bytes to spare.
    #[serde(rename = "drop", default, skip_serializing_if = "is_none")]
    pub drop_percent: u64,
}

/// The shortest poll while so many have joined, in seconds. Before their places are drawn all of them wait for the
/// same moment, and would ask as often as the shortest poll lets them; afterwards those alone do whose place is
/// soon.
#[must_use]
pub fn shortest_poll(joined: u64, drawn: bool) -> u64 {
    let each = if drawn { 0 } else { joined.div_ceil(POLLS_PER_SECOND) };
    each.clamp(MIN_POLL_SECONDS, MAX_POLL_MS / 1_000)
}

/// True if nothing is to be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(drop_percent: &u64) -> bool {
    *drop_percent == 0
}

/// The requests of a hundred that clients are to leave out, after a time in which the sale's slot was asked for
/// `requests`, and carried out `accepts` well: (requests − K·accepts) ÷ (requests + 1), with K = 2.
/// Source: Beyer et al., Site Reliability Engineering, chapter 21, "Client-Side Throttling".
#[must_use]
pub fn drop_percent(requests: u64, accepts: u64) -> u64 {
    let over = requests.saturating_sub(accepts.saturating_mul(REQUESTS_PER_ACCEPT));
    let percent = u128::from(over) * 100 / (u128::from(requests) + 1);
    u64::try_from(percent).unwrap_or(MAX_DROP_PERCENT).min(MAX_DROP_PERCENT)
}

/// The time after which to repeat a request that was refused, in milliseconds, where it is a second without
/// anything to leave out: who waits so long leaves out that share.
#[must_use]
pub const fn retry_ms(drop_percent: u64) -> u64 {
    let kept = 100_u64.saturating_sub(drop_percent);
    100_000_u64.div_ceil(if kept == 0 { 1 } else { kept })
}

/// The room document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// What the room does.
    pub state: RoomState,
    /// Time of the document.
    pub as_of: Timestamp,
    /// When the first window closes.
    pub draw_closes_at: Timestamp,
    /// When the round of the beacon that decides the draw is out, until the draw; none if the secret decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws_at: Option<Timestamp>,
    /// When serving begins.
    pub opens_at: Timestamp,
    /// The groups.
    pub groups: Vec<GroupDocument>,
    /// Places that may be served a second.
    pub rate: u64,
    /// The hash of the secret, until the draw; none if a round of a beacon decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Hash>,
    /// The beacon's chain, until the draw; none if the secret decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beacon: Option<Hash>,
    /// The number of the last record of the log.
    pub record: u64,
    /// Its hash.
    pub head: Hash,
    /// Seats that are left in each tier, in the order of the sale; on a train, seat-legs. None if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Vec<u64>>,
    /// How often to ask.
    pub poll: Poll,
    /// The operator's notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// What is left of a sale.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Left {
    /// Seat-legs that are free.
    pub free: u64,
    /// Whether orders hold seats that may come back.
    pub holds: bool,
    /// Free seat-legs of each tier, in the order of the sale.
    pub tiers: Vec<u64>,
    /// True while nobody is let in, because payments have no free start for half a minute.
    pub is_held_back: bool,
}

impl Left {
    /// True if nothing is free, and nothing can come back.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.free == 0 && !self.holds
    }

    /// The free seat-legs that a turn may let people in to: none while they could not begin to pay.
    #[must_use]
    pub const fn to_give(&self) -> u64 {
        if self.is_held_back { 0 } else { self.free }
    }
}

/// When the first window of a room closes.
fn closes_at(room: &Room) -> Timestamp {
    Timestamp::from_ms(room.settings.closes_at_ms)
}

/// When the round is out that decides the draw: of the last group if they differ.
fn draws_at(room: &Room, state: &State) -> Option<Timestamp> {
    let Terms::Beacon(named) = room.draw else { return None };
    let closed = state.groups.iter().filter_map(|group| group.closed);
    let of_closed = closed.filter_map(|closed| room.round_ms(&closed)).max();
    Some(Timestamp::from_ms(of_closed.unwrap_or_else(|| named.time_ms(named.round))))
}

/// The bounds of what is said of an estimate.
fn range(estimate: u64) -> (u64, u64) {
    let part = |percent: u64| estimate.saturating_mul(percent) / 100;
    (part(LOW_PERCENT), part(HIGH_PERCENT))
}

/// Places of a group that were served a minute, lately; none before there is a mark.
fn advance(group: &GroupState, clock_ms: u64) -> Option<u64> {
    let marks = group.marks.len().min(ADVANCE_MARKS);
    let first = group.marks.iter().rev().nth(marks.checked_sub(1)?)?;
    let since = u64::try_from(marks - 1).unwrap_or(0) * MARK_MS + clock_ms % MARK_MS;
    let served = u64::from(group.serving - first);
    (since >= MARK_MS).then(|| served * 60_000 / since)
}

/// Places of all groups that what is free lasts for, beyond those that are due: from the least to the most that is
/// expected.
///
/// At least it lasts for those whom the stock rule would let be served now, if the rate did not bound them: they wait for
/// nothing but those before them. Beyond them the room waits for what those who are due decide.
fn lasts_for(room: &Room, state: &State, free: u64) -> (u64, u64) {
    let expected = state.expected(&room.settings);
    let per_place = expected.comes.saturating_mul(expected.holds) / MILLION;
    let Gave { flight, served, .. } = state.gave;
    let flight = InFlight { waiting: flight.waiting.saturating_add(served), ..flight };
    let not_promised = free.saturating_mul(MILLION).saturating_sub(expected.promised(flight));
    let (least, most) = range(not_promised / per_place.max(1));
    (least.min(expected.most(free, flight, u64::from(u32::MAX))), most)
}

impl Document {
    /// The document of a record at `now`, with its state as it is to be shown. `left` is what is left, if that is known.
    /// `stalled`: a turn was due, and could not be made.
    #[must_use]
    pub fn new(
        room: &Room,
        (record, state): (&Record, &State),
        left: Option<&Left>,
        stalled: bool,
        now: Timestamp,
    ) -> Self {
        let settings = &room.settings;
        let drawn = state.is_drawn();
        let lasts = left.map(|left| lasts_for(room, state, left.free));
        let shares: u64 = settings.groups.iter().map(|group| u64::from(group.share)).sum();
        let joined = state.groups.iter().map(|group| u64::from(group.joined)).sum();
        let groups = settings.groups.iter().zip(&state.groups).map(|(of, group)| {
            let lasts = lasts.filter(|_| group.seed.is_some());
            let closing = group.closed.map(|Closed { closing, .. }| closing);
            let until_drawn = closing.filter(|_| group.seed.is_none());
            GroupDocument {
                group: of.group.clone(),
                serving: group.serving,
                passed: group.passed,
                joined: group.joined,
                window: group.window_end,
                root: until_drawn.map(|closing| closing.root),
                round: group.closed.filter(|_| group.seed.is_none()).and_then(|of| room.round(&of)),
                seed: group.seed,
                count: closing.map(|closing| closing.count),
                advance: advance(group, state.clock_ms).map(range),
                lasts_to: lasts.map(|(least, most)| {
                    let place = |places: u64| {
                        let of_group = places.saturating_mul(of.share.into()) / shares.max(1);
                        let place = u64::from(group.serving).saturating_add(of_group);
                        u32::try_from(place).unwrap_or(u32::MAX)
                    };
                    (place(least), place(most))
                }),
            }
        });
        Self {
            state: room_state(state, room, left, stalled, now),
            as_of: now,
            draw_closes_at: closes_at(room),
            draws_at: draws_at(room, state).filter(|_| !drawn),
            opens_at: Timestamp::from_ms(settings.opens_at_ms),
            groups: groups.collect(),
            rate: state.rate_milli(settings) / 1_000,
            commitment: room.draw.commitment().filter(|_| !drawn),
            beacon: room.draw.chain().filter(|_| !drawn),
            record: record.number,
            head: record.hash(),
            tiers: left.map(|left| left.tiers.clone()),
            poll: Poll {
                min_seconds: shortest_poll(joined, drawn),
                max_seconds: MAX_POLL_MS / 1_000,
                jitter_percent: POLL_JITTER_PERCENT,
                drop_percent: 0,
            },
            notice: state.notice.clone(),
        }
    }
}

fn room_state(
    state: &State,
    room: &Room,
    left: Option<&Left>,
    stalled: bool,
    now: Timestamp,
) -> RoomState {
    let Room { settings, .. } = room;
    match state.mode {
        Mode::Closed => return RoomState::Closed,
        Mode::Paused => return RoomState::Paused,
        Mode::Open => {}
    }
    let is_open = now.ms() >= settings.opens_at_ms;
    if state.sold_out || (is_open && left.is_some_and(Left::is_nothing)) {
        RoomState::SoldOut
    } else if state.groups.iter().any(|group| group.seed.is_none()) {
        let is_closed = now >= closes_at(room);
        if is_closed { RoomState::Drawing } else { RoomState::Joining }
    } else if !is_open {
        RoomState::Drawn
    } else if stalled || left.is_none() {
        RoomState::Stalled
    } else if state.tripped {
        RoomState::Recovering
    } else {
        RoomState::Serving
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{BeaconChain, Closing, Source};
    use super::super::serving::{Event, Given};
    use super::*;
    use crate::domain::basics::bytes::Signature;
    use crate::domain::basics::ids::SaleId;
    use crate::domain::sale::serving::{GroupSettings, Settings};

    const OPENS: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn room(groups: u32) -> Room {
        let name = |number: u32| GroupId::new(format!("g-{number}")).unwrap();
        let mut settings = Settings::new(name(0), OPENS.ms(), 4);
        settings.groups = (0..groups)
            .map(|number| GroupSettings { group: name(number), share: 1, codes: false })
            .collect();
        let chain = BeaconChain { chain: Hash([1; 32]), genesis: 1_692_803_367, period: 3 };
        let draw = Terms::Beacon(chain.name(settings.closes_at_ms, OPENS.ms(), 0).unwrap());
        Room::new(SaleId::new("s").unwrap(), draw, 60_000, settings)
    }

    fn left() -> Left {
        Left { free: 60_000, holds: true, tiers: vec![60_000 / 64; 64], is_held_back: false }
    }

    /// The record by which every group is closed, and drawn if wanted.
    fn closed(room: &Room, count: u32, drawn: bool) -> Record {
        let mut events = Vec::new();
        for settings in &room.settings.groups {
            let closing = Closing { count, root: Hash([2; 32]), latest_round: None };
            events.push(Event::Closed { group: settings.group.clone(), closing });
        }
        let Terms::Beacon(named) = room.draw else { panic!() };
        let source = Source::Beacon { round: named.round, signature: Signature([0; 48]) };
        let given = Given { joined: vec![count; room.settings.groups.len()], ..Given::default() };
        let first = Record::first(room.clone(), 0);
        let closing = first.next(room, OPENS.ms() - 300_000, events, given.clone()).unwrap();
        if !drawn {
            return closing;
        }
        let groups = room.settings.groups.iter();
        let events = groups.map(|of| Event::Drawn { group: of.group.clone(), source }).collect();
        closing.next(room, OPENS.ms() - 50_000, events, given).unwrap()
    }

    fn state_of(record: &Record, room: &Room, now: Timestamp) -> RoomState {
        Document::new(room, (record, &record.state), Some(&left()), false, now).state
    }

    #[test]
    fn each_state_has_its_time() {
        let room = room(1);
        let (first, drawing) = (Record::first(room.clone(), 0), closed(&room, 5, false));
        let drawn = closed(&room, 5, true);
        let closes = closes_at(&room);
        assert_eq!(state_of(&first, &room, closes.plus_ms(-1)), RoomState::Joining);
        assert_eq!(state_of(&first, &room, closes), RoomState::Drawing);
        assert_eq!(state_of(&drawing, &room, OPENS), RoomState::Drawing);
        assert_eq!(state_of(&drawn, &room, OPENS.plus_ms(-1)), RoomState::Drawn);
        assert_eq!(state_of(&drawn, &room, OPENS), RoomState::Serving);
        let with = |change: fn(&mut State)| {
            let mut record = drawn.clone();
            change(&mut record.state);
            state_of(&record, &room, OPENS)
        };
        assert_eq!(with(|state| state.mode = Mode::Paused), RoomState::Paused);
        assert_eq!(with(|state| state.mode = Mode::Closed), RoomState::Closed);
        assert_eq!(with(|state| state.sold_out = true), RoomState::SoldOut);
        assert_eq!(with(|state| state.tripped = true), RoomState::Recovering);
        let said = |left: Option<&Left>, stalled| {
            Document::new(&room, (&drawn, &drawn.state), left, stalled, OPENS).state
        };
        assert_eq!(said(None, false), RoomState::Stalled, "what is unknown serves nobody");
        assert_eq!(said(Some(&left()), true), RoomState::Stalled);
        assert_eq!(said(Some(&Left::default()), false), RoomState::SoldOut);
        let held = Left { holds: true, ..Left::default() };
        assert_eq!(said(Some(&held), false), RoomState::Serving);
    }

    #[test]
    fn the_document_of_a_large_sale_is_small() {
        let mut longest = 0;
        for drawn in [false, true] {
            let room = room(4);
            let mut record = closed(&room, 1_000_000, drawn);
            record.number = 9_999;
            for group in record.state.groups.iter_mut().filter(|_| drawn) {
                (group.serving, group.passed) = (250_000, 249_000);
                group.marks = (0..18).map(|mark| 249_000 + mark * 50).collect();
            }
            let mut document =
                Document::new(&room, (&record, &record.state), Some(&left()), false, OPENS);
            document.poll.drop_percent = MAX_DROP_PERCENT;
            let text = serde_json::to_string(&document).unwrap();
            println!("{} bytes: {text}", text.len());
            longest = longest.max(text.len());
            assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
        }
        assert!(longest <= MAX_BYTES, "{longest} bytes");
    }

    #[test]
    fn a_crowd_that_waits_for_the_draw_asks_less_often_the_larger_it_is() {
        let poll = |count: u32, drawn: bool| {
            let record = closed(&room(2), count, drawn);
            Document::new(&room(2), (&record, &record.state), Some(&left()), false, OPENS)
                .poll
                .min_seconds
        };
        assert_eq!(poll(1_000, false), MIN_POLL_SECONDS);
        // Two groups of as many each.
        assert_eq!(poll(500_000, false), 10);
        assert_eq!(poll(50_000_000, false), MAX_POLL_MS / 1_000);
        assert_eq!(poll(50_000_000, true), MIN_POLL_SECONDS, "each knows its place");
    }

    #[test]
    fn clients_leave_out_what_is_asked_for_in_vain() {
        for (requests, accepts, percent) in [
            (0, 0, 0),
            // Half of what is asked is carried out: nothing is left out.
            (1_000, 1_000, 0),
            (1_000, 500, 0),
            (1_000, 499, 0),
            (1_000, 400, 19),
            (1_000, 100, 79),
            // One alone, and failures without end.
            (1, 0, 50),
            (3, 0, 75),
            (1_000_000, 0, MAX_DROP_PERCENT),
            (u64::MAX, 0, MAX_DROP_PERCENT),
            (0, u64::MAX, 0),
        ] {
            assert_eq!(drop_percent(requests, accepts), percent, "{requests}, {accepts}");
        }
        // What is left of the requests, times the time between them, is the same.
        for (percent, ms) in [(0, 1_000), (50, 2_000), (75, 4_000), (90, 10_000), (100, 100_000)] {
            assert_eq!(retry_ms(percent), ms);
        }
        // More in vain is more to leave out, more carried out is less.
        for requests in (0..2_000).step_by(7) {
            for accepts in (0..1_000).step_by(13) {
                let dropped = drop_percent(requests, accepts);
                assert!(dropped <= drop_percent(requests + 1, accepts));
                assert!(dropped >= drop_percent(requests, accepts + 1));
            }
        }
    }

    #[test]
    fn the_advance_is_what_was_served_in_the_last_minute() {
        let group = |serving, marks: &[u32]| GroupState {
            serving,
            marks: marks.to_vec(),
            ..closed(&room(1), 5, true).state.groups[0].clone()
        };
        assert_eq!(advance(&group(100, &[]), 9_000), None);
        assert_eq!(advance(&group(100, &[50]), 19_000), None, "less than ten seconds");
        // 10 s and 5 s since the first of two marks: 75 places, which are 300 a minute.
        assert_eq!(advance(&group(100, &[25, 50]), 25_000), Some(300));
        let long: Vec<u32> = (0..18).map(|mark| mark * 10).collect();
        // Six marks back S was 120: 60 places in 50 s.
        assert_eq!(advance(&group(180, &long), 180_000), Some(72));
        assert_eq!(range(100), (75, 135));
    }

    #[test]
    fn what_is_left_lasts_for_those_who_are_expected_to_come() {
        let room = room(1);
        let mut state = closed(&room, 5, true).state;
        // Four in five come, and hold two each.
        assert_eq!(lasts_for(&room, &state, 1_600), range(1_000));
        (state.gave.flight.waiting, state.gave.flight.inside) = (100, 50);
        let left = (1_600 - 160 - 100) * 10 / 16;
        assert_eq!(lasts_for(&room, &state, 1_600), range(left));
        // Those whom the turn has served are due by its document.
        (state.gave.flight.waiting, state.gave.served) = (60, 40);
        assert_eq!(lasts_for(&room, &state, 1_600), range(left));
        assert_eq!(lasts_for(&room, &state, 10), (0, 0));
        let (least, _) = lasts_for(&room, &state, u64::MAX);
        assert!(least > 1_000_000);
    }

    #[test]
    fn a_wait_is_said_of_those_alone_who_may_be_served_from_what_is_free() {
        let room = room(1);
        let mut record = closed(&room, 1_000, true);
        let state = &mut record.state;
        (state.groups[0].serving, state.groups[0].marks) = (500, vec![300, 400]);
        state.clock_ms = 20_000;
        (state.gave.flight.waiting, state.gave.flight.inside) = (100, 0);
        let said = |free: u64| {
            let left = Left { free, holds: true, tiers: vec![free], is_held_back: false };
            let document =
                Document::new(&room, (&record, &record.state), Some(&left), false, OPENS);
            let group = document.groups[0].clone();
            let places = (0..500).filter(|ahead| group.wait_behind(*ahead).is_some()).count();
            (group.lasts_to, places)
        };
        // 160 are promised to those who are due: 80 more last for 50 places on average, 37 to 67. But the stock rule serves
        // 22 more: 122·1.6 + 2·√(122·3.84) is 238.5.
        assert_eq!(said(240), (Some((522, 567)), 22));
        assert_eq!(said(160 + 40), (Some((500, 533)), 0), "the reserve is all that is left");
        assert_eq!(said(1_600), (Some((1_175, 1_715)), 500));
    }
}
