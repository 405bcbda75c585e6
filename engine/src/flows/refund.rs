//! Refund: refund a payment, once, and record the provider's reply.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::{AskedBy, OrderRefund, RefundKey};
use crate::domain::order::refund::{Refund, RefundReply, RefundState, TURN_GOOD_SECONDS};
use crate::domain::order::{Capture, Order, PaymentKey, PaymentRecord};
use crate::domain::payment::outside::known_outside;
use crate::domain::payment::start::Turn;
use crate::flows::outside::{holders, is_disputed, record_sent_back, waits_for_word};
use crate::flows::sync::settle_soon;
use crate::ports::{
    ChangeReply, Orders, Ports, Provider, Queue, StoreError, Stored, delay_seconds, messages,
};

/// Most attempts; a payment that changed meanwhile is read again.
const ATTEMPTS: usize = 5;
/// Fewest seconds after which a message comes again that found the limit on calls used up.
const AGAIN_SECONDS: i64 = 5;

/// Puts a refund's request into the queue, also where it was before and nothing was heard of it
/// since. Nothing is done for a payment that is not to be refunded, or that is refunded; one that waits for an
/// operator is told again.
///
/// # Errors
/// Fails if a store does; running it again finishes it. The request may then be in the queue twice.
pub async fn request(ports: &impl Ports, record: &PaymentRecord, now: Timestamp) -> Stored<()> {
    let Some(requested) = record.requested(now) else { return Ok(()) };
    if record.is_unmatched() {
        let PaymentKey { provider, payment } = &record.capture.key;
        let order = record.capture.order;
        tracing::error!(%order, %provider, %payment, "a capture of no order waits for an operator");
    } else {
        ports.queue().refund(record).await?;
    }
    match ports.orders().record_refund(&requested, None).await? {
        // A conflict: its consumer was quicker than this.
        ChangeReply::Done | ChangeReply::Conflict => Ok(()),
    }
}

/// Asks the provider to refund a payment, records its answer, and with it, in one transaction,
/// that the order which waited for this money is refunded. Running it twice sends nothing back
/// twice: the payment is the provider's idempotency key.
///
/// # Errors
/// Fails if a store or the provider does; running it again finishes it. A payment that is not
/// recorded as one to refund breaks the contract: no money moves on the word of a message.
pub async fn refund(
    ports: &impl Ports,
    order: OrderNumber,
    key: &PaymentKey,
    now: Timestamp,
) -> Stored<Outcome> {
    // With the name by which it was asked: what came of one name says nothing of the next.
    let mut reply = None;
    for _ in 0..ATTEMPTS {
        let (record, refund) = being_refunded(ports, order, key).await?;
        match refund.state {
            RefundState::Refunded
            | RefundState::Outside
            | RefundState::FailedLater
            | RefundState::Settled
                if refund.state != RefundState::FailedLater || stands(Guard::AfterWord) =>
            {
                return Ok(Outcome::Asked(refund));
            }
            // No money moves on the word of a message.
            RefundState::Unmatched | RefundState::Explained => {
                let text = format!("payment {} {}: nobody refunds it", key.provider, key.payment);
                return Err(StoreError::Contract(text));
            }
            // What the provider had and did not bring to who paid is not sent again by the clock; a hand may have sent it.
            RefundState::Failed if record.ended > 0 && stands(Guard::AfterWord) => {
                return looked_into(ports, &record, now).await.map(Outcome::Asked);
            }
            RefundState::Due
            | RefundState::Requested
            | RefundState::Pending
            | RefundState::Failed
            | RefundState::Refunded
            | RefundState::Outside
            | RefundState::FailedLater
            | RefundState::Settled => {}
        }
        let said = match &reply {
            Some((ended, said)) if *ended == record.ended => said,
            Some(_) | None => match turn(ports, &record, now).await? {
                Turn::Now => {
                    &reply.insert((record.ended, ports.provider().refund(&record).await?)).1
                }
                Turn::At(at) if refund.turn_at == Some(at) => return Ok(Outcome::TooEarly(at)),
                Turn::At(at) => match keep_turn(ports, &record, at, now).await? {
                    ChangeReply::Done => return Ok(Outcome::TooEarly(at)),
                    ChangeReply::Conflict => continue,
                },
            },
        };
        if let Some(now_is) = record_reply(ports, &record, said, now).await? {
            return Ok(Outcome::Asked(now_is));
        }
    }
    let PaymentKey { provider, payment } = key;
    Err(StoreError::Unavailable(format!("payment {provider} {payment} keeps changing")))
}

/// The turn of a refund that a capture decides: the one that its payment has, as long as it is good, or another one. Any other
/// refund may be sent now.
async fn turn(ports: &impl Ports, record: &PaymentRecord, now: Timestamp) -> Stored<Turn> {
    if !record.needs_turn() || !stands(Guard::RefundTurn) {
        return Ok(Turn::Now);
    }
    match record.refund.as_ref().and_then(|refund| refund.turn_at) {
        Some(at) if now < at => Ok(Turn::At(at)),
        Some(at) if now < at.plus_seconds(TURN_GOOD_SECONDS) => Ok(Turn::Now),
        Some(_) | None => ports.provider().refund_turn(record).await,
    }
}

/// Keeps the turn of a refund on its payment.
async fn keep_turn(
    ports: &impl Ports,
    record: &PaymentRecord,
    at: Timestamp,
    now: Timestamp,
) -> Stored<ChangeReply> {
    let Some(waiting) = record.with_turn(at, now) else { return Ok(ChangeReply::Conflict) };
    ports.orders().record_refund(&waiting, None).await
}

/// Handles a message that asks for [`refund`]; while the limit on calls is used up, the message is put back with a
/// delay, and while a refund waits for its turn. Returns the payment's record if the provider was asked.
///
/// # Errors
/// As [`refund`].
pub async fn refund_or_requeue(
    ports: &impl Ports,
    message: messages::Refund,
    now: Timestamp,
) -> Stored<Option<Refund>> {
    let messages::Refund { provider, payment, order, refund: part, .. } = message.clone();
    let key = PaymentKey { provider, payment };
    let done = match part {
        None => refund(ports, order, &key, now).await,
        Some(number) => refund_part(ports, RefundKey { order, number }, now).await,
    };
    let at = match done {
        Ok(Outcome::Asked(refund)) => return Ok(Some(refund)),
        Ok(Outcome::TooEarly(at)) => at,
        Err(StoreError::Limited(seconds)) => now.plus_seconds(AGAIN_SECONDS.max(seconds.into())),
        Err(error) => return Err(error),
    };
    ports.queue().send(&message.into(), Some(delay_seconds(now, at))).await.map(|()| None)
}

/// Puts the request of a refund of an order into the queue, also where it was before and nothing was heard
/// of it since. Nothing is done for one whose money is back, and nothing is sent for one that waits for an operator: it is
/// told again, or is over, because the order has no valid ticket left.
///
/// # Errors
/// As [`request`].
pub async fn request_part(ports: &impl Ports, refund: &OrderRefund, now: Timestamp) -> Stored<()> {
    let Some(mut requested) = refund.requested(now) else { return Ok(()) };
    match requested.refund.state {
        RefundState::Outside => {
            if !waits_for_word(ports, refund.key.order).await? {
                requested.refund.state = RefundState::Refunded;
            }
        }
        RefundState::FailedLater => {}
        RefundState::Due
        | RefundState::Requested
        | RefundState::Pending
        | RefundState::Failed
        | RefundState::Refunded
        | RefundState::Unmatched
        | RefundState::Explained
        | RefundState::Settled => ports.queue().refund_part(refund, None).await?,
    }
    match ports.orders().record_order_refund(&requested, None).await? {
        // A conflict: its consumer was quicker than this.
        ChangeReply::Done | ChangeReply::Conflict => Ok(()),
    }
}

/// What became of the request of a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The provider was asked, now or before: what is known of it.
    Asked(Refund),
    /// It waits until then: for its turn, or because the one before was asked for just now.
    TooEarly(Timestamp),
}

/// Asks the provider for a refund of an order, records its answer, and with it, in one transaction, that its
/// money is back. Running it twice sends nothing back twice: the refund's name is the idempotency key.
///
/// # Errors
/// As [`refund`].
pub async fn refund_part(ports: &impl Ports, key: RefundKey, now: Timestamp) -> Stored<Outcome> {
    let missing = |what: &str| StoreError::Contract(format!("refund {key}: {what}"));
    // With the name by which it was asked: what came of one name says nothing of the next.
    let (mut reply, mut has_looked) = (None, false);
    for _ in 0..ATTEMPTS {
        let refunds = ports.orders().order_refunds(key.order).await?;
        let refund = refunds.iter().find(|refund| refund.key == key);
        let refund = refund.ok_or_else(|| missing("it was never made"))?;
        // What the provider had and did not bring to who paid is not sent again by the clock.
        let state = refund.refund.state;
        let is_ended = state == RefundState::Failed && refund.ended > 0;
        let waits = state == RefundState::FailedLater || is_ended;
        if state.is_back() || waits && stands(Guard::AfterWord) {
            let is_taken = reply.as_ref().is_some_and(|(_, said)| is_taken(said));
            if state == RefundState::Settled && is_taken {
                tracing::error!(refund = %key, "it was paid otherwise, and its provider has it too");
            }
            return Ok(Outcome::Asked(refund.refund.clone()));
        }
        let said = match &reply {
            Some((name, said)) if *name == refund.name() => said,
            Some(_) | None => match asked(ports, refund, &refunds, has_looked, now).await? {
                Asked::Said(said) => &reply.insert((refund.name(), said)).1,
                Asked::TooEarly(at) => return Ok(Outcome::TooEarly(at)),
                Asked::Disputed(waits) => {
                    let waiting = OrderRefund { refund: waits, ..refund.clone() };
                    match ports.orders().record_order_refund(&waiting, None).await? {
                        ChangeReply::Done => return Ok(Outcome::Asked(waiting.refund)),
                        ChangeReply::Conflict => continue,
                    }
                }
                Asked::Looked => {
                    has_looked = true;
                    continue;
                }
            },
        };
        // It was not sent, or was refused in the same words: that is not written over what an operator has said meanwhile.
        if refund.held().as_ref() == Some(said) {
            let now_is = ports.orders().order_refund(key).await?;
            let said_since = now_is.filter(|now_is| now_is.refund.state != RefundState::Failed);
            if let Some(said_since) = said_since {
                return Ok(Outcome::Asked(said_since.refund));
            }
        }
        let Some(after) = refund.after_reply(said, now) else { continue };
        let order = match said {
            RefundReply::Refunded | RefundReply::Outside => {
                let order = ports.orders().get(key.order).await?;
                let order = order.ok_or_else(|| missing("its order is not there"))?;
                Some(order.after_part(refund, now))
            }
            RefundReply::Pending => None,
            RefundReply::Refused(why) | RefundReply::Ended(why) | RefundReply::Conflict(why) => {
                tracing::error!(refund = %key, why, "a refund was refused");
                None
            }
        };
        if write_part(ports, &after, order.as_ref()).await? {
            return Ok(Outcome::Asked(after.refund));
        }
    }
    Err(StoreError::Unavailable(format!("refund {key} keeps changing")))
}

/// What came of asking for a refund of an order.
enum Asked {
    Said(RefundReply),
    /// It waits until then.
    TooEarly(Timestamp),
    /// Something that was made by hand stood against it, and is recorded now: it may have paid this very refund.
    Looked,
    /// A dispute of its payment is open: it waits, so.
    Disputed(Refund),
}

/// Asks a provider for a refund of an order whose refunds are `refunds`, or says what is known without asking: the provider
/// took the money of a lost dispute back before we knew of it, somebody sent it by hand, and the transaction that records a
/// refund to a wallet puts the money into it.
async fn asked(
    ports: &impl Ports,
    refund: &OrderRefund,
    refunds: &[OrderRefund],
    has_looked: bool,
    now: Timestamp,
) -> Stored<Asked> {
    if refund.asked_by == AskedBy::Outside {
        return Ok(Asked::Said(RefundReply::Outside));
    }
    if refund.is_taken_by_dispute() || refund.payment.provider.is_wallet() {
        return Ok(Asked::Said(RefundReply::Refunded));
    }
    let key = refund.key;
    let payment = ports.orders().payment(key.order, &refund.payment).await?;
    let missing = || StoreError::Contract(format!("refund {key}: its payment is not there"));
    let payment = payment.ok_or_else(missing)?;
    if stands(Guard::DisputeOpen)
        && let Some(waits) = refund.refund.waiting_for_dispute(now)
        && is_disputed(ports, &payment).await?
    {
        return Ok(Asked::Disputed(waits));
    }
    let payment = payment.at_provider();
    let all = refunds_of(ports, &payment, refunds).await?;
    if let Some(at) = refund.may_be_asked_at(&all).filter(|at| now < *at) {
        return Ok(Asked::TooEarly(at));
    }
    let outside = known_outside(&all, refund);
    let said = ports.provider().refund_part(&payment, refund, outside).await?;
    if has_looked || !matches!(said, RefundReply::Conflict(_)) {
        return Ok(Asked::Said(said));
    }
    let PaymentKey { provider, payment } = &payment.capture.key;
    if let Err(refusal) = record_sent_back(ports, provider, payment, now).await {
        tracing::error!(refund = %key, %refusal, "a conflict is not recorded");
    }
    Ok(Asked::Looked)
}

/// Has a refund of an order that was refused asked for again, because an operator says so; one in another state is left
/// as it is. `None` if there is no such refund. WeChat Pay and Alipay, which list no refunds of a payment, are sent a
/// refused one again only so: somebody may have sent the money back by hand meanwhile.
///
/// # Errors
/// Fails if a store does; saying it again finishes it.
pub async fn ask_again(
    ports: &impl Ports,
    key: RefundKey,
    now: Timestamp,
) -> Stored<Option<OrderRefund>> {
    for _ in 0..ATTEMPTS {
        let Some(refund) = ports.orders().order_refund(key).await? else { return Ok(None) };
        // Nobody sends what went back outside, or what a dispute has taken that is not won.
        let is_others = refund.asked_by == AskedBy::Outside || refund.is_taken_by_dispute();
        if !refund.refund.state.has_failed() || is_others {
            return Ok(Some(refund));
        }
        let due = OrderRefund { refund: Refund::due(now), ..refund };
        match ports.orders().record_order_refund(&due, None).await? {
            ChangeReply::Done => {
                if let Err(error) = request_part(ports, &due, now).await {
                    tracing::warn!(refund = %key, %error, "it is left to the sweeper");
                }
                return Ok(Some(due));
            }
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("refund {key} keeps changing")))
}

/// All refunds of a payment: those of the order that it paid, and of the orders to which its money was moved. `refunds` are
/// those of one of them.
async fn refunds_of(
    ports: &impl Ports,
    payment: &PaymentRecord,
    refunds: &[OrderRefund],
) -> Stored<Vec<OrderRefund>> {
    let Capture { key, order, .. } = &payment.capture;
    let is_moved =
        refunds.iter().any(|one| one.exchanged_for().is_some() || one.key.order != *order);
    if !is_moved {
        return Ok(refunds.to_vec());
    }
    let holders = holders(ports, *order, key).await?;
    Ok(holders.into_iter().flat_map(|holder| holder.refunds).collect())
}

/// True if a provider has a refund, or has sent it.
const fn is_taken(reply: &RefundReply) -> bool {
    matches!(reply, RefundReply::Refunded | RefundReply::Pending)
}

/// Has the refund of a whole payment that has failed asked for again, because an operator says so; one in another state is
/// left as it is. One that came to nothing has another name then. `None` if no such payment goes back.
///
/// # Errors
/// Fails if a store does; saying it again finishes it.
pub async fn ask_whole_again(
    ports: &impl Ports,
    order: OrderNumber,
    key: &PaymentKey,
    now: Timestamp,
) -> Stored<Option<PaymentRecord>> {
    for _ in 0..ATTEMPTS {
        let record = ports.orders().payment(order, key).await?;
        let Some(record) = record.filter(|record| record.refund.is_some()) else { return Ok(None) };
        let Some(due) = record.again(now) else { return Ok(Some(record)) };
        match ports.orders().record_refund(&due, None).await? {
            ChangeReply::Done => {
                if let Err(error) = request(ports, &due, now).await {
                    tracing::warn!(%order, %error, "a refund is left to the sweeper");
                }
                return Ok(Some(due));
            }
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("payment {} keeps changing", key.payment)))
}

/// Records that an operator has paid the refund of a whole payment otherwise, as `how` tells; one that has not failed is left
/// as it is. `None` if no such payment goes back.
///
/// # Errors
/// Fails if a store does; saying it again finishes it.
pub async fn settle_whole(
    ports: &impl Ports,
    order: OrderNumber,
    key: &PaymentKey,
    how: &str,
    now: Timestamp,
) -> Stored<Option<PaymentRecord>> {
    for _ in 0..ATTEMPTS {
        let record = ports.orders().payment(order, key).await?;
        let Some(record) = record.filter(|record| record.refund.is_some()) else { return Ok(None) };
        let Some(settled) = record.settled(how, now) else { return Ok(Some(record)) };
        let told = ports.orders().get(order).await?;
        let told = told.and_then(|order| order.after_refund_settled(&settled, now));
        if write_whole(ports, &settled, told.as_ref()).await? {
            return Ok(Some(settled));
        }
    }
    Err(StoreError::Unavailable(format!("payment {} keeps changing", key.payment)))
}

/// What the provider's list says now of a refund that came to nothing, without a request.
async fn looked_into(ports: &impl Ports, record: &PaymentRecord, now: Timestamp) -> Stored<Refund> {
    let Capture { key, order, .. } = &record.capture;
    if let Err(refusal) = record_sent_back(ports, &key.provider, &key.payment, now).await {
        tracing::error!(%order, payment = %key.payment, %refusal, "what went back is not recorded");
    }
    let (_, refund) = being_refunded(ports, *order, key).await?;
    Ok(refund)
}

/// A payment that is being refunded, and its refund.
async fn being_refunded(
    ports: &impl Ports,
    order: OrderNumber,
    key: &PaymentKey,
) -> Stored<(PaymentRecord, Refund)> {
    let PaymentKey { provider, payment } = key;
    let broken = |what: &str| {
        StoreError::Contract(format!("payment {provider} {payment} of {order}: {what}"))
    };
    let record = ports.orders().payment(order, key).await?;
    let record = record.ok_or_else(|| broken("is to be refunded and was never recorded"))?;
    let refund = record.refund.clone();
    let refund = refund.ok_or_else(|| broken("is to be refunded and was accepted"))?;
    Ok((record, refund))
}

/// Records what the provider said; `None` if the payment or its order changed meanwhile.
async fn record_reply(
    ports: &impl Ports,
    record: &PaymentRecord,
    reply: &RefundReply,
    now: Timestamp,
) -> Stored<Option<Refund>> {
    let Some(after) = record.after_reply(reply, now) else { return Ok(None) };
    let order = match reply {
        RefundReply::Refunded => {
            let order = ports.orders().get(record.capture.order).await?;
            order.and_then(|order| order.after_refund(record, now))
        }
        RefundReply::Pending | RefundReply::Outside => None,
        RefundReply::Refused(why) | RefundReply::Ended(why) | RefundReply::Conflict(why) => {
            let key = &record.capture.key;
            tracing::error!(order = %record.capture.order, ?key, why, "a refund was refused");
            None
        }
    };
    let is_written = write_whole(ports, &after, order.as_ref()).await?;
    Ok(after.refund.filter(|_| is_written))
}

/// Writes the refund of a whole payment, with the order as it is now that tells of it, whose facts are settled soon; false if
/// one of the two changed meanwhile.
pub(crate) async fn write_whole(
    ports: &impl Ports,
    record: &PaymentRecord,
    order: Option<&Order>,
) -> Stored<bool> {
    let is_written = ports.orders().record_refund(record, order).await? == ChangeReply::Done;
    if let Some(order) = order.filter(|_| is_written) {
        settle_soon(ports, order.number).await;
    }
    Ok(is_written)
}

/// As [`write_whole`], of a refund of an order.
pub(crate) async fn write_part(
    ports: &impl Ports,
    refund: &OrderRefund,
    order: Option<&Order>,
) -> Stored<bool> {
    let is_written = ports.orders().record_order_refund(refund, order).await? == ChangeReply::Done;
    if let Some(order) = order.filter(|_| is_written) {
        settle_soon(ports, order.number).await;
    }
    Ok(is_written)
}
