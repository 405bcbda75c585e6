//! Money that goes back, and money that nobody was told of: each flow cut off at every call, and a
//! provider that fails in every way it can.

use super::ended::ended;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{
    Capture, Order, OrderState, PaymentOutcome, PaymentRecord, RefundReason,
};
use engine::domain::payment::grace::Grace;
use engine::flows::expire::Expired;
use engine::flows::pay::pay;
use engine::flows::reconcile::{dry_run, reconcile};
use engine::flows::refund::refund;
use engine::flows::reserve::reserve;
use engine::ports::{Orders, Ports, StoreError};
use fake_payments::Fault;

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
        refund(&self.ports, capture.order, &capture.key, now).await.unwrap()
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
        // Payment, provider, order, record and message; an attempt that loses the answer ends there.
        assert_eq!(calls, if lost { 2 } else { 5 });
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
