//! Answers that are lost, late or refusals of DynamoDB's own, through a proxy.

use std::collections::BTreeSet;
use std::time::Duration;

use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::order::OrderEvent;
use engine::ports::{ChangeReply, CreateReply, Orders, StoreError};
use local::stores::sdk_config;
use serde_json::json;
use shared::dynamodb::{Dynamo, DynamoOrders, StoreConfig, Tables};
use shared::runtime::metrics::{Function, Metrics};

use super::{Fixture, LIMIT, after, config, seats};
use crate::metrics::{Lines, STAGE, counts};

fn conflict(items: usize) -> Act {
    let mut reasons = vec![json!({ "Code": "None" }); items - 1];
    reasons.push(json!({ "Code": "TransactionConflict", "Message": "in conflict" }));
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    Act::Answer(400, json!({ "__type": kind, "CancellationReasons": reasons }))
}

fn throttled() -> Act {
    let kind = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
    Act::Answer(400, json!({ "__type": kind, "message": "slow down" }))
}

fn tokens(proxy: &HttpProxy) -> Vec<String> {
    let token = |request: &Request| request.body["ClientRequestToken"].as_str().unwrap().to_owned();
    proxy.seen("TransactWriteItems").iter().map(token).collect()
}

#[tokio::test]
async fn a_lost_answer_leads_to_one_order() {
    let fixture = Fixture::new().await;
    let order = fixture.order("alice", seats(&[0, 1]));
    let (proxy, orders) =
        fixture.behind(|_, before| if before == 0 { Act::LoseAnswer } else { Act::Forward }).await;
    assert_eq!(orders.create(&order, LIMIT).await, Ok(CreateReply::Created));
    let tokens_seen = tokens(&proxy);
    assert_eq!(tokens_seen.len(), 2);
    assert_eq!(tokens_seen[0], tokens_seen[1], "the same attempt");
    assert_eq!(fixture.tickets_of("alice").await, "2");
    assert_eq!(fixture.claims().await.len(), 2);

    // The same for its end, and for a request that never got through.
    let end = after(&order, OrderEvent::Cancel, None);
    let (_proxy, orders) = fixture
        .behind(|_, before| match before {
            0 => Act::LoseRequest,
            1 => Act::LoseAnswer,
            _ => Act::Forward,
        })
        .await;
    assert_eq!(orders.end(&end).await, Ok(ChangeReply::Done));
    assert_eq!(fixture.tickets_of("alice").await, "0");

    // It ended less than ten minutes ago; the same number is not a success from memory.
    let again = fixture.orders.create(&order, LIMIT).await;
    assert_eq!(again, Ok(CreateReply::Exists(Box::new(end))));
}

#[tokio::test]
async fn without_any_answer_the_outcome_is_unknown() {
    let fixture = Fixture::new().await;
    let order = fixture.order("alice", seats(&[0]));
    let (proxy, orders) = fixture.behind(|_, _| Act::LoseAnswer).await;
    assert!(matches!(orders.create(&order, LIMIT).await, Err(StoreError::Unknown(_))));
    assert_eq!(proxy.seen("TransactWriteItems").len(), 4, "bounded");
    // It did happen, and repeating it finds the order.
    let again = fixture.orders.create(&order, LIMIT).await;
    assert_eq!(again, Ok(CreateReply::Exists(Box::new(order.clone()))));

    // Throttled to the end after one lost answer: it may have happened all the same.
    let other = fixture.order("alice", seats(&[1]));
    let (_proxy, orders) =
        fixture.behind(|_, before| if before == 0 { Act::LoseAnswer } else { throttled() }).await;
    assert!(matches!(orders.create(&other, LIMIT).await, Err(StoreError::Unknown(_))));
    assert_eq!(fixture.claims().await.len(), 2);

    // A read changes nothing, so that nothing is unknown about it.
    assert!(matches!(
        fixture.behind(|_, _| Act::LoseAnswer).await.1.get(order.number).await,
        Err(StoreError::Unavailable(_))
    ));
    let broken = json!({ "__type": "InternalServerError", "message": "?" });
    let (_proxy, orders) = fixture.behind(move |_, _| Act::Answer(500, broken.clone())).await;
    assert!(matches!(orders.create(&other, LIMIT).await, Err(StoreError::Unknown(_))));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let fixture = Fixture::new().await;
    // Accepts connections into its backlog, and reads nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = StoreConfig {
        attempt_timeout: Duration::from_millis(50),
        attempts: 2,
        ..config(format!("http://{}", silent.local_addr().unwrap()), Tables::with_prefix(""))
    };
    let orders = DynamoOrders::new(Dynamo::new(&sdk_config(), config));
    let order = fixture.order("alice", seats(&[0]));
    assert!(matches!(orders.create(&order, LIMIT).await, Err(StoreError::Unknown(_))));
    assert!(matches!(orders.get(order.number).await, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn conflicts_and_throttling_are_tried_again() {
    let fixture = Fixture::new().await;
    let order = fixture.order("alice", seats(&[0, 1]));
    let (proxy, orders) = fixture
        .behind(|_, before| match before {
            0 => conflict(4),
            1 => throttled(),
            _ => Act::Forward,
        })
        .await;
    let lines = Lines::default();
    let metrics = Metrics::to(STAGE, lines.clone());
    let created = metrics.of(Function::Reserve, orders.create(&order, LIMIT)).await;
    assert_eq!(created, Ok(CreateReply::Created));
    let met = [("ColdStarts reserve", 1), ("Transactions", 1), ("VersionConflicts", 1)];
    assert_eq!(lines.counted(), counts(&met), "each once, however many attempts");
    let tokens: BTreeSet<String> = tokens(&proxy).into_iter().collect();
    assert_eq!(tokens.len(), 3, "nothing happened, so each is an attempt of its own");

    let (proxy, orders) = fixture.behind(|_, _| conflict(4)).await;
    let end = after(&order, OrderEvent::Cancel, None);
    let ended = metrics.of(Function::Cancel, orders.end(&end)).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))));
    let failed = [("TransactionFailures", 1), ("Transactions", 1), ("VersionConflicts", 1)];
    assert_eq!(lines.counted(), counts(&failed));
    assert_eq!(proxy.seen("TransactWriteItems").len(), 4, "bounded");
    assert_eq!(fixture.orders.get(order.number).await, Ok(Some(order)));
}
