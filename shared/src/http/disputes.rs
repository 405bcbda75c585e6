//! Disputes, as operators see them.

use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::ids::{DisputeId, PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::dispute::DisputeState;

use crate::dynamodb::{DisputedPage, DisputedPayment};

/// A page of disputes, latest change first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Disputes")]
pub struct DisputesReply {
    /// The disputes.
    pub disputes: Vec<DisputeReply>,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A dispute of a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Dispute")]
pub struct DisputeReply {
    /// Its name at the provider.
    #[schemars(with = "String")]
    pub dispute: DisputeId,
    /// Its state: `open`, `won` (the money is here again) or `lost` (it stays with whoever paid).
    #[schemars(with = "String")]
    pub state: DisputeState,
    /// The order that was paid.
    #[schemars(with = "String")]
    pub order: OrderNumber,
    /// The provider.
    #[schemars(with = "String")]
    pub provider: ProviderId,
    /// The payment's name there.
    #[schemars(with = "String")]
    pub payment: PaymentId,
    /// What was taken back, in minor units.
    pub amount_minor: MinorUnits,
    /// The currency.
    pub currency: Currency,
    /// Time at which it was heard of.
    pub opened_at: Timestamp,
    /// Time of its last change.
    pub changed_at: Timestamp,
}

impl From<DisputedPage> for DisputesReply {
    fn from(page: DisputedPage) -> Self {
        let of_payment = |payment: DisputedPayment| {
            let (key, order, currency) = (payment.payment, payment.order, payment.currency);
            payment.disputes.into_iter().rev().map(move |dispute| DisputeReply {
                dispute: dispute.id,
                state: dispute.state,
                order,
                provider: key.provider.clone(),
                payment: key.payment.clone(),
                amount_minor: dispute.amount_minor,
                currency,
                opened_at: dispute.opened_at,
                changed_at: dispute.changed_at,
            })
        };
        Self { disputes: page.payments.into_iter().flat_map(of_payment).collect(), next: page.next }
    }
}
