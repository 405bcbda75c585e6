//! Redis: the inventory of every sale, and what is read of it.

use std::collections::BTreeMap;

use engine::domain::ids::{Epoch, Legs, SaleId, TierId};
use engine::domain::inventory::{HoldRecord, Inventory, Terms, TierGrid};
use engine::domain::number::OrderNumber;
use engine::domain::time::Timestamp;
use engine::ports::{StoreError, Stored};

/// The sales that Redis knows. The scripts are the methods of [`Inventory`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SeatsModel {
    sales: BTreeMap<SaleId, Inventory>,
}

impl SeatsModel {
    /// The inventory of a sale, to run a script on; it begins empty.
    pub fn of(&mut self, sale: &SaleId) -> &mut Inventory {
        self.sales.entry(sale.clone()).or_default()
    }

    /// The inventory of a sale, if anything was ever asked of it.
    #[must_use]
    pub fn get(&self, sale: &SaleId) -> Option<&Inventory> {
        self.sales.get(sale)
    }

    /// Removes all of a sale. What Redis removes last, the bitmaps, no script reaches without the
    /// epoch, which it removes first: the model removes them at once.
    pub fn unload(&mut self, sale: &SaleId) {
        self.sales.remove(sale);
    }

    /// The sales that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = (&SaleId, &Inventory)> {
        self.sales.iter().filter(|(_, inventory)| inventory.loaded.is_some())
    }

    /// The epoch of a sale.
    #[must_use]
    pub fn epoch(&self, sale: &SaleId) -> Option<Epoch> {
        let (epoch, _) = self.get(sale)?.loaded.as_ref()?;
        Some(epoch.clone())
    }

    /// The epoch and the terms of a sale.
    #[must_use]
    pub fn head(&self, sale: &SaleId) -> Option<(Epoch, Terms)> {
        self.get(sale)?.loaded.clone()
    }

    /// An order's hold.
    #[must_use]
    pub fn record(&self, sale: &SaleId, order: OrderNumber) -> Option<HoldRecord> {
        self.get(sale)?.holds.get(&order).cloned()
    }

    /// Orders whose deadline has passed, earliest first.
    #[must_use]
    pub fn due(&self, sale: &SaleId, now: Timestamp, most: usize) -> Vec<OrderNumber> {
        self.get(sale).map_or_else(Vec::new, |inventory| inventory.due(now, most))
    }

    fn grid_of(&self, sale: &SaleId, tier: &TierId) -> Option<&TierGrid> {
        self.get(sale)?.tiers.get(tier)
    }

    /// What is taken in each of some tiers on any leg of a journey.
    #[must_use]
    pub fn taken(&self, sale: &SaleId, tiers: &[TierId], legs: Legs) -> Vec<Vec<u8>> {
        let bits =
            |tier| self.grid_of(sale, tier).map_or_else(Vec::new, |grid| grid.taken_over(legs));
        tiers.iter().map(bits).collect()
    }

    /// The number of seat-legs that are taken.
    #[must_use]
    pub fn count_taken(&self, sale: &SaleId, tiers: &[TierId], leg_count: u16) -> u64 {
        let grids = tiers.iter().filter_map(|tier| self.grid_of(sale, tier));
        let bitmaps = grids.flat_map(|grid| grid.taken.iter().take(usize::from(leg_count)));
        bitmaps.flatten().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// The number of orders that hold seats.
    #[must_use]
    pub fn count_holds(&self, sale: &SaleId) -> u64 {
        self.get(sale).map_or(0, |inventory| inventory.holds.len() as u64)
    }

    /// The bitmaps of one tier.
    ///
    /// # Errors
    /// `Unavailable` if the tier is not loaded.
    pub fn grid(&self, sale: &SaleId, tier: &TierId) -> Stored<TierGrid> {
        let absent = || StoreError::Unavailable(format!("tier {tier} of {sale} is not loaded"));
        self.grid_of(sale, tier).cloned().ok_or_else(absent)
    }

    /// Every hold of a sale.
    #[must_use]
    pub fn holds(&self, sale: &SaleId) -> Vec<(OrderNumber, HoldRecord)> {
        let holds = self.get(sale).into_iter().flat_map(|inventory| &inventory.holds);
        holds.map(|(order, record)| (*order, record.clone())).collect()
    }
}
