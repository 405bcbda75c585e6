//! Dispute: record what a provider says of a dispute, until the order says the same.
//!
//! Each step is one transaction, and a process may die after any of them: the next process that reads of the dispute
//! continues. This flow cannot reach Redis, as no function that calls providers can: the comparison finds the seats of
//! a lost dispute, which Redis has as sold and no order owns.

use crate::domain::basics::ids::{DisputeId, ProviderId};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::time::Timestamp;
use crate::domain::order::dispute::DisputeState;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::refund::{RefundReply, RefundState};
use crate::domain::order::{Order, PaymentRecord};
use crate::domain::payment::dispute::{
    DisputePlan, DisputeRefusal, DisputeReport, DisputeStep, decide_dispute, shares,
};
use crate::domain::payment::ours::Mark;
use crate::domain::payment::outside::{Holder, known_outside};
use crate::domain::payment::refund::decide_refund;
use crate::domain::sale::LostDispute;
use crate::flows::outside::holders;
use crate::flows::refund::request_part;
use crate::flows::sync::settle_soon;
use crate::flows::top_up;
use crate::flows::unrecorded::Unrecorded;
use crate::ports::{
    Catalogue, ChangeReply, Freshness, Orders, Ports, Provider, StoreError, Stored,
};

/// Most steps; an order that changed meanwhile is read again.
const STEPS: usize = 60;

/// Why a dispute is not recorded.
pub type Refusal = Unrecorded<DisputeRefusal>;

/// Asks the provider for a dispute, and records what it says. Running it twice records nothing twice.
///
/// # Errors
/// Returns a [`Refusal`]; after a failed store running it again goes on.
pub async fn record_dispute(
    ports: &impl Ports,
    provider: &ProviderId,
    dispute: &DisputeId,
    now: Timestamp,
) -> Result<(), Refusal> {
    for _ in 0..STEPS {
        // Before each step: two who record a dispute that is decided meanwhile would else undo each other's steps, each
        // by what it was told at its beginning.
        let Some(report) = ports.provider().dispute(provider, dispute).await? else {
            return Ok(());
        };
        let holders = holders(ports, report.order, &report.payment).await?;
        if holders.is_empty() {
            // Another system's payment on the same account may name any number.
            let is_marked = report.mark == Mark::Ours;
            return if is_marked { Err(DisputeRefusal::NotAccepted.into()) } else { Ok(()) };
        }
        let mut refused = None;
        let mut was_done = false;
        // The first holder comes last: what the others have no money for any more by then is its.
        for (holder, share) in holders.iter().zip(shares(&holders, &report)).rev() {
            if share == MinorUnits::ZERO {
                continue;
            }
            match take(ports, holder, share, &report, now).await {
                Ok(false) => {}
                // The holders are read again: what was written is theirs.
                Ok(true) => {
                    was_done = true;
                    break;
                }
                Err(refusal @ Refusal::Store(_)) => return Err(refusal),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        if was_done {
            continue;
        }
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        for Holder { order, payment, .. } in holders.iter().filter(|one| one.order.tops_up()) {
            let mut of_it = payment.disputes.iter().filter(|one| one.id == report.id);
            // What comes back after a loss is owed to who paid, and does not fill the wallet.
            if of_it.any(|one| one.state == DisputeState::Lost || one.reinstated > 0) {
                top_up::take_back(ports, order, &report.id, now).await?;
            }
        }
        return Ok(());
    }
    Err(StoreError::Unavailable(format!("dispute {dispute} keeps changing")).into())
}

/// Takes the next step for a holder's share of a dispute; false if there is none.
async fn take(
    ports: &impl Ports,
    holder: &Holder,
    share: MinorUnits,
    report: &DisputeReport,
    now: Timestamp,
) -> Result<bool, Refusal> {
    let Holder { order, payment, refunds } = holder;
    let report = DisputeReport {
        payment: payment.capture.key.clone(),
        order: order.number,
        amount: Money { amount_minor: share, ..report.amount },
        ..report.clone()
    };
    let is_won = payment.disputes.is_empty() && report.state == DisputeState::Won;
    let may_be_lost = report.state != DisputeState::Open && !is_won;
    let revokes = may_be_lost && revokes(ports, order).await?;
    match decide_dispute(order, payment, refunds, &report, revokes, now)? {
        DisputeStep::Nothing => return Ok(false),
        DisputeStep::Record(plan) => {
            if ports.orders().dispute(&plan).await? == ChangeReply::Done {
                settle_soon(ports, order.number).await;
            }
        }
        DisputeStep::Back(back) => back_by_it(ports, holder, &report.id, *back, now).await?,
        DisputeStep::Finish(refund) => {
            let told = order.after_part(&refund, now);
            write(ports, (payment, payment.clone()), *refund, told).await?;
        }
        DisputeStep::Undo(refund) => {
            tracing::error!(refund = %refund.key, dispute = %report.id, "its money came to us again");
            let told = order.after_reinstated(&refund, now);
            write(ports, (payment, payment.clone()), *refund, told).await?;
        }
        DisputeStep::Refund(request) => {
            let plan = decide_refund(order, Some(payment), &request, now)?;
            if ports.orders().give_back(&plan).await? == ChangeReply::Done
                && plan.refund.refund.state == RefundState::Due
                && let Err(error) = request_part(ports, &plan.refund, now).await
            {
                tracing::warn!(refund = %plan.refund.key, %error, "it is left to the sweeper");
            }
        }
    }
    Ok(true)
}

/// Records that a lost dispute has paid a refund back, unless the provider has sent the refund after all: its answer
/// may have been lost.
async fn back_by_it(
    ports: &impl Ports,
    holder: &Holder,
    dispute: &DisputeId,
    back: OrderRefund,
    now: Timestamp,
) -> Stored<()> {
    let Holder { order, payment, refunds } = holder;
    let Some(known) = refunds.iter().find(|refund| refund.key == back.key) else { return Ok(()) };
    // What came to nothing there was not sent, and is not sent by this either.
    let reply = if known.ended > 0 {
        RefundReply::Refused(String::new())
    } else {
        let outside = known_outside(refunds, known);
        ports.provider().refund_part(&payment.at_provider(), known, outside).await?
    };
    let after = match reply {
        RefundReply::Refused(_) | RefundReply::Ended(_) | RefundReply::Conflict(_) => {
            let told = order.after_part(&back, now);
            let paid = payment.with_refund_paid_by(dispute);
            return write(ports, (payment, paid), back, told).await;
        }
        RefundReply::Refunded | RefundReply::Pending | RefundReply::Outside => {
            known.after_reply(&reply, now)
        }
    };
    // Somebody else has recorded it meanwhile.
    let Some(after) = after else { return Ok(()) };
    let is_back = after.refund.state == RefundState::Refunded;
    let told = is_back.then(|| order.after_part(&after, now));
    if ports.orders().record_order_refund(&after, told.as_ref()).await? == ChangeReply::Done {
        settle_soon(ports, order.number).await;
    }
    Ok(())
}

/// Writes a refund as it shall be and its order as it tells of that, if the disputes of the payment are still those that were
/// seen: what one has taken may be given back meanwhile.
async fn write(
    ports: &impl Ports,
    (before, payment): (&PaymentRecord, PaymentRecord),
    refund: OrderRefund,
    order: Order,
) -> Stored<()> {
    let (number, before) = (order.number, before.disputes.clone());
    let plan = DisputePlan { order, payment, before, refund: Some(refund) };
    if ports.orders().dispute(&plan).await? == ChangeReply::Done {
        settle_soon(ports, number).await;
    }
    Ok(())
}

/// True if the sale takes tickets back with a lost dispute; false if the sale is no longer there.
pub(crate) async fn revokes(ports: &impl Ports, order: &Order) -> Stored<bool> {
    let published = ports.catalogue().sale(&order.sale, Freshness::Cached).await?;
    let keeps = |sale: &crate::domain::sale::Sale| sale.file().lost_dispute == LostDispute::Keeps;
    Ok(!published.is_some_and(|published| keeps(&published.sale)))
}
