//! The part of a run that finishes what the index in DynamoDB says is due.

use std::collections::BTreeSet;
use std::future::Future;

use super::limit::Limit;
use super::{MAX_DUE, Outcome, Pass, read_each};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::{Order, OrderState};
use crate::flows::discrepancy::{Discrepancy, HoldLookup};
use crate::flows::hold::inventory_of;
use crate::ports::{DUE_SHARDS, Due, Orders, Ports, Seats, Stored};

impl<P: Ports> Pass<'_, P> {
    /// Finishes the due work, and in a second round the work that failed in the first: an order past its deadline must
    /// not wait another minute because a store refused one call.
    pub(super) async fn finish_orders_until_done<E: Future<Output = ()> + Send>(
        &mut self,
        limit: &mut Limit<E>,
    ) -> BTreeSet<OrderNumber> {
        let mut finished = self.finish_orders(limit).await;
        if !limit.is_over && (self.run.report.failed > 0 || !self.run.unread.is_empty()) {
            self.run.report.failed = 0;
            self.run.unread.clear();
            // Discrepancies that were only found are found again, and those whose repair failed are tried again.
            self.run.found.retain(|(_, outcome)| match outcome {
                Outcome::Repaired | Outcome::Changed => true,
                Outcome::Found | Outcome::Failed(_) => false,
            });
            finished.extend(self.finish_orders(limit).await);
        }
        finished
    }

    /// Finishes the work that the index in DynamoDB says is due, and returns the orders it finished. A shard that
    /// cannot be listed, or an order that cannot be finished, does not hold the others up.
    async fn finish_orders<E: Future<Output = ()> + Send>(
        &mut self,
        limit: &mut Limit<E>,
    ) -> BTreeSet<OrderNumber> {
        let mut finished = BTreeSet::new();
        for shard in self.in_turn((0..DUE_SHARDS).collect()) {
            match limit.within(self.finish_shard(shard)).await {
                Some(Ok(orders)) => finished.extend(orders),
                Some(Err(error)) => self.unread(&of_shard(shard), &error),
                None => self.left.push(of_shard(shard)),
            }
        }
        finished
    }

    async fn finish_shard(&mut self, shard: u8) -> Stored<BTreeSet<OrderNumber>> {
        let mut finished = BTreeSet::new();
        let due = self.ports.orders().due(shard, self.now, MAX_DUE).await?;
        let numbers = due.iter().filter_map(|due| match due {
            Due::Order(number) => Some(*number),
            Due::Refund(..) | Due::OrderRefund(_) => None,
        });
        let mut orders = read_each(self.ports, numbers.collect()).await;
        let mut discrepancies = Vec::new();
        for due in due {
            match due {
                Due::Refund(order, payment) => {
                    discrepancies.push(Discrepancy::Refund(order, payment));
                }
                Due::OrderRefund(key) => discrepancies.push(Discrepancy::OrderRefund(key)),
                Due::Order(number) => match orders.remove(&number) {
                    Some(Ok(order)) if self.is_in_grace(&order) => {}
                    Some(Ok(order)) => {
                        let hold = self.look_up(&order).await;
                        discrepancies.extend(unfinished(order, hold, self.now));
                    }
                    Some(Err(error)) => self.unread(&number, &error),
                    // The index is ahead of its table, or names an order twice.
                    None => {}
                },
            }
        }
        // A finished refund does not finish its order.
        let finishes = |discrepancy: &Discrepancy| {
            let is_refund =
                matches!(discrepancy, Discrepancy::Refund(..) | Discrepancy::OrderRefund(_));
            discrepancy.order().filter(|_| !is_refund)
        };
        let numbers: Vec<_> = discrepancies.iter().map(finishes).collect();
        for (number, outcome) in numbers.into_iter().zip(self.repair_all(discrepancies).await) {
            match outcome {
                Outcome::Found | Outcome::Repaired | Outcome::Changed => {
                    finished.extend(number);
                }
                Outcome::Failed(_) => {}
            }
        }
        Ok(finished)
    }

    /// Looks up the order's hold in Redis, for a dry run to print. A repair reads the hold itself.
    async fn look_up(&self, order: &Order) -> HoldLookup {
        if self.epoch.is_some() {
            return HoldLookup::LeftToTheRepair;
        }
        let found = async {
            let at = inventory_of(self.ports, order).await?;
            self.ports.seats().record(&at, order.number).await
        };
        match found.await {
            Ok(record) => HoldLookup::Hold(record),
            Err(error) => HoldLookup::Failed(error.to_string()),
        }
    }
}

fn of_shard(shard: u8) -> String {
    format!("shard {shard} of what is due")
}

/// The unfinished work of an order that the index names; none if the index is behind.
fn unfinished(order: Order, hold: HoldLookup, now: Timestamp) -> Vec<Discrepancy> {
    match order.state {
        OrderState::Pending => vec![Discrepancy::Overdue(Box::new(order), hold)],
        OrderState::Paid
        | OrderState::Cancelled
        | OrderState::Expired
        | OrderState::RefundDue
        | OrderState::Refunded => {
            let order = Box::new(order);
            let is_unclosed = order.attempts_to_ask(now).next().is_some();
            let unclosed = is_unclosed.then(|| Discrepancy::Unclosed(order.clone()));
            let is_unsettled = !order.facts.are_settled();
            let unsettled = is_unsettled.then_some(Discrepancy::Uncounted(order, hold));
            unclosed.into_iter().chain(unsettled).collect()
        }
    }
}
