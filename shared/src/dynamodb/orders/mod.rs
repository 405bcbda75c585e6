//! The orders in DynamoDB: every change of an order is one transaction with the claims it makes or
//! frees, so that claims and live orders correspond whatever crashes.
//!
//! A file for each subject: `create` and `end` of an order, `attempts` to pay it, `settle` for its payments,
//! `give_back` for refunds of its tickets, `dispute` for disputes of its payment, `tickets` for reissues and check-ins,
//! `sync` for settling its facts. `claims` makes and frees the claims of an order, `reads` has the reads that need no
//! transaction, `wallet` changes the buyer's wallet, and `erase` removes the ids of attendees.

mod attempts;
mod claims;
mod create;
mod dispute;
mod end;
mod erase;
mod facts;
mod give_back;
mod points;
mod reads;
mod settle;
mod sync;
mod tickets;
mod wallet;

use aws_sdk_dynamodb::types::TransactWriteItem;

pub use self::erase::{Erased, Selection};
pub(super) use self::tickets::attributes as ticket_attributes;
use super::dynamo::Dynamo;
use super::items::Item;
use super::ledger::DynamoLedger;
use super::log::DynamoLog;
use super::transaction::{Reason, Transacted};
use engine::domain::basics::ids::{SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::Balance;
use engine::domain::ledger::points::{Award, PointsStatement};
use engine::domain::ledger::statistics::TierTotals;
use engine::domain::ledger::wallet::WalletStatement;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::order_refund::{OrderRefund, RefundKey};
use engine::domain::order::{Order, OrderLine, PaymentKey, PaymentRecord};
use engine::domain::payment::dispute::DisputePlan;
use engine::domain::payment::refund::RefundPlan;
use engine::domain::ticket::{
    CheckInCounts, CheckInPlan, DoubleCheckIn, DoublesPage, ReissuePlan, RevokedPage,
};
use engine::ports::{
    BlockClaims, ChangeReply, CreateReply, Due, Orders, Page, SettleReply, Settlement, StoreError,
    Stored,
};

/// The orders of every sale, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoOrders {
    db: Dynamo,
}

/// The subject of one item of a transaction, to read its cancellation reason by.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Order,
    Payment,
    Refund,
    Seat(&'a OrderLine, Seat),
    Buyer,
    Attendee(AttendeeHash),
    Statistics,
    Log,
    /// A part of an account.
    Account,
    /// The buyer's wallet, or an entry of it.
    Wallet,
    /// What an order gives its buyer, or what the buyer has.
    Award,
    Revoked,
    Double,
}

/// A transaction, each item with its subject.
type Plan<'a> = Vec<(Part<'a>, TransactWriteItem)>;

/// The outcome of a [`Plan`].
enum Committed<'a> {
    /// All of it was written.
    Done,
    /// Nothing was written; each item with the reason that it gave.
    Cancelled(Vec<(Part<'a>, Reason)>),
}

impl DynamoOrders {
    /// The orders behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    /// The log that what they tell is settled in.
    #[must_use]
    pub fn log(&self) -> DynamoLog {
        DynamoLog::new(self.db.clone())
    }

    /// The accounts that what they move is counted on.
    #[must_use]
    pub fn ledger(&self) -> DynamoLedger {
        DynamoLedger::new(self.db.clone())
    }

    /// The name of the table of orders.
    fn orders(&self) -> &str {
        &self.db.tables().orders
    }

    /// Writes all items of a plan or none; see [`Dynamo::transact`] for the first `leading` ones.
    async fn commit<'a>(&self, leading: usize, plan: Plan<'a>) -> Stored<Committed<'a>> {
        let (parts, items): (Vec<Part<'a>>, Vec<TransactWriteItem>) = plan.into_iter().unzip();
        Ok(match self.db.transact(leading, items).await? {
            Transacted::Done => Committed::Done,
            Transacted::Cancelled(reasons) => {
                Committed::Cancelled(parts.into_iter().zip(reasons).collect())
            }
        })
    }
}

/// The item of the first part that `is_it` and whose condition failed.
fn failed_item<'r>(
    reasons: &'r [(Part<'_>, Reason)],
    is_it: impl Fn(&Part<'_>) -> bool,
) -> Option<&'r Item> {
    reasons.iter().find_map(|(part, reason)| match reason {
        Reason::ConditionalCheckFailed(item) if is_it(part) => Some(item),
        Reason::ConditionalCheckFailed(_) | Reason::None | Reason::TransactionConflict => None,
    })
}

/// What stood against a transaction, without the items: they may say who somebody is.
fn kinds(reasons: &[(Part<'_>, Reason)]) -> String {
    let kind = |(part, reason): &(Part<'_>, Reason)| {
        let part = match part {
            Part::Order => "order".to_owned(),
            Part::Payment => "payment".to_owned(),
            Part::Refund => "refund".to_owned(),
            Part::Seat(line, seat) => format!("seat {} of {}", seat.0, line.tier),
            Part::Buyer => "buyer".to_owned(),
            Part::Attendee(_) => "attendee".to_owned(),
            Part::Statistics => "statistics".to_owned(),
            Part::Log => "log".to_owned(),
            Part::Account => "account".to_owned(),
            Part::Wallet => "wallet".to_owned(),
            Part::Award => "award".to_owned(),
            Part::Revoked => "revoked".to_owned(),
            Part::Double => "double check-in".to_owned(),
        };
        match reason {
            Reason::None => None,
            Reason::ConditionalCheckFailed(_) => Some(format!("{part}: condition failed")),
            Reason::TransactionConflict => Some(format!("{part}: another transaction")),
        }
    };
    reasons.iter().filter_map(kind).collect::<Vec<_>>().join(", ")
}

fn must(order: &Order, is_so: bool, what: &str) -> Stored<()> {
    let broken = || StoreError::Contract(format!("order {}: {what}", order.number));
    is_so.then_some(()).ok_or_else(broken)
}

impl Orders for DynamoOrders {
    fn create(
        &self,
        order: &Order,
        limit: Tickets,
    ) -> impl Future<Output = Stored<CreateReply>> + Send {
        Self::create(self, order, limit)
    }

    fn end(&self, end: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::end(self, end)
    }

    fn keep_attempts(&self, order: &Order) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::keep_attempts(self, order)
    }

    fn write_tombstone(
        &self,
        tombstone: &Order,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::write_tombstone(self, tombstone)
    }

    fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: Tickets,
    ) -> impl Future<Output = Stored<SettleReply>> + Send {
        Self::settle(self, payment, settlement, limit)
    }

    fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::record_refund(self, payment, order)
    }

    fn give_back(&self, plan: &RefundPlan) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::give_back(self, plan)
    }

    fn record_order_refund(
        &self,
        refund: &OrderRefund,
        order: Option<&Order>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::record_order_refund(self, refund, order)
    }

    fn dispute(&self, plan: &DisputePlan) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::dispute(self, plan)
    }

    fn reissue(&self, plan: &ReissuePlan) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::reissue(self, plan)
    }

    fn check_in(&self, plan: &CheckInPlan) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::check_in(self, plan)
    }

    fn check_in_again(
        &self,
        double: &DoubleCheckIn,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::check_in_again(self, double)
    }

    fn revoked(
        &self,
        sale: &SaleId,
        from: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<RevokedPage>> + Send {
        Self::revoked(self, sale, from, most)
    }

    fn check_ins(&self, sale: &SaleId) -> impl Future<Output = Stored<CheckInCounts>> + Send {
        Self::check_ins(self, sale)
    }

    fn doubles(
        &self,
        sale: &SaleId,
        after: Option<&String>,
        most: u16,
    ) -> impl Future<Output = Stored<DoublesPage>> + Send {
        Self::doubles(self, sale, after, most)
    }

    fn order_refund(
        &self,
        key: RefundKey,
    ) -> impl Future<Output = Stored<Option<OrderRefund>>> + Send {
        Self::order_refund(self, key)
    }

    fn order_refunds(
        &self,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Vec<OrderRefund>>> + Send {
        Self::order_refunds(self, order)
    }

    fn sync(
        &self,
        orders: &[Order],
        now: Timestamp,
    ) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send {
        Self::sync(self, orders, now)
    }

    fn get(&self, number: OrderNumber) -> impl Future<Output = Stored<Option<Order>>> + Send {
        Self::get(self, number)
    }

    fn get_many(&self, numbers: &[OrderNumber]) -> impl Future<Output = Stored<Vec<Order>>> + Send {
        Self::get_many(self, numbers)
    }

    fn payment(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> impl Future<Output = Stored<Option<PaymentRecord>>> + Send {
        Self::payment(self, order, payment)
    }

    fn payments(
        &self,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Vec<PaymentRecord>>> + Send {
        Self::payments(self, order)
    }

    fn of_user(
        &self,
        user: &UserId,
        before: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<Page>> + Send {
        Self::of_user(self, user, before, most)
    }

    fn tickets_of(
        &self,
        sale: &SaleId,
        user: &UserId,
    ) -> impl Future<Output = Stored<Tickets>> + Send {
        Self::tickets_of(self, sale, user)
    }

    fn wallet(
        &self,
        user: &UserId,
        currency: Currency,
    ) -> impl Future<Output = Stored<Balance>> + Send {
        Self::wallet(self, user, currency)
    }

    fn statement(&self, user: &UserId) -> impl Future<Output = Stored<WalletStatement>> + Send {
        Self::statement(self, user)
    }

    fn awarded(
        &self,
        user: &UserId,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Option<Award>>> + Send {
        Self::awarded(self, user, order)
    }

    fn award(
        &self,
        user: &UserId,
        order: OrderNumber,
        award: &Award,
        before: Option<Award>,
    ) -> impl Future<Output = Stored<ChangeReply>> + Send {
        Self::award(self, user, order, award, before)
    }

    fn points(&self, user: &UserId) -> impl Future<Output = Stored<PointsStatement>> + Send {
        Self::points(self, user)
    }

    fn due(
        &self,
        shard: u8,
        now: Timestamp,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Due>>> + Send {
        Self::due(self, shard, now, most)
    }

    fn block_claims(
        &self,
        sale: &SaleId,
        tier: &TierId,
        block: u32,
    ) -> impl Future<Output = Stored<BlockClaims>> + Send {
        Self::block_claims(self, sale, tier, block)
    }

    fn statistics(
        &self,
        sale: &SaleId,
    ) -> impl Future<Output = Stored<Vec<(TierId, TierTotals)>>> + Send {
        Self::statistics(self, sale)
    }
}
