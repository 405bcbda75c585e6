//! For each guard a seed that shows its absence, in `controls.txt`: the control `CROWD GUARD`.

use engine::domain::basics::guard::{Guard, without};
use model_stores::StoredSeeds;

/// The seeds of all crowds.
const SEEDS: StoredSeeds =
    StoredSeeds { file: concat!(env!("CARGO_MANIFEST_DIR"), "/controls.txt") };

/// Shows that a run breaks a promise without a guard, and prints which: `replay` runs a seed, and `search` finds one,
/// with the number of seeds it took. Returns `false` if neither breaks anything.
///
/// The stored seed is also run with the guard, and must keep every promise then: what breaks is the guard's absence.
///
/// # Panics
/// If there is no stored seed, or if it breaks a promise with the guard in place.
pub fn absence_is_found(
    crowd: &str,
    guard: Guard,
    replay: impl Fn(u64) -> Option<String>,
    search: impl FnOnce() -> Option<(u64, u64, String)>,
) -> bool {
    let control = format!("{crowd} {guard}");
    if let Some(seed) = SEEDS.to_replay(&control) {
        if let Some(what) = without(guard, || replay(seed)) {
            let with_it = replay(seed);
            assert_eq!(with_it, None, "seed {seed} breaks a promise with {guard} in place");
            println!("{guard:<18} found by seed {seed}: {what}");
            return true;
        }
        println!("{guard:<18} seed {seed} no longer breaks: ONSALE_CONTROLS=write finds another");
    }
    let Some((seed, after, what)) = search() else { return false };
    println!("{guard:<18} found after {after:>6} seeds: seed {seed}: {what}");
    SEEDS.found(&control, seed);
    true
}
