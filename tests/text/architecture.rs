//! The architecture: which crate may depend on which, what the engine may not use, and what is in the
//! binaries.

mod dependencies;
mod features;
mod rooms;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use text::root;

/// The clock and randomness, which the engine gets as arguments.
const IMPURE: [&str; 2] = ["SystemTime", "rand::"];

fn sources(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    fs::read_dir(place).unwrap().flat_map(|entry| sources(&entry.unwrap().path())).collect()
}

/// The lines of code in this text that read a clock or draw a random number.
fn impure_lines(text: &str) -> Vec<(usize, &str)> {
    let is_impure = |line: &str| {
        let code = line.trim_start();
        !code.starts_with("//") && IMPURE.iter().any(|name| code.contains(name))
    };
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| is_impure(line)).collect()
}

#[test]
fn the_engine_reads_no_clock_and_draws_no_number() {
    let engine = root().join("engine/src");
    let files = sources(&engine);
    assert!(files.len() > 20, "the engine has moved");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = impure_lines(&text);
        assert!(lines.is_empty(), "{}: {lines:?}", file.display());
    }
    let planted =
        "// SystemTime is not read here.\nlet now = SystemTime::now();\nlet n = rand::random();";
    assert_eq!(impure_lines(planted).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3]);
}

/// A function is wired in a dozen lines; what it does is in its library.
#[test]
fn a_main_wires_and_never_decides() {
    let functions = root().join("functions");
    for function in fs::read_dir(functions).unwrap() {
        let main = function.unwrap().path().join("src/main.rs");
        let lines = fs::read_to_string(&main).unwrap().lines().count();
        assert!(lines <= 20, "{} has {lines} lines", main.display());
    }
}

/// Where two TLS stacks are in one binary, each brings its own trust, its own faults and half a
/// second of compiling; and aws-lc's start-up costs are known, others' are not.
fn second_stacks(packages: &str) -> Vec<&str> {
    let is_second = |package: &&str| {
        let (name, version) = package.split_once(' ').unwrap_or((package, ""));
        match name {
            "ring" | "openssl" | "openssl-sys" | "native-tls" | "boring" | "s2n-tls" => true,
            "rustls" => !version.starts_with("v0.23."),
            "hyper" => !version.starts_with("v1."),
            _ => false,
        }
    };
    packages.lines().filter(is_second).collect()
}

#[test]
fn there_is_one_tls_stack() {
    let arguments = ["tree", "--workspace", "--locked", "--prefix", "none"];
    let tree = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--edges", "normal,build", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("\nrustls v0.23."), "it is not there at all");
    assert!(tree.contains("\naws-lc-rs v"), "it is not there at all");
    assert_eq!(second_stacks(&tree), [""; 0]);
    let planted = "hyper v1.2.0\nhyper v0.14.1\nring v0.17.14\nrustls v0.21.0\nrustls v0.23.1 (*)";
    assert_eq!(second_stacks(planted), ["hyper v0.14.1", "ring v0.17.14", "rustls v0.21.0"]);
}

/// What the compiler says of the guard when the variable has this value.
fn guard_says(jitter: Option<&str>) -> (bool, String) {
    const VARIABLE: &str = "AWS_LC_SYS_NO_JITTER_ENTROPY";
    let metadata = tempfile::NamedTempFile::new().unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(compiler)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata"])
        .args(["runtime/connections/entropy.rs".as_ref(), "-o".as_ref(), metadata.path()])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/src"))
        .env_remove(VARIABLE)
        .envs(jitter.map(|value| (VARIABLE, value)))
        .output()
        .unwrap();
    (compiled.status.success(), String::from_utf8(compiled.stderr).unwrap())
}

#[test]
fn a_build_that_would_gather_jitter_is_stopped() {
    let (is_built, says) = guard_says(None);
    assert!(!is_built && says.contains("where .cargo/config.toml sets it"), "{says}");
    let (is_built, says) = guard_says(Some("0"));
    assert!(!is_built && says.contains("must be 1"), "{says}");
    let (is_built, says) = guard_says(Some("1"));
    assert!(is_built, "{says}");
    let wire = text::read("shared/src/runtime/connections/mod.rs");
    assert!(wire.lines().any(|line| line == "mod entropy;"), "the guard is in no build");
}

/// Tests take their DynamoDB and SQS from one place, where other servers can take the place of ours;
/// only the tests of the servers themselves start their own.
#[test]
fn tests_use_servers_that_can_be_exchanged() {
    let tests = root().join("tests/it");
    let own = ["backends.rs", "servers.rs"].map(|name| tests.join(name));
    let starts = [
        "DynamoDb::memory",
        "DynamoDb::file",
        "FakeSqs::start",
        "Stack::ephemeral",
        "Stack::persistent",
        "Stack::start",
    ];
    let is_under_rule =
        |file: &PathBuf| file.extension().is_some_and(|kind| kind == "rs") && !own.contains(file);
    for file in sources(&tests).into_iter().filter(is_under_rule) {
        let code: String = fs::read_to_string(&file).unwrap().split_whitespace().collect();
        let start = starts.iter().find(|start| code.contains(**start));
        assert_eq!(start, None, "{}", file.display());
        let engines = code.matches("Engine::start(").count();
        let on_these_backends = code.matches("Engine::start(backends::engine(").count();
        assert_eq!(engines, on_these_backends, "{}", file.display());
    }
}
