//! Orders that come to life, and the tombstones of those that never do.

use std::collections::BTreeSet;

use super::claims::conflicts;
use super::{Committed, DynamoOrders, Part, failed_item, must};
use crate::dynamodb::expressions::put_new;
use crate::dynamodb::items::{order_item, read_order};
use engine::domain::ids::AttendeeId;
use engine::domain::order::{Order, OrderState};
use engine::domain::tickets::Tickets;
use engine::ports::{ChangeReply, CreateReply, StoreError, Stored};

impl DynamoOrders {
    pub(super) async fn create(&self, order: &Order, limit: Tickets) -> Stored<CreateReply> {
        must(order, order.state == OrderState::Pending, "is created in another state")?;
        must(order, !order.is_tombstone(), "is created without lines")?;
        if let Some(attendee) = named_twice(order) {
            let reply = || CreateReply::AttendeeTaken(attendee.clone());
            let existing = self.get(order.number).await?;
            return Ok(existing.map_or_else(reply, |order| CreateReply::Exists(Box::new(order))));
        }
        let mut plan = vec![(Part::Order, put_new(self.orders(), order_item(order))?)];
        plan.extend(self.claims_of(order, limit)?);
        let Committed::Cancelled(reasons) = self.commit(1, plan).await? else {
            return Ok(CreateReply::Created);
        };
        if let Some(existing) = failed_item(&reasons, |part| matches!(part, Part::Order)) {
            return Ok(CreateReply::Exists(Box::new(read_order(existing)?)));
        }
        if let Some(reply) = conflicts(order, &reasons)?.reply() {
            return Ok(reply);
        }
        // Only its own claims stood against it, so it should exist.
        match self.get(order.number).await? {
            Some(order) => Ok(CreateReply::Exists(Box::new(order))),
            None => Err(StoreError::Contract(format!(
                "order {}: claims without their order: {reasons:?}",
                order.number
            ))),
        }
    }

    pub(super) async fn write_tombstone(&self, tombstone: &Order) -> Stored<ChangeReply> {
        must(tombstone, tombstone.is_tombstone(), "is a tombstone with lines")?;
        must(tombstone, tombstone.state == OrderState::Expired, "is a tombstone in another state")?;
        let plan = vec![(Part::Order, put_new(self.orders(), order_item(tombstone))?)];
        Ok(match self.commit(1, plan).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }
}

/// The attendee that an order names twice: it could not claim both in one transaction.
fn named_twice(order: &Order) -> Option<&AttendeeId> {
    let mut seen = BTreeSet::new();
    order.attendees().find(|attendee| !seen.insert(*attendee))
}
