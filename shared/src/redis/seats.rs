//! The inventories in Redis: a script for each command, and plain reads.

use std::sync::Arc;

use super::connection::Connection;
use super::script::Scripts;
use super::{hold, load, mark, reads, recount, release, repair, restore, sell, unload, unsell};
use engine::domain::basics::ids::{Epoch, InventoryId, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{
    Hold, HoldRecord, HoldReply, LoadPart, LoadReply, Mark, MarkReply, Recount, RecountReply,
    Release, ReleaseReply, Repair, RepairReply, Restore, RestoreReply, Sell, SellReply, Terms,
    TierGrid, Unsell, UnsellReply,
};
use engine::ports::{InventoryCounts, Seats, StoreError, Stored};

/// Most attempts of a load's first part: it starts over when another load came between its two steps.
const LOAD_ATTEMPTS: u32 = 8;

/// The inventories in Redis; the rules are in [`engine::domain::inventory`].
#[derive(Debug, Clone)]
pub struct RedisSeats {
    connection: Connection,
    scripts: Arc<Scripts>,
}

impl RedisSeats {
    /// The inventory behind a connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self::with_scripts(connection, Scripts::standard())
    }

    /// The inventory with scripts of one's own, for tests.
    #[must_use]
    pub fn with_scripts(connection: Connection, scripts: Arc<Scripts>) -> Self {
        Self { connection, scripts }
    }

    /// The request that [`Seats::hold`] sends first, for measuring what it costs without the adapter.
    ///
    /// # Errors
    /// As [`Seats::hold`], if two lines have the same tier.
    pub fn hold_request(&self, command: &Hold) -> Stored<redis::Cmd> {
        Ok(hold::encode(&self.scripts.hold, command)?.by_hash())
    }
}

impl Seats for RedisSeats {
    async fn load_part(&self, part: &LoadPart) -> Stored<LoadReply> {
        let inventory = &part.load.inventory;
        for _ in 0..LOAD_ATTEMPTS {
            let old_tiers = match part.place {
                0 => reads::tiers(&self.connection, inventory).await?,
                _ => String::new(),
            };
            let call = load::encode(&self.scripts.load, part, &old_tiers)?;
            if let Some(reply) = load::decode(&call.send(&self.connection).await?)? {
                return Ok(reply);
            }
        }
        Err(StoreError::Unavailable(format!("inventory {inventory} is being loaded by others")))
    }

    async fn hold(&self, command: &Hold) -> Stored<HoldReply> {
        let call = hold::encode(&self.scripts.hold, command)?;
        hold::decode(&call.send(&self.connection).await?)
    }

    async fn sell(&self, command: &Sell) -> Stored<SellReply> {
        let call = sell::encode(&self.scripts.sell, command);
        sell::decode(&call.send(&self.connection).await?)
    }

    async fn unsell(&self, command: &Unsell) -> Stored<UnsellReply> {
        let call = unsell::encode(&self.scripts.unsell, command);
        unsell::decode(&call.send(&self.connection).await?)
    }

    async fn release(&self, command: &Release) -> Stored<ReleaseReply> {
        let call = release::encode(&self.scripts.release, command);
        release::decode(&call.send(&self.connection).await?)
    }

    async fn mark(&self, command: &Mark) -> Stored<MarkReply> {
        let call = mark::encode(&self.scripts.mark, command);
        mark::decode(&call.send(&self.connection).await?)
    }

    async fn restore(&self, command: &Restore) -> Stored<RestoreReply> {
        let call = restore::encode(&self.scripts.restore, command);
        restore::decode(&call.send(&self.connection).await?)
    }

    async fn repair(&self, command: &Repair) -> Stored<RepairReply> {
        let call = repair::encode(&self.scripts.repair, command);
        repair::decode(&call.send(&self.connection).await?)
    }

    async fn recount(&self, command: &Recount) -> Stored<RecountReply> {
        let call = recount::encode(&self.scripts.recount, command);
        recount::decode(&call.send(&self.connection).await?)
    }

    async fn unload(&self, inventory: &InventoryId, tiers: &[TierId]) -> Stored<()> {
        unload::unload(&self.connection, inventory, tiers).await
    }

    fn epoch(&self, inventory: &InventoryId) -> impl Future<Output = Stored<Option<Epoch>>> + Send {
        reads::epoch(&self.connection, inventory)
    }

    fn head(
        &self,
        inventory: &InventoryId,
    ) -> impl Future<Output = Stored<Option<(Epoch, Terms)>>> + Send {
        reads::head(&self.connection, inventory)
    }

    fn record(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<HoldRecord>>> + Send {
        reads::record(&self.connection, inventory, order)
    }

    fn due(
        &self,
        inventory: &InventoryId,
        now: Timestamp,
        most: usize,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send {
        reads::due(&self.connection, inventory, now, most)
    }

    fn count_taken(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<u64>> + Send {
        reads::count_taken(&self.connection, inventory, tiers)
    }

    fn count_holds(&self, inventory: &InventoryId) -> impl Future<Output = Stored<u64>> + Send {
        reads::count_holds(&self.connection, inventory)
    }

    fn count_left(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<Option<InventoryCounts>>> + Send {
        reads::count_left(&self.connection, inventory, tiers)
    }

    fn grid(
        &self,
        inventory: &InventoryId,
        tier: &TierId,
        legs: u16,
    ) -> impl Future<Output = Stored<TierGrid>> + Send {
        reads::grid(&self.connection, inventory, tier, legs)
    }

    fn holds(
        &self,
        inventory: &InventoryId,
    ) -> impl Future<Output = Stored<Vec<(OrderNumber, HoldRecord)>>> + Send {
        reads::holds(&self.connection, inventory)
    }

    fn bought(
        &self,
        inventory: &InventoryId,
        users: &[UserId],
    ) -> impl Future<Output = Stored<Vec<Tickets>>> + Send {
        reads::bought(&self.connection, inventory, users)
    }
}
