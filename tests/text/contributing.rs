//! What CONTRIBUTING.md names is there: every file and folder, and every test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use text::root;

/// What is not part of the repository, below any folder.
const SKIPPED: [&str; 4] = [".git", ".onsale", ".venv", "target"];
/// Files that may be missing: real data beside the repository, which its tests can do without.
const OUTSIDE: &str = "../";
/// Endings of files that are named without their folders.
const ENDINGS: [&str; 7] = [".rs", ".md", ".toml", ".lua", ".json", ".yaml", ".lock"];

/// The files and folders of the repository at or below a place, without those of builds.
fn below(place: &Path) -> Vec<PathBuf> {
    let name = place.file_name().unwrap_or_default();
    if SKIPPED.iter().any(|skipped| name == *skipped) || place.is_symlink() {
        return Vec::new();
    }
    let mut all = vec![place.to_owned()];
    if place.is_dir() {
        all.extend(fs::read_dir(place).unwrap().flat_map(|entry| below(&entry.unwrap().path())));
    }
    all
}

/// What stands between backticks in a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// True for a path such as `lua/include/bought.lua`, `check.rs` or `docs/problems/<slug>.md`.
fn is_path(name: &str) -> bool {
    let is_character = |c: char| c.is_ascii_alphanumeric() || "./<>-_".contains(c);
    let has_form = name.contains('/') || ENDINGS.iter().any(|ending| name.ends_with(ending));
    has_form && name.chars().all(is_character) && !name.starts_with(OUTSIDE)
}

/// True if a path of the repository ends with a path that is named; `<name>` stands for anything
/// within one component.
fn ends_with(path: &str, named: &str) -> bool {
    let fits = |part: &str, named: &str| match named.split_once('<').zip(named.split_once('>')) {
        Some(((before, _), (_, after))) => {
            part.len() > before.len() + after.len()
                && part.starts_with(before)
                && part.ends_with(after)
        }
        None => part == named,
    };
    let (mut parts, mut names) = (path.rsplit('/'), named.trim_end_matches('/').rsplit('/'));
    names.all(|name| parts.next().is_some_and(|part| fits(part, name)))
}

/// The names in a text of files, folders, tests and modules that are not there.
fn absent<'a>(text: &'a str, paths: &[String], tests: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let is_there = |name: &str| match name.rsplit_once("::") {
        Some((_, last)) => {
            let module = [format!("{last}.rs"), format!("{last}/")];
            tests.contains(last)
                || paths.iter().any(|path| module.iter().any(|module| ends_with(path, module)))
        }
        None => paths.iter().any(|path| ends_with(path, name)),
    };
    let is_test = |name: &str| {
        let is_character =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
        name.contains("::") && name.chars().all(is_character)
    };
    code(text).filter(|name| (is_path(name) || is_test(name)) && !is_there(name)).collect()
}

/// The names of the functions in a file of Rust.
fn functions(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let names = text.split("fn ").skip(1).filter_map(|after| after.split_once('('));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn contributing_names_what_is_there() {
    let root = root();
    let all = below(&root);
    let relative = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    let paths: Vec<String> = all.iter().map(relative).collect();
    let is_source = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "rs");
    let tests = all.iter().filter(is_source).flat_map(|file| functions(file)).collect();
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    assert!(code(&text).filter(|name| is_path(name)).count() > 100, "the checklists are gone");
    assert_eq!(absent(&text, &paths, &tests), BTreeSet::new());

    let planted = "`engine/src/<flow>/lib.rs`, `check.rs` and `docs/problems/<slug>.md`; `chekc.rs`, \
                   `engine/lib.rs`, `it::openapi::nothing_is_left`, `it::openapi` and `../data`";
    let found = absent(planted, &paths, &tests);
    let expected =
        ["engine/src/<flow>/lib.rs", "chekc.rs", "engine/lib.rs", "it::openapi::nothing_is_left"];
    assert_eq!(found, expected.into());
}
