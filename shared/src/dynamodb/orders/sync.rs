//! Statistics: paid orders are counted once, many in one transaction.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;

use super::attempts::{attempts_seen, due_of};
use super::{Committed, DynamoOrders, Part, Plan, must};
use crate::dynamodb::expressions::{Value, update};
use crate::dynamodb::items::{item, number, order_key, text};
use crate::dynamodb::tables;
use crate::dynamodb::transaction::Reason;
use engine::domain::number::OrderNumber;
use engine::domain::order::{Order, OrderState, totals};
use engine::domain::requested::MAX_LINES_PER_ORDER;
use engine::ports::{MAX_TRANSACTION_ITEMS, Stored};

// The largest order fits a batch: itself, and a counter for each line.
const _: () = assert!(MAX_LINES_PER_ORDER < MAX_TRANSACTION_ITEMS);

/// The outcome of a batch.
enum Synced {
    /// Its orders are counted.
    All,
    /// None is counted: these are counted already or not paid any more.
    Over(BTreeSet<OrderNumber>),
}

impl DynamoOrders {
    pub(super) async fn sync(&self, orders: &[Order]) -> Stored<Vec<OrderNumber>> {
        let mut seen = BTreeSet::new();
        let due = |order: &&Order| order.state == OrderState::Paid && !order.synced;
        let orders: Vec<&Order> =
            orders.iter().filter(due).filter(|order| seen.insert(order.number)).collect();
        let mut counted = Vec::new();
        for mut batch in batches(&orders) {
            // Every round leaves out at least one order, so this ends.
            while let Synced::Over(over) = self.sync_batch(&batch).await? {
                must(batch[0], !over.is_empty(), "stood in the way of its batch without a reason")?;
                batch.retain(|order| !over.contains(&order.number));
            }
            counted.extend(batch.iter().map(|order| order.number));
        }
        Ok(counted)
    }

    /// Adds a batch to the statistics, all of its orders or none. It touches no seat: those are
    /// claimed and freed by the transactions of other orders at the same time, on other legs, and
    /// would stand in their way.
    async fn sync_batch(&self, batch: &[&Order]) -> Stored<Synced> {
        let Some(first) = batch.first() else { return Ok(Synced::All) };
        let mut plan: Plan<'_> = Vec::new();
        for order in batch {
            // One with an open attempt stays due until that is closed.
            let counted = Order { synced: true, ..Order::clone(order) };
            let (due, at) = due_of(&counted);
            let (seen, version) = attempts_seen(&order.attempts);
            let mut with: Vec<Value> = vec![
                ("paid", text(OrderState::Paid.as_str())),
                ("yes", AttributeValue::Bool(true)),
            ];
            with.extend(version);
            with.extend(at);
            let mark = update(
                self.orders(),
                order_key(order.number),
                &format!("SET #synced = :yes{due}"),
                &format!("#state = :paid AND attribute_not_exists(#synced) AND {seen}"),
                with,
            )?;
            plan.push((Part::Order, mark));
        }
        for ((sale, tier), sum) in totals(batch.iter().copied()) {
            let key =
                item([("pk", text(sale)), ("sk", text(tables::counter_key(&tier, first.number)))]);
            let with = [("tickets", number(sum.tickets)), ("revenue", number(sum.revenue_minor))];
            let add = "ADD #tickets :tickets, #revenue_minor :revenue";
            plan.push((Part::Statistics, update(&self.db.tables().sales, key, add, "", with)?));
        }
        let Committed::Cancelled(reasons) = self.commit(batch.len(), plan).await? else {
            return Ok(Synced::All);
        };
        let over = |(order, (_, reason)): (&&Order, &(Part<'_>, Reason))| {
            matches!(reason, Reason::ConditionalCheckFailed(_)).then_some(order.number)
        };
        Ok(Synced::Over(batch.iter().zip(&reasons).filter_map(over).collect()))
    }
}

/// Most items that an order can add to a batch: itself, and a counter for each line.
fn weight(order: &Order) -> usize {
    1 + order.lines.len()
}

/// Cuts orders into batches that each fit one transaction.
fn batches<'a>(orders: &[&'a Order]) -> Vec<Vec<&'a Order>> {
    let mut batches: Vec<Vec<&Order>> = Vec::new();
    let mut left = 0;
    for order in orders {
        match batches.last_mut() {
            Some(batch) if weight(order) <= left => batch.push(order),
            _ => {
                left = MAX_TRANSACTION_ITEMS;
                batches.push(vec![order]);
            }
        }
        left = left.saturating_sub(weight(order));
    }
    batches
}
