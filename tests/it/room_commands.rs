//! `onsale sale codes` and `onsale room export`, the program against an engine that runs on a data directory.

use std::collections::BTreeSet;
use std::fs;

use bench::selling::{hall, publish};
use engine::domain::sale::{RoomGroup, RoomSettings};
use local::up::{Engine, Options, beacon_config};
use serde_json::json;

use crate::backends;
use crate::program::{output, read, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_are_made_brought_and_counted_and_a_room_is_exported() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    let mut file = hall("hall", 100, 1).unwrap();
    let group = |name: &str, codes| RoomGroup { group: name.parse().unwrap(), share: 1, codes };
    let groups = vec![group("all", false), group("fans", true), group("press", true)];
    // Its draw is far off.
    file.opens_at = file.closes_at.plus_seconds(-86_400);
    file.room = Some(RoomSettings { groups, ..RoomSettings::default() });
    publish(&engine, &file).await.unwrap();
    publish(&engine, &hall("plain", 100, 1).unwrap()).await.unwrap();

    let (printed, _, code) =
        output(dir, &["sale", "codes", "add", "hall", "fans", "--count", "20"]);
    let made: BTreeSet<&str> = printed.lines().collect();
    assert_eq!((code, made.len()), (0, 20), "{printed}");
    assert!(made.iter().all(|code| code.len() == 19), "{printed}");
    let list = dir.join("codes.txt");
    fs::write(
        &list,
        format!("PRESS-2026\n\npress 2027 xyz\n{}\n", printed.lines().next().unwrap()),
    )
    .unwrap();
    let add = ["sale", "codes", "add", "hall", "press", list.to_str().unwrap(), "--uses", "500"];
    for (added, known) in [(3, 0), (0, 3)] {
        let (said, code) = read(dir, &add);
        assert_eq!((&said["added"], &said["known"], code), (&json!(added), &json!(known), 0));
        assert_eq!(said["codes"], json!([]), "what was brought is not printed");
    }
    let (shown, code) = read(dir, &["sale", "codes", "show", "hall"]);
    let counted = json!([
        { "group": "fans", "codes": 20, "uses": 20, "used": 0 },
        { "group": "press", "codes": 3, "uses": 1500, "used": 0 }
    ]);
    assert_eq!((&shown["groups"], code), (&counted, 0));

    // What is not there, or asks for no code, is refused; and so is a file with something else in it.
    for (sale, group) in [("hall", "all"), ("hall", "club"), ("plain", "all"), ("nowhere", "all")] {
        let (said, code) = run(dir, &["sale", "codes", "add", sale, group, "--count", "1"]);
        assert!(code == 1 && said.contains("joined with a code"), "{sale} {group}: {said}");
    }
    assert_eq!(run(dir, &["sale", "codes", "show", "plain"]).1, 1);
    fs::write(&list, "PRESS-2028\nnot a code!\n").unwrap();
    let (said, code) = run(dir, &["sale", "codes", "add", "hall", "press", list.to_str().unwrap()]);
    assert!(code == 1 && said.contains("line 2"), "{said}");
    assert_eq!(run(dir, &["sale", "codes", "add", "hall", "fans"]).1, 2, "neither file nor count");
    let (shown, _) = read(dir, &["sale", "codes", "show", "hall"]);
    assert_eq!(shown["groups"], counted, "nothing of it was written");

    let published = dir.join("published");
    let published = published.to_str().unwrap();
    let (said, code) = read(dir, &["room", "export", "hall", published]);
    let exported = json!({ "records": 1, "chunks": 0, "admissions": 0, "orders": 0 });
    assert_eq!((&said["exported"], code), (&exported, 0));
    let chain = beacon_config("").chains.others()[0].to_string();
    let (said, code) = read(dir, &["verify-draw", published, "--chain", &chain]);
    let found = (&said["verdict"], &said["because"], code);
    assert_eq!(found, (&json!("not_witnessed"), &json!("not_drawn"), 3), "{said}");
    for sale in ["hall", "plain", "nowhere"] {
        let (said, code) = run(dir, &["room", "erase", sale]);
        assert!(code == 1 && said.contains("not archived"), "{said}");
    }
    let (said, code) = run(dir, &["room", "export", "plain", published]);
    assert_eq!((said.as_str(), code), ("plain: the sale has no waiting room\n", 1));
}
