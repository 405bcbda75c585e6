//! Payments: records the decision about a payment with the change of its order, and the refund of a whole payment.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::attempts::{attempts_seen, due_of, without_steps};
use super::claims::Naming;
use super::facts::{APPEND, appended};
use super::{Committed, DynamoOrders, Part, Plan, failed_item, must};
use crate::dynamodb::expressions::{Value, put_new, update};
use crate::dynamodb::items::{
    Item, REFUND_ENDED, REFUND_TURN, REFUND_UNDONE, number, order_key, payment_item, payment_key,
    read_payment, refund_attributes, text,
};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::ledger::{Transfer, of_no_order_decided, of_no_order_ended};
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{Order, OrderState, PaymentKey, PaymentRecord};
use engine::ports::{ChangeReply, SettleReply, Settlement, StoreError, Stored};

/// What is told along with the state of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tells {
    /// Nothing: no money has moved.
    Nothing,
    /// That money has moved, once: the state changes.
    Once,
    /// What was told of money that came to us again, which moves nothing.
    Again,
}

impl DynamoOrders {
    pub(super) async fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: Tickets,
    ) -> Stored<SettleReply> {
        let taken = if let Settlement::Exchange(_, plan) = settlement {
            Some(plan.taken_back())
        } else {
            None
        };
        // Two orders of a buyer cannot have payments of one name, and a transaction names no item twice.
        if let Settlement::Exchange(order, refund) = settlement
            && refund.payment.capture.key == payment.capture.key
            && refund.order.number.gene() == order.number.gene()
        {
            let known = self.payment(order.number, &payment.capture.key).await?;
            let missing = || StoreError::Contract("an exchange of nothing".to_owned());
            return Ok(SettleReply::Known(known.ok_or_else(missing)?));
        }
        let mut plan = vec![(Part::Payment, put_new(self.orders(), payment_item(payment))?)];
        let ended = [OrderState::Cancelled, OrderState::Expired];
        match settlement {
            Settlement::Pay(order) => {
                must(order, order.state == OrderState::Paid, "is paid in another state")?;
                let from = [OrderState::Pending; 2];
                plan.push((Part::Order, self.settled(order, payment, from)?));
            }
            Settlement::Exchange(order, refund) => {
                must(order, order.state == OrderState::Paid, "is paid in another state")?;
                let from = [OrderState::Pending; 2];
                plan.push((Part::Order, self.settled(order, payment, from)?));
                let missing = || StoreError::Contract("an exchange of nothing".to_owned());
                let taken = taken.as_ref().ok_or_else(missing)?;
                plan.extend(self.replaces(order, refund, taken)?);
            }
            Settlement::Rescue(order) => {
                must(order, order.state == OrderState::Paid, "is rescued in another state")?;
                plan.push((Part::Order, self.settled(order, payment, ended)?));
                plan.extend(self.claims_of(order, limit, Naming::Known)?);
            }
            Settlement::PayTooLate(order) => {
                must(order, order.state == OrderState::RefundDue, "is refunded in another state")?;
                plan.push((Part::Order, self.settled(order, payment, ended)?));
            }
            Settlement::RefundOnly(Some(order)) => {
                plan.push((Part::Order, self.told(order, order.state)?));
            }
            Settlement::RefundOnly(None) => {}
        }
        let leading = plan.len().min(2);
        plan.extend(self.counted_of_no_order(of_no_order_decided(payment))?);
        if let Some(order) = settlement.order() {
            plan.extend(self.wallet_moves(order)?);
        }
        let Committed::Cancelled(reasons) = self.commit(leading, plan).await? else {
            return Ok(SettleReply::Settled);
        };
        if let Some(known) = failed_item(&reasons, |part| matches!(part, Part::Payment)) {
            return Ok(SettleReply::Known(read_payment(known)?));
        }
        if failed_item(&reasons, |part| matches!(part, Part::Order)).is_some() {
            return Ok(SettleReply::Conflict);
        }
        let is_short = failed_item(&reasons, |part| matches!(part, Part::Wallet)).is_some();
        // What an exchange gives up, and a wallet, is read again, whatever has changed of it.
        let is_read_again = taken.is_some() || is_short;
        Ok(if is_read_again { SettleReply::Conflict } else { SettleReply::Gone })
    }

    pub(super) async fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let moved = of_no_order_ended(payment);
        let tells = if order.is_some() || moved.is_some() { Tells::Once } else { Tells::Nothing };
        let has_failed_later = |refund: &Refund| refund.state == RefundState::FailedLater;
        let may_be_again = order.is_none()
            && moved.is_some()
            && payment.refund.as_ref().is_some_and(has_failed_later);
        match self.write_refund(payment, order, moved, tells).await? {
            // What waits for an operator is told again each day: nothing moves by that.
            ChangeReply::Conflict if may_be_again => {
                self.write_refund(payment, None, None, Tells::Again).await
            }
            reply @ (ChangeReply::Done | ChangeReply::Conflict) => Ok(reply),
        }
    }

    async fn write_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
        moved: Option<Transfer>,
        tells: Tells,
    ) -> Stored<ChangeReply> {
        let mut plan = vec![(Part::Payment, self.refunding(payment, tells)?)];
        if let Some(order) = order {
            plan.push((Part::Order, self.refunded(order, payment)?));
        }
        let leading = plan.len();
        plan.extend(self.counted_of_no_order(moved)?);
        if let Some(order) = order {
            plan.extend(self.wallet_moves(order)?);
        }
        Ok(match self.commit(leading, plan).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }

    /// What the record of a payment moves by itself.
    fn counted_of_no_order<'a>(&self, transfer: Option<Transfer>) -> Stored<Plan<'a>> {
        let Some(transfer) = transfer else { return Ok(Vec::new()) };
        let items = self.ledger().count_of_no_order(&transfer)?;
        Ok(items.into_iter().map(|item| (Part::Account, item)).collect())
    }

    /// Writes into an order what became of its payment.
    fn settled(
        &self,
        order: &Order,
        payment: &PaymentRecord,
        from: [OrderState; 2],
    ) -> Stored<TransactWriteItem> {
        must(order, order.payment.is_some(), "is settled without a payment")?;
        let key = &payment.capture.key;
        let [one, other] = from.map(|state| text(state.as_str()));
        let mut expression = format!(
            "SET #state = :state, #changed_ms = :changed, {APPEND}, \
             #payment_provider = :provider, #payment_id = :payment"
        );
        let mut with: Vec<Value> = vec![
            ("state", text(order.state.as_str())),
            ("changed", number(order.changed_at.ms())),
            ("provider", text(&key.provider)),
            ("payment", text(&key.payment)),
            ("one", one),
            ("other", other),
            appended(order)?,
        ];
        if let Some(attempt) = order.attempts.paid {
            expression.push_str(", #paid_attempt = :attempt");
            with.push(("attempt", number(attempt.get())));
        }
        let mut condition =
            "#state IN (:one, :other) AND attribute_not_exists(#payment_id)".to_owned();
        if order.state != OrderState::Paid {
            // Nothing else takes it out of the index of due work, once what was open has paid it.
            let (seen, version) = attempts_seen(&order.attempts);
            condition = format!("{condition} AND {seen}");
            with.extend(version);
        }
        let (due, at) = due_of(order);
        expression.push_str(&without_steps(due));
        with.extend(at);
        update(self.orders(), order_key(order.number), &expression, &condition, with)
    }

    /// Writes into a payment where its refund stands, over a state that it may follow.
    fn refunding(&self, payment: &PaymentRecord, tells: Tells) -> Stored<TransactWriteItem> {
        let PaymentRecord { capture, refund, ended, undone, .. } = payment;
        let Some(refund) = refund else {
            let PaymentKey { provider, payment } = &capture.key;
            let broken = format!("payment {provider} {payment}: is refunded and was accepted");
            return Err(StoreError::Contract(broken));
        };
        let key = payment_key(capture.order, &capture.key);
        let undone = Some(*undone).filter(|undone| *undone > 0);
        self.refund_state(key, capture.order, (refund, *ended, undone), tells)
    }

    /// Writes the state of a refund into an item, over a state that it may follow, and how many of its names came to nothing:
    /// whoever has seen fewer has older news, and writes nothing; of a whole payment also how often its money came to us
    /// again.
    pub(super) fn refund_state(
        &self,
        key: Item,
        order: OrderNumber,
        (refund, ended, undone): (&Refund, u8, Option<u8>),
        tells: Tells,
    ) -> Stored<TransactWriteItem> {
        let counts = [(REFUND_ENDED, Some(ended)), (REFUND_UNDONE, undone)];
        let counts = counts.into_iter().filter_map(|(name, count)| Some((name, number(count?))));
        let again = if tells == Tells::Again {
            format!(" AND #{REFUND_UNDONE} = :{REFUND_UNDONE}")
        } else {
            String::new()
        };
        let name = REFUND_ENDED;
        let newer = format!(" AND (attribute_not_exists(#{name}) OR #{name} <= :{name}){again}");
        let mut with: Vec<Value> = refund_attributes(order, refund).chain(counts).collect();
        let set: Vec<String> = with.iter().map(|(name, _)| format!("#{name} = :{name}")).collect();
        let is_written = |name: &&&str| with.iter().any(|(written, _)| *written == **name);
        let all = ["refusal", "due_shard", "due_ms", REFUND_TURN];
        let mut gone: Vec<String> =
            all.iter().filter(|name| !is_written(name)).map(|name| format!("#{name}")).collect();
        // What an operator decides leaves the list of unmatched captures.
        if matches!(refund.state, RefundState::Due | RefundState::Explained) {
            gone.extend(["#dispute_list".to_owned(), "#dispute_at".to_owned()]);
        }
        let remove =
            if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
        const FROM: [&str; RefundState::ALL.len()] = [
            "from0", "from1", "from2", "from3", "from4", "from5", "from6", "from7", "from8",
            "from9",
        ];
        let once = tells == Tells::Once;
        let may_be = |state: &RefundState| state.may_be_recorded(refund.state, once);
        let before = RefundState::ALL.into_iter().filter(may_be);
        let from: Vec<Value> =
            FROM.into_iter().zip(before.map(|state| text(state.as_str()))).collect();
        let names: Vec<String> = from.iter().map(|(name, _)| format!(":{name}")).collect();
        let unseen = if refund.has_seen_no_turn() {
            format!(" AND attribute_not_exists(#{REFUND_TURN})")
        } else {
            String::new()
        };
        let condition = format!("#refund_state IN ({}){newer}{unseen}", names.join(", "));
        with.extend(from);
        let expression = format!("SET {}{remove}", set.join(", "));
        update(self.orders(), key, &expression, &condition, with)
    }

    /// Writes into an order that money is back, or is not after all. One whose own payment it is has waited for it, or waits
    /// again.
    fn refunded(&self, order: &Order, payment: &PaymentRecord) -> Stored<TransactWriteItem> {
        if order.payment.as_ref() == Some(&payment.capture.key) {
            let state = payment.refund.as_ref().map(|refund| refund.state);
            let (before, after) = if state == Some(RefundState::FailedLater) {
                (OrderState::Refunded, OrderState::RefundDue)
            } else {
                (OrderState::RefundDue, OrderState::Refunded)
            };
            must(order, order.state == after, "is refunded in another state")?;
            return self.told(order, before);
        }
        self.told(order, order.state)
    }

    /// Writes the last fact of an order, the state that it has then, and when it is due.
    pub(super) fn told(&self, order: &Order, before: OrderState) -> Stored<TransactWriteItem> {
        let mut with: Vec<Value> = vec![
            ("state", text(order.state.as_str())),
            ("changed", number(order.changed_at.ms())),
            ("before", text(before.as_str())),
            appended(order)?,
        ];
        // A pending order is due at its deadline whatever is told of it, and a place may have extended it since it was read.
        let due = if order.state == OrderState::Pending {
            ""
        } else {
            let (due, at) = due_of(order);
            with.extend(at);
            due
        };
        let set = format!("SET #state = :state, #changed_ms = :changed, {APPEND}{due}");
        update(self.orders(), order_key(order.number), &set, "#state = :before", with)
    }
}
