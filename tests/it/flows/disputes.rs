//! Disputes on real servers: read from the provider's list, cut off at every call, told once, and a lost one is a refund
//! that nobody is asked to send.

use engine::domain::basics::ids::{DisputeId, ProviderId, ReaderId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::fact::FactKind;
use engine::domain::order::order_refund::{AskedBy, RefundKey, RefundNumber};
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Capture, Order, OrderState, PaymentRecord};
use engine::domain::payment::captures::Cursor;
use engine::domain::payment::dispute::MAX_DISPUTES;
use engine::domain::payment::refund::{RefundRefusal, RefundRequest};
use engine::flows::captures::{Reading, read_captures};
use engine::flows::dispute::record_dispute;
use engine::flows::give_back::{Refusal, give_back};
use engine::flows::pay::pay;
use engine::flows::reconcile::reconcile;
use engine::flows::refund::{Outcome, ask_again, refund_part};
use engine::flows::reserve::reserve;
use engine::flows::stuck::stuck;
use engine::flows::sync::sync;
use engine::ports::{ChangeReply, CursorReply, Cursors, Orders, Ports};
use fake_payments::{PROVIDER, RESTRICTED_KEY};
use shared::runtime::app::App;
use shared::runtime::config::Secret;

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::environment::{Fixture, NOW, epoch, whole};

/// When disputes come: long after the sale.
const LATER: Timestamp = NOW.plus_seconds(30 * 86_400);

fn stripe() -> ProviderId {
    ProviderId::new(PROVIDER).unwrap()
}

impl Fixture {
    /// An order that was paid, and its payment.
    pub(super) async fn sold(&self, user: &str) -> (Order, Capture) {
        let reservation = self.reservation(user).await;
        let order = reserve(&self.ports, &reservation, NOW).await.unwrap().order;
        let payment = format!("pi_{user}");
        let capture = self.provider.capture(&payment, order.number, order.total, NOW).unwrap();
        pay(&self.ports, &capture, NOW).await.unwrap();
        (order, capture)
    }

    /// The list was read until now.
    async fn read_until(&self, now: Timestamp) {
        let (provider, reader) = (stripe(), ReaderId::new("before").unwrap());
        let taken = self.ports.cursors().take_cursor(&provider, &reader, now, now).await.unwrap();
        assert!(matches!(taken, CursorReply::Taken(_)));
        let cursor = Cursor::starting(now);
        let moved = self.ports.cursors().move_cursor(&provider, &reader, &cursor, now).await;
        assert_eq!(moved, Ok(ChangeReply::Done));
    }

    async fn reading(&self, name: &str, now: Timestamp) -> Reading {
        read_captures(&self.ports, &ReaderId::new(name).unwrap(), now, 10).await.unwrap()
    }

    pub(super) async fn now_is(&self, capture: &Capture) -> (Order, PaymentRecord) {
        let order = self.ports.orders().get(capture.order).await.unwrap().unwrap();
        let payment = self.ports.orders().payment(capture.order, &capture.key).await.unwrap();
        (order, payment.unwrap())
    }

    fn disputed(&self, capture: &Capture, amount: i64, now: Timestamp) -> DisputeId {
        let (payment, amount) = (capture.key.payment.as_str(), MinorUnits(amount));
        let id = self.provider.open_dispute(payment, amount, false, now).unwrap();
        DisputeId::new(id).unwrap()
    }

    fn decided(&self, dispute: &DisputeId, is_won: bool, now: Timestamp) {
        self.provider.close_dispute(dispute.as_str(), is_won, now).unwrap();
    }
}

fn kinds(order: &Order) -> Vec<FactKind> {
    order.facts.all.iter().map(|fact| fact.kind).collect()
}

/// An account's restricted key may lack the right to read disputes, as one made for an earlier release does.
#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_the_key_may_not_read_stops_no_capture() {
    let fixture = Fixture::start().await;
    let (sold, capture) = fixture.sold("disputed").await;
    fixture.read_until(NOW).await;
    let at = |seconds: i64| NOW.plus_seconds(seconds);
    fixture.disputed(&capture, 1000, at(1));
    let mut config = fixture.config.clone();
    config.providers.apis[0].key = Secret(RESTRICTED_KEY.as_bytes().to_vec());
    let restricted = Box::pin(App::from_config(&config)).await.unwrap().ports;
    // No callback reports this one: only the list has it, on the page of the dispute.
    let reservation = fixture.reservation("lost").await;
    let order = reserve(&fixture.ports, &reservation, at(2)).await.unwrap().order;
    fixture.provider.capture("pi_lost", order.number, order.total, at(3)).unwrap();
    let read = |name: &'static str, now: Timestamp| {
        let ports = &restricted;
        async move { read_captures(ports, &ReaderId::new(name).unwrap(), now, 10).await }
    };
    let reading = read("restricted", at(10)).await.unwrap();
    assert_eq!((reading.decided, reading.disputes, reading.unreadable), (1, 0, 1), "{reading:?}");
    let paid = fixture.ports.orders().get(order.number).await.unwrap().unwrap();
    assert_eq!(paid.state, OrderState::Paid);
    // The list is read to its end. The next pass begins a little before the last one, and the one after it no more so.
    let passes = [("next", 86_400), ("after", 2 * 86_400)];
    let mut met = Vec::new();
    for (name, seconds) in passes {
        let pass = read(name, at(seconds)).await.unwrap();
        assert_eq!(pass.unfinished, 0, "{pass:?}");
        met.push(pass.unreadable);
    }
    assert_eq!(met.last(), Some(&0), "{met:?}");
    assert_eq!(kinds(&fixture.now_is(&capture).await.0), [FactKind::Made, FactKind::Paid]);
    // Once the key may, the dispute is recorded when it changes.
    let dispute = DisputeId::new("dp_1").unwrap();
    fixture.decided(&dispute, true, at(2 * 86_400 + 100));
    let reading = fixture.reading("again", at(2 * 86_400 + 3700)).await;
    assert_eq!((reading.disputes, reading.unreadable), (1, 0), "{reading:?}");
    let order = fixture.ports.orders().get(sold.number).await.unwrap().unwrap();
    assert!(kinds(&order).contains(&FactKind::DisputeWon), "{order:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disputes_are_read_though_nothing_is_sold_and_a_lost_one_is_a_refund() {
    let fixture = Fixture::start().await;
    let (lost, lost_by) = fixture.sold("lost").await;
    let (won, won_by) = fixture.sold("won").await;
    let (asked, asked_by) = fixture.sold("asked").await;
    // What is not settled is due, and might be an order that waits.
    sync(&fixture.ports, &[lost.number, won.number, asked.number], NOW).await.unwrap();
    fixture.read_until(LATER).await;
    let idle = fixture.reading("idle", LATER.plus_seconds(60)).await;
    assert_eq!((idle.is_pending, idle.pages), (false, 0), "it was read a minute ago");

    let at = |seconds: i64| LATER.plus_seconds(seconds);
    let first = fixture.disputed(&lost_by, 1000, at(100));
    let second = fixture.disputed(&won_by, 700, at(101));
    let payment = asked_by.key.payment.as_str();
    fixture.provider.open_dispute(payment, MinorUnits(1000), true, at(102)).unwrap();
    let reading = fixture.reading("hour", at(3600)).await;
    assert_eq!((reading.pages, reading.disputes, reading.unreadable), (1, 3, 0), "{reading:?}");
    let (order, payment) = fixture.now_is(&lost_by).await;
    assert_eq!(kinds(&order), [FactKind::Made, FactKind::Paid, FactKind::DisputeOpened]);
    assert_eq!(payment.open_dispute().map(|open| open.id.clone()), Some(first.clone()));
    let refused = give_back(&fixture.ports, None, lost.number, &whole(), at(3600)).await;
    assert_eq!(refused, Err(Refusal::Refused(RefundRefusal::Disputed)));
    let (order, payment) = fixture.now_is(&asked_by).await;
    assert_eq!((kinds(&order).len(), payment.disputes), (2, vec![]), "the bank has only asked");

    fixture.decided(&first, false, at(4000));
    fixture.decided(&second, true, at(4001));
    let reading = fixture.reading("day", at(86_400)).await;
    assert_eq!((reading.disputes, reading.unreadable), (2, 0), "{reading:?}");
    let (order, payment) = fixture.now_is(&lost_by).await;
    assert_eq!(order.state, OrderState::RefundDue);
    assert_eq!(payment.disputes[0].state, DisputeState::Lost);
    assert_eq!(payment.left().amount_minor, MinorUnits(0));
    let key = RefundKey { order: lost.number, number: RefundNumber::FIRST };
    let done = refund_part(&fixture.ports, key, at(86_400)).await.unwrap();
    let Outcome::Asked(refund) = done else { panic!("{done:?}") };
    assert_eq!(refund.state, RefundState::Refunded);
    let (order, _) = fixture.now_is(&lost_by).await;
    assert_eq!(order.state, OrderState::Refunded);
    let lines = [FactKind::RefundMade, FactKind::DisputeLost, FactKind::Refunded];
    assert_eq!(kinds(&order)[3..], lines);
    let ledger = fixture.provider.ledger();
    assert!(ledger.iter().all(|entry| entry.refunds.is_empty()), "nobody was asked to send it");

    let (order, payment) = fixture.now_is(&won_by).await;
    assert_eq!(order.state, OrderState::Paid);
    assert_eq!(kinds(&order)[2..], [FactKind::DisputeOpened, FactKind::DisputeWon]);
    assert_eq!((payment.open_dispute(), payment.left()), (None, won.total));
    // Read again, late and once more, everything stays as it is.
    for dispute in [&first, &second, &first] {
        record_dispute(&fixture.ports, &stripe(), dispute, at(90_000)).await.unwrap();
    }
    assert_eq!(fixture.now_is(&won_by).await.0.facts.all.len(), 4);

    // Its seats are sold in Redis and nobody's: the comparison gives them back.
    let report = reconcile(&fixture.ports, &epoch("later"), at(90_000)).await.unwrap();
    let numbers = [lost.number, won.number, asked.number];
    sync(&fixture.ports, &numbers, at(90_000)).await.unwrap();
    let again = reconcile(&fixture.ports, &epoch("again"), at(90_001)).await.unwrap();
    assert_ne!(report, again, "the first one had something to do");
    fixture.must_be_consistent().await;
}

/// Whoever records a lost dispute may die at any call: the next one goes on, and it is told and refunded once.
#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_is_recorded_once_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let (_, capture) = fixture.sold(&format!("{call}-{cut:?}")).await;
        let dispute = fixture.disputed(&capture, 1000, LATER);
        fixture.decided(&dispute, false, LATER);
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = record_dispute(&crashing, &stripe(), &dispute, LATER).await;
        record_dispute(&fixture.ports, &stripe(), &dispute, LATER).await.unwrap();
        let (order, payment) = fixture.now_is(&capture).await;
        let told = [FactKind::DisputeOpened, FactKind::RefundMade, FactKind::DisputeLost]
            .map(|kind| order.facts.all.iter().filter(|fact| fact.kind == kind).count());
        assert_eq!(told, [1; 3], "{}", capture.key.payment);
        assert_eq!((order.refunds.made, payment.disputes.len()), (1, 1));
        assert_eq!(payment.left().amount_minor, MinorUnits(0));
        crashing.has_died()
    })
    .await;
    println!("a lost dispute: cut off at each of {calls} calls");
    assert!(calls > 8, "{calls}");
    fixture.must_be_consistent().await;
}

/// What was refunded before anybody here knew, and the provider does not send any more, is back by the dispute.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_the_provider_refuses_is_back_by_a_lost_dispute() {
    let fixture = Fixture::start().await;
    let (order, capture) = fixture.sold("raced").await;
    let dispute = fixture.disputed(&capture, 1000, LATER);
    let made = give_back(&fixture.ports, None, order.number, &whole(), LATER).await.unwrap();
    let key = made.refund.key;
    let Outcome::Asked(refused) = refund_part(&fixture.ports, key, LATER).await.unwrap() else {
        panic!("it is the first one")
    };
    assert_eq!(refused.state, RefundState::Failed);
    assert!(refused.refusal.unwrap().contains("charge_disputed"));
    record_dispute(&fixture.ports, &stripe(), &dispute, LATER).await.unwrap();
    fixture.decided(&dispute, false, LATER);
    record_dispute(&fixture.ports, &stripe(), &dispute, LATER).await.unwrap();
    let (order, payment) = fixture.now_is(&capture).await;
    assert_eq!((order.state, order.refunds.made), (OrderState::Refunded, 1));
    assert_eq!(payment.disputes[0].state, DisputeState::Lost);
    fixture.must_be_consistent().await;
}

/// What cannot be recorded holds up nothing behind it, and is counted for a person; another shop's dispute is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_cannot_be_recorded_is_counted_and_anothers_passed_by() {
    let fixture = Fixture::start().await;
    let (_, capture) = fixture.sold("ours").await;
    fixture.read_until(LATER).await;
    let amount = capture.amount;
    let nobodys = fixture.provider.capture("pi_nobodys", "2048".parse().unwrap(), amount, NOW);
    fixture.disputed(&nobodys.unwrap(), 1000, LATER.plus_seconds(10));
    // One more than is kept of a payment.
    for seconds in 0..=i64::try_from(MAX_DISPUTES).unwrap() {
        fixture.disputed(&capture, 50, LATER.plus_seconds(11 + seconds));
    }
    let reading = fixture.reading("hour", LATER.plus_seconds(3600)).await;
    let disputes = u32::try_from(MAX_DISPUTES).unwrap() + 1;
    assert_eq!((reading.disputes, reading.unreadable), (disputes, 1), "{reading:?}");
    let (_, payment) = fixture.now_is(&capture).await;
    assert_eq!(payment.disputes.len(), MAX_DISPUTES);
}

/// Finding M6: what was decided is decided otherwise, by arbitration or by the bank, and is recorded each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_is_decided_otherwise_is_recorded_each_time() {
    let fixture = Fixture::start().await;
    let (_, won) = fixture.sold("won").await;
    let (_, lost) = fixture.sold("lost").await;
    let ids = [fixture.disputed(&won, 1000, LATER), fixture.disputed(&lost, 1000, LATER)];
    for (id, is_won) in ids.iter().zip([true, false]) {
        fixture.decided(id, is_won, LATER);
        record_dispute(&fixture.ports, &stripe(), id, LATER).await.unwrap();
        fixture.provider.reverse_dispute(id.as_str(), LATER.plus_seconds(1)).unwrap();
    }
    for id in &ids {
        for _ in 0..2 {
            record_dispute(&fixture.ports, &stripe(), id, LATER).await.unwrap();
        }
    }
    // What was won is lost after all.
    let (order, payment) = fixture.now_is(&won).await;
    assert_eq!((payment.disputes[0].state, payment.disputes[0].reopened), (DisputeState::Lost, 1));
    assert_eq!((order.live_tickets().count(), payment.left().amount_minor), (0, MinorUnits(0)));
    // What was lost is won after all: it is owed, and goes back as any other refund.
    let (order, payment) = fixture.now_is(&lost).await;
    assert_eq!((payment.disputes[0].state, payment.disputes[0].reinstated), (DisputeState::Won, 1));
    assert_eq!((order.state, order.live_tickets().count()), (OrderState::RefundDue, 0));
    let key = RefundKey { order: order.number, number: RefundNumber::FIRST };
    let now = LATER.plus_seconds(100);
    let state = async || {
        let refund = fixture.ports.orders().order_refund(key).await.unwrap().unwrap();
        refund.refund.state
    };
    assert_eq!(state().await, RefundState::FailedLater);
    refund_part(&fixture.ports, key, now).await.unwrap();
    assert_eq!(state().await, RefundState::FailedLater, "nothing is sent by the clock");
    ask_again(&fixture.ports, key, now).await.unwrap();
    let sent = refund_part(&fixture.ports, key, now).await.unwrap();
    assert!(matches!(&sent, Outcome::Asked(one) if one.state == RefundState::Refunded), "{sent:?}");
    assert_eq!(fixture.now_is(&lost).await.0.state, OrderState::Refunded);
    let ledger = fixture.provider.ledger();
    let refunds = |payment: &str| {
        let entry = ledger.iter().find(|entry| entry.payment == payment).unwrap();
        entry.refunds.len()
    };
    assert_eq!((refunds("pi_won"), refunds("pi_lost")), (0, 1));
    let numbers = [won.order, lost.order];
    sync(&fixture.ports, &numbers, now).await.unwrap();
    reconcile(&fixture.ports, &epoch("later"), now).await.unwrap();
    fixture.must_be_consistent().await;
}

/// Whoever records that a lost dispute was won may die at any call.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_after_a_lost_dispute_is_owed_once_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let (_, capture) = fixture.sold(&format!("won-{call}-{cut:?}")).await;
        let dispute = fixture.disputed(&capture, 1000, LATER);
        fixture.decided(&dispute, false, LATER);
        record_dispute(&fixture.ports, &stripe(), &dispute, LATER).await.unwrap();
        fixture.provider.reverse_dispute(dispute.as_str(), LATER).unwrap();
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = record_dispute(&crashing, &stripe(), &dispute, LATER).await;
        record_dispute(&fixture.ports, &stripe(), &dispute, LATER).await.unwrap();
        let (order, _) = fixture.now_is(&capture).await;
        let told = [FactKind::DisputeWon, FactKind::RefundUndone]
            .map(|kind| order.facts.all.iter().filter(|fact| fact.kind == kind).count());
        assert_eq!((told, order.state), ([1; 2], OrderState::RefundDue), "{}", capture.key.payment);
        crashing.has_died()
    })
    .await;
    println!("a lost dispute that is won: cut off at each of {calls} calls");
    assert!(calls > 6, "{calls}");
    fixture.must_be_consistent().await;
}

/// A cancelled sale voids the tickets of a disputed payment too: the refund waits for the dispute, and is listed.
#[tokio::test(flavor = "multi_thread")]
async fn the_refund_of_a_cancelled_sale_waits_for_a_dispute() {
    let fixture = Fixture::start().await;
    for (user, is_won) in [("kept", true), ("taken", false)] {
        let (order, capture) = fixture.sold(user).await;
        let dispute = fixture.disputed(&capture, 1000, LATER);
        record_dispute(&fixture.ports, &stripe(), &dispute, LATER).await.unwrap();
        let cancelled = RefundRequest { asked_by: AskedBy::SaleCancelled, ..whole() };
        let made = give_back(&fixture.ports, None, order.number, &cancelled, LATER).await.unwrap();
        let key = made.refund.key;
        assert_eq!(made.order.live_tickets().count(), 0);
        let asked = async |now: Timestamp| {
            let done = refund_part(&fixture.ports, key, now).await.unwrap();
            let Outcome::Asked(refund) = done else { panic!("{done:?}") };
            refund
        };
        let waits = asked(LATER).await;
        assert!(waits.waits_for_dispute() && waits.state == RefundState::Due, "{waits:?}");
        let found = stuck(&fixture.ports, 120, LATER.plus_seconds(3700)).await.unwrap().stuck;
        let why: Vec<&String> =
            found.iter().filter(|one| one.order == order.number).flat_map(|one| &one.why).collect();
        assert!(why.iter().any(|why| why.contains("waits for a dispute")), "{why:?}");
        let sweep = LATER.plus_seconds(3601);
        assert!(reconcile(&fixture.ports, &epoch(user), sweep).await.unwrap().refunds > 0);
        assert!(asked(sweep).await.waits_for_dispute(), "it is looked at each hour");
        fixture.decided(&dispute, is_won, sweep);
        record_dispute(&fixture.ports, &stripe(), &dispute, sweep).await.unwrap();
        assert_eq!(asked(sweep.plus_seconds(3600)).await.state, RefundState::Refunded);
        let (order, _) = fixture.now_is(&capture).await;
        assert_eq!(order.state, OrderState::Refunded, "{user}");
        let ledger = fixture.provider.ledger();
        let entry = ledger.iter().find(|entry| entry.payment == capture.key.payment.as_str());
        assert_eq!(entry.unwrap().refunds.len(), usize::from(is_won), "{user}");
    }
}

/// Finding M6: a payment has two disputes at once, and both are recorded.
#[tokio::test(flavor = "multi_thread")]
async fn two_disputes_of_a_payment_may_be_open_at_once() {
    let fixture = Fixture::start().await;
    let (_, capture) = fixture.sold("twice").await;
    let ids = [fixture.disputed(&capture, 400, LATER), fixture.disputed(&capture, 600, LATER)];
    for id in &ids {
        record_dispute(&fixture.ports, &stripe(), id, LATER).await.unwrap();
    }
    for id in &ids {
        fixture.decided(id, false, LATER);
        record_dispute(&fixture.ports, &stripe(), id, LATER).await.unwrap();
    }
    // The first one that is lost takes the tickets. There is no refund after that: what the other has taken stays in dispute.
    let (order, payment) = fixture.now_is(&capture).await;
    assert_eq!((payment.left().amount_minor, order.live_tickets().count()), (MinorUnits(600), 0));
    assert!(payment.disputes.iter().all(|one| one.state == DisputeState::Lost), "{payment:?}");
    fixture.must_be_consistent().await;
}
