//! Whose a capture is (I13): payments of other systems and deployments on the same account, and those of ours whose order
//! is not there.

use engine::domain::basics::ids::{PaymentId, ProviderId, ReaderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::Account;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Order, OrderState, PaymentKey, PaymentRecord};
use engine::domain::payment::ours::Reported;
use engine::flows::captures::read_captures;
use engine::flows::pay::{pay, pay_reported};
use engine::flows::reconcile::reconcile;
use engine::flows::refund::{Outcome, refund};
use engine::flows::reserve::reserve;
use engine::flows::stuck::{Kind, stuck};
use engine::flows::unmatched::{Refusal, Word, tell};
use engine::ports::{Orders as _, Ports as _, StoreError};
use fake_payments::Metadata;

use super::environment::{Fixture, NOW, epoch};
use crate::backends::deployment;

const DAY: i64 = 86_400;

fn amount() -> Money {
    Money { amount_minor: MinorUnits(4600), currency: Currency::new("EUR").unwrap() }
}

fn key(payment: &str) -> PaymentKey {
    let provider = ProviderId::new("stripe").unwrap();
    PaymentKey { provider, payment: PaymentId::new(payment).unwrap() }
}

impl Fixture {
    async fn waiting(&self, user: &str) -> Order {
        let reservation = self.reservation(user).await;
        reserve(&self.ports, &reservation, NOW).await.unwrap().order
    }

    /// Somebody on the account captures a payment that carries this.
    fn shop(&self, payment: &str, metadata: &[(&str, &str)]) {
        let metadata = metadata.iter().map(|(name, text)| (*name, (*text).to_owned()));
        let metadata = Metadata::new(metadata);
        self.provider.capture_of_others(payment, metadata, amount(), NOW).unwrap();
    }

    async fn known(&self, order: OrderNumber, payment: &str) -> Option<PaymentRecord> {
        self.ports.orders().payment(order, &key(payment)).await.unwrap()
    }

    async fn owed(&self, account: Account) -> i128 {
        let found = self.ports.orders().orders.0.ledger().balances(&account).await.unwrap();
        found.values().map(|balance| balance.left()).sum()
    }

    fn refunds_at_provider(&self) -> u64 {
        self.provider.calls().get("create_refund").copied().unwrap_or_default()
    }
}

/// Finding C2, and `field-cases/shared-stripe-account-refunded` with the kind around it: what others capture on the account
/// is in its list, and is recorded nowhere, booked nowhere and not refunded.
#[tokio::test(flavor = "multi_thread")]
async fn payments_of_others_on_the_account_are_left_alone() {
    let fixture = Fixture::start().await;
    let order = fixture.waiting("ours").await;
    let paid = fixture.provider.capture("pi_ours", order.number, order.total, NOW).unwrap();
    pay(&fixture.ports, &paid, NOW).await.unwrap();
    let number = order.number.to_string();
    let stage = Mint::new(9).mint(NOW, &order.user).to_string();
    fixture.shop("pi_pretix1", &[("order", "48151"), ("event", "77"), ("code", "ABCDE")]);
    fixture.shop("pi_words", &[("order", "#1001")]);
    fixture.shop("pi_uuid", &[("order", "3f0c5f3e-2b52-4ac5-8d35-9b2c11223344")]);
    fixture.shop("pi_stage1", &[("order", &stage)]);
    fixture.shop("pi_stage2", &[("onsale_deployment", "stage"), ("onsale_order", &stage)]);
    // A copy of the tables has the same orders.
    fixture.shop(
        "pi_copy",
        &[("onsale_deployment", "stage"), ("onsale_order", &number), ("order", &number)],
    );
    fixture.shop("pi_none", &[]);
    fixture.waiting("pending").await;
    let reader = ReaderId::new("reads").unwrap();
    let reading = read_captures(&fixture.ports, &reader, NOW.plus_seconds(60), 100).await.unwrap();
    assert_eq!((reading.others, reading.decided, reading.unreadable), (4, 0, 0), "{reading:?}");
    for (order, payment) in [
        ("48151", "pi_pretix1"),
        (&stage, "pi_stage1"),
        (&stage, "pi_stage2"),
        (&number, "pi_copy"),
    ] {
        assert_eq!(fixture.known(order.parse().unwrap(), payment).await, None, "{payment}");
    }
    reconcile(&fixture.ports, &epoch("e1"), NOW.plus_seconds(DAY)).await.unwrap();
    assert_eq!(fixture.refunds_at_provider(), 0);
    assert_eq!(fixture.owed(Account::Owed).await, 0);
    fixture.must_be_consistent().await;
}

/// A capture of ours whose order a restored backup has lost is told every day, and goes back only if an operator says so.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_ours_and_of_no_order_waits_for_an_operator() {
    let fixture = Fixture::start().await;
    let lost = Mint::new(9).mint(NOW, &"lost".parse().unwrap());
    let text = lost.to_string();
    let own = deployment();
    for payment in ["pi_back", "pi_known"] {
        fixture.shop(payment, &[("onsale_deployment", own.as_str()), ("onsale_order", &text)]);
        let capture = fixture.provider.capture(payment, lost, amount(), NOW).unwrap();
        let told = pay_reported(&fixture.ports, &Reported::ours(capture), NOW).await.unwrap();
        assert!(told.unwrap().is_unmatched());
    }
    assert_eq!(fixture.owed(Account::Owed).await, 9200);
    // No message, sweep or repetition sends anything.
    let by_message = refund(&fixture.ports, lost, &key("pi_back"), NOW).await;
    assert!(matches!(by_message, Err(StoreError::Contract(_))), "{by_message:?}");
    let later = NOW.plus_seconds(DAY + 60);
    reconcile(&fixture.ports, &epoch("e1"), later).await.unwrap();
    let record = fixture.known(lost, "pi_back").await.unwrap();
    assert_eq!(record.refund.unwrap().changed_at, later, "it is told again");
    assert_eq!(fixture.refunds_at_provider(), 0);
    let found = stuck(&fixture.ports, 60, later).await.unwrap();
    let unmatched = found.stuck.iter().filter(|stuck| stuck.kind == Kind::Unmatched);
    assert_eq!(unmatched.count(), 2, "{found:?}");

    let say = async |payment: &str, word| {
        tell(&fixture.ports, lost, &key(payment), (word, "-"), later).await
    };
    let known = say("pi_known", Word::Explain).await.unwrap();
    assert_eq!(known.refund.unwrap().state, RefundState::Explained);
    assert!(say("pi_known", Word::Explain).await.is_ok(), "the same again changes nothing");
    assert_eq!(say("pi_known", Word::SendBack).await, Err(Refusal::SaidOtherwise));
    assert_eq!(fixture.owed(Account::Explained).await, 4600);
    say("pi_back", Word::SendBack).await.unwrap();
    assert_eq!(say("pi_back", Word::Explain).await, Err(Refusal::SaidOtherwise));
    let back = refund(&fixture.ports, lost, &key("pi_back"), later).await.unwrap();
    let Outcome::Asked(back) = back else { panic!("{back:?}") };
    assert_eq!((back.state, fixture.refunds_at_provider()), (RefundState::Refunded, 1));
    assert_eq!(fixture.owed(Account::Owed).await, 0);
    assert_eq!(say("pi_nobodys", Word::SendBack).await, Err(Refusal::NotFound));
    fixture.must_be_consistent().await;
}

/// What was started before payments carried an id names an attempt of its order, and pays it.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_of_an_earlier_version_pays_its_order() {
    let fixture = Fixture::start().await;
    let order = fixture.waiting("earlier").await;
    let number = order.number.to_string();
    let metadata = Metadata::new([("order", number), ("attempt", "1".to_owned())]);
    fixture.provider.capture_of_others("pi_earlier", metadata, order.total, NOW).unwrap();
    let reader = ReaderId::new("reads").unwrap();
    let now: Timestamp = NOW.plus_seconds(60);
    let reading = read_captures(&fixture.ports, &reader, now, 100).await.unwrap();
    assert_eq!((reading.others, reading.decided), (0, 1), "{reading:?}");
    assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid));
}
