//! Every guard is taken away in turn: the simulator must find out. Each has a stored seed that shows its absence
//! ([`sim::controls`]); `make test-all` searches anew, from the seeds of the commit.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::time::Duration;

use engine::domain::basics::guard::Guard;
use sim::controls::absence_is_found;
use sim::{Exploration, Of, Outcome, base_seed, explore, run};

/// Runs make and drop small values all the time: a tenth of their time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of runs that may pass before a guard's absence must be found. What takes longest, RecountSeen, is found
/// after some 20,000 in the middle: a fiftieth of this.
const RUNS: u64 = 1_000_000;
/// For how long at most, so that a machine that is busy with other things ends the test all the same.
const MAX_DURATION: Duration = Duration::from_secs(1800);

/// Removes each of some guards in turn. `of`: the sales that show it.
fn all_are_found(crowd: &str, guards: &[Guard], of: Of) {
    let base = base_seed();
    println!("seeds from base {base} (ONSALE_SIM_BASE={base} repeats them)");
    let describe = |outcome: &Outcome| {
        let violation = outcome.violation.as_ref()?;
        let what: String = violation.what.chars().take(90).collect();
        Some(format!("{} {what}", violation.rule))
    };
    let is_missed = |guard: &&Guard| {
        let search = || {
            let (without, for_at_most) = (Some(**guard), MAX_DURATION);
            let explored = explore(Exploration { base, runs: RUNS, for_at_most, without, of });
            if explored.failure.is_none() {
                println!("{guard:<18} NOT FOUND in {} seeds", explored.tally.runs);
            }
            let (outcome, after) = explored.failure?;
            Some((outcome.seed, after, describe(&outcome).unwrap()))
        };
        let replay = |seed| describe(&run(seed, false));
        !absence_is_found(crowd, **guard, replay, search)
    };
    let missed: Vec<&Guard> = guards.iter().filter(is_missed).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Guards that the model checker alone takes away (`tests/model/tests`), whose runs do not depend on luck: a room of the
/// simulator has no codes, and what AttemptsSeen keeps out comes once in some 50,000 runs, minutes of every processor.
const OF_THE_MODEL: [Guard; 2] = [Guard::CodeUses, Guard::AttemptsSeen];

fn of_the_simulator(guards: &[Guard]) -> Vec<Guard> {
    guards.iter().copied().filter(|guard| !OF_THE_MODEL.contains(guard)).collect()
}

/// A run with a room takes several times as long, and shows nothing more of these.
#[test]
fn the_absence_of_every_guard_is_found() {
    all_are_found("sales", &of_the_simulator(&Guard::ALL), Of::Plain);
}

#[test]
fn the_absence_of_every_guard_of_a_room_is_found() {
    all_are_found("rooms", &of_the_simulator(&Guard::OF_ROOMS), Of::Rooms);
}

/// The tables of `docs/correctness.md`, of sales and of rooms, in the order of the guards. Only the guards of the
/// model checker have no number of seeds.
#[test]
fn every_guard_has_its_row_in_the_document() {
    let document = include_str!("../../../docs/correctness.md");
    let (_, tables) = document.split_once("## The guards, each removed").unwrap();
    let (of_sales, of_rooms) = tables.split_once("Those of the waiting room").unwrap();
    for (table, guards) in [(of_sales, Guard::ALL.as_slice()), (of_rooms, &Guard::OF_ROOMS)] {
        let rows = table.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let of_guards = |cells: &Vec<&str>| cells.len() == 6 && cells[1].parse::<Guard>().is_ok();
        let rows: Vec<Vec<&str>> = rows.filter(of_guards).collect();
        let named: Vec<Guard> = rows.iter().map(|cells| cells[1].parse().unwrap()).collect();
        assert_eq!(named, guards);
        for (guard, cells) in named.iter().zip(&rows) {
            let has_seeds = cells[2].replace(',', "").parse::<u64>().is_ok();
            assert_eq!(has_seeds, !OF_THE_MODEL.contains(guard), "{guard}: {cells:?}");
            assert!(!cells[4].is_empty(), "{guard}: it is not said what breaks");
        }
    }
}
