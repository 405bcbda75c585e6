//! Facts: every change of an order, written on the order itself in the transaction that makes it.
//!
//! The condition of that transaction writes a fact exactly once; the fact's place among the order's facts is its
//! number. [Settling](crate::flows::sync) derives statistics and the log from facts later: an order says how many of
//! its facts are settled, and is due until all are.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::order_refund::{OrderRefund, RefundNumber};
use super::{Capture, OrderEvent, PaymentKey, RefundReason};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::time::Timestamp;

/// What happened to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// It was made, with its seats claimed.
    Made,
    Paid,
    /// It was paid after it had expired, and its seats were claimed again.
    Rescued,
    /// It was cancelled before it was paid.
    Cancelled,
    Expired,
    /// Its money is to be refunded.
    RefundDue,
    /// A capture for it was refused, and goes back; the order stayed as it was.
    CaptureRefused,
    /// A refund of it was made while it was paid: tickets, or money, go back.
    RefundMade,
    /// Money of it is back with who paid.
    Refunded,
    /// Money of it that was back came to us again: the refund failed after all.
    RefundUndone,
    /// Whoever paid has had the bank take money of it back; whose it is, is not decided.
    DisputeOpened,
    /// That money is here again.
    DisputeWon,
    /// That money stays with whoever paid; the refund that says so is told for itself.
    DisputeLost,
}

impl FactKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 13] = [
        Self::Made,
        Self::Paid,
        Self::Rescued,
        Self::Cancelled,
        Self::Expired,
        Self::RefundDue,
        Self::CaptureRefused,
        Self::RefundMade,
        Self::Refunded,
        Self::RefundUndone,
        Self::DisputeOpened,
        Self::DisputeWon,
        Self::DisputeLost,
    ];

    /// The kind as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Paid => "paid",
            Self::Rescued => "rescued",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::RefundDue => "refund_due",
            Self::CaptureRefused => "capture_refused",
            Self::RefundMade => "refund_made",
            Self::Refunded => "refunded",
            Self::RefundUndone => "refund_undone",
            Self::DisputeOpened => "dispute_opened",
            Self::DisputeWon => "dispute_won",
            Self::DisputeLost => "dispute_lost",
        }
    }

    /// The kind of an event's fact.
    #[must_use]
    pub const fn of(event: OrderEvent) -> Self {
        match event {
            OrderEvent::Pay => Self::Paid,
            OrderEvent::Cancel => Self::Cancelled,
            OrderEvent::Expire => Self::Expired,
            OrderEvent::Rescue => Self::Rescued,
            OrderEvent::PayTooLate => Self::RefundDue,
            OrderEvent::RefundPart | OrderEvent::Refund => Self::RefundMade,
            OrderEvent::RefundConfirmed => Self::Refunded,
            OrderEvent::RefundUndone => Self::RefundUndone,
        }
    }

    /// True if it makes the order's tickets count as sold.
    #[must_use]
    pub const fn sells(self) -> bool {
        match self {
            Self::Paid | Self::Rescued => true,
            Self::Made
            | Self::Cancelled
            | Self::Expired
            | Self::RefundDue
            | Self::CaptureRefused
            | Self::RefundMade
            | Self::Refunded
            | Self::RefundUndone
            | Self::DisputeOpened
            | Self::DisputeWon
            | Self::DisputeLost => false,
        }
    }
}

/// Who caused a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Buyer,
    /// A payment provider, by what it has captured or sent back.
    Provider,
    Operator,
    Deadline,
}

impl Actor {
    /// Every actor, for tables and tests.
    pub const ALL: [Self; 4] = [Self::Buyer, Self::Provider, Self::Operator, Self::Deadline];

    /// The actor as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer",
            Self::Provider => "provider",
            Self::Operator => "operator",
            Self::Deadline => "deadline",
        }
    }
}

/// Money that a fact speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Moved {
    pub payment: PaymentKey,
    /// What was captured, or sent back.
    pub amount: Money,
    /// Why it goes back, if it does.
    pub reason: Option<RefundReason>,
    /// The refund of a paid order that sends it back; `None` for a capture, and where all of one goes back.
    pub refund: Option<RefundNumber>,
}

/// Who caused a change, and what money moved with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    pub by: Actor,
    pub moved: Option<Moved>,
}

impl Cause {
    pub const BUYER: Self = Self { by: Actor::Buyer, moved: None };
    pub const OPERATOR: Self = Self { by: Actor::Operator, moved: None };
    /// A deadline that has passed.
    pub const DEADLINE: Self = Self { by: Actor::Deadline, moved: None };

    /// A capture, and why it goes back if it does.
    #[must_use]
    pub fn capture(capture: &Capture, reason: Option<RefundReason>) -> Self {
        let (payment, amount) = (capture.key.clone(), capture.amount);
        let moved = Moved { payment, amount, reason, refund: None };
        Self { by: Actor::Provider, moved: Some(moved) }
    }

    /// A refund of a paid order that somebody makes: the worth of its tickets, of which an exchange keeps some.
    #[must_use]
    pub fn refund_made(refund: &OrderRefund, by: Actor) -> Self {
        let confirmed = Self::refund(refund, by);
        let moved = confirmed.moved.map(|moved| Moved { amount: refund.worth(), ..moved });
        Self { by, moved }
    }

    /// A refund of a paid order whose money is back, or is not after all, as somebody says: a provider, or an operator who
    /// has paid it otherwise.
    #[must_use]
    pub fn refund(refund: &OrderRefund, by: Actor) -> Self {
        let moved = Moved {
            payment: refund.payment.clone(),
            amount: refund.amount,
            reason: Some(refund.why()),
            refund: Some(refund.key.number),
        };
        Self { by, moved: Some(moved) }
    }
}

/// One thing that happened to an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fact {
    pub kind: FactKind,
    pub at: Timestamp,
    /// Who caused it, and the money.
    pub cause: Cause,
}

/// The facts of an order, in the order in which they were made: the first is number 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    pub all: Vec<Fact>,
    /// How many of them are settled.
    pub settled: u32,
}

impl Fact {
    /// The refund of a paid order that it speaks of.
    #[must_use]
    pub fn refund(&self) -> Option<RefundNumber> {
        self.cause.moved.as_ref()?.refund
    }

    /// The refund that it tells the making of.
    #[must_use]
    pub fn refund_made(&self) -> Option<RefundNumber> {
        self.refund().filter(|_| self.kind == FactKind::RefundMade)
    }

    /// True if it tells that its order was paid.
    #[must_use]
    pub fn is_payment(&self) -> bool {
        matches!(self.kind, FactKind::Paid | FactKind::Rescued)
    }

    /// The rest of the payment that the order keeps after this fact, if it had `kept` before.
    #[must_use]
    pub fn keeps(&self, kept: MinorUnits) -> MinorUnits {
        let Some(moved) = &self.cause.moved else { return kept };
        let amount = moved.amount.amount_minor;
        if self.is_payment() {
            amount
        } else if self.kind == FactKind::RefundMade {
            kept - amount
        } else {
            kept
        }
    }
}

impl Facts {
    /// The facts of an order that its buyer makes now.
    #[must_use]
    pub fn made(now: Timestamp) -> Self {
        let made = Fact { kind: FactKind::Made, at: now, cause: Cause::BUYER };
        Self { all: vec![made], settled: 0 }
    }

    /// These facts and another one.
    #[must_use]
    pub fn with(&self, kind: FactKind, at: Timestamp, cause: Cause) -> Self {
        let all = self.all.iter().cloned().chain([Fact { kind, at, cause }]).collect();
        Self { all, ..*self }
    }

    /// Number of facts.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// The settled facts.
    #[must_use]
    pub fn settled(&self) -> &[Fact] {
        let settled = usize::try_from(self.settled).unwrap_or(usize::MAX);
        self.all.get(..settled).unwrap_or(&self.all)
    }

    /// The unsettled facts, each with its number.
    pub fn unsettled(&self) -> impl Iterator<Item = (NonZeroU32, &Fact)> {
        let numbers = (1..=u32::MAX).filter_map(NonZeroU32::new);
        numbers.zip(&self.all).skip(self.settled().len())
    }

    /// True if all facts are settled.
    #[must_use]
    pub fn are_settled(&self) -> bool {
        self.settled == self.count()
    }

    /// These facts, all of them settled.
    #[must_use]
    pub fn all_settled(&self) -> Self {
        Self { settled: self.count(), ..self.clone() }
    }

    /// The time of the last fact.
    #[must_use]
    pub fn last_at(&self) -> Option<Timestamp> {
        self.all.last().map(|fact| fact.at)
    }

    /// True if the settled facts count the order's tickets as sold.
    #[must_use]
    pub fn are_counted(&self) -> bool {
        self.settled().iter().any(|fact| fact.kind.sells())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_numbered_from_one_and_settled_in_order() {
        let now = Timestamp::from_ms(1_800_000_000_000);
        let facts = Facts::made(now).with(FactKind::Paid, now.plus_seconds(1), Cause::BUYER);
        let numbers = |facts: &Facts| -> Vec<u32> {
            facts.unsettled().map(|(number, _)| number.get()).collect()
        };
        assert_eq!(numbers(&facts), [1, 2]);
        assert!(!facts.are_counted());
        let some = Facts { settled: 1, ..facts.clone() };
        assert_eq!(numbers(&some), [2]);
        assert!(!some.are_counted() && !some.are_settled());
        let all = facts.all_settled();
        assert!(all.are_settled() && all.are_counted());
        assert_eq!(all.last_at(), Some(now.plus_seconds(1)));
    }

    #[test]
    fn every_name_is_used_once() {
        let names = FactKind::ALL.map(FactKind::as_str);
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        for kind in FactKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        for actor in Actor::ALL {
            assert_eq!(serde_json::to_value(actor).unwrap(), actor.as_str());
        }
    }
}
