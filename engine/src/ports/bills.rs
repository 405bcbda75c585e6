//! The port to the bills of payment providers, and to how far they are read, in DynamoDB.

use std::future::Future;

use super::{ChangeReply, Stored};
use crate::domain::basics::ids::{PageMark, ProviderId, ReaderId};
use crate::domain::basics::time::Timestamp;
use crate::domain::payment::bill::{BillCursor, BillDay, BillReply, Billed, Difference};

/// The reply to taking the bills of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TakeBills {
    /// The reader has the lease now. The cursor is `None` if nobody has ever read a bill.
    Taken(Option<BillCursor>),
    /// Another reader has the lease.
    Held,
}

/// The bills of the payment providers, and what is kept of them. One reader at a time reads those of an account, under a
/// lease in the reader's name.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Bills: Send + Sync {
    /// The accounts whose bills are read.
    fn billed(&self) -> Vec<Billed>;
    /// The bill of a day, or a page of it: the first, or the page behind the mark `after`. Fails with `Contract` if what the
    /// provider sends is no bill.
    fn bill(
        &self,
        provider: &ProviderId,
        day: BillDay,
        after: Option<&PageMark>,
    ) -> impl Future<Output = Stored<BillReply>> + Send;
    /// Takes the lease on the bills of an account until `until`, if nobody has one at `now`.
    fn take_bills(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<TakeBills>> + Send;
    /// Writes how far the bills are read and moves the end of the lease to `until`, if `reader` was the last to take it.
    fn move_bills(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &BillCursor,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Keeps a difference for an operator, once for each [`Difference::key`]; what was said of it stays.
    fn keep_difference(&self, difference: &Difference) -> impl Future<Output = Stored<()>> + Send;
}
