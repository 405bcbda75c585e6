//! The port to the admission gate in Redis.

use std::future::Future;

use super::Stored;
use crate::domain::gate::{Admit, AdmitReply};
use crate::domain::ids::SaleId;

/// The admission gate (Redis, on slots of its own). The rules are in [`crate::domain::gate`].
pub trait Gate: Send + Sync {
    /// Asks one shard for an admission.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn admit(&self, command: &Admit) -> impl Future<Output = Stored<AdmitReply>> + Send;
    /// Removes the shards of the gate of a sale that is archived. Locks of buyers run out by
    /// themselves.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn close(&self, sale: &SaleId, shards: u16) -> impl Future<Output = Stored<()>> + Send;
}
