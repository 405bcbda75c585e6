//! The entry of callbacks: to whoever has no key, or calls from elsewhere, there is nothing.

use serde_json::{Value, json};

use super::{ENTRY_KEY, Fixture, Got, PAYMENT_SECRET, Sender, best, hall, send, signed_callback};
use engine::domain::basics::time::Timestamp;
use shared::providers::stripe::signature::sign;

/// An address of the provider.
const PROVIDER: &str = "203.0.113.7";

/// Sends a callback to a path of the entry, from an address.
async fn called(
    fixture: &Fixture,
    path: &str,
    from: Option<&str>,
    signed: &(Value, String),
) -> Got {
    let (headers, body) = signed;
    let mut event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": headers, "body": body, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "api", "stage": "$default", "timeEpoch": 0,
            "requestId": "r", "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1" }
        }
    });
    event["requestContext"]["http"]["sourceIp"] = json!(from);
    let request = lambda_http::request::from_str(&event.to_string()).unwrap();
    send(&fixture.app, request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_needs_the_key_a_listed_sender_and_a_signature_in_this_order() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let signed = signed_callback("pi_1", &order["order"], 5000);
    let forged =
        (json!({ "stripe-signature": sign(b"other", b"{}", Timestamp::now()) }), "{}".into());
    let path = format!("/callbacks/{ENTRY_KEY}/stripe");
    let wrong = path.replace("0123", "3210");
    let from = Some(PROVIDER);

    // A wrong key is a plain 404, whatever else the request is.
    for (path, from, request) in [
        (&wrong, from, &signed),
        (&wrong, from, &forged),
        (&wrong, None, &(json!({}), "x".repeat(100_000))),
        (&path, Some("192.0.2.1"), &signed),
        (&path, None, &signed),
    ] {
        let nothing = called(&fixture, path, from, request).await.problem(404, "not-found");
        assert_eq!(nothing["detail"], "there is no such resource", "{path} {from:?}");
    }
    // What a header says of the sender counts for nothing.
    let (mut headers, body) = signed.clone();
    headers["x-forwarded-for"] = json!(PROVIDER);
    called(&fixture, &path, Some("192.0.2.1"), &(headers, body)).await.problem(404, "not-found");

    let large = (signed.0.clone(), "x".repeat(100_000));
    called(&fixture, &path, from, &large).await.problem(413, "too-large");
    called(&fixture, &path, from, &forged).await.problem(401, "not-authenticated");
    let nobody = path.replace("stripe", "nobody");
    called(&fixture, &nobody, from, &signed).await.problem(404, "not-found");
    let target = format!("/orders/{}", order["order"].as_str().unwrap());
    let shown = fixture.get(Sender::Buyer("alice"), &target).await.ok(200);
    assert_eq!(shown["state"], "pending");

    let accepted = called(&fixture, &path, from, &signed).await.ok(200);
    assert_eq!(accepted, json!({ "outcome": "accepted" }));
    let shown = fixture.get(Sender::Buyer("alice"), &target).await.ok(200);
    assert_eq!(shown["state"], "paid");
    // The route of the API goes on as before, and knows what was decided.
    let again = fixture.callback("pi_1", &order["order"], 5000).await.ok(200);
    assert_eq!(again, accepted);
    assert!(!PAYMENT_SECRET.is_empty());
}
