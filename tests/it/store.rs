//! The orders and the catalogue against a DynamoDB stand-in, and against one that misbehaves.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::ids::{
    AttendeeId, Epoch, Legs, PaymentId, ProviderId, RequestFingerprint, SaleId, Seat, SeatName,
    TierId, UserId,
};
use engine::domain::inventory::SeatLeg;
use engine::domain::money::{Currency, Money};
use engine::domain::number::{Mint, OrderNumber};
use engine::domain::order::{
    Capture, Order, OrderEvent, OrderLine, OrderState, PaymentKey, PaymentOutcome, PaymentRecord,
    RefundReason, Ticket, TierTotals,
};
use engine::domain::refund::RefundReply;
use engine::domain::sale::SaleFile;
use engine::domain::time::Timestamp;
use engine::ports::{
    Catalogue, ChangeReply, Claim, CreateReply, DUE_SHARDS, Due, Freshness, Orders, SettleReply,
    Settlement, StoreError, block_of,
};
use local::servers::DynamoDb;
use local::stores::sdk_config;
use serde_json::json;
use shared::dynamodb::{
    Dynamo, DynamoCatalogue, DynamoOrders, StoreConfig, Tables, create_tables, tables,
};
use shared::runtime::metrics::{Function, Metrics};

use crate::backends::{self, Server};
use crate::metrics::{Lines, STAGE, counts};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
const LIMIT: u16 = 6;

struct Fixture {
    server: Server<DynamoDb>,
    db: Dynamo,
    orders: DynamoOrders,
    mint: Mint,
}

/// A configuration with patience, for machines that are busy with other tests.
fn config(endpoint: String, tables: Tables) -> StoreConfig {
    StoreConfig {
        endpoint: Some(endpoint),
        backoff: Duration::from_millis(2),
        attempt_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        // What is remembered is not forgotten because a server is slow.
        cache_for: Duration::from_secs(3600),
        ..StoreConfig::new(tables)
    }
}

impl Fixture {
    async fn new() -> Self {
        let server = backends::dynamodb();
        let tables = Tables::with_prefix(&backends::prefix());
        let db = Dynamo::new(&sdk_config(), config(server.url.clone(), tables));
        create_tables(db.client(), &db.config().tables).await.unwrap();
        // Twice, as at every start of the local stack.
        create_tables(db.client(), &db.config().tables).await.unwrap();
        Self { server, orders: DynamoOrders::new(db.clone()), db, mint: Mint::new(5) }
    }

    /// Orders that reach the same database through a proxy.
    async fn behind(
        &self,
        decide: impl Fn(&Request, usize) -> Act + Send + Sync + 'static,
    ) -> (HttpProxy, DynamoOrders) {
        let proxy = HttpProxy::start(&self.server.url, decide).await.unwrap();
        let orders = DynamoOrders::new(self.db_at(proxy.url(), 4));
        (proxy, orders)
    }

    /// The same tables behind another endpoint.
    fn db_at(&self, endpoint: String, attempts: u32) -> Dynamo {
        let tables = self.db.config().tables.clone();
        Dynamo::new(&sdk_config(), StoreConfig { attempts, ..config(endpoint, tables) })
    }

    fn order(&self, user: &str, lines: Vec<OrderLine>) -> Order {
        let user = UserId::new(user).unwrap();
        let amount_minor = lines.iter().map(|line| 500 * line.tickets.len() as i64).sum();
        Order {
            number: self.mint.mint(NOW, &user),
            sale: sale(),
            user,
            state: OrderState::Pending,
            lines,
            total: Money { amount_minor, currency: Currency::new("EUR").unwrap() },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW.plus_seconds(900),
            changed_at: NOW,
            payment: None,
            synced: false,
        }
    }

    async fn create(&self, order: &Order) {
        assert_eq!(self.orders.create(order, LIMIT).await, Ok(CreateReply::Created));
    }

    async fn claims(&self) -> Vec<Claim> {
        self.orders.claims(&sale(), &tier("a"), 0).await.unwrap()
    }

    async fn tickets_of(&self, user: &str) -> String {
        let user = UserId::new(user).unwrap();
        let gene = engine::domain::number::Gene::from_text(user.as_str()).get();
        let count = self
            .db
            .client()
            .get_item()
            .table_name(&self.db.config().tables.orders)
            .key("gene", AttributeValue::N(gene.to_string()))
            .key("sk", AttributeValue::S(tables::buyer_key(&sale(), &user)))
            .consistent_read(true);
        let item = count.send().await.unwrap().item.unwrap_or_default();
        item.get("tickets").map_or_else(|| "none".to_owned(), |n| n.as_n().unwrap().clone())
    }

    async fn due(&self, now: Timestamp) -> BTreeSet<Due> {
        let mut all = BTreeSet::new();
        for shard in 0..DUE_SHARDS {
            all.extend(self.orders.due(shard, now, 100).await.unwrap());
        }
        all
    }

    async fn pay(&self, order: &Order) -> (Order, PaymentRecord) {
        let id = format!("pi-{}", order.number);
        let paid = after(order, OrderEvent::Pay, Some(&id));
        let payment = record(order, &id, PaymentOutcome::Accepted);
        let reply = self.orders.settle(&payment, &Settlement::Pay(paid.clone()), LIMIT).await;
        assert_eq!(reply, Ok(SettleReply::Settled));
        (paid, payment)
    }
}

fn sale() -> SaleId {
    SaleId::new("show").unwrap()
}

fn tier(id: &str) -> TierId {
    TierId::new(id).unwrap()
}

fn line(in_tier: &str, legs: (u16, u16), seats: &[u32]) -> OrderLine {
    let ticket = |seat: &u32| Ticket {
        seat: Seat(*seat),
        name: SeatName::new(format!("s{seat}")).unwrap(),
        attendee: None,
    };
    OrderLine {
        tier: tier(in_tier),
        legs: Legs::new(legs.0, legs.1).unwrap(),
        price_minor: 500,
        tickets: seats.iter().map(ticket).collect(),
    }
}

fn for_attendees(mut line: OrderLine, attendees: &[&str]) -> OrderLine {
    for (ticket, attendee) in line.tickets.iter_mut().zip(attendees) {
        ticket.attendee = Some(AttendeeId::new(*attendee).unwrap());
    }
    line
}

fn seats(seats: &[u32]) -> Vec<OrderLine> {
    vec![line("a", (0, 1), seats)]
}

fn key(id: &str) -> PaymentKey {
    PaymentKey { provider: ProviderId::new("test").unwrap(), payment: PaymentId::new(id).unwrap() }
}

fn after(order: &Order, event: OrderEvent, payment: Option<&str>) -> Order {
    let after = order.after(event, NOW.plus_seconds(5)).unwrap();
    Order { payment: payment.map(key).or(after.payment.clone()), ..after }
}

fn record(order: &Order, id: &str, outcome: PaymentOutcome) -> PaymentRecord {
    let capture = Capture { key: key(id), order: order.number, amount: order.total };
    PaymentRecord::decided(&capture, outcome, NOW.plus_seconds(5))
}

fn seat_leg(seat: u32, leg: u16) -> SeatLeg {
    SeatLeg { tier: tier("a"), leg, seat: Seat(seat) }
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
    let owned = |seat, leg| Claim { seat: Seat(seat), leg, order: order.number };
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
    let create = async |order: &Order, limit| fixture.orders.create(order, limit).await.unwrap();

    let all = for_attendees(line("a", (0, 4), &[0, 1]), &["p1", "p2"]);
    let rival = fixture.order("alice", vec![all]);
    let taken = vec![seat_leg(0, 1), seat_leg(0, 2)];
    assert_eq!(create(&rival, 2).await, CreateReply::SeatsTaken(taken));

    let elsewhere = |attendee| vec![for_attendees(line("a", (0, 4), &[5, 6]), &[attendee, "p3"])];
    let rival = fixture.order("alice", elsewhere("p1"));
    assert_eq!(create(&rival, 2).await, CreateReply::LimitReached { held: 1 });
    let p1 = AttendeeId::new("p1").unwrap();
    assert_eq!(create(&rival, 3).await, CreateReply::AttendeeTaken(p1));

    // More than the limit at once, by somebody who has none yet.
    let rival = fixture.order("bob", elsewhere("p4"));
    assert_eq!(create(&rival, 1).await, CreateReply::LimitReached { held: 0 });
    // One person on two seats of one order.
    let p3 = AttendeeId::new("p3").unwrap();
    let twice = fixture.order("bob", elsewhere("p3"));
    assert_eq!(create(&twice, 3).await, CreateReply::AttendeeTaken(p3));

    // The same number with other content outranks everything that stands against that.
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

/// Runs 32 buyers for the same three seats; returns who was told that the seats are theirs.
async fn rush(fixture: &Fixture, guarded: bool) -> Vec<OrderNumber> {
    let mut rushing = tokio::task::JoinSet::new();
    for buyer in 0..32 {
        let order = fixture.order(&format!("{buyer}"), seats(&[3, 4, 5]));
        let (orders, db) = (fixture.orders.clone(), fixture.db.clone());
        rushing.spawn(async move {
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
    rushing.join_all().await.into_iter().flatten().collect()
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
    let owners = rush(&fixture, true).await;
    assert_eq!(owners.len(), 1, "{owners:?}");
    let claims = fixture.claims().await;
    assert_eq!(claims.len(), 3);
    assert!(claims.iter().all(|claim| claim.order == owners[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_condition_the_same_rush_sells_the_seats_again_and_again() {
    let fixture = Fixture::new().await;
    let owners = rush(&fixture, false).await;
    assert_eq!(owners.len(), 32, "the control must oversell, or the test above proves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_never_passes_the_limit() {
    let fixture = Fixture::new().await;
    let mut rushing = tokio::task::JoinSet::new();
    for seat in 0..32 {
        let order = fixture.order("alice", seats(&[seat]));
        let orders = fixture.orders.clone();
        rushing.spawn(async move { orders.create(&order, LIMIT).await.unwrap() });
    }
    let replies = rushing.join_all().await;
    let count =
        |requested: &CreateReply| replies.iter().filter(|reply| *reply == requested).count();
    assert_eq!(count(&CreateReply::Created), usize::from(LIMIT));
    assert_eq!(count(&CreateReply::LimitReached { held: LIMIT }), 32 - usize::from(LIMIT));
    assert_eq!(fixture.tickets_of("alice").await, LIMIT.to_string());
    assert_eq!(fixture.claims().await.len(), usize::from(LIMIT));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_ends_once() {
    let fixture = Fixture::new().await;
    let lines = vec![for_attendees(line("a", (0, 2), &[0, 1]), &["p1"]), line("b", (1, 2), &[0])];
    let order = fixture.order("alice", lines);
    let ended = |event| after(&order, event, None);
    let missing = fixture.orders.end(&ended(OrderEvent::Expire)).await;
    assert_eq!(missing, Ok(ChangeReply::Conflict));
    fixture.create(&order).await;
    assert_eq!(fixture.due(order.pay_by).await, BTreeSet::from([Due::Order(order.number)]));
    assert_eq!(fixture.due(order.pay_by.plus_ms(-1)).await, BTreeSet::new());

    let mut ending = tokio::task::JoinSet::new();
    for event in [OrderEvent::Cancel, OrderEvent::Expire].repeat(8) {
        let (orders, end) = (fixture.orders.clone(), ended(event));
        ending.spawn(async move { (orders.end(&end).await.unwrap(), end) });
    }
    let replies = ending.join_all().await;
    let done: Vec<_> =
        replies.into_iter().filter(|(reply, _)| *reply == ChangeReply::Done).collect();
    assert_eq!(done.len(), 1);
    assert_eq!(fixture.orders.get(order.number).await, Ok(Some(done[0].1.clone())));
    assert_eq!(fixture.claims().await, []);
    assert_eq!(fixture.tickets_of("alice").await, "0");
    assert_eq!(fixture.due(order.pay_by).await, BTreeSet::new());

    // Everything is free again, the attendee too.
    let next = fixture.order("bob", order.lines.clone());
    fixture.create(&next).await;
    assert_eq!(fixture.orders.end(&done[0].1).await, Ok(ChangeReply::Conflict));
    assert_eq!(fixture.claims().await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn paying_and_ending_at_once_is_decided_once() {
    let fixture = Fixture::new().await;
    for round in 0..16 {
        let order = fixture.order(&round.to_string(), seats(&[round]));
        fixture.create(&order).await;
        let (paid, expired) =
            (after(&order, OrderEvent::Pay, Some("pi")), after(&order, OrderEvent::Expire, None));
        let payment = record(&order, "pi", PaymentOutcome::Accepted);
        let settlement = Settlement::Pay(paid.clone());
        let (settled, ended) = tokio::join!(
            fixture.orders.settle(&payment, &settlement, LIMIT),
            fixture.orders.end(&expired)
        );
        let state = fixture.orders.get(order.number).await.unwrap().unwrap().state;
        match (settled.unwrap(), ended.unwrap()) {
            (SettleReply::Settled, ChangeReply::Conflict) => assert_eq!(state, OrderState::Paid),
            (SettleReply::Conflict, ChangeReply::Done) => assert_eq!(state, OrderState::Expired),
            both => panic!("{both:?}"),
        }
    }
}

#[tokio::test]
async fn a_payment_is_decided_once() {
    let fixture = Fixture::new().await;
    let order = fixture.order("alice", seats(&[0]));
    fixture.create(&order).await;
    let (paid, payment) = fixture.pay(&order).await;
    assert_eq!(fixture.orders.get(order.number).await, Ok(Some(paid.clone())));
    assert_eq!(
        fixture.orders.payment(order.number, &payment.capture.key).await,
        Ok(Some(payment.clone()))
    );
    assert_eq!(fixture.orders.payment(order.number, &key("pi2")).await, Ok(None));

    // The same payment again, then another one for the same order.
    let pay = Settlement::Pay(paid.clone());
    let again = fixture.orders.settle(&payment, &pay, LIMIT).await;
    assert_eq!(again, Ok(SettleReply::Known(payment.clone())));
    let second = record(&order, "pi2", PaymentOutcome::Accepted);
    assert_eq!(fixture.orders.settle(&second, &pay, LIMIT).await, Ok(SettleReply::Conflict));
    assert_eq!(fixture.orders.payment(order.number, &key("pi2")).await, Ok(None));

    // Paid is paid: it neither expires nor is cancelled.
    for event in [OrderEvent::Expire, OrderEvent::Cancel] {
        let end = after(&order, event, None);
        assert_eq!(fixture.orders.end(&end).await, Ok(ChangeReply::Conflict));
    }
    assert_eq!(fixture.orders.get(order.number).await, Ok(Some(paid.clone())));

    // A paid order is due a minute after it was paid, until it is synced.
    let due = BTreeSet::from([Due::Order(order.number)]);
    assert_eq!(fixture.due(NOW.plus_seconds(64)).await, BTreeSet::new());
    assert_eq!(fixture.due(NOW.plus_seconds(65)).await, due);
    assert_eq!(fixture.orders.sync(&[paid]).await, Ok(vec![order.number]));
    assert_eq!(fixture.due(NOW.plus_seconds(90_000)).await, BTreeSet::new());

    // The second one goes back, and is due until the money is back.
    let refund = record(&order, "pi2", PaymentOutcome::Refund(RefundReason::SecondPayment));
    let settled = fixture.orders.settle(&refund, &Settlement::RefundOnly, LIMIT).await;
    assert_eq!(settled, Ok(SettleReply::Settled));
    let due = BTreeSet::from([Due::Refund(order.number, key("pi2"))]);
    assert_eq!(fixture.due(NOW.plus_seconds(65)).await, due);
    let requested = refund.requested(NOW.plus_seconds(6)).unwrap();
    for _ in 0..2 {
        let recorded = fixture.orders.record_refund(&requested, None).await;
        assert_eq!(recorded, Ok(ChangeReply::Done));
    }
    assert_eq!(fixture.due(NOW.plus_seconds(305)).await, BTreeSet::new());
    assert_eq!(fixture.due(NOW.plus_seconds(306)).await, due);
    let known = fixture.orders.payment(order.number, &key("pi2")).await;
    assert_eq!(known, Ok(Some(requested.clone())));

    // What the provider says outranks a request that comes late, and what is back stays back.
    let at = NOW.plus_seconds(7);
    let failed = requested.after_reply(&RefundReply::Refused("no funds".to_owned()), at).unwrap();
    let refunded = failed.after_reply(&RefundReply::Refunded, at).unwrap();
    for (record, expected) in [
        (&failed, ChangeReply::Done),
        (&requested, ChangeReply::Conflict),
        (&refunded, ChangeReply::Done),
        (&failed, ChangeReply::Conflict),
        (&refunded, ChangeReply::Conflict),
    ] {
        assert_eq!(fixture.orders.record_refund(record, None).await, Ok(expected), "{record:?}");
    }
    assert_eq!(fixture.due(NOW.plus_seconds(900_000)).await, BTreeSet::new());
    let known = fixture.orders.payment(order.number, &key("pi2")).await;
    assert_eq!(known, Ok(Some(refunded.clone())));
    let ledger = fixture.orders.payments(order.number).await;
    assert_eq!(ledger, Ok(vec![payment, refunded]));
}

#[tokio::test]
async fn money_after_the_end_rescues_the_order_or_goes_back() {
    let fixture = Fixture::new().await;
    let lines = vec![for_attendees(line("a", (0, 2), &[0]), &["p1"])];
    let order = fixture.order("alice", lines.clone());
    fixture.create(&order).await;
    let rescued = |order: &Order| Settlement::Rescue(after(order, OrderEvent::Rescue, Some("pi")));
    let accepted = record(&order, "pi", PaymentOutcome::Accepted);

    // Not from pending.
    let expired = after(&order, OrderEvent::Expire, None);
    let reply = fixture.orders.settle(&accepted, &rescued(&expired), LIMIT).await;
    assert_eq!(reply, Ok(SettleReply::Conflict));

    assert_eq!(fixture.orders.end(&expired).await, Ok(ChangeReply::Done));
    let paying = Settlement::Pay(after(&order, OrderEvent::Pay, Some("pi")));
    assert_eq!(fixture.orders.settle(&accepted, &paying, LIMIT).await, Ok(SettleReply::Conflict));
    let reply = fixture.orders.settle(&accepted, &rescued(&expired), LIMIT).await;
    assert_eq!(reply, Ok(SettleReply::Settled));
    assert_eq!(fixture.claims().await.len(), 2);
    assert_eq!(fixture.tickets_of("alice").await, "1");
    let reply = fixture.orders.settle(&accepted, &rescued(&expired), LIMIT).await;
    assert_eq!(reply, Ok(SettleReply::Known(accepted)));

    // Gone: a seat, an attendee, the limit.
    let cases = [
        (line("a", (1, 3), &[0]), LIMIT),
        (for_attendees(line("a", (0, 2), &[9]), &["p1"]), LIMIT),
        (line("a", (0, 2), &[9]), 0),
    ];
    for (buyer, (line, limit)) in ["bob", "carol", "dan"].into_iter().zip(cases) {
        let order = fixture.order(buyer, vec![line.clone()]);
        let expired = after(&order, OrderEvent::Expire, None);
        // It was expired long ago: write it so, by way of another free seat.
        let elsewhere = Order { lines: seats(&[50]), ..order.clone() };
        fixture.create(&elsewhere).await;
        let end = Order { lines: seats(&[50]), ..expired.clone() };
        assert_eq!(fixture.orders.end(&end).await, Ok(ChangeReply::Done));
        let accepted = record(&order, "pi", PaymentOutcome::Accepted);
        let reply = fixture.orders.settle(&accepted, &rescued(&expired), limit).await;
        assert_eq!(reply, Ok(SettleReply::Gone));
        assert_eq!(fixture.orders.payment(order.number, &key("pi")).await, Ok(None));

        let refund = record(&order, "pi", PaymentOutcome::Refund(RefundReason::TooLate));
        let too_late = after(&expired, OrderEvent::PayTooLate, Some("pi"));
        let settlement = Settlement::PayTooLate(too_late.clone());
        let reply = fixture.orders.settle(&refund, &settlement, LIMIT).await;
        assert_eq!(reply, Ok(SettleReply::Settled));
        let stored = fixture.orders.get(order.number).await.unwrap().unwrap();
        assert_eq!((stored.state, stored.payment), (OrderState::RefundDue, Some(key("pi"))));
        let reply = fixture.orders.settle(&refund, &settlement, LIMIT).await;
        assert_eq!(reply, Ok(SettleReply::Known(refund)));
        let second = record(&order, "pi2", PaymentOutcome::Refund(RefundReason::TooLate));
        let reply = fixture.orders.settle(&second, &settlement, LIMIT).await;
        assert_eq!(reply, Ok(SettleReply::Conflict));
    }

    // Money for an order that never was.
    let never = fixture.order("erin", lines);
    let refund = record(&never, "pi", PaymentOutcome::Refund(RefundReason::UnknownOrder));
    let reply = fixture.orders.settle(&refund, &Settlement::RefundOnly, LIMIT).await;
    assert_eq!(reply, Ok(SettleReply::Settled));
    assert_eq!(fixture.orders.get(never.number).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_and_an_order_exclude_each_other() {
    let fixture = Fixture::new().await;
    for seat in 0..16 {
        let order = fixture.order(&format!("{seat}"), seats(&[seat]));
        let expired = after(&order, OrderEvent::Expire, None);
        let tombstone = Order { lines: Vec::new(), ..expired };
        let (created, buried) = tokio::join!(
            fixture.orders.create(&order, LIMIT),
            fixture.orders.write_tombstone(&tombstone)
        );
        let stored = fixture.orders.get(order.number).await.unwrap().unwrap();
        match (created.unwrap(), buried.unwrap()) {
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

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_counted_once_however_often_it_is_synced() {
    let fixture = Fixture::new().await;
    let mut orders = Vec::new();
    for seat in 0..20_u32 {
        // Two journeys share each seat, so that one batch marks it sold for both.
        for legs in [(0, 2), (2, 4)] {
            let lines = vec![line("a", legs, &[seat]), line("b", legs, &[seat * 7])];
            let order = fixture.order(&format!("{seat}"), lines);
            fixture.create(&order).await;
            orders.push(fixture.pay(&order).await.0);
        }
    }
    // One that was never paid, whatever its record says, and one that is no order at all.
    let pending = fixture.order("x", seats(&[100]));
    fixture.create(&pending).await;
    let unpaid = after(&pending, OrderEvent::Pay, Some("pi"));
    let unknown = after(&fixture.order("y", seats(&[101])), OrderEvent::Pay, Some("pi"));
    let numbers: BTreeSet<OrderNumber> = orders.iter().map(|order| order.number).collect();
    orders.insert(3, unpaid);
    orders.insert(30, unknown);
    orders.push(pending);
    orders.push(orders[0].clone());

    let mut syncing = tokio::task::JoinSet::new();
    for start in 0..4 {
        let (db, mut orders) = (fixture.orders.clone(), orders.clone());
        orders.rotate_left(start * 11);
        syncing.spawn(async move { db.sync(&orders).await.unwrap() });
    }
    let counted: Vec<OrderNumber> = syncing.join_all().await.concat();
    assert_eq!(counted.len(), 40, "each exactly once");
    assert_eq!(counted.into_iter().collect::<BTreeSet<_>>(), numbers);
    let statistics = || async { fixture.orders.statistics(&sale()).await.unwrap() };
    let total = TierTotals { tickets: 40, revenue_minor: 20_000 };
    assert_eq!(statistics().await, [(tier("a"), total), (tier("b"), total)]);
    assert_eq!(fixture.orders.sync(&orders).await, Ok(vec![]));
    assert_eq!(statistics().await, [(tier("a"), total), (tier("b"), total)]);

    let get = fixture.db.client().get_item().table_name(&fixture.db.config().tables.seats);
    let block = tables::block_key(&sale(), &tier("a"), 0);
    let seat = get
        .key("pk", AttributeValue::S(block))
        .key("sk", AttributeValue::N("3".to_owned()))
        .consistent_read(true);
    let seat = seat.send().await.unwrap().item.unwrap();
    let mut sold = seat["sold"].as_ns().unwrap().clone();
    sold.sort();
    assert_eq!(sold, ["0", "1", "2", "3"]);
    assert_eq!(fixture.claims().await.len(), 20 * 4 + 1);
}

#[tokio::test]
async fn one_batch_writes_each_counter_once() {
    let fixture = Fixture::new().await;
    let mut paid = Vec::new();
    for seat in 0..8 {
        let order = fixture.order(&format!("{seat}"), seats(&[seat]));
        fixture.create(&order).await;
        paid.push(fixture.pay(&order).await.0);
    }
    let (proxy, orders) = fixture.behind(|_, _| Act::Forward).await;
    assert_eq!(orders.sync(&paid).await.map(|counted| counted.len()), Ok(8));
    let writes = proxy.seen("TransactWriteItems");
    assert_eq!(writes.len(), 1);
    let items = writes[0].body["TransactItems"].as_array().unwrap().len();
    assert_eq!(items, 8 + 8 + 1, "an order, a seat each; one counter");
}

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
    let asked = [&numbers[..], &[missing, numbers[0]]].concat();
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
    let read = orders.get_many(&asked).await.unwrap();
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

fn file(id: &str, title: &str, seats: u32) -> SaleFile {
    let name = |seat: u32| format!("stalls-{seat:07}");
    let rows: Vec<_> = (0..seats.div_ceil(100))
        .map(|row| {
            let names: Vec<String> = (row * 100..((row + 1) * 100).min(seats)).map(name).collect();
            json!({ "row": row.to_string(), "seats": names })
        })
        .collect();
    let file = json!({
        "sale": id,
        "title": title,
        "currency": "EUR",
        "opens_at": "2026-11-21T10:00:00Z",
        "closes_at": "2026-11-22T10:00:00Z",
        "limit_per_buyer": 4,
        "pay_window_seconds": 900,
        "tiers": [{
            "tier": "stalls",
            "name": "Stalls",
            "price_minor": 5000,
            "sections": [{ "section": "1", "rows": rows }],
        }],
    });
    serde_json::from_value(file).unwrap()
}

async fn chunks(fixture: &Fixture) -> usize {
    let scan = fixture.db.client().scan().table_name(&fixture.db.config().tables.sales);
    let items = scan.consistent_read(true).send().await.unwrap().items.unwrap();
    items.iter().filter(|item| item["sk"].as_s().unwrap().starts_with("file#")).count()
}

#[tokio::test]
async fn a_sale_is_published_replaced_and_read() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let elsewhere = DynamoCatalogue::new(fixture.db.clone());
    let id = SaleId::new("hall").unwrap();
    let read = async |catalogue: &DynamoCatalogue, freshness| {
        catalogue.sale(&id, freshness).await.unwrap()
    };
    assert!(read(&catalogue, Freshness::Fresh).await.is_none());
    assert_eq!(catalogue.sales().await, Ok(vec![]));

    // A megabyte, in several chunks.
    let big = file("hall", "A big hall", 60_000);
    let bytes = serde_json::to_vec(&big).unwrap().len();
    assert!(bytes > 1_000_000, "{bytes}");
    assert_eq!(catalogue.publish(&big, Some(1)).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.publish(&big, None).await, Ok(ChangeReply::Done));
    assert_eq!(catalogue.publish(&big, None).await, Ok(ChangeReply::Conflict));
    assert_eq!(chunks(&fixture).await, bytes.div_ceil(256 * 1024));
    let first = read(&catalogue, Freshness::Cached).await.unwrap();
    assert_eq!((first.version, &first.epoch, first.sale.file()), (1, &None, &big));
    assert_eq!(read(&elsewhere, Freshness::Fresh).await.unwrap().sale.file(), &big);

    // Replaced by another process: the memory here lags, a fresh read does not.
    let small = file("hall", "A small hall", 10);
    assert_eq!(elsewhere.publish(&small, Some(1)).await, Ok(ChangeReply::Done));
    assert_eq!(elsewhere.publish(&big, Some(1)).await, Ok(ChangeReply::Conflict));
    assert_eq!(chunks(&fixture).await, 1);
    assert_eq!(read(&elsewhere, Freshness::Cached).await.unwrap().version, 2);
    assert_eq!(read(&catalogue, Freshness::Cached).await.unwrap().version, 1);
    let fresh = read(&catalogue, Freshness::Fresh).await.unwrap();
    assert_eq!((fresh.version, fresh.sale.file()), (2, &small));
    assert_eq!(read(&catalogue, Freshness::Cached).await.unwrap().version, 2);

    // Unchanged files are not read again.
    let again = read(&catalogue, Freshness::Fresh).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&again.sale, &fresh.sale));

    assert_eq!(catalogue.publish(&file("arena", "Arena", 5), None).await, Ok(ChangeReply::Done));
    let ids: Vec<String> =
        catalogue.sales().await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["arena", "hall"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_publications_one_wins_and_is_whole() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let id = SaleId::new("hall").unwrap();
    assert_eq!(catalogue.publish(&file("hall", "0", 20_000), None).await, Ok(ChangeReply::Done));
    for version in 1..4 {
        let mut publishing = tokio::task::JoinSet::new();
        for rival in 0..6 {
            let db = fixture.db.clone();
            publishing.spawn(async move {
                let catalogue = DynamoCatalogue::new(db);
                let title = format!("{version}-{rival}");
                let file = file("hall", &title, 20_000 + rival);
                let reply = catalogue.publish(&file, Some(version)).await.unwrap();
                (reply == ChangeReply::Done).then_some(title)
            });
        }
        let reader = DynamoCatalogue::new(fixture.db.clone());
        reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
        let winners: Vec<String> = publishing.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let found = reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
        assert_eq!((found.version, &found.sale.file().title), (version + 1, &winners[0]));
    }
}

#[tokio::test]
async fn a_publication_that_dies_between_chunks_changes_nothing() {
    let fixture = Fixture::new().await;
    let id = SaleId::new("hall").unwrap();
    let healthy = DynamoCatalogue::new(fixture.db.clone());
    let old = file("hall", "Old", 20_000);
    assert_eq!(healthy.publish(&old, None).await, Ok(ChangeReply::Done));
    let before = chunks(&fixture).await;
    assert!(before > 1);

    // The process gets one chunk through and no more.
    let proxy = HttpProxy::start(&fixture.server.url, |request, before| {
        match (request.operation.as_str(), before) {
            ("PutItem", 0) => Act::Forward,
            _ => Act::LoseRequest,
        }
    })
    .await
    .unwrap();
    let dying = DynamoCatalogue::new(fixture.db_at(proxy.url(), 2));
    let new = file("hall", "New", 25_000);
    assert!(dying.publish(&new, Some(1)).await.unwrap_err().retryable());
    assert_eq!(chunks(&fixture).await, before + 1);
    let reader = DynamoCatalogue::new(fixture.db.clone());
    let found = reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!((found.version, found.sale.file()), (1, &old));

    // The next publication cleans up behind it.
    assert_eq!(healthy.publish(&new, Some(1)).await, Ok(ChangeReply::Done));
    let bytes = serde_json::to_vec(&new).unwrap().len();
    assert_eq!(chunks(&fixture).await, bytes.div_ceil(256 * 1024));
    let found = reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!((found.version, found.sale.file()), (2, &new));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_loads_a_sale_and_names_its_epoch() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let id = SaleId::new("hall").unwrap();
    let epoch = |text: &str| Epoch::new(text).unwrap();
    let until = NOW.plus_seconds(30);
    let none = catalogue.lease(&id, &epoch("e0"), NOW, until).await;
    assert_eq!(none, Ok(ChangeReply::Conflict), "no sale");
    assert_eq!(catalogue.publish(&file("hall", "Hall", 10), None).await, Ok(ChangeReply::Done));

    let mut leasing = tokio::task::JoinSet::new();
    for rival in 0..8 {
        let (catalogue, id) = (catalogue.clone(), id.clone());
        let rival = epoch(&format!("r{rival}"));
        leasing.spawn(async move { (catalogue.lease(&id, &rival, NOW, until).await, rival) });
    }
    let won: Vec<Epoch> = leasing
        .join_all()
        .await
        .into_iter()
        .filter_map(|(reply, rival)| (reply.unwrap() == ChangeReply::Done).then_some(rival))
        .collect();
    let [winner] = won.as_slice() else { panic!("{won:?} have the lease") };
    assert_eq!(catalogue.loaded(&id, &epoch("e0")).await, Ok(ChangeReply::Conflict));

    // Whoever has it prolongs it; nobody else takes it before it has run out.
    let later = until.plus_seconds(30);
    assert_eq!(catalogue.prolong(&id, winner, later).await, Ok(ChangeReply::Done));
    assert_eq!(catalogue.lease(&id, &epoch("e1"), until, later).await, Ok(ChangeReply::Conflict));

    // It ran out: another takes it, and the first comes too late, also to prolong it.
    let end = later.plus_seconds(30);
    assert_eq!(catalogue.lease(&id, &epoch("e2"), later, end).await, Ok(ChangeReply::Done));
    assert_eq!(catalogue.prolong(&id, winner, end).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.loaded(&id, winner).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.loaded(&id, &epoch("e2")).await, Ok(ChangeReply::Done));
    // It has ended: not even its last holder has it any more.
    assert_eq!(catalogue.prolong(&id, &epoch("e2"), end).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.prolong(&id, winner, end).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.loaded(&id, &epoch("e2")).await, Ok(ChangeReply::Conflict));
    let found = catalogue.sale(&id, Freshness::Cached).await.unwrap().unwrap();
    assert_eq!(found.epoch, Some(epoch("e2")));

    // The lease is free again, also when it was given back, and a new version keeps the epoch.
    for rival in [epoch("e3"), epoch("e4")] {
        assert_eq!(catalogue.lease(&id, &rival, NOW, until).await, Ok(ChangeReply::Done));
        assert_eq!(catalogue.prolong(&id, &rival, NOW).await, Ok(ChangeReply::Done));
    }
    assert_eq!(
        catalogue.publish(&file("hall", "Hall 2", 10), Some(1)).await,
        Ok(ChangeReply::Done)
    );
    let found = catalogue.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!((found.version, found.epoch), (2, Some(epoch("e2"))));
}
