//! Refunds of paid orders: tickets that buyers give back, and parts of the money.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::attempts::{attempts_seen, due_of};
use super::claims::Freed;
use super::facts::{APPEND, appended};
use super::settle::Tells;
use super::tickets::are_unused;
use super::{Committed, DynamoOrders, Part, Plan, failed_item, kinds, must};
use crate::dynamodb::expressions::{Value, put_new, update};
use crate::dynamodb::items::{
    TICKET_REFUND, attendee_item, attendee_key, number, order_key, order_refund_item,
    order_refund_key, payment_key, text,
};
use crate::dynamodb::told::text_of;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::order_refund::{AskedBy, OrderRefund, RefundCounts};
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Order, OrderState};
use engine::domain::payment::refund::RefundPlan;
use engine::ports::{ChangeReply, StoreError, Stored};

impl DynamoOrders {
    pub(super) async fn give_back(&self, plan: &RefundPlan) -> Stored<ChangeReply> {
        let order = &plan.order;
        let taken = plan.taken_back();
        let head = [Part::Order, Part::Refund, Part::Payment];
        let items = self.items_of(plan, &taken, head)?;
        let Committed::Cancelled(reasons) = self.commit(3, items).await? else {
            return Ok(ChangeReply::Done);
        };
        let is_head = |part: &Part<'_>| {
            matches!(part, Part::Order | Part::Refund | Part::Payment | Part::Wallet)
        };
        if failed_item(&reasons, is_head).is_some() {
            return Ok(ChangeReply::Conflict);
        }
        // Its claims are gone. Either another refund took them meanwhile, or they were never its own.
        match self.get(order.number).await? {
            Some(now) if now.state == OrderState::Paid && now.refunds == plan.before() => {
                let conflicts = kinds(&reasons);
                let text = format!("order {}: paid without its claims: {conflicts}", order.number);
                Err(StoreError::Contract(text))
            }
            _ => Ok(ChangeReply::Conflict),
        }
    }

    /// What a refund writes: to its order, as itself, and to the payment, as these parts; what it makes void; and what
    /// of `taken`, the tickets that it takes back, it frees.
    fn items_of<'a>(
        &self,
        plan: &RefundPlan,
        taken: &'a Order,
        head: [Part<'a>; 3],
    ) -> Stored<Plan<'a>> {
        let RefundPlan { order, refund, .. } = plan;
        let number_of = refund.key.number.get();
        must(order, order.refunds.made == number_of, "makes a refund of another number")?;
        let refund = put_new(self.orders(), order_refund_item(refund))?;
        let written = [self.marked(plan)?, refund, self.counted_back(plan)?];
        let mut items: Plan<'a> = head.into_iter().zip(written).collect();
        let revoked = self.revoked_of(order, &plan.revokes())?;
        items.extend(revoked.map(|revoked| (Part::Revoked, revoked)));
        items.extend(self.wallet_moves(order)?);
        if !taken.is_tombstone() {
            items.extend(self.frees_of(taken, Freed::Returned)?);
        }
        Ok(items)
    }

    /// What the order `new` makes of the tickets that it replaces, `taken` with the refund that gives them up, as it
    /// is paid. Within a sale it takes the claims of the people over.
    pub(super) fn replaces<'a>(
        &self,
        new: &'a Order,
        plan: &RefundPlan,
        taken: &'a Order,
    ) -> Stored<Plan<'a>> {
        // Order and payment are the new order's here.
        let mut items = self.items_of(plan, taken, [Part::Refund, Part::Refund, Part::Refund])?;
        if new.sale != taken.sale {
            return Ok(items);
        }
        let before: BTreeSet<AttendeeHash> = taken.attendee_claims().collect();
        let after: BTreeSet<AttendeeHash> = new.attendee_claims().collect();
        items.retain(|(part, _)| !matches!(part, Part::Attendee(hash) if after.contains(hash)));
        for hash in after {
            let claim = match before.contains(&hash) {
                false => put_new(self.orders(), attendee_item(new, hash))?,
                true => {
                    let key = attendee_key(&new.sale, hash);
                    let with = [("order", text(taken.number)), ("new", text(new.number))];
                    update(self.orders(), key, "SET #order = :new", "#order = :order", with)?
                }
            };
            items.push((Part::Attendee(hash), claim));
        }
        Ok(items)
    }

    /// Marks the tickets in the order, one by one: whoever erases attendees meanwhile is not undone.
    fn marked(&self, plan: &RefundPlan) -> Stored<TransactWriteItem> {
        let RefundPlan { order, refund, .. } = plan;
        let RefundCounts { made, back } = order.refunds;
        let mut set = format!(
            "SET #state = :state, #changed_ms = :changed, #refunds = :made, #refunds_back = :back, \
             {APPEND}"
        );
        for (line, of_line) in order.lines.iter().enumerate() {
            for (ticket, of_ticket) in of_line.tickets.iter().enumerate() {
                if of_ticket.refund == Some(refund.key.number) {
                    let path = format!("#lines[{line}].#tickets[{ticket}].#{TICKET_REFUND}");
                    set.push_str(&format!(", {path} = :made"));
                }
            }
        }
        let (due, at) = due_of(order);
        set.push_str(due);
        let (attempts, version) = attempts_seen(&order.attempts);
        let (refunds, before) = refunds_seen(plan.before());
        let unused =
            if plan.must_be_unused() { are_unused(order, &plan.revokes())? } else { String::new() };
        let condition = format!("#state = :paid AND {refunds} AND {attempts}{unused}");
        let mut with: Vec<Value> = vec![
            ("state", text(order.state.as_str())),
            ("changed", number(order.changed_at.ms())),
            ("made", number(made)),
            ("back", number(back)),
            ("paid", text(OrderState::Paid.as_str())),
            appended(order)?,
        ];
        with.extend(before);
        with.extend(version);
        with.extend(at);
        update(self.orders(), order_key(order.number), &set, &condition, with)
    }

    /// Counts in the payment what goes back of it, never more than was captured, and nothing while a dispute is open
    /// but what the dispute takes.
    fn counted_back(&self, plan: &RefundPlan) -> Stored<TransactWriteItem> {
        let RefundPlan { refund, payment, .. } = plan;
        let amount = refund.worth().amount_minor;
        let key = payment_key(refund.key.order, &refund.payment);
        let (undisputed, disputes) = match refund.asked_by {
            // It goes into a wallet that has a debt: what it has paid has no dispute itself.
            AskedBy::Dispute if refund.payment.provider.is_wallet() => {
                ("attribute_exists(#outcome)", None)
            }
            // The dispute that takes it was seen open.
            AskedBy::Dispute => ("#disputes = :disputes", Some(text_of(&payment.disputes))),
            // It is back, or waits for its dispute, whatever else is disputed.
            AskedBy::Outside | AskedBy::SaleCancelled => ("attribute_exists(#outcome)", None),
            AskedBy::Buyer | AskedBy::Operator | AskedBy::Exchange => {
                ("attribute_not_exists(#disputed)", None)
            }
        };
        let condition = format!(
            "#outcome = :accepted AND #currency = :currency AND {undisputed} AND \
             (attribute_not_exists(#back_minor) OR #back_minor <= :room)"
        );
        let mut with = vec![
            ("amount", number(amount)),
            ("accepted", text("accepted")),
            ("currency", text(refund.amount.currency)),
            ("room", number(payment.capture.amount.amount_minor - amount)),
        ];
        with.extend(disputes.map(|disputes| ("disputes", disputes)));
        update(self.orders(), key, "ADD #back_minor :amount", &condition, with)
    }

    pub(super) async fn record_order_refund(
        &self,
        refund: &OrderRefund,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let key = order_refund_key(refund.key);
        let tells = if order.is_some() { Tells::Once } else { Tells::Nothing };
        let state = (&refund.refund, refund.ended, None);
        let state = self.refund_state(key, refund.key.order, state, tells)?;
        let mut plan = vec![(Part::Refund, state)];
        if let Some(order) = order {
            let is_undone = refund.refund.state == RefundState::FailedLater;
            plan.push((Part::Order, self.part_is_back(order, is_undone)?));
        }
        let leading = plan.len();
        if let Some(order) = order {
            plan.extend(self.wallet_moves(order)?);
        }
        Ok(match self.commit(leading, plan).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }

    /// Writes into an order that the money of one more refund is back, or is not after all.
    pub(super) fn part_is_back(&self, order: &Order, is_undone: bool) -> Stored<TransactWriteItem> {
        let RefundCounts { made, back } = order.refunds;
        let before = if is_undone { back.checked_add(1) } else { back.checked_sub(1) };
        let counted = before.filter(|before| (*before).max(back) <= made);
        must(order, counted.is_some(), "has the money of a refund back that it has not")?;
        let (refunds, before) =
            refunds_seen(RefundCounts { made, back: counted.unwrap_or_default() });
        let mut with: Vec<Value> = vec![
            ("state", text(order.state.as_str())),
            ("changed", number(order.changed_at.ms())),
            ("after", number(back)),
            appended(order)?,
        ];
        with.extend(before);
        let (due, at) = due_of(order);
        let (attempts, version) = attempts_seen(&order.attempts);
        with.extend(version);
        with.extend(at);
        let set = format!(
            "SET #state = :state, #changed_ms = :changed, #refunds_back = :after, {APPEND}{due}"
        );
        let condition = format!("{refunds} AND {attempts}");
        update(self.orders(), order_key(order.number), &set, &condition, with)
    }
}

/// The condition that an order has still these refunds, and what it compares with.
fn refunds_seen(counts: RefundCounts) -> (&'static str, Vec<Value>) {
    let RefundCounts { made, back } = counts;
    if made == 0 {
        return ("attribute_not_exists(#refunds)", Vec::new());
    }
    let with = vec![("refunds_seen", number(made)), ("back_seen", number(back))];
    ("#refunds = :refunds_seen AND #refunds_back = :back_seen", with)
}
