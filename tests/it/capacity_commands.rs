//! `onsale capacity` and `onsale ready`, the program as its users and its enemies run it.

use std::fs;

use bench::selling::{hall, publish};
use local::stores;
use local::up::{Engine, Options};
use serde_json::{Value, json};

use crate::backends;
use crate::program::{read, run};

/// The findings of a check that has not passed, in words.
fn not_passed<'f>(findings: &'f Value, check: &str) -> Vec<&'f str> {
    let of_check = |finding: &&Value| finding["check"] == check && finding["verdict"] != "pass";
    let findings = findings.as_array().unwrap().iter().filter(of_check);
    findings.map(|finding| finding["what"].as_str().unwrap()).collect()
}

#[test]
fn a_forecast_is_repeated_by_its_seed_and_is_written_as_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let small = ["capacity", "--seats", "500", "--visitors", "5000", "--hours", "2"];
    let (mut one, code) = read(dir.path(), &small);
    let with_page = [&small[..], &["--html", page.to_str().unwrap()]].concat();
    let (mut other, _) = read(dir.path(), &with_page);
    for forecast in [&mut one, &mut other] {
        forecast.as_object_mut().unwrap().remove("took_seconds");
    }
    assert_eq!(code, 0);
    assert_eq!(one, other);
    assert_eq!(one["run"]["places"], 500);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() == 4, "{page}");
    let (text, code) = run(dir.path(), &small);
    assert!(code == 0 && text.contains("everything is paid after"), "{text}");
}

#[test]
fn what_is_wrong_with_a_file_or_an_option_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file.json");
    let path = file.to_str().unwrap();
    for (option, content, expected) in [
        ("--deployment", "{", "EOF"),
        ("--deployment", r#"{"place_rate": 0}"#, "place_rate must be more than 0"),
        ("--deployment", r#"{"plaice_rate": 5}"#, "unknown field `plaice_rate`"),
        ("--deployment", r#"{"redis_ms": -1}"#, "redis_ms must be 0 to 60,000"),
        ("--crowd", r#"{"no_show": 1.5}"#, "no_show must be 0 to 1"),
        ("--crowd", r#"{"pays": 0.9, "cancels": 0.2}"#, "pays and cancels must be 0 to 1"),
        ("--crowd", r#"{"paying": [6, 1]}"#, "paying must be 0 to"),
        ("--sale-file", r#"{"sale": "s"}"#, "defect"),
        ("--prices", "[]", "prices"),
    ] {
        fs::write(&file, content).unwrap();
        let (text, code) = run(dir.path(), &["capacity", option, path]);
        let is_said = text.to_lowercase().contains(&expected.to_lowercase());
        assert!(code == 2 && (is_said || text.contains("file.json")), "{option} {content}: {text}");
    }
    for options in [["--visitors", "0"], ["--hours", "0"], ["--within", "-5"], ["--sales", "0"]] {
        let (text, code) = run(dir.path(), &[&["capacity"], &options[..]].concat());
        assert_eq!(code, 2, "{options:?}: {text}");
    }
    let missing = dir.path().join("missing.json");
    let (text, code) = run(dir.path(), &["capacity", "--crowd", missing.to_str().unwrap()]);
    assert!(code == 2 && text.contains("missing.json"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_running_engine_lacks_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    publish(&engine, &hall("hall", 100, 1).unwrap()).await.unwrap();
    let ready = ["ready", "hall", "--visitors", "500"];

    let (findings, _) = read(dir, &ready);
    for check in ["sale", "cache", "clock", "queues", "dead letters", "stuck", "keys of tickets"] {
        assert_eq!(not_passed(&findings, check), [""; 0], "{check}: {findings}");
    }
    // Nobody said what the alarms are, and 500 people at 120 sign-ins a second are no matter.
    assert_eq!(not_passed(&findings, "alarms").len(), 1);

    // What goes wrong is found: a dead letter, a cache that forgot, and an account that is too small.
    let sqs = stores::sqs(&engine.endpoints().sqs);
    let dead = sqs.send_message().queue_url(&engine.queues().sync.dead_url).message_body("x");
    dead.send().await.unwrap();
    let small = dir.join("small.json");
    fs::write(
        &small,
        json!({ "sign_ins_per_second": 1, "take_callback_concurrency": 5 }).to_string(),
    )
    .unwrap();
    let alarms = dir.join("alarms.json");
    let one = json!({ "AlarmName": "prod-onsale-expiry-queue-old", "ActionsEnabled": true,
        "AlarmActions": ["arn"], "StateValue": "ALARM" });
    fs::write(&alarms, json!({ "MetricAlarms": [one], "CompositeAlarms": [] }).to_string())
        .unwrap();
    let redis = redis::Client::open(engine.endpoints().redis.as_str()).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    let files = ["--deployment", small.to_str().unwrap(), "--alarms", alarms.to_str().unwrap()];
    let (findings, code) = read(dir, &[&ready[..], &files].concat());
    assert_eq!(code, 1);
    assert_eq!(not_passed(&findings, "dead letters"), ["sync has 1"]);
    assert_eq!(not_passed(&findings, "cache"), ["0 of 1 inventories are loaded"]);
    assert!(not_passed(&findings, "quota").iter().any(|what| what.contains("sign_ins_per_second")));
    assert_eq!(not_passed(&findings, "take-callback").len(), 1);
    let alarms = not_passed(&findings, "alarms");
    assert!(alarms.contains(&"expiry-queue-old is in alarm"), "{alarms:?}");
    assert!(alarms.contains(&"sync-queue-old is not there"), "{alarms:?}");

    let (text, code) = run(dir, &["ready", "nowhere"]);
    assert!(code == 1 && text.contains("it is not published"), "{text}");
    let (text, code) = run(dir, &["ready", "hall", "--alarms", dir.join("none").to_str().unwrap()]);
    assert!(code == 2 && text.contains("none"), "{text}");
    engine.stop().await.unwrap();
}
