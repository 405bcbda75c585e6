//! Targets of the crates: a test program is built for those that have unit tests, and for no other. One
//! without any is built and linked for nothing, and one that is not built hides its tests.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::dependencies::{METADATA, list, text};
use super::sources;

/// True if the text has a unit test.
fn has_tests(source: &str) -> bool {
    let is_test = |line: &str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    source.lines().map(str::trim_start).any(is_test)
}

/// True if unit tests are in the sources of a library or of a program.
fn target_has_tests(target: &Value) -> bool {
    let main = Path::new(text(target, "src_path"));
    let is_library = list(target, "kind").any(|kind| kind == "lib");
    let files = if is_library { sources(main.parent().unwrap()) } else { vec![main.to_owned()] };
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts.into_iter().any(|text| has_tests(&text))
}

/// The libraries and programs of the workspace whose `test` in Cargo.toml says something else than their
/// sources.
fn wrong(packages: &[&Value]) -> Vec<String> {
    let targets = packages.iter().flat_map(|package| list(package, "targets"));
    let units = targets
        .filter(|target| list(target, "kind").any(|kind| kind == "lib" || kind == "bin"))
        .filter(|target| target["test"] != target_has_tests(target));
    units.map(|target| text(target, "src_path").to_owned()).collect()
}

#[test]
fn a_target_is_built_with_its_tests_if_it_has_some() {
    let members: Vec<&Value> = list(&METADATA, "workspace_members").collect();
    let packages = list(&METADATA, "packages").filter(|package| members.contains(&&package["id"]));
    let packages: Vec<&Value> = packages.collect();
    assert_eq!(wrong(&packages), [""; 0], "set `test` in the Cargo.toml of these targets");
    // Planted: each target says the opposite.
    let mut opposite: Vec<Value> = packages.into_iter().cloned().collect();
    let mut count = 0;
    for target in opposite.iter_mut().flat_map(|package| package["targets"].as_array_mut().unwrap())
    {
        target["test"] = Value::Bool(target["test"] != true);
        count += usize::from(list(target, "kind").any(|kind| kind == "lib" || kind == "bin"));
    }
    assert_eq!(wrong(&opposite.iter().collect::<Vec<_>>()).len(), count);
}
