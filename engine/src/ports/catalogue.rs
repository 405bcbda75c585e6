//! The port to the catalogue of sales in DynamoDB.

use std::future::Future;
use std::sync::Arc;

use super::Stored;
use super::orders::ChangeReply;
use crate::domain::admission::gate::tokens::TokenSnapshot;
use crate::domain::basics::bytes::MapHash;
use crate::domain::basics::calendar::Day;
use crate::domain::basics::ids::{Epoch, SaleId};
use crate::domain::basics::money::Money;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::archive::Lifecycle;
use crate::domain::sale::timetable::{CallMark, StopLabel, TrainsPage};
use crate::domain::sale::{MapDocument, Sale, SaleFile, SaleState};

/// Days for which a snapshot of a sale's tokens is kept at least.
pub const TOKEN_SNAPSHOTS_DAYS: i64 = 7;

/// A sale as the catalogue has it.
#[derive(Debug, Clone)]
pub struct Published {
    /// The sale, without its map.
    pub sale: Arc<Sale>,
    /// The name of its map, if it has one: [`Catalogue::map`] reads it.
    pub map: Option<MapHash>,
    /// The epoch of its last load; `None` before the first, and once it is archived.
    pub epoch: Option<Epoch>,
    /// Counts every publication.
    pub version: u64,
    /// Where it is in its life.
    pub lifecycle: Lifecycle,
}

/// A sale as the list of sales has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSale {
    /// Sale id.
    pub sale: SaleId,
    /// Its terms; `None` if it was published before the list had them, and not since.
    pub terms: Option<ListedTerms>,
}

/// The terms of a sale that the list of sales repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTerms {
    /// Title for people.
    pub title: String,
    /// Beginning of selling.
    pub opens_at: Timestamp,
    /// End of selling.
    pub closes_at: Timestamp,
    /// Whether the operator has paused it.
    pub state: SaleState,
    /// What its cheapest ticket costs; `None` if it was published before the list had this, and not since.
    pub price_from: Option<Money>,
}

impl ListedTerms {
    /// The terms of a sale file.
    #[must_use]
    pub fn from_file(file: &SaleFile) -> Self {
        Self {
            title: file.title.clone(),
            opens_at: file.opens_at,
            closes_at: file.closes_at,
            state: file.state,
            price_from: file.price_from(),
        }
    }
}

/// A page of the list of sales.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalesPage {
    /// The sales, by id.
    pub sales: Vec<ListedSale>,
    /// The sale after which the next page begins; `None` at the end.
    pub next: Option<SaleId>,
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
    /// The id of every sale that is not archived, in order.
    fn sales(&self) -> impl Future<Output = Stored<Vec<SaleId>>> + Send;
    /// At most `most` sales that are not archived, by id, after a sale if one is named.
    fn listed(
        &self,
        after: Option<&SaleId>,
        most: u16,
    ) -> impl Future<Output = Stored<SalesPage>> + Send;
    /// At most `most` trains that call at `from` on a day by the clocks there, and at `to` later, by time,
    /// after a call if one is named. It may name a train that has other times by now, or none.
    fn trains(
        &self,
        day: Day,
        from: &StopLabel,
        to: &StopLabel,
        after: Option<&CallMark>,
        most: u16,
    ) -> impl Future<Output = Stored<TrainsPage>> + Send;
    /// The map of a sale as it is now; `None` if it has none, or there is no such sale.
    fn map(&self, id: &SaleId) -> impl Future<Output = Stored<Option<MapDocument>>> + Send;
    /// Writes a sale and its map if its version is still `replaces` (`None`: if it is new) and it is not
    /// archived.
    fn publish(
        &self,
        file: &SaleFile,
        replaces: Option<u64>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Takes the lease to load a sale as `epoch` until `until`, if nobody has one at `now` and it is
    /// not archived. The name of the load is its fencing token. Whoever archives a sale takes the lease
    /// too.
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
    /// Archives a sale of this version for good, under the lease that `epoch` has taken last: nobody
    /// publishes or loads it any more. It stays listed until [`Catalogue::delist`].
    fn retire(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        version: u64,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Takes an archived sale, whose keys are removed from Redis, off the list.
    fn delist(&self, id: &SaleId) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Keeps a snapshot of a sale's tokens under its minute, in place of an earlier one of the same. It is
    /// kept for [`TOKEN_SNAPSHOTS_DAYS`] at least.
    fn keep_tokens(
        &self,
        id: &SaleId,
        snapshot: &TokenSnapshot,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// The snapshots of a sale's tokens that are kept from the minute of `since` on, oldest first.
    fn kept_tokens(
        &self,
        id: &SaleId,
        since: Timestamp,
    ) -> impl Future<Output = Stored<Vec<TokenSnapshot>>> + Send;
}
