use super::super::draw::{BeaconChain, NamedRound};
use super::*;
use crate::domain::basics::bytes::{Secret, Signature};
use crate::domain::sale::serving::{BEACON_MS, GroupSettings};

const OPENS_MS: i64 = 1_800_000_000_000;
const SECOND: i64 = 1_000;

fn group(name: &str) -> GroupId {
    GroupId::new(name).unwrap()
}

fn secret() -> Secret {
    Secret([4; 32])
}

fn room(groups: &[(&str, u32)]) -> Room {
    let mut settings = Settings::new(group("all"), OPENS_MS, 4);
    settings.groups = groups
        .iter()
        .map(|(name, share)| GroupSettings { group: group(name), share: *share, codes: false })
        .collect();
    settings.max_per_second = 100;
    settings.check().unwrap();
    let draw = Terms::Secret(secret().commitment());
    Room::new(SaleId::new("s").unwrap(), draw, 1_000_000, settings)
}

/// A room and its last turn.
struct Run {
    room: Room,
    state: State,
    now_ms: i64,
    given: Given,
}

impl Run {
    /// A room whose groups have this many places, all drawn at the opening, with stock for everybody.
    fn drawn(groups: &[(&str, u32, u32)]) -> Self {
        let shares: Vec<_> = groups.iter().map(|(name, share, _)| (*name, *share)).collect();
        let room = room(&shares);
        let given = Given {
            free: Some(1_000_000),
            joined: groups.iter().map(|(.., joined)| *joined).collect(),
            counts: Some(Counts::default()),
            reservations: Reservations::default(),
        };
        let state = State::first(&room.settings);
        let mut run = Self { room, state, now_ms: OPENS_MS, given };
        let closing = |count| Closing { count, root: Hash([0; 32]), latest_round: None };
        let closed = groups.iter().map(|(name, _, joined)| Event::Closed {
            group: group(name),
            closing: closing(*joined),
        });
        let drawn = groups.iter().map(|(name, ..)| Event::Drawn {
            group: group(name),
            source: Source::Secret(secret()),
        });
        let events: Vec<Event> = closed.chain(drawn).collect();
        run.turn_with(0, &events);
        run
    }

    fn turn_with(&mut self, after_ms: i64, events: &[Event]) -> u64 {
        let last_ms = self.now_ms;
        self.now_ms += after_ms;
        let next = self.state.turn(&self.room, last_ms, self.now_ms, events, &self.given).unwrap();
        for (before, after) in self.state.groups.iter().zip(&next.groups) {
            assert!(before.serving <= after.serving && before.passed <= after.passed);
            assert!(after.passed <= after.serving && after.serving <= after.window_end);
        }
        self.state = next;
        self.state.gave.served
    }

    /// The number of places that a turn serves after this many milliseconds.
    fn turn(&mut self, after_ms: i64) -> u64 {
        self.turn_with(after_ms, &[])
    }

    fn serving(&self) -> Vec<u32> {
        self.state.groups.iter().map(|group| group.serving).collect()
    }
}

#[test]
fn a_step_counts_between_nothing_and_its_most() {
    for (after_ms, serving_ms, visit_ms) in [
        (0, 0, 0),
        (900, 900, 900),
        (5_000, 5_000, 5_000),
        (5_001, 5_000, 5_001),
        (60_000, 5_000, 60_000),
        (86_400_000, 5_000, 60_000),
        // The last record is from the future.
        (-1, 1_000, 1_000),
        (-86_400_000, 1_000, 1_000),
    ] {
        assert_eq!(steps(OPENS_MS, OPENS_MS + after_ms), (serving_ms, visit_ms), "{after_ms}");
    }
    assert_eq!(steps(i64::MIN, i64::MAX), (5_000, 60_000));
    assert_eq!(steps(i64::MAX, i64::MIN), (1_000, 1_000));
    let mut run = Run::drawn(&[("all", 1, 100_000)]);
    // 80 % of 100 a second, and 1 % more a second.
    assert_eq!(run.turn(1_000), 81);
    assert_eq!(run.turn(86_400_000), 5 * 86);
    // The log of a room that was published before may go back.
    let draw = Commitment { commitment: secret().commitment(), beacon: None };
    let Room { sale, settings, .. } = run.room.clone();
    run.room = Room::before(sale, draw, settings);
    assert_eq!(run.turn(-3_600_000), 87);
    assert_eq!(run.turn(0), 0);
}

#[test]
fn what_is_unknown_serves_nobody() {
    let known = Run::drawn(&[("all", 1, 1_000)]);
    let served = |change: fn(&mut Run)| {
        let mut run = Run {
            room: known.room.clone(),
            state: known.state.clone(),
            given: known.given.clone(),
            ..known
        };
        change(&mut run);
        run.turn(1_000)
    };
    assert_eq!(served(|_| ()), 81);
    assert_eq!(served(|run| run.given.free = None), 0);
    assert_eq!(served(|run| run.given.free = Some(0)), 0);
    assert_eq!(served(|run| run.given.counts = None), 0);
    assert_eq!(served(|run| run.state.mode = Mode::Paused), 0);
    assert_eq!(served(|run| run.state.mode = Mode::Closed), 0);
    assert_eq!(served(|run| run.room.settings.opens_at_ms = run.now_ms + 1_001), 0);
    assert_eq!(served(|run| run.state.groups[0].window_end = 0), 0);
    assert_eq!(served(|run| run.state.groups[0].window_end = 30), 30);
}

#[test]
fn the_capacity_grows_slowly_and_shrinks_fast() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    run.given.reservations = Reservations { all: 100, bad: 10 };
    assert_eq!(run.turn(1_000), 81, "a tenth is not more than a tenth");
    run.given.reservations.bad = 11;
    // The sums are over five seconds: what was bad before a decrease is not counted again.
    let limits: Vec<u64> = (0..7)
        .map(|_| {
            run.turn(1_000);
            run.state.limit_milli
        })
        .collect();
    assert_eq!(limits, [56_700, 56_700, 56_700, 56_700, 56_700, 39_690, 39_690]);
    (0..200).for_each(|_| {
        run.turn(1_000);
    });
    assert_eq!(
        run.state.limit_milli, 1_000,
        "one a second is the least, so that it finds its way back"
    );
    run.given.reservations.bad = 0;
    (0..200).for_each(|_| {
        run.turn(1_000);
    });
    assert_eq!(run.state.limit_milli, 100_000);
    run.room.settings.provider_per_second = Some(25);
    assert_eq!(run.turn(1_000), 25);
    assert_eq!(run.turn_with(1_000, &[Event::Command(Command::Rate(Some(7)))]), 7);
    assert_eq!(run.turn_with(1_000, &[Event::Command(Command::Rate(None))]), 25);
}

#[test]
fn while_most_reservations_fail_nobody_is_served_and_then_few() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    assert_eq!(run.turn(1_000), 81);
    run.given.reservations = Reservations { all: 100, bad: 50 };
    assert!(run.turn(1_000) > 0, "half is not more than half");
    run.given.reservations = Reservations { all: 9, bad: 9 };
    assert!(run.turn(1_000) > 0, "nine are too few to judge by");
    run.given.reservations = Reservations { all: 100, bad: 51 };
    for _ in 0..10 {
        assert_eq!((run.turn(1_000), run.state.tripped), (0, true));
    }
    // Who is not served does not reserve: the last five seconds have nothing bad any more.
    run.given.reservations = Reservations::default();
    let served: Vec<u64> = (0..5).map(|_| run.turn(1_000)).collect();
    assert_eq!((served, run.state.tripped), (vec![2, 3, 4, 5, 6], false));
}

#[test]
fn the_operator_may_say_that_nothing_is_left_and_put_up_a_notice() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    let notice = |text: &str| Event::Command(Command::Notice(Some(text.to_owned())));
    assert_eq!(run.turn_with(1_000, &[Event::Command(Command::SoldOut(true))]), 0);
    assert_eq!(run.turn_with(1_000, &[notice("Doors open at seven.")]), 0);
    assert_eq!(run.state.notice.as_deref(), Some("Doors open at seven."));
    assert!(run.turn_with(1_000, &[Event::Command(Command::SoldOut(false))]) > 0);
    run.turn_with(1_000, &[Event::Command(Command::Notice(None))]);
    assert_eq!(run.state.notice, None);
    for wrong in ["", "two\nlines", &"n".repeat(MAX_NOTICE_BYTES + 1)] {
        let events = [notice(wrong)];
        let refused = run.state.turn(&run.room, run.now_ms, run.now_ms, &events, &run.given);
        assert_eq!(refused.err(), Some(Refusal::Notice), "{wrong:?}");
    }
}

#[test]
fn parts_of_a_place_are_kept_and_whole_ones_are_not() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    run.turn_with(0, &[Event::Command(Command::Rate(Some(1)))]);
    let served: u64 = (0..40).map(|_| run.turn(250)).sum();
    assert_eq!(served, 10);
    run.given.free = Some(0);
    (0..40).for_each(|_| {
        run.turn(1_000);
    });
    run.given.free = Some(1_000);
    assert!(run.turn(1_000) <= 2);
}

#[test]
fn the_stock_bounds_who_is_in_flight() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    run.given.free = Some(100);
    run.turn(5_000);
    // Four in five come and hold half of an order, 2 of 4: 1.6x + 2·√(3.84x) ≤ 100.
    assert_eq!(run.turn(5_000) + run.state.gave.flight.waiting, 45);
    assert_eq!(run.turn(5_000), 0);
    // Who came counts for twice as much as who has not.
    run.given.counts = Some(Counts { came: 45, inside: 45, ..Counts::default() });
    assert_eq!(run.turn(5_000), 0);
    assert_eq!(run.state.gave.flight, InFlight { inside: 45, ..InFlight::default() });
    // Who left makes room, and what comes back to the stock is served by itself.
    run.given.counts = Some(Counts { came: 45, inside: 0, ..Counts::default() });
    assert_eq!(run.turn(5_000), 45);
    run.given.free = Some(200);
    assert!(run.turn(5_000) > 50);
    // One is served where nobody is in flight, and anything is free.
    let mut run = Run::drawn(&[("all", 1, 10)]);
    run.given.free = Some(1);
    assert_eq!((run.turn(5_000), run.turn(5_000)), (1, 0));
}

#[test]
fn a_place_runs_out_by_the_time_since_it_was_due() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    let mut due = Vec::new();
    for second in 0..600_u32 {
        run.turn(1_000);
        let passed = run.state.groups[0].passed;
        // Between 180 and 190 s after it was due, and never before.
        if let Some(before) = second.checked_sub(191) {
            assert!(passed >= due[before as usize], "{second}");
        }
        if let Some(before) = second.checked_sub(179) {
            assert!(passed <= due[before as usize], "{second}");
        } else {
            assert_eq!(passed, 0);
        }
        due.push(run.serving()[0]);
    }
    // An outage of an hour eats a minute.
    let (clock_ms, passed) = (run.state.clock_ms, run.state.groups[0].passed);
    run.turn(3_600_000);
    assert_eq!(run.state.clock_ms, clock_ms + 60_000);
    assert!(run.state.groups[0].passed > passed);
    // A pause stops the clock.
    run.turn_with(1_000, &[Event::Command(Command::Pause)]);
    let (clock_ms, passed) = (run.state.clock_ms, run.state.groups[0].passed);
    (0..300).for_each(|_| {
        run.turn(1_000);
    });
    assert_eq!((run.state.clock_ms, run.state.groups[0].passed), (clock_ms, passed));
    // Nor does its end count it, be it long since the record before.
    assert_eq!(run.turn_with(3_600_000, &[Event::Command(Command::Resume)]), 0);
    assert_eq!((run.state.clock_ms, run.state.groups[0].passed), (clock_ms, passed));
    assert!(run.turn(1_000) > 0);
    run.turn_with(1_000, &[Event::Command(Command::Close)]);
    assert_eq!(run.turn(1_000), 0);
    let again = run.state.turn(&run.room, 0, 1, &[Event::Command(Command::Resume)], &run.given);
    assert_eq!(again, Err(Refusal::AfterClose));
    let notice = Event::Command(Command::Notice(Some("it is over".to_owned())));
    let said = run.state.turn(&run.room, 0, 1, &[notice], &run.given).unwrap();
    assert_eq!(said.notice.as_deref(), Some("it is over"), "who waits is told why");
}

#[test]
fn at_the_end_whoever_does_not_come_holds_nobody_up_for_long() {
    let mut run = Run::drawn(&[("all", 1, 1_000)]);
    run.given.free = Some(1);
    let mut served_at = Vec::new();
    for second in 0..100 {
        // Nobody comes of those who are served.
        if run.turn(1_000) > 0 {
            served_at.push(second);
        }
    }
    let between = served_at.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(served_at.len() >= 5, "{served_at:?}");
    assert!(between.clone().all(|seconds| (10..=20).contains(&seconds)), "{served_at:?}");
    // While somebody is inside, nobody else is served for what may be theirs.
    run.given.counts = run.given.counts.map(|counts| Counts { inside: 1, ..counts });
    assert_eq!((0..60).map(|_| run.turn(1_000)).sum::<u64>(), 0);
}

#[test]
fn the_clock_goes_on_until_the_longest_visit_of_the_last_place_is_over() {
    let mut run = Run::drawn(&[("all", 1, 10)]);
    let longest_ms = run.room.settings.longest_visit_ms();
    assert_eq!(State::first(&run.room.settings).idle_ms, longest_ms, "nobody has joined");
    while run.state.groups[0].passed < 10 {
        run.turn(1_000);
        assert!(run.state.idle_ms == 0 || run.state.groups[0].passed == 10);
    }
    let ended_ms = run.state.clock_ms;
    while run.state.idle_ms < longest_ms {
        run.turn(1_000);
    }
    assert!(run.state.clock_ms >= ended_ms + longest_ms - 1_000);
    run.given.joined = vec![11];
    run.turn(1_000);
    assert_eq!(run.state.idle_ms, 0, "somebody has joined");
}

#[test]
fn groups_share_and_what_one_does_not_use_passes_on() {
    let mut run = Run::drawn(&[("all", 1, 10_000), ("fans", 3, 150)]);
    run.turn(1_000);
    assert_eq!(run.serving(), [20, 61]);
    run.turn(1_000);
    run.turn(1_000);
    // 81 + 82 + 83: the fans have no more, and the others get the rest.
    assert_eq!(run.serving(), [96, 150]);
    for _ in 0..20 {
        run.turn(1_000);
    }
    // Who had nobody waiting saved nothing up.
    run.given.joined = vec![10_000, 10_000];
    run.turn(60_000);
    let before = run.serving();
    run.turn(1_000);
    let served: Vec<u32> =
        run.serving().iter().zip(before).map(|(now, before)| now - before).collect();
    assert_eq!(served, [25, 75]);
}

#[test]
fn a_later_window_ends_after_a_minute_or_when_serving_reaches_it() {
    let mut run = Run::drawn(&[("all", 1, 1_000)]);
    run.given.joined = vec![1_010];
    let ends: Vec<u32> = (0..11)
        .map(|_| {
            run.turn(1_000);
            run.state.groups[0].window_end
        })
        .collect();
    assert_eq!(ends, [1_000; 11], "after a minute, or by serving");
    run.turn(1_000);
    // 81 + 82 + … + 92 places a second reach the end in the twelfth.
    assert_eq!((run.serving(), run.state.groups[0].window_end), (vec![1_000], 1_010));
    assert_eq!(run.state.groups[0].window_first, 1_000);
    run.given.joined = vec![1_011];
    run.turn(1_000);
    assert_eq!((run.serving(), run.state.groups[0].window_end), (vec![1_010], 1_011));
    // Into an empty room one comes with the next turn.
    run.turn(1_000);
    run.given.joined = vec![1_012];
    assert_eq!((run.turn(1_000), run.turn(1_000)), (0, 1));

    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    run.given.joined = vec![1_000_005];
    (0..59).for_each(|_| {
        run.turn(1_000);
    });
    assert_eq!(run.state.groups[0].window_end, 1_000_000);
    run.turn(1_000);
    assert_eq!(run.state.groups[0].window_end, 1_000_005);
}

#[test]
fn lost_counters_fade_over_a_visit() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    let counts = Counts { inside: 600, visits: 1_000, held: 4_000, ..Counts::default() };
    run.given.counts = Some(counts);
    run.turn(1_000);
    // Who has looked for long counts with those inside: a place that has run out is due no more.
    (run.state.gave.flight.inside, run.state.gave.flight.lingering) = (500, 100);
    let holds = run.state.holds;
    assert_eq!((holds.sum, holds.count), (4_000, 1_000));
    // Another epoch: what was inside may still be there.
    run.given.counts = Some(Counts { epoch: 2, visits: 10, ..Counts::default() });
    let inside = |run: &mut Run| {
        run.turn(60_000);
        run.state.gave.flight.inside
    };
    let faded: Vec<u64> = (0..11).map(|_| inside(&mut run)).collect();
    assert_eq!(faded, [600, 540, 480, 420, 360, 300, 240, 180, 120, 60, 0]);
    assert_eq!(run.state.holds, holds, "what they lack is not taken for shares");
    run.given.counts = Some(Counts { epoch: 2, visits: 20, held: 10, ..Counts::default() });
    run.turn(1_000);
    assert_eq!(run.state.holds.count, 1_010);
}

/// A quarter of those who come look and never ask; those who ask do so in time.
#[test]
fn what_comes_of_those_who_look_is_learned() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    let before = run.state.expected(&run.room.settings);
    let line = serde_json::to_string(&run.state).unwrap();
    assert!(!line.contains("look"), "a room in which nobody looks is written as before: {line}");
    for turn in 1..=600 {
        run.turn(1_000);
        let all = 40 * turn;
        let looks =
            Looks { all, looked: all, asked: all / 4 * 3, lingered: all / 4, ..Looks::default() };
        run.given.counts = Some(Counts { came: all, looks, ..Counts::default() });
    }
    let expected = run.state.expected(&run.room.settings);
    assert!((740_000..=760_000).contains(&expected.asks), "{expected:?}");
    assert!(expected.asks_late < 20_000, "{expected:?}");
    assert!(expected.comes < before.comes * 4 / 5, "{before:?} {expected:?}");
}

#[test]
fn the_share_that_comes_is_learned_from_places_that_have_run_out() {
    let mut run = Run::drawn(&[("all", 1, 1_000_000)]);
    for _ in 0..600 {
        run.turn(1_000);
        // One in five came.
        let passed = u64::from(run.state.groups[0].passed);
        run.given.counts = Some(Counts { passed_came: passed / 5, ..Counts::default() });
    }
    let comes = run.state.comes.mean(Expected::COMES);
    assert!((195_000..=235_000).contains(&comes), "{comes}");
}

#[test]
fn requests_at_the_sales_slot_keep_the_classic_rule() {
    for (free, expected) in [
        (None, 0),
        (Some(0), 0),
        (Some(1), 5),
        (Some(999), 4_995),
        (Some(1_000), 8_000),
        (Some(u64::MAX), 8_000),
    ] {
        assert_eq!(classic_requests_per_second(10_000, free), expected, "{free:?}");
    }
    assert_eq!(classic_requests_per_second(1_000, Some(999)), 800);
}

/// The room's secret decides, or a round of a beacon which is out half a minute before the opening.
fn by_beacon(room: Room) -> Room {
    let chain = BeaconChain { chain: Hash([1; 32]), genesis: 0, period: 1 };
    let Settings { closes_at_ms, opens_at_ms, .. } = room.settings;
    let named = chain.name(closes_at_ms, opens_at_ms, 0).unwrap();
    Room { draw: Terms::Beacon(named), ..room }
}

const NO_SIGNATURE: Signature = Signature([0; 48]);

#[test]
fn what_cannot_have_happened_is_refused() {
    let room = room(&[("all", 1)]);
    let given = Given { joined: vec![5], ..Given::default() };
    let closing = Closing { count: 5, root: Hash([0; 32]), latest_round: None };
    let closed = Event::Closed { group: group("all"), closing };
    let drawn = |source| Event::Drawn { group: group("all"), source };
    let by_secret = drawn(Source::Secret(secret()));
    let beacon = Source::Beacon { round: 8, signature: NO_SIGNATURE };
    let quoted = Closing { latest_round: Some(Latest(Some(0))), ..closing };
    let none_quoted = Closing { latest_round: Some(Latest(None)), ..closing };
    let close = |closing| Event::Closed { group: group("all"), closing };
    let other = Event::Closed { group: group("fans"), closing };
    let given_up = |by: &str| {
        Event::Command(Command::BeaconGivenUp { by: by.to_owned(), randomness: Hash([9; 32]) })
    };
    for (events, expected) in [
        (vec![closed.clone(), by_secret.clone()], None),
        (vec![by_secret.clone()], Some(Refusal::DrawnTwice)),
        (vec![closed.clone(), closed.clone()], Some(Refusal::ClosedTwice)),
        (vec![closed.clone(), by_secret.clone(), by_secret], Some(Refusal::DrawnTwice)),
        (vec![closed.clone(), drawn(beacon)], Some(Refusal::Source(WrongSource::NoBeacon))),
        (vec![close(quoted)], Some(Refusal::ClosingRound)),
        (vec![close(none_quoted)], Some(Refusal::ClosingRound)),
        (vec![other], Some(Refusal::UnknownGroup)),
        (vec![closed.clone(), given_up("a")], Some(Refusal::NotSilent)),
        (vec![given_up("")], Some(Refusal::Name)),
        (vec![given_up(&"a".repeat(65))], Some(Refusal::Name)),
    ] {
        let turn = State::first(&room.settings).turn(&room, 0, OPENS_MS, &events, &given);
        assert_eq!(turn.err(), expected, "{events:?}");
    }
    let turn = |last_ms, now_ms, events: &[Event]| {
        State::first(&room.settings).turn(&room, last_ms, now_ms, events, &given).err()
    };
    let closes_ms = room.settings.closes_at_ms;
    assert_eq!(turn(0, closes_ms - 1, &[close(closing)]), Some(Refusal::ClosedEarly));
    assert_eq!(turn(0, closes_ms, &[close(closing)]), None);
    assert_eq!(turn(closes_ms + 1, closes_ms, &[close(closing)]), Some(Refusal::TimeBack));
    let none = State::first(&room.settings).turn(&room, 0, SECOND, &[], &Given::default());
    assert_eq!(none, Err(Refusal::Groups));
}

#[test]
fn a_beacon_is_given_up_an_hour_after_its_round_by_name_and_once() {
    let room = by_beacon(room(&[("all", 1), ("fans", 1)]));
    let given = Given { joined: vec![5, 7], ..Given::default() };
    let closing = |count| Closing { count, root: Hash([0; 32]), latest_round: None };
    let closed = [("all", 5), ("fans", 7)]
        .map(|(name, count)| Event::Closed { group: group(name), closing: closing(count) });
    let closes_ms = room.settings.closes_at_ms;
    let state = State::first(&room.settings).turn(&room, 0, closes_ms, &closed, &given).unwrap();
    let round_ms = room.round_ms(&state.groups[0].closed.unwrap()).unwrap();
    assert!(closes_ms < round_ms && round_ms < OPENS_MS);
    let randomness = Hash([9; 32]);
    let give_up = Event::Command(Command::BeaconGivenUp { by: "Ann".to_owned(), randomness });
    let turn = |state: &State, now_ms| {
        state.turn(&room, closes_ms, now_ms, std::slice::from_ref(&give_up), &given)
    };
    assert_eq!(turn(&state, round_ms + GIVE_UP_MS - 1).err(), Some(Refusal::NotSilent));
    let drawn = turn(&state, round_ms + GIVE_UP_MS).unwrap();
    for (state, (name, count)) in drawn.groups.iter().zip([("all", 5), ("fans", 7)]) {
        let seed = closing(count).seed_after_giving_up(&room.sale, &group(name), randomness);
        assert_eq!((state.seed, state.window_end), (Some(seed), count));
    }
    assert_eq!(turn(&drawn, i64::MAX).err(), Some(Refusal::NotSilent), "nothing is awaited");
    let open = State::first(&room.settings);
    assert_eq!(turn(&open, i64::MAX).err(), Some(Refusal::NotSilent), "nothing is closed");
}

#[test]
fn a_publication_is_of_one_set_of_rules_and_names_the_right_round() {
    let room = room(&[("all", 1)]);
    let named = by_beacon(room.clone());
    let Terms::Beacon(round) = named.draw else { panic!() };
    let closes_ms = room.settings.closes_at_ms;
    let of_before = Commitment { commitment: secret().commitment(), beacon: None };
    let before = Room::before(room.sale.clone(), of_before, room.settings.clone());
    for right in [&room, &named, &before] {
        assert_eq!(right.check(0), Ok(()));
    }
    let other = |change: fn(&mut NamedRound)| {
        let mut other = round;
        change(&mut other);
        Room { draw: Terms::Beacon(other), ..named.clone() }.check(0)
    };
    assert_eq!(other(|named| named.round -= 1), Err(InvalidRoom::OtherRound));
    assert_eq!(other(|named| named.round += 1), Err(InvalidRoom::OtherRound));
    let quicknet = other(|named| named.period = 3);
    assert_eq!(quicknet, Err(InvalidRoom::OtherRound), "another chain has other rounds");
    assert_eq!(named.check(closes_ms + 240_000), Err(InvalidRoom::Round(NoRound::Soon)));
    for mixed in [
        Room { rules: None, ..room.clone() },
        Room { rules: Some(3), ..room.clone() },
        Room { stock: None, ..room.clone() },
        Room { stock: Some(5), ..before.clone() },
        Room { rules: Some(RULES), ..before.clone() },
        Room { draw: room.draw, ..before },
    ] {
        assert_eq!(mixed.check(0), Err(InvalidRoom::Rules), "{mixed:?}");
    }
}

#[test]
fn a_room_of_before_ends_by_the_rules_of_before() {
    let Room { sale, settings, .. } = room(&[("all", 1)]);
    let draw = Commitment { commitment: secret().commitment(), beacon: Some(Hash([1; 32])) };
    let room = Room::before(sale, draw, settings);
    let given = Given { joined: vec![5], ..Given::default() };
    let closing = |latest_round| Closing { count: 5, root: Hash([0; 32]), latest_round };
    let events = |latest| {
        [
            Event::Closed { group: group("all"), closing: closing(latest) },
            Event::Drawn { group: group("all"), source: Source::Secret(secret()) },
        ]
    };
    let may = room.settings.closes_at_ms + BEACON_MS;
    let turn = |now_ms, latest| {
        State::first(&room.settings).turn(&room, now_ms + 1, now_ms, &events(latest), &given)
    };
    let none = Some(Latest(None));
    assert_eq!(turn(may - 1, none).err(), Some(Refusal::ClosingRound));
    assert!(turn(may, none).is_ok_and(|state| state.groups[0].seed.is_some()));
    assert_eq!(turn(may, None).err(), Some(Refusal::ClosingRound), "it quotes nothing");
    let wrong = WrongSource::TooEarly { after_ms: 0 };
    assert_eq!(turn(0, Some(Latest(Some(7)))).err(), Some(Refusal::Source(wrong)));
}

#[test]
fn settings_have_bounds() {
    type Change = fn(&mut Settings);
    let good = room(&[("a", 1), ("b", 1_000)]).settings;
    let wrong: [(&str, Change); 10] = [
        ("groups", |settings| settings.groups.clear()),
        ("groups", |settings| settings.groups = vec![settings.groups[0].clone(); 2]),
        ("share", |settings| settings.groups[0].share = 0),
        ("max_per_second", |settings| settings.max_per_second = 0),
        ("provider_per_second", |settings| settings.provider_per_second = Some(0)),
        ("max_requests_per_second", |settings| settings.max_requests_per_second = 1_000_001),
        ("max_units", |settings| settings.max_units = 0),
        ("show_up_ms", |settings| settings.show_up_ms = 110_000),
        ("visit_ms", |settings| settings.visit_ms = 170_000),
        ("window_ms", |settings| settings.window_ms = 0),
    ];
    for (setting, change) in wrong {
        let mut settings = good.clone();
        change(&mut settings);
        assert_eq!(settings.check().map_err(|error| error.setting), Err(setting));
    }
}
