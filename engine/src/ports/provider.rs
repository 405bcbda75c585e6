//! The port to the payment provider.

use std::future::Future;

use super::Stored;
use crate::domain::basics::ids::{DisputeId, PageMark, ProviderId};
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::Attempt;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::refund::RefundReply;
use crate::domain::order::{Capture, Order, PaymentRecord};
use crate::domain::payment::captures::CapturePage;
use crate::domain::payment::dispute::DisputeReport;
use crate::domain::payment::start::{CloseReply, StartReply};

/// The payment provider: what it has captured, and money going back.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError): `Limited` if the limit on calls to the
/// endpoint is used up, `Unknown` if a refund may have happened.
pub trait Provider: Send + Sync {
    /// Starts an attempt at paying an order, once however often it is asked: the order's number and the
    /// attempt's are the idempotency key. Asked again, it gives the same answer.
    fn start(
        &self,
        order: &Order,
        attempt: &Attempt,
    ) -> impl Future<Output = Stored<StartReply>> + Send;
    /// Closes an attempt, so that no money comes by it, or says that it was paid. One whose provider never
    /// answered is found by its name.
    fn close(
        &self,
        order: &Order,
        attempt: &Attempt,
    ) -> impl Future<Output = Stored<CloseReply>> + Send;
    /// Every capture that a search finds for an order, oldest first. `None` if there is no provider that
    /// can be asked. An answer may lack the last captures, by the search's lag: the
    /// [grace](crate::domain::payment::grace) is longer than that.
    fn captures(&self, order: &Order) -> impl Future<Output = Stored<Option<Vec<Capture>>>> + Send;
    /// A page of the captures made since `from`, newest first: the first page, or the one behind a mark.
    /// A capture is listed some time after it was made
    /// ([`ListLag`](crate::domain::payment::captures::ListLag)). Asking a provider that has no list breaks the
    /// contract ([`Ports::listings`](super::Ports::listings)).
    fn list_captures(
        &self,
        provider: &ProviderId,
        from: Timestamp,
        after: Option<&PageMark>,
    ) -> impl Future<Output = Stored<CapturePage>> + Send;
    /// Sends a captured payment back, whole, and once however often it is asked: the payment is the
    /// idempotency key. Asked again, it says how far it is.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<RefundReply>> + Send;
    /// Sends a part of a captured payment back, once however often it is asked: the refund's name is the
    /// idempotency key, and stands in the provider's record of it. Asked again, it says how far it is.
    fn refund_part(
        &self,
        payment: &PaymentRecord,
        refund: &OrderRefund,
    ) -> impl Future<Output = Stored<RefundReply>> + Send;
    /// A dispute as the provider tells it now; `None` if its payment is none of ours, or if no money was taken back.
    /// Asking a provider that knows no disputes breaks the contract.
    fn dispute(
        &self,
        provider: &ProviderId,
        dispute: &DisputeId,
    ) -> impl Future<Output = Stored<Option<DisputeReport>>> + Send;
}
