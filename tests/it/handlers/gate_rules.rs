//! Limits and rules at the gate, as API Gateway's events meet them, over real servers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use engine::domain::admission::rules::{Action, MAX_RULES, Rule, RuleBook, Subject};
use engine::domain::basics::ids::{RuleId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::LimitSettings;
use engine::ports::{StoreError, Stored};
use serde_json::{Value, json};
use shared::dynamodb::{AddReply, RemoveReply};
use shared::http::edge::{SECRET_HEADER, VIEWER_HEADER};
use shared::runtime::app::App;
use shared::runtime::edge::EdgeSecrets;

use super::{Fixture, Got, Sender, best, hall, request, send};
use crate::backends;

/// Most age of the rules that a gate knows, as they promise.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A sale like the hall, with limits of its own.
fn limited(sale: &str, limits: Value) -> Value {
    let mut file = hall();
    (file["sale"], file["limits"]) = (json!(sale), limits);
    file["tiers"][0]["sections"][0]["rows"][0]["seats"]["count"] = json!(800);
    file
}

fn id(text: &str) -> SaleId {
    SaleId::new(text).unwrap()
}

fn rule(name: &str, subject: Subject, action: Action) -> Rule {
    let text = format!("{name} says no");
    Rule { rule: RuleId::new(name).unwrap(), subject, action, text, until: None }
}

fn buyer(text: &str) -> Subject {
    Subject::Buyer(UserId::new(text).unwrap())
}

/// Asks as a buyer from an address, with a device hint, and with a header that claims another address.
async fn ask(fixture: &Fixture, sale: &str, user: &str, from: &str, device: &str) -> Got {
    let path = format!("/sales/{sale}/admissions");
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": {
            "content-type": "application/json", "x-forwarded-for": "192.0.2.200",
            "x-device-hint": device,
        },
        "body": json!({ "tickets": 1 }).to_string(), "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "api", "stage": "$default", "timeEpoch": 0,
            "requestId": "r", "authorizer": { "jwt": { "claims": { "sub": user }, "scopes": null } },
            "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": from }
        }
    });
    send(&fixture.app, lambda_http::request::from_str(&event.to_string()).unwrap()).await
}

/// Asks as a buyer from an address, with headers that say what the edge says.
async fn ask_by(app: &App, user: &str, from: &str, secret: &str, viewer: &str) -> Got {
    let path = "/sales/hall/admissions";
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": {
            "content-type": "application/json", SECRET_HEADER: secret, VIEWER_HEADER: viewer,
        },
        "body": json!({ "tickets": 1 }).to_string(), "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "api", "stage": "$default", "timeEpoch": 0,
            "requestId": "r", "authorizer": { "jwt": { "claims": { "sub": user }, "scopes": null } },
            "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": from }
        }
    });
    send(app, lambda_http::request::from_str(&event.to_string()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_the_edge_an_address_is_the_viewers_and_past_it_no_header_counts() {
    const SECRET: &str = "0123456789abcdefghijklmnopqrstuv";
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let network = Subject::Address("203.0.113.0/24".parse().unwrap());
    let farm = rule("farm-7", network, Action::Deny);
    assert_eq!(fixture.app.ports.rules().add(&id("hall"), &farm).await, Ok(AddReply::Added));
    a_second_passes(&fixture).await;
    let edge = EdgeSecrets::new(vec![SECRET.to_owned()]).unwrap();
    let behind = fixture.behind_the_edge(edge).await;
    let (edge, denied, other) = ("198.51.100.1", "203.0.113.9", "192.0.2.1");
    ask_by(&behind, "a", edge, SECRET, denied).await.problem(403, "refused-by-rule");
    ask_by(&behind, "b", edge, SECRET, other).await.ok(201);
    // Past the edge nobody is answered, whatever else is said.
    for secret in ["", "0123456789abcdefghijklmnopqrstuX"] {
        let past = ask_by(&behind, "c", "203.0.113.9", secret, other).await;
        past.problem(403, "not-through-the-edge");
    }
    // Where there is no edge, no header says where a request came from.
    ask_by(&fixture.app, "d", "203.0.113.9", SECRET, other).await.problem(403, "refused-by-rule");
    ask_by(&fixture.app, "e", "192.0.2.1", SECRET, denied).await.ok(201);
}

/// Waits until whatever was written before is in force, by asking: no answer of that time is looked at.
async fn a_second_passes(fixture: &Fixture) {
    let since = Instant::now();
    while since.elapsed() <= MAX_AGE {
        fixture.get(Sender::Nobody, "/sales/hall").await.ok(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_is_in_force_a_second_after_it_was_added_and_no_longer_a_second_after_its_removal() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    fixture.publish(&limited("other", json!({}))).await.ok(200);
    let rules = fixture.app.ports.rules();
    let (hall, from) = (id("hall"), "198.51.100.7");
    ask(&fixture, "hall", "alice", from, "d").await.ok(201);

    let network = Subject::Address("198.51.100.0/24".parse().unwrap());
    let farm = rule("farm-7", network, Action::Deny);
    assert_eq!(rules.add(&hall, &farm).await, Ok(AddReply::Added));
    assert_eq!(rules.add(&hall, &farm).await, Ok(AddReply::Exists));
    a_second_passes(&fixture).await;
    let refused = ask(&fixture, "hall", "bob", from, "d").await.problem(403, "refused-by-rule");
    assert_eq!(
        (&refused["rule"], &refused["detail"]),
        (&json!("farm-7"), &json!("farm-7 says no"))
    );
    // It is of this sale, and of this network whatever a header says.
    ask(&fixture, "other", "bob", from, "d").await.ok(201);
    ask(&fixture, "hall", "carol", "192.0.2.1", "d").await.ok(201);
    ask(&fixture, "hall", "dave", "192.0.2.200", "d").await.ok(201);
    // What refuses first is what a buyer can do nothing about.
    let mut paused = super::hall();
    paused["state"] = json!("paused");
    fixture.publish(&paused).await.ok(200);
    ask(&fixture, "hall", "bob", from, "d").await.problem(403, "sale-closed");
    fixture.publish(&super::hall()).await.ok(200);

    let refusals = fixture.app.ports.counters().refusals(&hall).await.unwrap();
    assert_eq!(refusals, [("farm-7".to_owned(), 1)].into());
    assert_eq!(rules.read(&hall).await, Ok(vec![farm.clone()]));
    assert_eq!(rules.remove(&hall, &farm.rule).await, Ok(RemoveReply::Removed));
    assert_eq!(rules.remove(&hall, &farm.rule).await, Ok(RemoveReply::Unknown));
    a_second_passes(&fixture).await;
    ask(&fixture, "hall", "bob", from, "d").await.ok(201);
    // A process that starts now knows the rules as well.
    let denied = rule("bob", buyer("bob"), Action::Deny);
    assert_eq!(rules.add(&hall, &denied).await, Ok(AddReply::Added));
    let another = fixture.another_process().await;
    let body = json!({ "tickets": 1 }).to_string();
    let headers = json!({ "content-type": "application/json" });
    let asks = request(Sender::Buyer("bob"), "POST", "/sales/hall/admissions", headers, &body);
    send(&another, asks).await.problem(403, "refused-by-rule");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_account_from_many_addresses_is_bounded_and_others_there_are_not() {
    let fixture = Fixture::start().await;
    fixture.publish(&limited("many", json!({ "asks_per_buyer": 40 }))).await.ok(200);
    let from = |index: u32| format!("198.51.{}.{}", index / 250, index % 250);
    for index in 0..40 {
        // It waits, or is admitted: it passes.
        let got = ask(&fixture, "many", "bot", &from(index), "d").await;
        assert_ne!(got.body["type"], json!("/problems/refused-by-rule"), "{index}");
    }
    for index in 40..100 {
        let got = ask(&fixture, "many", "bot", &from(index), "d").await;
        let refused = got.problem(403, "refused-by-rule");
        assert_eq!(refused["rule"], "asks-in-sale");
    }
    ask(&fixture, "many", "alice", &from(1), "d").await.ok(201);
    let refusals = fixture.app.ports.counters().refusals(&id("many")).await.unwrap();
    assert_eq!(refusals, [("asks-in-sale".to_owned(), 60)].into());
    // If Redis forgets, the count begins again.
    fixture.lose_redis().await;
    let got = ask(&fixture, "many", "bot", &from(1), "d").await;
    assert_ne!(got.body["type"], json!("/problems/refused-by-rule"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cancels_and_tries_again_comes_to_an_end() {
    let fixture = Fixture::start().await;
    fixture.publish(&limited("hoard", json!({ "given_up_per_buyer": 2 }))).await.ok(200);
    for attempt in 0..2 {
        let made = fixture.buy("mallory", "hoard", best("vip", 2)).await.ok(201);
        let target = format!("/orders/{}/cancel", made["order"].as_str().unwrap());
        // A repeated cancellation gives nothing up.
        for _ in 0..3 {
            let got = fixture.json(Sender::Buyer("mallory"), "POST", &target, &json!({})).await;
            assert_eq!(got.ok(200)["state"], "cancelled", "{attempt}");
        }
    }
    let refused = ask(&fixture, "hoard", "mallory", "192.0.2.1", "d").await;
    assert_eq!(refused.problem(403, "refused-by-rule")["rule"], "given-up-in-sale");
    ask(&fixture, "hoard", "alice", "192.0.2.1", "d").await.ok(201);
}

/// The counts of a request of each of these clients, at one time.
async fn counted(
    fixture: &Fixture,
    sale: &SaleId,
    clients: &[(String, &str)],
    now: Timestamp,
) -> Stored<Vec<Vec<u64>>> {
    let (book, limits) = (RuleBook::default(), LimitSettings::default());
    let mut counts = Vec::new();
    for (user, address) in clients {
        let client = engine::domain::admission::rules::Client {
            buyer: UserId::new(user.as_str()).unwrap(),
            address: Some(address.parse().unwrap()),
            device: None,
        };
        let plan = book.plan(&limits, &client, now).unwrap();
        counts.push(
            fixture.app.ports.counters().count(sale, &client.buyer, &plan.checks, now).await?,
        );
    }
    Ok(counts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_behind_one_address_are_counted_together_in_a_window_and_a_sale() {
    let fixture = Fixture::start().await;
    let (hall, other) = (id("hall"), id("other"));
    let window = |index: i64| Timestamp::from_ms(index * 60_000);
    let clients: Vec<(String, &str)> =
        (0..1000).map(|index| (format!("bot-{index}"), "198.51.100.9")).collect();
    let counts = counted(&fixture, &hall, &clients, window(7)).await.unwrap();
    for (index, counts) in (1_u64..).zip(&counts) {
        // Buyer, attempts, given up; the address last.
        assert_eq!(counts, &[1, 1, 0, index]);
    }
    let one = &clients[..1];
    for (sale, address, now, expected) in [
        (&hall, "198.51.100.9", window(7), vec![2, 2, 0, 1001]),
        (&hall, "198.51.100.10", window(7), vec![3, 3, 0, 1]),
        (&hall, "198.51.100.9", window(8), vec![1, 4, 0, 1]),
        (&other, "198.51.100.9", window(7), vec![1, 1, 0, 1]),
    ] {
        let client = [(one[0].0.clone(), address)];
        assert_eq!(counted(&fixture, sale, &client, now).await, Ok(vec![expected]));
    }
    let mut connection = backends::redis(&fixture._stack.endpoints().redis_url).await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    let hashed: BTreeSet<&String> = keys.iter().filter(|key| key.contains(":hashed:")).collect();
    assert_eq!(hashed.len(), 4, "of two addresses, two windows and two sales: {hashed:?}");
    for key in &keys {
        assert!(!key.contains("198.51"), "{key}");
        let ttl: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
        let most = if key.contains(":asks:") { 86_400_000 } else { 60_000 };
        assert!((1..=most).contains(&ttl), "{key} lives for {ttl} ms");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_has_at_most_a_thousand_rules_and_they_are_read_when_they_change_only() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let (rules, hall) = (fixture.app.ports.rules(), id("hall"));
    for index in 0..MAX_RULES {
        let subject = match index % 3 {
            0 => buyer(&format!("bot-{index}")),
            1 => Subject::Address(
                format!("10.{}.{}.0/24", index / 250, index % 250).parse().unwrap(),
            ),
            _ => Subject::Device(format!("device-{index}").parse().unwrap()),
        };
        let added = rules.add(&hall, &rule(&format!("r{index}"), subject, Action::Deny)).await;
        assert_eq!(added, Ok(AddReply::Added), "{index}");
    }
    let more = rule("more", buyer("x"), Action::Deny);
    assert_eq!(rules.add(&hall, &more).await, Ok(AddReply::Full));
    a_second_passes(&fixture).await;
    for (user, from, device, by) in [
        ("bot-999", "192.0.2.1", "d", "r999"),
        ("alice", "10.3.247.9", "d", "r997"),
        ("alice", "192.0.2.1", "device-998", "r998"),
    ] {
        let got = ask(&fixture, "hall", user, from, device).await;
        assert_eq!(got.problem(403, "refused-by-rule")["rule"], by);
    }
    ask(&fixture, "hall", "alice", "192.0.2.1", "d").await.ok(201);
    let book = rules.book(&hall).await.unwrap();
    a_second_passes(&fixture).await;
    assert!(std::sync::Arc::ptr_eq(&book, &rules.book(&hall).await.unwrap()), "nothing changed");
    assert_eq!(rules.remove(&hall, &RuleId::new("r1").unwrap()).await, Ok(RemoveReply::Removed));
    assert_eq!(rules.add(&hall, &more).await, Ok(AddReply::Added));
    a_second_passes(&fixture).await;
    assert!(!std::sync::Arc::ptr_eq(&book, &rules.book(&hall).await.unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_store_nobody_passes_and_nothing_is_said_of_whom() {
    let mut fixture = Fixture::start().await;
    fixture.lose_dynamodb().await;
    let lost = fixture.app.ports.rules().book(&id("hall")).await;
    assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
}
