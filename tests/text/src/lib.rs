//! The repository that tests read.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder of the repository.
///
/// # Panics
/// If the sources have moved since they were compiled.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of one of its files, named from its folder.
///
/// # Panics
/// If there is no such file.
#[must_use]
pub fn read(path: &str) -> String {
    let file = root().join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Says that a test has nothing to test here, and why. It is written past the capture of a test's output, so that
/// `make test` counts it.
pub fn skipped(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _unread = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}
