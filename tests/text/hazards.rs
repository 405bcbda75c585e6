//! `docs/hazards.md`, which says of each hazard which test shows how it is met, held against the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use text::{read, root};

fn table() -> String {
    read("docs/hazards.md")
}

/// What the files of a folder are: the modules of a package, or test binaries, whose own names lead to
/// no test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    Modules,
    Binaries,
}

/// Where tests lie, by the name that their package has in the table.
const PLACES: [(&str, &str, Files); 20] = [
    ("engine", "engine/src", Files::Modules),
    ("fuzz", "tests/fuzz/tests", Files::Binaries),
    ("it", "tests/it", Files::Modules),
    ("text", "tests/text", Files::Modules),
    ("bench", "lab/bench/src", Files::Modules),
    ("chaos", "lab/chaos/src", Files::Modules),
    ("cli", "tools/cli/src", Files::Modules),
    ("importers", "tools/importers/src", Files::Modules),
    ("loadtest", "lab/loadtest/src", Files::Modules),
    ("local", "local/src", Files::Modules),
    ("ops", "tools/ops/src", Files::Modules),
    ("model", "tests/model/src", Files::Modules),
    ("model", "tests/model/tests", Files::Binaries),
    ("shared", "shared/src", Files::Modules),
    ("sim", "tests/sim/src", Files::Modules),
    ("sim", "tests/sim/tests", Files::Binaries),
    ("fake-sqs", "fakes/sqs/src", Files::Modules),
    ("fake-sqs", "fakes/sqs/tests", Files::Binaries),
    ("model-stores", "tests/model-stores/src", Files::Modules),
    ("model-stores", "tests/model-stores/tests", Files::Binaries),
];

fn sources(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    paths.flat_map(below).filter(|path| path.extension().is_some_and(|kind| kind == "rs")).collect()
}

/// The tests of a source file, each after the modules that lead to it from its package.
fn tests_of(package: &str, files: Files, file: &Path, place: &Path) -> Vec<String> {
    let inner = file.strip_prefix(place).unwrap().with_extension("");
    let parts = inner.iter().map(|part| part.to_str().unwrap());
    let parts = parts.skip(usize::from(files == Files::Binaries));
    let modules: Vec<&str> = parts.filter(|part| !["lib", "main", "mod"].contains(part)).collect();
    let text = fs::read_to_string(file).unwrap();
    let mut named = Vec::new();
    let mut inside = Vec::new();
    let (mut is_test, mut is_list) = (false, false);
    for line in text.lines().map(str::trim) {
        // The model checker's tests are a list of fixtures.
        if is_list && !line.is_empty() && line != "}" {
            named.push([&[package], modules.as_slice(), &[line]].concat().join("::"));
        }
        is_list = line == "races! {" || (is_list && line != "}");
        if line.starts_with("mod ") && line.ends_with('{') {
            inside = vec![line.trim_start_matches("mod ").trim_end_matches(" {")];
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, name)) = line.split_once("fn ").filter(|_| is_test) {
            let name = name.split('(').next().unwrap();
            let path = [&[package], &modules[..], &inside, &[name]].concat();
            named.push(path.join("::"));
            is_test = false;
        }
    }
    named
}

fn tests() -> BTreeSet<String> {
    let of = |(package, place, kind): &(&str, &str, Files)| {
        let place = root().join(place);
        let files = sources(&place);
        files.iter().flat_map(|file| tests_of(package, *kind, file, &place)).collect::<Vec<_>>()
    };
    PLACES.iter().flat_map(of).collect()
}

fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| ---")
}

/// The tests that a line names: words in backticks with colons in them.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|word| word.contains("::"))
}

#[test]
fn every_test_of_the_table_is_there() {
    let (there, table) = (tests(), table());
    let names: Vec<&str> = table.lines().filter(|line| is_row(line)).flat_map(named).collect();
    let missing: Vec<&&str> = names.iter().filter(|test| !there.contains(**test)).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "docs/hazards.md names tests that are not there");
    assert!(names.len() > 60, "the table is not read");
    // The control: a name that is not one is found out.
    assert!(!there.contains("text::hazards::every_test_of_the_table_is_here"));
}

#[test]
fn every_hazard_has_a_test_or_is_said_to_be_open() {
    for row in table().lines().filter(|line| is_row(line)) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let is_heading = cells.last().is_some_and(|cell| cell.trim() == "shown by");
        let is_shown = named(row).next().is_some() || row.contains("**open**");
        assert!(is_heading || (cells.len() == 3 && is_shown), "{row}");
    }
}
