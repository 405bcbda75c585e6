//! Exchanges over HTTP, as users and enemies ask for them.

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use local::handlers::refund;
use serde_json::{Value, json};

use super::{Fixture, Got, Sender, failures, hall};

const ALICE: Sender<'_> = Sender::Buyer("alice");
const PRICE: i64 = 2500;

/// The hall, whose `small` seats cost less and whose tickets are exchanged for two euros.
fn theatre() -> Value {
    let mut file = hall();
    file["exchanges"] = json!({ "until": "2099-12-31T00:00:00Z", "fee_minor": 200 });
    file["tiers"][1]["price_minor"] = json!(1000);
    file
}

fn seat(tier: &str, seat: &str) -> Value {
    json!({ "tier": tier, "seat": seat })
}

impl Fixture {
    /// A paid order of one seat.
    async fn sold(&self, buyer: &str, payment: &str, name: &str) -> Value {
        let lines = json!([{ "tier": "vip", "seats": [name] }]);
        let order = self.buy(buyer, "hall", lines).await.ok(201);
        self.callback(payment, &order["order"], PRICE).await.ok(200);
        let amount =
            Money { amount_minor: MinorUnits(PRICE), currency: Currency::new("EUR").unwrap() };
        let number = order["order"].as_str().unwrap().parse().unwrap();
        self.provider.capture(payment, number, amount, Timestamp::now()).unwrap();
        order
    }

    /// Asks for one seat in exchange for something.
    async fn swap(&self, buyer: &str, admission: &Value, name: &str, exchange: &Value) -> Got {
        let lines = json!([{ "tier": "small", "seats": [name] }]);
        let body = json!({ "admission": admission["token"], "lines": lines, "exchange": exchange });
        self.json(Sender::Buyer(buyer), "POST", "/sales/hall/orders", &body).await
    }
}

#[tokio::test]
async fn a_cheaper_seat_is_paid_with_the_old_money_and_everybody_is_shown_what_happened() {
    let fixture = Fixture::start().await;
    fixture.publish(&theatre()).await.ok(200);
    let old = fixture.sold("alice", "pi_1", "vip-1-1").await;
    let terms = json!({ "until": "2099-12-31T00:00:00.000Z", "fee_minor": 200 });
    assert_eq!(old["lines"][0]["exchangeable"], terms, "{old:#}");
    let exchange = json!({ "order": old["order"], "tickets": [seat("vip", "vip-1-1")] });
    let admission = fixture.admission("alice", "hall", 4).await;
    let new = fixture.swap("alice", &admission, "small-1-1", &exchange).await.ok(201);
    assert_eq!(new["state"], "paid", "{new:#}");
    let replaced = json!({ "order": old["order"], "pays": true, "value_minor": 2300,
        "tickets": [seat("vip", "vip-1-1")] });
    assert_eq!(new["exchange"], replaced, "{new:#}");
    let number = old["order"].as_str().unwrap();
    let listed = fixture.get(ALICE, &format!("/orders/{number}/refunds")).await.ok(200);
    let refund = &listed["refunds"][0];
    for (name, value) in [
        ("asked_by", json!("exchange")),
        ("exchanged_for", new["order"].clone()),
        ("amount_minor", json!(1300)),
        ("kept_minor", json!(1000)),
    ] {
        assert_eq!(refund[name], value, "{name} of {listed:#}");
    }
    // What goes back is sent by the message, once.
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    for _ in 0..2 {
        assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
    }
    let sent = fixture.provider.ledger();
    let sent = sent.iter().find(|entry| entry.payment == "pi_1").unwrap();
    let amounts: Vec<i64> = sent.refunds.iter().map(|refund| refund.amount_minor.0).collect();
    assert_eq!(amounts, [1300]);
    // The seat is on sale again.
    let lines = json!([{ "tier": "vip", "seats": ["vip-1-1"] }]);
    fixture.buy("bob", "hall", lines).await.ok(201);
}

#[tokio::test]
async fn bad_exchanges_are_told_apart_and_change_nothing() {
    let fixture = Fixture::start().await;
    fixture.publish(&theatre()).await.ok(200);
    let old = fixture.sold("alice", "pi_2", "vip-1-2").await;
    let number = &old["order"];
    let ticket = seat("vip", "vip-1-2");
    let of = |tickets: Value| json!({ "order": number, "tickets": tickets });
    let many: Vec<Value> = (0..11).map(|_| ticket.clone()).collect();
    // A refused attempt does not use an admission up.
    let admissions = [
        ("alice", fixture.admission("alice", "hall", 4).await),
        ("mallory", fixture.admission("mallory", "hall", 4).await),
    ];
    for (buyer, exchange, status, problem) in [
        ("alice", json!(7), 422, "invalid"),
        ("alice", json!({ "order": number }), 422, "invalid"),
        ("alice", json!({ "order": "x", "tickets": [ticket] }), 422, "invalid"),
        ("alice", json!({ "order": number, "tickets": [ticket], "price": 1 }), 422, "invalid"),
        ("alice", of(json!([])), 422, "invalid"),
        ("alice", of(json!(many)), 422, "invalid"),
        ("alice", of(json!([ticket, ticket])), 422, "exchange-differs"),
        ("alice", of(json!([seat("vip", "vip-2-2")])), 422, "unknown-ticket"),
        ("alice", json!({ "order": "1024", "tickets": [ticket] }), 404, "not-found"),
        ("mallory", of(json!([ticket])), 404, "not-found"),
    ] {
        let (_, admission) = admissions.iter().find(|(of, _)| *of == buyer).unwrap();
        let got = fixture.swap(buyer, admission, "small-2-1", &exchange).await;
        let told = (got.status, got.body["type"].clone());
        assert_eq!(told, (status, json!(format!("/problems/{problem}"))), "{exchange}");
    }
    let shown = fixture.get(ALICE, &format!("/orders/{}", number.as_str().unwrap())).await.ok(200);
    assert_eq!(shown["state"], "paid");
    // Nobody holds the seat.
    fixture.buy("bob", "hall", json!([{ "tier": "small", "seats": ["small-2-1"] }])).await.ok(201);
    // A sale whose terms let nobody exchange.
    fixture.publish(&hall()).await.ok(200);
    let old = fixture.sold("carol", "pi_3", "vip-1-3").await;
    let exchange = json!({ "order": old["order"], "tickets": [seat("vip", "vip-1-3")] });
    let admission = fixture.admission("carol", "hall", 4).await;
    let got = fixture.swap("carol", &admission, "small-2-2", &exchange).await;
    assert_eq!((got.status, &got.body["type"]), (403, &json!("/problems/exchange-not-allowed")));
}
