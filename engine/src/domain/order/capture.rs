//! What a provider has captured for an order, and what became of it.

use serde::{Deserialize, Serialize};

use super::attempt::AttemptNumber;
use super::dispute::Dispute;
use super::refund::{Refund, RefundState};
use crate::domain::basics::ids::{PaymentId, ProviderId};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;

/// A payment: the provider and the provider's id of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PaymentKey {
    pub provider: ProviderId,
    /// The payment's id at the provider.
    pub payment: PaymentId,
}

/// Money that a provider says it has captured, with a signature that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capture {
    pub key: PaymentKey,
    /// The number of the order that it is meant for.
    pub order: OrderNumber,
    /// The amount that was captured.
    pub amount: Money,
    /// The attempt of the order by which it was, if it was started here.
    pub attempt: Option<AttemptNumber>,
}

/// Why money is refunded.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RefundReason {
    /// There is no such order.
    UnknownOrder,
    /// The amount is not the order's: too little, too much, or a part of it.
    WrongAmount,
    /// The currency is not the order's.
    WrongCurrency,
    /// Another payment had paid the order.
    SecondPayment,
    /// The order had ended and its seats are gone.
    TooLate,
    /// Its buyer had cancelled the order.
    Cancelled,
    /// A refund of a paid order: some of its tickets, or of its money. No decision on a capture.
    Returned,
    /// A dispute of a paid order's payment that was lost. No decision on a capture.
    Disputed,
}

impl RefundReason {
    /// Every reason, for tables and tests.
    pub const ALL: [Self; 8] = [
        Self::UnknownOrder,
        Self::WrongAmount,
        Self::WrongCurrency,
        Self::SecondPayment,
        Self::TooLate,
        Self::Cancelled,
        Self::Returned,
        Self::Disputed,
    ];

    /// The reason as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownOrder => "unknown_order",
            Self::WrongAmount => "wrong_amount",
            Self::WrongCurrency => "wrong_currency",
            Self::SecondPayment => "second_payment",
            Self::TooLate => "too_late",
            Self::Cancelled => "cancelled",
            Self::Returned => "returned",
            Self::Disputed => "disputed",
        }
    }
}

/// What became of a capture: the one recorded decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "reason")]
pub enum PaymentOutcome {
    /// It paid its order.
    Accepted,
    /// It is refunded, for this reason.
    Refund(RefundReason),
}

impl PaymentOutcome {
    /// Why it is refunded, if it is.
    #[must_use]
    pub const fn reason(self) -> Option<RefundReason> {
        match self {
            Self::Accepted => None,
            Self::Refund(reason) => Some(reason),
        }
    }
}

/// A capture and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PaymentRecord {
    pub capture: Capture,
    /// What became of it.
    pub outcome: PaymentOutcome,
    /// Time of the decision.
    pub decided_at: Timestamp,
    /// Its refund, whole; `None` if it was accepted.
    pub refund: Option<Refund>,
    /// How many names of that refund at the provider came to nothing: it is asked for under the next one.
    pub ended: u8,
    /// How often the money of that refund was back, and came to us again.
    pub undone: u8,
    /// What goes back, or went back, of an accepted one by refunds of its order; never more than was
    /// captured.
    pub back: MinorUnits,
    /// The disputes of an accepted one, in the order in which they were heard of.
    pub disputes: Vec<Dispute>,
    /// The capture whose money it is, if that was for tickets that its order replaces.
    pub captured: Option<Box<Captured>>,
}

/// A capture, and when it was decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Captured {
    pub capture: Capture,
    /// Time of the decision.
    pub decided_at: Timestamp,
}

impl PaymentRecord {
    /// What was decided of a capture now.
    #[must_use]
    pub fn decided(capture: &Capture, outcome: PaymentOutcome, now: Timestamp) -> Self {
        let refund = match outcome {
            PaymentOutcome::Accepted => None,
            PaymentOutcome::Refund(_) => Some(Refund::due(now)),
        };
        let back = MinorUnits::ZERO;
        let (capture, disputes) = (capture.clone(), Vec::new());
        Self {
            capture,
            outcome,
            decided_at: now,
            refund,
            ended: 0,
            undone: 0,
            back,
            disputes,
            captured: None,
        }
    }

    /// What is recorded now of a capture of ours whose order is not there: it waits for an operator.
    #[must_use]
    pub fn unmatched(capture: &Capture, now: Timestamp) -> Self {
        let outcome = PaymentOutcome::Refund(RefundReason::UnknownOrder);
        Self { refund: Some(Refund::unmatched(now)), ..Self::decided(capture, outcome, now) }
    }

    /// True if it is a capture of ours of no order, and no operator has said what becomes of it.
    #[must_use]
    pub fn is_unmatched(&self) -> bool {
        self.refund.as_ref().is_some_and(|refund| refund.state == RefundState::Unmatched)
    }
}

impl PaymentRecord {
    /// What is left of the capture.
    #[must_use]
    pub fn left(&self) -> Money {
        let captured = self.capture.amount;
        Money { amount_minor: captured.amount_minor - self.back, ..captured }
    }
}

impl PaymentRecord {
    /// The payment as its provider knows it: the capture whose money it is.
    #[must_use]
    pub fn at_provider(&self) -> Self {
        let Some(captured) = &self.captured else { return self.clone() };
        let Captured { capture, decided_at } = (**captured).clone();
        Self { capture, decided_at, ..self.clone() }
    }

    /// When its money was captured.
    #[must_use]
    pub fn captured_at(&self) -> Timestamp {
        self.captured.as_ref().map_or(self.decided_at, |captured| captured.decided_at)
    }
}
