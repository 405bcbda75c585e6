//! What the runbook tells an operator to do about refunds that failed, done word by word against an engine: the commands
//! are read from the page, the provider's own ledger says what was sent back.

use std::path::Path;
use std::time::{Duration, Instant};

use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{RefundKey, RefundNumber};
use engine::domain::order::refund::RefundState;
use engine::flows::outside::record_sent_back;
use engine::flows::refund::refund_part;
use engine::ports::{Orders as _, Ports as _};
use fake_payments::{Fault, PROVIDER};
use local::up::Engine;
use serde_json::json;

use crate::money_commands::{hall, order};
use crate::program::{output, read, run};

/// The price of two tickets.
const PAID: i64 = 5000;
/// Time that anything may take before the test fails.
const DEADLINE: Duration = Duration::from_secs(90);
/// What was refused is asked for again by then.
const NEXT_DAY_SECONDS: i64 = 26 * 3600;

/// The inline code of a section of the runbook.
fn said_in(section: &str) -> Vec<&'static str> {
    let runbook = include_str!("../../docs/runbook.md");
    let begin = format!("\n## {section}\n");
    let text = runbook.split_once(&begin).expect("the runbook has the section").1;
    let text = text.split("\n## ").next().unwrap_or(text);
    text.split('`').skip(1).step_by(2).collect()
}

/// The words of what is typed, as a shell reads them.
fn words(typed: &str) -> Vec<String> {
    let by_quote = typed.split('\'').enumerate();
    let of_part = |(index, part): (usize, &str)| match index % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    };
    by_quote.flat_map(of_part).collect()
}

/// An engine whose provider refuses, and the operator at its command line.
struct Desk<'a> {
    engine: &'a Engine,
    dir: &'a Path,
}

impl Desk<'_> {
    /// An order that is paid, and the provider's name of its payment.
    async fn paid(&self, buyer: &str) -> (OrderNumber, String) {
        let order = order(self.engine, buyer, 2).await;
        let (said, code) = run(self.dir, &["pay", "--order", &order]);
        assert_eq!(code, 0, "{said}");
        let ledger = self.engine.provider().ledger();
        let paid = ledger.into_iter().find(|entry| entry.order.to_string() == order).unwrap();
        (paid.order, paid.payment)
    }

    /// An order whose refund the provider has refused, because there is no money.
    async fn refused(&self, buyer: &str) -> (OrderNumber, String) {
        let (order, payment) = self.paid(buyer).await;
        self.engine.provider().next(Fault::RefuseRefund);
        self.refunds(order);
        self.is(order, RefundState::Failed).await;
        (order, payment)
    }

    fn refunds(&self, order: OrderNumber) {
        let (said, code) = run(self.dir, &["orders", "refund", &order.to_string(), "--all"]);
        assert_eq!(code, 0, "{said}");
    }

    /// Waits until the first refund of an order is in a state.
    async fn is(&self, order: OrderNumber, state: RefundState) {
        let key = RefundKey { order, number: RefundNumber::FIRST };
        let until = Instant::now() + DEADLINE;
        loop {
            let refund = self.engine.app().ports.orders().order_refund(key).await.unwrap();
            let now = refund.map(|refund| refund.refund.state);
            if now == Some(state) {
                return;
            }
            assert!(Instant::now() < until, "{now:?} is not {state:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Types what the page says: the snippet with these words, behind the page's command if it is only an option.
    fn types(&self, with: &str, order: OrderNumber) {
        let snippets = [said_in("refunds-failed"), said_in("refunds-outside")].concat();
        let named = |what: &str| {
            let found = snippets.iter().find(|snippet| snippet.contains(what));
            *found.unwrap_or_else(|| panic!("the runbook does not say {what}"))
        };
        let snippet = named(with);
        let line = match snippet.strip_prefix("onsale ") {
            Some(line) => line.to_owned(),
            None => {
                let whole = named("--again").strip_prefix("onsale ").unwrap();
                whole.replace("--again", snippet)
            }
        };
        let typed = words(&line.replace("ORDER", &order.to_string()).replace(" N ", " 1 "));
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let (said, errors, code) = output(self.dir, &typed);
        assert_eq!(code, 0, "{typed:?}: {said}{errors}");
    }

    /// A day later the engine asks for what it has not heard of.
    async fn a_day_later(&self, order: OrderNumber) {
        let now = Timestamp::now().plus_seconds(NEXT_DAY_SECONDS);
        let key = RefundKey { order, number: RefundNumber::FIRST };
        refund_part(&self.engine.app().ports, key, now).await.unwrap();
    }

    /// What the provider has sent back of a payment.
    fn sent(&self, payment: &str) -> Vec<i64> {
        let ledger = self.engine.provider().ledger().into_iter();
        let mut of_it = ledger.filter(|entry| entry.payment == payment);
        let refunds = of_it.next().unwrap().refunds.into_iter();
        let went = refunds.filter(|refund| refund.status == "succeeded");
        went.map(|refund| refund.amount_minor.0).collect()
    }

    /// Somebody gives a payment back in the provider's dashboard.
    async fn by_hand(&self, payment: &str) {
        let now = Timestamp::now();
        self.engine.provider().refund_by_hand(payment, MinorUnits(PAID), now).unwrap();
        self.looks(payment).await;
    }

    /// The engine looks what became of the refunds of a payment, as it does within the hour.
    async fn looks(&self, payment: &str) {
        let now = Timestamp::now().plus_seconds(60);
        let provider = ProviderId::new(PROVIDER).unwrap();
        let payment = payment.parse().unwrap();
        record_sent_back(&self.engine.app().ports, &provider, &payment, now).await.unwrap();
    }

    /// The kinds of what `onsale stuck` says of an order.
    fn stuck(&self, order: OrderNumber) -> Vec<String> {
        let typed = said_in("refunds-failed").into_iter().find(|said| *said == "onsale stuck");
        let typed = typed.expect("the runbook says so").strip_prefix("onsale ").unwrap();
        let (found, _) = read(self.dir, &[typed, "--older-than", "0"]);
        let all = found["stuck"].as_array().unwrap().iter();
        let of_it = all.filter(|one| one["order"] == order.to_string());
        of_it.map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_that_failed_are_settled_by_the_page_and_nothing_goes_back_twice() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = hall(dir, 20, &json!({})).await;
    let desk = Desk { engine: &engine, dir };

    // It is paid otherwise, and said so: the provider is not asked again.
    let (order, payment) = desk.refused("ann").await;
    desk.types("--settled 'bank transfer", order);
    desk.a_day_later(order).await;
    desk.is(order, RefundState::Settled).await;
    assert_eq!(desk.sent(&payment), [] as [i64; 0], "the bank has paid");

    // The way is clear: a day later, when Stripe has forgotten its answer, it is sent.
    let (order, payment) = desk.refused("bob").await;
    engine.provider().forget_keys();
    desk.a_day_later(order).await;
    assert_eq!(desk.sent(&payment), [PAID]);

    // What came to nothing is sent again by a word only.
    let (order, payment) = desk.paid("eve").await;
    desk.refunds(order);
    desk.is(order, RefundState::Refunded).await;
    engine.provider().fail_refunds_later(&payment, Timestamp::now()).unwrap();
    desk.looks(&payment).await;
    desk.is(order, RefundState::FailedLater).await;
    desk.a_day_later(order).await;
    assert_eq!(desk.sent(&payment), [] as [i64; 0]);
    desk.types("--again", order);
    desk.is(order, RefundState::Refunded).await;
    desk.a_day_later(order).await;
    assert_eq!(desk.sent(&payment), [PAID]);

    // Nothing is said of what was sent by hand in just that amount.
    let (order, payment) = desk.refused("cyd").await;
    desk.by_hand(&payment).await;
    desk.is(order, RefundState::Refunded).await;
    desk.a_day_later(order).await;
    assert_eq!(desk.sent(&payment), [PAID]);

    // Somebody gives a payment back, and the tickets stay.
    let (order, payment) = desk.paid("dee").await;
    desk.by_hand(&payment).await;
    assert_eq!(desk.stuck(order), ["outside"]);
    desk.types("--keep", order);
    desk.is(order, RefundState::Refunded).await;
    assert_eq!((desk.stuck(order), desk.sent(&payment)), (vec![], vec![PAID]));

    let (said, code) = run(dir, &["audit", "--wait-seconds", "60"]);
    assert_eq!(code, 0, "{said}");
    engine.stop().await.unwrap();
}
