//! The event of a callback as a [`Capture`](engine::domain::order::Capture).

use schemars::JsonSchema;
use serde::Deserialize;

use super::metadata::Metadata;
use crate::http::checks::{Refusal, parse};
use crate::providers::{EventDefect, VerifiedCallback};
use engine::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::order::PaymentKey;
use engine::domain::payment::ours::Reported;

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

/// The capture that an event reports, read by the deployment `own`; `None` for an event of another kind, or of a payment
/// that names no order and so is not one of ours.
///
/// # Errors
/// Returns a [`EventDefect`] if a capture lacks what it must say.
pub fn capture(
    callback: &VerifiedCallback<'_>,
    own: Option<&DeploymentId>,
) -> Result<Option<Reported>, EventDefect> {
    let defect = |refusal: Refusal| EventDefect(refusal.to_string());
    let event: PaymentEvent = parse(callback.body()).map_err(defect)?;
    if event.kind != CAPTURED {
        return Ok(None);
    }
    let event: CaptureEvent = parse(callback.body()).map_err(defect)?;
    of_event(callback.provider(), own, event)
}

/// The type of an event; `None` if it has none.
pub(super) fn kind(callback: &VerifiedCallback<'_>) -> Option<String> {
    parse::<PaymentEvent>(callback.body()).ok().map(|event| event.kind)
}

/// The capture of an event that the provider lists; `None` as for [`capture`].
///
/// # Errors
/// As [`capture`].
pub(super) fn listed(
    provider: &ProviderId,
    own: Option<&DeploymentId>,
    event: &serde_json::Value,
) -> Result<Option<Reported>, EventDefect> {
    if event["type"] != CAPTURED {
        return Ok(None);
    }
    let event = CaptureEvent::deserialize(event);
    of_event(provider, own, event.map_err(|error| EventDefect(error.to_string()))?)
}

fn of_event(
    provider: &ProviderId,
    own: Option<&DeploymentId>,
    event: CaptureEvent,
) -> Result<Option<Reported>, EventDefect> {
    let PaymentIntent { id, amount_received, currency, metadata } = event.data.object;
    if amount_received < MinorUnits::ZERO {
        return Err(EventDefect("amount_received must not be negative".to_owned()));
    }
    let key = PaymentKey { provider: provider.clone(), payment: id };
    Ok(metadata.named(own)?.map(|named| named.captured(key, amount_received, currency)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::stripe::signature::{PaymentSecrets, sign};
    use engine::domain::basics::time::Timestamp;
    use engine::domain::payment::ours::Mark;
    use serde_json::{Value, json};

    fn read(event: &Value) -> Result<Option<Reported>, EventDefect> {
        let now = Timestamp::from_ms(1_800_000_000_000);
        let body = event.to_string().into_bytes();
        let secret: &[u8] = b"secret";
        let secrets = PaymentSecrets::new(ProviderId::new("stripe").unwrap(), [secret], 300);
        let header = sign(secret, &body, now);
        capture(&secrets.verify(Some(&header), &body, now).unwrap(), None)
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
        let Reported { capture, mark } = read(&succeeded()).unwrap().unwrap();
        assert_eq!(mark, Mark::None);
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
        for words in ["#1001", "forty-two", "3f0c5f3e-2b52-4ac5-8d35-9b2c"] {
            foreign["data"]["object"]["metadata"] = json!({ "order": words });
            assert_eq!(read(&foreign), Ok(None), "{words}: another shop's name of its order");
        }
        let mut bare = succeeded();
        bare["data"]["object"].as_object_mut().unwrap().remove("metadata");
        assert_eq!(read(&bare), Ok(None));
    }

    #[test]
    fn an_event_that_is_listed_is_read_as_its_callback() {
        let stripe = ProviderId::new("stripe").unwrap();
        let listed = |event: &Value| super::listed(&stripe, None, event);
        assert_eq!(listed(&succeeded()), read(&succeeded()));
        assert!(listed(&succeeded()).unwrap().is_some());
        let mut other = succeeded();
        other["type"] = json!("payment_intent.created");
        assert_eq!(listed(&other), Ok(None));
        let mut foreign = succeeded();
        foreign["data"]["object"]["metadata"] = json!({});
        assert_eq!(listed(&foreign), Ok(None));
        let mut wrong = succeeded();
        wrong["data"]["object"]["metadata"]["order"] = json!(42);
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
        wrong["data"]["object"]["amount_received"] = json!("12000");
        assert!(read(&wrong).is_err());
        let mut negative = succeeded();
        negative["data"]["object"]["amount_received"] = json!(-1);
        assert!(read(&negative).is_err());
        let list = read(&json!([])).unwrap_err().to_string();
        assert!(!list.contains("struct"), "{list}");
    }
}
