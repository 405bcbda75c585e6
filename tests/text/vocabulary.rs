//! Words that were given up for the field's standard terms, and have no other meaning, stay out of code,
//! documents, scripts and Lua.

use std::fs;
use std::path::{Path, PathBuf};

/// The files and folders that are checked, relative to the root of the repository; `""` is all of it.
const CHECKED: [&str; 1] = [""];

/// Each word in lower case, and the term to use in its place.
const GIVEN_UP: [(&str, &str); 14] = [
    ("stand-in", "fake, or emulator of a whole service"),
    ("stand_in", "fake, or emulator of a whole service"),
    ("standin", "fake, or emulator of a whole service"),
    ("mischief", "fault injection, faults"),
    ("trickster", "fault injector"),
    ("reins", "controller"),
    ("buried alive", "tombstone in the wrong state"),
    ("told apart by", "dimension"),
    ("obstacle", "conflict"),
    ("handbook", "docs"),
    ("strangers' bytes", "untrusted input"),
    ("house rules", "conventions"),
    ("a ticket's way", "request flow"),
    ("so many milliseconds", "the name of the quantity"),
];

/// Names that others hold on to: the command, and what its threads are called after it.
const KEPT_NAMES: [&str; 1] = ["sqs-standin"];

/// Places where a word stays: file, word, reason.
static EXCEPTIONS: [(&str, &str, &str); 9] = [
    ("CHANGELOG.md", "mischief", "the former name of a route"),
    ("CHANGELOG.md", "stand-in", "history"),
    ("lab/chaos/src/fakes.rs", "stand-in", "the command `onsale stand-ins`"),
    ("tools/cli/src/lib.rs", "stand-in", "the command `onsale stand-ins`"),
    ("docs/payments.md", "mischief", "the former name of the route"),
    ("fakes/payments/src/edge.rs", "mischief", "the former name of the route"),
    ("fakes/payments/src/lib.rs", "mischief", "the former name of the route"),
    ("tests/it/provider.rs", "mischief", "the former name of the route"),
    ("fakes/sqs/src/lib.rs", "standin", "the `SenderId` of every message, on the wire"),
];

/// This file, which has to name the words.
const THIS_FILE: &str = "tests/text/vocabulary.rs";

/// What is not part of the repository, or not ours: below any folder.
const SKIPPED: [&str; 8] =
    [".git", ".onsale", ".venv", "target", "__pycache__", "node_modules", "dist", ".test"];

/// A line of text without the marks of a comment and without names that are kept, in lower case.
fn plain(line: &str) -> String {
    let line = line.trim().trim_start_matches(['/', '!', '#', '-', '*', '>', '|']).trim_start();
    let mut line = line.to_lowercase();
    for name in KEPT_NAMES {
        line = line.replace(name, "");
    }
    line
}

/// Whether a line has the word, and not only a longer word of another meaning that contains it.
fn has(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        match word {
            // "reinstall"
            "reins" => {
                !before.ends_with(char::is_alphabetic) && !after.starts_with(char::is_alphabetic)
            }
            // "standing"
            "standin" => !after.starts_with('g'),
            _ => true,
        }
    })
}

/// The words that a text has, with the numbers of their lines; phrases also across the end of a line.
fn given_up(text: &str) -> Vec<(usize, &'static str)> {
    let lines: Vec<String> = text.lines().map(plain).collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).map(String::as_str).unwrap_or_default();
        let joined = format!("{line} {next}");
        for (word, _instead) in GIVEN_UP {
            let breaks = word.contains(' ') && has(&joined, word) && !has(next, word);
            if has(line, word) || breaks {
                found.push((index + 1, word));
            }
        }
    }
    found
}

/// The files of the repository at or below a place.
fn files(place: &Path) -> Vec<PathBuf> {
    let name = place.file_name().unwrap_or_default();
    if SKIPPED.iter().any(|skipped| name == *skipped) || place.is_symlink() {
        Vec::new()
    } else if place.is_file() {
        vec![place.to_owned()]
    } else {
        let entries = fs::read_dir(place).unwrap();
        entries.flat_map(|entry| files(&entry.unwrap().path())).collect()
    }
}

#[test]
fn given_up_words_stay_out() {
    let root = text::root();
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    let mut count = 0;
    for file in CHECKED.iter().flat_map(|place| files(&root.join(place))) {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap();
        // Pictures and other bytes that are no text have no words.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        if name == THIS_FILE {
            continue;
        }
        count += 1;
        let in_name = given_up(name).into_iter().map(|(_, word)| (0, word));
        for (line, word) in in_name.chain(given_up(&text)) {
            match EXCEPTIONS.iter().find(|(of, kept, _)| (*of, *kept) == (name, word)) {
                Some(exception) => used.push(exception),
                None => wrong.push(format!("{name}:{line}: {word}")),
            }
        }
    }
    assert!(count > 50, "only {count} files: the folders have moved");
    let words: Vec<_> = GIVEN_UP.iter().map(|(word, term)| format!("{word} -> {term}")).collect();
    assert!(wrong.is_empty(), "{}\n\nwrite instead:\n{}", wrong.join("\n"), words.join("\n"));
    for exception in &EXCEPTIONS {
        let is_checked = CHECKED.iter().any(|place| Path::new(exception.0).starts_with(place));
        assert!(!is_checked || used.contains(&exception), "no longer needed: {exception:?}");
    }
}

#[test]
fn a_given_up_word_is_found() {
    for (word, _) in GIVEN_UP {
        assert_eq!(given_up(&format!("fn a() {{}}\n/// Of {word}, again.")), [(2, word)]);
        assert_eq!(given_up(&word.to_uppercase()), [(1, word)]);
        if let Some((first, rest)) = word.split_once(' ') {
            assert_eq!(given_up(&format!("//! Of {first}\n//! {rest}.")), [(1, word)]);
        }
    }
    assert_eq!(given_up("struct SqsStandin; let my_stand_ins = 1;").len(), 2);
    let good = "sqs-standin --port 0; reinstall; outstanding; he stands in the rain; a handy book";
    assert_eq!(given_up(good).len(), 0);
}
