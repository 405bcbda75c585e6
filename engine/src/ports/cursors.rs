//! The port to the cursors in DynamoDB: how far each provider's list of captures was read.

use std::future::Future;

use super::{ChangeReply, Stored};
use crate::domain::basics::ids::{ProviderId, ReaderId};
use crate::domain::basics::time::Timestamp;
use crate::domain::payment::captures::Cursor;

/// The reply to taking a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CursorReply {
    /// The reader has the lease now. The cursor is `None` if nobody has ever read the list.
    Taken(Option<Cursor>),
    /// Another reader has the lease.
    Held,
}

/// The cursors (DynamoDB). One reader at a time moves a cursor, under a lease in the reader's name.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Cursors: Send + Sync {
    /// The cursor of a provider, which may be some seconds old. An old cursor is still true: the list was read at
    /// least that far.
    fn cursor(&self, provider: &ProviderId) -> impl Future<Output = Stored<Option<Cursor>>> + Send;
    /// Takes the lease on a cursor until `until`, if nobody has one at `now`.
    fn take_cursor(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<CursorReply>> + Send;
    /// Writes a cursor and moves the end of its lease to `until`, if `reader` was the last to take the lease.
    fn move_cursor(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &Cursor,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Notes that a callback of a provider told of something which is to be read in its list ([`Cursor::asked_at`]).
    fn ask_to_read(
        &self,
        provider: &ProviderId,
        now: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
}
