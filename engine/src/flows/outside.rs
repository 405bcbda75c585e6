//! Outside: record what a provider says of the refunds of a payment, until the orders that have its money say the same.
//!
//! Each step is one transaction, and a process may die after any of them: the next process that reads of a refund of the
//! payment continues.

use std::collections::VecDeque;

use crate::domain::basics::ids::{PaymentId, ProviderId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::{OrderRefund, RefundKey};
use crate::domain::order::refund::{Refund, RefundState};
use crate::domain::order::{Capture, PaymentKey, PaymentOutcome, PaymentRecord};
use crate::domain::payment::outside::{
    Holder, OutsideRefusal, OutsideStep, SentReport, decide_outside, decide_whole,
};
use crate::domain::payment::refund::decide_refund;
use crate::flows::refund::{request_part, write_part, write_whole};
use crate::flows::unrecorded::Unrecorded;
use crate::ports::{ChangeReply, Orders, Ports, Provider, StoreError, Stored};

/// Most steps; an order that changed meanwhile is read again.
const STEPS: usize = 60;
/// Most orders that are searched for the money of one payment: more exchanges would be no buyer's.
const MAX_HOLDERS: usize = 50;

/// Why what a provider says of refunds is not recorded.
pub type Refusal = Unrecorded<OutsideRefusal>;

/// Asks the provider for the refunds of a payment, and records what it says. Running it twice records nothing twice.
///
/// # Errors
/// Returns a [`Refusal`]; after a failed store running it again goes on.
pub async fn record_sent_back(
    ports: &impl Ports,
    provider: &ProviderId,
    payment: &PaymentId,
    now: Timestamp,
) -> Result<(), Refusal> {
    let listed = ports.provider().sent_back(provider, payment).await?;
    let Some(report) = listed else { return Ok(()) };
    record(ports, report, Some((provider, payment)), now).await.map(|_| ())
}

/// What a bill says of the refunds of a payment, once it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billed {
    /// The refunds of the orders that have its money say so, too, by so many steps that were made now.
    Recorded(usize),
    /// The payment has paid no order: nothing is recorded.
    OfNoOrder,
}

/// Records what a provider's bill says of the refunds of a payment; running it twice records nothing twice.
///
/// # Errors
/// As [`record_sent_back`].
pub async fn record_billed(
    ports: &impl Ports,
    report: SentReport,
    now: Timestamp,
) -> Result<Billed, Refusal> {
    record(ports, report, None, now).await
}

/// Records a report. If it is the provider's list of a payment's refunds, that is read again where it may say more
/// meanwhile.
async fn record(
    ports: &impl Ports,
    mut report: SentReport,
    listed_of: Option<(&ProviderId, &PaymentId)>,
    now: Timestamp,
) -> Result<Billed, Refusal> {
    for made in 0..STEPS {
        let holders = holders(ports, report.order, &report.payment).await?;
        if holders.is_empty() {
            // A bill has no list of what went back of a payment: whether all of it is back, the list says.
            if listed_of.is_some() {
                record_whole(ports, &report, now).await?;
            }
            return Ok(Billed::OfNoOrder);
        }
        match decide_outside(&holders, &report.refunds, report.is_complete, now)? {
            OutsideStep::Nothing => return Ok(Billed::Recorded(made)),
            OutsideStep::Make(number, request) => {
                let holder = holders.iter().find(|holder| holder.order.number == number);
                let Some(Holder { order, payment, .. }) = holder else {
                    return Ok(Billed::Recorded(made));
                };
                let plan = decide_refund(order, Some(payment), &request, now)?;
                if ports.orders().give_back(&plan).await? == ChangeReply::Done
                    && let Err(error) = request_part(ports, &plan.refund, now).await
                {
                    tracing::warn!(refund = %plan.refund.key, %error, "it is left to the sweeper");
                }
            }
            OutsideStep::Record(refund) => {
                write(ports, &holders, &refund, now).await?;
                // The request of a refund that a hand has paid may have been on its way when the list was read.
                if let Some((provider, payment)) =
                    listed_of.filter(|_| refund.refund.state.is_back())
                {
                    let again = ports.provider().sent_back(provider, payment).await?;
                    let Some(again) = again else { return Ok(Billed::Recorded(made)) };
                    report = again;
                }
            }
        }
    }
    Err(StoreError::Unavailable(format!("order {} keeps changing", report.order)).into())
}

/// Records what a provider says of the refund of a payment that paid no order, which goes back whole.
async fn record_whole(
    ports: &impl Ports,
    report: &SentReport,
    now: Timestamp,
) -> Result<(), Refusal> {
    for _ in 0..STEPS {
        let record = ports.orders().payment(report.order, &report.payment).await?;
        let Some(record) = record else { return Ok(()) };
        let Some(after) = decide_whole(&record, &report.refunds, now)? else { return Ok(()) };
        let state = after.refund.as_ref().map(|refund| refund.state);
        let order = ports.orders().get(report.order).await?;
        let told = order.and_then(|order| match state {
            Some(RefundState::Refunded) => order.after_refund(&record, now),
            Some(RefundState::FailedLater) => order.after_refund_undone(&record, now),
            Some(
                RefundState::Due
                | RefundState::Requested
                | RefundState::Pending
                | RefundState::Failed
                | RefundState::Unmatched
                | RefundState::Explained
                | RefundState::Outside
                | RefundState::Settled,
            )
            | None => None,
        });
        if state == Some(RefundState::FailedLater) {
            let PaymentKey { provider, payment } = &report.payment;
            tracing::error!(order = %report.order, %provider, %payment, "its money was back, and came to us again");
        }
        if write_whole(ports, &after, told.as_ref()).await? {
            return Ok(());
        }
    }
    Err(StoreError::Unavailable(format!("order {} keeps changing", report.order)).into())
}

/// Writes a refund as it shall be, and into its order whether its money is back, if that has changed.
async fn write(
    ports: &impl Ports,
    holders: &[Holder],
    refund: &OrderRefund,
    now: Timestamp,
) -> Stored<()> {
    let holder = holders.iter().find(|holder| holder.order.number == refund.key.order);
    let Some(Holder { order, .. }) = holder else { return Ok(()) };
    let told = if refund.refund.state.is_back() {
        Some(order.after_part(refund, now))
    } else if refund.refund.state == RefundState::FailedLater {
        tracing::error!(refund = %refund.key, "a refund failed after its money was back");
        Some(order.after_undone(refund, now))
    } else {
        None
    };
    write_part(ports, refund, told.as_ref()).await.map(drop)
}

/// The orders that have money of a payment, the one that it paid first, and then those that replace tickets of them;
/// none if it paid no order.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn holders(
    ports: &impl Ports,
    number: OrderNumber,
    key: &PaymentKey,
) -> Stored<Vec<Holder>> {
    let mut holders: Vec<Holder> = Vec::new();
    let mut next = VecDeque::from([(number, key.clone())]);
    while let Some((number, key)) = next.pop_front() {
        let is_known = holders.iter().any(|holder| holder.order.number == number);
        if is_known || holders.len() >= MAX_HOLDERS {
            continue;
        }
        let Some(holder) = holder(ports, number, &key).await? else { continue };
        for new in holder.refunds.iter().filter_map(OrderRefund::exchanged_for) {
            let order = ports.orders().get(new).await?;
            let moved =
                order.and_then(|order| order.payment.clone().filter(|key| order.is_moved(key)));
            next.extend(moved.map(|key| (new, key)));
        }
        holders.push(holder);
    }
    Ok(holders)
}

/// True if the money of a payment is in dispute, of which its provider sends nothing back: in its own order's share, or in that
/// of the order that was paid first, which has one as long as it has money left.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn is_disputed(ports: &impl Ports, payment: &PaymentRecord) -> Stored<bool> {
    if payment.open_dispute().is_some() {
        return Ok(true);
    }
    let Some(captured) = &payment.captured else { return Ok(false) };
    let Capture { order, key, .. } = &captured.capture;
    let root = ports.orders().payment(*order, key).await?;
    Ok(root.is_some_and(|root| root.open_dispute().is_some()))
}

/// The order that a payment has paid, with its refunds.
async fn holder(
    ports: &impl Ports,
    number: OrderNumber,
    key: &PaymentKey,
) -> Stored<Option<Holder>> {
    for _ in 0..STEPS {
        let order = ports.orders().get(number).await?;
        let payment = ports.orders().payment(number, key).await?;
        let is_paid = |payment: &PaymentRecord| payment.outcome == PaymentOutcome::Accepted;
        let Some((order, payment)) = order.zip(payment.filter(is_paid)) else { return Ok(None) };
        let refunds = ports.orders().order_refunds(number).await?;
        // A refund that was made between the reads is on the order already.
        if refunds.len() == usize::from(order.refunds.made) {
            return Ok(Some(Holder { order, payment, refunds }));
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")))
}

/// True if an order has tickets about which an operator decides after a refund made outside: valid ones.
pub(crate) async fn waits_for_word(ports: &impl Ports, order: OrderNumber) -> Stored<bool> {
    Ok(ports.orders().get(order).await?.is_some_and(|order| order.has_live_tickets()))
}

/// What became of an operator's word on a refund of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The refund as it is now.
    Done(OrderRefund),
    /// It is in another state than those of which this can be said: the refund as it is.
    NotNow(OrderRefund),
}

/// Records that an operator keeps the tickets of an order that are still good after a refund made outside. `None` if there
/// is no such refund.
///
/// # Errors
/// Fails if a store does; saying it again finishes it.
pub async fn keep(ports: &impl Ports, key: RefundKey, now: Timestamp) -> Stored<Option<Told>> {
    for _ in 0..STEPS {
        let Some(refund) = ports.orders().order_refund(key).await? else { return Ok(None) };
        if refund.refund.state == RefundState::Refunded {
            return Ok(Some(Told::Done(refund)));
        }
        if refund.refund.state != RefundState::Outside {
            return Ok(Some(Told::NotNow(refund)));
        }
        let state = RefundState::Refunded;
        let kept = Refund { state, changed_at: now, ..refund.refund.clone() };
        let kept = OrderRefund { refund: kept, ..refund };
        if ports.orders().record_order_refund(&kept, None).await? == ChangeReply::Done {
            return Ok(Some(Told::Done(kept)));
        }
    }
    Err(StoreError::Unavailable(format!("refund {key} keeps changing")))
}

/// Records that an operator has paid a refund otherwise, as `how` tells: one that its provider has refused, or whose money
/// came back. `None` if there is no such refund.
///
/// # Errors
/// Fails if a store does; saying it again finishes it.
pub async fn settle(
    ports: &impl Ports,
    key: RefundKey,
    how: &str,
    now: Timestamp,
) -> Stored<Option<Told>> {
    let missing = || StoreError::Contract(format!("refund {key}: its order is not there"));
    for _ in 0..STEPS {
        let Some(refund) = ports.orders().order_refund(key).await? else { return Ok(None) };
        if refund.refund.state == RefundState::Settled {
            return Ok(Some(Told::Done(refund)));
        }
        let Some(settled) = refund.settled(how, now) else { return Ok(Some(Told::NotNow(refund))) };
        let order = ports.orders().get(key.order).await?.ok_or_else(missing)?;
        let order = order.after_settled(&settled, now);
        if write_part(ports, &settled, Some(&order)).await? {
            return Ok(Some(Told::Done(settled)));
        }
    }
    Err(StoreError::Unavailable(format!("refund {key} keeps changing")))
}
