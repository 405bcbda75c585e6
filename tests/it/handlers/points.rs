//! Points over HTTP, and the queue that has them written.

use aws_lambda_events::sqs::SqsEvent;
use aws_sdk_sqs::types::Message;
use local::handlers::{award_points, sync_db};
use serde_json::{Value, json};

use super::{Fixture, Sender, failures, hall};

const ALICE: Sender<'_> = Sender::Buyer("alice");

impl Fixture {
    /// The hall, which gives 3 points and 1 growth for each 100 that are paid.
    async fn with_points() -> Self {
        let fixture = Self::start().await;
        let mut file = hall();
        file["points"] = json!({ "per_minor": 100, "points": 3, "growth": 1 });
        fixture.publish(&file).await.ok(200);
        fixture
    }

    async fn points(&self, sender: Sender<'_>) -> Value {
        self.get(sender, "/points").await.ok(200)
    }

    async fn bought(&self, buyer: &str, seat: &str, payment: &str) -> Value {
        let lines = json!([{ "tier": "vip", "seats": [seat] }]);
        let order = self.buy(buyer, "hall", lines).await.ok(201);
        self.callback(payment, &order["order"], 2500).await.ok(200);
        order
    }

    /// Settles what the queue has; what that asks to be written.
    async fn settled(&self) -> SqsEvent {
        let batch = self.batch(&self.queues.sync.url).await;
        assert_eq!(failures(&sync_db::handle(&self.app, batch).await), 0);
        let url = &self.queues.points.url;
        let receive = self.sqs.receive_message().queue_url(url).max_number_of_messages(10);
        let messages = receive.send().await.unwrap().messages.unwrap_or_default();
        // The next message of a group comes when this one is gone.
        for message in &messages {
            let handle = message.receipt_handle.as_deref().unwrap();
            self.sqs.delete_message().queue_url(url).receipt_handle(handle).send().await.unwrap();
        }
        let record =
            |message: Message| json!({ "messageId": message.message_id, "body": message.body });
        let records: Vec<Value> = messages.into_iter().map(record).collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    }
}

#[tokio::test]
async fn an_order_gives_points_once_and_takes_them_back_with_a_refund() {
    let fixture = Fixture::with_points().await;
    let nothing = json!({ "points": 0, "growth": 0, "orders": [] });
    assert_eq!(fixture.points(ALICE).await, nothing);
    let order = fixture.bought("alice", "vip-1-1", "pi_1").await;
    assert_eq!(fixture.points(ALICE).await, nothing, "nothing is settled yet");
    let asked = fixture.settled().await;
    for _ in 0..3 {
        assert_eq!(failures(&award_points::handle(&fixture.app, asked.clone()).await), 0);
    }
    let of_order = |points: u64, growth: u64| {
        json!({ "points": points, "growth": growth,
            "orders": [{ "order": order["order"], "points": points, "growth": growth }] })
    };
    assert_eq!(fixture.points(ALICE).await, of_order(75, 25));

    let part = json!({ "number": 1, "tickets": [], "amount_minor": 501, "currency": "EUR", "reason": "late" });
    let target = format!("/orders/{}/refunds/operator", order["order"].as_str().unwrap());
    fixture.json(Sender::Operator, "POST", &target, &part).await.ok(200);
    let later = fixture.settled().await;
    assert_eq!(failures(&award_points::handle(&fixture.app, later).await), 0);
    // The first message once more, from before: it finds what is written by now.
    assert_eq!(failures(&award_points::handle(&fixture.app, asked).await), 0);
    assert_eq!(fixture.points(ALICE).await, of_order(57, 19));
    // Nobody else sees any of it, and nobody without a name.
    assert_eq!(fixture.points(Sender::Buyer("mallory")).await, nothing);
    fixture.get(Sender::Nobody, "/points").await.problem(401, "not-authenticated");
}

#[tokio::test]
async fn an_order_that_is_refunded_before_its_points_are_given_gives_none() {
    let fixture = Fixture::with_points().await;
    let order = fixture.bought("alice", "vip-1-2", "pi_2").await;
    let asked = fixture.settled().await;
    let whole = json!({ "number": 1, "tickets": "all" });
    let target = format!("/orders/{}/refunds/operator", order["order"].as_str().unwrap());
    fixture.json(Sender::Operator, "POST", &target, &whole).await.ok(200);
    let both = [asked, fixture.settled().await];
    for batch in both {
        assert_eq!(failures(&award_points::handle(&fixture.app, batch).await), 0);
    }
    let shown = fixture.points(ALICE).await;
    assert_eq!(shown, json!({ "points": 0, "growth": 0, "orders": [] }));
}

#[tokio::test]
async fn a_sale_that_gives_no_points_asks_nobody_for_any() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    fixture.bought("alice", "vip-1-1", "pi_3").await;
    assert_eq!(fixture.settled().await.records.len(), 0);
    assert_eq!(fixture.points(ALICE).await["points"], 0);
}

#[tokio::test]
async fn a_message_that_is_none_and_one_of_no_order_harm_nobody() {
    let fixture = Fixture::with_points().await;
    fixture.bought("alice", "vip-1-3", "pi_4").await;
    let mut batch = fixture.settled().await;
    let mut bad = batch.records[0].clone();
    bad.message_id = Some("bad".to_owned());
    bad.body = Some(r#"{"order":"first"}"#.to_owned());
    let mut unknown = batch.records[0].clone();
    unknown.message_id = Some("unknown".to_owned());
    unknown.body = Some(r#"{"order":"4611686018427387905","facts":2}"#.to_owned());
    batch.records.extend([bad, unknown]);
    let answered = award_points::handle(&fixture.app, batch).await;
    let failed: Vec<&str> = answered
        .batch_item_failures
        .iter()
        .map(|failure| failure.item_identifier.as_str())
        .collect();
    assert_eq!(failed, ["bad"]);
    assert_eq!(fixture.points(ALICE).await["points"], 75);
}

#[tokio::test]
async fn a_sale_file_that_breaks_a_rule_of_points_is_refused() {
    let fixture = Fixture::start().await;
    for (points, at) in [
        (json!({ "per_minor": 100 }), "points"),
        (json!({ "per_minor": 100, "points": 0, "growth": 0 }), "points"),
    ] {
        let mut file = hall();
        file["points"] = points;
        let refused = fixture.publish(&file).await.problem(422, "invalid");
        assert_eq!(refused["defects"][0]["at"], at, "{refused}");
    }
    for points in [
        json!({ "per_minor": 0, "points": 1 }),
        json!({ "per_minor": -5, "points": 1 }),
        json!({ "points": 1 }),
        json!({ "per_minor": 1, "points": 65_536 }),
        json!({ "per_minor": 1, "points": 1.5 }),
        json!({ "per_minor": 1, "points": 1, "other": 1 }),
        json!("many"),
    ] {
        let mut file = hall();
        file["points"] = points.clone();
        let got = fixture.publish(&file).await;
        assert!(matches!(got.status, 400 | 422), "{points}: {}", got.status);
    }
}
