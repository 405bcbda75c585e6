//! A buyer's orders, and many orders at once.

use chaos::proxy::http::Act;
use engine::domain::basics::ids::UserId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::{Order, OrderEvent};
use engine::ports::{ChangeReply, Orders, StoreError};
use serde_json::json;

use super::{Fixture, after, seats};

#[tokio::test]
async fn a_buyer_sees_the_own_orders_newest_first() {
    let fixture = Fixture::new().await;
    let mut numbers = Vec::new();
    for seat in 0..5 {
        let order = fixture.order("1", seats(&[seat]));
        fixture.create(&order).await;
        numbers.push(order.number);
    }
    // The same gene, and a name that begins alike; and a number that is no order.
    for (seat, other) in [(10, "1025"), (11, "10"), (12, "1 0")] {
        fixture.create(&fixture.order(other, seats(&[seat]))).await;
    }
    let dead = after(&fixture.order("1", seats(&[20])), OrderEvent::Expire, None);
    let tombstone = Order { lines: Vec::new(), ..dead };
    assert_eq!(fixture.orders.write_tombstone(&tombstone).await, Ok(ChangeReply::Done));

    numbers.reverse();
    let user = UserId::new("1").unwrap();
    let (mut before, mut seen, mut pages) = (None, Vec::new(), Vec::new());
    loop {
        let page = fixture.orders.of_user(&user, before, 2).await.unwrap();
        pages.push(page.orders.len());
        seen.extend(page.orders.iter().map(|order| order.number));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(pages, [2, 2, 1]);
    assert_eq!(seen, numbers);
    let whole = fixture.orders.of_user(&user, None, 5).await.unwrap();
    assert_eq!((whole.orders.len(), whole.next), (5, None));
    let nobody = UserId::new("nobody").unwrap();
    let none = fixture.orders.of_user(&nobody, None, 5).await.unwrap();
    assert_eq!((none.orders, none.next), (vec![], None));
}

#[tokio::test]
async fn many_orders_are_read_in_the_order_asked_for() {
    let fixture = Fixture::new().await;
    let mut numbers = Vec::new();
    for user in 0..130 {
        let order = fixture.order(&format!("{user}"), Vec::new());
        let tombstone = after(&order, OrderEvent::Expire, None);
        assert_eq!(fixture.orders.write_tombstone(&tombstone).await, Ok(ChangeReply::Done));
        numbers.push(order.number);
    }
    numbers.reverse();
    let missing = fixture.order("z", Vec::new()).number;
    let numbers_read = [&numbers[..], &[missing, numbers[0]]].concat();
    // The first two batches come back with every key but the first unprocessed.
    let (proxy, orders) = fixture
        .behind(|request, before| match (request.operation.as_str(), before) {
            ("BatchGetItem", 0 | 1) => {
                let answer = json!({
                    "Responses": {},
                    "UnprocessedKeys": request.body["RequestItems"],
                });
                Act::Answer(200, answer)
            }
            _ => Act::Forward,
        })
        .await;
    let read = orders.get_many(&numbers_read).await.unwrap();
    let read: Vec<OrderNumber> = read.iter().map(|order| order.number).collect();
    assert_eq!(read, numbers);
    assert_eq!(proxy.seen("BatchGetItem").len(), 4);
    assert_eq!(orders.get_many(&[]).await, Ok(vec![]));

    let (_proxy, orders) = fixture
        .behind(|request, _| {
            Act::Answer(200, json!({ "UnprocessedKeys": request.body["RequestItems"] }))
        })
        .await;
    assert!(matches!(orders.get_many(&numbers).await, Err(StoreError::Unavailable(_))));
}
