//! The ports to the subscribers of facts, which are webhooks and the event bus, and to their progress in DynamoDB.

use std::future::Future;

use super::{ChangeReply, Stored};
use crate::domain::basics::ids::ReaderId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::ledger::subscriber::{Event, Progress, Subscription, WaitingOrder};

/// The reply to [`Subscriptions::take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TakeReply {
    /// The reader has the lease now. The progress is `None` if the subscriber has never received anything.
    Taken(Option<Progress>),
    /// Another reader has the lease.
    Held,
}

/// The change of an order whose facts wait for another attempt to send them to a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// The order's facts wait.
    Keep(WaitingOrder),
    /// The subscriber has received the order's facts: nothing of the order waits any more.
    Told(OrderNumber),
}

/// The most changes of waiting orders in one call: one transaction writes them together with the progress.
pub const MAX_WAITING_CHANGES: usize = 90;
const _: () = assert!(MAX_WAITING_CHANGES < super::MAX_TRANSACTION_ITEMS);

/// The progress of subscribers (DynamoDB). One reader at a time moves a subscription, under a lease in the reader's
/// name.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Subscriptions: Send + Sync {
    /// Takes the lease on a subscription until `until`, if nobody has one at `now`.
    fn take(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<TakeReply>> + Send;
    /// Writes the progress of a subscription and the changes of its waiting orders (at most [`MAX_WAITING_CHANGES`]),
    /// and moves the end of the lease to `until`, all or nothing, if `reader` was the last to take the lease.
    fn keep(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        progress: &Progress,
        waiting: &[Waiting],
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// The orders whose facts wait, including those that were given up, strongly consistent.
    fn waiting(&self, of: &Subscription) -> impl Future<Output = Stored<Vec<WaitingOrder>>> + Send;
}

/// A subscriber that events can be sent to.
pub trait Receiver: Send + Sync {
    /// The most events of one [`Receiver::tell`].
    fn at_once(&self) -> usize;
    /// Sends events to the subscriber, each of another order. Returns for each event, in order, whether the subscriber
    /// accepted it. An event that it did not accept may have arrived all the same.
    fn tell(&self, events: &[Event]) -> impl Future<Output = Vec<bool>> + Send;
}
