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
use crate::domain::order::{PaymentKey, PaymentOutcome, PaymentRecord};
use crate::domain::payment::outside::{Holder, OutsideRefusal, OutsideStep, decide_outside};
use crate::domain::payment::refund::decide_refund;
use crate::flows::refund::request_part;
use crate::flows::sync::settle_soon;
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
    let read = async || ports.provider().sent_back(provider, payment).await;
    let Some(mut report) = read().await? else { return Ok(()) };
    for _ in 0..STEPS {
        let holders = holders(ports, report.order, &report.payment).await?;
        // A payment that paid no order goes back whole, and its own refund hears of that.
        if holders.is_empty() {
            return Ok(());
        }
        match decide_outside(&holders, &report.refunds, now)? {
            OutsideStep::Nothing => return Ok(()),
            OutsideStep::Make(number, request) => {
                let holder = holders.iter().find(|holder| holder.order.number == number);
                let Some(Holder { order, payment, .. }) = holder else { return Ok(()) };
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
                if refund.refund.state.is_back() {
                    let Some(again) = read().await? else { return Ok(()) };
                    report = again;
                }
            }
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
    let written = ports.orders().record_order_refund(refund, told.as_ref()).await?;
    if written == ChangeReply::Done && told.is_some() {
        settle_soon(ports, order.number).await;
    }
    Ok(())
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
        if ports.orders().record_order_refund(&settled, Some(&order)).await? == ChangeReply::Done {
            settle_soon(ports, key.order).await;
            return Ok(Some(Told::Done(settled)));
        }
    }
    Err(StoreError::Unavailable(format!("refund {key} keeps changing")))
}
