//! What became of the money of an order, as the API shows it to its buyer.

use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{PaymentOutcome, PaymentRecord, RefundReason};
use engine::flows::pay::Answered;

/// A payment that was captured for an order, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PaymentReply {
    /// The provider.
    pub provider: ProviderId,
    /// The payment, as the provider names it.
    pub payment: PaymentId,
    /// Amount captured, in minor units.
    pub amount_minor: MinorUnits,
    /// The currency they are units of.
    pub currency: Currency,
    /// Decision about it.
    pub outcome: OutcomeReply,
    /// Reason of its refund; absent if it was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<RefundReason>,
    /// Time of the decision.
    pub decided_at: Timestamp,
    /// Its refund; absent if it was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundReply>,
}

/// Decision about a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PaymentOutcome")]
pub enum OutcomeReply {
    /// It paid its order.
    Accepted,
    /// It goes back.
    Refund,
}

/// State of a refund. What a provider says when it refuses one is for the operator, and stays
/// in the payment's item and in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Refund")]
pub struct RefundReply {
    /// State of the refund.
    pub state: RefundState,
    /// Time of the last change of its state.
    pub changed_at: Timestamp,
}

impl From<&Refund> for RefundReply {
    fn from(refund: &Refund) -> Self {
        Self { state: refund.state, changed_at: refund.changed_at }
    }
}

impl From<&PaymentRecord> for PaymentReply {
    fn from(record: &PaymentRecord) -> Self {
        let (outcome, reason) = match record.outcome {
            PaymentOutcome::Accepted => (OutcomeReply::Accepted, None),
            PaymentOutcome::Refund(reason) => (OutcomeReply::Refund, Some(reason)),
        };
        let capture = &record.capture;
        Self {
            provider: capture.key.provider.clone(),
            payment: capture.key.payment.clone(),
            amount_minor: capture.amount.amount_minor,
            currency: capture.amount.currency,
            outcome,
            reason,
            decided_at: record.decided_at,
            refund: record.refund.as_ref().map(RefundReply::from),
        }
    }
}

/// The reply to a provider's event, once all that follows from it is done or it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "reason")]
pub enum CallbackReply {
    /// It paid its order.
    Accepted,
    /// It goes back.
    Refund(RefundReason),
    /// It is not about a capture of ours.
    Ignored,
    /// It is ours, and its order is not there: an operator decides.
    Unmatched,
    /// It cannot be decided now, and is kept until it can.
    Kept,
}

impl From<Answered> for CallbackReply {
    fn from(answered: Answered) -> Self {
        match answered {
            Answered::Ignored => Self::Ignored,
            Answered::Decided(record) if record.is_unmatched() => Self::Unmatched,
            Answered::Decided(record) => record.outcome.into(),
            Answered::Kept => Self::Kept,
        }
    }
}

impl From<PaymentOutcome> for CallbackReply {
    fn from(outcome: PaymentOutcome) -> Self {
        match outcome {
            PaymentOutcome::Accepted => Self::Accepted,
            PaymentOutcome::Refund(reason) => Self::Refund(reason),
        }
    }
}
