//! Statistics: paid orders are counted once, many in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;

use super::{Committed, DynamoOrders, Part, Plan, must};
use crate::dynamodb::expressions::update;
use crate::dynamodb::items::{item, number, order_key, text};
use crate::dynamodb::tables;
use crate::dynamodb::transaction::Reason;
use engine::domain::ids::Leg;
use engine::domain::number::OrderNumber;
use engine::domain::order::{Order, OrderState, totals};
use engine::domain::requested::{MAX_LINES_PER_ORDER, MAX_SEATS_PER_ORDER};
use engine::ports::{MAX_TRANSACTION_ITEMS, Stored, block_of};

// The largest order fits a batch: itself, its seats, and a counter for each line.
const _: () = assert!(1 + MAX_SEATS_PER_ORDER + MAX_LINES_PER_ORDER <= MAX_TRANSACTION_ITEMS);

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

    /// Adds a batch to the statistics, all of its orders or none.
    async fn sync_batch(&self, batch: &[&Order]) -> Stored<Synced> {
        let Some(first) = batch.first() else { return Ok(Synced::All) };
        let mut plan: Plan<'_> = Vec::new();
        for order in batch {
            let with =
                [("paid", text(OrderState::Paid.as_str())), ("yes", AttributeValue::Bool(true))];
            let mark = update(
                self.orders(),
                order_key(order.number),
                "SET #synced = :yes REMOVE #due_shard, #due_ms",
                "#state = :paid AND attribute_not_exists(#synced)",
                with,
            )?;
            plan.push((Part::Order, mark));
        }
        for (block, seat, legs) in sold_seats(batch) {
            let key = item([("pk", text(block)), ("sk", number(seat))]);
            let legs = legs.iter().map(Leg::to_string).collect();
            let with = [("legs", AttributeValue::Ns(legs))];
            let seats = &self.db.tables().seats;
            plan.push((Part::Statistics, update(seats, key, "ADD #sold :legs", "", with)?));
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

/// The seats of some orders with the legs sold. Orders that share a seat on different legs share
/// its entry, because a transaction may name an item only once.
fn sold_seats(orders: &[&Order]) -> Vec<(String, u32, BTreeSet<Leg>)> {
    let mut seats: BTreeMap<(String, u32), BTreeSet<Leg>> = BTreeMap::new();
    for order in orders {
        for line in &order.lines {
            for ticket in &line.tickets {
                let block = block_of(ticket.seat);
                let block = tables::block_key(&order.sale, &line.tier, block);
                seats.entry((block, ticket.seat.0)).or_default().extend(line.legs.iter());
            }
        }
    }
    seats.into_iter().map(|((block, seat), legs)| (block, seat, legs)).collect()
}

/// Most items that an order can add to a batch: itself, its seats, and a counter for each line.
fn weight(order: &Order) -> usize {
    1 + usize::from(order.tickets()) + order.lines.len()
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
