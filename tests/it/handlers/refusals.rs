//! What every refusal looks like.

use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};
use shared::http::problem::{AdmissionFate, Kind};
use shared::providers::stripe::signature::sign;

use super::{Fixture, PAYMENT_SECRET, Sender, best, hall, request, send};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_has_its_problem() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let (nobody, alice, operator) = (Sender::Nobody, Sender::Buyer("alice"), Sender::Operator);
    let one = json!({ "tickets": 1 });

    // Authentication.
    let admissions = "/sales/hall/admissions";
    fixture.json(nobody, "POST", admissions, &one).await.problem(401, "not-authenticated");
    fixture.json(alice, "PUT", "/sales/hall", &hall()).await.problem(401, "not-authenticated");
    fixture
        .json(alice, "POST", "/sales/hall/orders", &json!({ "lines": [] }))
        .await
        .problem(403, "not-admitted");

    // The request.
    let raw = async |sender, method: &str, target: &str, content_type: &str, body: &str| {
        let headers = json!({ "content-type": content_type });
        send(&fixture.app, request(sender, method, target, headers, body)).await
    };
    let json_type = "application/json";
    raw(alice, "POST", admissions, json_type, "{").await.problem(400, "malformed");
    raw(alice, "POST", admissions, "text/plain", "{}").await.problem(415, "unsupported-media-type");
    let long = format!("{{\"tickets\":1}}{}", " ".repeat(64 * 1024));
    raw(alice, "POST", admissions, json_type, &long).await.problem(413, "too-large");
    let problem = fixture.json(alice, "POST", admissions, &json!({ "tickets": 5 })).await;
    assert_eq!(problem.problem(422, "invalid")["at"], "tickets");
    fixture.json(alice, "POST", admissions, &json!({})).await.problem(422, "invalid");
    fixture.json(alice, "POST", "/sales/none/admissions", &one).await.problem(404, "not-found");
    fixture.get(nobody, "/sales/none").await.problem(404, "not-found");
    fixture.get(nobody, "/sales/none/availability").await.problem(404, "not-found");
    fixture.get(alice, "/orders/1024").await.problem(404, "not-found");
    fixture.get(alice, "/orders/none").await.problem(404, "not-found");
    fixture.json(alice, "DELETE", "/sales/hall", &json!({})).await.problem(404, "not-found");

    // The operator.
    let mut broken = hall();
    broken["limit_per_buyer"] = json!(0);
    let problem = fixture.publish(&broken).await.problem(422, "invalid");
    assert_eq!(problem["defects"][0]["at"], "limit_per_buyer");
    let other = fixture.json(operator, "PUT", "/sales/other", &hall()).await;
    assert_eq!(other.problem(422, "invalid")["at"], "sale");
    let mut moved = hall();
    moved["tiers"].as_array_mut().unwrap().pop();
    fixture.publish(&moved).await.problem(409, "seats-differ");

    // Availability.
    let required = json!([{ "tier": "small", "best": { "count": 3, "together": "required" } }]);
    fixture.buy("alice", "hall", required).await.problem(409, "no-adjacent");
    let problem = fixture.buy("alice", "hall", json!([{ "tier": "vip", "seats": ["vip-1-99"] }]));
    assert_eq!(problem.await.problem(422, "invalid")["at"], "lines[0].seats[0]");
    fixture.buy("carol", "hall", best("small", 4)).await.ok(201);
    assert_eq!(
        fixture.buy("dave", "hall", best("small", 1)).await.problem(409, "sold-out")["tier"],
        "small"
    );
    let problem = fixture.buy("carol", "hall", best("vip", 1)).await.problem(403, "limit-reached");
    assert_eq!(problem["remaining_allowance"], json!(0));

    // The gate and the window.
    let mut soon = hall();
    soon["sale"] = json!("soon");
    soon["opens_at"] = json!("2099-01-01T00:00:00Z");
    fixture.publish(&soon).await.ok(200);
    let problem = fixture.json(alice, "POST", "/sales/soon/admissions", &one).await;
    assert_eq!(problem.problem(403, "sale-closed")["opens_at"], "2099-01-01T00:00:00.000Z");
    let mut slow = hall();
    slow["sale"] = json!("slow");
    slow["gate"]["user_lock_ms"] = json!(60_000);
    fixture.publish(&slow).await.ok(200);
    fixture.admission("alice", "slow", 1).await;
    let problem = fixture.json(alice, "POST", "/sales/slow/admissions", &one).await;
    assert!(problem.problem(429, "too-many-requests")["retry_after_seconds"].as_u64() <= Some(60));

    // The provider.
    let callback = async |target: &str, headers: Value, body: &str| {
        send(&fixture.app, request(nobody, "POST", target, headers, body)).await
    };
    let stripe = "/payments/stripe/callback";
    callback(stripe, json!({}), "{}").await.problem(401, "not-authenticated");
    let foreign = sign(b"whsec_other", b"{}", Timestamp::now());
    callback(stripe, json!({ "stripe-signature": foreign }), "{}")
        .await
        .problem(401, "not-authenticated");
    let ours = |body: &str| sign(PAYMENT_SECRET, body.as_bytes(), Timestamp::now());
    let headers = json!({ "payment-signature": ours("{}") });
    callback(stripe, headers.clone(), "{}").await.problem(422, "invalid");
    callback("/payments/none/callback", headers, "{}").await.problem(404, "not-found");
    let created = r#"{"type":"payment_intent.created"}"#;
    let ignored = callback(stripe, json!({ "stripe-signature": ours(created) }), created).await;
    assert_eq!(ignored.ok(200), json!({ "outcome": "ignored" }));
    let unknown = fixture.callback("pi_9", &json!("1024"), 1).await.ok(200);
    assert_eq!(unknown, json!({ "outcome": "ignored" }));
}

/// What the table of problems says of an admission is what becomes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admission_that_a_refusal_keeps_makes_an_order_and_one_that_is_used_up_makes_none() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    fixture.buy("carol", "hall", best("small", 4)).await.ok(201);
    let taken = json!([{ "tier": "vip", "seats": ["vip-1-1"] }]);
    fixture.buy("dave", "hall", taken.clone()).await.ok(201);
    let token = fixture.admission("alice", "hall", 4).await["token"].clone();

    let adjacent = json!([{ "tier": "vip", "best": { "count": 4, "together": "required" } }]);
    let kept = [
        (409, Kind::SoldOut, best("small", 1)),
        (409, Kind::SeatTaken, taken),
        (422, Kind::Invalid, json!([{ "tier": "vip", "seats": ["vip-1-99"] }])),
        (422, Kind::Invalid, json!([{ "tier": "none", "best": { "count": 1 } }])),
        (422, Kind::Invalid, json!([])),
    ];
    for (status, kind, lines) in kept {
        assert_eq!(kind.admission(), Some(AdmissionFate::Kept), "{kind:?}");
        let refused = fixture.order("alice", "hall", &token, lines).await;
        refused.problem(status, kind.slug());
    }
    let made = fixture.order("alice", "hall", &token, adjacent.clone()).await.ok(201);

    // The same again is the same order; anything else is refused, whatever it is.
    let again = fixture.order("alice", "hall", &token, adjacent).await.ok(201);
    assert_eq!(again["order"], made["order"]);
    assert_eq!(Kind::TokenReused.admission(), Some(AdmissionFate::UsedUp));
    for lines in [best("vip", 1), best("vip", 2)] {
        let reused = fixture.order("alice", "hall", &token, lines).await;
        reused.problem(422, "token-reused");
    }
    assert_eq!(Kind::NotAdmitted.admission(), Some(AdmissionFate::UsedUp));
    let foreign = fixture.order("bob", "hall", &token, best("vip", 1)).await;
    foreign.problem(403, "not-admitted");
}
