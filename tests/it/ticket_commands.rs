//! `onsale ticket verify`, the program: offline by files of keys and lists, each reason by its name; and with the keys of
//! an engine.

use std::fs;
use std::path::Path;

use engine::domain::basics::ids::{SaleId, SeatName, TierId};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::Issue;
use engine::domain::ticket::{RevokedOrder, RevokedPage, TicketNumber};
use local::up::{Engine, Options};
use serde_json::{Value, json};
use shared::tickets::{RevokedList, TicketCode, TicketKeys, TicketSecrets};

use crate::backends;
use crate::program::{read, run};

fn keys(deployment: &str, secret: &str) -> TicketKeys {
    TicketKeys::new(deployment, &TicketSecrets::new(vec![secret.repeat(32)]).unwrap())
}

fn code(order: &str, ticket: u8, issue: u32) -> TicketCode {
    TicketCode {
        deployment: "prod-onsale".to_owned(),
        sale: SaleId::new("hall").unwrap(),
        tier: TierId::new("stalls").unwrap(),
        seat: Some(SeatName::new("A-1").unwrap()),
        journey: None,
        order: order.parse().unwrap(),
        ticket: TicketNumber::try_from(ticket).unwrap(),
        issue: Issue::try_from(issue).unwrap(),
    }
}

/// The verdict on a code, and the exit code.
fn verify(dir: &Path, code: &str, more: &[&str]) -> (String, i32) {
    let (said, exit) = read(dir, &[&["ticket", "verify", code], more].concat());
    (said["verdict"].as_str().unwrap_or_default().to_owned(), exit)
}

#[test]
fn every_reason_is_named_without_a_network() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ours = keys("prod-onsale", "a");
    let file = |name: &str, text: String| {
        fs::write(dir.join(name), text).unwrap();
        dir.join(name).to_str().unwrap().to_owned()
    };
    let public = file("keys.json", serde_json::to_string(ours.public()).unwrap());
    let sale = SaleId::new("hall").unwrap();
    let of = |order: &str, tickets: Vec<(u8, u32)>| RevokedOrder {
        order: order.parse().unwrap(),
        tickets: tickets
            .into_iter()
            .map(|(ticket, lowest)| {
                (TicketNumber::try_from(ticket).unwrap(), Issue::try_from(lowest).ok())
            })
            .collect(),
    };
    let pages = [
        (None, RevokedPage { orders: vec![of("5", vec![(1, 0), (2, 3)])], next: "9".parse().ok() }),
        ("9".parse().ok(), RevokedPage { orders: vec![of("9", vec![(1, 0)])], next: None }),
    ];
    let now = Timestamp::from_ms(1_800_000_000_000);
    let pages: Vec<String> = pages
        .iter()
        .map(|(from, page)| {
            let list = RevokedList::new("prod-onsale", &sale, *from, page, now);
            json!({ "list": ours.sign_list(&list).unwrap() }).to_string()
        })
        .collect();
    let revoked = file("revoked.jsonl", pages.join("\n"));
    let first = file("first.jsonl", pages[0].clone());
    let signed = |code: &TicketCode| ours.sign_code(code).unwrap();
    let foreign = keys("prod-onsale", "b").sign_code(&code("6", 1, 1)).unwrap();
    let staging = TicketCode { deployment: "dev-onsale".to_owned(), ..code("6", 1, 1) };
    let good = signed(&code("6", 1, 1));
    // Another bit of the signature, in a letter whose bits all count.
    let (said, signature) = good.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let forged = format!("{said}.{other}{}", &signature[1..]);
    for (code, list, verdict, exit) in [
        (good.clone(), Some(&revoked), "valid", 0),
        (good.clone(), None, "valid", 0),
        (signed(&code("5", 1, 7)), Some(&revoked), "revoked", 1),
        (signed(&code("5", 2, 2)), Some(&revoked), "old-issue", 1),
        (signed(&code("5", 2, 3)), Some(&revoked), "valid", 0),
        (signed(&code("9", 1, 1)), Some(&revoked), "revoked", 1),
        (signed(&code("9", 1, 1)), Some(&first), "not-listed", 1),
        (forged, Some(&revoked), "bad-signature", 1),
        (foreign, Some(&revoked), "other-deployment", 1),
        (signed(&staging), Some(&revoked), "other-deployment", 1),
        ("alice".to_owned(), Some(&revoked), "malformed", 1),
    ] {
        let mut more = vec!["--keys", &public];
        more.extend(list.iter().flat_map(|list| ["--revoked", list.as_str()]));
        assert_eq!(verify(dir, &code, &more), (verdict.to_owned(), exit), "{code}");
    }
    let (said, exit) = run(dir, &["ticket", "verify", &good, "--keys", &public]);
    assert!(exit == 0 && said.contains("valid: hall, tier stalls, seat A-1: order 6"), "{said}");
    // What is no document of keys or no list is a mistake of who asks, not of the ticket.
    let nonsense = file("nonsense", "{}".to_owned());
    for more in [["--keys", &nonsense], ["--keys", "nowhere"], ["--revoked", &nonsense]] {
        let with_keys = if more[0] == "--keys" { vec![] } else { vec!["--keys", public.as_str()] };
        let arguments = [&["ticket", "verify", good.as_str()], &more[..], &with_keys].concat();
        assert_eq!(run(dir, &arguments).1, 2, "{more:?}");
    }
    assert_eq!(run(dir, &["ticket", "verify", &good]).1, 2, "no engine has run here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_code_of_an_engine_is_verified_with_its_own_keys() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    let keys = &engine.app().tickets;
    let code = code("6", 1, 1);
    let code = TicketCode { deployment: keys.deployment().to_owned(), ..code };
    let code = keys.sign_code(&code).unwrap();
    assert_eq!(verify(dir, &code, &[]), ("valid".to_owned(), 0));
    let url = format!("{}/ticket-keys", engine.url());
    let shown: Value = reqwest::get(&url).await.unwrap().json().await.unwrap();
    assert_eq!(shown["deployment"], keys.deployment());
    assert_eq!(verify(dir, &code, &["--keys", &url]), ("valid".to_owned(), 0));
    // Another engine has other keys.
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Options { ephemeral: true, ..Options::persistent(elsewhere.path()) };
    let other = Engine::start(backends::engine(other)).await.unwrap();
    let url = format!("{}/ticket-keys", other.url());
    assert_eq!(verify(dir, &code, &["--keys", &url]), ("other-deployment".to_owned(), 1));
}
