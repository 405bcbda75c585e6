//! Ends a pending order without a payment: cancelled or expired.

use super::attempts::{attempts_seen, due_of, without_steps};
use super::claims::Freed;
use super::facts::{APPEND, appended};
use super::{Committed, DynamoOrders, Part, failed_item, kinds, must};
use crate::dynamodb::expressions::{Value, update};
use crate::dynamodb::items::{number, order_key, text};
use engine::domain::order::{Order, OrderState};
use engine::ports::{ChangeReply, StoreError, Stored};

impl DynamoOrders {
    pub(super) async fn end(&self, end: &Order) -> Stored<ChangeReply> {
        let ends = matches!(end.state, OrderState::Cancelled | OrderState::Expired);
        must(end, ends, "is ended in another state")?;
        let (seen, version) = attempts_seen(&end.attempts);
        let mut with: Vec<Value> = vec![
            ("state", text(end.state.as_str())),
            ("changed", number(end.changed_at.ms())),
            ("pending", text(OrderState::Pending.as_str())),
        ];
        with.extend(version);
        with.push(appended(end)?);
        let (due, at) = due_of(end);
        with.extend(at);
        let due = without_steps(due);
        let change = update(
            self.orders(),
            order_key(end.number),
            &format!("SET #state = :state, #changed_ms = :changed, {APPEND}{due}"),
            &format!("#state = :pending AND {seen}"),
            with,
        )?;
        let mut plan = vec![(Part::Order, change)];
        plan.extend(self.frees_of(end, Freed::Ended)?);
        let Committed::Cancelled(reasons) = self.commit(1, plan).await? else {
            return Ok(ChangeReply::Done);
        };
        if failed_item(&reasons, |part| matches!(part, Part::Order)).is_some() {
            return Ok(ChangeReply::Conflict);
        }
        // Its claims are gone. Either another transaction was ending it meanwhile, or they were
        // never its own.
        match self.get(end.number).await? {
            Some(order) if order.state == OrderState::Pending => Err(StoreError::Contract(
                format!("order {}: pending without its claims: {}", end.number, kinds(&reasons)),
            )),
            _ => Ok(ChangeReply::Conflict),
        }
    }
}
