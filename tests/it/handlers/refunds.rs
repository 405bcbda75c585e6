//! Money that goes back.

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use fake_payments::Fault;
use local::handlers::refund;
use serde_json::json;

use super::{Fixture, Sender, failures, hall, records};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_goes_back_is_asked_of_the_provider_and_shown() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let alice = Sender::Buyer("alice");
    let lines = json!([{ "tier": "vip", "seats": ["vip-1-1", "vip-1-2"] }]);
    let order = fixture.buy("alice", "hall", lines.clone()).await.ok(201);
    let number = order["order"].as_str().unwrap();
    let target = format!("/orders/{number}");
    fixture.json(alice, "POST", &format!("{target}/cancel"), &json!({})).await.ok(200);
    fixture.buy("bob", "hall", lines.clone()).await.ok(201);
    fixture.callback("pi_late", &json!(number), 5000).await.ok(200);
    let shown = fixture.get(alice, &target).await.ok(200);
    assert_eq!(
        (&shown["state"], shown["payments"].as_array().unwrap().len()),
        (&json!("refund_due"), 1)
    );
    let payment = &shown["payments"][0];
    assert_eq!((&payment["payment"], &payment["outcome"]), (&json!("pi_late"), &json!("refund")));
    assert_eq!((&payment["reason"], &payment["amount_minor"]), (&json!("cancelled"), &json!(5000)));
    assert_eq!(payment["refund"]["state"], "requested");

    let euros = Money { amount_minor: MinorUnits(5000), currency: Currency::new("EUR").unwrap() };
    fixture.provider.capture("pi_late", number.parse().unwrap(), euros, Timestamp::now()).unwrap();
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    fixture.provider.next(Fault::FailRefund);
    assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 1, "it comes again");
    fixture.provider.next(Fault::LeaveRefundPending);
    assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
    let shown = fixture.get(alice, &target).await.ok(200);
    let refund = &shown["payments"][0]["refund"];
    assert_eq!((&shown["state"], &refund["state"]), (&json!("refund_due"), &json!("pending")));
    fixture.provider.settle_refunds("pi_late", true).unwrap();
    for _ in 0..2 {
        assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
        let done = fixture.get(alice, &target).await.ok(200);
        let refund = &done["payments"][0]["refund"];
        assert_eq!((&done["state"], &refund["state"]), (&json!("refunded"), &json!("refunded")));
    }
    assert_eq!(fixture.provider.ledger()[0].refunds.len(), 1);
    let nonsense = refund::handle(&fixture.app, records(&[json!("not json")])).await;
    assert_eq!(failures(&nonsense), 1, "left to the dead-letter queue");
}
