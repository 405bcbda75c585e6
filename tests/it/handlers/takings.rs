//! `GET /operator/sales/{sale}/takings`: what a sale sold and took, minute by minute, from its log.

use local::handlers::sync_db;
use serde_json::{Value, json};

use super::{Fixture, OPERATOR_ISSUER, Sender, failures, hall};

const WATCHER: Sender<'_> = Sender::Token(OPERATOR_ISSUER, "onsale/watch");

impl Fixture {
    /// Settles what the queue has.
    async fn settle_all(&self) {
        let batch = self.batch(&self.queues.sync.url).await;
        assert_eq!(failures(&sync_db::handle(&self.app, batch).await), 0);
    }

    /// The takings of the hall.
    async fn takings(&self, query: &str) -> Value {
        let target = format!("/operator/sales/hall/takings{query}");
        let reply = self.get(WATCHER, &target).await;
        assert_eq!(reply.caching(), "no-store");
        reply.ok(200)
    }
}

/// The sum of a count or an amount over all minutes.
fn sum(takings: &Value, name: &str) -> i64 {
    let points = takings["points"].as_array().unwrap().iter();
    points.map(|point| point[name].as_i64().unwrap()).sum()
}

fn sums(takings: &Value) -> [i64; 7] {
    [
        "orders",
        "tickets",
        "returned",
        "taken_minor",
        "commission_minor",
        "given_back_minor",
        "unowned_minor",
    ]
    .map(|name| sum(takings, name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_is_told_by_minute_and_by_tier() {
    let fixture = Fixture::start().await;
    let mut file = hall();
    file["merchant"] = json!({ "merchant": "opera", "commission_basis_points": 1000 });
    fixture.publish(&file).await.ok(200);
    let nothing = fixture.takings("").await;
    assert_eq!((nothing["points"].as_array().unwrap().len(), sums(&nothing)), (15, [0; 7]));
    assert_eq!((&nothing["currency"], &nothing["tiers"]), (&json!("EUR"), &json!([])));

    let seats = json!([{ "tier": "vip", "seats": ["vip-1-1", "vip-1-2"] }]);
    let paid = fixture.buy("alice", "hall", seats).await.ok(201);
    let pending = json!([{ "tier": "vip", "seats": ["vip-1-3"] }]);
    fixture.buy("bob", "hall", pending).await.ok(201);
    fixture.callback("pi_1", &paid["order"], 5000).await.ok(200);
    assert_eq!(sums(&fixture.takings("").await), [0; 7], "it is not settled");
    fixture.settle_all().await;
    let takings = fixture.takings("?minutes=2").await;
    assert_eq!(takings["points"].as_array().unwrap().len(), 2);
    assert_eq!(sums(&takings), [1, 2, 0, 5000, 500, 0, 0]);
    assert_eq!(takings["tiers"], json!([{ "tier": "vip", "sold": 2, "returned": 0 }]));

    let refunds = format!("/orders/{}/refunds/operator", paid["order"].as_str().unwrap());
    let one = json!({ "number": 1, "tickets": [{ "tier": "vip", "seat": "vip-1-1" }] });
    fixture.json(Sender::Operator, "POST", &refunds, &one).await.ok(200);
    fixture.settle_all().await;
    let takings = fixture.takings("").await;
    assert_eq!(sums(&takings), [1, 2, 1, 5000, 250, 2500, 0]);
    assert_eq!(takings["tiers"], json!([{ "tier": "vip", "sold": 2, "returned": 1 }]));
    // An hour in which nothing was sold.
    let before = fixture.takings("?minutes=60&until=2026-01-01T00:00:59.999Z").await;
    assert_eq!(sums(&before), [0; 7]);
    assert_eq!(before["points"][0]["at"], "2025-12-31T23:01:00.000Z");
    assert_eq!(before["points"][59]["at"], "2026-01-01T00:00:00.000Z");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_time_is_told() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    for query in [
        "minutes=0",
        "minutes=61",
        "minutes=-1",
        "minutes=1&minutes=1",
        "until=yesterday",
        "until=2999-01-01T00:00:00Z",
        "until=2026-01-01T00:00:00Z&until=2026-01-01T00:00:00Z",
    ] {
        let target = format!("/operator/sales/hall/takings?{query}");
        fixture.get(WATCHER, &target).await.problem(422, "invalid");
    }
    let target = "/operator/sales/nowhere/takings";
    fixture.get(WATCHER, target).await.problem(404, "not-found");
    let buyer = fixture.get(Sender::Buyer("alice"), "/operator/sales/hall/takings").await;
    buyer.problem(401, "not-authenticated");
}
