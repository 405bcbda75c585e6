//! The program under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where cargo has put `onsale`: beside the tests.
///
/// Cargo builds the tests without the program that they run, so it may be an older one: then this
/// fails, because what such a test shows is not so.
pub fn onsale() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let program = deps.parent().unwrap().join("onsale");
    let is_current = program.exists() && built_at(&program) >= library_built_at(deps);
    assert!(
        is_current,
        "{} is missing or older than its library: cargo build --workspace --all-targets",
        program.display()
    );
    program
}

fn built_at(file: &Path) -> SystemTime {
    fs::metadata(file).unwrap().modified().unwrap()
}

/// When the library was built that `onsale` is made of, the same that the tests use.
fn library_built_at(deps: &Path) -> SystemTime {
    let is_it = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("liblocal-") && name.ends_with(".rlib")
    };
    let files = fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
    files.filter(is_it).map(|library| built_at(&library)).max().unwrap()
}
