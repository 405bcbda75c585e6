//! Captures that are reported while a store does not answer.

use std::time::{Duration, Instant};

use local::handlers::decide_payment;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Fixture, Sender, best, failures, hall, records, send};

/// Most time that a kept capture is invisible: its delay, on a busy machine.
const MAX_DELAY: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_that_no_store_takes_now_is_kept_before_its_provider_is_answered() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let kept = &fixture.queues.callback.url;

    let cut_off = fixture.cut_off_process(false).await;
    let request = || fixture.callback_request("pi_1", &order["order"], 5000);
    send(&cut_off, request()).await.problem(503, "outcome-unknown");
    assert_eq!(
        fixture.waiting(kept).await,
        0,
        "neither decided nor kept: the provider calls again"
    );

    let cut_off = fixture.cut_off_process(true).await;
    let answered = Instant::now();
    let got = send(&cut_off, request()).await;
    println!("while DynamoDB does not answer: {} {}", got.status, got.body);
    assert_eq!(got.ok(200), json!({ "outcome": "kept" }));
    println!("kept within {:?}", answered.elapsed());
    assert_eq!(fixture.waiting(kept).await, 1);
    // What is forged is refused before any store is asked, and leaves nothing.
    let forged = {
        let mut request = request();
        let header = "t=1,v1=00".parse().unwrap();
        request.headers_mut().insert("stripe-signature", header);
        request
    };
    send(&cut_off, forged).await.problem(401, "not-authenticated");
    assert_eq!(fixture.waiting(kept).await, 1);

    let batch = loop {
        let batch = fixture.batch(kept).await;
        if !batch.records.is_empty() {
            break batch;
        }
        assert!(answered.elapsed() < MAX_DELAY, "{kept} has nothing");
        sleep(Duration::from_millis(50)).await;
    };
    let body: Value = serde_json::from_str(batch.records[0].body.as_deref().unwrap()).unwrap();
    let expected = json!({
        "provider": "stripe", "payment": "pi_1", "order": order["order"], "amount_minor": 5000,
        "currency": "EUR",
    });
    assert_eq!(body, expected, "the capture, and nothing else of the callback");
    assert_eq!(failures(&decide_payment::handle(&cut_off, batch.clone()).await), 1);
    assert_eq!(failures(&decide_payment::handle(&fixture.app, batch.clone()).await), 0);
    let target = format!("/orders/{}", order["order"].as_str().unwrap());
    let shown = fixture.get(Sender::Buyer("alice"), &target).await.ok(200);
    assert_eq!(shown["state"], "paid");

    // A message that comes again, and the provider's own repetition, decide nothing anew.
    let counted = fixture.waiting(&fixture.queues.sync.url).await;
    assert_eq!(counted, 1);
    let twice = records(&[body.clone(), body, json!("not json")]);
    assert_eq!(failures(&decide_payment::handle(&fixture.app, twice).await), 1);
    let again = fixture.callback("pi_1", &order["order"], 5000).await.ok(200);
    assert_eq!(again, json!({ "outcome": "accepted" }));
    let shown = fixture.get(Sender::Buyer("alice"), &target).await.ok(200);
    assert_eq!(shown["payments"].as_array().map(Vec::len), Some(1), "{shown:#}");
}
