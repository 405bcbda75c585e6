//! Refunds at Stripe that were not asked for here, or whose money came back: the events that tell of them, and the list of
//! a payment's refunds.
//! Source: <https://docs.stripe.com/api/refunds/object>

use serde::Deserialize;
use serde_json::Value;

use super::api::Api;
use super::dispute::hint;
use super::metadata::{Metadata, Named};
use engine::domain::basics::ids::PaymentId;
use engine::domain::order::PaymentKey;
use engine::domain::order::order_refund::RefundName;
use engine::domain::payment::captures::{Hint, ListedHint};
use engine::domain::payment::ours::Mark;
use engine::domain::payment::outside::SentReport;
use engine::ports::{StoreError, Stored};

/// The types of the events that tell of refunds.
/// Source: <https://docs.stripe.com/api/events/types>
pub(super) const EVENTS: [&str; 3] = ["refund.created", "refund.updated", "refund.failed"];

/// What a listed event says of the refunds of a payment: `None` for an event of another kind, `Some(Ok(None))` if there is
/// nothing to look at, an error if it names no payment.
///
/// A part that was asked for here, and has not failed, is known by the answer to its request: reading each of them once
/// more would be as many calls as a cancelled sale has refunds.
pub(super) fn listed(event: &Value) -> Option<Result<Option<ListedHint>, String>> {
    let kind = event["type"].as_str()?;
    EVENTS.contains(&kind).then(|| {
        let object = &event["data"]["object"];
        let name = object["metadata"]["refund"].as_str();
        let is_ours = name.is_some_and(|name| name.parse::<RefundName>().is_ok());
        let has_failed = matches!(object["status"].as_str(), Some("failed" | "canceled"));
        if is_ours && !has_failed {
            return Ok(None);
        }
        // A refund of a payment of before there were payment intents has none.
        let Some(id) = object["payment_intent"].as_str() else { return Ok(None) };
        let payment = PaymentId::new(id).map_err(|error| error.to_string())?;
        hint(event, Hint::Refunds(payment)).map(Some)
    })
}

/// True if an event of this kind tells of what is read in the list: a refund, or a dispute.
pub(super) fn is_hint(kind: &str) -> bool {
    let is_of_charge = matches!(kind, "charge.refunded" | "charge.refund.updated");
    is_of_charge || EVENTS.contains(&kind) || super::dispute::EVENTS.contains(&kind)
}

/// The payment of a refund, in what we read of it.
#[derive(Debug, Deserialize)]
struct Paid {
    id: PaymentId,
    #[serde(default)]
    metadata: Metadata,
}

impl Api {
    /// The refunds of a payment, and which order it was for.
    pub(super) async fn sent_back(&self, payment: &PaymentId) -> Stored<Option<SentReport>> {
        let refunds = match self.refunds(payment).await? {
            Ok(refunds) => refunds,
            Err(answer) => return Err(StoreError::Contract(super::api::words(&answer))),
        };
        let Some(paid) = refunds.iter().find_map(|refund| refund.payment_intent.as_ref()) else {
            return Ok(None);
        };
        let Paid { id, metadata } = Paid::deserialize(paid).map_err(StoreError::contract)?;
        let named = metadata.named(self.own.as_ref()).map_err(StoreError::contract)?;
        let named = named.filter(|named| named.mark != Mark::Another);
        let Some(Named { order, mark, .. }) = named else { return Ok(None) };
        let payment = PaymentKey { provider: self.account.provider.clone(), payment: id };
        let refunds = refunds.iter().rev().map(super::forms::Refund::sent).collect();
        Ok(Some(SentReport { payment, order, mark, refunds, is_complete: true }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_its_own_request_does_not_hear_of_is_a_hint() {
        let event = |kind: &str, name: Option<&str>, status: &str| {
            let mut object =
                json!({ "id": "re_1", "payment_intent": "pi_1", "status": status, "metadata": {} });
            if let Some(name) = name {
                object["metadata"]["refund"] = json!(name);
            }
            json!({ "id": "evt_1", "type": kind, "data": { "object": object } })
        };
        let read = |kind: &str, name, status: &str| listed(&event(kind, name, status));
        for kind in EVENTS {
            let found = read(kind, None, "succeeded").unwrap().unwrap().unwrap();
            let refunds = Hint::Refunds("pi_1".parse().unwrap());
            assert_eq!((found.mark.as_str(), found.hint), ("evt_1", refunds));
            assert_eq!(read(kind, Some("7-r1"), "succeeded"), Some(Ok(None)));
            assert_eq!(read(kind, Some("7-r1-2"), "pending"), Some(Ok(None)));
            for (name, status) in [("7-r1", "failed"), ("7-r1-2", "canceled"), ("RMA 5", "pending")]
            {
                let found = read(kind, Some(name), status).unwrap().unwrap();
                assert!(found.is_some(), "{name} {status}");
            }
        }
        assert_eq!(read("payment_intent.succeeded", None, "succeeded"), None);
        let mut odd = event("refund.created", None, "succeeded");
        odd["data"]["object"]["payment_intent"] = json!("a b");
        assert!(listed(&odd).unwrap().is_err());
        odd["data"]["object"]["payment_intent"] = Value::Null;
        assert_eq!(listed(&odd), Some(Ok(None)));
    }
}
