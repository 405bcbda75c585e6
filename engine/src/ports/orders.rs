//! The port to the orders in DynamoDB: what is right.

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

/// Items of a change of a wallet: the wallet, and the change.
const WALLET_ITEMS: usize = 2;

/// Items of the largest transaction of one order, the rescue by a late payment: the payment, the
/// order, the buyer's count and wallet, and for each ticket its seat and its attendee by each key. The legs of a
/// seat are attributes of one item.
const MAX_ITEMS_OF_ORDER: usize = 3 + WALLET_ITEMS + (1 + MAX_ATTENDEE_KEYS) * MAX_SEATS_PER_ORDER;
const _: () = assert!(MAX_ITEMS_OF_ORDER <= MAX_TRANSACTION_ITEMS);

/// Items of the largest refund of an order: the order, the refund, the payment, what its sale says is revoked,
/// the buyer's count and wallet, for each ticket its seat and its attendee by each key, and the counter of each line's tier.
const MAX_ITEMS_OF_REFUND: usize =
    5 + WALLET_ITEMS + (1 + MAX_ATTENDEE_KEYS) * MAX_SEATS_PER_ORDER + MAX_LINES_PER_ORDER;
const _: () = assert!(MAX_ITEMS_OF_REFUND <= MAX_TRANSACTION_ITEMS);

/// Items of the largest exchange: the new order and its payment, and the old one's refund, whose people are those of
/// the new order by other keys perhaps.
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

/// The reply to creating an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CreateReply {
    /// The order exists now, its seat-legs, its tickets and its attendees are claimed.
    Created,
    /// The number is an order (or a tombstone) already.
    Exists(Box<Order>),
    /// Other orders own these of its seat-legs.
    SeatsTaken(Vec<SeatLeg>),
    /// These tickets would pass the buyer's limit.
    LimitReached {
        /// Tickets of the sale that the buyer has already.
        held: Tickets,
    },
    /// Another ticket of the sale names the attendee of this hash. Whom the order names is counted
    /// among those whom its buyer has named, though it was not made.
    AttendeeTaken(AttendeeHash),
    /// The buyer would have named more attendees of the sale than
    /// [`max_named`](crate::domain::order::attendee::max_named). Nothing is said of any of them.
    AttendeeLimit,
}

/// The reply to a change of one order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangeReply {
    /// It is done.
    Done,
    /// The order is not, or no longer, in the state that the change starts from: read it again.
    Conflict,
}

/// What deciding a payment does to its order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// Pending to paid.
    Pay(Order),
    /// Pending to paid, giving up the tickets that it replaces: a refund of their order.
    Exchange(Order, Box<RefundPlan>),
    /// Ended to paid, claiming every seat-leg, ticket and attendee again.
    Rescue(Order),
    /// Ended to refund due.
    PayTooLate(Order),
    /// The order, if there is one, stays as it is, and tells of the capture.
    RefundOnly(Option<Order>),
}

impl Settlement {
    /// The order as it leaves it, if there is one.
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

    /// [`Self::order`], of who needs nothing else.
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

/// The reply to settling a payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SettleReply {
    /// The decision is recorded.
    Settled,
    /// The payment was decided before, like this.
    Known(PaymentRecord),
    /// The order, or the one whose tickets it replaces, is not in the state that the decision starts from: read it
    /// again.
    Conflict,
    /// The order cannot be rescued: a seat, an attendee or the limit stands against it.
    Gone,
}

/// Something that should have been finished by now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Due {
    /// A pending order past its deadline, or one that is not pending and has an open attempt or a fact that
    /// is not settled.
    Order(OrderNumber),
    /// A refund of a whole payment that is not in the queue, or of which nothing was heard in time.
    Refund(OrderNumber, PaymentKey),
    /// The same of a refund of an order.
    OrderRefund(RefundKey),
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
    /// The seat of the tier.
    pub seat: Seat,
    /// The leg, counted from 0.
    pub leg: Leg,
    /// The order that owns it.
    pub order: OrderNumber,
}

/// What the table of claims says of one block of a tier's seats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BlockClaims {
    /// The claims, by seat and leg.
    pub claims: Vec<Claim>,
    /// Seats whose ticket was refunded once, each with every order whose ticket that was.
    pub returned: Vec<(Seat, OrderNumber)>,
}

impl BlockClaims {
    /// Each seat with an order that owns it on some leg, or had it until a refund; a pair may come several times.
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

/// The orders (DynamoDB): what is right.
///
/// Whatever tells a fact of an order moves its buyer's wallet by what that fact
/// [changes](crate::domain::order::Order::wallet_change_now), in the same transaction, and is a conflict if the wallet
/// does not have it.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Orders: Send + Sync {
    /// Makes a pending order, in one transaction with its claims, under the buyer's limit and under
    /// the bound of the attendees whom the buyer may name
    /// ([`may_name`](crate::domain::order::attendee::may_name)).
    /// A lost reply is asked again inside the call, never as a new attempt.
    fn create(
        &self,
        order: &Order,
        limit: Tickets,
    ) -> impl Future<Output = Stored<CreateReply>> + Send;
    /// Pending to cancelled or expired (`end.state`), in one transaction with its claims, if its attempts
    /// are still those that `end` has. `end` is the order as it shall be: its last fact tells this.
    fn end(&self, end: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Writes the attempts of an order as they shall be, if they are still those that these follow
    /// ([`Attempts::version`](crate::domain::order::attempt::Attempts::version)), and the order is in the state
    /// and has the facts, as far settled, that `order` has.
    fn keep_attempts(&self, order: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Writes an order without lines, in state expired, if the number is unused.
    fn write_tombstone(
        &self,
        tombstone: &Order,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records what became of a payment, and does to its order what that means. The order in the
    /// settlement is as it shall be, its last fact tells this; `limit` is the buyer's, for a rescue. An exchange is
    /// done under the conditions of [`Orders::give_back`] too.
    fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: Tickets,
    ) -> impl Future<Output = Stored<SettleReply>> + Send;
    /// Records the state of a payment's refund (`payment.refund`), if what is recorded may become
    /// that; in the same transaction the order, as it shall be, tells of it: one that waited for its own
    /// payment's refund is refunded.
    fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Makes a refund of a paid order, in one transaction: its tickets are marked and what they claim is freed;
    /// the refund is put, and the payment counts what goes back of it. Everything is as it shall be. It is
    /// done if the order is paid and has the refunds before this one, and if no more goes back of the payment
    /// than was captured.
    fn give_back(&self, plan: &RefundPlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records the state of a refund of an order, if what is recorded may become that; in the same
    /// transaction writes the order whose money is back (the order as it shall be).
    fn record_order_refund(
        &self,
        refund: &OrderRefund,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records a dispute of an order's payment, or its change, in one transaction with the order that tells of it
    /// (`plan.order` as it shall be). It is done if the payment is accepted and has still the disputes before, and the
    /// order its state. [`Orders::give_back`] makes no refund while one is open, but for the one that a lost dispute is.
    fn dispute(&self, plan: &DisputePlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Issues tickets of a paid order anew, in one transaction with what its sale says is revoked
    /// (`plan.order` as it shall be). It is done if the order is paid and each of the tickets is live and has
    /// still the issue before.
    fn reissue(&self, plan: &ReissuePlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records the first check-in of a ticket, in one transaction with the count of its sale. It is done if the
    /// order is paid, and the ticket is live, has the issue that was shown and has let nobody in.
    fn check_in(&self, plan: &CheckInPlan) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// Records a check-in after the first one, and counts it; `Conflict` if it is recorded already.
    fn check_in_again(
        &self,
        double: &DoubleCheckIn,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// What of a sale was revoked ticket by ticket: the orders from `from` on, by number, strongly consistent.
    fn revoked(
        &self,
        sale: &SaleId,
        from: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<RevokedPage>> + Send;
    /// How often the doors of a sale let somebody in, strongly consistent.
    fn check_ins(&self, sale: &SaleId) -> impl Future<Output = Stored<CheckInCounts>> + Send;
    /// The check-ins of a sale after the first of their ticket, by key, `after` a key, strongly consistent.
    fn doubles(
        &self,
        sale: &SaleId,
        after: Option<&String>,
        most: u16,
    ) -> impl Future<Output = Stored<DoublesPage>> + Send;
    /// Settles what is not settled of the facts of these orders, each exactly once however often it is given:
    /// those that sell are counted in the statistics of their sales, one counter write per sale and tier, and
    /// all are appended to the log, one record per sale. An order that has changed since it was read is left
    /// out. Returns those settled now.
    fn sync(
        &self,
        orders: &[Order],
        now: Timestamp,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send;

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
    /// A refund of an order, strongly consistent.
    fn order_refund(
        &self,
        key: RefundKey,
    ) -> impl Future<Output = Stored<Option<OrderRefund>>> + Send;
    /// Every refund of an order, by number, strongly consistent.
    fn order_refunds(
        &self,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Vec<OrderRefund>>> + Send;
    /// A buyer's orders, newest first, strongly consistent, `before` a number.
    fn of_user(
        &self,
        user: &UserId,
        before: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<Page>> + Send;
    /// Tickets of a sale that the buyer's live orders have, strongly consistent.
    fn tickets_of(
        &self,
        sale: &SaleId,
        user: &UserId,
    ) -> impl Future<Output = Stored<Tickets>> + Send;
    /// What a buyer's wallet has in one currency, strongly consistent; nothing if there is none.
    fn wallet(
        &self,
        user: &UserId,
        currency: Currency,
    ) -> impl Future<Output = Stored<Balance>> + Send;
    /// A buyer's wallets with everything that has moved them, strongly consistent.
    fn statement(&self, user: &UserId) -> impl Future<Output = Stored<WalletStatement>> + Send;
    /// What an order has given its buyer so far, strongly consistent; `None` if nothing was ever written.
    fn awarded(
        &self,
        user: &UserId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<Award>>> + Send;
    /// Writes what an order gives its buyer in place of `before`, and adds the difference to what the buyer has, in
    /// one transaction; a conflict if it is not `before` that is there.
    fn award(
        &self,
        user: &UserId,
        order: OrderNumber,
        award: &Award,
        before: Option<Award>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send;
    /// What a buyer has of points and growth, with what each order has given, strongly consistent.
    fn points(&self, user: &UserId) -> impl Future<Output = Stored<PointsStatement>> + Send;
    /// Work of one shard of the index that was due at `now`, earliest first, at most `most`.
    fn due(
        &self,
        shard: u8,
        now: Timestamp,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Due>>> + Send;
    /// Every claim in one block of a tier, [`SEATS_PER_BLOCK`] seats, and what was returned there, strongly
    /// consistent.
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
    /// The statistics of a sale, tier by tier.
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
