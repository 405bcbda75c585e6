//! The events in `tests/events/`: made here, kept there for everybody, and sent by `cargo lambda invoke`
//! (tests/it/lambda/watch.rs). `ONSALE_WRITE_EVENTS=1` writes them anew.

use std::collections::BTreeMap;
use std::fs;

use engine::domain::ids::{SaleId, UserId};
use engine::domain::number::{Mint, OrderNumber};
use engine::domain::time::Timestamp;
use local::environment::{SAMPLE_KEY, SAMPLE_SECRET};
use serde_json::{Value, json};
use shared::http::tokens::{AdmissionKeys, Grant};
use shared::providers::stripe::signature;

use super::event::{Request, Sender, batch, schedule};
use super::rie::{FUNCTIONS, root};

const SALE: &str = "sample";
const BUYER: &str = "1001";
const SECOND_BUYER: &str = "1002";
const TICKETS: u16 = 2;
const PRICE_MINOR: i64 = 2500;

/// The time at which the events say that they were made.
fn made_at() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

/// A row of the table in `tests/events/README.md`.
pub struct Listed {
    pub file: String,
    pub function: String,
    pub answer: String,
}

/// The table.
pub fn listed() -> Vec<Listed> {
    let page = fs::read_to_string(root().join("tests/events/README.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [file, function, answer, ""] = cells[..] else { panic!("{row}") };
        Listed { file: file.to_owned(), function: function.to_owned(), answer: answer.to_owned() }
    };
    rows.map(row).collect()
}

/// A small hall that is on sale until 2100.
fn sale() -> Value {
    let row = |row: &str| json!({ "row": row, "seats": { "prefix": format!("{row}-"), "first": 1, "count": 10 } });
    json!({
        "sale": SALE, "title": "A small hall", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 1 },
        "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": PRICE_MINOR,
            "sections": [{ "section": "A", "rows": [row("A"), row("B"), row("C")] }] }],
    })
}

/// The order that a buyer's admission is for.
fn number(buyer: &str) -> OrderNumber {
    Mint::new(7).mint(made_at(), &UserId::new(buyer).unwrap())
}

/// An order with an admission that is signed with `key`.
fn order(buyer: &str, key: &[u8]) -> Value {
    let grant = Grant {
        sale: SaleId::new(SALE).unwrap(),
        user: UserId::new(buyer).unwrap(),
        order: number(buyer),
        tickets: TICKETS,
        expires_at: "2100-01-01T00:00:00Z".parse().unwrap(),
    };
    let token = AdmissionKeys::new([(SAMPLE_KEY.0, key)]).sign(&grant, made_at()).unwrap();
    json!({ "admission": token,
        "lines": [{ "tier": "hall", "best": { "count": TICKETS, "together": "required" } }] })
}

/// The provider's callback for the first order, signed with `secret`.
fn callback(secret: &[u8]) -> Request<'static> {
    let event = json!({
        "id": "evt_sample", "object": "event", "type": "payment_intent.succeeded",
        "created": made_at().ms() / 1000,
        "data": { "object": {
            "id": "pi_sample", "object": "payment_intent", "status": "succeeded",
            "amount_received": PRICE_MINOR * i64::from(TICKETS), "currency": "eur",
            "metadata": { "order": number(BUYER) },
        } },
    });
    let body = event.to_string();
    let signature = signature::sign(secret, body.as_bytes(), made_at());
    let headers =
        vec![("content-type", "application/json".to_owned()), ("stripe-signature", signature)];
    let target = "/payments/stripe/callback".to_owned();
    Request { sender: Sender::Nobody, method: "POST", target, headers, body }
}

/// Every event by the name of its file.
fn events() -> BTreeMap<&'static str, Value> {
    let put = |sender| Request::json(sender, "PUT", "/sales/sample", &sale());
    let get = |target: &str| Request::get(Sender::Nobody, target);
    let admit = |sender, sale: &str| {
        let target = format!("/sales/{sale}/admissions");
        Request::json(sender, "POST", target, &json!({ "tickets": TICKETS }))
    };
    let reserve = |buyer, key| {
        Request::json(Sender::Buyer(buyer), "POST", "/sales/sample/orders", &order(buyer, key))
    };
    let cancel = |buyer| {
        let target = format!("/orders/{}/cancel", number(buyer));
        Request { method: "POST", ..Request::get(Sender::Buyer(buyer), target) }
    };
    let show = Request::get(Sender::Buyer(BUYER), format!("/orders/{}", number(BUYER)));
    let list = Request::get(Sender::Buyer(BUYER), "/orders?limit=10");
    let key = SAMPLE_KEY.1;
    let forged = b"another key, which no function has";
    let (sales, show_sale, show_order) = ("GET /sales", "GET /sales/{sale}", "GET /orders/{order}");
    let (publish, availability) = ("PUT /sales/{sale}", "GET /sales/{sale}/availability");
    let (gate, make) = ("POST /sales/{sale}/admissions", "POST /sales/{sale}/orders");
    let (give_up, pay) = ("POST /orders/{order}/cancel", "POST /payments/{provider}/callback");
    let count = json!({ "order": number(BUYER) }).to_string();
    let expiry =
        json!({ "sale": SALE, "order": number(SECOND_BUYER), "due_at": "2026-11-21T10:15:00Z" });
    let refund = json!({ "provider": "stripe", "payment": "pi_unknown", "order": number(BUYER),
        "amount_minor": 1, "currency": "EUR", "reason": "wrong_amount" });
    BTreeMap::from([
        ("sales-publish.json", put(Sender::Operator).event(publish)),
        ("sales-publish-unsigned.json", put(Sender::Nobody).event(publish)),
        ("sales-list.json", get("/sales").event(sales)),
        ("sales-show.json", get("/sales/sample").event(show_sale)),
        ("sales-availability.json", get("/sales/sample/availability").event(availability)),
        ("sales-openapi.json", get("/openapi.json").event("GET /openapi.json")),
        ("token-gate.json", admit(Sender::Buyer(BUYER), SALE).event(gate)),
        ("token-gate-anonymous.json", admit(Sender::Nobody, SALE).event(gate)),
        ("token-gate-no-such-sale.json", admit(Sender::Buyer(BUYER), "nowhere").event(gate)),
        ("reserve.json", reserve(BUYER, key).event(make)),
        ("reserve-second.json", reserve(SECOND_BUYER, key).event(make)),
        ("reserve-forged.json", reserve(BUYER, forged).event(make)),
        ("orders-show.json", show.event(show_order)),
        ("orders-list.json", list.event("GET /orders")),
        ("pay-callback.json", callback(SAMPLE_SECRET).event(pay)),
        ("pay-callback-forged.json", callback(forged).event(pay)),
        ("cancel.json", cancel(SECOND_BUYER).event(give_up)),
        ("cancel-paid.json", cancel(BUYER).event(give_up)),
        ("sync-db.json", batch("sync", std::slice::from_ref(&count))),
        ("sync-db-partial.json", batch("sync", &[count, "no message at all".to_owned()])),
        ("expire-orders.json", batch("expiry", &[expiry.to_string()])),
        ("load-sale.json", batch("load", &[json!({ "sale": SALE }).to_string()])),
        ("refund.json", batch("refund", &[refund.to_string()])),
        ("reconcile.json", schedule()),
    ])
}

#[test]
fn the_files_are_the_events_and_the_table_lists_them() {
    let directory = root().join("tests/events");
    let events = events();
    for (file, event) in &events {
        let path = directory.join(file);
        let text = format!("{}\n", serde_json::to_string_pretty(event).unwrap());
        if std::env::var("ONSALE_WRITE_EVENTS").is_ok_and(|write| write == "1") {
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == text, "{file} is out of date: ONSALE_WRITE_EVENTS=1 writes it anew");
    }
    let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    files.retain(|name| name != "README.md");
    files.sort_unstable();
    assert_eq!(files, events.keys().copied().collect::<Vec<_>>());
    let rows = listed();
    let mut listed: Vec<&str> = rows.iter().map(|row| row.file.as_str()).collect();
    listed.sort_unstable();
    assert_eq!(files, listed);
    for function in FUNCTIONS {
        assert!(rows.iter().any(|row| row.function == function), "{function} has no event");
    }
}
