//! Attempts at Stripe: Checkout Sessions, whose page is Stripe's, and PaymentIntents for a form of the
//! seller's own.
//!
//! Both are made under an idempotency key that names the attempt, and carry order and attempt as metadata.
//! A session's page cannot be paid once it has expired, by itself or because it was told to; its own payment
//! cannot be cancelled. A session lives half an hour at least, so that one that began late outlives its
//! order's deadline: it is closed by hand.
//! Source: <https://docs.stripe.com/api/checkout/sessions>, <https://docs.stripe.com/api/payment_intents>

use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use serde::Deserialize;

use super::COUNTING;
use super::api::{Api, error_of, is_refusal, words};
use super::metadata;
use crate::providers::account::{Answer, Effect, escaped};
use crate::providers::limit::Operation;
use engine::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::order::attempt::{Attempt, AttemptKey, PaymentMethod, PaymentStep};
use engine::domain::order::{Capture, Order, PaymentKey};
use engine::domain::payment::start::{CloseReply, Offer, StartReply, Turn};
use engine::ports::{StoreError, Stored};

/// The shortest life of a session is half an hour; a minute more covers clocks that differ and requests that
/// are repeated.
const MIN_SESSION_SECONDS: u32 = 31 * 60;
/// Only what is decided within minutes is offered: a payment that is under way for days cannot hold a seat.
/// Wallets on phones are cards, too.
const METHOD: &str = "card";

/// A Checkout Session, in what we read of it.
#[derive(Debug, Deserialize)]
struct Session {
    id: PaymentId,
    #[serde(default)]
    url: Option<String>,
    status: Option<String>,
    payment_status: Option<String>,
    #[serde(default)]
    payment_intent: Option<PaymentId>,
    amount_total: Option<MinorUnits>,
    currency: Option<Currency>,
}

/// A PaymentIntent, in what we read of it here.
#[derive(Debug, Deserialize)]
struct Intent {
    id: PaymentId,
    client_secret: Option<String>,
    status: String,
    #[serde(default)]
    amount_received: MinorUnits,
    currency: Currency,
}

/// What can be paid with at Stripe.
pub(super) fn offer(provider: &ProviderId, deployment: Option<&DeploymentId>) -> Offer {
    let methods = vec![(PaymentMethod::Page, MIN_SESSION_SECONDS), (PaymentMethod::Form, 0)];
    let (provider, deployment) = (provider.clone(), deployment.cloned());
    Offer { provider, methods, currencies: None, counting: COUNTING, deployment }
}

/// The key under which an attempt is started once.
fn idempotency_key(provider: &ProviderId, order: &Order, attempt: &Attempt) -> String {
    let key = AttemptKey { order: order.number, number: attempt.number };
    match &attempt.deployment {
        Some(deployment) => format!("onsale-attempt-{deployment}-{provider}-{key}"),
        None => format!("onsale-attempt-{provider}-{key}"),
    }
}

/// The fields of a form, each escaped.
fn form(fields: &[(String, String)]) -> String {
    let field = |(name, value): &(String, String)| format!("{}={}", escaped(name), escaped(value));
    fields.iter().map(field).collect::<Vec<_>>().join("&")
}

/// The form that makes a session; `None` if Stripe cannot take the amount.
fn session_form(order: &Order, attempt: &Attempt) -> Option<String> {
    let amount = COUNTING.written(order.total)?;
    let (number, key) = (order.number.to_string(), attempt.number.to_string());
    let mut fields = vec![
        ("mode", "payment".to_owned()),
        ("payment_method_types[0]", METHOD.to_owned()),
        ("client_reference_id", format!("{number}-{key}")),
        ("line_items[0][quantity]", "1".to_owned()),
        ("line_items[0][price_data][currency]", lower(order)),
        ("line_items[0][price_data][unit_amount]", amount.to_string()),
        ("line_items[0][price_data][product_data][name]", format!("Order {number}")),
        ("expires_at", attempt.expires_at.ms().div_euclid(1000).to_string()),
    ];
    // Else a buyer from abroad may pay another currency, by a setting of the dashboard. An attempt of before payments
    // carried a deployment was started without it: under its key Stripe takes the same parameters only.
    // Source: <https://docs.stripe.com/payments/currencies/localize-prices/adaptive-pricing>
    if attempt.deployment.is_some() {
        fields.push(("adaptive_pricing[enabled]", "false".to_owned()));
    }
    for name in ["success_url", "cancel_url"] {
        fields.extend(attempt.choice.return_url.iter().map(|url| (name, url.to_string())));
    }
    let mut fields = named(fields);
    for path in ["metadata", "payment_intent_data[metadata]"] {
        fields.extend(metadata::fields(path, order, attempt));
    }
    Some(form(&fields))
}

/// The form that makes a PaymentIntent; `None` if Stripe cannot take the amount.
fn intent_form(order: &Order, attempt: &Attempt) -> Option<String> {
    let amount = COUNTING.written(order.total)?;
    let mut fields = named(vec![
        ("amount", amount.to_string()),
        ("currency", lower(order)),
        ("payment_method_types[0]", METHOD.to_owned()),
    ]);
    fields.extend(metadata::fields("metadata", order, attempt));
    Some(form(&fields))
}

fn named(fields: Vec<(&str, String)>) -> Vec<(String, String)> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn lower(order: &Order) -> String {
    order.total.currency.to_string().to_ascii_lowercase()
}

impl Api {
    /// Takes the turn of a call that starts an attempt, or the next start.
    pub(super) async fn turn(&self) -> Stored<Turn> {
        self.account.next_start().await
    }

    /// Starts an attempt, or finds the one that the same request started. Stripe repeats what it answered under a key, also
    /// a failure, so that the same request does not get past one.
    /// Source: <https://docs.stripe.com/api/idempotent_requests>
    pub(super) async fn start(&self, order: &Order, attempt: &Attempt) -> Stored<StartReply> {
        let (path, form) = match attempt.choice.method {
            PaymentMethod::Page => ("checkout/sessions", session_form(order, attempt)),
            PaymentMethod::Form => ("payment_intents", intent_form(order, attempt)),
            PaymentMethod::Code => return Ok(refused("it has no codes to scan")),
        };
        let Some(form) = form else { return Ok(refused("it cannot take this amount")) };
        let key = idempotency_key(&self.account.provider, order, attempt);
        let answer = self.post(Operation::StartPayment, path, Some(&key), form).await?;
        if is_refusal(answer.status) {
            return Ok(StartReply::Refused(error_of(&answer).text()));
        }
        if answer.status.is_server_error() {
            return Ok(StartReply::Failed(format!("{} {}", answer.status, words(&answer))));
        }
        let (reference, step) = match attempt.choice.method {
            PaymentMethod::Page => {
                let session: Session = self.account.read(&answer, Effect::Write, words)?;
                (session.id, session.url.map(PaymentStep::Page))
            }
            PaymentMethod::Form | PaymentMethod::Code => {
                let intent: Intent = self.account.read(&answer, Effect::Write, words)?;
                (intent.id, intent.client_secret.map(PaymentStep::Form))
            }
        };
        let missing = || StoreError::Contract("a payment has neither page nor secret".to_owned());
        Ok(StartReply::Started { reference, step: step.ok_or_else(missing)? })
    }

    /// Closes an attempt. One of a release up to 0.2 whose name was lost is started again, by the same request, which finds
    /// it.
    pub(super) async fn close(&self, order: &Order, attempt: &Attempt) -> Stored<CloseReply> {
        let reference = match &attempt.reference {
            Some(reference) => reference.clone(),
            None => {
                self.account.turn_to_start().await?;
                match self.start(order, attempt).await? {
                    StartReply::Started { reference, .. } => reference,
                    // It was never made, and cannot be made any more.
                    StartReply::Refused(_) => return Ok(CloseReply::Closed),
                    StartReply::Failed(_) => return Ok(CloseReply::NotYet),
                }
            }
        };
        match attempt.choice.method {
            PaymentMethod::Page => self.expire_session(order, attempt, &reference).await,
            PaymentMethod::Form | PaymentMethod::Code => {
                self.cancel_intent(order, attempt, &reference).await
            }
        }
    }

    async fn expire_session(
        &self,
        order: &Order,
        attempt: &Attempt,
        reference: &PaymentId,
    ) -> Stored<CloseReply> {
        let path = format!("checkout/sessions/{}", escaped(reference.as_str()));
        let expire = format!("{path}/expire");
        let answer = self.post(Operation::ClosePayment, &expire, None, String::new()).await?;
        let answer = if is_refusal(answer.status) {
            // It is not open any more: it says why.
            self.get(Operation::ReadPayment, &format!("/v1/{path}")).await?
        } else {
            answer
        };
        let session: Session = self.account.read(&answer, Effect::Read, words)?;
        match (session.status.as_deref(), session.payment_status.as_deref()) {
            (Some("expired"), _) => Ok(CloseReply::Closed),
            (Some("complete"), Some("paid")) => {
                let missing = || StoreError::Contract("a paid session without payment".to_owned());
                let captured = session.payment_intent.zip(session.amount_total);
                let (payment, amount) = captured.ok_or_else(missing)?;
                let currency = session.currency.ok_or_else(missing)?;
                Ok(CloseReply::Paid(self.captured(order, attempt, payment, amount, currency)))
            }
            _ => Ok(CloseReply::NotYet),
        }
    }

    async fn cancel_intent(
        &self,
        order: &Order,
        attempt: &Attempt,
        reference: &PaymentId,
    ) -> Stored<CloseReply> {
        let path = format!("payment_intents/{}", escaped(reference.as_str()));
        let cancel = format!("{path}/cancel");
        let answer = self.post(Operation::ClosePayment, &cancel, None, String::new()).await?;
        let answer = if is_refusal(answer.status) {
            self.get(Operation::ReadPayment, &format!("/v1/{path}")).await?
        } else {
            answer
        };
        let intent: Intent = self.account.read(&answer, Effect::Read, words)?;
        Ok(match intent.status.as_str() {
            "canceled" => CloseReply::Closed,
            "succeeded" => {
                let Intent { id, amount_received, currency, .. } = intent;
                CloseReply::Paid(self.captured(order, attempt, id, amount_received, currency))
            }
            _ => CloseReply::NotYet,
        })
    }

    fn captured(
        &self,
        order: &Order,
        attempt: &Attempt,
        payment: PaymentId,
        amount: MinorUnits,
        currency: Currency,
    ) -> Capture {
        Capture {
            key: PaymentKey { provider: self.account.provider.clone(), payment },
            order: order.number,
            amount: COUNTING.read(amount, currency),
            attempt: Some(attempt.number),
        }
    }

    async fn post(
        &self,
        operation: Operation,
        path: &str,
        key: Option<&str>,
        form: String,
    ) -> Stored<Answer> {
        let mut head = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/v1/{path}", self.account.url))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(key) = key {
            head = head.header("idempotency-key", key);
        }
        let answer = self.account.ask(operation, head, form.into(), Effect::Write).await?;
        // An account that may not do this at all is a fault of the deployment, no word about this payment.
        if answer.status == StatusCode::PAYMENT_REQUIRED {
            tracing::warn!(status = %answer.status, "the provider declines");
        }
        Ok(answer)
    }
}

fn refused(why: &str) -> StartReply {
    StartReply::Refused(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::basics::ids::{RequestFingerprint, SaleId, UserId};
    use engine::domain::basics::money::Money;
    use engine::domain::basics::time::Timestamp;
    use engine::domain::order::OrderState;
    use engine::domain::order::attempt::{Attempts, PaymentChoice, ReturnUrl};

    fn order(currency: &str) -> Order {
        let currency = Currency::new(currency).unwrap();
        let now = Timestamp::from_ms(1_800_000_000_000);
        Order {
            number: "42".parse().unwrap(),
            sale: SaleId::new("s").unwrap(),
            user: UserId::new("u").unwrap(),
            state: OrderState::Pending,
            lines: Vec::new(),
            total: Money { amount_minor: MinorUnits(1230), currency },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: now,
            pay_by: now.plus_seconds(600),
            changed_at: now,
            payment: None,
            attempts: Attempts::default(),
            facts: engine::domain::order::fact::Facts::default(),
            refunds: engine::domain::order::order_refund::RefundCounts::default(),
            merchant: engine::domain::sale::MerchantTerms::house(),
            exchange: None,
        }
    }

    fn attempt(order: &Order, method: PaymentMethod) -> Attempt {
        let choice = PaymentChoice {
            provider: ProviderId::new("stripe").unwrap(),
            method,
            return_url: Some(ReturnUrl::new("https://shop.example/done?a=b&c").unwrap()),
        };
        let expires_at =
            offer(&choice.provider, None).expiry(method, order, order.created_at).unwrap();
        let (attempts, number) =
            order.attempts.with_another(&choice, None, expires_at, order.created_at).unwrap();
        attempts.get(number).unwrap().clone()
    }

    #[test]
    fn a_session_names_its_order_and_lives_half_an_hour_at_least() {
        let order = order("EUR");
        let form = session_form(&order, &attempt(&order, PaymentMethod::Page)).unwrap();
        let fields: Vec<(String, String)> = form
            .split('&')
            .map(|field| field.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let value = |name: &str| {
            let name = escaped(name);
            let mut found = fields.iter().filter(|(known, _)| *known == name);
            let value = found.next().map(|(_, value)| value.as_str());
            assert!(found.next().is_none());
            value
        };
        assert_eq!(value("expires_at"), Some("1800001860"));
        assert_eq!(value("client_reference_id"), Some("42-1"));
        assert_eq!(value("payment_intent_data[metadata][attempt]"), Some("1"));
        assert_eq!(value("line_items[0][price_data][unit_amount]"), Some("1230"));
        assert_eq!(value("adaptive_pricing[enabled]"), None, "as it was started before");
        let own = DeploymentId::new("prod1").ok();
        let now = Attempt { deployment: own, ..attempt(&order, PaymentMethod::Page) };
        let now = session_form(&order, &now).unwrap();
        // The buyer pays the currency of the order, whatever the dashboard allows.
        for field in
            ["adaptive_pricing%5Benabled%5D=false", "metadata%5Bonsale_deployment%5D=prod1"]
        {
            assert!(now.contains(field), "{now}");
        }
        let back = Some("https%3A%2F%2Fshop.example%2Fdone%3Fa%3Db%26c");
        assert_eq!((value("success_url"), value("cancel_url")), (back, back));
        assert!(session_form(&self::order("MGA"), &attempt(&order, PaymentMethod::Page)).is_none());
    }

    #[test]
    fn an_attempt_has_one_key_and_another_attempt_another() {
        let order = order("EUR");
        let one = attempt(&order, PaymentMethod::Form);
        let provider = &one.choice.provider;
        assert_eq!(idempotency_key(provider, &order, &one), "onsale-attempt-stripe-42-1");
        let form = intent_form(&order, &one).unwrap();
        assert!(form.contains("metadata%5Battempt%5D=1") && form.contains("amount=1230"), "{form}");
        assert_eq!(one.expires_at, order.pay_by, "a form has no life of its own");
    }
}
