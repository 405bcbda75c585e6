//! Messages of queues, handled one by one.

use aws_sdk_dynamodb::types::AttributeValue;
use local::handlers::expire_orders;
use serde_json::{Value, json};

use super::{Fixture, Sender, best, hall, records};

/// An expiry message that says that the order's time is up.
pub(super) fn overdue(order: &Value) -> Value {
    json!({ "sale": "hall", "order": order, "due_at": "2020-01-01T00:00:00Z" })
}

/// Hands a batch to expire-orders; which of its messages failed.
pub(super) async fn failed_to_expire(fixture: &Fixture, bodies: &[Value]) -> Vec<String> {
    let handled = expire_orders::handle(&fixture.app, records(bodies)).await;
    handled.batch_item_failures.into_iter().map(|one| one.item_identifier).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_expiry_message_is_requeued() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201)["order"].clone();
    let expiry = &fixture.queues.expiry.url;
    let before = fixture.waiting(expiry).await;
    let bodies = [overdue(&order), json!("not json"), overdue(&json!("1024"))];
    let failed = failed_to_expire(&fixture, &bodies).await;
    assert_eq!(failed, ["1"], "only what is malformed fails");
    assert_eq!(
        fixture.waiting(expiry).await,
        before + 1,
        "the order has time: its message goes on"
    );
    let target = format!("/orders/{}", order.as_str().unwrap());
    assert_eq!(fixture.get(Sender::Buyer("alice"), &target).await.ok(200)["state"], "pending");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_cannot_be_read_holds_up_no_other_of_its_batch() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201)["order"].clone();
    let unreadable = fixture.buy("bob", "hall", best("vip", 1)).await.ok(201)["order"].clone();
    let number: u64 = unreadable.as_str().unwrap().parse().unwrap();
    fixture
        .dynamodb
        .update_item()
        .table_name(&fixture.orders_table)
        .key("gene", AttributeValue::N((number % 1024).to_string()))
        .key("sk", AttributeValue::S(format!("order#{number}")))
        .update_expression("SET #state = :nonsense")
        .condition_expression("attribute_exists(sk)")
        .expression_attribute_names("#state", "state")
        .expression_attribute_values(":nonsense", AttributeValue::S("nonsense".to_owned()))
        .send()
        .await
        .unwrap();
    let bodies = [overdue(&unreadable), overdue(&order), overdue(&json!("1024"))];
    let failed = failed_to_expire(&fixture, &bodies).await;
    assert_eq!(failed, ["0"], "the others are looked at by themselves");
}
