//! The port to the inventories of seats in Redis, and the bounds of the requests to it.

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

/// The arguments of every script besides its groups: the command, the script, the number of keys, and up to
/// nine keys of the sale and plain arguments together.
const PLAIN_ARGUMENTS: usize = 12;
/// The most arguments of `hold`: for each line the tier, its bitmap, and seven arguments.
const MAX_HOLD_ARGUMENTS: usize = PLAIN_ARGUMENTS + MAX_LINES_PER_ORDER * (2 + 7);
const _: () = assert!(MAX_HOLD_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The most arguments of `sell`, `unsell`, `release`, `mark` and `restore`: for each line the tier, its counters,
/// two bitmaps, and the values that the caller read from the counters.
const MAX_SETTLING_ARGUMENTS: usize = PLAIN_ARGUMENTS + MAX_LINES_PER_ORDER * (4 + 1);
const _: () = assert!(MAX_SETTLING_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The most arguments of `repair`: two bitmaps, and for each leg that leg and its seats.
const MAX_REPAIR_ARGUMENTS: usize = PLAIN_ARGUMENTS + 2 + 2 * MAX_LEGS;
const _: () = assert!(MAX_REPAIR_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The arguments of a part of `load` besides its tiers, holds and buyers: the command, the script, the number
/// of keys, four keys of the sale and fourteen plain arguments.
const PLAIN_LOAD_ARGUMENTS: usize = 21;
/// The most arguments of a part of `load`, but for the keys that it removes: a tier is never divided.
const MAX_LOAD_ARGUMENTS: usize = PLAIN_LOAD_ARGUMENTS + PartLimit::STANDARD.arguments;
const _: () = assert!(PartLimit::TIER_ARGUMENTS <= PartLimit::STANDARD.arguments);
// A first part also has room for the keys that it removes, those of every tier of the load before.
const _: () = assert!(MAX_LOAD_ARGUMENTS + 4 * MAX_TIERS <= MAX_REQUEST_ARGUMENTS);

/// The counts of an inventory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InventoryCounts {
    /// The number of taken seat-legs of each tier, in the order of the request; places not for sale count as taken.
    pub taken: Vec<u64>,
    /// The number of orders that hold seats.
    pub holds: u64,
}

/// The inventories of seats (Redis). Each method with a command runs one script on one inventory;
/// the rules are in [`crate::domain::inventory`].
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if the reply was lost.
pub trait Seats: Send + Sync {
    /// Writes one part of a load. The last part starts the sale, or replaces its terms.
    fn load_part(&self, part: &LoadPart) -> impl Future<Output = Stored<LoadReply>> + Send;
    /// Writes every part of a load with [`Seats::load_part`], and stops at the first that is stale. A caller that must
    /// prolong a lease between the parts writes them itself.
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
    /// Holds seats for every line of an order, or for none.
    fn hold(&self, command: &Hold) -> impl Future<Output = Stored<HoldReply>> + Send;
    /// Marks the seats of a paid order as sold.
    fn sell(&self, command: &Sell) -> impl Future<Output = Stored<SellReply>> + Send;
    /// Frees the seats of refunded tickets.
    fn unsell(&self, command: &Unsell) -> impl Future<Output = Stored<UnsellReply>> + Send;
    /// Frees the seats of an order's hold.
    fn release(&self, command: &Release) -> impl Future<Output = Stored<ReleaseReply>> + Send;
    /// Frees the seats of an order's hold after a claim conflict, except for the seat-legs that other orders own.
    fn mark(&self, command: &Mark) -> impl Future<Output = Stored<MarkReply>> + Send;
    /// Writes the hold of a pending order that Redis has forgotten.
    fn restore(&self, command: &Restore) -> impl Future<Output = Stored<RestoreReply>> + Send;
    /// Frees leaked seat-legs: taken in Redis, and owned by no order.
    fn repair(&self, command: &Repair) -> impl Future<Output = Stored<RepairReply>> + Send;
    /// Corrects the number of tickets that a buyer has, where Redis has too many.
    fn recount(&self, command: &Recount) -> impl Future<Output = Stored<RecountReply>> + Send;

    /// Removes every key of an inventory whose sale is archived: first the keys that the scripts look for, so that no
    /// script answers from the rest, then tier by tier. Each request is bounded, and repeating an interrupted call
    /// finishes it.
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
    /// The record of an order's hold in an inventory; `None` if there is none.
    fn record(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<HoldRecord>>> + Send;
    /// At most `most` orders whose holds have a deadline at or before `now`, earliest first.
    fn due(
        &self,
        inventory: &InventoryId,
        now: Timestamp,
        most: usize,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send;
    /// The number of taken seat-legs of some tiers together; places not for sale count as taken.
    fn count_taken(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<u64>> + Send;
    /// The number of orders that hold seats now.
    fn count_holds(&self, inventory: &InventoryId) -> impl Future<Output = Stored<u64>> + Send;
    /// The counts of an inventory in one request; `None` if the inventory is not loaded, or was loaded again
    /// in between.
    fn count_left(
        &self,
        inventory: &InventoryId,
        tiers: &[TierId],
    ) -> impl Future<Output = Stored<Option<InventoryCounts>>> + Send;
    /// The bitmaps of one tier, and its `freed` counters, which are read before the bitmaps.
    fn grid(
        &self,
        inventory: &InventoryId,
        tier: &TierId,
        leg_count: u16,
    ) -> impl Future<Output = Stored<TierGrid>> + Send;
    /// Every hold of an inventory at one moment, except for those that are released or sold during the call.
    fn holds(
        &self,
        inventory: &InventoryId,
    ) -> impl Future<Output = Stored<Vec<(OrderNumber, HoldRecord)>>> + Send;
    /// The number of tickets that each of some buyers holds or has bought in an inventory, in the order of `users`.
    fn bought(
        &self,
        inventory: &InventoryId,
        users: &[UserId],
    ) -> impl Future<Output = Stored<Vec<Tickets>>> + Send;
}
