//! The port to the payment provider.

use std::future::Future;

use super::Stored;
use crate::domain::order::{Capture, Order, PaymentRecord};
use crate::domain::refund::RefundReply;

/// The payment provider: what it has captured, and money going back.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a refund may have happened.
pub trait Provider: Send + Sync {
    /// Every capture that it has for an order, oldest first. `None` if there is no provider that
    /// can be asked. An answer may lack the last captures, by the provider's lag: the
    /// [grace](crate::domain::grace) is longer than that.
    fn captures(&self, order: &Order) -> impl Future<Output = Stored<Option<Vec<Capture>>>> + Send;
    /// Sends a captured payment back, whole, and once however often it is asked: the payment is the
    /// idempotency key. Asked again, it says how far it is.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<RefundReply>> + Send;
}
