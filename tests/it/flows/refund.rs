//! Money that goes back, and money that nobody was told of: each flow cut off at every call, and a
//! provider that fails in every way it can.

use std::sync::Mutex;

use super::ended::ended;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::fact::FactKind;
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{
    Capture, Order, OrderState, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason,
};
use engine::domain::payment::grace::Grace;
use engine::domain::payment::outside::OutsideRefusal;
use engine::domain::payment::start::Offer;
use engine::flows::expire::Expired;
use engine::flows::outside::{Refusal, record_sent_back};
use engine::flows::pay::pay;
use engine::flows::reconcile::{dry_run, reconcile};
use engine::flows::refund::{
    Outcome, ask_whole_again, refund, refund_or_requeue, request, settle_whole,
};
use engine::flows::reserve::reserve;
use engine::flows::sync::sync;
use engine::ports::{Catalogue as _, Freshness, Orders, Ports, StoreError, Stored, messages};
use fake_payments::Fault;
use model_stores::{Call, Caller, Driver, Message, Reply, Sent, Stores};

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, epoch, inventory};

/// Time at which the payment window of every order is over.
const LATE: Timestamp = NOW.plus_seconds(PAY_WINDOW_SECONDS);

impl Fixture {
    /// A pending order of a new buyer.
    async fn pending(&self, user: &str) -> Order {
        let reservation = self.reservation(user).await;
        reserve(&self.ports, &reservation, NOW).await.unwrap().order
    }

    /// The provider captures money, and tells nobody.
    fn captured(&self, name: &str, order: &Order, amount: Money) -> Capture {
        self.provider.capture(name, order.number, amount, NOW).unwrap()
    }

    /// An order whose money came too late: its seats are another's.
    async fn too_late(&self, name: &str) -> (Order, Capture) {
        let order = self.pending(name).await;
        assert_eq!(self.expired(&order, LATE).await, Expired::Ended);
        let capture = self.captured(&format!("pi_{name}"), &order, order.total);
        // The best seats are free again, and the next buyer's.
        let other = self.pending(&format!("{name}-other")).await;
        assert_eq!(other.held_lines(), order.held_lines());
        let record = pay(&self.ports, &capture, LATE).await.unwrap();
        assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::TooLate));
        assert_eq!(self.state(order.number).await, Some(OrderState::RefundDue));
        (order, capture)
    }

    async fn expired(&self, order: &Order, now: Timestamp) -> Expired {
        ended(&self.ports, &inventory(), order.number, now).await.unwrap()
    }

    async fn refunded(&self, capture: &Capture, now: Timestamp) -> Refund {
        let done = refund(&self.ports, capture.order, &capture.key, now).await.unwrap();
        let Outcome::Asked(refund) = done else { panic!("{done:?}") };
        refund
    }

    async fn record(&self, capture: &Capture) -> PaymentRecord {
        self.ports.orders().payment(capture.order, &capture.key).await.unwrap().unwrap()
    }

    /// The states of a payment's refunds at the provider.
    fn sent_back(&self, capture: &Capture) -> Vec<String> {
        let payment = capture.key.payment.as_str();
        let ledger = self.provider.ledger();
        let entry = ledger.into_iter().find(|entry| entry.payment == payment).unwrap();
        entry.refunds.into_iter().map(|refund| refund.status).collect()
    }
}

fn key_of(capture: &Capture) -> String {
    format!("{} of {}", capture.key.payment, capture.order)
}

#[tokio::test(flavor = "multi_thread")]
async fn money_goes_back_once_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    for lost in [false, true] {
        let calls = at_every_call(async |call, cut| {
            let (order, capture) = fixture.too_late(&format!("{lost}-{call}-{cut:?}")).await;
            if lost {
                fixture.provider.next(Fault::LoseRefundAnswer);
            }
            let crashing = Crashing::at(&fixture.ports, call, cut);
            let _ = refund(&crashing, order.number, &capture.key, LATE).await;
            // The message comes again; where an answer is still to be lost, once more.
            let _ = refund(&fixture.ports, order.number, &capture.key, LATE).await;
            let done = fixture.refunded(&capture, LATE).await;
            assert_eq!(done.state, RefundState::Refunded, "{}", key_of(&capture));
            assert_eq!(fixture.state(order.number).await, Some(OrderState::Refunded));
            assert_eq!(fixture.sent_back(&capture), ["succeeded"], "{}", key_of(&capture));
            // And a message that comes days later finds nothing to do.
            assert_eq!(fixture.refunded(&capture, LATE.plus_seconds(1_000_000)).await, done);
            crashing.has_died()
        })
        .await;
        println!("refund, answer lost {lost}: cut off at each of {calls} calls");
        // Payment, turn, provider, order, record and message; an attempt that loses the answer ends there.
        assert_eq!(calls, if lost { 3 } else { 6 });
    }
    fixture.must_be_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_says_is_recorded_and_asked_again_when_it_is_time() {
    let fixture = Fixture::start().await;
    let later = |seconds| LATE.plus_seconds(seconds);
    let (order, capture) = fixture.too_late("slow").await;
    fixture.provider.next(Fault::LeaveRefundPending);
    assert_eq!(fixture.refunded(&capture, LATE).await.state, RefundState::Pending);
    assert_eq!(fixture.refunded(&capture, later(1)).await.state, RefundState::Pending);
    assert_eq!(fixture.state(order.number).await, Some(OrderState::RefundDue));
    fixture.provider.settle_refunds("pi_slow", false).unwrap();
    let failed = fixture.refunded(&capture, later(2)).await;
    assert_eq!(failed.state, RefundState::Failed);
    assert_eq!(failed.refusal.as_deref(), Some("failed: expired_or_canceled_card"));
    assert_eq!(fixture.refunded(&capture, later(3)).await.state, RefundState::Failed);
    assert_eq!(fixture.sent_back(&capture), ["failed"], "no other is sent after one that failed");

    let (_, refused) = fixture.too_late("poor").await;
    fixture.provider.next(Fault::RefuseRefund);
    let failed = fixture.refunded(&refused, LATE).await;
    let why = failed.refusal.as_deref().unwrap();
    assert_eq!(why, "balance_insufficient: Insufficient funds in your account.");
    assert_eq!(fixture.record(&refused).await.refund, Some(failed));

    let (_, unheard) = fixture.too_late("down").await;
    fixture.provider.next(Fault::FailRefund);
    let error = refund(&fixture.ports, unheard.order, &unheard.key, LATE).await.unwrap_err();
    assert!(error.retryable(), "{error}");
    let state = |record: PaymentRecord| record.refund.unwrap().state;
    assert_eq!(state(fixture.record(&unheard).await), RefundState::Requested);

    // The sweeper asks again for what nothing was heard of: after five minutes, and a day.
    let swept = async |now: Timestamp| {
        reconcile(&fixture.ports, &epoch("sweep"), now).await.unwrap().refunds
    };
    swept(LATE).await;
    assert_eq!(swept(later(299)).await, 0);
    assert_eq!(swept(later(300)).await, 1, "the one that is requested");
    assert_eq!(swept(later(25 * 3600 + 2)).await, 3, "and those that failed");
    assert_eq!(swept(later(25 * 3600 + 3)).await, 0);
    assert_eq!(fixture.refunded(&unheard, later(400)).await.state, RefundState::Refunded);
}

/// Finding H3 of whole payments: what was sent back because it came too late, was a second payment, or was of no order
/// fails after it succeeded. It is owed again, nothing is sent by the clock, and an operator has it sent again under another
/// name or says how it was paid.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_payment_that_fails_after_it_went_back_is_owed_again() {
    let fixture = Fixture::start().await;
    let at = |seconds: i64| LATE.plus_seconds(seconds);
    let look = async |capture: &Capture, now: Timestamp| {
        let PaymentKey { provider, payment } = &capture.key;
        record_sent_back(&fixture.ports, provider, payment, now).await
    };
    let (late, too_late) = fixture.too_late("late").await;
    let (paid, _) = fixture.sold("paid").await;
    let second = fixture.captured("pi_second", &paid, paid.total);
    pay(&fixture.ports, &second, NOW).await.unwrap();
    let ended = fixture.pending("never").await;
    let of_none = tombstone(&fixture, &ended).await;
    for (capture, order, before, after) in [
        (&too_late, &late, OrderState::Refunded, OrderState::RefundDue),
        (&second, &paid, OrderState::Paid, OrderState::Paid),
        (&of_none, &ended, OrderState::Expired, OrderState::Expired),
    ] {
        let name = key_of(capture);
        let state = async || fixture.record(capture).await.refund.unwrap().state;
        assert_eq!(fixture.refunded(capture, LATE).await.state, RefundState::Refunded, "{name}");
        assert_eq!(fixture.state(capture.order).await, Some(before), "{name}");
        fixture.provider.fail_refunds_later(capture.key.payment.as_str(), LATE).unwrap();
        for seconds in 1..3 {
            look(capture, at(seconds)).await.unwrap();
        }
        assert_eq!(state().await, RefundState::FailedLater, "{name}");
        assert_eq!(fixture.state(capture.order).await, Some(after), "{name}");
        // The sweeper tells it again, each day, and nobody sends it.
        fixture.provider.forget_keys();
        for day in 1..3 {
            reconcile(&fixture.ports, &epoch("sweep"), at(day * 90_000)).await.unwrap();
            fixture.refunded(capture, at(day * 90_000 + 1)).await;
        }
        assert_eq!(state().await, RefundState::FailedLater, "{name}");
        assert_eq!(fixture.sent_back(capture), ["failed"], "{name}");
        let again =
            |seconds| ask_whole_again(&fixture.ports, order.number, &capture.key, at(seconds));
        again(300_000).await.unwrap();
        assert_eq!(fixture.refunded(capture, at(300_001)).await.state, RefundState::Refunded);
        assert_eq!(fixture.state(capture.order).await, Some(before), "{name}");
        assert_eq!(fixture.sent_back(capture), ["succeeded", "failed"], "{name}");
        // It fails once more, is sent under its third name, is refused, and is paid by the bank.
        fixture.provider.fail_refunds_later(capture.key.payment.as_str(), LATE).unwrap();
        look(capture, at(300_010)).await.unwrap();
        again(300_020).await.unwrap();
        fixture.provider.next(Fault::RefuseRefund);
        assert_eq!(fixture.refunded(capture, at(300_021)).await.state, RefundState::Failed);
        let record = fixture.record(capture).await;
        assert_eq!((record.ended, record.undone), (2, 2), "{name}");
        for _ in 0..2 {
            let settled =
                settle_whole(&fixture.ports, order.number, &capture.key, "cash", at(300_030));
            let refund = settled.await.unwrap().unwrap().refund.unwrap();
            assert_eq!(
                (refund.state, refund.refusal.as_deref()),
                (RefundState::Settled, Some("cash"))
            );
        }
        assert_eq!(fixture.state(capture.order).await, Some(before), "{name}");
        assert_eq!(fixture.refunded(capture, at(600_000)).await.state, RefundState::Settled);
        assert_eq!(fixture.sent_back(capture), ["failed", "failed"], "{name}");
    }
    // What a hand sends after all is told, and books nothing.
    let facts = fixture.ports.orders().get(late.number).await.unwrap().unwrap().facts.count();
    let amount = too_late.amount.amount_minor;
    fixture.provider.refund_by_hand("pi_late", amount, LATE).unwrap();
    let told = look(&too_late, at(700_000)).await;
    let twice = OutsideRefusal::WholePaidTwice(too_late.key.payment.clone());
    assert_eq!(told, Err(Refusal::Refused(twice)));
    let now_is = fixture.ports.orders().get(late.number).await.unwrap().unwrap();
    assert_eq!(now_is.facts.count(), facts);
    let numbers = [late.number, paid.number];
    sync(&fixture.ports, &numbers, at(700_000)).await.unwrap();
}

/// A capture for an order that never came to be.
async fn tombstone(fixture: &Fixture, order: &Order) -> Capture {
    let number = Mint::new(77).mint(NOW, &order.user);
    let capture = fixture.provider.capture("pi_none", number, order.total, NOW).unwrap();
    let tombstone =
        Order { number, state: OrderState::Expired, lines: Vec::new(), ..order.clone() };
    fixture.ports.orders().write_tombstone(&tombstone).await.unwrap();
    let record = pay(&fixture.ports, &capture, NOW).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::UnknownOrder));
    capture
}

/// A reader that finds money to have come to us again may die at any call.
#[tokio::test(flavor = "multi_thread")]
async fn money_that_came_to_us_again_is_told_once_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let name = format!("undone-{call}-{cut:?}");
        let (order, capture) = fixture.too_late(&name).await;
        assert_eq!(fixture.refunded(&capture, LATE).await.state, RefundState::Refunded);
        fixture.provider.fail_refunds_later(&format!("pi_{name}"), LATE).unwrap();
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let PaymentKey { provider, payment } = &capture.key;
        let _ = record_sent_back(&crashing, provider, payment, LATE).await;
        record_sent_back(&fixture.ports, provider, payment, LATE).await.unwrap();
        let now_is = fixture.ports.orders().get(order.number).await.unwrap().unwrap();
        let undone = now_is.facts.all.iter().filter(|fact| fact.kind == FactKind::RefundUndone);
        assert_eq!((now_is.state, undone.count()), (OrderState::RefundDue, 1), "{name}");
        crashing.has_died()
    })
    .await;
    println!("money that came to us again: cut off at each of {calls} calls");
    assert!(calls > 3, "{calls}");
    fixture.must_be_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_money_moves_on_the_word_of_a_message() {
    let fixture = Fixture::start().await;
    let order = fixture.pending("honest").await;
    let capture = fixture.captured("pi_honest", &order, order.total);
    let broken = |error: StoreError| assert!(matches!(error, StoreError::Contract(_)), "{error}");
    broken(refund(&fixture.ports, order.number, &capture.key, NOW).await.unwrap_err());
    let paid = pay(&fixture.ports, &capture, NOW).await.unwrap();
    assert_eq!((paid.outcome, paid.refund), (PaymentOutcome::Accepted, None));
    broken(refund(&fixture.ports, order.number, &capture.key, NOW).await.unwrap_err());
    assert!(fixture.sent_back(&capture).is_empty());
    assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid));
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_and_other_money_go_back_each_for_itself() {
    let fixture = Fixture::start().await;
    let order = fixture.pending("parts").await;
    let Money { amount_minor, currency } = order.total;
    let of = |amount_minor: MinorUnits| Money { amount_minor, currency };
    let half = MinorUnits(amount_minor.0 / 2);
    let yuan = Money { currency: Currency::new("CNY").unwrap(), amount_minor };
    let wrong = [
        ("pi_half", of(half), RefundReason::WrongAmount),
        ("pi_rest", of(amount_minor - half), RefundReason::WrongAmount),
        ("pi_more", of(amount_minor + MinorUnits(1)), RefundReason::WrongAmount),
        ("pi_yuan", yuan, RefundReason::WrongCurrency),
    ];
    for (name, amount, reason) in wrong {
        let capture = fixture.captured(name, &order, amount);
        let record = pay(&fixture.ports, &capture, NOW).await.unwrap();
        assert_eq!(record.outcome, PaymentOutcome::Refund(reason), "{name}");
        assert_eq!(fixture.refunded(&capture, NOW).await.state, RefundState::Refunded, "{name}");
        assert_eq!(fixture.sent_back(&capture), ["succeeded"], "{name}");
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Pending), "{name}");
    }
    let whole = fixture.captured("pi_whole", &order, order.total);
    pay(&fixture.ports, &whole, NOW.plus_seconds(1)).await.unwrap();
    let second = fixture.captured("pi_second", &order, order.total);
    pay(&fixture.ports, &second, NOW.plus_seconds(2)).await.unwrap();

    let ledger = fixture.ports.orders().payments(order.number).await.unwrap();
    let names: Vec<&str> =
        ledger.iter().map(|record| record.capture.key.payment.as_str()).collect();
    assert_eq!(names, ["pi_half", "pi_more", "pi_rest", "pi_yuan", "pi_whole", "pi_second"]);
    assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_callback_is_lost_is_paid_when_it_should_expire_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let name = format!("lost-{call}-{cut:?}");
        let order = fixture.pending(&name).await;
        // A part that goes back, the payment, and one too many.
        let amount = Money { amount_minor: MinorUnits(1), ..order.total };
        let part = fixture.captured(&format!("pi_1_{name}"), &order, amount);
        let whole = fixture.captured(&format!("pi_2_{name}"), &order, order.total);
        let second = fixture.captured(&format!("pi_3_{name}"), &order, order.total);
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = ended(&crashing, &inventory(), order.number, LATE).await;
        assert_eq!(fixture.expired(&order, LATE).await, Expired::Resolved, "{name}");
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid), "{name}");
        // A process that died may have left what follows from its decisions to the provider's
        // calls, which come again, or to the sweeper.
        for (capture, outcome) in [
            (part, PaymentOutcome::Refund(RefundReason::WrongAmount)),
            (whole, PaymentOutcome::Accepted),
            (second, PaymentOutcome::Refund(RefundReason::SecondPayment)),
        ] {
            let callback = pay(&fixture.ports, &capture, LATE).await.unwrap();
            assert_eq!(callback.outcome, outcome, "{name}");
        }
        crashing.has_died()
    })
    .await;
    println!("expire with money at the provider: cut off at each of {calls} calls");
    fixture.must_be_consistent().await;
    reconcile(&fixture.ports, &epoch("later"), LATE.plus_seconds(61)).await.unwrap();
    let quiet = reconcile(&fixture.ports, &epoch("later"), LATE.plus_seconds(61)).await.unwrap();
    assert!(quiet.is_quiet(), "{quiet:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_waits_out_its_grace_for_a_provider_that_does_not_answer() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    let order = fixture.pending("patient").await;
    let capture = fixture.captured("pi_patient", &order, order.total);
    let end = Grace::DEFAULT.end_from(LATE);
    for (now, again) in [
        (LATE, LATE.plus_seconds(5)),
        (end.plus_seconds(-5), end),
        (end, end.plus_seconds(5)),
        (end.plus_seconds(44), end.plus_seconds(45)),
    ] {
        fixture.provider.next(Fault::FailSearch);
        assert_eq!(fixture.expired(&order, now).await, Expired::NotDue(again));
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Pending));
    }
    fixture.provider.next(Fault::FailSearch);
    assert_eq!(fixture.expired(&order, end.plus_seconds(45)).await, Expired::Ended);
    // The money comes to light all the same, and the seats are still free.
    let record = pay(&fixture.ports, &capture, end).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Accepted);
    assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid));

    // A search that lacks the payment even then is as good as none: the order ends.
    let order = fixture.pending("early").await;
    let capture = fixture.captured("pi_early", &order, order.total);
    fixture.provider.next(Fault::FindNothing);
    assert_eq!(fixture.expired(&order, end).await, Expired::Ended);
    let record = pay(&fixture.ports, &capture, end).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Accepted);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_was_paid_in_time_is_paid_though_the_provider_lists_it_late() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    let end = Grace::DEFAULT.end_from(LATE);
    let just_before = end.plus_ms(-1);
    for is_swept in [false, true] {
        let order = fixture.pending(&format!("in-time-{is_swept}")).await;
        let capture = fixture.captured(&format!("pi_{is_swept}"), &order, order.total);
        fixture.provider.next(Fault::FindNothing);
        assert_eq!(fixture.expired(&order, LATE).await, Expired::NotDue(end));
        // The sweeper leaves it alone meanwhile, and does not call it overdue.
        let swept = reconcile(&fixture.ports, &epoch("early"), just_before).await.unwrap();
        assert!(swept.is_quiet(), "{swept:?}");
        let dry = dry_run(&fixture.ports, just_before).await.unwrap();
        assert!(dry.found.is_empty() && dry.past_bound == 0, "{:?}", dry.found);
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Pending));

        if is_swept {
            // Its message is lost.
            let swept = reconcile(&fixture.ports, &epoch("late"), end).await.unwrap();
            assert_eq!((swept.expired, swept.failed), (0, 0), "{swept:?}");
        }
        assert_eq!(fixture.expired(&order, end).await, Expired::Resolved);
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid));
        assert_eq!(fixture.record(&capture).await.outcome, PaymentOutcome::Accepted);
        assert!(fixture.sent_back(&capture).is_empty());
    }
    fixture.must_be_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_past_its_bound_two_minutes_after_its_grace() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    fixture.pending("forgotten").await;
    let bound = LATE.plus_seconds(Grace::DEFAULT.bound_seconds().into());
    for (now, expected) in [(bound.plus_ms(-1), 0), (bound, 1)] {
        assert_eq!(dry_run(&fixture.ports, now).await.unwrap().past_bound, expected);
    }
}

/// Stores at a moment, at a provider whose refunds that captures decide have turns.
struct Turned(Mutex<(Stores, Timestamp)>);

impl Driver for Turned {
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    async fn call(&self, call: Call) -> Stored<Reply> {
        let (stores, now) = &mut *self.0.lock().unwrap();
        stores.apply(*now, &call)
    }
}

impl Turned {
    /// An order with so many payments, all but the first of which go back, one a second.
    async fn with_payments(fixture: &Fixture, count: u32) -> (Caller<Self>, Order, Vec<Capture>) {
        let order = fixture.pending("turned").await;
        let sale = fixture.ports.catalogue().sale(&order.sale, Freshness::Fresh).await.unwrap();
        let mut stores = Stores::default();
        stores.catalogue.publish(sale.unwrap().sale.file(), None).unwrap();
        stores.orders.create(&order, order.tickets()).unwrap();
        stores.provider.refund_interval_ms = 1000;
        let captured = |number| fixture.captured(&format!("pi_{number}"), &order, order.total);
        let captures: Vec<Capture> = (0..count).map(captured).collect();
        for capture in &captures {
            stores.provider.capture(capture.clone());
        }
        let ports = Caller(Self(Mutex::new((stores, NOW))));
        for capture in &captures {
            pay(&ports, capture, NOW).await.unwrap();
        }
        (ports, order, captures)
    }

    /// Delivers every message that is to be sent back and is visible at a time, `times` each; the refunds that the provider
    /// has made then.
    async fn deliver(ports: &Caller<Self>, now: Timestamp, times: usize) -> usize {
        let messages: Vec<messages::Refund> = {
            let (stores, clock) = &mut *ports.0.0.lock().unwrap();
            *clock = now;
            let visible: Vec<Sent> = stores.queues.visible(now).cloned().collect();
            let taken = visible.into_iter().filter(|sent| stores.queues.take(sent));
            let of = |sent: Sent| match sent.message {
                Message::Refund(message) => Some(message),
                Message::Expiry { .. }
                | Message::Close(_)
                | Message::Sync(_)
                | Message::Load(_)
                | Message::Callback(_)
                | Message::Draw(_)
                | Message::Points(_) => None,
            };
            taken.filter_map(of).collect()
        };
        for message in messages {
            for _ in 0..times {
                refund_or_requeue(ports, message.clone(), now).await.unwrap();
            }
        }
        let (stores, _) = &*ports.0.0.lock().unwrap();
        assert!(stores.provider.unturned.is_empty(), "{:?}", stores.provider.unturned);
        stores.provider.refunded.len()
    }
}

/// A mistake that takes a hundred captures for second payments sends few of them back before somebody has seen it.
#[tokio::test(flavor = "multi_thread")]
async fn refunds_that_captures_decide_go_one_by_one_however_often_they_are_asked_for() {
    let fixture = Fixture::start().await;
    let (ports, order, captures) = Turned::with_payments(&fixture, 101).await;
    // Each message comes twice; the record keeps one turn, and the sweeper adds none before it is over.
    assert_eq!(Turned::deliver(&ports, NOW, 2).await, 1, "the others wait");
    let turn = async |capture: &Capture| {
        let record = ports.orders().payment(order.number, &capture.key).await.unwrap().unwrap();
        (record.refund.clone().unwrap().turn_at, record)
    };
    let (first, record) = turn(&captures[100]).await;
    let first = first.expect("it has a turn");
    let again_at = record.refund.as_ref().unwrap().again_at();
    assert_eq!(again_at, Some(first.plus_seconds(300)), "the sweeper leaves it alone until then");
    // Who has requested it, and has not seen the turn, does not take it away.
    let unseen = Refund { turn_at: None, ..record.refund.clone().unwrap() };
    let unseen = PaymentRecord { refund: Some(unseen), ..record };
    request(&ports, &unseen, NOW).await.unwrap();
    assert_eq!(turn(&captures[100]).await.0, Some(first));

    let mut before = 1;
    for second in 1..=120 {
        let now = NOW.plus_seconds(second);
        let done = Turned::deliver(&ports, now, 2).await;
        assert!(done <= before + 1, "{} in second {second}", done - before);
        before = done;
    }
    assert_eq!(before, 100, "every second payment is back");
}

/// A queue that was stopped for an hour does not make up for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_missed_is_not_made_up_for() {
    let fixture = Fixture::start().await;
    let (ports, _, _) = Turned::with_payments(&fixture, 31).await;
    assert_eq!(Turned::deliver(&ports, NOW, 1).await, 1);
    let hour = NOW.plus_seconds(3600);
    assert_eq!(Turned::deliver(&ports, hour, 1).await, 2, "all were late, and one has a turn now");
    for second in 1..=60 {
        Turned::deliver(&ports, hour.plus_seconds(second), 1).await;
    }
    assert_eq!(Turned::deliver(&ports, hour.plus_seconds(61), 1).await, 30);
}
