//! The catalogue as DynamoDB keeps it: a sale's file under its version, the epoch of its last load,
//! and the lease under which it is loaded.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use engine::domain::admission::gate::tokens::TokenSnapshot;
use engine::domain::basics::bytes;
use engine::domain::basics::calendar::Day;
use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::{Epoch, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::archive::Lifecycle;
use engine::domain::sale::attachment::Attachment;
use engine::domain::sale::timetable::{
    CallMark, ListedStop, StopLabel, StopMark, StopsPage, TrainCall, TrainsPage, calls,
    stops_by_day,
};
use engine::domain::sale::{FileMap, MapDocument, Sale, SaleFile, SeatMap};
use engine::ports::{
    ChangeReply, ListedSale, ListedTerms, Published, SalesPage, StoreError, Stored,
};

/// One sale of the catalogue.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The sale, laid out from its file.
    pub sale: Arc<Sale>,
    pub map: Option<MapDocument>,
    pub version: u64,
    /// The epoch of its last load.
    pub epoch: Option<Epoch>,
    /// Who has the lease to load it: the epoch of that load, and until when.
    pub lease: Option<(Epoch, Timestamp)>,
    /// Where it is in its life.
    pub lifecycle: Lifecycle,
}

impl Listed {
    /// The entry as a reader gets it.
    #[must_use]
    pub fn published(&self) -> Published {
        let Self { sale, map, version, epoch, lease: _, lifecycle } = self;
        Published {
            sale: Arc::clone(sale),
            map: map.as_ref().map(|map| map.hash),
            epoch: epoch.clone(),
            version: *version,
            lifecycle: *lifecycle,
        }
    }
}

impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        let Self { sale, map, version, epoch, lease, lifecycle } = self;
        let is_same_file = Arc::ptr_eq(sale, &other.sale) || sale.file() == other.sale.file();
        let same = (&other.map, &other.version, &other.epoch, &other.lease, &other.lifecycle);
        (map, version, epoch, lease, lifecycle) == same && is_same_file
    }
}

impl Eq for Listed {}

impl Hash for Listed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { sale, map, version, epoch, lease, lifecycle } = self;
        // Of a file only what an operator changes while a sale runs; the rest is compared.
        let file = sale.file();
        (&file.sale, file.state, file.limit_per_buyer, file.opens_at, file.closes_at).hash(state);
        (map, version, epoch, lease, lifecycle).hash(state);
    }
}

/// Everything that DynamoDB knows of sales, statistics aside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CatalogueModel {
    pub sales: BTreeMap<SaleId, Listed>,
    /// Pictures and documents of events.
    pub attachments: BTreeMap<bytes::Hash, Attachment>,
    /// The snapshots of sales' tokens, by minute. They are kept for ever here.
    pub tokens: BTreeMap<(SaleId, i64), TokenSnapshot>,
}

impl CatalogueModel {
    /// A sale as it is now.
    #[must_use]
    pub fn sale(&self, id: &SaleId) -> Option<Published> {
        self.sales.get(id).map(Listed::published)
    }

    /// At most `most` listed trains that call at a stop on a day, have not left there, and call at another one later, after
    /// a call.
    #[must_use]
    pub fn trains(
        &self,
        day: Day,
        from: &StopLabel,
        to: &StopLabel,
        after: Option<&CallMark>,
        now: Timestamp,
        most: u16,
    ) -> TrainsPage {
        let all = self.all_listed().flat_map(|(_, listed)| calls(listed.sale.file()));
        let is_it = |call: &TrainCall| {
            call.day == day
                && call.stop == *from
                && call.later.contains(to)
                && call.departs.is_none_or(|departs| departs > now)
                && after.is_none_or(|after| call.mark > *after)
        };
        let mut calls: Vec<CallMark> = all.filter(is_it).map(|call| call.mark).collect();
        calls.sort();
        let is_more = calls.len() > usize::from(most);
        calls.truncate(most.into());
        let next = calls.last().filter(|_| is_more).cloned();
        TrainsPage { calls, next }
    }

    /// At most `most` stops of the listed trains of a day, after one of them.
    #[must_use]
    pub fn stops(&self, day: Day, after: Option<&StopMark>, most: u16) -> StopsPage {
        let all = self.all_listed().flat_map(|(_, listed)| stops_by_day(listed.sale.file()));
        let is_it = |(on, stop): &(Day, ListedStop)| {
            *on == day && after.is_none_or(|after| stop.mark > *after)
        };
        let by_mark: BTreeMap<StopMark, ListedStop> =
            all.filter(is_it).map(|(_, stop)| (stop.mark.clone(), stop)).collect();
        let is_more = by_mark.len() > usize::from(most);
        let stops: Vec<ListedStop> = by_mark.into_values().take(most.into()).collect();
        let next = stops.last().filter(|_| is_more).map(|last| last.mark.clone());
        StopsPage { stops, next }
    }

    /// The map of a sale.
    #[must_use]
    pub fn map(&self, id: &SaleId) -> Option<MapDocument> {
        self.sales.get(id)?.map.clone()
    }

    /// Keeps an attachment.
    pub fn keep_attachment(&mut self, attachment: &Attachment) {
        self.attachments.insert(attachment.hash(), attachment.clone());
    }

    /// The attachment of a hash.
    #[must_use]
    pub fn attachment(&self, hash: bytes::Hash) -> Option<Attachment> {
        self.attachments.get(&hash).cloned()
    }

    /// The sales that are listed, in order.
    fn all_listed(&self) -> impl Iterator<Item = (&SaleId, &Listed)> {
        self.sales.iter().filter(|(_, listed)| listed.lifecycle != Lifecycle::Archived)
    }

    /// The id of every listed sale, in order.
    #[must_use]
    pub fn sales(&self) -> Vec<SaleId> {
        self.all_listed().map(|(id, _)| id.clone()).collect()
    }

    /// At most `most` listed sales after a sale.
    #[must_use]
    pub fn listed(&self, after: Option<&SaleId>, most: u16) -> SalesPage {
        let of = |(id, listed): (&SaleId, &Listed)| ListedSale {
            sale: id.clone(),
            terms: Some(ListedTerms::from_file(listed.sale.file())),
        };
        let rest = self.all_listed().filter(|(id, _)| after.is_none_or(|after| *id > after));
        let mut sales: Vec<ListedSale> = rest.map(of).take(usize::from(most) + 1).collect();
        let is_more = sales.len() > usize::from(most);
        sales.truncate(most.into());
        let next = sales.last().filter(|_| is_more).map(|last| last.sale.clone());
        SalesPage { sales, next }
    }

    /// Keeps a snapshot of a sale's tokens under its minute, unless a later one is there.
    pub fn keep_tokens(&mut self, id: &SaleId, snapshot: &TokenSnapshot) {
        let minute = (id.clone(), TokenSnapshot::minute(snapshot.at));
        if self.tokens.get(&minute).is_none_or(|kept| kept.at <= snapshot.at) {
            self.tokens.insert(minute, *snapshot);
        }
    }

    /// The snapshots of a sale's tokens from a minute on, oldest first.
    #[must_use]
    pub fn kept_tokens(&self, id: &SaleId, since: Timestamp) -> Vec<TokenSnapshot> {
        let all = (id.clone(), TokenSnapshot::minute(since))..=(id.clone(), i64::MAX);
        self.tokens.range(all).map(|(_, snapshot)| *snapshot).collect()
    }

    /// Writes a sale if its version is still `replaces`.
    ///
    /// # Errors
    /// `Contract` for a file with defects: nobody publishes one.
    pub fn publish(&mut self, file: &SaleFile, replaces: Option<u64>) -> Stored<ChangeReply> {
        let existing = self.sales.get(&file.sale);
        let is_over = existing.is_some_and(|listed| listed.lifecycle.is_over());
        if existing.map(|listed| listed.version) != replaces || is_over {
            return Ok(ChangeReply::Conflict);
        }
        let broken = |defects| StoreError::Contract(format!("sale {}: {defects:?}", file.sale));
        let map = file.map.as_ref().and_then(FileMap::own).map(SeatMap::document);
        let sale = Arc::new(Sale::new(file.without_map()).map_err(broken)?);
        let version = replaces.unwrap_or(0) + 1;
        match self.sales.get_mut(&file.sale) {
            Some(listed) => (listed.sale, listed.map, listed.version) = (sale, map, version),
            None => {
                let lifecycle = Lifecycle::Listed;
                let (epoch, lease) = (None, None);
                let listed = Listed { sale, map, version, epoch, lease, lifecycle };
                self.sales.insert(file.sale.clone(), listed);
            }
        }
        Ok(ChangeReply::Done)
    }

    /// Takes the lease to load a sale as `epoch`, if nobody has one at `now`.
    pub fn lease(
        &mut self,
        id: &SaleId,
        epoch: &Epoch,
        now: Timestamp,
        until: Timestamp,
    ) -> ChangeReply {
        let has_run_out = |(_, until): &(Epoch, Timestamp)| *until <= now;
        let is_free = |listed: &&mut Listed| {
            listed.lease.as_ref().is_none_or(has_run_out) && !listed.lifecycle.is_over()
        };
        match self.sales.get_mut(id).filter(is_free) {
            Some(listed) => {
                listed.lease = Some((epoch.clone(), until));
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        }
    }

    /// Moves the end of the lease that `epoch` has.
    pub fn prolong(&mut self, id: &SaleId, epoch: &Epoch, until: Timestamp) -> ChangeReply {
        match self.holder(id, epoch) {
            Some(listed) => {
                listed.lease = Some((epoch.clone(), until));
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        }
    }

    /// Names the epoch that was loaded under its lease, and ends the lease.
    pub fn loaded(&mut self, id: &SaleId, epoch: &Epoch) -> ChangeReply {
        match self.holder(id, epoch) {
            Some(listed) => {
                listed.epoch = Some(epoch.clone());
                listed.lease = None;
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        }
    }

    /// Archives a sale of this version for good, under the lease that `epoch` has.
    pub fn retire(&mut self, id: &SaleId, epoch: &Epoch, version: u64) -> ChangeReply {
        match self.holder(id, epoch).filter(|listed| listed.version == version) {
            Some(listed) => {
                (listed.epoch, listed.lease) = (None, None);
                listed.lifecycle = Lifecycle::Unloading;
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        }
    }

    /// Takes an archived sale off the list.
    pub fn delist(&mut self, id: &SaleId) -> ChangeReply {
        match self.sales.get_mut(id).filter(|listed| listed.lifecycle.is_over()) {
            Some(listed) => {
                listed.lifecycle = Lifecycle::Archived;
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        }
    }

    /// The sale, if `epoch` has taken its lease last and not ended it, and it is not archived.
    fn holder(&mut self, id: &SaleId, epoch: &Epoch) -> Option<&mut Listed> {
        let is_holder = |listed: &&mut Listed| {
            let holder = listed.lease.as_ref().map(|(holder, _)| holder);
            let is_theirs = !stands(Guard::LeaseFence) || holder == Some(epoch);
            is_theirs && !listed.lifecycle.is_over()
        };
        self.sales.get_mut(id).filter(is_holder)
    }
}
