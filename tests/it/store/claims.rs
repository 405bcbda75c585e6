//! Claims: one order a number, one owner a seat, and the limit of a buyer.

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use engine::domain::basics::ids::{Leg, Seat, UserId};
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::basics::tickets::Tickets;
use engine::domain::order::{Order, OrderEvent, OrderLine, PaymentOutcome};
use engine::ports::{ChangeReply, Claim, CreateReply, Orders, Settlement, StoreError, block_of};
use shared::dynamodb::{Dynamo, tables};

use super::{Fixture, LIMIT, after, line, record, sale, seat_leg, seats, tier};

pub(super) fn for_attendees(mut line: OrderLine, attendees: &[&str]) -> OrderLine {
    for (ticket, attendee) in line.tickets.iter_mut().zip(attendees) {
        ticket.attendee = Some(model_stores::attendee(attendee));
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
    let hash_of = |name| model_stores::attendee(name).hashes[0];
    assert_eq!(create(&rival, 3).await, CreateReply::AttendeeTaken(hash_of("p1")));

    // More than the limit at once, by somebody who has none yet.
    let rival = fixture.order("bob", elsewhere("p4"));
    assert_eq!(create(&rival, 1).await, CreateReply::LimitReached { held: Tickets::NONE });
    // One person on two seats of one order.
    let twice = fixture.order("bob", elsewhere("p3"));
    assert_eq!(create(&twice, 3).await, CreateReply::AttendeeTaken(hash_of("p3")));

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

/// The people whom a buyer has named, as the buyer's count has them.
async fn named_by(fixture: &Fixture, user: &str) -> Vec<String> {
    let user = UserId::new(user).unwrap();
    let gene = Gene::from_text(user.as_str()).get();
    let item = fixture
        .db
        .client()
        .get_item()
        .table_name(&fixture.db.config().tables.orders)
        .key("gene", AttributeValue::N(gene.to_string()))
        .key("sk", AttributeValue::S(tables::buyer_key(&sale(), &user)))
        .consistent_read(true);
    let item = item.send().await.unwrap().item.unwrap_or_default();
    let mut named = item.get("named").map_or_else(Vec::new, |set| set.as_ss().unwrap().clone());
    named.sort();
    named
}

#[tokio::test]
async fn a_buyer_names_three_people_a_ticket_and_is_told_of_no_more() {
    let fixture = Fixture::new().await;
    let taken = fixture.order("alice", vec![for_attendees(line("a", (0, 1), &[0]), &["p0"])]);
    fixture.create(&taken).await;
    let limit = Tickets::new(1);
    let naming = |people: &[&str]| {
        let seats: Vec<u32> = (10..).take(people.len()).collect();
        fixture.order("bob", vec![for_attendees(line("a", (0, 1), &seats), people)])
    };
    let create = async |order: &Order| fixture.orders.create(order, limit).await.unwrap();
    let hash_of = |name| model_stores::attendee(name).hashes[0];

    // One that is refused for its people counts them, and makes a count of no tickets.
    assert_eq!(create(&naming(&["p0"])).await, CreateReply::AttendeeTaken(hash_of("p0")));
    assert_eq!(fixture.tickets_of("bob").await, "0");
    let bob = UserId::new("bob").unwrap();
    assert_eq!(fixture.orders.tickets_of(&sale(), &bob).await, Ok(Tickets::NONE));
    // One that is refused for more tickets than the limit does not.
    let over = create(&naming(&["p1", "p2"])).await;
    assert_eq!(over, CreateReply::LimitReached { held: Tickets::NONE });
    assert_eq!(named_by(&fixture, "bob").await, [hash_of("p0").to_string()]);
    // One that is made does, and it stays counted when it ends.
    for person in ["p1", "p2"] {
        let order = naming(&[person]);
        assert_eq!(create(&order).await, CreateReply::Created);
        let ended = after(&order, OrderEvent::Cancel, None);
        assert_eq!(fixture.orders.end(&ended).await, Ok(ChangeReply::Done));
    }
    assert_eq!(named_by(&fixture, "bob").await.len(), 3);
    // A fourth is not, with a ticket or without; those named before may be named again.
    assert_eq!(create(&naming(&["p3"])).await, CreateReply::AttendeeLimit);
    let fourth = fixture.order("carol", vec![for_attendees(line("a", (0, 1), &[9]), &["p3"])]);
    assert_eq!(create(&fourth).await, CreateReply::Created);
    assert_eq!(create(&naming(&["p3"])).await, CreateReply::AttendeeLimit);
    assert_eq!(create(&naming(&["p0"])).await, CreateReply::AttendeeTaken(hash_of("p0")));
    assert_eq!(create(&naming(&["p2"])).await, CreateReply::Created);
    assert_eq!(named_by(&fixture, "bob").await.len(), 3);
}

/// Many requests at once, each for somebody else who has a ticket: no more are shown than may be named.
#[tokio::test]
async fn of_many_requests_at_once_no_more_are_told_than_may_be_named() {
    let fixture = Fixture::new().await;
    let people: Vec<String> = (0..24).map(|person| format!("p{person}")).collect();
    let order = |user: &str, seat: u32, person: &str| {
        fixture.order(user, vec![for_attendees(line("a", (0, 1), &[seat]), &[person])])
    };
    for (seat, person) in (0..).zip(&people) {
        fixture.create(&order(&format!("buyer-{seat}"), seat, person)).await;
    }
    let mut requests = tokio::task::JoinSet::new();
    for (seat, person) in (100..).zip(&people) {
        let (orders, order) = (fixture.orders.clone(), order("stranger", seat, person));
        requests.spawn(async move { orders.create(&order, Tickets::new(2)).await.unwrap() });
    }
    let replies = requests.join_all().await;
    let shown = replies.iter().filter(|reply| matches!(reply, CreateReply::AttendeeTaken(_)));
    assert_eq!(shown.count(), 6);
    let refused = replies.iter().filter(|reply| **reply == CreateReply::AttendeeLimit);
    assert_eq!(refused.count(), 18);
}

/// What erasing relies on: a path into a list of maps in a list of maps can be removed, again and again.
#[tokio::test]
async fn what_lies_deep_in_an_order_is_removed_alone() {
    let fixture = Fixture::new().await;
    let lines = vec![
        for_attendees(line("a", (0, 1), &[0, 1]), &["p1", "p2"]),
        for_attendees(line("b", (0, 1), &[7]), &["p3"]),
    ];
    let order = fixture.order("alice", lines);
    fixture.create(&order).await;
    let path = "REMOVE #lines[0].#tickets[1].#attendee, #lines[1].#tickets[0].#attendee";
    for _ in 0..2 {
        let remove = fixture
            .db
            .client()
            .update_item()
            .table_name(&fixture.db.config().tables.orders)
            .key("gene", AttributeValue::N(order.number.gene().get().to_string()))
            .key("sk", AttributeValue::S(tables::order_key(order.number)))
            .update_expression(path)
            .expression_attribute_names("#lines", "lines")
            .expression_attribute_names("#tickets", "tickets")
            .expression_attribute_names("#attendee", "attendee");
        remove.send().await.unwrap();
        let mut expected = order.clone();
        expected.lines[0].tickets[1].attendee.as_mut().unwrap().id = None;
        expected.lines[1].tickets[0].attendee.as_mut().unwrap().id = None;
        assert_eq!(fixture.orders.get(order.number).await, Ok(Some(expected)));
    }
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
