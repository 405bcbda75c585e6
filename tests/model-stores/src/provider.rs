//! The payment provider: what it has captured, and what it has sent back.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::guard::{Guard, stands};
use engine::domain::money::Money;
use engine::domain::number::OrderNumber;
use engine::domain::order::{Capture, PaymentKey};
use engine::domain::refund::RefundReply;
use engine::domain::time::Timestamp;

/// Everything a provider knows. Money goes back at most once, because the payment is the name of its
/// refund.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ProviderModel {
    /// The captures.
    pub captured: BTreeMap<PaymentKey, Capture>,
    /// The times from which it lists captures; one without a time it lists at once.
    pub listed_at: BTreeMap<PaymentKey, Timestamp>,
    /// The refunds.
    pub refunded: BTreeMap<PaymentKey, Money>,
    /// Payments that went back again, which only a provider does that forgets its idempotency keys.
    pub refunded_again: BTreeSet<PaymentKey>,
}

impl ProviderModel {
    /// A buyer pays, and the provider lists the capture at once.
    pub fn capture(&mut self, capture: Capture) {
        self.captured.insert(capture.key.clone(), capture);
    }

    /// A buyer pays, and the provider lists the capture from `listed_at` on.
    pub fn capture_listed_at(&mut self, capture: Capture, listed_at: Timestamp) {
        self.listed_at.insert(capture.key.clone(), listed_at);
        self.capture(capture);
    }

    /// Every capture for an order that is listed at `now`.
    #[must_use]
    pub fn captures(&self, order: OrderNumber, now: Timestamp) -> Vec<Capture> {
        let is_listed = |capture: &&Capture| {
            capture.order == order && self.listed_at.get(&capture.key).is_none_or(|at| *at <= now)
        };
        self.captured.values().filter(is_listed).cloned().collect()
    }

    /// Sends a payment back, whole; refuses one that it does not have. A repeated request does nothing
    /// more.
    pub fn refund(&mut self, payment: &PaymentKey) -> RefundReply {
        let Some(capture) = self.captured.get(payment) else {
            return RefundReply::Refused("resource_missing: no such payment".to_owned());
        };
        let before = self.refunded.insert(payment.clone(), capture.amount);
        if before.is_some() && !stands(Guard::RefundOnce) {
            self.refunded_again.insert(payment.clone());
        }
        RefundReply::Refunded
    }
}
