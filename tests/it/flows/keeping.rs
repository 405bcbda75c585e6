//! A store refuses one call of a decision, each in turn: the capture is in its queue before its provider is
//! answered with success, and is decided from there.

use std::sync::Mutex;

use engine::domain::basics::guard::{Guard, without};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::order::{Capture, PaymentKey};
use engine::domain::payment::ours::Reported;
use engine::flows::pay::{Answered, answer, pay_reported};
use engine::ports::{Orders as _, Ports as _, StoreError, Stored};
use model_stores::{Call, Caller, Driver, Message, Reply, Stores};

use super::environment::NOW;

/// Stores that refuse the calls that `refuses` names, by their number.
struct Refusing<F> {
    stores: Mutex<(Stores, usize)>,
    refuses: F,
}

impl<F: Fn(usize, &Call) -> bool + Send + Sync> Driver for Refusing<F> {
    async fn call(&self, call: Call) -> Stored<Reply> {
        let mut stores = self.stores.lock().unwrap();
        let (stores, calls) = &mut *stores;
        *calls += 1;
        if (self.refuses)(*calls - 1, &call) {
            return Err(StoreError::Unavailable("throttled".to_owned()));
        }
        stores.apply(NOW, &call)
    }
}

/// A capture of ours for an order that there is not: an operator is to decide.
fn capture() -> Capture {
    Capture {
        key: PaymentKey { provider: "stripe".parse().unwrap(), payment: "pi_1".parse().unwrap() },
        order: "1024".parse().unwrap(),
        amount: Money { amount_minor: MinorUnits(500), currency: Currency::new("EUR").unwrap() },
        attempt: None,
    }
}

/// What a callback is answered, and the captures that are kept then.
async fn called_back(
    refuses: impl Fn(usize, &Call) -> bool + Send + Sync,
) -> (Stored<Answered>, Vec<Reported>, Stores) {
    let ports = Caller(Refusing { stores: Mutex::default(), refuses });
    let reported = Reported::ours(capture());
    let decision = pay_reported(&ports, &reported, NOW).await;
    let answered = answer(&ports, &reported, decision).await;
    let stores = ports.0.stores.into_inner().unwrap().0;
    let kept = stores.queues.waiting.keys().filter_map(|sent| match &sent.message {
        Message::Callback(kept) => Some(kept.clone().into()),
        Message::Expiry { .. }
        | Message::Sync(_)
        | Message::Load(_)
        | Message::Refund(_)
        | Message::Close(_)
        | Message::Points(_)
        | Message::Draw(_) => None,
    });
    let kept = kept.collect();
    (answered, kept, stores)
}

#[tokio::test]
async fn a_capture_is_decided_or_kept_whichever_call_is_refused() {
    let mut kept_at = Vec::new();
    for at in 0.. {
        let (answered, kept, stores) = called_back(|call, _| call == at).await;
        match answered.unwrap() {
            Answered::Decided(_) => {
                assert!(kept.is_empty());
                break;
            }
            Answered::Ignored => panic!("it is ours"),
            Answered::Kept => {
                assert_eq!(kept, [Reported::ours(capture())], "call {at}");
                let again = Caller(Refusing {
                    stores: Mutex::new((stores, 0)),
                    refuses: |_, _: &Call| false,
                });
                let record = pay_reported(&again, &kept[0], NOW).await.unwrap().unwrap();
                let (order, key) = (capture().order, capture().key);
                let known = again.orders().payment(order, &key).await.unwrap().unwrap();
                assert_eq!(known.outcome, record.outcome);
                kept_at.push(at);
            }
        }
    }
    println!("refused at each of the calls {kept_at:?}, and kept");
    // The order and its payment are read, and the decision written: an operator does the rest.
    assert_eq!(kept_at, [0, 1, 2]);
}

#[tokio::test]
async fn what_the_queue_does_not_take_either_is_not_answered_with_success() {
    let (answered, kept, _) = called_back(|_, _| true).await;
    assert_eq!(answered, Err(StoreError::Unavailable("throttled".to_owned())));
    assert!(kept.is_empty());
}

/// The control: without the guard a provider is answered 200, and nobody knows of its capture.
#[test]
fn without_the_guard_a_capture_is_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let called = called_back(|call, _| call == 0);
    let (answered, kept, stores) = without(Guard::KeepBeforeAnswer, || runtime.block_on(called));
    assert_eq!((answered, kept), (Ok(Answered::Kept), Vec::new()));
    assert!(stores.orders.payments.is_empty());
}
