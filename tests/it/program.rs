//! The programs under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where cargo has put `onsale`.
pub fn onsale() -> PathBuf {
    program("onsale")
}

/// Where cargo has put a program of the workspace: beside the tests.
///
/// Cargo builds the tests without the programs that they run, so it may be an older one: then this
/// fails, because what such a test shows is not so.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join(name);
    let is_current = program.exists()
        && changed_at(&program) >= sources_changed_at(&program.with_extension("d"));
    assert!(
        is_current,
        "{} is missing or older than its sources: cargo build --workspace --all-targets",
        program.display()
    );
    program
}

/// The time at which a file was changed last.
pub fn changed_at(file: &Path) -> SystemTime {
    fs::metadata(file).unwrap().modified().unwrap()
}

/// When the last of the sources was changed that a program is made of: cargo lists them in a file
/// beside it, as make has them.
pub fn sources_changed_at(list: &Path) -> SystemTime {
    let list = fs::read_to_string(list).unwrap();
    let (_, sources) = list.lines().next().unwrap().split_once(": ").unwrap();
    // A blank in a name has a stroke before it.
    let sources = sources.replace("\\ ", "\0");
    let sources = sources.split(' ').map(|source| PathBuf::from(source.replace('\0', " ")));
    sources.map(|source| changed_at(&source)).max().unwrap()
}
