//! The orders in DynamoDB: every change of an order is one transaction with the claims it makes or
//! frees, so that claims and live orders correspond whatever crashes.
//!
//! A file for each subject: `create` and `end` of an order, `settle` of its payments, `sync` of the
//! statistics; `claims` is what an order takes and gives back, `reads` what needs no transaction.

mod claims;
mod create;
mod end;
mod reads;
mod settle;
mod sync;

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::dynamo::Dynamo;
use super::items::Item;
use super::transaction::{Reason, Transacted};
use engine::domain::ids::{AttendeeId, SaleId, Seat, TierId, UserId};
use engine::domain::number::OrderNumber;
use engine::domain::order::{Order, OrderLine, PaymentKey, PaymentRecord, TierTotals};
use engine::domain::time::Timestamp;
use engine::ports::{
    ChangeReply, Claim, CreateReply, Due, Orders, Page, SettleReply, Settlement, StoreError, Stored,
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
    Seat(&'a OrderLine, Seat),
    Buyer,
    Attendee(&'a AttendeeId),
    Statistics,
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

fn must(order: &Order, is_so: bool, what: &str) -> Stored<()> {
    let broken = || StoreError::Contract(format!("order {}: {what}", order.number));
    is_so.then_some(()).ok_or_else(broken)
}

impl Orders for DynamoOrders {
    async fn create(&self, order: &Order, limit: u16) -> Stored<CreateReply> {
        Self::create(self, order, limit).await
    }

    async fn end(&self, end: &Order) -> Stored<ChangeReply> {
        Self::end(self, end).await
    }

    async fn write_tombstone(&self, tombstone: &Order) -> Stored<ChangeReply> {
        Self::write_tombstone(self, tombstone).await
    }

    async fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: u16,
    ) -> Stored<SettleReply> {
        Self::settle(self, payment, settlement, limit).await
    }

    async fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        Self::record_refund(self, payment, order).await
    }

    async fn sync(&self, orders: &[Order]) -> Stored<Vec<OrderNumber>> {
        Self::sync(self, orders).await
    }

    async fn get(&self, number: OrderNumber) -> Stored<Option<Order>> {
        Self::get(self, number).await
    }

    async fn get_many(&self, numbers: &[OrderNumber]) -> Stored<Vec<Order>> {
        Self::get_many(self, numbers).await
    }

    async fn payment(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> Stored<Option<PaymentRecord>> {
        Self::payment(self, order, payment).await
    }

    async fn payments(&self, order: OrderNumber) -> Stored<Vec<PaymentRecord>> {
        Self::payments(self, order).await
    }

    async fn of_user(&self, user: &UserId, before: Option<OrderNumber>, most: u16) -> Stored<Page> {
        Self::of_user(self, user, before, most).await
    }

    async fn tickets_of(&self, sale: &SaleId, user: &UserId) -> Stored<u16> {
        Self::tickets_of(self, sale, user).await
    }

    async fn due(&self, shard: u8, now: Timestamp, most: u16) -> Stored<Vec<Due>> {
        Self::due(self, shard, now, most).await
    }

    async fn claims(&self, sale: &SaleId, tier: &TierId, block: u32) -> Stored<Vec<Claim>> {
        Self::claims(self, sale, tier, block).await
    }

    async fn statistics(&self, sale: &SaleId) -> Stored<Vec<(TierId, TierTotals)>> {
        Self::statistics(self, sale).await
    }
}
