//! For each control a seed that shows what it is for: a file, with a line for each, `CONTROL SEED`.
//!
//! A control takes a condition away and must be noticed. It replays the seed of its file, and searches other seeds only
//! if that one no longer shows anything, because what it runs has changed. `ONSALE_CONTROLS` is `search` to search
//! whatever the file says, from the seeds of the commit, and `write` to store in the file what is found.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

/// Keeps the tests of a program from writing a file at once.
static WRITING: Mutex<()> = Mutex::new(());

/// What is done beside the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The stored seed; a search if it no longer shows anything.
    Replay,
    Search,
    /// A search, whose seed is stored.
    Write,
}

fn mode() -> Mode {
    match env::var("ONSALE_CONTROLS").as_deref() {
        Ok("search") => Mode::Search,
        Ok("write") => Mode::Write,
        Ok("") | Err(_) => Mode::Replay,
        Ok(other) => panic!("ONSALE_CONTROLS is search or write, not {other}"),
    }
}

fn line(control: &str, seed: impl Display) -> String {
    format!("{control} {seed}")
}

/// The stored seeds of some controls.
#[derive(Debug, Clone, Copy)]
pub struct StoredSeeds {
    /// The path of their file.
    pub file: &'static str,
}

impl StoredSeeds {
    /// The seed to replay for a control; `None` to search one.
    ///
    /// # Panics
    /// If none is stored and none is asked for: every run would search, and nobody would see it.
    #[must_use]
    pub fn to_replay(&self, control: &str) -> Option<u64> {
        if mode() != Mode::Replay {
            return None;
        }
        let stored = seed_in(&fs::read_to_string(self.file).unwrap_or_default(), control);
        assert!(stored.is_some(), "{control}: ONSALE_CONTROLS=write stores a seed");
        stored
    }

    /// Stores what a search has found, if that is asked for.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[allow(clippy::expect_used, reason = "a control that cannot store its seed fails")]
    pub fn found(&self, control: &str, seed: u64) {
        if mode() == Mode::Write {
            let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
            let text = fs::read_to_string(self.file).unwrap_or_default();
            fs::write(self.file, with_seed(&text, control, seed)).expect("the file can be written");
        }
    }
}

/// The seed that a text of lines names for a control.
fn seed_in(text: &str, control: &str) -> Option<u64> {
    let start = line(control, "");
    // The name of another may begin with this one.
    text.lines().filter_map(|line| line.strip_prefix(&start)).find_map(|seed| seed.parse().ok())
}

/// The text with the seed of a control, in order.
fn with_seed(text: &str, control: &str, seed: u64) -> String {
    let is_other = |line: &&str| seed_in(line, control).is_none();
    let others = text.lines().filter(is_other).map(str::to_owned);
    let mut lines: Vec<String> = others.chain([line(control, seed)]).collect();
    lines.sort();
    lines.join("\n") + "\n"
}
