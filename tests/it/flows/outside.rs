//! Refunds that somebody makes by hand at the provider, and refunds that fail after they succeeded, on real servers.

use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::fact::FactKind;
use engine::domain::order::order_refund::{AskedBy, OrderRefund, RefundKey, RefundNumber};
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Capture, Order, OrderState};
use engine::domain::payment::outside::OutsideRefusal;
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::flows::give_back::give_back;
use engine::flows::outside::{Refusal, Told, keep, record_sent_back, settle};
use engine::flows::refund::{Outcome, ask_again, refund_part};
use engine::flows::stuck::{Kind, stuck};
use engine::ports::{Orders as _, Ports as _};
use fake_payments::{Fault, PROVIDER};

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::environment::{Fixture, NOW, whole};

/// The price of a ticket.
const PRICE: i64 = 500;
/// A day and two hours: what was refused is asked for again then.
const DAYS_SECONDS: i64 = 26 * 60 * 60;

fn stripe() -> ProviderId {
    ProviderId::new(PROVIDER).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    NOW.plus_seconds(seconds)
}

fn first() -> RefundRequest {
    RefundRequest { tickets: RefundedTickets::Named(Vec::new()), ..whole() }
}

impl Fixture {
    async fn look(&self, capture: &Capture, now: Timestamp) -> Result<(), Refusal> {
        record_sent_back(&self.ports, &stripe(), &capture.key.payment, now).await
    }

    fn by_hand(&self, payment: &PaymentId, amount: i64) {
        self.provider.refund_by_hand(payment.as_str(), MinorUnits(amount), NOW).unwrap();
    }

    /// What the provider has sent back of a payment, newest first: amounts, and how they ended.
    fn sent(&self, capture: &Capture) -> Vec<(i64, String)> {
        let ledger = self.provider.ledger().into_iter();
        let mut of_it = ledger.filter(|entry| entry.payment == capture.key.payment.as_str());
        let refunds = of_it.next().unwrap().refunds;
        refunds.into_iter().map(|refund| (refund.amount_minor.0, refund.status)).collect()
    }

    async fn refunds_now(&self, order: &Order) -> Vec<OrderRefund> {
        self.ports.orders().order_refunds(order.number).await.unwrap()
    }

    /// The state of each refund of an order, and what it says.
    async fn states(&self, order: &Order) -> Vec<(RefundState, i64, AskedBy)> {
        let say = |one: &OrderRefund| (one.refund.state, one.amount.amount_minor.0, one.asked_by);
        self.refunds_now(order).await.iter().map(say).collect()
    }

    /// An operator gives money of an order back, without a ticket.
    async fn given(&self, order: &Order, number: u8, amount: i64, now: Timestamp) -> RefundKey {
        let amount = Some(Money { amount_minor: MinorUnits(amount), ..order.total });
        let number = RefundNumber::try_from(number).unwrap();
        let request = RefundRequest { number, amount, ..first() };
        give_back(&self.ports, None, order.number, &request, now).await.unwrap().refund.key
    }

    async fn asked_for(&self, key: RefundKey, now: Timestamp) -> RefundState {
        match refund_part(&self.ports, key, now).await.unwrap() {
            Outcome::Asked(refund) => refund.state,
            Outcome::TooEarly(at) => panic!("not before {at:?}"),
        }
    }

    /// The refunds of an order that wait for their turn are worked off.
    async fn worked_off(&self, order: &Order, now: Timestamp) {
        for refund in self.refunds_now(order).await {
            self.asked_for(refund.key, now).await;
        }
    }
}

fn kinds(order: &Order) -> Vec<FactKind> {
    order.facts.all.iter().map(|fact| fact.kind).collect()
}

/// The field case `refund-in-the-dashboard-leaves-tickets-valid`, (a): a whole payment goes back in the dashboard. Read at
/// every crash point: it is recorded once, is shown to an operator, and the tickets go with one word or stay with another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_goes_back_in_the_dashboard_waits_for_an_operator() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let (order, capture) = fixture.sold(&format!("u{call}{cut:?}")).await;
        fixture.by_hand(&capture.key.payment, 2 * PRICE);
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let payment = &capture.key.payment;
        let _ = record_sent_back(&crashing, &stripe(), payment, at(60)).await;
        fixture.look(&capture, at(61)).await.unwrap();
        fixture.look(&capture, at(62)).await.unwrap();
        fixture.worked_off(&order, at(70)).await;
        fixture.worked_off(&order, at(71)).await;
        let outside = (RefundState::Outside, 2 * PRICE, AskedBy::Outside);
        assert_eq!(fixture.states(&order).await, [outside], "{call} {cut:?}");
        let (now_is, payment) = fixture.now_is(&capture).await;
        assert_eq!(
            (now_is.state, payment.left().amount_minor),
            (OrderState::Paid, MinorUnits::ZERO)
        );
        let told = [FactKind::Made, FactKind::Paid, FactKind::RefundMade, FactKind::Refunded];
        assert_eq!(kinds(&now_is), told);
        crashing.has_died()
    })
    .await;
    assert!(calls > 6, "{calls}");

    // One keeps the tickets, one gives them up.
    for keeps in [true, false] {
        let (order, capture) = fixture.sold(if keeps { "kept" } else { "void" }).await;
        fixture.by_hand(&capture.key.payment, 2 * PRICE);
        fixture.look(&capture, at(60)).await.unwrap();
        fixture.worked_off(&order, at(61)).await;
        let waits = async |now: Timestamp| {
            let found = stuck(&fixture.ports, 120, now).await.unwrap().stuck;
            let of_it = found.iter().filter(|one| one.order == order.number);
            of_it.filter(|one| one.kind == Kind::Outside).count()
        };
        assert_eq!(waits(at(500)).await, 1);
        let key = RefundKey { order: order.number, number: RefundNumber::FIRST };
        if keeps {
            for _ in 0..2 {
                let told = keep(&fixture.ports, key, at(600)).await.unwrap().unwrap();
                let Told::Done(kept) = told else { panic!("{told:?}") };
                assert_eq!(kept.refund.state, RefundState::Refunded);
            }
        } else {
            let number = RefundNumber::try_from(2).unwrap();
            let all = RefundRequest { number, ..whole() };
            let given = give_back(&fixture.ports, None, order.number, &all, at(600)).await.unwrap();
            assert_eq!(given.refund.amount.amount_minor, MinorUnits::ZERO, "nothing is left");
            assert_eq!(given.order.state, OrderState::Refunded);
            assert_eq!(given.order.live_tickets().count(), 0);
        }
        assert_eq!(waits(at(601)).await, 0, "keeps: {keeps}");
        assert_eq!(fixture.sent(&capture), [(2 * PRICE, "succeeded".to_owned())]);
    }
}

/// The same field case, (b): a part goes back in the dashboard, and then an operator refunds all: what is left goes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_after_a_refund_in_the_dashboard_goes_back() {
    let fixture = Fixture::start().await;
    let (order, capture) = fixture.sold("part").await;
    fixture.by_hand(&capture.key.payment, 250);
    fixture.look(&capture, at(60)).await.unwrap();
    fixture.worked_off(&order, at(61)).await;
    let all = RefundRequest { number: RefundNumber::try_from(2).unwrap(), ..whole() };
    let given = give_back(&fixture.ports, None, order.number, &all, at(100)).await.unwrap();
    assert_eq!(given.refund.amount.amount_minor, MinorUnits(750));
    assert_eq!(fixture.asked_for(given.refund.key, at(200)).await, RefundState::Refunded);
    let (now_is, payment) = fixture.now_is(&capture).await;
    assert_eq!((now_is.state, payment.back), (OrderState::Refunded, MinorUnits(1000)));
    let [(last, _), (hand, _)] = &fixture.sent(&capture)[..] else { panic!("two went back") };
    assert_eq!((*last, *hand), (750, 250));
}

/// Finding C1 to its end: what was refused is settled in the dashboard, which the list of refunds says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_and_is_paid_in_the_dashboard_is_back_once() {
    let fixture = Fixture::start().await;
    let (order, capture) = fixture.sold("refused").await;
    let key = fixture.given(&order, 1, 300, NOW).await;
    fixture.provider.next(Fault::RefuseRefund);
    assert_eq!(fixture.asked_for(key, at(5)).await, RefundState::Failed);
    fixture.by_hand(&capture.key.payment, 300);
    fixture.provider.forget_keys();
    // The next request meets a conflict, and looks into it.
    assert_eq!(fixture.asked_for(key, at(DAYS_SECONDS)).await, RefundState::Refunded);
    fixture.look(&capture, at(DAYS_SECONDS + 2)).await.unwrap();
    let back = (RefundState::Refunded, 300, AskedBy::Operator);
    assert_eq!(fixture.states(&order).await, [back], "it was not made for itself");
    assert_eq!(fixture.asked_for(key, at(2 * DAYS_SECONDS)).await, RefundState::Refunded);
    assert_eq!(fixture.sent(&capture).len(), 1);
    assert_eq!(fixture.now_is(&capture).await.1.back, MinorUnits(300));
    // Of another amount it may have been meant for one that failed: that is sent again by an operator's word only.
    let second = fixture.given(&order, 2, 200, at(2 * DAYS_SECONDS)).await;
    fixture.provider.next(Fault::RefuseRefund);
    assert_eq!(fixture.asked_for(second, at(2 * DAYS_SECONDS + 70)).await, RefundState::Failed);
    fixture.by_hand(&capture.key.payment, 210);
    fixture.look(&capture, at(2 * DAYS_SECONDS + 80)).await.unwrap();
    fixture.worked_off(&order, at(2 * DAYS_SECONDS + 200)).await;
    fixture.provider.forget_keys();
    assert_eq!(fixture.asked_for(second, at(4 * DAYS_SECONDS)).await, RefundState::Failed);
    ask_again(&fixture.ports, second, at(4 * DAYS_SECONDS + 1)).await.unwrap();
    fixture.provider.forget_keys();
    assert_eq!(fixture.asked_for(second, at(4 * DAYS_SECONDS + 200)).await, RefundState::Refunded);
    let amounts: Vec<i64> = fixture.sent(&capture).into_iter().map(|(amount, _)| amount).collect();
    assert_eq!(amounts, [200, 210, 300]);
}

/// Finding H3: a refund fails after it succeeded. It is owed again, nothing is sent by the clock, and an operator has it sent
/// under another name, or says how it was paid otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_fails_after_it_succeeded_is_owed_again() {
    let fixture = Fixture::start().await;
    let (order, capture) = fixture.sold("closed").await;
    give_back(&fixture.ports, None, order.number, &whole(), NOW).await.unwrap();
    let key = RefundKey { order: order.number, number: RefundNumber::FIRST };
    assert_eq!(fixture.asked_for(key, at(5)).await, RefundState::Refunded);
    assert_eq!(fixture.now_is(&capture).await.0.state, OrderState::Refunded);
    let payment = capture.key.payment.as_str();
    fixture.provider.fail_refunds_later(payment, at(DAYS_SECONDS)).unwrap();
    for seconds in 1..3 {
        fixture.look(&capture, at(DAYS_SECONDS + seconds)).await.unwrap();
    }
    let (now_is, record) = fixture.now_is(&capture).await;
    assert_eq!((now_is.state, now_is.refunds.back), (OrderState::RefundDue, 0));
    assert_eq!(kinds(&now_is).last(), Some(&FactKind::RefundUndone));
    assert_eq!(record.back, MinorUnits(1000), "the payment has it not back: it is owed");
    fixture.provider.forget_keys();
    assert_eq!(fixture.asked_for(key, at(2 * DAYS_SECONDS)).await, RefundState::FailedLater);
    assert_eq!(fixture.sent(&capture).len(), 1, "nothing is sent by the clock");
    ask_again(&fixture.ports, key, at(2 * DAYS_SECONDS + 1)).await.unwrap();
    assert_eq!(fixture.asked_for(key, at(2 * DAYS_SECONDS + 2)).await, RefundState::Refunded);
    assert_eq!(fixture.now_is(&capture).await.0.state, OrderState::Refunded);
    let refunds = fixture.refunds_now(&order).await;
    assert_eq!(refunds[0].name().to_string(), format!("{key}-2"));
    // It fails once more, and is paid by the bank.
    fixture.provider.fail_refunds_later(payment, at(3 * DAYS_SECONDS)).unwrap();
    fixture.look(&capture, at(3 * DAYS_SECONDS + 1)).await.unwrap();
    let (found, _) = fixture.now_is(&capture).await;
    assert_eq!(found.state, OrderState::RefundDue);
    for _ in 0..2 {
        let told = settle(&fixture.ports, key, "bank transfer 4711", at(3 * DAYS_SECONDS + 2));
        let told = told.await.unwrap().unwrap();
        let Told::Done(settled) = told else { panic!("{told:?}") };
        assert_eq!(settled.refund.state, RefundState::Settled);
        assert_eq!(settled.refund.refusal.as_deref(), Some("bank transfer 4711"));
    }
    assert_eq!(fixture.now_is(&capture).await.0.state, OrderState::Refunded);
    assert_eq!(fixture.asked_for(key, at(4 * DAYS_SECONDS)).await, RefundState::Settled);
    let failed = || "failed".to_owned();
    assert_eq!(fixture.sent(&capture), [(1000, failed()), (1000, failed())]);
}

/// What was settled and what the provider sends after all are told as paid twice, and nothing is booked by that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_was_settled_and_is_sent_after_all_is_told() {
    let fixture = Fixture::start().await;
    let (order, capture) = fixture.sold("twice").await;
    let key = fixture.given(&order, 1, 300, NOW).await;
    let early = settle(&fixture.ports, key, "cash", at(1)).await.unwrap();
    assert!(matches!(early, Some(Told::NotNow(_))), "it has not failed: {early:?}");
    // The provider has it, and its answer is lost; the next one is refused for another reason.
    fixture.provider.next(Fault::LoseRefundAnswer);
    assert!(refund_part(&fixture.ports, key, at(2)).await.is_err());
    let failed = OrderRefund {
        refund: engine::domain::order::refund::Refund {
            state: RefundState::Failed,
            changed_at: at(3),
            refusal: Some("no".to_owned()),
            turn_at: None,
        },
        ..fixture.refunds_now(&order).await.remove(0)
    };
    fixture.ports.orders().record_order_refund(&failed, None).await.unwrap();
    settle(&fixture.ports, key, "cash", at(4)).await.unwrap();
    let facts = kinds(&fixture.now_is(&capture).await.0);
    let told = fixture.look(&capture, at(5)).await;
    let name = failed.name();
    assert_eq!(told, Err(Refusal::Refused(OutsideRefusal::PaidTwice(name))));
    assert_eq!(kinds(&fixture.now_is(&capture).await.0), facts, "nothing is booked");
}

/// Of others on the same account nothing is recorded, whatever goes back of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_of_others_payments_is_left_alone() {
    let fixture = Fixture::start().await;
    let (order, _) = fixture.sold("own").await;
    let metadata = fake_payments::Metadata::of_order(order.number);
    let amount = order.total;
    fixture.provider.capture_of_others("pi_shop", metadata, amount, NOW).unwrap();
    let shop = PaymentId::new("pi_shop").unwrap();
    fixture.by_hand(&shop, 100);
    let looked = record_sent_back(&fixture.ports, &stripe(), &shop, at(60)).await;
    assert_eq!(looked, Ok(()));
    assert_eq!(fixture.states(&order).await, []);
    let none = PaymentId::new("pi_none").unwrap();
    assert_eq!(record_sent_back(&fixture.ports, &stripe(), &none, at(60)).await, Ok(()));
}

/// What a hand or a bank has done with a refund is not undone by what became of its request before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hand_has_paid_stays_paid_and_what_it_sent_may_fail_too() {
    let fixture = Fixture::start().await;
    let (order, capture) = fixture.sold("hand").await;
    let key = fixture.given(&order, 1, 300, NOW).await;
    assert_eq!(fixture.asked_for(key, at(5)).await, RefundState::Refunded);
    let payment = capture.key.payment.as_str();
    fixture.provider.fail_refunds_later(payment, at(10)).unwrap();
    fixture.look(&capture, at(11)).await.unwrap();
    assert_eq!(fixture.states(&order).await[0].0, RefundState::FailedLater);
    // Somebody sends it again by hand, which is read several times.
    fixture.by_hand(&capture.key.payment, 300);
    for seconds in 20..23 {
        fixture.look(&capture, at(seconds)).await.unwrap();
        let back = (RefundState::Refunded, 300, AskedBy::Operator);
        assert_eq!(fixture.states(&order).await, [back]);
    }
    assert_eq!(fixture.now_is(&capture).await.1.back, MinorUnits(300));
    // That fails as well: it is owed again, and an operator has it sent under another name.
    fixture.provider.fail_refunds_later(payment, at(30)).unwrap();
    fixture.look(&capture, at(31)).await.unwrap();
    assert_eq!(fixture.states(&order).await[0].0, RefundState::FailedLater);
    ask_again(&fixture.ports, key, at(32)).await.unwrap();
    assert_eq!(fixture.asked_for(key, at(40)).await, RefundState::Refunded);
    let amounts: Vec<(i64, String)> = fixture.sent(&capture);
    assert_eq!(amounts[0], (300, "succeeded".to_owned()));
    assert_eq!(amounts.iter().filter(|(_, status)| status == "succeeded").count(), 1);
}
