//! How an order ends: paid, cancelled, expired, and money that comes after the end.

use std::collections::BTreeSet;

use engine::domain::basics::tickets::Tickets;
use engine::domain::ledger::{Account, Balance};
use engine::domain::order::fact::{Cause, FactKind};
use engine::domain::order::place::Place;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Order, OrderEvent, OrderState, PaymentOutcome, RefundReason};
use engine::ports::{ChangeReply, Due, Orders, SettleReply, Settlement};

use super::claims::for_attendees;
use super::{Fixture, LIMIT, NOW, after, key, line, record, seats};

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
    // It is due until it is settled; a cancelled one from its deadline on.
    let late = order.pay_by.plus_seconds(60);
    assert_eq!(fixture.due(late).await, BTreeSet::from([Due::Order(order.number)]));
    let settled = fixture.orders.sync(&[done[0].1.clone()], NOW).await;
    assert_eq!(settled, Ok(vec![order.number]));
    assert_eq!(fixture.due(late).await, BTreeSet::new());

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

/// An order that tells of a capture which did not change it.
fn told(order: &Order) -> Order {
    order.append_fact(FactKind::CaptureRefused, Cause::BUYER, NOW.plus_seconds(5))
}

/// A place is written while a capture of the order is decided: what is told of the capture does not take the extension out
/// of the index of due work.
#[tokio::test]
async fn what_is_told_of_a_pending_order_leaves_its_deadline() {
    let fixture = Fixture::new().await;
    let order = fixture.order("waits", seats(&[7]));
    fixture.create(&order).await;
    let place = Place { provider: key("pi1").provider, at: order.pay_by.plus_seconds(30) };
    let placed = order.with_place(place.clone(), None);
    assert_eq!(fixture.orders.keep_attempts(&placed).await, Ok(ChangeReply::Done));
    let wrong = record(&order, "pi1", PaymentOutcome::Refund(RefundReason::WrongAmount));
    let stale = Settlement::RefundOnly(Some(told(&order)));
    let settled = fixture.orders.settle(&wrong, &stale, LIMIT).await;
    assert_eq!(settled, Ok(SettleReply::Settled));
    let until = order.pay_by.plus_seconds(150);
    assert!(!fixture.due(until.plus_ms(-1)).await.contains(&Due::Order(order.number)));
    assert!(fixture.due(until).await.contains(&Due::Order(order.number)));
    let stored = fixture.orders.get(order.number).await.unwrap().unwrap();
    assert_eq!((stored.payable_until(), stored.pay_by), (until, order.pay_by));
    assert_eq!(stored.attempts.places, [place]);
    // Its end leaves no place behind.
    let end = after(&stored, OrderEvent::Cancel, None);
    assert_eq!(fixture.orders.end(&end).await, Ok(ChangeReply::Done));
    let stored = fixture.orders.get(order.number).await.unwrap().unwrap();
    assert_eq!((stored.attempts.places, stored.attempts.extended_to), (vec![], Some(until)));
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

    // A paid order is due a minute after it was paid, until it is settled.
    let due = BTreeSet::from([Due::Order(order.number)]);
    assert_eq!(fixture.due(NOW.plus_seconds(64)).await, BTreeSet::new());
    assert_eq!(fixture.due(NOW.plus_seconds(65)).await, due);
    assert_eq!(fixture.orders.sync(std::slice::from_ref(&paid), NOW).await, Ok(vec![order.number]));
    assert_eq!(fixture.due(NOW.plus_seconds(90_000)).await, BTreeSet::new());

    // The second one goes back, and is due until the money is back.
    let refund = record(&order, "pi2", PaymentOutcome::Refund(RefundReason::SecondPayment));
    let told = told(&Order { facts: paid.facts.all_settled(), ..paid.clone() });
    let settled = fixture.orders.settle(&refund, &Settlement::RefundOnly(Some(told)), LIMIT).await;
    assert_eq!(settled, Ok(SettleReply::Settled));
    let due = BTreeSet::from([Due::Refund(order.number, key("pi2"))]);
    let untold = BTreeSet::from([Due::Order(order.number), Due::Refund(order.number, key("pi2"))]);
    assert_eq!(fixture.due(NOW.plus_seconds(65)).await, untold);
    let stored = fixture.orders.get(order.number).await.unwrap().unwrap();
    assert_eq!((stored.facts.settled, stored.facts.count()), (2, 3));
    // Whoever has not seen the last fact settles nothing.
    assert_eq!(fixture.orders.sync(&[paid], NOW).await, Ok(vec![]));
    assert_eq!(fixture.orders.sync(&[stored], NOW).await, Ok(vec![order.number]));
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
        (line("a", (0, 2), &[9]), Tickets::NONE),
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
    let reply = fixture.orders.settle(&refund, &Settlement::RefundOnly(None), LIMIT).await;
    assert_eq!(reply, Ok(SettleReply::Settled));
    assert_eq!(fixture.orders.get(never.number).await, Ok(None));
    let owed = async || fixture.orders.ledger().balances(&Account::Owed).await.unwrap();
    let of = |incoming, outgoing| [(never.total.currency, Balance { incoming, outgoing })].into();
    let amount = i128::from(never.total.amount_minor);
    assert_eq!(owed().await, of(amount, 0), "nobody's money is owed to who paid it");
    // However often it is decided, and asked for.
    let again = fixture.orders.settle(&refund, &Settlement::RefundOnly(None), LIMIT).await;
    assert_eq!(again, Ok(SettleReply::Known(refund.clone())));
    let requested = refund.requested(NOW).unwrap();
    assert_eq!(fixture.orders.record_refund(&requested, None).await, Ok(ChangeReply::Done));
    assert_eq!(owed().await, of(amount, 0));
    let back = requested.after_reply(&RefundReply::Refunded, NOW).unwrap();
    assert_eq!(fixture.orders.record_refund(&back, None).await, Ok(ChangeReply::Done));
    assert_eq!(fixture.orders.record_refund(&back, None).await, Ok(ChangeReply::Conflict));
    assert_eq!(owed().await, of(amount, amount));
    let stripe = Account::Provider(key("pi").provider);
    assert_eq!(fixture.orders.ledger().balances(&stripe).await.unwrap(), of(amount, amount));
}
