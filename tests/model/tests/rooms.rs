//! Every scenario of a waiting room is explored whole and holds; without a guard, the way to what breaks is
//! found.

use std::collections::BTreeSet;

use engine::domain::basics::guard::Guard;
use model::room::Scenario;
use model::room::steps::{Rooms, explore};

/// Explores a scenario: all of it holds, and it is a scenario in which something can happen.
fn holds(scenario: Scenario) {
    let explored = explore(scenario, 1);
    println!("{explored}");
    assert!(explored.broken.is_none(), "{explored}");
    assert!(explored.states > 100 && explored.depth > 10, "{explored}");
}

macro_rules! rooms {
    ($($scenario:ident)*) => {
        $(#[test]
        fn $scenario() {
            holds(Scenario::$scenario());
        })*

        #[test]
        fn every_scenario_has_its_test() {
            let tested = [$(Scenario::$scenario().name),*];
            let known: BTreeSet<&str> =
                Scenario::small().iter().map(|scenario| scenario.name).collect();
            assert_eq!(BTreeSet::from(tested), known);
        }
    };
}

rooms! {
    two_join
    two_draw
    one_fault
    secret_alone
    beacon_goes_on
    late_closing
    two_bring
    two_turns
    two_enter
    redis_forgets
    one_code
    two_rejoin
    two_look
}

/// A guard, a scenario that shows it, and what breaks there.
type Planted = (Guard, fn() -> Scenario, &'static str);

const PLANTED: [Planted; 11] = [
    (Guard::RoomMarker, Scenario::two_join, "R2"),
    (Guard::RoomClosing, Scenario::two_draw, "R3"),
    (Guard::RoomChunk, Scenario::two_draw, "R3"),
    (Guard::RoomRecord, Scenario::late_closing, "R3"),
    (Guard::RoundVerified, Scenario::two_bring, "R4"),
    (Guard::PlaceDue, Scenario::two_enter, "R6"),
    (Guard::PlaceComputed, Scenario::two_enter, "R6"),
    (Guard::VisitOnce, Scenario::two_enter, "R7"),
    (Guard::VisitWritten, Scenario::two_look, "R13"),
    (Guard::CodeUses, Scenario::one_code, "R12"),
    (Guard::RejoinCondition, Scenario::two_rejoin, "R7"),
];

#[test]
fn without_a_guard_the_way_to_what_breaks_is_found() {
    assert!(PLANTED.iter().map(|(guard, ..)| *guard).eq(Guard::OF_ROOMS));
    for (guard, scenario, breaks) in PLANTED {
        let explored = explore(scenario().without(guard), 1);
        println!("without {guard}, {explored}\n");
        let last = explored.broken.as_ref().and_then(|lines| lines.last());
        assert!(last.is_some_and(|last| last.contains(breaks)), "without {guard}: {explored}");
    }
}

/// Walks at the full size; a quarter of them in `make test`.
const WALKS: u64 = 40;

/// Both halves of the condition: not only a visit that begins meanwhile stays, but also what another device was told.
#[test]
fn whoever_joins_again_by_two_devices_is_told_one_membership() {
    let scenario = Scenario { enters: 0, ..Scenario::two_rejoin() };
    let explored = explore(scenario.without(Guard::RejoinCondition), 1);
    let last = explored.broken.as_ref().and_then(|lines| lines.last());
    assert!(last.is_some_and(|last| last.contains("R2")), "{explored}");
}

#[test]
fn a_whole_sale_holds_on_every_walk() {
    let rooms = Rooms::new(Scenario::whole());
    let walks = if model_stores::size::is_full() { WALKS } else { WALKS / 4 };
    let (mut steps, mut entered, mut rejoined, mut ran_out) = (0, 0, 0, 0);
    for seed in 0..walks {
        let walk = rooms.walk(seed).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        steps += walk.steps;
        entered += walk.entered;
        rejoined += walk.rejoined;
        ran_out += walk.ran_out;
    }
    println!(
        "{walks} walks: {steps} steps, let in {entered} times, {rejoined} joined again, {ran_out} times \
         after a place ran out"
    );
    // Whoever joins again is met by the simulator: a walk at random uses its requests up before places run out.
    assert!(entered > 100, "{entered}: too little was tested");
}
