//! `onsale audit`, `onsale reconcile`, `onsale stuck`, `onsale dead-letters` and `onsale sale tokens`, the program against an
//! engine: one that runs on a data directory, and one that the environment describes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bench::selling::{hall, publish};
use local::queues::Redelivery;
use local::stores;
use local::up::{Engine, Options};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::backends;
use crate::program::{onsale, read, run};

/// Time that anything may take before the test fails.
const DEADLINE: Duration = Duration::from_secs(180);

/// What a command printed for the engine that the environment describes, and its exit code. Its data
/// directory is empty: the variables are those that `onsale environment` prints of the engine on `dir`.
fn run_from_environment(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let (printed, code) = read(dir, &["environment"]);
    assert_eq!(code, 0, "{printed}");
    let variables = printed["Parameters"].as_object().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let done = Command::new(onsale())
        .arg("--data-dir")
        .arg(empty.path())
        .args(arguments)
        .arg("--from-environment")
        .envs(variables.iter().map(|(name, value)| (name, value.as_str().unwrap())))
        .env("ONSALE_LOG", "error")
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8_lossy(&done.stderr);
    (said, done.status.code().unwrap())
}

/// The dead letters of a queue, once there are as many.
async fn letters(dir: &Path, queue: &str, count: usize) -> Vec<Value> {
    let wait = async {
        loop {
            let (lists, code) = read(dir, &["dead-letters"]);
            let list = lists.as_array().unwrap().iter().find(|list| list["queue"] == queue);
            let list = list.unwrap();
            assert_eq!(code == 0, lists.as_array().unwrap().iter().all(|list| list["count"] == 0));
            if list["count"] == count {
                let letters = list["letters"].as_array().unwrap().clone();
                assert_eq!(letters.len(), count, "{list}");
                return letters;
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(DEADLINE, wait).await.unwrap_or_else(|_| panic!("{count} dead letters of {queue}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_added_and_shown_by_their_commands() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    publish(&engine, &hall("hall", 100, 1).unwrap()).await.unwrap();

    let (text, code) = run(dir, &["sale", "tokens", "show", "hall"]);
    assert_eq!((text.as_str(), code), ("hall: its gate counts nothing now\n", 0));
    let add = ["sale", "tokens", "add", "hall", "8", "--id", "evening"];
    let (added, code) = read(dir, &add);
    assert_eq!((&added["added"], &added["id"], code), (&json!(true), &json!("evening"), 0));
    let (text, code) = run_from_environment(dir, &add);
    let again = "hall: 8 tokens were added already (addition evening)\n";
    assert_eq!((text.as_str(), code), (again, 0));
    let (text, code) = run(dir, &["sale", "tokens", "add", "hall", "9", "--id", "evening"]);
    assert!(code == 1 && text.contains("the addition of this id was of 8 tokens"), "{text}");
    let (text, code) = run(dir, &["sale", "tokens", "add", "nowhere", "9"]);
    assert!(code == 1 && text.contains("there is no such sale"), "{code}: {text}");
    // Without an id each addition is another one.
    for _ in 0..2 {
        let (added, code) = read(dir, &["sale", "tokens", "add", "hall", "4"]);
        assert!(code == 0 && added["id"].is_string(), "{added}");
    }
    let (shown, code) = read(dir, &["sale", "tokens", "show", "hall"]);
    let now = &shown["now"];
    assert_eq!((&now["by_hand"], &now["used"], code), (&json!(16), &json!(0), 0), "{shown}");
    assert_eq!(now["issued"], now["remaining"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_explained_moved_back_and_dropped_one_by_one() {
    if backends::is_foreign("not every fake moves messages back") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let redelivery = Redelivery { visibility: Duration::from_secs(1), max_receives: 1 };
    let options = Options { ephemeral: true, redelivery, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    let sqs = stores::sqs(&engine.endpoints().sqs);
    let send = async |url: &str, body: &str| {
        sqs.send_message().queue_url(url).message_body(body).send().await.unwrap();
    };
    let (text, code) = run(dir, &["dead-letters"]);
    assert_eq!(code, 0, "{text}");
    send(&engine.queues().sync.url, "not json").await;
    send(&engine.queues().load.url, r#"{"sale":"later"}"#).await;

    let [malformed] = letters(dir, "sync", 1).await.try_into().unwrap();
    assert_eq!(
        (&malformed["body"], &malformed["can_be_handled"]),
        (&json!("not json"), &json!(false))
    );
    let [early] = letters(dir, "load", 1).await.try_into().unwrap();
    assert_eq!((&early["sale"], &early["can_be_handled"]), (&json!("later"), &json!(false)));
    let (text, _) = run(dir, &["dead-letters"]);
    assert!(text.contains("there is no such sale: it fails each time"), "{text}");

    // Now that there is one, the message can be handled: it is not dropped, and moving helps.
    publish(&engine, &hall("later", 100, 1).unwrap()).await.unwrap();
    let id = early["message"].as_str().unwrap();
    let (text, code) = run(dir, &["dead-letters", "drop", "load", "--message", id]);
    assert!(code == 2 && text.contains("could still be handled"), "{code}: {text}");
    let (moved, code) = read(dir, &["dead-letters", "redrive", "load"]);
    assert_eq!((moved, code), (json!([{ "queue": "load", "moved": 1 }]), 0));
    letters(dir, "load", 0).await;

    // What is malformed comes back each time, until somebody throws it away.
    let (moved, _) = read(dir, &["dead-letters", "redrive"]);
    assert_eq!(moved[1], json!({ "queue": "sync", "moved": 1 }));
    let [again] = letters(dir, "sync", 1).await.try_into().unwrap();
    let (text, code) = run(dir, &["dead-letters", "drop", "sync", "--message", "another"]);
    assert!(code == 2 && text.contains("has no dead letter another"), "{code}: {text}");
    letters(dir, "sync", 1).await;
    let id = again["message"].as_str().unwrap();
    let (dropped, code) = read(dir, &["dead-letters", "drop", "sync", "--message", id]);
    assert_eq!((&dropped["body"], code), (&json!("not json"), 0));
    letters(dir, "sync", 0).await;
    letters(dir, "load", 0).await;
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_what_is_wrong_and_repairs_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (text, code) = run(dir, &["reconcile"]);
    assert!(code == 2 && text.contains("is onsale up running"), "{code}: {text}");
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    publish(&engine, &hall("hall", 100, 1).unwrap()).await.unwrap();
    let (text, code) = run(dir, &["stuck"]);
    assert_eq!((text.trim(), code), ("Nothing is stuck.", 0));
    let (text, code) = run(dir, &["reconcile", "--dry-run"]);
    assert_eq!((text.trim(), code), ("Redis and DynamoDB agree; nothing is due.", 0));

    let mut redis = backends::redis(&engine.endpoints().redis).await;
    let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    let (text, code) = run(dir, &["reconcile", "--dry-run"]);
    assert!(code == 1 && text.starts_with("not-loaded of sale hall"), "{code}: {text}");
    let (dry, code) = read(dir, &["reconcile", "--dry-run"]);
    assert_eq!((&dry["differences"][0]["outcome"], code), (&json!("found"), 1));
    assert_eq!(dry["report"], Value::Null);
    let (done, code) = read(dir, &["reconcile"]);
    assert_eq!((&done["differences"][0]["outcome"], code), (&json!("repaired"), 0));
    assert_eq!(done["report"]["loaded"], 1);
    let (text, code) = run(dir, &["reconcile", "--dry-run"]);
    assert_eq!(code, 0, "{text}");
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_the_environment_describes_is_looked_at_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    publish(&engine, &hall("hall", 100, 1).unwrap()).await.unwrap();

    let (text, code) = run_from_environment(dir, &["audit"]);
    assert!(code == 0 && text.starts_with("Audit of hall at "), "{code}: {text}");
    assert!(text.trim_end().ends_with("Clean."), "{text}");
    let (text, code) = run_from_environment(dir, &["stuck"]);
    assert_eq!((text.trim(), code), ("Nothing is stuck.", 0));
    let (text, code) = run_from_environment(dir, &["dead-letters"]);
    assert!(code == 0 && text.starts_with("expiry: 0 in "), "{code}: {text}");

    // Redis loses everything: the audit names it, the repair puts it right.
    let mut redis = backends::redis(&engine.endpoints().redis).await;
    let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    let (text, code) = run_from_environment(dir, &["audit", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["clean"], code), (&json!(false), 1), "{text}");
    let (text, code) = run_from_environment(dir, &["reconcile", "--dry-run"]);
    assert!(code == 1 && text.starts_with("not-loaded of sale hall"), "{code}: {text}");
    let (text, code) = run_from_environment(dir, &["reconcile"]);
    assert_eq!(code, 0, "{text}");
    let (text, code) = run_from_environment(dir, &["audit", "--sale", "hall"]);
    assert!(code == 0 && text.trim_end().ends_with("Clean."), "{code}: {text}");
    let (text, code) = run(dir, &["audit"]);
    assert_eq!(code, 0, "{text}");
    engine.stop().await.unwrap();
}

#[test]
fn an_environment_that_describes_no_engine_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    for command in ["audit", "reconcile", "stuck", "dead-letters"] {
        let mut run = Command::new(onsale());
        run.arg("--data-dir").arg(empty.path()).args([command, "--from-environment"]);
        let done = run.env_remove("ONSALE_REDIS_URL").output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("ONSALE_REDIS_URL must be set"), "{command}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_adds_lists_and_removes_rules_of_a_gate() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    publish(&engine, &hall("hall", 100, 1).unwrap()).await.unwrap();
    let rules = |arguments: &[&str]| read(dir, &[&["gate", "rules"], arguments].concat());

    let farm = ["add", "hall", "farm-7", "--address", "198.51.100.0/24", "--deny", "--text", "no"];
    assert_eq!(rules(&farm).1, 0);
    let (again, code) = rules(&farm);
    assert_eq!((&again["done"], code), (&json!(false), 1));
    let slow = ["add", "hall", "slow", "--buyer", "mallory", "--limit", "1/60", "--text", "wait"];
    assert_eq!(rules(&slow).1, 0);
    let (text, code) = run(dir, &["gate", "rules", "list", "hall"]);
    let shown = "farm-7: address 198.51.100.0/24: deny; refused 0; says “no”\n\
                 slow: buyer mallory: limit 1 in 60 s; refused 0; says “wait”\n\
                 buyer-requests (built in): refused 0\n";
    assert!(text.starts_with(shown) && code == 0, "{code}: {text}");
    let (listed, _) = rules(&["list", "hall"]);
    assert_eq!(listed["rules"][1]["action"], json!({ "limit": { "count": 1, "seconds": 60 } }));
    let (removed, code) = rules(&["remove", "hall", "farm-7"]);
    assert_eq!((&removed["done"], code), (&json!(true), 0));
    assert_eq!(rules(&["remove", "hall", "farm-7"]).1, 1);
    assert_eq!(rules(&["list", "hall"]).0["rules"].as_array().unwrap().len(), 1);

    // What means nothing is not carried out, and neither is what is about nobody or no sale.
    for (wrong, why) in [
        (["add", "hall", "x", "--buyer", "m", "--harder", "9", "--text", "x"].as_slice(), "1 to 8"),
        (&["add", "hall", "x", "--buyer", "m", "--deny", "--text", ""], "1 to 200 bytes"),
        (&["add", "hall", "buyer-requests", "--buyer", "m", "--deny", "--text", "x"], "built-in"),
        (&["add", "hall", "x", "--deny", "--text", "x"], "--buyer"),
        (&["add", "hall", "x", "--buyer", "m", "--text", "x"], "--deny"),
        (&["list", "nowhere"], "no sale nowhere"),
    ] {
        let (text, code) = run(dir, &[&["gate", "rules"], wrong].concat());
        assert!(code == 2 && text.contains(why), "{code}: {text}");
    }
    engine.stop().await.unwrap();
}
