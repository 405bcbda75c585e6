//! The port to the payment providers: attempts, captures, refunds and disputes.

use std::future::Future;

use super::Stored;
use crate::domain::basics::ids::{DisputeId, PageMark, PaymentId, ProviderId};
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::{Attempt, PaymentChoice};
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::refund::RefundReply;
use crate::domain::order::{Capture, Order, PaymentRecord};
use crate::domain::payment::captures::CapturePage;
use crate::domain::payment::dispute::DisputeReport;
use crate::domain::payment::outside::SentReport;
use crate::domain::payment::start::{CloseReply, StartReply, Turn};

/// The payment providers of the deployment, as one: a method asks the provider that its arguments name.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError): `Limited` if the limit on calls to the
/// endpoint is used up, `Unknown` if a refund may have happened.
pub trait Provider: Send + Sync {
    /// Takes the turn of a call that starts an attempt of this choice, and waits for it, some seconds at most. If it is
    /// later, the account keeps that start for the caller, whose order is to have it as its
    /// [place](crate::domain::order::place). `Limited` if the account has none for longer than places are given out for.
    fn turn(&self, choice: &PaymentChoice) -> impl Future<Output = Stored<Turn>> + Send;
    /// Milliseconds until the next free start of a payment, as it was at most a second ago; of several accounts the first, of
    /// those at which payments were started lately. `None` if there are none.
    fn starts_in(&self) -> impl Future<Output = Stored<Option<u32>>> + Send;
    /// Starts an attempt to pay an order, whose [`turn`](Self::turn) the caller has taken, or whose place has come. The numbers of the order and of
    /// the attempt are the idempotency key, so the provider starts the attempt once, and a repeated call gets the same
    /// answer.
    fn start(
        &self,
        order: &Order,
        attempt: &Attempt,
    ) -> impl Future<Output = Stored<StartReply>> + Send;
    /// Closes an attempt, so that nobody can pay it any more, or returns the capture if it was paid. If the provider
    /// never answered the start of an attempt that a release up to 0.2 made, the method finds the attempt by its name.
    fn close(
        &self,
        order: &Order,
        attempt: &Attempt,
    ) -> impl Future<Output = Stored<CloseReply>> + Send;
    /// Every capture that the providers' search finds for an order, oldest first. `None` if no provider can be
    /// asked. The search lags, so the answer may lack the latest captures: the
    /// [grace](crate::domain::payment::grace) is longer than the lag.
    fn captures(&self, order: &Order) -> impl Future<Output = Stored<Option<Vec<Capture>>>> + Send;
    /// A page of the captures made since `from`, newest first: the first page, or the page behind the mark `after`.
    /// The provider lists a capture some time after it was made
    /// ([`ListLag`](crate::domain::payment::captures::ListLag)). Fails with `Contract` if the provider has no list
    /// ([`Ports::listings`](super::Ports::listings)).
    fn list_captures(
        &self,
        provider: &ProviderId,
        from: Timestamp,
        after: Option<&PageMark>,
    ) -> impl Future<Output = Stored<CapturePage>> + Send;
    /// Takes the turn of a refund that a capture decides, and waits for it, some seconds at most. Such refunds have turns of
    /// their own, few a second: what takes captures for ours, or for too much, wrongly, is stopped before much is sent. A
    /// turn that is later is the payment's, whose record keeps it. `Limited` if there is none within a day.
    fn refund_turn(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<Turn>> + Send;
    /// Refunds all of a captured payment. The payment is the idempotency key, so the provider refunds it once, and a
    /// repeated call returns the state of the refund.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<RefundReply>> + Send;
    /// Refunds a part of a captured payment. The refund's name is the idempotency key and stands in the provider's
    /// record of the refund, so the provider makes it once, and a repeated call returns its state. A provider that lists
    /// the refunds of a payment is read first: it refuses if more went back outside than `known_outside`, which is in minor
    /// units.
    fn refund_part(
        &self,
        payment: &PaymentRecord,
        refund: &OrderRefund,
        known_outside: MinorUnits,
    ) -> impl Future<Output = Stored<RefundReply>> + Send;
    /// The refunds of a payment that its provider lists; `None` if there are none, or the payment is not for an order of
    /// this engine. Fails with `Contract` if the provider lists none.
    fn sent_back(
        &self,
        provider: &ProviderId,
        payment: &PaymentId,
    ) -> impl Future<Output = Stored<Option<SentReport>>> + Send;
    /// The present state of a dispute at its provider; `None` if the payment is not for an order of this engine, or if
    /// the provider took no money back. Fails with `Contract` if the provider has no disputes.
    fn dispute(
        &self,
        provider: &ProviderId,
        dispute: &DisputeId,
    ) -> impl Future<Output = Stored<Option<DisputeReport>>> + Send;
}
