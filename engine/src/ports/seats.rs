//! The port to the inventory of seats in Redis.

use std::future::Future;

use super::Stored;
use crate::domain::ids::{Epoch, Legs, SaleId, TierId};
use crate::domain::inventory::{
    Hold, HoldRecord, HoldReply, Load, LoadReply, Mark, MarkReply, Release, ReleaseReply, Repair,
    RepairReply, Restore, RestoreReply, Sell, SellReply, Terms, TierGrid,
};
use crate::domain::number::OrderNumber;
use crate::domain::requested::MAX_LINES_PER_ORDER;
use crate::domain::sale::MAX_LEGS;
use crate::domain::time::Timestamp;

/// The most arguments of one request to the cache (ElastiCache Serverless: "Configuration and limits",
/// 3,999 in the stricter of two copies, 39,999 in the other).
pub const MAX_REQUEST_ARGUMENTS: usize = 3_999;

/// What every script is sent besides its groups: the command, the script, the number of keys, up to
/// three keys of the sale and up to six plain arguments.
const PLAIN_ARGUMENTS: usize = 12;
/// The most arguments of `hold`: for each line the tier, a bitmap a leg, and seven arguments.
const MAX_HOLD_ARGUMENTS: usize = PLAIN_ARGUMENTS + MAX_LINES_PER_ORDER * (1 + MAX_LEGS + 7);
const _: () = assert!(MAX_HOLD_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The most arguments of `sell`, `release`, `mark` and `restore`: for each line the tier, two bitmaps
/// a leg, and a counter.
const MAX_SETTLING_ARGUMENTS: usize =
    PLAIN_ARGUMENTS + MAX_LINES_PER_ORDER * (1 + 2 * MAX_LEGS + 1);
const _: () = assert!(MAX_SETTLING_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
/// The most arguments of `repair`: for each leg two bitmaps, the leg and its seats.
const MAX_REPAIR_ARGUMENTS: usize = PLAIN_ARGUMENTS + 4 * MAX_LEGS;
const _: () = assert!(MAX_REPAIR_ARGUMENTS <= MAX_REQUEST_ARGUMENTS);
// `load` has no such bound: it is sent every hold and every buyer of the sale.

/// What Redis holds of one tier and of its sale's holds, for repairing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The bitmaps, with a `freed` counter that was read before them.
    pub grid: TierGrid,
    /// Every hold of the sale, read after the bitmaps.
    pub holds: Vec<(OrderNumber, HoldRecord)>,
}

impl Snapshot {
    /// Every order that held something.
    pub fn orders(&self) -> impl Iterator<Item = OrderNumber> {
        self.holds.iter().map(|(number, _)| *number)
    }
}

/// The inventory of seats (Redis). Each method that is given a command is one script; the
/// rules are in [`crate::domain::inventory`].
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if the reply was lost.
pub trait Seats: Send + Sync {
    /// Starts a sale, or replaces its terms.
    fn load(&self, command: &Load) -> impl Future<Output = Stored<LoadReply>> + Send;
    /// Holds the lines of an order, or none.
    fn hold(&self, command: &Hold) -> impl Future<Output = Stored<HoldReply>> + Send;
    /// Marks an order's seats sold.
    fn sell(&self, command: &Sell) -> impl Future<Output = Stored<SellReply>> + Send;
    /// Gives a hold back.
    fn release(&self, command: &Release) -> impl Future<Output = Stored<ReleaseReply>> + Send;
    /// Gives a hold back, but for what others own.
    fn mark(&self, command: &Mark) -> impl Future<Output = Stored<MarkReply>> + Send;
    /// Writes a forgotten hold.
    fn restore(&self, command: &Restore) -> impl Future<Output = Stored<RestoreReply>> + Send;
    /// Frees leaked seat-legs.
    fn repair(&self, command: &Repair) -> impl Future<Output = Stored<RepairReply>> + Send;

    /// The epoch of a sale; `None` if it is not loaded.
    fn epoch(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Epoch>>> + Send;
    /// The epoch of a sale and the terms that its scripts check; `None` if it is not loaded.
    fn head(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<(Epoch, Terms)>>> + Send;
    /// Record of the hold of an order.
    fn record(
        &self,
        sale: &SaleId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<HoldRecord>>> + Send;
    /// At most `most` orders whose deadline has passed, earliest first.
    fn due(
        &self,
        sale: &SaleId,
        now: Timestamp,
        most: usize,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send;
    /// What is taken in each of some tiers on any leg of a journey: one bitmap a tier, in the order
    /// asked for. May come from a replica. A tier that is not loaded gives an empty bitmap.
    fn taken(
        &self,
        sale: &SaleId,
        tiers: &[TierId],
        legs: Legs,
    ) -> impl Future<Output = Stored<Vec<Vec<u8>>>> + Send;
    /// Number of seat-legs of the sale's tiers that are taken, places not for sale included.
    fn count_taken(
        &self,
        sale: &SaleId,
        tiers: &[TierId],
        leg_count: u16,
    ) -> impl Future<Output = Stored<u64>> + Send;
    /// Number of orders that hold seats now.
    fn count_holds(&self, sale: &SaleId) -> impl Future<Output = Stored<u64>> + Send;
    /// One tier and all holds, for repairing.
    fn snapshot(
        &self,
        sale: &SaleId,
        tier: &TierId,
        leg_count: u16,
    ) -> impl Future<Output = Stored<Snapshot>> + Send;
}
