//! Disputes at Stripe: the events that report one, and the dispute itself.
//! Source: <https://docs.stripe.com/api/disputes/object>

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::COUNTING;
use super::api::{Api, words};
use super::metadata::{Metadata, Named};
use crate::providers::account::{Effect, escaped};
use crate::providers::limit::Operation;
use engine::domain::basics::ids::{DeploymentId, DisputeId, PageMark, PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::order::PaymentKey;
use engine::domain::order::dispute::DisputeState;
use engine::domain::payment::captures::{Hint, ListedHint};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Mark;
use engine::ports::{StoreError, Stored};

/// The types of the events that tell of disputes.
/// Source: <https://docs.stripe.com/api/events/types>
pub(super) const EVENTS: [&str; 5] = [
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.dispute.closed",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
];

/// What a listed event says of a dispute: `None` for another event, an error for one that names none.
pub(super) fn listed(event: &Value) -> Option<Result<Option<ListedHint>, String>> {
    let kind = event["type"].as_str()?;
    EVENTS.contains(&kind).then(|| {
        let id = event["data"]["object"]["id"].as_str().ok_or("it names no dispute")?;
        let dispute = DisputeId::new(id).map_err(|error| error.to_string())?;
        hint(event, Hint::Dispute(dispute)).map(Some)
    })
}

/// A hint of a listed event.
pub(super) fn hint(event: &Value, hint: Hint) -> Result<ListedHint, String> {
    let mark = event["id"].as_str().ok_or("it has no name")?;
    let mark = PageMark::new(mark).map_err(|error| error.to_string())?;
    Ok(ListedHint { mark, hint })
}

/// The path of a dispute, with its payment whole: the order stands there.
fn path(dispute: &DisputeId) -> String {
    format!("/v1/disputes/{}?expand%5B%5D=payment_intent", escaped(dispute.as_str()))
}

/// A dispute in what we read of it.
#[derive(Debug, Deserialize)]
struct Dispute {
    id: DisputeId,
    amount: MinorUnits,
    currency: Currency,
    status: String,
    /// Absent for a payment of before there were any.
    #[serde(default)]
    payment_intent: Option<Paid>,
}

#[derive(Debug, Deserialize)]
struct Paid {
    id: PaymentId,
    #[serde(default)]
    metadata: Metadata,
}

impl Dispute {
    /// What it says; `None` if no money was taken, or if its payment is none of ours.
    fn report(
        self,
        provider: &ProviderId,
        own: Option<&DeploymentId>,
    ) -> Stored<Option<DisputeReport>> {
        let state = match self.status.as_str() {
            "needs_response" | "under_review" => DisputeState::Open,
            "won" => DisputeState::Won,
            "lost" => DisputeState::Lost,
            // Inquiries, and what ended before it was one.
            "warning_needs_response" | "warning_under_review" | "warning_closed" | "prevented" => {
                return Ok(None);
            }
            other => {
                let what = format!("dispute {} has the status {other}", self.id);
                return Err(StoreError::Contract(what));
            }
        };
        let Some(Paid { id, metadata }) = self.payment_intent else { return Ok(None) };
        let named = metadata.named(own).map_err(StoreError::contract)?;
        let named = named.filter(|named| named.mark != Mark::Another);
        let Some(Named { order, mark, .. }) = named else { return Ok(None) };
        Ok(Some(DisputeReport {
            id: self.id,
            payment: PaymentKey { provider: provider.clone(), payment: id },
            order,
            amount: COUNTING.read(self.amount, self.currency),
            state,
            mark,
        }))
    }
}

impl Api {
    /// A dispute as it is now.
    ///
    /// # Errors
    /// [`StoreError::Contract`] also if the key may not read disputes: no repetition changes that, and the captures
    /// that are listed behind it must not wait for somebody who gives it the right.
    pub(super) async fn dispute(&self, dispute: &DisputeId) -> Stored<Option<DisputeReport>> {
        let answer = self.get(Operation::ReadDispute, &path(dispute)).await?;
        if answer.status == StatusCode::FORBIDDEN {
            let text = format!("the API key may not read dispute {dispute}: {}", words(&answer));
            return Err(StoreError::Contract(text));
        }
        let read: Dispute = self.account.read(&answer, Effect::Read, words)?;
        read.report(&self.account.provider, self.own.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The fields that Stripe's API reference lists for a dispute, shortened, with its payment expanded.
    fn dispute(status: &str) -> Value {
        json!({
            "id": "du_1MtJUT2eZvKYlo2CNaw2HvEv", "object": "dispute", "amount": 1000,
            "balance_transactions": [], "charge": "ch_1AZtxr2eZvKYlo2CJDX8whov",
            "created": 1_680_651_737, "currency": "eur", "evidence": {}, "is_charge_refundable": true,
            "livemode": false, "metadata": {}, "reason": "general", "status": status,
            "payment_intent": {
                "id": "pi_3", "object": "payment_intent", "amount": 1000,
                "metadata": { "order": "169218430493097984" }
            }
        })
    }

    fn read(dispute: Value) -> Stored<Option<DisputeReport>> {
        let read: Dispute = serde_json::from_value(dispute).unwrap();
        read.report(&ProviderId::new("stripe").unwrap(), None)
    }

    #[test]
    fn a_dispute_says_what_it_takes_of_which_order() {
        for (status, state) in [
            ("needs_response", DisputeState::Open),
            ("under_review", DisputeState::Open),
            ("won", DisputeState::Won),
            ("lost", DisputeState::Lost),
        ] {
            let report = read(dispute(status)).unwrap().unwrap();
            assert_eq!(report.state, state, "{status}");
            assert_eq!(report.id.as_str(), "du_1MtJUT2eZvKYlo2CNaw2HvEv");
            assert_eq!(report.payment.payment.as_str(), "pi_3");
            assert_eq!(report.order.to_string(), "169218430493097984");
            assert_eq!(report.amount.to_string(), "1000 EUR");
        }
    }

    #[test]
    fn inquiries_and_payments_of_others_are_passed_over() {
        for status in
            ["warning_needs_response", "warning_under_review", "warning_closed", "prevented"]
        {
            assert_eq!(read(dispute(status)), Ok(None), "{status}");
        }
        assert!(matches!(read(dispute("paused")), Err(StoreError::Contract(_))));
        let mut foreign = dispute("lost");
        foreign["payment_intent"]["metadata"] = json!({});
        assert_eq!(read(foreign), Ok(None));
        let mut old = dispute("lost");
        old["payment_intent"] = Value::Null;
        assert_eq!(read(old), Ok(None));
    }

    #[test]
    fn an_event_is_a_hint_to_look() {
        let event = |kind: &str, id: Value| json!({ "id": "evt_1", "type": kind, "data": { "object": { "id": id } } });
        for kind in EVENTS {
            let found = listed(&event(kind, json!("dp_1"))).unwrap().unwrap().unwrap();
            let dispute = Hint::Dispute("dp_1".parse().unwrap());
            assert_eq!((found.mark.as_str(), found.hint), ("evt_1", dispute));
            assert!(listed(&event(kind, Value::Null)).unwrap().is_err());
            assert!(listed(&event(kind, json!("a#b"))).unwrap().is_err());
        }
        assert_eq!(listed(&event("payment_intent.succeeded", json!("pi_1"))), None);
        assert!(path(&DisputeId::new("a/b").unwrap()).starts_with("/v1/disputes/a%2Fb?"));
    }
}
