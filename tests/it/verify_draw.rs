//! `onsale verify-draw` on files that `onsale bench room --publish` wrote: exit codes and the names of defects. Every
//! defect is planted in the unit tests of `ops::draw`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::program::onsale;

fn run(arguments: &[&str], folder: &Path) -> Output {
    Command::new(onsale()).args(arguments).arg(folder).output().unwrap()
}

/// Exit code and report of a check.
fn verify(arguments: &[&str], folder: &Path) -> (Option<i32>, Value) {
    let output = run(&[&["--json", "verify-draw"], arguments].concat(), folder);
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn a_simulated_room_is_verified_and_a_changed_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "room", "--seats", "300", "--people-per-seat", "10", "--publish"];
    let written = run(&bench, folder.path());
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));

    let nonce = "0".repeat(32);
    let own = ["--index", "5", "--buyer", "buyer-5", "--nonce", &nonce];
    let (code, report) = verify(&own, folder.path());
    let found = (code, &report["verdict"], &report["because"]);
    assert_eq!(found, (Some(3), &"not_witnessed".into(), &"secret".into()), "{report}");
    let group = &report["groups"][0];
    assert_eq!((&group["count"], &group["held"]), (&3_000.into(), &2_940.into()), "{report}");
    assert!(group["admitted"].as_u64().unwrap() > 100, "{report}");
    assert!(report["own"]["place"].is_u64(), "{report}");

    // Two admissions have each other's index.
    let file = folder.path().join("admissions.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let index = |line: &str| {
        let (_, rest) = line.split_once("\"index\":").unwrap();
        format!("\"index\":{},", rest.split_once(',').unwrap().0)
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (first, last) = (index(&lines[0]), index(&lines[lines.len() - 1]));
    let at = lines.len() - 1;
    lines[0] = lines[0].replace(&first, &last);
    lines[at] = lines[at].replace(&last, &first);
    fs::write(&file, lines.join("\n")).unwrap();
    let (code, report) = verify(&[], folder.path());
    assert_eq!(
        (code, &report["violations"][0]["violation"]),
        (Some(1), &"place".into()),
        "{report}"
    );

    fs::remove_file(&file).unwrap();
    assert_eq!(verify(&[], folder.path()).0, Some(2));
}
