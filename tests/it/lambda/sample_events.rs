//! The events in `tests/events/`: made here, kept there for everybody, and sent by `cargo lambda invoke`
//! (tests/it/lambda/watch.rs). `ONSALE_WRITE_DOCS=1` writes them anew.

use std::fs;
use std::path::Path;

use engine::domain::admission::room::slot::Asking;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use local::environment::{SAMPLE_ENTRY_KEY, SAMPLE_KEY, SAMPLE_SECRET};
use serde_json::{Value, json};
use shared::http::tokens::{AdmissionKeys, Grant};
use shared::providers::stripe::signature;
use shared::runtime::functions::Function;

use super::event::{Request, Sender, batch, schedule};
use text::root;

const SALE: &str = "sample";
const BUYER: &str = "1001";
const SECOND_BUYER: &str = "1002";
const TICKETS: u16 = 2;
const PRICE_MINOR: i64 = 2500;

/// The time at which the events say that they were made.
fn made_at() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().unwrap()
}

/// An event that is kept.
pub struct Sample {
    pub function: Function,
    /// Name of its file, without the ending.
    pub name: &'static str,
    /// What the function answers: a status, or what becomes of a batch.
    pub answer: &'static str,
    event: Value,
}

impl Sample {
    /// Name of its file.
    pub fn file(&self) -> String {
        format!("{}.json", self.name)
    }

    /// How it is sent, as `docs/lambda.md` says it.
    fn command(&self) -> String {
        let function = format!("{:?}", self.function);
        format!("sam_invoke {function:<14} {:<28} # {}\n", self.name, self.answer)
    }
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

/// The same with a waiting room, in a distant future.
fn sale_with_room() -> Value {
    let mut file = sale();
    file["sale"] = json!("sample-room");
    file["opens_at"] = json!("2099-01-01T00:00:00Z");
    file["room"] = json!({});
    file
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
        entry: None,
        asking: Asking::default(),
    };
    let token = AdmissionKeys::new([(SAMPLE_KEY.0, key)]).sign(&grant, made_at()).unwrap();
    json!({ "admission": token,
        "lines": [{ "tier": "hall", "best": { "count": TICKETS, "together": "required" } }] })
}

/// The provider's callback for the first order, signed with `secret`.
fn callback(secret: &[u8], target: String) -> Request<'static> {
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
    Request { sender: Sender::Nobody, method: "POST", target, headers, body }
}

/// Every event, in the order in which they are sent.
pub fn samples() -> Vec<Sample> {
    use Function::{
        AwardPoints, Cancel, ClosePayments, DecidePayment, Draw, ExpireOrders, Figures, LoadSale,
        Operator, Orders, PayCallback, PayFromWallet, ReadBills, ReadCaptures, Reconcile, Refund,
        RefundOrder, Reserve, Sales, SendEvents, StartPayment, SyncDb, TakeCallback, TokenGate,
        WaitingRoom,
    };
    let put = |sender| Request::json(sender, "PUT", "/sales/sample", &sale());
    let put_room = Request::json(Sender::Operator, "PUT", "/sales/sample-room", &sale_with_room());
    let join = |sender| Request::json(sender, "POST", "/sales/sample-room/places", &json!({}));
    let pause = json!({ "command": "pause" });
    let pause = Request::json(Sender::Operator, "POST", "/sales/sample-room/room/commands", &pause);
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
    let begin = |return_url: &str| {
        let target = format!("/orders/{}/payments", number(SECOND_BUYER));
        let body = json!({ "provider": "stripe", "return_url": return_url });
        Request::json(Sender::Buyer(SECOND_BUYER), "POST", target, &body)
    };
    let from_wallet = Request {
        method: "POST",
        ..Request::get(
            Sender::Buyer(SECOND_BUYER),
            format!("/orders/{}/payments/wallet", number(SECOND_BUYER)),
        )
    };
    let pays_from_wallet = "POST /orders/{order}/payments/wallet";
    let wallets = Request::get(Sender::Buyer(BUYER), "/wallets");
    let points = Request::get(Sender::Buyer(BUYER), "/points");
    let begins = "POST /orders/{order}/payments";
    let give_back = |sender, path: &str, tickets: Value, more: Value| {
        let mut body = json!({ "number": 1, "tickets": tickets });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Request::json(sender, "POST", path.replace("{order}", &number(BUYER).to_string()), &body)
    };
    let some =
        json!({ "amount_minor": 100, "currency": "EUR", "reason": "The heating had failed." });
    let goodwill = give_back(Sender::Operator, "/orders/{order}/refunds/operator", json!([]), some);
    let without_terms =
        give_back(Sender::Buyer(BUYER), "/orders/{order}/refunds", json!("all"), json!({}));
    let unsigned =
        give_back(Sender::Nobody, "/orders/{order}/refunds/operator", json!("all"), json!({}));
    let refunds = Request::get(Sender::Buyer(BUYER), format!("/orders/{}/refunds", number(BUYER)));
    let tickets = Request::get(Sender::Buyer(BUYER), format!("/orders/{}/tickets", number(BUYER)));
    let (give, refund_it) =
        ("POST /orders/{order}/refunds", "POST /orders/{order}/refunds/operator");
    let show = Request::get(Sender::Buyer(BUYER), format!("/orders/{}", number(BUYER)));
    let list = Request::get(Sender::Buyer(BUYER), "/orders?limit=10");
    let key = SAMPLE_KEY.1;
    let forged = b"another key, which no function has";
    let (list_sales, show_sale, show_order) =
        ("GET /sales", "GET /sales/{sale}", "GET /orders/{order}");
    let (publish, availability) = ("PUT /sales/{sale}", "GET /sales/{sale}/availability");
    let (gate, make) = ("POST /sales/{sale}/admissions", "POST /sales/{sale}/orders");
    let (give_up, pay) = ("POST /orders/{order}/cancel", "POST /payments/{provider}/callback");
    let take = "POST /callbacks/{key}/{provider}";
    let (places, commands) = ("POST /sales/{sale}/places", "POST /sales/{sale}/room/commands");
    let (room, log) = ("GET /sales/{sale}/room", "GET /sales/{sale}/room/log");
    let leaves = "GET /sales/{sale}/room/leaves/{group}/{chunk}";
    let window = "GET /sales/{sale}/room/windows/{group}/{index}";
    let api = || "/payments/stripe/callback".to_owned();
    let entry = format!("/callbacks/{SAMPLE_ENTRY_KEY}/stripe");
    let no_key = format!("/callbacks/{}/stripe", "0".repeat(SAMPLE_ENTRY_KEY.len()));
    let count = json!({ "order": number(BUYER) }).to_string();
    let expiry =
        json!({ "sale": SALE, "order": number(SECOND_BUYER), "due_at": "2026-11-21T10:15:00Z" });
    let gives = json!({ "order": number(BUYER), "facts": 2 });
    let closing = json!({ "sale": SALE, "order": number(SECOND_BUYER) });
    let kept = json!({ "provider": "stripe", "payment": "pi_sample", "order": number(BUYER),
        "amount_minor": PRICE_MINOR * i64::from(TICKETS), "currency": "EUR" });
    let refund = json!({ "provider": "stripe", "payment": "pi_unknown", "order": number(BUYER),
        "amount_minor": 1, "currency": "EUR", "reason": "wrong_amount" });
    let samples = vec![
        (Sales, "sales-publish", "200", put(Sender::Operator).event(publish)),
        (Sales, "sales-list", "200", get("/sales").event(list_sales)),
        (Sales, "sales-show", "200", get("/sales/sample").event(show_sale)),
        (Sales, "sales-availability", "200", get("/sales/sample/availability").event(availability)),
        (
            Sales,
            "sales-trains",
            "200",
            get("/trains?date=2026-11-21&from=VNP&to=NGH").event("GET /trains"),
        ),
        // The sample has none.
        (Sales, "sales-map", "404", get("/sales/sample/map").event("GET /sales/{sale}/map")),
        (Sales, "sales-openapi", "200", get("/openapi.json").event("GET /openapi.json")),
        (Sales, "sales-publish-unsigned", "401", put(Sender::Nobody).event(publish)),
        (Sales, "sales-publish-room", "200", put_room.event(publish)),
        (WaitingRoom, "waiting-room", "201", join(Sender::Buyer(BUYER)).event(places)),
        (WaitingRoom, "waiting-room-anonymous", "401", join(Sender::Nobody).event(places)),
        (WaitingRoom, "waiting-room-show", "200", get("/sales/sample-room/room").event(room)),
        (WaitingRoom, "waiting-room-log", "200", get("/sales/sample-room/room/log").event(log)),
        (
            WaitingRoom,
            "waiting-room-leaves",
            "404",
            get("/sales/sample-room/room/leaves/all/0").event(leaves),
        ),
        (
            WaitingRoom,
            "waiting-room-window",
            "404",
            get("/sales/sample-room/room/windows/all/0").event(window),
        ),
        (WaitingRoom, "waiting-room-pause", "200", pause.event(commands)),
        (TokenGate, "token-gate", "201", admit(Sender::Buyer(BUYER), SALE).event(gate)),
        (TokenGate, "token-gate-anonymous", "401", admit(Sender::Nobody, SALE).event(gate)),
        (
            TokenGate,
            "token-gate-no-such-sale",
            "404",
            admit(Sender::Buyer(BUYER), "nowhere").event(gate),
        ),
        (Reserve, "reserve", "201", reserve(BUYER, key).event(make)),
        (Reserve, "reserve-forged", "403", reserve(BUYER, forged).event(make)),
        (Orders, "orders-show", "200", show.event(show_order)),
        (Orders, "orders-list", "200", list.event("GET /orders")),
        (PayCallback, "pay-callback", "200", callback(SAMPLE_SECRET, api()).event(pay)),
        (PayCallback, "pay-callback-forged", "401", callback(forged, api()).event(pay)),
        (TakeCallback, "take-callback", "200", callback(SAMPLE_SECRET, entry).event(take)),
        (TakeCallback, "take-callback-no-key", "404", callback(SAMPLE_SECRET, no_key).event(take)),
        (DecidePayment, "decide-payment", "no failure", batch("callback", &[kept.to_string()])),
        (SyncDb, "sync-db", "no failure", batch("sync", std::slice::from_ref(&count))),
        (
            SyncDb,
            "sync-db-partial",
            "1 failure",
            batch("sync", &[count, "no message at all".to_owned()]),
        ),
        (RefundOrder, "refund-order-buyer", "403", without_terms.event(give)),
        (RefundOrder, "refund-order-unsigned", "401", unsigned.event(refund_it)),
        (RefundOrder, "refund-order", "200", goodwill.event(refund_it)),
        (
            Operator,
            "operator-buyer",
            "401",
            Request::get(Sender::Buyer(BUYER), "/operator/actions").event("GET /operator/actions"),
        ),
        (Orders, "orders-tickets", "200", tickets.event("GET /orders/{order}/tickets")),
        (Orders, "orders-ticket-keys", "200", get("/ticket-keys").event("GET /ticket-keys")),
        (
            Orders,
            "orders-revoked",
            "200",
            get("/sales/sample/revoked").event("GET /sales/{sale}/revoked"),
        ),
        (
            Figures,
            "figures-buyer",
            "401",
            Request::get(Sender::Buyer(BUYER), "/operator/sales/sample/figures")
                .event("GET /operator/sales/{sale}/figures"),
        ),
        (Orders, "orders-refunds", "200", refunds.event("GET /orders/{order}/refunds")),
        (Reserve, "reserve-second", "201", reserve(SECOND_BUYER, key).event(make)),
        (StartPayment, "start-payment", "200", begin("http://localhost:3000/back").event(begins)),
        (
            StartPayment,
            "start-payment-elsewhere",
            "422",
            begin("https://evil.example/").event(begins),
        ),
        (PayFromWallet, "pay-from-wallet", "422", from_wallet.event(pays_from_wallet)),
        (Orders, "orders-wallets", "200", wallets.event("GET /wallets")),
        (AwardPoints, "award-points", "no failure", batch("points", &[gives.to_string()])),
        (Orders, "orders-points", "200", points.event("GET /points")),
        (Cancel, "cancel", "200", cancel(SECOND_BUYER).event(give_up)),
        (Cancel, "cancel-paid", "409", cancel(BUYER).event(give_up)),
        (ClosePayments, "close-payments", "no failure", batch("close", &[closing.to_string()])),
        (ExpireOrders, "expire-orders", "no failure", batch("expiry", &[expiry.to_string()])),
        (
            LoadSale,
            "load-sale",
            "no failure",
            batch("load", &[json!({ "sale": SALE }).to_string()]),
        ),
        (Draw, "draw", "no failure", batch("draw", &[json!({ "sale": SALE }).to_string()])),
        (Refund, "refund", "1 failure", batch("refund", &[refund.to_string()])),
        (ReadCaptures, "read-captures", "report", schedule()),
        (ReadBills, "read-bills", "report", schedule()),
        (SendEvents, "send-events", "report", schedule()),
        (Reconcile, "reconcile", "report", schedule()),
    ];
    let sample = |(function, name, answer, event)| Sample { function, name, answer, event };
    samples.into_iter().map(sample).collect()
}

/// Compares a file with what it should be; `ONSALE_WRITE_DOCS=1` writes it first.
fn compare(path: &Path, text: &str) {
    if std::env::var("ONSALE_WRITE_DOCS").is_ok_and(|write| write == "1") {
        fs::write(path, text).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(kept == text, "{path} is out of date: ONSALE_WRITE_DOCS=1 writes it anew");
}

#[test]
fn the_files_are_the_events_and_the_page_sends_each() {
    let directory = root().join("tests/events");
    let samples = samples();
    for sample in &samples {
        let text = format!("{}\n", serde_json::to_string_pretty(&sample.event).unwrap());
        compare(&directory.join(sample.file()), &text);
    }
    let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    files.retain(|name| name != "README.md");
    files.sort_unstable();
    let mut expected: Vec<String> = samples.iter().map(Sample::file).collect();
    expected.sort_unstable();
    assert_eq!(files, expected);
    for function in Function::ALL {
        let has_event = samples.iter().any(|sample| sample.function == function);
        assert!(has_event, "{function:?} has no event");
    }
    // The page: its commands stand together.
    let page = root().join("docs/lambda.md");
    let text = fs::read_to_string(&page).unwrap();
    let is_command = |line: &str| line.starts_with("sam_invoke ");
    let before = text.split_inclusive('\n').take_while(|line| !is_command(line));
    let after = text.split_inclusive('\n').skip_while(|line| !is_command(line));
    let after = after.skip_while(|line| is_command(line)).map(str::to_owned);
    let commands = samples.iter().map(Sample::command);
    let text = before.map(str::to_owned).chain(commands).chain(after).collect::<String>();
    compare(&page, &text);
}
