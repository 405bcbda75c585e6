//! The port to the log in DynamoDB: what was settled, in its order.

use std::future::Future;

use super::Stored;
use crate::domain::basics::time::Timestamp;
use crate::domain::ledger::log::{LogPosition, LogShard, PlacedRecord};

/// The log (DynamoDB), as its readers see it.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError).
pub trait Log: Send + Sync {
    /// The last position of a shard, strongly consistent; 0 if it has none.
    fn last(&self, shard: LogShard) -> impl Future<Output = Stored<u64>> + Send;
    /// The last position of a shard whose record is older than a time; 0 if none is. Records are in the order of
    /// their times but for the differences of the clocks that wrote them.
    fn before(&self, shard: LogShard, time: Timestamp) -> impl Future<Output = Stored<u64>> + Send;
    /// The records of a shard behind a position, first ones first, strongly consistent; at most 100. None: there are
    /// no more yet.
    fn after(&self, place: LogPosition) -> impl Future<Output = Stored<Vec<PlacedRecord>>> + Send;
}
