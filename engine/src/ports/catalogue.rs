//! The port to the catalogue of sales in DynamoDB.

use std::future::Future;
use std::sync::Arc;

use super::Stored;
use super::orders::ChangeReply;
use crate::domain::admission::gate::tokens::TokenSnapshot;
use crate::domain::basics::bytes::{Hash, MapHash};
use crate::domain::basics::calendar::Day;
use crate::domain::basics::ids::{Epoch, SaleId};
use crate::domain::basics::money::Money;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::archive::Lifecycle;
use crate::domain::sale::attachment::{Attachment, AttachmentKind};
use crate::domain::sale::event::EventFacts;
use crate::domain::sale::timetable::{
    CallMark, StopLabel, StopMark, StopsPage, TrainRoute, TrainsPage,
};
use crate::domain::sale::{MapDocument, Sale, SaleFile, SaleState};

/// The least number of days for which the catalogue keeps a snapshot of a sale's tokens.
pub const TOKEN_SNAPSHOTS_DAYS: i64 = 7;

/// A sale as the catalogue has it.
#[derive(Debug, Clone)]
pub struct Published {
    /// The sale, without its map.
    pub sale: Arc<Sale>,
    /// The hash of the sale's map, if the sale has one: [`Catalogue::map`] reads the map.
    pub map: Option<MapHash>,
    /// The epoch of the sale's last load into Redis; `None` before the first load, and once the sale is archived.
    pub epoch: Option<Epoch>,
    /// The number of the publication: each publication of the sale has a higher one.
    pub version: u64,
    /// Whether the sale may still be loaded and sold.
    pub lifecycle: Lifecycle,
}

/// A sale as the list of sales has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSale {
    /// The sale's id.
    pub sale: SaleId,
    /// The sale's terms; `None` if the sale was last published before the list repeated terms.
    pub terms: Option<ListedTerms>,
}

/// The terms of a sale that the list of sales repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTerms {
    /// The title for people: 1 to 200 bytes.
    pub title: String,
    /// The time at which selling begins.
    pub opens_at: Timestamp,
    /// The time at which selling ends: of a train, when it leaves the last stop at which it can be boarded, at the latest.
    pub closes_at: Timestamp,
    /// Whether the sale is open, or paused by its operator.
    pub state: SaleState,
    /// True if the operator says that nothing is left.
    pub sold_out: bool,
    /// The price of the cheapest ticket; `None` if the sale was last published before the list repeated the price.
    pub price_from: Option<Money>,
    /// When and where the event is; `None` if nobody has said so, or if the sale was last published before the list
    /// repeated it.
    pub event: Option<EventFacts>,
    /// The route of a train; `None` of a sale without stops, and of one that was last published before the list
    /// repeated it.
    pub route: Option<TrainRoute>,
}

impl ListedTerms {
    /// The terms that the list repeats of a sale file.
    #[must_use]
    pub fn from_file(file: &SaleFile) -> Self {
        Self {
            title: file.title.clone(),
            opens_at: file.opens_at,
            closes_at: file.sells_until(),
            state: file.state,
            sold_out: file.sold_out,
            price_from: file.price_from(),
            event: file.event.as_ref().map(|event| event.kept().0),
            route: TrainRoute::from_file(file),
        }
    }
}

/// A page of the list of sales that are not archived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalesPage {
    /// The sales, in the order of their ids.
    pub sales: Vec<ListedSale>,
    /// The sale after which the next page begins; `None` at the end.
    pub next: Option<SaleId>,
}

/// The age that a sale may have when [`Catalogue::sale`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// A copy that is a few seconds old will do, as for terms that the scripts in Redis check again.
    Cached,
    /// The catalogue must be read now.
    Fresh,
}

/// The catalogue of sales (DynamoDB).
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError).
pub trait Catalogue: Send + Sync {
    /// The sale with an id, archived or not; `None` if nobody has published it.
    fn sale(
        &self,
        id: &SaleId,
        freshness: Freshness,
    ) -> impl Future<Output = Stored<Option<Published>>> + Send;
    /// The id of every sale that is not archived, in the order of the ids.
    fn sales(&self) -> impl Future<Output = Stored<Vec<SaleId>>> + Send;
    /// At most `most` sales that are not archived, in the order of their ids; those behind `after`, if it is given.
    fn listed(
        &self,
        after: Option<&SaleId>,
        most: u16,
    ) -> impl Future<Output = Stored<SalesPage>> + Send;
    /// At most `most` trains that call at `from` on `day`, by the clocks of that stop, and later at `to`, in the
    /// order of the call at `from`; those behind the call `after`, if it is given. The train of `after` may have
    /// other times by now, or be gone. Trains that have left `from` at `now` are left out where that is known.
    fn trains(
        &self,
        day: Day,
        from: &StopLabel,
        to: &StopLabel,
        after: Option<&CallMark>,
        now: Timestamp,
        most: u16,
    ) -> impl Future<Output = Stored<TrainsPage>> + Send;
    /// At most `most` stops of the trains of a day that are not archived, by name; those behind `after`, if it is given.
    /// The stops of a train that was last published before the catalogue kept them are not among them.
    fn stops(
        &self,
        day: Day,
        after: Option<&StopMark>,
        most: u16,
    ) -> impl Future<Output = Stored<StopsPage>> + Send;
    /// The map that a sale has now; `None` if the sale has no map, or there is no such sale.
    fn map(&self, id: &SaleId) -> impl Future<Output = Stored<Option<MapDocument>>> + Send;
    /// Keeps an attachment for good. The same bytes again change nothing.
    fn keep_attachment(&self, attachment: &Attachment) -> impl Future<Output = Stored<()>> + Send;
    /// The attachment of a hash; `None` if none is kept. One that was kept a moment ago is there.
    fn attachment(&self, hash: Hash) -> impl Future<Output = Stored<Option<Attachment>>> + Send;
    /// What the attachment of a hash is, without its bytes; `None` if none is kept.
    fn attachment_kind(
        &self,
        hash: Hash,
    ) -> impl Future<Output = Stored<Option<AttachmentKind>>> + Send;
    /// Writes a sale and its map, if the version in the catalogue is still `replaces` (`None`: there is no such
    /// sale) and the sale is not archived.
    fn publish(
        &self,
        file: &SaleFile,
        replaces: Option<u64>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Takes the lease to load a sale as `epoch` until `until`, if nobody has a lease at `now` and the sale is
    /// not archived. `epoch` is the fencing token of the lease. Whoever archives a sale takes the lease too.
    fn lease(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        now: Timestamp,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Moves the end of the lease to `until`. The change is a conflict if another load has taken the lease since, or
    /// if [`Catalogue::loaded`] has ended it. A caller gives the lease back by an `until` in the past.
    fn prolong(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        until: Timestamp,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records `epoch` as the one that is loaded, and ends its lease, if no other load has taken the lease since.
    fn loaded(
        &self,
        id: &SaleId,
        epoch: &Epoch,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Archives a sale for good, if its version is `version` and `epoch` has taken the last lease: from then on
    /// nobody can publish or load the sale. The sale stays in the list until [`Catalogue::delist`].
    fn retire(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        version: u64,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Takes an archived sale off the list. The caller has removed the sale's keys from Redis before.
    fn delist(&self, id: &SaleId) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Keeps a snapshot of a sale's tokens for at least [`TOKEN_SNAPSHOTS_DAYS`] days. A later snapshot of the same
    /// minute replaces an earlier one.
    fn keep_tokens(
        &self,
        id: &SaleId,
        snapshot: &TokenSnapshot,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// The kept snapshots of a sale's tokens from the minute of `since` on, oldest first.
    fn kept_tokens(
        &self,
        id: &SaleId,
        since: Timestamp,
    ) -> impl Future<Output = Stored<Vec<TokenSnapshot>>> + Send;
}
