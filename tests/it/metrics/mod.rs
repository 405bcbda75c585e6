//! Metrics: each is written by the outcome that it names and by no other, in the format that
//! CloudWatch reads, and without a word that a caller chose.

mod format;
mod rooms;

use std::collections::BTreeMap;
use std::io::{self, Write};

use engine::domain::admission::room::draw::Terms;
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::serving::Room;
use engine::domain::basics::bytes::Secret;
use engine::domain::basics::ids::{GroupId, InventoryId, SaleId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Release;
use engine::domain::order::OrderState;
use engine::domain::sale::serving::Settings;
use engine::flows;
use engine::flows::expire::{Expiry, expire_or_requeue};
use engine::ports::{ChangeReply, Orders as _, Ports as _, RoomPorts as _, Rooms as _, Seats as _};
use fake_payments::Fault;
use local::handlers::{draw, load_sale, reconcile, refund};
use serde_json::{Value, json};
use shared::providers::stripe::signature::sign;
use shared::runtime::app::{App, new_epoch};
use shared::runtime::config::MetricsConfig;
use shared::runtime::metrics::{self, Function, Metrics};

use crate::handlers::{Fixture, PAYMENT_SECRET, Sender, best, hall, records, request, send};
pub use format::Lines;

pub const STAGE: &str = "test";

/// The servers, an engine whose metrics go to the sink, and a first piece of work done.
async fn start() -> (Fixture, Lines) {
    let mut fixture = Fixture::start().await;
    let lines = Lines::default();
    fixture.app.metrics = Metrics::to(STAGE, lines.clone());
    fixture.publish(&hall()).await.ok(200);
    let mut first = lines.counted();
    first.remove("Transactions");
    assert_eq!(first, counts(&[("ColdStarts sales", 1)]), "and no other work is the first again");
    (fixture, lines)
}

pub fn counts(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

fn number_of(order: &Value) -> OrderNumber {
    order["order"].as_str().unwrap().parse().unwrap()
}

fn inventory() -> InventoryId {
    InventoryId::whole(sale())
}

fn sale() -> SaleId {
    SaleId::new("hall").unwrap()
}

fn seat(name: &str) -> Value {
    json!([{ "tier": "vip", "seats": [name] }])
}

/// What a run of reconcile finds at another time.
async fn reconciled(app: &App, now: Timestamp) {
    let work = async {
        let epoch = new_epoch(now).unwrap();
        let run = flows::reconcile::run(&app.ports, &epoch, now).await.unwrap();
        metrics::reconciled(&run);
    };
    app.metrics.of(Function::Reconcile, Box::pin(work)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_outcome_of_an_order_is_counted_once() {
    let (fixture, lines) = start().await;
    let expect = |what: &str, expected: &[(&str, u64)]| {
        assert_eq!(lines.counted(), counts(expected), "{what}");
    };
    let alice = Sender::Buyer("alice");

    let admission = fixture.admission("alice", "hall", 2).await;
    let admitted = ("Admitted hall", 1);
    expect("admitted", &[admitted]);
    let order = fixture.order("alice", "hall", &admission["token"], best("vip", 2)).await.ok(201);
    expect("held", &[("Held hall", 1), ("HeldTickets hall", 2), ("Transactions", 1)]);
    fixture.order("alice", "hall", &admission["token"], best("vip", 2)).await.ok(201);
    expect("the same order again", &[("Transactions", 1)]);
    fixture.order("alice", "hall", &admission["token"], best("vip", 1)).await;
    expect("another order", &[("Refused token-reused", 1)]);

    let accepted = fixture.callback("pi_1", &order["order"], 5000).await.ok(200);
    assert_eq!(accepted["outcome"], "accepted");
    expect("paid", &[("Paid hall", 1), ("PaidTickets hall", 2), ("Transactions", 1)]);
    fixture.callback("pi_1", &order["order"], 5000).await.ok(200);
    expect("the same payment again", &[]);
    fixture.callback("pi_2", &order["order"], 5000).await.ok(200);
    expect("a second payment", &[("RefundsRequested", 1), ("Transactions", 2)]);

    let target = format!("/orders/{}", order["order"].as_str().unwrap());
    fixture.get(alice, &target).await.ok(200);
    fixture.get(alice, "/orders").await.ok(200);
    fixture.get(alice, "/sales/hall/availability").await.ok(200);
    expect("reading", &[]);
    fixture.json(alice, "POST", &format!("{target}/cancel"), &json!({})).await;
    expect("a paid order is not cancelled", &[("Refused order-resolved", 1)]);

    let other = fixture.buy("bob", "hall", seat("vip-2-1")).await.ok(201);
    lines.take();
    let cancel = format!("/orders/{}/cancel", other["order"].as_str().unwrap());
    fixture.json(Sender::Buyer("bob"), "POST", &cancel, &json!({})).await.ok(200);
    expect("cancelled", &[("Cancelled hall", 1), ("Transactions", 1)]);
    fixture.json(Sender::Buyer("bob"), "POST", &cancel, &json!({})).await.ok(200);
    expect("cancelled again", &[]);

    let begun = fixture.buy("dan", "hall", seat("vip-2-3")).await.ok(201);
    lines.take();
    let target = format!("/orders/{}", begun["order"].as_str().unwrap());
    let form = json!({ "provider": "stripe", "method": "form" });
    let start = format!("{target}/payments");
    fixture.json(Sender::Buyer("dan"), "POST", &start, &form).await.ok(200);
    expect("a payment is begun", &[("PaymentsStarted", 1), ("Transactions", 2)]);
    fixture.json(Sender::Buyer("dan"), "POST", &start, &form).await.ok(200);
    expect("the same payment is begun again", &[]);
    fixture.json(Sender::Buyer("dan"), "POST", &format!("{target}/cancel"), &json!({})).await;
    lines.take();

    let late = fixture.buy("carol", "hall", seat("vip-2-2")).await.ok(201);
    lines.take();
    let due = [
        (inventory(), number_of(&late)),
        (inventory(), number_of(&other)),
        (inventory(), "1024".parse().unwrap()),
    ];
    let ports = &fixture.app.ports;
    let after = Timestamp::now().plus_seconds(901);
    let expired = async |now| {
        let heard_at = Some(now);
        let due = due.clone().map(|(at, number)| Expiry { at, number, heard_at });
        let work = expire_or_requeue(ports, &due, now);
        fixture.app.metrics.of(Function::ExpireOrders, Box::pin(work)).await
    };
    expired(Timestamp::now()).await;
    expect("it has time", &[]);
    expired(after).await;
    expect("expired", &[("Expired hall", 1), ("Transactions", 1)]);
    expired(after).await;
    expect("expired before", &[]);
    fixture.callback("pi_3", &late["order"], 2500).await.ok(200);
    expect("rescued", &[("Paid hall", 1), ("PaidTickets hall", 1), ("Transactions", 1)]);

    // A hold that goes behind the engine's back: the claims keep the seat.
    let owner = fixture.buy("dave", "hall", seat("vip-2-3")).await.ok(201);
    let record = ports.seats().record(&inventory(), number_of(&owner)).await.unwrap().unwrap();
    let release = Release { inventory: inventory(), order: number_of(&owner), record };
    ports.seats().release(&release).await.unwrap();
    let token = fixture.admission("erin", "hall", 1).await["token"].clone();
    lines.take();
    fixture.order("erin", "hall", &token, seat("vip-2-3")).await.problem(409, "seat-taken");
    let conflict = [("ClaimConflicts", 1), ("Refused seat-taken", 1), ("Transactions", 1)];
    expect("a claim conflict", &conflict);
    fixture.order("erin", "hall", &token, seat("vip-2-2")).await.problem(409, "seat-taken");
    expect("a seat that Redis knows is taken", &[("Refused seat-taken", 1)]);

    let mut end = ports.orders().get(number_of(&order)).await.unwrap().unwrap();
    end.state = OrderState::Expired;
    let reply = fixture.app.metrics.of(Function::Cancel, ports.orders().end(&end)).await.unwrap();
    assert_eq!(reply, ChangeReply::Conflict);
    expect("the order has moved on", &[("VersionConflicts", 1), ("Transactions", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_is_counted_by_its_type() {
    let (fixture, lines) = start().await;
    let expect = |what: &str, expected: &[(&str, u64)]| {
        assert_eq!(lines.counted(), counts(expected), "{what}");
    };
    let (nobody, alice) = (Sender::Nobody, Sender::Buyer("alice"));
    let one = json!({ "tickets": 1 });
    fixture.json(nobody, "POST", "/sales/hall/admissions", &one).await;
    expect("who", &[("Refused not-authenticated", 1)]);
    // A caller cannot make metrics by inventing sales.
    for invented in ["/sales/invented/admissions", "/sales/invented/orders"] {
        let body = json!({ "tickets": 1, "admission": "x", "lines": [] });
        fixture.json(alice, "POST", invented, &body).await;
        let counted = lines.counted();
        assert_eq!(counted.len(), 1, "{counted:?}");
        assert!(counted.keys().all(|key| key.starts_with("Refused ")), "{counted:?}");
    }
    fixture.get(nobody, "/sales/invented/availability").await.problem(404, "not-found");
    expect("no such sale", &[("Refused not-found", 1)]);
    fixture.get(alice, "/orders/1024").await.problem(404, "not-found");
    expect("no such order", &[("Refused not-found", 1)]);

    let callback = async |headers: Value, body: &str| {
        let target = "/payments/stripe/callback";
        send(&fixture.app, request(nobody, "POST", target, headers, body)).await
    };
    callback(json!({}), "{}").await.problem(401, "not-authenticated");
    let unsigned = [("Refused not-authenticated", 1), ("PaymentsRefused not-authenticated", 1)];
    expect("a callback that nobody has signed", &unsigned);
    let signature = sign(PAYMENT_SECRET, b"{}", Timestamp::now());
    callback(json!({ "stripe-signature": signature }), "{}").await.problem(422, "invalid");
    let unreadable = [("Refused invalid", 1), ("PaymentsRefused invalid", 1)];
    expect("a signed callback that cannot be read", &unreadable);
    let created = r#"{"type":"payment_intent.created"}"#;
    let signature = sign(PAYMENT_SECRET, created.as_bytes(), Timestamp::now());
    callback(json!({ "stripe-signature": signature }), created).await.ok(200);
    expect("a callback that says nothing to us", &[]);

    // Everything is held: wait. Everything is sold: go.
    let mut tiny = hall();
    tiny["sale"] = json!("tiny");
    tiny["tiers"] = json!([{ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 1 }]);
    fixture.publish(&tiny).await.ok(200);
    fixture.buy("alice", "tiny", best("t", 1)).await.ok(201);
    lines.take();
    let ask =
        async |who| fixture.json(Sender::Buyer(who), "POST", "/sales/tiny/admissions", &one).await;
    // The budget of a gate may let one more in than there is room for.
    let waiting = loop {
        let got = ask("bob").await;
        let counted = lines.counted();
        if counted != counts(&[("Admitted tiny", 1)])
            && !counted.contains_key("Refused too-many-requests")
        {
            got.problem(429, "waiting");
            break counted;
        }
    };
    assert_eq!(waiting, counts(&[("Refused waiting", 1), ("Waiting tiny", 1)]));

    // Redis has lost the sale.
    let token = fixture.admission("frank", "hall", 1).await["token"].clone();
    fixture.lose_redis().await;
    lines.take();
    fixture.order("frank", "hall", &token, best("vip", 1)).await.problem(503, "not-loaded");
    expect("not loaded", &[("ServerErrors not-loaded", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reconcile_finds_is_counted() {
    let (fixture, lines) = start().await;
    let expect = |what: &str, expected: &[(&str, u64)]| {
        assert_eq!(lines.counted(), counts(expected), "{what}");
    };
    let app = &fixture.app;
    let (drift, pending) = ("DriftFound", "PendingPastBound");
    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    let event = || serde_json::from_value(event.clone()).unwrap();
    reconcile::handle(app, event()).await.unwrap();
    let (late, turn) = (("DrawsLate", 0), ("TurnAge", 0));
    expect("nothing", &[(drift, 0), (pending, 0), late, turn, ("Available hall", 20)]);

    let order = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let forget = async || {
        let ports = &app.ports;
        let record = ports.seats().record(&inventory(), number_of(&order)).await.unwrap().unwrap();
        let release = Release { inventory: inventory(), order: number_of(&order), record };
        ports.seats().release(&release).await.unwrap();
    };
    forget().await;
    lines.take();
    reconcile::handle(app, event()).await.unwrap();
    let available = ("Available hall", 20);
    expect("a change of this minute", &[(drift, 0), (pending, 0), late, turn, available]);
    forget().await;
    reconciled(app, Timestamp::now().plus_seconds(61)).await;
    expect("a forgotten hold", &[(drift, 1), (pending, 0), ("Available hall", 20)]);
    reconciled(app, Timestamp::now().plus_seconds(61)).await;
    expect("it is written again", &[(drift, 0), (pending, 0), ("Available hall", 18)]);

    reconciled(app, Timestamp::now().plus_seconds(1100)).await;
    let ended = [("Expired hall", 1), ("Transactions", 1), ("Available hall", 20)];
    let overdue: Vec<_> = [(drift, 0), (pending, 1)].into_iter().chain(ended).collect();
    expect("pending past its bound", &overdue);
    let next = fixture.buy("bob", "hall", best("vip", 1)).await.ok(201);
    lines.take();
    reconciled(app, Timestamp::now().plus_seconds(901)).await;
    let soon = [(drift, 0), (pending, 0), ("Available hall", 19)];
    expect("handed over, and not past its bound", &soon);

    fixture.lose_redis().await;
    reconcile::handle(app, event()).await.unwrap();
    let counted = lines.counted();
    assert_eq!((counted["SalesReloaded"], counted[drift]), (1, 1), "{counted:?}");
    fixture.lose_redis().await;
    load_sale::handle(app, records(&[json!({ "sale": "hall" }), json!({ "sale": "hall" })])).await;
    assert_eq!(lines.counted().get("SalesReloaded"), Some(&1));
    load_sale::handle(app, records(&[json!({ "sale": "hall" })])).await;
    assert_eq!(lines.counted().get("SalesReloaded"), None, "nothing was lost");

    // Money that goes back, and the provider refuses.
    fixture.callback("pi_1", &next["order"], 1).await.ok(200);
    lines.take();
    let euros = Money { amount_minor: MinorUnits(1), currency: Currency::new("EUR").unwrap() };
    fixture.provider.capture("pi_1", number_of(&next), euros, Timestamp::now()).unwrap();
    fixture.provider.next(Fault::RefuseRefund);
    refund::handle(app, fixture.batch(&fixture.queues.refund.url).await).await;
    expect("a refund that is refused", &[("RefundsFailed", 1), ("Transactions", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_two_sales_is_two_records() {
    let (fixture, lines) = start().await;
    let mut other = hall();
    other["sale"] = json!("other");
    fixture.publish(&other).await.ok(200);
    let mut due = Vec::new();
    for sale in ["hall", "other"] {
        let order = fixture.buy("alice", sale, best("vip", 1)).await.ok(201);
        due.push((InventoryId::whole(SaleId::new(sale).unwrap()), number_of(&order)));
    }
    lines.take();
    let heard_at = Some(Timestamp::now().plus_seconds(901));
    let due = due.into_iter().map(|(at, number)| Expiry { at, number, heard_at });
    let due: Vec<Expiry> = due.collect();
    let work = expire_or_requeue(&fixture.app.ports, &due, Timestamp::now().plus_seconds(901));
    fixture.app.metrics.of(Function::ExpireOrders, Box::pin(work)).await;
    let records = lines.take();
    let of_record = |record: &Value| {
        let names = ["Sale", "Expired", "Transactions"];
        json!(names.map(|name| record.get(name).cloned().unwrap_or_default()))
    };
    let found: Vec<Value> = records.iter().map(of_record).collect();
    assert_eq!(found, [json!(["hall", 1, 2]), json!(["other", 1, null])]);
    let told = records.iter().filter(|record| record.get("Latency").is_some()).count();
    assert_eq!(told, 1, "how long it took is told once");
}

/// What cannot be reached is counted as failed, once for each call however many attempts it took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_answer_is_counted() {
    let (mut fixture, lines) = start().await;
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201);
    let mut end = fixture.app.ports.orders().get(number_of(&order)).await.unwrap().unwrap();
    end.state = OrderState::Cancelled;
    lines.take();
    fixture.lose_dynamodb().await;
    fixture.app.metrics = Metrics::to(STAGE, lines.clone());
    let app = &fixture.app;
    let (ended, shown) = tokio::join!(
        app.metrics.of(Function::Cancel, app.ports.orders().end(&end)),
        fixture.get(Sender::Nobody, "/sales/hall"),
    );
    ended.unwrap_err();
    shown.problem(503, "unavailable");
    let mut counted = lines.counted();
    counted.retain(|name, _| !name.starts_with("ColdStarts"));
    let expected =
        [("ServerErrors unavailable", 1), ("TransactionFailures", 1), ("Transactions", 1)];
    assert_eq!(counted, counts(&expected));

    fixture.callback("pi_kept", &order["order"], 2500).await.ok(200);
    let counted = lines.counted();
    assert_eq!(counted.get("CapturesKept"), Some(&1), "{counted:?}");
    assert!(counted.keys().all(|name| !name.starts_with("ServerErrors")), "{counted:?}");
}

/// A sink that takes nothing.
struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("no room"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_that_fail_cost_no_request() {
    let (mut fixture, lines) = start().await;
    fixture.app.metrics = Metrics::to(STAGE, Broken);
    fixture.buy("alice", "hall", best("vip", 1)).await.ok(201);
    // And without a sink there is nothing.
    fixture.app.metrics = Metrics::new(&MetricsConfig::Off);
    lines.0.lock().unwrap().clear();
    fixture.buy("carol", "hall", best("vip", 1)).await.ok(201);
    assert_eq!(lines.take(), Vec::<Value>::new());
}

/// A room that opened in the meantime, committed to a secret that nobody has kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_draw_and_a_missing_secret_are_counted() {
    let (fixture, lines) = start().await;
    let app = &fixture.app;
    let hall = SaleId::new("hall").unwrap();
    let settings = Settings::new(GroupId::new("all").unwrap(), 0, 4);
    let draw_by = Terms::Secret(Secret([4; 32]).commitment());
    let room = Room::new(hall.clone(), draw_by, 0, settings);
    app.ports.rooms().append(&hall, &Record::first(room, 0)).await.unwrap();
    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    reconcile::handle(app, serde_json::from_value(event).unwrap()).await.unwrap();
    assert_eq!(lines.counted().get("DrawsLate"), Some(&1));
    draw::handle(app, records(&[json!({ "sale": "hall" })])).await;
    assert_eq!(lines.counted().get("DrawsWithoutSecret"), Some(&1));
    app.ports.rooms().keep_secret(&hall, &Secret([4; 32])).await.unwrap();
    draw::handle(app, records(&[json!({ "sale": "hall" })])).await;
    assert_eq!(lines.counted().get("DrawsWithoutSecret"), None);
}
