//! The port to the catalogue of sales in DynamoDB.

use std::future::Future;
use std::sync::Arc;

use super::Stored;
use super::orders::ChangeReply;
use crate::domain::ids::{Epoch, SaleId};
use crate::domain::sale::{Sale, SaleFile};
use crate::domain::time::Timestamp;

/// A sale as the catalogue has it.
#[derive(Debug, Clone)]
pub struct Published {
    /// The sale.
    pub sale: Arc<Sale>,
    /// The epoch of its last load; `None` before the first.
    pub epoch: Option<Epoch>,
    /// Counts every publication.
    pub version: u64,
}

/// Age that a catalogue entry may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// A few seconds: good for terms that scripts check again.
    Cached,
    /// Read now.
    Fresh,
}

/// The catalogue of sales (DynamoDB).
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError).
pub trait Catalogue: Send + Sync {
    /// A sale.
    fn sale(
        &self,
        id: &SaleId,
        freshness: Freshness,
    ) -> impl Future<Output = Stored<Option<Published>>> + Send;
    /// Every sale's id, in order.
    fn sales(&self) -> impl Future<Output = Stored<Vec<SaleId>>> + Send;
    /// Writes a sale if its version is still `replaces` (`None`: if it is new).
    fn publish(
        &self,
        file: &SaleFile,
        replaces: Option<u64>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Takes the lease to load a sale as `epoch` until `until`, if nobody has one at `now`. The name
    /// of the load is its fencing token.
    fn lease(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Moves the end of the lease to `until`, a moment ago to give it back; only while no other load
    /// has taken the lease since, and it has not ended with [`Catalogue::loaded`].
    fn prolong(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Names the epoch that was loaded, and ends its lease; only while no other load has taken the
    /// lease since.
    fn loaded(
        &self,
        id: &SaleId,
        epoch: &Epoch,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
}
