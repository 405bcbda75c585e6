//! The ports to who is told of facts, and to how far each was told (DynamoDB).

use std::future::Future;

use super::{ChangeReply, Stored};
use crate::domain::basics::ids::ReaderId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::ledger::subscriber::{Event, Progress, Subscription, WaitingOrder};

/// The reply to taking a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TakeReply {
    /// It is the reader's now. There is no progress if nothing was ever told.
    Taken(Option<Progress>),
    /// Another reader has it.
    Held,
}

/// What becomes of the facts of an order that waited, or begins to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// They wait.
    Keep(WaitingOrder),
    /// They were told: nothing of the order waits any more.
    Told(OrderNumber),
}

/// Most orders of which one call says whether they wait: with the progress they are one transaction.
pub const MAX_WAITING_CHANGES: usize = 90;
const _: () = assert!(MAX_WAITING_CHANGES < super::MAX_TRANSACTION_ITEMS);

/// How far subscribers were told (DynamoDB). One reader at a time moves a subscription, under a lease in its own name.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Subscriptions: Send + Sync {
    /// Takes the lease on a subscription until a time, if nobody has one at `now`.
    fn take(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<TakeReply>> + Send;
    /// Writes how far it was told, which orders wait and which do not any more (at most [`MAX_WAITING_CHANGES`]), and
    /// until when the lease holds from now on, all or nothing, if the reader has taken it last.
    fn keep(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        progress: &Progress,
        waiting: &[Waiting],
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// The orders that wait, also those that were given up, strongly consistent.
    fn waiting(&self, of: &Subscription) -> impl Future<Output = Stored<Vec<WaitingOrder>>> + Send;
}

/// A subscriber, as far as it can be told something.
pub trait Receiver: Send + Sync {
    /// The most events that it is told at once.
    fn at_once(&self) -> usize;
    /// Tells events, each of another order: whether each was taken. What became of one that was not is unknown.
    fn tell(&self, events: &[Event]) -> impl Future<Output = Vec<bool>> + Send;
}
