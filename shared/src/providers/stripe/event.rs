//! The event of a callback as a [`Capture`].

use schemars::JsonSchema;
use serde::Deserialize;

use super::amounts;
use crate::http::checks::{Refusal, parse};
use crate::providers::{EventDefect, VerifiedCallback};
use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::attempt::AttemptNumber;
use engine::domain::order::{Capture, PaymentKey};

/// The type of the event that says that money was captured; every other is passed over.
pub(super) const CAPTURED: &str = "payment_intent.succeeded";

/// What every event has. A provider adds fields as it likes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(expecting = "an event, which is an object")]
pub struct PaymentEvent {
    /// What happened; `payment_intent.succeeded` is a capture, which has `data` as well.
    #[serde(rename = "type")]
    kind: String,
}

/// The event of a capture, in what we read of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(expecting = "an event, which is an object")]
pub struct CaptureEvent {
    /// What it happened to.
    data: Data,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CaptureData")]
#[serde(expecting = "an object")]
struct Data {
    /// The payment.
    object: PaymentIntent,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(expecting = "an object")]
struct PaymentIntent {
    /// The payment, by the provider's name of it.
    id: PaymentId,
    /// How much was captured, in minor units.
    #[schemars(range(min = 0))]
    amount_received: MinorUnits,
    /// The currency they are units of, in either case.
    currency: Currency,
    /// What we gave the payment along.
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "PaymentMetadata")]
#[serde(expecting = "an object")]
struct Metadata {
    /// The order that it pays; a payment without one is none of ours.
    order: Option<OrderNumber>,
    /// The attempt of the order, if it was started here.
    attempt: Option<String>,
}

/// The capture that an event reports; `None` for an event of another kind, or of a payment that
/// names no order and so is not one of ours.
///
/// # Errors
/// Returns a [`EventDefect`] if a capture lacks what it must say.
pub fn capture(callback: &VerifiedCallback<'_>) -> Result<Option<Capture>, EventDefect> {
    let defect = |refusal: Refusal| EventDefect(refusal.to_string());
    let event: PaymentEvent = parse(callback.body()).map_err(defect)?;
    if event.kind != CAPTURED {
        return Ok(None);
    }
    let event: CaptureEvent = parse(callback.body()).map_err(defect)?;
    of_event(callback.provider(), event)
}

/// The capture of an event that the provider lists; `None` as for [`capture`].
///
/// # Errors
/// As [`capture`].
pub(super) fn listed(
    provider: &ProviderId,
    event: &serde_json::Value,
) -> Result<Option<Capture>, EventDefect> {
    if event["type"] != CAPTURED {
        return Ok(None);
    }
    let event = CaptureEvent::deserialize(event);
    of_event(provider, event.map_err(|error| EventDefect(error.to_string()))?)
}

/// The attempt that metadata name. A shop may use the word for something of its own: that is no attempt.
pub(super) fn attempt_named(text: Option<&str>) -> Option<AttemptNumber> {
    text.and_then(|text| text.parse().ok())
}

fn of_event(provider: &ProviderId, event: CaptureEvent) -> Result<Option<Capture>, EventDefect> {
    let PaymentIntent { id, amount_received, currency, metadata } = event.data.object;
    if amount_received < MinorUnits::ZERO {
        return Err(EventDefect("amount_received must not be negative".to_owned()));
    }
    Ok(metadata.order.map(|order| Capture {
        key: PaymentKey { provider: provider.clone(), payment: id },
        order,
        amount: amounts::read(amount_received, currency),
        attempt: attempt_named(metadata.attempt.as_deref()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::stripe::signature::{PaymentSecrets, sign};
    use engine::domain::basics::time::Timestamp;
    use serde_json::{Value, json};

    fn read(event: &Value) -> Result<Option<Capture>, EventDefect> {
        let now = Timestamp::from_ms(1_800_000_000_000);
        let body = event.to_string().into_bytes();
        let secret: &[u8] = b"secret";
        let secrets = PaymentSecrets::new(ProviderId::new("stripe").unwrap(), [secret], 300);
        let header = sign(secret, &body, now);
        capture(&secrets.verify(Some(&header), &body, now).unwrap())
    }

    /// The fields that Stripe's API reference lists for a succeeded payment intent, shortened.
    fn succeeded() -> Value {
        json!({
            "id": "evt_1", "object": "event", "api_version": "2025-04-30", "created": 1_800_000_000,
            "type": "payment_intent.succeeded", "livemode": false, "pending_webhooks": 1,
            "data": { "object": {
                "id": "pi_3", "object": "payment_intent", "amount": 12_000,
                "amount_received": 12_000, "currency": "eur", "status": "succeeded",
                "metadata": { "order": "169218430493097984", "campaign": "x" }
            } }
        })
    }

    #[test]
    fn a_succeeded_payment_is_a_capture() {
        let capture = read(&succeeded()).unwrap().unwrap();
        assert_eq!(capture.key.provider.as_str(), "stripe");
        assert_eq!(capture.key.payment.as_str(), "pi_3");
        assert_eq!(capture.order.to_string(), "169218430493097984");
        assert_eq!(capture.amount.to_string(), "12000 EUR");
    }

    #[test]
    fn other_events_and_foreign_payments_are_passed_over() {
        let mut other = succeeded();
        other["type"] = json!("payment_intent.created");
        assert_eq!(read(&other), Ok(None));
        let mut foreign = succeeded();
        foreign["data"]["object"]["metadata"] = json!({});
        assert_eq!(read(&foreign), Ok(None));
        let mut bare = succeeded();
        bare["data"]["object"].as_object_mut().unwrap().remove("metadata");
        assert_eq!(read(&bare), Ok(None));
    }

    #[test]
    fn an_event_that_is_listed_is_read_as_its_callback() {
        let stripe = ProviderId::new("stripe").unwrap();
        let listed = |event: &Value| super::listed(&stripe, event);
        assert_eq!(listed(&succeeded()), read(&succeeded()));
        assert!(listed(&succeeded()).unwrap().is_some());
        let mut other = succeeded();
        other["type"] = json!("payment_intent.created");
        assert_eq!(listed(&other), Ok(None));
        let mut foreign = succeeded();
        foreign["data"]["object"]["metadata"] = json!({});
        assert_eq!(listed(&foreign), Ok(None));
        let mut wrong = succeeded();
        wrong["data"]["object"]["metadata"]["order"] = json!("forty-two");
        assert!(listed(&wrong).is_err() && listed(&json!({ "type": CAPTURED })).is_err());
    }

    #[test]
    fn a_capture_that_does_not_say_enough_is_a_defect() {
        let without = |field: &str| {
            let mut event = succeeded();
            event["data"]["object"].as_object_mut().unwrap().remove(field);
            read(&event)
        };
        assert!(without("amount_received").is_err());
        assert!(without("currency").is_err());
        assert!(without("id").is_err());
        let mut wrong = succeeded();
        wrong["data"]["object"]["metadata"]["order"] = json!("forty-two");
        assert!(read(&wrong).is_err());
        let mut negative = succeeded();
        negative["data"]["object"]["amount_received"] = json!(-1);
        assert!(read(&negative).is_err());
        let list = read(&json!([])).unwrap_err().to_string();
        assert!(!list.contains("struct"), "{list}");
    }
}
