//! Features of what we depend on: `make demo` builds without the dependencies of tests, `make test` with them, and
//! both must ask for the same features. A crate that differs is compiled again, and everything above it too.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use text::root;

/// The features of each package of the workspace's tree, through dependencies of these kinds. A package may stand
/// there twice: as what programs link, and as what the compiler runs.
type Features = BTreeMap<String, BTreeSet<String>>;

fn tree(edges: &str) -> String {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--prefix", "none", "--format", "{p}|{f}"])
        .args(["--edges", edges])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).unwrap()
}

fn features(tree: &str) -> Features {
    let mut all = Features::new();
    // An empty line stands between two members of the workspace.
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (package, features) = line.trim_end_matches(" (*)").split_once('|').unwrap();
        all.entry(package.to_owned()).or_default().insert(features.to_owned());
    }
    all
}

/// The packages that both have, with other features in one than in the other.
fn differing(programs: &Features, tests: &Features) -> Vec<String> {
    let differs = |(package, features): &(&String, &BTreeSet<String>)| {
        tests.get(*package).is_some_and(|of_tests| of_tests != *features)
    };
    programs.iter().filter(differs).map(|(package, _)| package.clone()).collect()
}

#[test]
fn tests_and_programs_are_built_from_the_same_dependencies() {
    let programs = features(&tree("normal,build"));
    let tests = features(&tree("normal,build,dev"));
    assert!(programs.len() > 200, "the tree is not read");
    assert_eq!(differing(&programs, &tests), [""; 0]);

    let planted = "tokio v1.54.1|net,time\nserde v1.0.0|std\nserde v1.0.0|std (*)";
    let of_tests = "tokio v1.54.1|net,test-util,time\nserde v1.0.0|std\nproptest v1.0.0|std";
    assert_eq!(differing(&features(planted), &features(of_tests)), ["tokio v1.54.1"]);
}
