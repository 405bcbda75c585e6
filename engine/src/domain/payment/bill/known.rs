//! What the engine knows of a provider's payments: the facts of the log, and of orders that a report names.

use std::collections::BTreeMap;

use crate::domain::basics::ids::{PaymentId, ProviderId};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::exchange::is_moved_id;
use crate::domain::order::fact::{Actor, Fact, FactKind};
use crate::domain::order::order_refund::RefundKey;
use crate::domain::order::refund::RefundState;
use crate::domain::order::{Order, PaymentRecord, RefundReason};

/// How near to either end of its period a report may leave out what was told here: the provider may have had it
/// on the day before or after.
pub const NEIGHBOUR_MS: i64 = 60 * 60 * 1000;
/// A day.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The time that a report is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// From here on.
    pub from: Timestamp,
    /// Before here.
    pub to: Timestamp,
}

impl Period {
    /// True for a time in it.
    #[must_use]
    pub fn has(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// True for a time in it that is not near either end.
    #[must_use]
    pub fn has_inside(&self, at: Timestamp) -> bool {
        let first = self.from.ms().saturating_add(NEIGHBOUR_MS);
        first <= at.ms() && at.ms() < self.to.ms().saturating_sub(NEIGHBOUR_MS)
    }
}

/// A capture that was told here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCapture {
    /// The order it was for.
    pub order: OrderNumber,
    /// How much.
    pub amount: Money,
    /// When it was told.
    pub at: Timestamp,
}

/// Money that shall go back of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRefund {
    /// How much.
    pub amount: Money,
    /// When it was first told that it shall.
    pub asked_at: Timestamp,
    /// When it was told to be back, if it was.
    pub back_at: Option<Timestamp>,
}

/// Disputes of a payment, those that took money away or (true) those that gave it back: each with its amount and the
/// time at which it was told.
type Disputes = BTreeMap<(PaymentId, bool), Vec<(Money, Timestamp)>>;

/// What is known of the payments of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The captures, by the provider's names of them.
    pub captured: BTreeMap<PaymentId, KnownCapture>,
    /// What was taken away by disputes, and came back.
    pub disputed: Disputes,
    /// What goes back of each: all of it, or by refunds of the order.
    pub sent_back: BTreeMap<(PaymentId, Option<RefundKey>), KnownRefund>,
}

impl Known {
    /// Adds what a whole order tells of a provider's payments.
    pub fn add_order(&mut self, provider: &ProviderId, order: &Order) {
        order.facts.all.iter().for_each(|fact| self.add(provider, order.number, fact));
    }

    /// Adds a payment that was made for an order which does not exist.
    pub fn add_payment(&mut self, payment: &PaymentRecord) {
        let PaymentRecord { capture, refund, decided_at, .. } = payment;
        let id = capture.key.payment.clone();
        let known = KnownCapture { order: capture.order, amount: capture.amount, at: *decided_at };
        // What an operator has paid otherwise the provider knows nothing of.
        if let Some(refund) = refund.as_ref().filter(|refund| refund.state != RefundState::Settled)
        {
            let is_back = refund.state == RefundState::Refunded;
            let back_at = is_back.then_some(refund.changed_at);
            let whole = KnownRefund { amount: capture.amount, asked_at: *decided_at, back_at };
            self.sent_back.insert((id.clone(), None), whole);
        }
        self.captured.insert(id, known);
    }

    /// What goes back of payments whose money was captured for tickets that their orders replace: under names that the
    /// provider does not know.
    #[must_use]
    pub fn moved(&self) -> Vec<(PaymentId, RefundKey)> {
        let keys = self.sent_back.keys();
        let of_order = keys.filter_map(|(payment, refund)| Some((payment, (*refund)?)));
        let moved = of_order.filter(|(payment, refund)| is_moved_id(payment, refund.order));
        moved.map(|(payment, refund)| (payment.clone(), refund)).collect()
    }

    /// Puts such a refund under the provider's name of the payment.
    pub fn rename(&mut self, (payment, refund): (PaymentId, RefundKey), name: PaymentId) {
        if let Some(known) = self.sent_back.remove(&(payment, Some(refund))) {
            self.sent_back.insert((name, Some(refund)), known);
        }
    }

    /// Adds what a fact of an order tells of a provider's payments.
    pub fn add(&mut self, provider: &ProviderId, order: OrderNumber, fact: &Fact) {
        let Some(moved) = &fact.cause.moved else { return };
        if moved.payment.provider != *provider || moved.amount.amount_minor == MinorUnits::ZERO {
            return;
        }
        let (id, amount) = (moved.payment.payment.clone(), moved.amount);
        let number = moved.refund.map(|number| RefundKey { order, number });
        let refund = (id.clone(), number);
        let asked = KnownRefund { amount, asked_at: fact.at, back_at: None };
        match fact.kind {
            // Its money was captured for the tickets that it replaces.
            FactKind::Paid if is_moved_id(&id, order) => {}
            FactKind::Paid | FactKind::Rescued => {
                self.captured.insert(id, KnownCapture { order, amount, at: fact.at });
            }
            FactKind::RefundDue | FactKind::CaptureRefused => {
                self.captured.insert(id, KnownCapture { order, amount, at: fact.at });
                self.sent_back.entry(refund).or_insert(asked);
            }
            // A provider tells of a lost dispute as of a dispute.
            FactKind::RefundMade | FactKind::Refunded
                if moved.reason == Some(RefundReason::Disputed) => {}
            FactKind::DisputeOpened => {
                self.disputed.entry((id, false)).or_default().push((amount, fact.at));
            }
            FactKind::DisputeWon => {
                self.disputed.entry((id, true)).or_default().push((amount, fact.at));
            }
            FactKind::RefundMade => {
                self.sent_back.entry(refund).or_insert(asked);
            }
            // Paid by the bank, or in cash: the provider knows nothing of it.
            FactKind::Refunded if fact.cause.by == Actor::Operator => {
                self.sent_back.remove(&refund);
            }
            FactKind::RefundUndone => {
                if let Some(known) = self.sent_back.get_mut(&refund) {
                    known.back_at = None;
                }
            }
            FactKind::Refunded => {
                // Of what tickets are worth, an exchange keeps some.
                let known = self.sent_back.entry(refund).or_insert(asked);
                (known.amount, known.back_at) = (amount, Some(fact.at));
            }
            FactKind::Made | FactKind::Cancelled | FactKind::Expired | FactKind::DisputeLost => {}
        }
    }
}
