//! The port to the admission gate in Redis.

use std::future::Future;

use super::Stored;
use crate::domain::gate::{Admit, AdmitReply};

/// The admission gate (Redis, on slots of its own). The rules are in [`crate::domain::gate`].
pub trait Gate: Send + Sync {
    /// Asks one shard for an admission.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn admit(&self, command: &Admit) -> impl Future<Output = Stored<AdmitReply>> + Send;
}
