//! The port to the cursors in DynamoDB: how far each provider's list of captures was read.

use std::future::Future;

use super::{ChangeReply, Stored};
use crate::domain::basics::ids::{ProviderId, ReaderId};
use crate::domain::basics::time::Timestamp;
use crate::domain::payment::captures::Cursor;

/// The reply to taking a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CursorReply {
    /// It is the reader's now. There is no cursor yet if nobody has ever read the list.
    Taken(Option<Cursor>),
    /// Another reader has it.
    Held,
}

/// The cursors (DynamoDB). One reader at a time moves one, under a lease in its own name.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Cursors: Send + Sync {
    /// The cursor of a provider, perhaps some seconds old: what it says was read, was read.
    fn cursor(&self, provider: &ProviderId) -> impl Future<Output = Stored<Option<Cursor>>> + Send;
    /// Takes the lease on a cursor until a time, if nobody has one at `now`.
    fn take_cursor(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<CursorReply>> + Send;
    /// Writes a cursor, and until when its lease holds from now on, if the reader has taken it last.
    fn move_cursor(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &Cursor,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
}
