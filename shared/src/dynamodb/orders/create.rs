//! Creates a pending order with its claims, and writes the tombstone of a number under which no order was made.

use std::collections::BTreeSet;

use super::claims::{Naming, conflicts};
use super::{Committed, DynamoOrders, Part, failed_item, kinds, must};
use crate::dynamodb::expressions::put_new;
use crate::dynamodb::items::{order_item, read_order};
use engine::domain::basics::tickets::Tickets;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::{Order, OrderState};
use engine::ports::{ChangeReply, CreateReply, StoreError, Stored};

impl DynamoOrders {
    pub(super) async fn create(&self, order: &Order, limit: Tickets) -> Stored<CreateReply> {
        must(order, order.state == OrderState::Pending, "is created in another state")?;
        must(order, !order.is_tombstone(), "is created without lines")?;
        if let Some(attendee) = named_twice(order) {
            let reply = || CreateReply::AttendeeTaken(attendee);
            let existing = self.get(order.number).await?;
            return Ok(existing.map_or_else(reply, |order| CreateReply::Exists(Box::new(order))));
        }
        let mut plan = vec![(Part::Order, put_new(self.orders(), order_item(order))?)];
        plan.extend(self.claims_of(order, limit, Naming::New)?);
        let Committed::Cancelled(reasons) = self.commit(1, plan).await? else {
            return Ok(CreateReply::Created);
        };
        if let Some(existing) = failed_item(&reasons, |part| matches!(part, Part::Order)) {
            return Ok(CreateReply::Exists(Box::new(read_order(existing)?)));
        }
        if let Some(reply) = conflicts(order, limit, &reasons)?.reply() {
            // An attendee's refusal is shown only to a buyer against whose bound it was counted.
            let shows_attendee = matches!(reply, CreateReply::AttendeeTaken(_));
            let may_be_shown = !shows_attendee || self.count_named(order, limit).await?;
            return Ok(if may_be_shown { reply } else { CreateReply::AttendeeLimit });
        }
        // Only its own claims stood against it, so it should exist.
        match self.get(order.number).await? {
            Some(order) => Ok(CreateReply::Exists(Box::new(order))),
            None => Err(StoreError::Contract(format!(
                "order {}: claims without their order: {}",
                order.number,
                kinds(&reasons)
            ))),
        }
    }

    /// Counts the people of an order that is refused among those whom its buyer has named; false if
    /// these would be too many.
    async fn count_named(&self, order: &Order, limit: Tickets) -> Stored<bool> {
        let plan = vec![(Part::Buyer, self.name(order, limit)?)];
        Ok(match self.commit(1, plan).await? {
            Committed::Done => true,
            Committed::Cancelled(_) => false,
        })
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
fn named_twice(order: &Order) -> Option<AttendeeHash> {
    let mut seen = BTreeSet::new();
    order.attendee_claims().find(|hash| !seen.insert(*hash))
}
