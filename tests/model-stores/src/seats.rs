//! Redis: the inventories of every sale, and what is read of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use engine::domain::basics::ids::{Epoch, InventoryId, TierId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{HoldRecord, Inventory, Terms, TierGrid};
use engine::domain::sale::Sale;
use engine::ports::{InventoryCounts, StoreError, Stored};

/// The inventories that Redis knows. The scripts are the methods of [`Inventory`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SeatsModel {
    inventories: BTreeMap<InventoryId, Inventory>,
}

impl SeatsModel {
    /// An inventory, to run a script on; it begins empty.
    pub fn of(&mut self, inventory: &InventoryId) -> &mut Inventory {
        self.inventories.entry(inventory.clone()).or_default()
    }

    /// An inventory, if anything was ever asked of it.
    #[must_use]
    pub fn get(&self, inventory: &InventoryId) -> Option<&Inventory> {
        self.inventories.get(inventory)
    }

    /// Removes an inventory. What Redis removes last, the bitmaps, no script reaches without the
    /// epoch, which it removes first: the model removes them at once.
    pub fn unload(&mut self, inventory: &InventoryId) {
        self.inventories.remove(inventory);
    }

    /// The inventories that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = (&InventoryId, &Inventory)> {
        self.inventories.iter().filter(|(_, inventory)| inventory.loaded.is_some())
    }

    /// Each inventory of a sale, empty if Redis does not have it.
    pub fn of_sale<'a>(
        &'a self,
        sale: &Sale,
    ) -> impl Iterator<Item = (InventoryId, Cow<'a, Inventory>)> {
        sale.inventories().into_iter().map(|id| {
            let inventory = self.get(&id).map_or_else(Cow::default, Cow::Borrowed);
            (id, inventory)
        })
    }

    /// The epoch of an inventory.
    #[must_use]
    pub fn epoch(&self, inventory: &InventoryId) -> Option<Epoch> {
        let (epoch, _) = self.get(inventory)?.loaded.as_ref()?;
        Some(epoch.clone())
    }

    /// The epoch and the terms of an inventory.
    #[must_use]
    pub fn head(&self, inventory: &InventoryId) -> Option<(Epoch, Terms)> {
        self.get(inventory)?.loaded.clone()
    }

    #[must_use]
    pub fn record(&self, inventory: &InventoryId, order: OrderNumber) -> Option<HoldRecord> {
        self.get(inventory)?.holds.get(&order).cloned()
    }

    /// Orders whose deadline has passed, earliest first.
    #[must_use]
    pub fn due(&self, inventory: &InventoryId, now: Timestamp, most: usize) -> Vec<OrderNumber> {
        self.get(inventory).map_or_else(Vec::new, |inventory| inventory.due(now, most))
    }

    fn grid_of(&self, inventory: &InventoryId, tier: &TierId) -> Option<&TierGrid> {
        self.get(inventory)?.tiers.get(tier)
    }

    /// The number of seat-legs that are taken.
    #[must_use]
    pub fn count_taken(&self, inventory: &InventoryId, tiers: &[TierId]) -> u64 {
        let grids = tiers.iter().filter_map(|tier| self.grid_of(inventory, tier));
        let bitmaps = grids.flat_map(|grid| &grid.taken);
        bitmaps.flatten().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// The number of orders that hold seats.
    #[must_use]
    pub fn count_holds(&self, inventory: &InventoryId) -> u64 {
        self.get(inventory).map_or(0, |inventory| inventory.holds.len() as u64)
    }

    /// What is taken and held in an inventory; `None` if it is not loaded.
    #[must_use]
    pub fn count_left(&self, inventory: &InventoryId, tiers: &[TierId]) -> Option<InventoryCounts> {
        self.epoch(inventory)?;
        let taken = |tier| self.count_taken(inventory, std::slice::from_ref(tier));
        let taken = tiers.iter().map(taken).collect();
        Some(InventoryCounts { taken, holds: self.count_holds(inventory) })
    }

    /// The bitmaps of one tier.
    ///
    /// # Errors
    /// `Unavailable` if the tier is not loaded.
    pub fn grid(&self, inventory: &InventoryId, tier: &TierId) -> Stored<TierGrid> {
        let absent =
            || StoreError::Unavailable(format!("tier {tier} of {inventory} is not loaded"));
        self.grid_of(inventory, tier).cloned().ok_or_else(absent)
    }

    /// Every hold of an inventory.
    #[must_use]
    pub fn holds(&self, inventory: &InventoryId) -> Vec<(OrderNumber, HoldRecord)> {
        let holds = self.get(inventory).into_iter().flat_map(|inventory| &inventory.holds);
        holds.map(|(order, record)| (*order, record.clone())).collect()
    }
}
