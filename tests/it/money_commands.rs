//! `onsale pay`, `orders refund`, `sale cancel`, `events` and `money`, the program against an engine that runs on a data
//! directory: money comes and goes back, and the log tells.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use local::up::{Engine, Options};
use reqwest::Method;
use serde_json::{Value, json};

use crate::backends;
use crate::program::{read_lines, run};

pub async fn send(engine: &Engine, method: Method, path: &str, token: &str, body: &Value) -> Value {
    let url = format!("{}{path}", engine.url());
    let request = reqwest::Client::new().request(method, url).bearer_auth(token).json(body);
    let reply = request.send().await.unwrap();
    assert!(reply.status().is_success(), "{path}: {reply:?}");
    reply.json().await.unwrap()
}

/// An engine on a data directory with a hall of so many places for 25.00 each; `more` goes into its sale file.
pub async fn hall(dir: &Path, places: u32, more: &Value) -> Engine {
    let options = Options { ephemeral: true, ..Options::persistent(dir) };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    let mut file = json!({
        "sale": "hall", "title": "Hall", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
        "tiers": [{ "tier": "floor", "name": "Floor", "price_minor": 2500, "general_admission": places }]
    });
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let operator = engine.operator_token().unwrap();
    send(&engine, Method::PUT, "/sales/hall", &operator, &file).await;
    engine
}

/// Somebody orders tickets of the hall: the order's number.
pub async fn order(engine: &Engine, user: &str, tickets: u16) -> String {
    let token = engine.token(user).unwrap();
    let body = json!({ "tickets": tickets });
    let path = "/sales/hall/admissions";
    let admission = send(engine, Method::POST, path, &token, &body).await;
    let lines = json!([{ "tier": "floor", "best": { "count": tickets } }]);
    let body = json!({ "admission": admission["token"], "lines": lines });
    let order = send(engine, Method::POST, "/sales/hall/orders", &token, &body).await;
    order["order"].as_str().unwrap().to_owned()
}

/// The kinds of what the log tells of an order, in its order.
fn told(dir: &Path, order: &str) -> Vec<String> {
    let (facts, code) = read_lines(dir, &["events", "tail", "--all", "--once"]);
    assert_eq!(code, 0);
    let of_order = facts.iter().filter(|fact| fact["order"] == order);
    of_order.map(|fact| fact["kind"].as_str().unwrap().to_owned()).collect()
}

/// A payout is booked once by its key; a merchant is paid no more than it has.
fn posting_is_booked_once(dir: &Path) {
    let payout = |amount| {
        ["money", "post", "payout", "provider:stripe", amount, "EUR", "--key", "po_1"]
            .map(str::to_owned)
    };
    let post = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (said, code) = read_lines(dir, &arguments);
        (said.into_iter().next().unwrap_or_default(), code)
    };
    let (first, code) = post(&payout("1200"));
    assert_eq!((&first["is_new"], &first["from"], code), (&json!(true), &json!("bank"), 0));
    let (again, code) = post(&payout("1200"));
    assert_eq!((&again["is_new"], code), (&json!(false), 0), "{again}");
    let (other, code) = post(&payout("1201"));
    let differs = "a posting of this key has been made, and moves something else";
    assert_eq!((&other["refused"], code), (&json!(differs), 1));
    for nothing in ["0", "-5"] {
        assert_eq!(run(dir, &payout(nothing).each_ref().map(String::as_str)).1, 2, "{nothing}");
    }
    let settle = ["money", "post", "settlement", "merchant:opera:hall", "1", "EUR", "--key", "s"];
    let (short, code) = read_lines(dir, &settle);
    assert_eq!((&short[0]["refused"], code), (&json!("the account has only 0"), 1));
    let (debts, code) = read_lines(dir, &["money", "debts"]);
    assert_eq!((debts, code), (vec![json!({ "debts": [] })], 0), "nobody owes anything");
    let wrong = ["money", "post", "settlement", "provider:stripe", "1", "EUR", "--key", "s"];
    assert_eq!(run(dir, &wrong).1, 2);
    let (bank, code) = read_lines(dir, &["money", "account", "bank"]);
    assert_eq!((&bank[0]["has"][0]["balance_minor"], code), (&json!(-1200), 0));
}

/// Waits until the command says that alice has these points, all of them by one order.
async fn has_points(dir: &Path, order: &str, points: u64) {
    let until = Instant::now() + Duration::from_secs(90);
    let given = json!([{ "order": order, "points": points, "growth": points / 2 }]);
    let orders = if points == 0 { json!([]) } else { given };
    let points = json!({ "points": points, "growth": points / 2, "orders": orders });
    let expected = json!({ "buyer": "alice", "wallets": [], "points": points });
    loop {
        let (found, code) = read_lines(dir, &["money", "buyer", "alice"]);
        assert_eq!(code, 0);
        if found == [expected.clone()] {
            break;
        }
        assert!(Instant::now() < until, "{found:?} instead of {expected}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_are_refunded_and_a_sale_is_cancelled_by_commands_and_the_log_tells() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let terms = json!({
        "merchant": { "merchant": "opera", "commission_basis_points": 1000 },
        "points": { "per_minor": 100, "points": 2, "growth": 1 }
    });
    let engine = hall(dir, 20, &terms).await;
    let operator = engine.operator_token().unwrap();
    let (paid, pending) = (order(&engine, "alice", 2).await, order(&engine, "bob", 1).await);
    assert_eq!(run(dir, &["pay", "--order", &paid]).1, 0);

    has_points(dir, &paid, 100).await;
    let refund = ["orders", "refund", &paid, "--ticket", "floor:floor-1"];
    let (refunds, code) = read_lines(dir, &refund);
    assert_eq!((&refunds[0]["amount_minor"], &refunds[0]["number"]), (&json!(2500), &json!(1)));
    assert_eq!(code, 0);
    // The same again is the same; without its number it is another one, of a ticket that is gone.
    assert_eq!(read_lines(dir, &[&refund[..], &["--number", "1"]].concat()).1, 0);
    let (refused, code) = read_lines(dir, &refund);
    assert_eq!(code, 1, "{refused:?}");
    assert_eq!(refused[0]["refused"], "ticket floor-1 of tier floor is refunded already");
    let (refused, code) = read_lines(dir, &["orders", "refund", &pending, "--all"]);
    assert_eq!((refused[0]["refused"].as_str(), code), (Some("the order is pending"), 1));

    assert_eq!(run(dir, &["sale", "cancel", "hall"]).1, 2, "it is not confirmed");
    assert_eq!(run(dir, &["sale", "cancel", "nowhere", "--yes"]).1, 1);
    let (cancelled, code) = read_lines(dir, &["sale", "cancel", "hall", "--yes"]);
    let said = &cancelled[0];
    let counts = ["refunded", "tickets", "ended"].map(|name| said[name].as_u64().unwrap());
    assert_eq!((counts, code, &said["left"]), ([1, 1, 1], 0, &json!([])), "{said}");
    let shown = send(&engine, Method::GET, "/sales/hall", &operator, &json!({})).await;
    assert_eq!(shown["state"], "cancelled");

    // The second refund of an order is asked for a minute after the first.
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        let mut found = told(dir, &paid);
        found.sort_unstable();
        if found == ["made", "paid", "refund_made", "refund_made", "refunded", "refunded"] {
            break;
        }
        assert!(Instant::now() < until, "{found:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    has_points(dir, &paid, 0).await;
    let (disputes, code) = read_lines(dir, &["money", "disputes", "--over"]);
    assert_eq!((&disputes[0], code), (&json!({ "disputes": [] }), 0));
    // What a cancelled order tells is settled at its deadline.
    let bob = engine.token("bob").unwrap();
    let shown = send(&engine, Method::GET, &format!("/orders/{pending}"), &bob, &json!({})).await;
    assert_eq!(shown["state"], "cancelled");
    let (moved, code) =
        read_lines(dir, &["events", "seat", "--sale", "hall", "--tier", "floor", "floor-1"]);
    let kinds: Vec<&str> = moved.iter().map(|fact| fact["kind"].as_str().unwrap()).collect();
    assert_eq!((&kinds[..3], code), (&["made", "paid", "refund_made"][..], 0), "{moved:?}");

    let (statement, code) = read_lines(dir, &["money", "sale", "hall"]);
    let moved = statement[0]["moved"].as_array().unwrap().iter();
    let moved: BTreeMap<&str, i64> = moved
        .map(|one| (one["code"].as_str().unwrap(), one["amount_minor"].as_i64().unwrap()))
        .collect();
    let expected = [
        ("commission", 500),
        ("commission_back", 500),
        ("refund", 4500),
        ("sale", 4500),
        ("sent_back", 5000),
    ];
    assert_eq!((moved, code), (expected.into(), 0), "{statement:?}");
    let left = statement[0]["left"].as_array().unwrap();
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(left.iter().all(|account| account["balance_minor"] == 0), "{left:?}");
    for account in ["merchant:opera:hall", "fees", "owed", "provider:stripe"] {
        let (found, code) = read_lines(dir, &["money", "account", account]);
        let of_sale = left.iter().find(|of_sale| of_sale["account"] == account).unwrap();
        assert_eq!((&found[0]["has"], code), (&json!([of_sale]), 0), "{account}");
    }
    assert_eq!(
        read_lines(dir, &["money", "account", "merchant:nobody:hall"]).0[0]["has"],
        json!([])
    );
    assert_eq!(run(dir, &["money", "account", "fee"]).1, 2);
    posting_is_booked_once(dir);
    assert_eq!(run(dir, &["money", "sale", "nowhere"]).1, 2);
    engine.stop().await.unwrap();
}
