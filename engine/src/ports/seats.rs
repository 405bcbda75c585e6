//! The port to the inventory of seats in Redis.

use std::future::Future;

use super::Stored;
use crate::domain::basics::ids::{Epoch, InventoryId, TierId, UserId};
use crate::domain::basics::limits::MAX_LINES_PER_ORDER;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::{
    Hold, HoldRecord, HoldReply, Load, LoadPart, LoadReply, Mark, MarkReply, PartLimit, Recount,
    RecountReply, Release, ReleaseReply, Repair, RepairReply, Restore, RestoreReply, Sell,
    SellReply, Terms, TierGrid, Unsell, UnsellReply,
};
use crate::domain::sale::{MAX_LEGS, MAX_TIERS};

/// The most arguments of one request to the cache (ElastiCache Serverless: "Configuration and limits",
/// 3,999 in the stricter of two copies, 39,999 in the other).
pub const MAX_REQUEST_ARGUMENTS: usize = 3_999;

/// What every script is sent besides its groups: the command, the script, the number of keys, and up to
/// nine keys of the sale and plain arguments together.
const PLAIN_ARGUMENTS: usize = 12;
/// The most arguments of `hold`: for each line the tier, its bitmap, and seven arguments.
const MAX_HOLD_ARGUMENTS: usize = PLAIN_ARGUMENTS + MAX_LINES_PER_ORDER * (2 + 7);
const _: () = assert!(MAX_HOLD_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The most arguments of `sell`, `unsell`, `release`, `mark` and `restore`: for each line the tier, its counters,
/// two bitmaps, and what was seen of the counters.
const MAX_SETTLING_ARGUMENTS: usize = PLAIN_ARGUMENTS + MAX_LINES_PER_ORDER * (4 + 1);
const _: () = assert!(MAX_SETTLING_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The most arguments of `repair`: two bitmaps, and for each leg that leg and its seats.
const MAX_REPAIR_ARGUMENTS: usize = PLAIN_ARGUMENTS + 2 + 2 * MAX_LEGS;
const _: () = assert!(MAX_REPAIR_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// What a part of `load` is sent besides its tiers, holds and buyers: the command, the script, the number
/// of keys, four keys of the sale and fourteen plain arguments.
const PLAIN_LOAD_ARGUMENTS: usize = 21;
/// The most arguments of a part of `load`, but for the keys that it removes: a tier is never divided.
const MAX_LOAD_ARGUMENTS: usize = PLAIN_LOAD_ARGUMENTS + PartLimit::STANDARD.arguments;
const _: () = assert!(PartLimit::TIER_ARGUMENTS <= PartLimit::STANDARD.arguments);
// A first part has room besides for the keys of every tier of before.
const _: () = assert!(MAX_LOAD_ARGUMENTS + 4 * MAX_TIERS <= MAX_REQUEST_ARGUMENTS);

/// What is taken and held in an inventory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InventoryCounts {
    /// Seat-legs of each tier that was asked for which are taken, places not for sale included.
    pub taken: Vec<u64>,
    /// Number of orders that hold seats.
    pub holds: u64,
}

/// The inventories of seats (Redis). Each method that is given a command is one script, on one inventory;
/// the rules are in [`crate::domain::inventory`].
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if the reply was lost.
pub trait Seats: Send + Sync {
    /// Puts a part of a load in place; the last one starts the sale, or replaces its terms.
    fn load_part(&self, part: &LoadPart) -> impl Future<Output = Stored<LoadReply>> + Send;
    /// [`Seats::load_part`] of every part of a load, for what keeps no lease meanwhile.
    fn load(&self, command: &Load) -> impl Future<Output = Stored<LoadReply>> + Send {
        let parts = command.clone().into_parts(PartLimit::STANDARD);
        async move {
            let mut reply = LoadReply::Stale(None);
            for part in parts {
                reply = self.load_part(&part).await?;
                if let LoadReply::Stale(_) = reply {
                    break;
                }
            }
            Ok(reply)
        }
    }
    /// Holds the lines of an order, or none.
    fn hold(&self, command: &Hold) -> impl Future<Output = Stored<HoldReply>> + Send;
    /// Marks an order's seats sold.
    fn sell(&self, command: &Sell) -> impl Future<Output = Stored<SellReply>> + Send;
    /// Frees the seats of tickets that were refunded.
    fn unsell(&self, command: &Unsell) -> impl Future<Output = Stored<UnsellReply>> + Send;
    /// Gives a hold back.
    fn release(&self, command: &Release) -> impl Future<Output = Stored<ReleaseReply>> + Send;
    /// Gives a hold back, but for what others own.
    fn mark(&self, command: &Mark) -> impl Future<Output = Stored<MarkReply>> + Send;
    /// Writes a forgotten hold.
    fn restore(&self, command: &Restore) -> impl Future<Output = Stored<RestoreReply>> + Send;
    /// Frees leaked seat-legs.
    fn repair(&self, command: &Repair) -> impl Future<Output = Stored<RepairReply>> + Send;
    /// Corrects how many tickets a buyer has.
    fn recount(&self, command: &Recount) -> impl Future<Output = Stored<RecountReply>> + Send;

    /// Removes every key of an inventory whose sale is archived: first what the scripts look for, so that none
    /// answers from what is left, then tier by tier. Each command is bounded; repeating it finishes
    /// what was cut off.
    fn unload(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<()>> + Send;

    /// The epoch of an inventory; `None` if it is not loaded.
    fn epoch(&self, inventory: &InventoryId) -> impl Future<Output = Stored<Option<Epoch>>> + Send;
    /// The epoch of an inventory and the terms that its scripts check; `None` if it is not loaded.
    fn head(
        &self,
        inventory: &InventoryId,
    ) -> impl Future<Output = Stored<Option<(Epoch, Terms)>>> + Send;
    /// Record of the hold of an order in an inventory.
    fn record(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<HoldRecord>>> + Send;
    /// At most `most` orders whose deadline has passed, earliest first.
    fn due(
        &self,
        inventory: &InventoryId,
        now: Timestamp,
        most: usize,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send;
    /// Number of seat-legs of tiers of the inventory that are taken, places not for sale included.
    fn count_taken(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<u64>> + Send;
    /// Number of orders that hold seats now.
    fn count_holds(&self, inventory: &InventoryId) -> impl Future<Output = Stored<u64>> + Send;
    /// What is taken and held in an inventory, in one request; `None` if it is not loaded, or was loaded again
    /// in between.
    fn count_left(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<Option<InventoryCounts>>> + Send;
    /// The bitmaps of one tier, with `freed` counters that were read before them.
    fn grid(
        &self,
        inventory: &InventoryId,
        tier: &TierId,
        leg_count: u16,
    ) -> impl Future<Output = Stored<TierGrid>> + Send;
    /// Every hold of an inventory at one moment, but for those that are given back or sold while they are
    /// read.
    fn holds(
        &self,
        inventory: &InventoryId,
    ) -> impl Future<Output = Stored<Vec<(OrderNumber, HoldRecord)>>> + Send;
    /// How many tickets each of some buyers holds or has bought in an inventory, in their order.
    fn bought(
        &self,
        inventory: &InventoryId,
        users: &[UserId],
    ) -> impl Future<Output = Stored<Vec<Tickets>>> + Send;
}
