//! The rooms of the domain, read from the ground up: each builds only on those before it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use text::root;

use super::sources;

/// The rooms, from the ground up.
const ROOMS: [&str; 8] =
    ["basics", "sale", "inventory", "admission", "order", "payment", "ledger", "ticket"];

/// The names that follow each `start` in a text.
fn names_after<'t>(code: &'t str, start: &str) -> Vec<&'t str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let after = code.match_indices(start).map(|(at, _)| &code[at + start.len()..]);
    after.map(|rest| rest.split(|c| !is_name(c)).next().unwrap_or_default()).collect()
}

/// The code of a file, without its comments and its tests.
fn code(text: &str) -> String {
    let is_tests = |at: &usize| {
        let after = text[*at..].lines().nth(1).unwrap_or_default();
        after.contains("mod ") && after.ends_with('{')
    };
    let end = text.match_indices("#[cfg(test)]").map(|(at, _)| at).find(is_tests);
    let code = &text[..end.unwrap_or(text.len())];
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    code.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

/// What a file of the domain names that it may not: `path` is its place below `domain`. A room names another as
/// `crate::domain::<room>`, one at a time.
fn wrong_arrows(path: &Path, text: &str) -> Vec<String> {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    let place = |room: &str| ROOMS.iter().position(|one| *one == room);
    let own = place(parts[0]).unwrap_or_else(|| panic!("{} is in no room", path.display()));
    // Modules between this one and its room.
    let depth = parts.len() - 1 - usize::from(parts.last() == Some(&"mod.rs"));
    let code = code(text);
    let rooms = names_after(&code, "crate::domain::").into_iter();
    let mut wrong: Vec<String> = rooms
        .filter(|name| place(name).is_none_or(|room| room > own))
        .map(|name| format!("crate::domain::{name}"))
        .collect();
    let crates = names_after(&code, "crate::").into_iter().filter(|name| *name != "domain");
    wrong.extend(crates.map(|name| format!("crate::{name}")));
    let above = "super::".repeat(depth + 1);
    wrong.extend(code.contains(&above).then_some(above));
    wrong
}

#[test]
fn each_room_of_the_domain_builds_on_those_before_it() {
    let domain = root().join("engine/src/domain");
    let files = sources(&domain);
    assert!(files.len() > 60, "the domain has moved");
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&domain).unwrap();
        let is_for_tests =
            ["tests", "fixtures"].map(OsStr::new).map(Some).contains(&path.file_stem());
        if path != Path::new("mod.rs") && !is_for_tests {
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(wrong_arrows(path, &text), [""; 0], "{}", path.display());
            let room = path.iter().next().unwrap().to_str().unwrap().to_owned();
            let (code, named) = (code(&text), named.entry(room.clone()).or_default());
            named.extend(names_after(&code, "crate::domain::").into_iter().map(str::to_owned));
            named.remove(&room);
        }
    }
    // The header of each room names those that it builds on.
    for room in ROOMS {
        let header = fs::read_to_string(domain.join(room).join("mod.rs")).unwrap();
        let (_, on) = header.split_once("//! Builds on ").unwrap_or_else(|| panic!("{room}"));
        let on = on.split("\n\n").next().unwrap();
        let said: BTreeSet<String> =
            names_after(on, "(super::").into_iter().map(str::to_owned).collect();
        assert_eq!(said, named[room], "what {room} builds on");
    }
}

#[test]
fn a_planted_arrow_is_caught() {
    let planted = "use crate::domain::order::Order;\nuse crate::domain::basics::ids::SaleId;\n\
        // crate::domain::ticket\nuse super::grid::Grid;\nuse super::super::order;\nuse crate::ports::Orders;\n\
        #[cfg(test)]\nmod tests {\n    use crate::domain::ticket::Code;\n}\n";
    let found = wrong_arrows(Path::new("inventory/hold.rs"), planted);
    assert_eq!(found, ["crate::domain::order", "crate::ports", "super::super::"]);
    let in_a_module = wrong_arrows(
        Path::new("order/mod.rs"),
        "use super::sale::Sale;\nuse crate::domain::{order};",
    );
    assert_eq!(in_a_module, ["crate::domain::", "super::"]);
}
