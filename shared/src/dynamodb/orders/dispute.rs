//! Disputes of a payment: each is kept with the payment, and a fact of the order records it.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::settle::Tells;
use super::{Committed, DynamoOrders, Part};
use crate::dynamodb::expressions::{Value, update};
use crate::dynamodb::items::{
    dispute_list_attributes, number, order_refund_key, payment_key, text,
};
use crate::dynamodb::told::text_of;
use engine::domain::basics::money::MinorUnits;
use engine::domain::order::refund::RefundState;
use engine::domain::payment::dispute::DisputePlan;
use engine::ports::{ChangeReply, Stored};

impl DynamoOrders {
    pub(super) async fn dispute(&self, plan: &DisputePlan) -> Stored<ChangeReply> {
        let DisputePlan { order, refund, .. } = plan;
        let mut items = vec![(Part::Payment, self.disputed(plan)?)];
        match refund {
            None => items.push((Part::Order, self.told(order, order.state)?)),
            Some(refund) => {
                let state = (&refund.refund, refund.ended, None);
                let key = order_refund_key(refund.key);
                items.push((
                    Part::Refund,
                    self.refund_state(key, order.number, state, Tells::Once)?,
                ));
                let is_undone = refund.refund.state == RefundState::FailedLater;
                items.push((Part::Order, self.part_is_back(order, is_undone)?));
            }
        }
        let leading = items.len();
        Ok(match self.commit(leading, items).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }

    /// Writes the disputes of a payment over those that were seen, and the name of the open one where refunds see it.
    fn disputed(&self, plan: &DisputePlan) -> Stored<TransactWriteItem> {
        let DisputePlan { payment, before, .. } = plan;
        let key = payment_key(payment.capture.order, &payment.capture.key);
        // The same disputes are always the same text, which the condition compares.
        let mut with: Vec<Value> =
            vec![("accepted", text("accepted")), ("disputes", text_of(&payment.disputes))];
        let seen = if before.is_empty() {
            "attribute_not_exists(#disputes)"
        } else {
            with.push(("before", text_of(before)));
            "#disputes = :before"
        };
        let open = match payment.open_dispute() {
            Some(open) => {
                with.push(("disputed", text(&open.id)));
                ", #disputed = :disputed"
            }
            None => " REMOVE #disputed",
        };
        let mut list = "";
        if let Some(listed) = dispute_list_attributes(payment) {
            with.extend(listed);
            list = ", #dispute_list = :dispute_list, #dispute_at = :dispute_at";
        }
        let expression = format!("SET #disputes = :disputes{list}{open}");
        // A share of the dispute is of the money that was there.
        with.push(("back", number(payment.back)));
        let left = if payment.back == MinorUnits::ZERO {
            "(attribute_not_exists(#back_minor) OR #back_minor = :back)"
        } else {
            "#back_minor = :back"
        };
        let condition = format!("#outcome = :accepted AND {seen} AND {left}");
        update(self.orders(), key, &expression, &condition, with)
    }
}
