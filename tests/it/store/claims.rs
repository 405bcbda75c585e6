//! Claims: one order a number, one owner a seat, and the limit of a buyer.

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use engine::domain::ids::{AttendeeId, Leg, Seat};
use engine::domain::number::OrderNumber;
use engine::domain::order::{Order, OrderEvent, OrderLine, PaymentOutcome};
use engine::domain::tickets::Tickets;
use engine::ports::{ChangeReply, Claim, CreateReply, Orders, Settlement, StoreError, block_of};
use shared::dynamodb::{Dynamo, tables};

use super::{Fixture, LIMIT, after, line, record, sale, seat_leg, seats, tier};

pub(super) fn for_attendees(mut line: OrderLine, attendees: &[&str]) -> OrderLine {
    for (ticket, attendee) in line.tickets.iter_mut().zip(attendees) {
        ticket.attendee = Some(AttendeeId::new(*attendee).unwrap());
    }
    line
}

#[tokio::test]
async fn an_order_is_made_once_and_read_back() {
    let fixture = Fixture::new().await;
    let lines =
        vec![for_attendees(line("a", (1, 3), &[0, 130]), &["p1", "p2"]), line("b", (0, 4), &[7])];
    let order = fixture.order("alice", lines);
    assert_eq!(fixture.orders.get(order.number).await, Ok(None));
    fixture.create(&order).await;
    assert_eq!(fixture.orders.get(order.number).await, Ok(Some(order.clone())));
    let again = fixture.orders.create(&order, LIMIT).await;
    assert_eq!(again, Ok(CreateReply::Exists(Box::new(order.clone()))));
    assert_eq!(fixture.tickets_of("alice").await, "3");
    let owned = |seat, leg| Claim { seat: Seat(seat), leg: Leg(leg), order: order.number };
    assert_eq!(fixture.claims().await, [owned(0, 1), owned(0, 2)]);
    let next = fixture.orders.claims(&sale(), &tier("a"), 1).await.unwrap();
    assert_eq!(next, [owned(130, 1), owned(130, 2)]);
    assert_eq!(fixture.orders.claims(&sale(), &tier("a"), 2).await, Ok(vec![]));
}

#[tokio::test]
async fn every_refusal_has_its_rank() {
    let fixture = Fixture::new().await;
    let first = fixture.order("alice", vec![for_attendees(line("a", (1, 3), &[0]), &["p1"])]);
    fixture.create(&first).await;
    let create = async |order: &Order, limit| {
        fixture.orders.create(order, Tickets::new(limit)).await.unwrap()
    };

    let all = for_attendees(line("a", (0, 4), &[0, 1]), &["p1", "p2"]);
    let rival = fixture.order("alice", vec![all]);
    let taken = vec![seat_leg(0, 1), seat_leg(0, 2)];
    assert_eq!(create(&rival, 2).await, CreateReply::SeatsTaken(taken));

    let elsewhere = |attendee| vec![for_attendees(line("a", (0, 4), &[5, 6]), &[attendee, "p3"])];
    let rival = fixture.order("alice", elsewhere("p1"));
    assert_eq!(create(&rival, 2).await, CreateReply::LimitReached { held: Tickets::new(1) });
    let p1 = AttendeeId::new("p1").unwrap();
    assert_eq!(create(&rival, 3).await, CreateReply::AttendeeTaken(p1));

    // More than the limit at once, by somebody who has none yet.
    let rival = fixture.order("bob", elsewhere("p4"));
    assert_eq!(create(&rival, 1).await, CreateReply::LimitReached { held: Tickets::NONE });
    // One person on two seats of one order.
    let p3 = AttendeeId::new("p3").unwrap();
    let twice = fixture.order("bob", elsewhere("p3"));
    assert_eq!(create(&twice, 3).await, CreateReply::AttendeeTaken(p3));

    // The same number with other content outranks every other refusal.
    let other = Order { lines: elsewhere("p1"), ..first.clone() };
    assert_eq!(create(&other, 0).await, CreateReply::Exists(Box::new(first.clone())));
    let other = Order { lines: elsewhere("p3"), ..first.clone() };
    assert_eq!(create(&other, 0).await, CreateReply::Exists(Box::new(first)));

    // None of these left anything behind.
    assert_eq!(fixture.claims().await.len(), 2);
    assert_eq!(fixture.tickets_of("alice").await, "1");
    assert_eq!(fixture.tickets_of("bob").await, "none");
    let rival = fixture.order("bob", vec![for_attendees(line("a", (0, 1), &[0]), &["p2"])]);
    fixture.create(&rival).await;
}

#[tokio::test]
async fn what_no_caller_may_ask_is_a_broken_contract() {
    let fixture = Fixture::new().await;
    let order = fixture.order("alice", seats(&[0]));
    let paid = after(&order, OrderEvent::Pay, Some("pi"));
    let accepted = record(&order, "pi", PaymentOutcome::Accepted);
    let contract = |error: StoreError| assert!(matches!(error, StoreError::Contract(_)), "{error}");
    contract(fixture.orders.create(&paid, LIMIT).await.unwrap_err());
    contract(fixture.orders.end(&paid).await.unwrap_err());
    contract(fixture.orders.write_tombstone(&order).await.unwrap_err());
    let pay = Settlement::Pay(order.clone());
    contract(fixture.orders.settle(&accepted, &pay, LIMIT).await.unwrap_err());
    contract(fixture.orders.record_refund(&accepted, None).await.unwrap_err());
    let seat_twice = fixture.order("alice", seats(&[0, 0]));
    contract(fixture.orders.create(&seat_twice, LIMIT).await.unwrap_err());
}

/// Runs 32 buyers for the same three seats; returns the orders that got them.
async fn contend(fixture: &Fixture, guarded: bool) -> Vec<OrderNumber> {
    let mut attempts = tokio::task::JoinSet::new();
    for buyer in 0..32 {
        let order = fixture.order(&format!("{buyer}"), seats(&[3, 4, 5]));
        let (orders, db) = (fixture.orders.clone(), fixture.db.clone());
        attempts.spawn(async move {
            let sold = if guarded {
                let reply = orders.create(&order, LIMIT).await.unwrap();
                let taken = (3..6).map(|seat| seat_leg(seat, 0)).collect();
                let refused = reply == CreateReply::SeatsTaken(taken);
                assert!(refused || reply == CreateReply::Created, "{reply:?}");
                !refused
            } else {
                create_unguarded(&db, &order).await
            };
            sold.then_some(order.number)
        });
    }
    attempts.join_all().await.into_iter().flatten().collect()
}

/// The transaction of `create` with the condition of the claims left out.
async fn create_unguarded(db: &Dynamo, order: &Order) -> bool {
    let tables = &db.config().tables;
    let put = Put::builder()
        .table_name(&tables.orders)
        .item("gene", AttributeValue::N(order.number.gene().get().to_string()))
        .item("sk", AttributeValue::S(tables::order_key(order.number)))
        .condition_expression("attribute_not_exists(sk)");
    let mut items = vec![TransactWriteItem::builder().put(put.build().unwrap()).build()];
    for ticket in order.lines.iter().flat_map(|line| &line.tickets) {
        let block = tables::block_key(&order.sale, &tier("a"), block_of(ticket.seat));
        let claim = Update::builder()
            .table_name(&tables.seats)
            .key("pk", AttributeValue::S(block))
            .key("sk", AttributeValue::N(ticket.seat.0.to_string()))
            .update_expression("SET l0 = :order")
            .expression_attribute_values(":order", AttributeValue::S(order.number.to_string()));
        items.push(TransactWriteItem::builder().update(claim.build().unwrap()).build());
    }
    db.client().transact_write_items().set_transact_items(Some(items)).send().await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_have_one_owner_however_many_want_them() {
    let fixture = Fixture::new().await;
    let owners = contend(&fixture, true).await;
    assert_eq!(owners.len(), 1, "{owners:?}");
    let claims = fixture.claims().await;
    assert_eq!(claims.len(), 3);
    assert!(claims.iter().all(|claim| claim.order == owners[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_condition_the_same_contention_sells_the_seats_again_and_again() {
    let fixture = Fixture::new().await;
    let owners = contend(&fixture, false).await;
    assert_eq!(owners.len(), 32, "the control must oversell, or the test above proves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_never_passes_the_limit() {
    let fixture = Fixture::new().await;
    let mut attempts = tokio::task::JoinSet::new();
    for seat in 0..32 {
        let order = fixture.order("alice", seats(&[seat]));
        let orders = fixture.orders.clone();
        attempts.spawn(async move { orders.create(&order, LIMIT).await.unwrap() });
    }
    let replies = attempts.join_all().await;
    let count =
        |requested: &CreateReply| replies.iter().filter(|reply| *reply == requested).count();
    assert_eq!(count(&CreateReply::Created), usize::from(LIMIT));
    assert_eq!(count(&CreateReply::LimitReached { held: LIMIT }), 32 - usize::from(LIMIT));
    assert_eq!(fixture.tickets_of("alice").await, LIMIT.to_string());
    assert_eq!(fixture.claims().await.len(), usize::from(LIMIT));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_and_an_order_exclude_each_other() {
    let fixture = Fixture::new().await;
    for seat in 0..16 {
        let order = fixture.order(&format!("{seat}"), seats(&[seat]));
        let expired = after(&order, OrderEvent::Expire, None);
        let tombstone = Order { lines: Vec::new(), ..expired };
        let (created, ended) = tokio::join!(
            fixture.orders.create(&order, LIMIT),
            fixture.orders.write_tombstone(&tombstone)
        );
        let stored = fixture.orders.get(order.number).await.unwrap().unwrap();
        match (created.unwrap(), ended.unwrap()) {
            (CreateReply::Created, ChangeReply::Conflict) => assert_eq!(stored, order),
            (CreateReply::Exists(there), ChangeReply::Done) => {
                assert_eq!(*there, tombstone);
                assert_eq!(stored, tombstone);
            }
            both => panic!("{both:?}"),
        }
        assert_eq!(fixture.orders.write_tombstone(&tombstone).await, Ok(ChangeReply::Conflict));
        let again = fixture.orders.create(&order, LIMIT).await;
        assert_eq!(again, Ok(CreateReply::Exists(Box::new(stored))));
    }
}
