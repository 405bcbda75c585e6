//! The programs under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;

/// Where cargo has put `onsale`.
pub fn onsale() -> PathBuf {
    program("onsale")
}

/// Runs `onsale` with a data directory: its standard output, its standard error, and its exit code.
pub fn output(dir: &Path, arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(onsale());
    let command = command.arg("--data-dir").arg(dir).args(arguments).env("ONSALE_LOG", "error");
    let done = command.output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    (String::from_utf8(done.stdout).unwrap(), errors, done.status.code().unwrap())
}

/// What a command prints, with what it says of errors after it, and its exit code.
pub fn run(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let (printed, errors, code) = output(dir, arguments);
    (printed + &errors, code)
}

/// The lines that a command prints as JSON, and its exit code.
pub fn read_lines(dir: &Path, arguments: &[&str]) -> (Vec<Value>, i32) {
    let (printed, errors, code) = output(dir, &[arguments, &["--json"]].concat());
    let values = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
    let read = |value: Result<Value, serde_json::Error>| {
        value.unwrap_or_else(|error| panic!("{error}: {printed}{errors}"))
    };
    (values.map(read).collect(), code)
}

/// What a command prints as JSON, which is one value, and its exit code.
pub fn read(dir: &Path, arguments: &[&str]) -> (Value, i32) {
    let (mut values, code) = read_lines(dir, arguments);
    assert_eq!(values.len(), 1, "{arguments:?}: {values:?}");
    (values.remove(0), code)
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
        "{} is missing or older than its sources: cargo build --workspace --bins",
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
