//! Every guard is taken away in turn: the simulator must find out.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::time::Duration;

use engine::domain::guard::Guard;
use sim::{Exploration, Of, base_seed, explore};

/// Runs make and drop small values all the time: a tenth of their time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of runs that may pass before a guard's absence must be found.
const RUNS: u64 = 200_000;
/// For how long at most, so that a machine that is busy with other things ends the test all the same.
const MAX_DURATION: Duration = Duration::from_secs(1800);

/// Removes each of some guards in turn. `of`: the sales that show it.
fn all_are_found(guards: &[Guard], of: Of) {
    let base = base_seed();
    println!("seeds from base {base} (ONSALE_SIM_BASE={base} repeats them)");
    let mut missed = Vec::new();
    for guard in guards {
        let (without, for_at_most) = (Some(*guard), MAX_DURATION);
        let explored = explore(Exploration { base, runs: RUNS, for_at_most, without, of });
        match &explored.failure {
            Some((outcome, after)) => {
                let violation = outcome.violation.as_ref().unwrap();
                let what: String = violation.what.chars().take(90).collect();
                println!("{guard:<18} found after {after:>6} seeds: {} {what}", violation.rule);
            }
            None => {
                println!("{guard:<18} NOT FOUND in {} seeds", explored.tally.runs);
                missed.push(guard);
            }
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// A run with a room takes several times as long, and shows nothing more of these.
#[test]
fn the_absence_of_every_guard_is_found() {
    all_are_found(&Guard::ALL, Of::Plain);
}

#[test]
fn the_absence_of_every_guard_of_a_room_is_found() {
    let of_sales = Guard::OF_ROOMS.map(|guard| (guard != Guard::CodeUses).then_some(guard));
    let guards: Vec<Guard> = of_sales.into_iter().flatten().collect();
    all_are_found(&guards, Of::Rooms);
}
