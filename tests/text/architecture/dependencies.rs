//! Dependencies between crates, from `cargo metadata`: the arrows go one way, the engine's tree holds no
//! adapter, and every dependency is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

/// What the names of crates begin with that the engine's dependency tree must not hold.
const ADAPTERS: [&str; 10] =
    ["aws-", "aws_", "http", "hyper", "lambda", "openssl", "redis", "reqwest", "ring", "rustls"];

/// Dependencies that no source names, with the reason why they are needed: crate, dependency, reason.
const UNNAMED: [(&str, &str, &str); 0] = [];

/// The workspace and every crate that it is built from on this kind of machine.
pub(super) static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    serde_json::from_slice(&metadata.stdout).unwrap()
});

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}: {value}"))
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn is_normal(dependency: &Value) -> bool {
    list(dependency, "dep_kinds").any(|kind| kind["kind"].is_null())
}

/// The folder of each member of the workspace, relative to its root, by package id.
fn members(metadata: &Value) -> BTreeMap<&str, &Path> {
    let root = Path::new(text(metadata, "workspace_root"));
    let ids: BTreeSet<&str> =
        list(metadata, "workspace_members").filter_map(Value::as_str).collect();
    list(metadata, "packages")
        .filter(|package| ids.contains(text(package, "id")))
        .map(|package| {
            let folder = Path::new(text(package, "manifest_path")).parent().unwrap();
            (text(package, "id"), folder.strip_prefix(root).unwrap())
        })
        .collect()
}

/// The normal dependencies between members, as pairs of folders: what depends, and on what.
fn arrows(metadata: &Value) -> Vec<(&Path, &Path)> {
    let members = members(metadata);
    let mut arrows = Vec::new();
    for node in list(&metadata["resolve"], "nodes") {
        let Some(from) = members.get(text(node, "id")) else { continue };
        let normal = list(node, "deps").filter(|dependency| is_normal(dependency));
        arrows.extend(normal.filter_map(|on| Some((*from, *members.get(text(on, "pkg"))?))));
    }
    arrows
}

/// The folders that the crate in this folder may depend on.
fn allowed(folder: &str) -> Vec<&'static str> {
    const BELOW_TOOLS: [&str; 5] = ["engine", "shared", "functions", "fakes", "local"];
    // Tools that other tools may use, each with those before it.
    let siblings: &[&str] = match folder {
        "engine" | "fakes/limits" | "tools/reporting" | "lab/bench/hello" => return Vec::new(),
        "fakes/sqs" | "fakes/cloudwatch" | "fakes/eventbridge" => return vec!["fakes/limits"],
        "fakes/payments" => return vec!["engine", "fakes/limits"],
        "shared" | "fakes/beacon" | "fakes/identity" | "tools/importers" => {
            return vec!["engine"];
        }
        "local" => return vec!["engine", "shared", "functions", "fakes"],
        "tools/openapi" => &[],
        "tools/ops" | "lab/bench/cold" | "lab/bench/costs" => &["tools/reporting"],
        "lab/loadtest" => &["tools/reporting", "tools/ops", "tools/importers"],
        "lab/chaos" => &["tools/reporting", "tools/ops", "lab/loadtest"],
        "lab/bench" => &["tools/reporting", "tools/ops", "lab/loadtest"],
        "lab/capacity" => &["tools/reporting", "lab/loadtest", "lab/bench"],
        "tools/cli" => &["tools", "lab"],
        "tests/text" => return Vec::new(),
        other if other.starts_with("functions/") => return vec!["engine", "shared"],
        other if other.starts_with("tests/") => &["tests", "tools", "lab"],
        // A crate that is new has to be given its place here.
        _ => return Vec::new(),
    };
    BELOW_TOOLS.iter().chain(siblings).copied().collect()
}

/// The arrows that go the wrong way.
fn forbidden<'a>(arrows: &[(&'a Path, &'a Path)]) -> Vec<(&'a Path, &'a Path)> {
    let is_allowed = |from: &Path, to: &Path| {
        let groups = allowed(from.to_str().unwrap());
        groups.iter().any(|group| match *group {
            // One crate alone, without those in folders below it.
            group if group.contains('/') => to == Path::new(group),
            group => to.starts_with(group),
        })
    };
    arrows.iter().copied().filter(|(from, to)| !is_allowed(from, to)).collect()
}

#[test]
fn dependencies_between_crates_go_one_way() {
    let arrows = arrows(&METADATA);
    let pair = |(from, to): &(&'static str, &'static str)| (Path::new(*from), Path::new(*to));
    assert!(arrows.contains(&pair(&("shared", "engine"))), "the metadata are not read: {arrows:?}");
    let wrong = forbidden(&arrows);
    assert!(wrong.is_empty(), "{wrong:?}");

    let planted: Vec<_> = [
        ("engine", "shared"),
        ("shared", "functions/reserve"),
        ("functions/reserve", "functions/orders"),
        ("functions/reserve", "local"),
        ("fakes/sqs", "engine"),
        ("fakes/limits", "engine"),
        ("fakes/identity", "shared"),
        ("fakes/payments", "shared"),
        ("fakes/beacon", "shared"),
        ("local", "tools/ops"),
        ("tools/reporting", "engine"),
        ("tools/importers", "tools/ops"),
        ("tools/ops", "lab/loadtest"),
        ("lab/loadtest", "lab/chaos"),
        ("lab/chaos", "lab/bench"),
        ("tools/openapi", "tools/cli"),
        ("tools/cli", "tests/model-stores"),
        ("tools/new", "engine"),
    ]
    .iter()
    .map(pair)
    .collect();
    assert_eq!(forbidden(&planted), planted);
    let good =
        [("tools/cli", "lab/bench"), ("tests/it", "lab/bench/cold"), ("tests/sim", "engine")];
    assert!(forbidden(&good.iter().map(pair).collect::<Vec<_>>()).is_empty());
}

/// The members that the one in this folder depends on in any way, its tests included.
fn members_named(metadata: &Value, folder: &str) -> Vec<String> {
    let members = members(metadata);
    let nodes = list(&metadata["resolve"], "nodes");
    let of_folder = nodes.filter(|node| members.get(text(node, "id")) == Some(&Path::new(folder)));
    let dependencies = of_folder.flat_map(|node| list(node, "deps"));
    let ours = dependencies.filter_map(|dependency| members.get(text(dependency, "pkg")));
    ours.map(|folder| folder.to_str().unwrap().to_owned()).collect()
}

/// So that a change of code compiles nothing of it anew, and `make check` runs it within seconds.
#[test]
fn the_checks_of_texts_name_no_crate_of_ours() {
    assert_eq!(members_named(&METADATA, "tests/text"), [""; 0]);
    // The control: a crate that names others, also for its tests alone.
    assert!(members_named(&METADATA, "tests/it").contains(&"tests/text".to_owned()));
    assert!(members_named(&METADATA, "tests/fuzz").contains(&"engine".to_owned()));
}

/// The names of all crates that the member in `folder` is built from, itself not included.
fn tree<'a>(metadata: &'a Value, folder: &str) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"], "nodes").map(|node| (text(node, "id"), node)).collect();
    let names: BTreeMap<&str, &str> = list(metadata, "packages")
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let members = members(metadata);
    let start = members.iter().find(|(_, of)| **of == Path::new(folder)).unwrap().0;
    let (mut open, mut seen) = (vec![*start], BTreeSet::new());
    while let Some(id) = open.pop() {
        for dependency in list(nodes[id], "deps").filter(|dependency| is_normal(dependency)) {
            let id = text(dependency, "pkg");
            if seen.insert(id) {
                open.push(id);
            }
        }
    }
    seen.into_iter().map(|id| names[id]).collect()
}

fn adapters<'a>(crates: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let is_adapter = |name: &&str| ADAPTERS.iter().any(|start| name.starts_with(start));
    crates.iter().copied().filter(is_adapter).collect()
}

#[test]
fn the_engine_is_built_without_any_adapter() {
    let crates = tree(&METADATA, "engine");
    assert!(crates.contains("serde"), "the metadata are not read: {crates:?}");
    assert_eq!(adapters(&crates), [""; 0]);
    // The same of a crate that has them.
    let crates = tree(&METADATA, "shared");
    assert!(adapters(&crates).contains(&"redis"), "{crates:?}");

    let normal = json!([{ "kind": null }]);
    let planted = json!({
        "workspace_root": "/w",
        "workspace_members": ["e"],
        "packages": [
            { "id": "e", "name": "engine", "manifest_path": "/w/engine/Cargo.toml" },
            { "id": "s", "name": "serde" },
            { "id": "h", "name": "hyper-util" },
            { "id": "r", "name": "reqwest" },
        ],
        "resolve": { "nodes": [
            { "id": "e", "deps": [
                { "pkg": "s", "dep_kinds": normal },
                { "pkg": "r", "dep_kinds": [{ "kind": "dev" }] },
            ] },
            { "id": "s", "deps": [{ "pkg": "h", "dep_kinds": normal }] },
            { "id": "h", "deps": [] },
            { "id": "r", "deps": [] },
        ] },
    });
    assert_eq!(adapters(&tree(&planted, "engine")), ["hyper-util"]);
}

/// True if this code names the crate in a path, or as a whole in a `use`.
fn is_named(code: &str, krate: &str) -> bool {
    let is_part = |of: char| of.is_alphanumeric() || of == '_';
    code.match_indices(krate).any(|(at, _)| {
        let (before, after) = (&code[..at], code[at + krate.len()..].trim_start());
        if before.ends_with(is_part) || code[at + krate.len()..].starts_with(is_part) {
            return false;
        }
        // `::redis::RedisError` begins with the crate, `shared::redis::decode` does not.
        let before = match before.strip_suffix("::") {
            Some(path) if path.ends_with(is_part) => return false,
            Some(path) => path,
            None => before,
        };
        let before = before.trim_end();
        after.starts_with("::") || before.ends_with("use") || before.ends_with("extern crate")
    })
}

/// The code of all sources below a folder, without comments and without the members below it.
fn code(folder: &Path, members: &BTreeSet<PathBuf>) -> String {
    let mut code = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !members.contains(&path) {
            code += &self::code(&path, members);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            code.extend(source.lines().filter(is_code).flat_map(|line| [line, "\n"]));
        }
    }
    code
}

/// The dependencies that the code of their crate never names, with the name that it would use.
fn unused<'a>(dependencies: &[&'a str], code: &str) -> Vec<&'a str> {
    dependencies.iter().copied().filter(|name| !is_named(code, name)).collect()
}

#[test]
fn every_dependency_is_used() {
    let root = Path::new(text(&METADATA, "workspace_root"));
    let members = members(&METADATA);
    let folders: BTreeSet<PathBuf> = members.values().map(|folder| root.join(folder)).collect();
    let mut all = Vec::new();
    for node in list(&METADATA["resolve"], "nodes") {
        let Some(folder) = members.get(text(node, "id")) else { continue };
        let dependencies: Vec<&str> = list(node, "deps").map(|one| text(one, "name")).collect();
        for name in unused(&dependencies, &code(&root.join(folder), &folders)) {
            all.push((folder.to_str().unwrap(), name));
        }
    }
    let known: Vec<_> = UNNAMED.iter().map(|(folder, name, _reason)| (*folder, *name)).collect();
    assert_eq!(all, known, "remove them from the Cargo.toml of their crate");

    let planted = "use serde::Serialize;\nuse tokio;\nlet a = shared::redis::decode(b);\n\
                   fn c(sha2: u8, http_body: ::base64::Error) -> u8 { sha2 }";
    let dependencies = ["serde", "tokio", "redis", "base64", "http", "sha2", "shared"];
    assert_eq!(unused(&dependencies, planted), ["redis", "http", "sha2"]);
}
