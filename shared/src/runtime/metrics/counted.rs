//! Ports that count what comes of them. A state is counted where it is written, whoever writes it: a
//! payment that is found at its provider by reconcile counts as one whose callback came.

use crate::runtime::metrics::{Metric, count};
use engine::domain::gate::{Admit, AdmitReply};
use engine::domain::ids::{SaleId, TierId, UserId};
use engine::domain::number::OrderNumber;
use engine::domain::order::{Order, OrderState, PaymentKey, PaymentRecord, TierTotals};
use engine::domain::refund::RefundState;
use engine::domain::time::Timestamp;
use engine::ports::{
    ChangeReply, Claim, CreateReply, Due, Gate, Orders, Page, Queue, SettleReply, Settlement,
    Stored,
};

/// A port, counted.
#[derive(Debug, Clone)]
pub struct Counted<T>(pub T);

impl<T: Gate> Gate for Counted<T> {
    async fn admit(&self, command: &Admit) -> Stored<AdmitReply> {
        let reply = self.0.admit(command).await?;
        match reply {
            AdmitReply::Admitted => count(Some(&command.sale), Metric::Admitted, 1),
            AdmitReply::Exhausted { holds: true, .. } => {
                count(Some(&command.sale), Metric::Waiting, 1)
            }
            AdmitReply::Exhausted { holds: false, .. }
            | AdmitReply::Locked { .. }
            | AdmitReply::TooFast { .. }
            | AdmitReply::BudgetUsedUp { .. } => {}
        }
        Ok(reply)
    }
}

/// Counts an order in its sale.
fn one(order: &Order, metric: Metric) {
    count(Some(&order.sale), metric, 1);
}

/// Counts an order's tickets in its sale.
fn tickets(order: &Order, metric: Metric) {
    count(Some(&order.sale), metric, u64::from(order.tickets()));
}

/// Counts a change that came too late.
fn changed(reply: ChangeReply) -> ChangeReply {
    match reply {
        ChangeReply::Done => {}
        ChangeReply::Conflict => count(None, Metric::VersionConflicts, 1),
    }
    reply
}

impl<T: Orders> Orders for Counted<T> {
    async fn create(&self, order: &Order, limit: u16) -> Stored<CreateReply> {
        let reply = self.0.create(order, limit).await?;
        match &reply {
            CreateReply::Created => {
                one(order, Metric::Held);
                tickets(order, Metric::HeldTickets);
            }
            CreateReply::SeatsTaken(_) => count(None, Metric::ClaimConflicts, 1),
            CreateReply::Exists(_)
            | CreateReply::LimitReached { .. }
            | CreateReply::AttendeeTaken(_) => {}
        }
        Ok(reply)
    }

    async fn end(&self, end: &Order) -> Stored<ChangeReply> {
        let reply = self.0.end(end).await?;
        if reply == ChangeReply::Done {
            match end.state {
                OrderState::Cancelled => one(end, Metric::Cancelled),
                OrderState::Expired => one(end, Metric::Expired),
                OrderState::Pending
                | OrderState::Paid
                | OrderState::RefundDue
                | OrderState::Refunded => {}
            }
        }
        Ok(changed(reply))
    }

    async fn write_tombstone(&self, tombstone: &Order) -> Stored<ChangeReply> {
        self.0.write_tombstone(tombstone).await.map(changed)
    }

    async fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: u16,
    ) -> Stored<SettleReply> {
        let reply = self.0.settle(payment, settlement, limit).await?;
        match (&reply, settlement) {
            (SettleReply::Settled, Settlement::Pay(order) | Settlement::Rescue(order)) => {
                one(order, Metric::Paid);
                tickets(order, Metric::PaidTickets);
            }
            (SettleReply::Conflict, _) => count(None, Metric::VersionConflicts, 1),
            (SettleReply::Settled, Settlement::PayTooLate(_) | Settlement::RefundOnly)
            | (SettleReply::Known(_) | SettleReply::Gone, _) => {}
        }
        Ok(reply)
    }

    async fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let reply = self.0.record_refund(payment, order).await?;
        let state = payment.refund.as_ref().map(|refund| refund.state);
        if reply == ChangeReply::Done && state == Some(RefundState::Failed) {
            count(None, Metric::RefundsFailed, 1);
        }
        Ok(changed(reply))
    }

    fn sync(&self, orders: &[Order]) -> impl Future<Output = Stored<Vec<OrderNumber>>> + Send {
        self.0.sync(orders)
    }

    fn get(&self, number: OrderNumber) -> impl Future<Output = Stored<Option<Order>>> + Send {
        self.0.get(number)
    }

    fn get_many(&self, numbers: &[OrderNumber]) -> impl Future<Output = Stored<Vec<Order>>> + Send {
        self.0.get_many(numbers)
    }

    fn payment(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> impl Future<Output = Stored<Option<PaymentRecord>>> + Send {
        self.0.payment(order, payment)
    }

    fn payments(
        &self,
        order: OrderNumber,
    ) -> impl Future<Output = Stored<Vec<PaymentRecord>>> + Send {
        self.0.payments(order)
    }

    fn of_user(
        &self,
        user: &UserId,
        before: Option<OrderNumber>,
        most: u16,
    ) -> impl Future<Output = Stored<Page>> + Send {
        self.0.of_user(user, before, most)
    }

    fn tickets_of(&self, sale: &SaleId, user: &UserId) -> impl Future<Output = Stored<u16>> + Send {
        self.0.tickets_of(sale, user)
    }

    fn due(
        &self,
        shard: u8,
        now: Timestamp,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Due>>> + Send {
        self.0.due(shard, now, most)
    }

    fn claims(
        &self,
        sale: &SaleId,
        tier: &TierId,
        block: u32,
    ) -> impl Future<Output = Stored<Vec<Claim>>> + Send {
        self.0.claims(sale, tier, block)
    }

    fn statistics(
        &self,
        sale: &SaleId,
    ) -> impl Future<Output = Stored<Vec<(TierId, TierTotals)>>> + Send {
        self.0.statistics(sale)
    }
}

impl<T: Queue> Queue for Counted<T> {
    fn expire_later(
        &self,
        sale: &SaleId,
        order: OrderNumber,
        now: Timestamp,
        deadline: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send {
        self.0.expire_later(sale, order, now, deadline)
    }

    fn sync(&self, order: OrderNumber) -> impl Future<Output = Stored<()>> + Send {
        self.0.sync(order)
    }

    fn load_again(&self, sale: &SaleId) -> impl Future<Output = Stored<()>> + Send {
        self.0.load_again(sale)
    }

    async fn refund(&self, payment: &PaymentRecord) -> Stored<()> {
        self.0.refund(payment).await?;
        count(None, Metric::RefundsRequested, 1);
        Ok(())
    }
}
