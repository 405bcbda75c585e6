//! The payment provider's part in a load test: it captures a buyer's money, calls the engine at the entry of
//! callbacks, and repeats what failed.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde::Deserialize;

use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::PaymentOutcome as Outcome;
use fake_limits::stripe::callback_gap;
use fake_payments::API_KEY;
use http::{HeaderName, HeaderValue};
use local::payment::{CAPTURE_PATH, PROVIDER, capture_form, captured};
use shared::providers::stripe::{API_VERSION, VERSION_HEADER};

use super::behaviour::polls;
use super::client::{Bearer, Call, Reply};
use super::ledger::Entry;
use super::options::CallbackRepeats;
use super::session::{Acknowledged, LoadTest, is_passing, repeated_for};
use super::stopwatch::Endpoint;

/// Number of times that a buyer tries to pay at a provider that does not answer.
const MAX_CHARGES: u32 = 60;
/// Time that they wait in between.
const CHARGE_AGAIN: Duration = Duration::from_millis(250);
/// Most requests of an order for the outcome of a capture: longer than a replay lasts.
const MAX_POLLS: usize = 200;

/// What a callback was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The capture is decided.
    Decided(Outcome),
    /// The capture is kept: the engine decides it later, and the provider does not call again.
    Kept,
    /// It failed for this reason: the provider calls again.
    Failed(Cow<'static, str>),
    /// No provider may be answered so.
    Wrong,
}

impl Delivery {
    fn from_reply(reply: &Reply) -> Self {
        #[derive(Deserialize)]
        struct Said {
            outcome: String,
        }
        if let Some(outcome) = reply.read() {
            return Self::Decided(outcome);
        }
        match reply {
            Reply::Ok(_) => match reply.read::<Said>() {
                Some(said) if said.outcome == "kept" => Self::Kept,
                Some(_) | None => Self::Wrong,
            },
            Reply::Problem(refused) if is_passing(&refused.kind) => {
                Self::Failed(repeated_for(reply))
            }
            Reply::Problem(_) => Self::Wrong,
            Reply::Lost(_) => Self::Failed(repeated_for(reply)),
        }
    }
}

/// What became of a capture, as its order shows it to its buyer.
fn shown(reply: &Reply, payment: &str) -> Option<Outcome> {
    #[derive(Deserialize)]
    struct Order {
        payments: Vec<Payment>,
    }
    #[derive(Deserialize)]
    struct Payment {
        payment: String,
        #[serde(flatten)]
        outcome: Outcome,
    }
    let order: Order = reply.read()?;
    let found = order.payments.into_iter().find(|shown| shown.payment == payment);
    found.map(|shown| shown.outcome)
}

impl LoadTest {
    /// The provider captures money for the order, and calls. What became of it is what the call is answered
    /// or, if that fails or the capture is kept, what the buyer is shown of the order.
    pub(super) async fn capture(
        &self,
        order: &Acknowledged,
        bearer: &Bearer,
        payment: &str,
        amount: Money,
        due: Instant,
    ) -> Option<Outcome> {
        self.record(Entry::Captured {
            order: order.order.to_string(),
            provider: PROVIDER.to_owned(),
            payment: payment.to_owned(),
            amount_minor: amount.amount_minor,
            currency: amount.currency.to_string(),
        });
        if !self.charge(order, payment, amount).await {
            return None;
        }
        let delivery = self.report(order, payment, amount, due).await?;
        match delivery {
            Delivery::Decided(outcome) => Some(outcome),
            Delivery::Kept | Delivery::Failed(_) => {
                self.decision(order, bearer, payment, amount, delivery, &[]).await
            }
            Delivery::Wrong => None,
        }
    }

    /// The provider calls, with a signature of now. A failure is counted, and a wrong answer is an anomaly.
    async fn report(
        &self,
        order: &Acknowledged,
        payment: &str,
        amount: Money,
        due: Instant,
    ) -> Option<Delivery> {
        let now = Timestamp::now();
        let event = captured(payment, order.order, amount, now).to_string();
        let signature = self.credentials.signature(event.as_bytes(), now);
        let entry = self.made(self.credentials.entry_path())?;
        let call = self.callback(Endpoint::TakeCallback, entry, event, signature)?;
        let reply = match self.callback_repeats {
            CallbackRepeats::Later => self.client.send_due(&call, due, None).await,
            CallbackRepeats::Soon => self.persist(&call, due, None).await,
        };
        let delivery = Delivery::from_reply(&reply);
        match &delivery {
            Delivery::Decided(_) | Delivery::Kept => {}
            Delivery::Failed(_) => self.tally.failed_callbacks.one(),
            Delivery::Wrong => self.refused(Endpoint::TakeCallback, &reply),
        }
        Some(delivery)
    }

    /// Waits for what becomes of a capture that is not decided: the buyer looks at the order, and the provider
    /// calls again when it is time, if its call failed.
    pub(super) async fn decision(
        &self,
        order: &Acknowledged,
        bearer: &Bearer,
        payment: &str,
        amount: Money,
        mut delivery: Delivery,
        sooner: &[Duration],
    ) -> Option<Outcome> {
        let look = self.made(Call::get(&format!("/orders/{}", order.order)))?.by(bearer);
        let (mut failed, mut last) = (0, Instant::now());
        for pause in sooner.iter().copied().chain(polls()).take(MAX_POLLS) {
            let due = self.later(pause).await;
            if let Some(outcome) = shown(&self.persist(&look, due, None).await, payment) {
                if delivery != Delivery::Kept {
                    self.tally.decided_unreported.one();
                }
                return Some(outcome);
            }
            let Delivery::Failed(why) = &delivery else { continue };
            let gap = callback_gap(failed + 1);
            if gap.is_none_or(|gap| last.elapsed() < gap) {
                continue;
            }
            self.tally.repeat(why.clone());
            delivery = self.report(order, payment, amount, Instant::now()).await?;
            match delivery {
                Delivery::Decided(outcome) => return Some(outcome),
                Delivery::Kept => {}
                Delivery::Failed(_) => (failed, last) = (failed + 1, Instant::now()),
                Delivery::Wrong => return None,
            }
        }
        self.tally.anomaly(format!("order {}: payment {payment} stays undecided", order.order));
        None
    }

    /// The buyer's bank gives the provider the money, if the crowd knows a provider and there is
    /// something to give; false if that fails, so that there is no payment. Giving it twice under one
    /// name is giving it once, so that a lost answer is asked for again.
    async fn charge(&self, order: &Acknowledged, payment: &str, amount: Money) -> bool {
        let costs = amount.amount_minor > MinorUnits::ZERO;
        let Some(provider) = self.provider.as_ref().filter(|_| costs) else { return true };
        let form = capture_form(payment, order.order, amount);
        let call = self.made(Call::post(Endpoint::TakeCallback, CAPTURE_PATH, form));
        let Some((call, bearer)) = call.zip(self.made(Bearer::new(API_KEY))) else { return false };
        let version = HeaderValue::from_static(API_VERSION);
        let call = call.by(&bearer).with(HeaderName::from_static(VERSION_HEADER), version);
        for _ in 0..MAX_CHARGES {
            match provider.send(&call).await {
                Reply::Ok(_) => return true,
                Reply::Problem(_) | Reply::Lost(_) => tokio::time::sleep(CHARGE_AGAIN).await,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::order::RefundReason;
    use http::StatusCode;
    use hyper::body::Bytes;

    use super::super::client::{FUNCTION_THROTTLED, Refused, THROTTLED};
    use super::*;

    fn said(body: &'static str) -> Reply {
        Reply::Ok(body.as_bytes().into())
    }

    #[test]
    fn a_provider_calls_again_unless_its_capture_is_decided_or_kept() {
        let of = |reply: &Reply| Delivery::from_reply(reply);
        let accepted = Delivery::Decided(Outcome::Accepted);
        assert_eq!(of(&said(r#"{"outcome":"accepted"}"#)), accepted);
        assert_eq!(of(&said(r#"{"outcome":"kept"}"#)), Delivery::Kept);
        for body in [r#"{"outcome":"ignored"}"#, "{}", ""] {
            assert_eq!(of(&said(body)), Delivery::Wrong, "{body}");
        }
        let refused = |status: u16, kind: &'static str| {
            Reply::Problem(Refused {
                status: StatusCode::from_u16(status).unwrap(),
                kind: Cow::Borrowed(kind),
                retry_after: None,
                body: Bytes::new(),
            })
        };
        for kind in ["unavailable", THROTTLED, FUNCTION_THROTTLED] {
            assert_eq!(of(&refused(503, kind)), Delivery::Failed(Cow::Borrowed(kind)));
        }
        let lost = Reply::Lost("cut".to_owned());
        assert_eq!(of(&lost), Delivery::Failed(Cow::Borrowed("no-answer")));
        for kind in ["internal", "not-authenticated", "not-found"] {
            assert_eq!(of(&refused(500, kind)), Delivery::Wrong, "{kind}");
        }
    }

    #[test]
    fn an_order_shows_what_became_of_each_payment() {
        let order = said(
            r#"{"order":"7","payments":[
                {"payment":"pi_1","amount_minor":1,"outcome":"accepted","decided_at":"x"},
                {"payment":"pi_2","outcome":"refund","reason":"second_payment","refund":{}}]}"#,
        );
        assert_eq!(shown(&order, "pi_1"), Some(Outcome::Accepted));
        let second = Outcome::Refund(RefundReason::SecondPayment);
        assert_eq!(shown(&order, "pi_2"), Some(second));
        assert_eq!(shown(&order, "pi_3"), None);
        assert_eq!(shown(&said("{}"), "pi_1"), None);
    }
}
