//! What the flows need from the world, as traits: the seats in Redis, the gate, the orders and the
//! catalogue in DynamoDB, the queues, the payment provider.
//!
//! The flows are generic over these, so that the very code that runs in Lambda runs against the
//! pure models in a simulator. Implementations write `async fn`; the futures must be `Send`.

use std::future::Future;
use std::sync::Arc;

use crate::domain::gate::{Admit, AdmitReply};
use crate::domain::ids::{AttendeeId, Epoch, Legs, SaleId, Seat, TierId, UserId};
use crate::domain::inventory::{
    Hold, HoldRecord, HoldReply, Load, LoadReply, Mark, MarkReply, Release, ReleaseReply, Repair,
    RepairReply, Restore, RestoreReply, SeatLeg, Sell, SellReply, Terms, TierGrid,
};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Capture, Order, PaymentKey, PaymentRecord, TierTotals};
use crate::domain::refund::RefundReply;
use crate::domain::sale::{Sale, SaleFile};
use crate::domain::time::Timestamp;

/// Why a store did not answer. The texts are for the log, never for a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StoreError {
    /// It did not happen: ask again later.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// It may have happened: ask again with the same number.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// Our own bug, or data that nobody but us writes and that is not what we write.
    #[error("contract broken: {0}")]
    Contract(String),
}

impl StoreError {
    /// True if the same call may succeed later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unknown(_) => true,
            Self::Contract(_) => false,
        }
    }
}

/// The answer of a store.
pub type Stored<T> = Result<T, StoreError>;

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

/// The inventory of seats (Redis). Each of the first seven is one script; the rules are in
/// [`crate::domain::inventory`].
///
/// # Errors
/// Every method fails with a [`StoreError`]; `Unknown` if the reply was lost.
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
    /// What an order holds.
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
    /// How many seat-legs of the sale's tiers are taken in all, places not for sale included.
    fn count_taken(
        &self,
        sale: &SaleId,
        tiers: &[TierId],
        legs: u16,
    ) -> impl Future<Output = Stored<u64>> + Send;
    /// How many orders hold seats now.
    fn count_holds(&self, sale: &SaleId) -> impl Future<Output = Stored<u64>> + Send;
    /// One tier and all holds, for repairing.
    fn snapshot(
        &self,
        sale: &SaleId,
        tier: &TierId,
        legs: u16,
    ) -> impl Future<Output = Stored<Snapshot>> + Send;
}

/// The admission gate (Redis, on slots of its own). The rules are in [`crate::domain::gate`].
pub trait Gate: Send + Sync {
    /// Asks one shard for an admission.
    ///
    /// # Errors
    /// Fails with a [`StoreError`].
    fn admit(&self, command: &Admit) -> impl Future<Output = Stored<AdmitReply>> + Send;
}

/// What creating an order came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CreateReply {
    /// The order exists now, its seat-legs, its tickets and its attendees are claimed.
    Created,
    /// The number is an order (or a tombstone) already.
    Exists(Box<Order>),
    /// Other orders own these of its seat-legs.
    SeatsTaken(Vec<SeatLeg>),
    /// The buyer has so many tickets already that these would pass the limit.
    LimitReached(u16),
    /// Another ticket of the sale names this attendee.
    AttendeeTaken(AttendeeId),
}

/// What a change of one order came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangeReply {
    /// It is done.
    Done,
    /// The order is not, or no longer, in the state that the change starts from: read it again.
    Changed,
}

/// What deciding a payment does to its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// Pending to paid.
    Pay(Order),
    /// Ended to paid, claiming every seat-leg, ticket and attendee again.
    Rescue(Order),
    /// Ended to refund due.
    PayTooLate(Order),
    /// The order, if there is one, stays as it is.
    RefundOnly,
}

impl Settlement {
    /// The order that it leaves paid, if it does.
    #[must_use]
    pub fn paid(self) -> Option<Order> {
        match self {
            Self::Pay(order) | Self::Rescue(order) => Some(order),
            Self::PayTooLate(_) | Self::RefundOnly => None,
        }
    }
}

/// What settling a payment came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SettleReply {
    /// The decision is recorded.
    Settled,
    /// The payment was decided before, like this.
    Known(PaymentRecord),
    /// The order is not in the state that the decision starts from: read it again.
    Changed,
    /// The order cannot be rescued: a seat, an attendee or the limit stands against it.
    Gone,
}

/// Something that should have been finished by now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Due {
    /// A pending order past its deadline, or a paid one that is not synced.
    Order(OrderNumber),
    /// A refund that is not in the queue, or of which nothing was heard in time.
    Refund(OrderNumber, PaymentKey),
}

/// One page of a buyer's orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Page {
    /// The orders, newest first.
    pub orders: Vec<Order>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<OrderNumber>,
}

/// A seat-leg and the order that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Which seat of the tier.
    pub seat: Seat,
    /// On which leg.
    pub leg: u16,
    /// Whose.
    pub order: OrderNumber,
}

/// How many neighbouring seats of a tier share a block: claims are kept, and read, by blocks.
pub const SEATS_PER_BLOCK: u32 = 128;
/// How many shards the index of due work has; an order's shard is its number's counter modulo this.
pub const DUE_SHARDS: u8 = 16;

/// The orders (DynamoDB): what is right.
///
/// # Errors
/// Every method fails with a [`StoreError`]; `Unknown` if a write may have happened.
pub trait Orders: Send + Sync {
    /// Makes a pending order, in one transaction with its claims, under the buyer's limit.
    /// A lost reply is asked again inside the call, never as a new attempt.
    fn create(&self, order: &Order, limit: u16)
    -> impl Future<Output = Stored<CreateReply>> + Send;
    /// Pending to cancelled or expired (`end.state`), in one transaction with its claims.
    /// `end` is the order as it shall be.
    fn end(&self, end: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Writes an order without lines, in state expired, if the number is unused.
    fn bury(&self, tombstone: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records what became of a payment, and does to its order what that means. The order in the
    /// settlement is as it shall be; `limit` is the buyer's, for a rescue.
    fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: u16,
    ) -> impl Future<Output = Stored<SettleReply>> + Send;
    /// Records where a payment's refund stands (`payment.refund`), if what is recorded may become
    /// that; in the same transaction makes the order that waited for its own payment's refund
    /// refunded (the order as it shall be).
    fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Counts paid orders in their sales' statistics, each exactly once however often it is given,
    /// one counter write per sale and tier; marks their seats sold. Returns those counted now.
    fn sync(&self, orders: &[Order]) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send;

    /// An order, strongly consistent.
    fn get(&self, number: OrderNumber) -> impl Future<Output = Stored<Option<Order>>> + Send;
    /// Many orders, strongly consistent; numbers without an order are left out.
    fn get_many(&self, numbers: &[OrderNumber]) -> impl Future<Output = Stored<Vec<Order>>> + Send;
    /// A payment, strongly consistent.
    fn payment(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> impl Future<Output = Stored<Option<PaymentRecord>>> + Send;
    /// Every payment that was decided for an order, in order of decision, strongly consistent.
    fn payments(
        &self,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Vec<PaymentRecord>>> + Send;
    /// A buyer's orders, newest first, strongly consistent, `before` a number.
    fn of_user(
        &self,
        user: &UserId,
        before: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<Page>> + Send;
    /// Work of one shard of the index that was due at `now`, earliest first, at most `most`.
    fn due(
        &self,
        shard: u8,
        now: Timestamp,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Due>>> + Send;
    /// Every claim in one block of a tier, [`SEATS_PER_BLOCK`] seats, by seat and leg, strongly
    /// consistent.
    fn claims(
        &self,
        sale: &SaleId,
        tier: &TierId,
        block: u32,
    ) -> impl Future<Output = Stored<Vec<Claim>>> + Send;
    /// The statistics of a sale, tier by tier.
    fn statistics(
        &self,
        sale: &SaleId,
    ) -> impl Future<Output = Stored<Vec<(TierId, TierTotals)>>> + Send;
}

/// A sale as the catalogue has it.
#[derive(Debug, Clone)]
pub struct Published {
    /// The sale.
    pub sale: Arc<Sale>,
    /// The epoch of its last load; `None` before the first.
    pub epoch: Option<Epoch>,
    /// Counts every publication.
    pub version: u64,
}

/// How old a catalogue entry may be.
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
/// Every method fails with a [`StoreError`].
pub trait Catalogue: Send + Sync {
    /// A sale.
    fn sale(
        &self,
        id: &SaleId,
        freshness: Freshness,
    ) -> impl Future<Output = Stored<Option<Published>>> + Send;
    /// Every sale's id, in order.
    fn sales(&self) -> impl Future<Output = Stored<Vec<SaleId>>> + Send;
    /// Writes a sale if its version is still `replaces` (`None`: if it is new).
    fn publish(
        &self,
        file: &SaleFile,
        replaces: Option<u64>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Takes the lease to load a sale as `epoch` until `until`, if nobody has one at `now`. The name
    /// of the load is its fencing token.
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
}

/// The queues (SQS). Each delivers at least once, in any order.
///
/// # Errors
/// Every method fails with a [`StoreError`]; the sweeper makes up for a message that is lost.
pub trait Queue: Send + Sync {
    /// Looks at an order again when its deadline has passed; over 15 minutes in several hops.
    fn expire_later(
        &self,
        sale: &SaleId,
        order: OrderNumber,
        now: Timestamp,
        deadline: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// Counts a paid order.
    fn sync(&self, order: OrderNumber) -> impl Future<Output = Stored<()>> + Send;
    /// Loads a sale that Redis has lost. Asking often is no more than asking once: a process sends
    /// a request a second for each sale.
    fn load_again(&self, sale: &SaleId) -> impl Future<Output = Stored<()>> + Send;
    /// Sends a payment back.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<()>> + Send;
}

/// The payment provider: what it has captured, and money going back.
///
/// # Errors
/// Every method fails with a [`StoreError`]; `Unknown` if a refund may have happened.
pub trait Provider: Send + Sync {
    /// Every capture that it has for an order, oldest first. `None` if there is no provider that
    /// can be asked. An answer may be older than the last captures: their callbacks are the truth.
    fn captures(&self, order: &Order) -> impl Future<Output = Stored<Option<Vec<Capture>>>> + Send;
    /// Sends a captured payment back, whole, and once however often it is asked: the payment is the
    /// idempotency key. Asked again, it says how far it is.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<RefundReply>> + Send;
}

/// All ports at once: what a flow is given.
pub trait Ports: Send + Sync {
    /// The inventory.
    type Seats: Seats;
    /// The gate.
    type Gate: Gate;
    /// The orders.
    type Orders: Orders;
    /// The catalogue.
    type Catalogue: Catalogue;
    /// The queues.
    type Queue: Queue;
    /// The payment provider.
    type Provider: Provider;

    /// The inventory.
    fn seats(&self) -> &Self::Seats;
    /// The gate.
    fn gate(&self) -> &Self::Gate;
    /// The orders.
    fn orders(&self) -> &Self::Orders;
    /// The catalogue.
    fn catalogue(&self) -> &Self::Catalogue;
    /// The queues.
    fn queue(&self) -> &Self::Queue;
    /// The payment provider.
    fn provider(&self) -> &Self::Provider;
}
