//! The payment provider: what it has captured, and what it has sent back.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::guard::{Guard, stands};
use engine::domain::money::Money;
use engine::domain::number::OrderNumber;
use engine::domain::order::{Capture, PaymentKey};
use engine::domain::refund::RefundReply;

/// Everything a provider knows. Money goes back at most once, because the payment is the name of its
/// refund.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ProviderModel {
    /// The captures.
    pub captured: BTreeMap<PaymentKey, Capture>,
    /// The refunds.
    pub refunded: BTreeMap<PaymentKey, Money>,
    /// Payments that went back again, which only a provider does that forgets its idempotency keys.
    pub refunded_again: BTreeSet<PaymentKey>,
}

impl ProviderModel {
    /// A buyer pays.
    pub fn capture(&mut self, capture: Capture) {
        self.captured.insert(capture.key.clone(), capture);
    }

    /// Every capture for an order.
    #[must_use]
    pub fn captures(&self, order: OrderNumber) -> Vec<Capture> {
        let of_order = self.captured.values().filter(|capture| capture.order == order);
        of_order.cloned().collect()
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
