//! For each guard a seed that shows its absence: `controls.txt`, a line for each, `CROWD GUARD SEED`.
//!
//! A test that removes a guard replays the seed of the file. It searches other seeds only if that one no longer
//! breaks a promise, because the engine or the simulator has changed. `ONSALE_SIM_CONTROLS` is `search` to
//! search whatever the file says, from the seeds of the commit, and `write` to keep in the file what is found.

use std::fmt::Display;
use std::path::Path;
use std::sync::Mutex;
use std::{env, fs};

use engine::domain::basics::guard::{Guard, without};

/// The file of the seeds.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/controls.txt");

/// Keeps the tests of a program from writing the file at once.
static WRITING: Mutex<()> = Mutex::new(());

/// What is done beside the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The stored seed; a search if it no longer breaks.
    Replay,
    Search,
    /// A search, whose seed is stored.
    Write,
}

fn mode() -> Mode {
    match env::var("ONSALE_SIM_CONTROLS").as_deref() {
        Ok("search") => Mode::Search,
        Ok("write") => Mode::Write,
        Ok("") | Err(_) => Mode::Replay,
        Ok(other) => panic!("ONSALE_SIM_CONTROLS is search or write, not {other}"),
    }
}

fn line(crowd: &str, guard: Guard, seed: impl Display) -> String {
    format!("{crowd} {guard} {seed}")
}

/// The seed that a text of lines names for a guard of a crowd.
fn seed_in(text: &str, crowd: &str, guard: Guard) -> Option<u64> {
    let start = line(crowd, guard, "");
    text.lines().find_map(|line| line.strip_prefix(&start)).map(|seed| {
        seed.parse().unwrap_or_else(|_| panic!("{FILE}: {start}{seed}: it has no seed"))
    })
}

/// The text with the seed of a guard, in order.
fn with_seed(text: &str, crowd: &str, guard: Guard, seed: u64) -> String {
    let start = line(crowd, guard, "");
    let others = text.lines().filter(|line| !line.starts_with(&start)).map(str::to_owned);
    let mut lines: Vec<String> = others.chain([line(crowd, guard, seed)]).collect();
    lines.sort();
    lines.join("\n") + "\n"
}

fn store(crowd: &str, guard: Guard, seed: u64) {
    let _one_at_a_time = WRITING.lock().expect("nobody panics with it");
    let text = fs::read_to_string(FILE).unwrap_or_default();
    fs::write(Path::new(FILE), with_seed(&text, crowd, guard, seed))
        .expect("the file can be written");
}

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
    let mode = mode();
    let stored = (mode == Mode::Replay)
        .then(|| seed_in(&fs::read_to_string(FILE).unwrap_or_default(), crowd, guard))
        .flatten();
    // Else every run would search, and nobody would see it.
    assert!(
        stored.is_some() || mode != Mode::Replay,
        "{crowd} {guard}: ONSALE_SIM_CONTROLS=write stores a seed"
    );
    if let Some(seed) = stored {
        if let Some(what) = without(guard, || replay(seed)) {
            let with_it = replay(seed);
            assert_eq!(with_it, None, "seed {seed} breaks a promise with {guard} in place");
            println!("{guard:<18} found by seed {seed}: {what}");
            return true;
        }
        println!(
            "{guard:<18} seed {seed} no longer breaks: ONSALE_SIM_CONTROLS=write finds another"
        );
    }
    let Some((seed, after, what)) = search() else { return false };
    println!("{guard:<18} found after {after:>6} seeds: seed {seed}: {what}");
    if mode == Mode::Write {
        store(crowd, guard, seed);
    }
    true
}
