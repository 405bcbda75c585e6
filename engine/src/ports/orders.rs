//! The port to the orders in DynamoDB, which decide who owns a seat: what Redis has is checked against them.

use std::future::Future;

use super::Stored;
use crate::domain::basics::ids::{Leg, SaleId, Seat, TierId, UserId};
use crate::domain::basics::limits::{MAX_LINES_PER_ORDER, MAX_SEATS_PER_ORDER};
use crate::domain::basics::money::Currency;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::SeatLeg;
use crate::domain::ledger::Balance;
use crate::domain::ledger::points::{Award, PointsStatement};
use crate::domain::ledger::statistics::TierTotals;
use crate::domain::ledger::wallet::WalletStatement;
pub use crate::domain::order::FOLLOW_UP_SECONDS;
use crate::domain::order::attendee::{AttendeeHash, MAX_ATTENDEE_KEYS};
use crate::domain::order::order_refund::{OrderRefund, RefundKey};
use crate::domain::order::{Order, PaymentKey, PaymentRecord};
use crate::domain::payment::dispute::DisputePlan;
use crate::domain::payment::refund::RefundPlan;
use crate::domain::sale::MAX_LEGS;
use crate::domain::ticket::{
    CheckInCounts, CheckInPlan, DoubleCheckIn, DoublesPage, ReissuePlan, RevokedPage,
};

/// The most items of one transaction (a quota of DynamoDB: Developer Guide, "Constraints").
pub const MAX_TRANSACTION_ITEMS: usize = 100;

/// The items that a change of a wallet writes: the wallet, and the change.
const WALLET_ITEMS: usize = 2;

/// Items of the largest transaction of one order, the rescue by a late payment: the payment, the
/// order, the buyer's count and wallet, and for each ticket its seat and its attendee by each key. The legs of a
/// seat are attributes of one item.
const MAX_ITEMS_OF_ORDER: usize = 3 + WALLET_ITEMS + (1 + MAX_ATTENDEE_KEYS) * MAX_SEATS_PER_ORDER;
const _: () = assert!(MAX_ITEMS_OF_ORDER <= MAX_TRANSACTION_ITEMS);

/// Items of the largest refund of an order: the order, the refund, the payment, the sale's list of revoked tickets,
/// the buyer's count and wallet, for each ticket its seat and its attendee by each key, and the counter of each
/// line's tier.
const MAX_ITEMS_OF_REFUND: usize =
    5 + WALLET_ITEMS + (1 + MAX_ATTENDEE_KEYS) * MAX_SEATS_PER_ORDER + MAX_LINES_PER_ORDER;
const _: () = assert!(MAX_ITEMS_OF_REFUND <= MAX_TRANSACTION_ITEMS);

/// Items of the largest exchange: the new order and its payment, and the old order's refund. Both orders name the
/// same attendees, perhaps hashed with different keys.
const MAX_ITEMS_OF_EXCHANGE: usize =
    MAX_ITEMS_OF_REFUND + 2 + WALLET_ITEMS + MAX_ATTENDEE_KEYS * MAX_SEATS_PER_ORDER;
const _: () = assert!(MAX_ITEMS_OF_EXCHANGE <= MAX_TRANSACTION_ITEMS);

/// Items that one order adds to the transaction which counts it: the order, and the counter of each
/// line's tier. A batch has at least one order.
const MAX_ITEMS_OF_SYNC: usize = 1 + MAX_LINES_PER_ORDER;
const _: () = assert!(MAX_ITEMS_OF_SYNC <= MAX_TRANSACTION_ITEMS);

/// The longest expression, in bytes, and the most operators and functions in one (quotas of
/// DynamoDB, as above). The condition of a claim names every leg of the journey.
const MAX_EXPRESSION_BYTES: usize = 4096;
const MAX_EXPRESSION_OPERATORS: usize = 300;
const _: () = assert!("attribute_not_exists(#l63) AND ".len() * MAX_LEGS <= MAX_EXPRESSION_BYTES);
const _: () = assert!(2 * MAX_LEGS <= MAX_EXPRESSION_OPERATORS);

/// Neighbouring seats of a tier that share a block: claims are kept, and read, by blocks.
pub const SEATS_PER_BLOCK: u32 = 128;
/// Shards of the index of due work; an order's shard is its number's counter modulo this.
pub const DUE_SHARDS: u8 = 16;

/// The reply to [`Orders::create`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CreateReply {
    /// The order exists now, and owns its seat-legs, its tickets and its attendees.
    Created,
    /// An order (or a tombstone) with this number exists already: this one.
    Exists(Box<Order>),
    /// Other orders own these seat-legs of the order.
    SeatsTaken(Vec<SeatLeg>),
    /// With the order's tickets the buyer would have more than the limit.
    LimitReached {
        /// The tickets of the sale that the buyer has already.
        held: Tickets,
    },
    /// Another ticket of the sale names the attendee with this hash. The order is not made, and its attendees still
    /// count among those whom its buyer has named.
    AttendeeTaken(AttendeeHash),
    /// With the order's attendees the buyer would have named more for the sale than
    /// [`max_named`](crate::domain::order::attendee::max_named). The reply tells nothing about any attendee.
    AttendeeLimit,
}

/// The reply to a change of one order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangeReply {
    /// The change is written.
    Done,
    /// Nothing is written: the item is not, or no longer, in the state that the change starts from. The caller
    /// reads it again.
    Conflict,
}

/// The change of an order that the decision about its payment makes. Each variant has the order as it is after the
/// change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// A pending order becomes paid.
    Pay(Order),
    /// A pending order becomes paid, and the tickets that it replaces are refunded from their own order.
    Exchange(Order, Box<RefundPlan>),
    /// An order that has ended becomes paid, and claims every seat-leg, ticket and attendee again.
    Rescue(Order),
    /// An order that has ended becomes refund due.
    PayTooLate(Order),
    /// The state of the order, if there is one, stays as it is; a fact of the order records the capture.
    RefundOnly(Option<Order>),
}

impl Settlement {
    /// The order as it is after the settlement; `None` if there is no order.
    #[must_use]
    pub fn order(&self) -> Option<&Order> {
        match self {
            Self::Pay(order)
            | Self::Exchange(order, _)
            | Self::Rescue(order)
            | Self::PayTooLate(order) => Some(order),
            Self::RefundOnly(order) => order.as_ref(),
        }
    }

    /// [`Self::order`] by value.
    #[must_use]
    pub fn into_order(self) -> Option<Order> {
        match self {
            Self::Pay(order)
            | Self::Exchange(order, _)
            | Self::Rescue(order)
            | Self::PayTooLate(order) => Some(order),
            Self::RefundOnly(order) => order,
        }
    }
}

/// The reply to [`Orders::settle`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SettleReply {
    /// The decision is recorded.
    Settled,
    /// The payment was decided before: this is the recorded decision.
    Known(PaymentRecord),
    /// Nothing is written: the order, or the order whose tickets it replaces, is not in the state that the decision
    /// starts from. The caller reads it again.
    Conflict,
    /// The order cannot be rescued: another order owns a seat or an attendee, or the buyer's limit is reached.
    Gone,
}

/// Work that should have been finished by now, as the sweeper lists it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Due {
    /// A pending order past its deadline, or an order that is not pending and has an open attempt or a fact that
    /// is not settled.
    Order(OrderNumber),
    /// A refund of a whole payment that is not in the queue, or about which its provider said nothing in time.
    Refund(OrderNumber, PaymentKey),
    /// A refund of a paid order that is not in the queue, or about which its provider said nothing in time.
    OrderRefund(RefundKey),
}

/// One page of a buyer's orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Page {
    /// The orders, newest first.
    pub orders: Vec<Order>,
    /// The `before` of the next page; `None` at the end.
    pub next: Option<OrderNumber>,
}

/// A seat-leg and the order that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The number of the seat's bit in the bitmaps of its tier.
    pub seat: Seat,
    /// The leg, counted from 0.
    pub leg: Leg,
    /// The number of the order that owns the seat-leg.
    pub order: OrderNumber,
}

/// The entries of the table of claims for one block of a tier's seats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BlockClaims {
    /// The claims, by seat and leg.
    pub claims: Vec<Claim>,
    /// Each seat of which a ticket was refunded, with the order that had the ticket; one pair for each such order.
    pub returned: Vec<(Seat, OrderNumber)>,
}

impl BlockClaims {
    /// Each seat with an order that owns it on some leg, or owned it until a refund. A pair may come several times.
    pub fn holders(&self) -> impl Iterator<Item = (Seat, OrderNumber)> {
        let owners = self.claims.iter().map(|claim| (claim.seat, claim.order));
        owners.chain(self.returned.iter().copied())
    }
}

/// The block of its tier that a seat lies in: a partition of the table of claims.
///
/// An order names a seat by its bit and knows nothing of rows, so partitions are blocks of bits,
/// not rows. A row lies in one block or a few.
#[must_use]
pub fn block_of(seat: Seat) -> u32 {
    seat.0 / SEATS_PER_BLOCK
}

/// The shard of the due index that an order and its payments are in: the low bits of its number's
/// counter, so that the orders of one second spread over all shards.
#[must_use]
pub fn due_shard(order: OrderNumber) -> u8 {
    u8::try_from((order.get() >> 10) % u64::from(DUE_SHARDS)).unwrap_or(0)
}

/// The orders (DynamoDB), which decide who owns a seat.
///
/// Every method that adds a fact to an order also changes the buyer's wallet by the fact's
/// [change](crate::domain::order::Order::wallet_change_now), in the same transaction, and is a conflict if the wallet
/// has too little. The order that such a method is given is the order as it shall be, with the new fact last.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Orders: Send + Sync {
    /// Writes a pending order and its claims in one transaction, if the buyer stays within `limit` tickets of the
    /// sale and may name the order's attendees ([`may_name`](crate::domain::order::attendee::may_name)).
    /// If the reply is lost, the call repeats the same request, never as a new attempt.
    fn create(
        &self,
        order: &Order,
        limit: Tickets,
    ) -> impl Future<Output = Stored<CreateReply>> + Send;
    /// Writes that a pending order is cancelled or expired (`end.state`) and frees its claims, in one transaction,
    /// if its attempts are still those of `end`. `end` is the order as it shall be, and its last fact is the end.
    fn end(&self, end: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Writes the attempts of `order`, if the stored attempts have the version before
    /// ([`Attempts::version`](crate::domain::order::attempt::Attempts::version)), and the stored order has the same
    /// state and the same facts, as many of them settled.
    fn keep_attempts(&self, order: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Writes a tombstone, an order without lines in state expired, if the number is unused: no order can be made
    /// under the number later.
    fn write_tombstone(
        &self,
        tombstone: &Order,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records the decision about a payment, and changes its order accordingly, in one transaction. The order in the
    /// settlement is the order as it shall be, and its last fact records the payment. A rescue keeps the buyer within
    /// `limit` tickets. An exchange must also meet the conditions of [`Orders::give_back`].
    fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: Tickets,
    ) -> impl Future<Output = Stored<SettleReply>> + Send;
    /// Records the state of a payment's refund (`payment.refund`), if the recorded state may become this one. In the
    /// same transaction writes `order`, the order as it shall be, whose last fact records the refund: an order that
    /// waited for the refund of its own payment becomes refunded.
    fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Makes a refund of a paid order, in one transaction: marks its tickets, frees their claims, writes the refund,
    /// and adds the amount to what is refunded of the payment. The plan has every item as it shall be. The conditions:
    /// the order is paid, it has exactly the refunds before this one, and no more of the payment is refunded than
    /// was captured.
    fn give_back(&self, plan: &RefundPlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records the state of a refund of an order, if the recorded state may become this one
    /// ([`may_be_recorded`](crate::domain::order::refund::RefundState::may_be_recorded)). In the same transaction writes
    /// `order`, the order as it shall be, if its money is back, or came to us again.
    fn record_order_refund(
        &self,
        refund: &OrderRefund,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records a dispute of an order's payment, or a change of the dispute, in one transaction with the order
    /// (`plan.order`, as it shall be). The conditions: the payment is accepted and has still the disputes before, and
    /// the order has still its state. While a dispute is open, [`Orders::give_back`] makes no refund but the one that
    /// records a lost dispute.
    fn dispute(&self, plan: &DisputePlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Issues tickets of a paid order anew, in one transaction with the sale's list of revoked tickets
    /// (`plan.order` as it shall be). The conditions: the order is paid, and each of the tickets is live and has
    /// still the issue before.
    fn reissue(&self, plan: &ReissuePlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records the first check-in of a ticket, in one transaction with the count of its sale. The conditions: the
    /// order is paid, and the ticket is live, has the issue that the door scanned and has let nobody in.
    fn check_in(&self, plan: &CheckInPlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records a check-in of a ticket after its first one, and counts it; `Conflict` if it is recorded already.
    fn check_in_again(
        &self,
        double: &DoubleCheckIn,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// The orders of a sale of which single tickets were revoked, by number from `from` on, at most `most`; strongly
    /// consistent.
    fn revoked(
        &self,
        sale: &SaleId,
        from: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<RevokedPage>> + Send;
    /// The numbers of check-ins at the doors of a sale, strongly consistent.
    fn check_ins(&self, sale: &SaleId) -> impl Future<Output = Stored<CheckInCounts>> + Send;
    /// The check-ins of a sale that were not the first of their ticket, by key behind `after`, at most `most`;
    /// strongly consistent.
    fn doubles(
        &self,
        sale: &SaleId,
        after: Option<&String>,
        most: u16,
    ) -> impl Future<Output = Stored<DoublesPage>> + Send;
    /// Settles the facts of these orders that are not settled yet, each exactly once however often its order is
    /// given: counts the facts that sell in the statistics of their sales, with one counter write per sale and tier,
    /// and appends all facts to the log, one record per sale. Leaves out an order that has changed since the caller
    /// read it. Returns the numbers of the orders that this call has settled.
    fn sync(
        &self,
        orders: &[Order],
        now: Timestamp,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send;

    /// The order with a number, or its tombstone, strongly consistent; `None` if the number is unused.
    fn get(&self, number: OrderNumber) -> impl Future<Output = Stored<Option<Order>>> + Send;
    /// Many orders, strongly consistent; numbers without an order are left out.
    fn get_many(&self, numbers: &[OrderNumber]) -> impl Future<Output = Stored<Vec<Order>>> + Send;
    /// The decision about a payment for an order, strongly consistent; `None` if the payment is not decided.
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
    /// A refund of an order by the order's number and its own, strongly consistent; `None` if there is none.
    fn order_refund(
        &self,
        key: RefundKey,
    ) -> impl Future<Output = Stored<Option<OrderRefund>>> + Send;
    /// Every refund of an order, by number, strongly consistent.
    fn order_refunds(
        &self,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Vec<OrderRefund>>> + Send;
    /// At most `most` orders of a buyer, newest first, strongly consistent; only those with a number below `before`,
    /// if it is given.
    fn of_user(
        &self,
        user: &UserId,
        before: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<Page>> + Send;
    /// The number of tickets that the buyer's live orders have in a sale, strongly consistent.
    fn tickets_of(
        &self,
        sale: &SaleId,
        user: &UserId,
    ) -> impl Future<Output = Stored<Tickets>> + Send;
    /// The balance of a buyer's wallet in one currency, strongly consistent; zero if there is no wallet.
    fn wallet(
        &self,
        user: &UserId,
        currency: Currency,
    ) -> impl Future<Output = Stored<Balance>> + Send;
    /// A buyer's wallets with every change that they had, strongly consistent.
    fn statement(&self, user: &UserId) -> impl Future<Output = Stored<WalletStatement>> + Send;
    /// The points and the growth that an order has given its buyer so far, strongly consistent; `None` if nothing
    /// was ever written.
    fn awarded(
        &self,
        user: &UserId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<Award>>> + Send;
    /// Replaces the award `before` of an order by `award`, and adds the difference to the buyer's points and growth, in
    /// one transaction; a conflict if the stored award is not `before`.
    fn award(
        &self,
        user: &UserId,
        order: OrderNumber,
        award: &Award,
        before: Option<Award>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// A buyer's points and growth, with the award of each order, strongly consistent.
    fn points(&self, user: &UserId) -> impl Future<Output = Stored<PointsStatement>> + Send;
    /// The work in one shard of the index (0 to [`DUE_SHARDS`] − 1) that was due at `now`, earliest first, at most
    /// `most`.
    fn due(
        &self,
        shard: u8,
        now: Timestamp,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Due>>> + Send;
    /// Every claim in one block of a tier, which has [`SEATS_PER_BLOCK`] seats, and the seats there of which a ticket
    /// was refunded; strongly consistent.
    fn block_claims(
        &self,
        sale: &SaleId,
        tier: &TierId,
        block: u32,
    ) -> impl Future<Output = Stored<BlockClaims>> + Send;
    /// Every claim in one block of a tier, by seat and leg.
    fn claims(
        &self,
        sale: &SaleId,
        tier: &TierId,
        block: u32,
    ) -> impl Future<Output = Stored<Vec<Claim>>> + Send {
        async move { Ok(self.block_claims(sale, tier, block).await?.claims) }
    }
    /// The statistics of a sale, tier by tier: the settled facts only.
    fn statistics(
        &self,
        sale: &SaleId,
    ) -> impl Future<Output = Stored<Vec<(TierId, TierTotals)>>> + Send;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_one_moment_spread_over_every_shard() {
        let user = UserId::new("7").unwrap();
        let mint = crate::domain::basics::number::Mint::new(0);
        let now = crate::domain::basics::time::Timestamp::from_ms(1_800_000_000_000);
        let shards: std::collections::BTreeSet<u8> =
            (0..32).map(|_| due_shard(mint.mint(now, &user))).collect();
        assert_eq!(shards.len(), usize::from(DUE_SHARDS));
    }
}
