//! The whole corpus through its targets: quick, and the same every time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fuzz::{CONTROL, Outcome, TARGETS};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_lies_in_the_corpus_breaks_no_property() {
    for target in &TARGETS {
        let folder = corpus().join(target.name);
        let mut seen = BTreeSet::new();
        for name in names(&folder) {
            let input = fs::read(folder.join(&name)).unwrap();
            let outcome = std::panic::catch_unwind(|| (target.run)(&input));
            let outcome = outcome.unwrap_or_else(|_| panic!("{}/{name} breaks one", target.name));
            seen.insert(outcome == Outcome::Accepted);
        }
        assert_eq!(seen.len(), 2, "{}: nothing accepted, or nothing refused", target.name);
    }
}

#[test]
fn every_corpus_has_a_target_and_stays_small() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names(&corpus()), targets);
    let files = targets.iter().flat_map(|target| {
        let folder = corpus().join(target);
        names(&folder).into_iter().map(move |name| folder.join(name))
    });
    let bytes: u64 = files.map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes < 256 * 1024, "{bytes} bytes: `scripts/fuzz minimise` makes a corpus smaller");
}

#[test]
fn the_control_is_found_by_who_knows_it() {
    let run = CONTROL.run;
    assert_eq!(run(b"sold\x00\x00\xea\x60"), Outcome::Accepted);
    assert!(std::panic::catch_unwind(|| run(b"sold\x00\x00\xea\x61")).is_err());
}
