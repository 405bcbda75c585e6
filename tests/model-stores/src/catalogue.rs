//! The catalogue as DynamoDB keeps it: a sale's file under its version, the epoch of its last load,
//! and the lease under which it is loaded.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use engine::domain::guard::{Guard, stands};
use engine::domain::ids::{Epoch, SaleId};
use engine::domain::sale::{Sale, SaleFile};
use engine::domain::time::Timestamp;
use engine::ports::{ChangeReply, Published, StoreError, Stored};

/// One sale of the catalogue.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The sale, laid out from its file.
    pub sale: Arc<Sale>,
    /// Counts every publication.
    pub version: u64,
    /// The epoch of its last load.
    pub epoch: Option<Epoch>,
    /// Who has the lease to load it: the epoch of that load, and until when.
    pub lease: Option<(Epoch, Timestamp)>,
}

impl Listed {
    /// The entry as a reader gets it.
    #[must_use]
    pub fn published(&self) -> Published {
        let Self { sale, version, epoch, lease: _ } = self;
        Published { sale: Arc::clone(sale), epoch: epoch.clone(), version: *version }
    }
}

impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        let Self { sale, version, epoch, lease } = self;
        let is_same_file = Arc::ptr_eq(sale, &other.sale) || sale.file() == other.sale.file();
        (version, epoch, lease) == (&other.version, &other.epoch, &other.lease) && is_same_file
    }
}

impl Eq for Listed {}

impl Hash for Listed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { sale, version, epoch, lease } = self;
        // Of a file only what an operator changes while a sale runs; the rest is compared.
        let file = sale.file();
        (&file.sale, file.state, file.limit_per_buyer, file.opens_at, file.closes_at).hash(state);
        (version, epoch, lease).hash(state);
    }
}

/// Everything that DynamoDB knows of sales, statistics aside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CatalogueModel {
    /// Every sale.
    pub sales: BTreeMap<SaleId, Listed>,
}

impl CatalogueModel {
    /// A sale as it is now.
    #[must_use]
    pub fn sale(&self, id: &SaleId) -> Option<Published> {
        self.sales.get(id).map(Listed::published)
    }

    /// Every sale's id, in order.
    #[must_use]
    pub fn sales(&self) -> Vec<SaleId> {
        self.sales.keys().cloned().collect()
    }

    /// Writes a sale if its version is still `replaces`.
    ///
    /// # Errors
    /// `Contract` for a file with defects: nobody publishes one.
    pub fn publish(&mut self, file: &SaleFile, replaces: Option<u64>) -> Stored<ChangeReply> {
        if self.sales.get(&file.sale).map(|listed| listed.version) != replaces {
            return Ok(ChangeReply::Conflict);
        }
        let broken = |defects| StoreError::Contract(format!("sale {}: {defects:?}", file.sale));
        let sale = Arc::new(Sale::new(file.clone()).map_err(broken)?);
        let version = replaces.unwrap_or(0) + 1;
        match self.sales.get_mut(&file.sale) {
            Some(listed) => (listed.sale, listed.version) = (sale, version),
            None => {
                let listed = Listed { sale, version, epoch: None, lease: None };
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
        let is_free = |listed: &&mut Listed| listed.lease.as_ref().is_none_or(has_run_out);
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

    /// The sale, if `epoch` has taken its lease last and not ended it.
    fn holder(&mut self, id: &SaleId, epoch: &Epoch) -> Option<&mut Listed> {
        let is_holder = |listed: &&mut Listed| {
            let holder = listed.lease.as_ref().map(|(holder, _)| holder);
            !stands(Guard::LeaseFence) || holder == Some(epoch)
        };
        self.sales.get_mut(id).filter(is_holder)
    }
}
