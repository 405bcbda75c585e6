//! The port to the log in DynamoDB: the facts of orders in the order in which they were settled.

use std::future::Future;

use super::Stored;
use crate::domain::basics::time::Timestamp;
use crate::domain::ledger::log::{LogPosition, LogShard, PlacedRecord};

/// The log (DynamoDB), for readers only: [`Orders::sync`](super::Orders::sync) appends to it.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError).
pub trait Log: Send + Sync {
    /// The position of a shard's last record, strongly consistent; 0 if the shard is empty.
    fn last(&self, shard: LogShard) -> impl Future<Output = Stored<u64>> + Send;
    /// The position of a shard's last record that is older than `time`; 0 if no record is. Records are in the order
    /// of their times, except for the differences between the clocks of their writers.
    fn before(&self, shard: LogShard, time: Timestamp) -> impl Future<Output = Stored<u64>> + Send;
    /// The records of a shard behind a position, in order, strongly consistent; at most 100. An empty answer says
    /// that there are no more yet.
    fn after(&self, place: LogPosition) -> impl Future<Output = Stored<Vec<PlacedRecord>>> + Send;
}
