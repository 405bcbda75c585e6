//! Give back: refund tickets of a paid order, or some of its money.
//!
//! One transaction makes the refund: it marks the tickets, removes their claims, attendees and share of the buyer's
//! count, and adds the amount to the payment's refunded sum. The steps that follow may be cut off anywhere: the refund
//! stays in the index of due work until the money is back, and the comparison finds seats that Redis has as sold and no
//! order owns.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::UserId;
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::Order;
use crate::domain::order::order_refund::{AskedBy, OrderRefund, RefundKey};
use crate::domain::order::refund::RefundState;
use crate::domain::payment::refund::{RefundPlan, RefundRefusal, RefundRequest, decide_refund};
use crate::flows::hold::unsell;
use crate::flows::outside::is_disputed;
use crate::flows::own::order_of;
use crate::flows::refund::request_part;
use crate::flows::sync::settle_soon;
use crate::ports::{ChangeReply, Orders, Ports, StoreError};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 6;

/// Why no refund was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such order, or not of this buyer.
    #[error("there is no such order")]
    NotFound,
    /// The order, its payment or the terms stand against it.
    #[error(transparent)]
    Refused(#[from] RefundRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A refund, and its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenBack {
    /// The order as it is with it.
    pub order: Order,
    pub refund: OrderRefund,
    /// True if a dispute of its payment is open, which its money waits for.
    pub is_disputed: bool,
}

/// Makes a refund of a paid order: `buyer` is who must own it, `None` for operators. The same request again
/// is answered with the refund that it made.
///
/// # Errors
/// Returns a [`Refusal`]; another buyer's order is not found.
pub async fn give_back(
    ports: &impl Ports,
    buyer: Option<&UserId>,
    number: OrderNumber,
    request: &RefundRequest,
    now: Timestamp,
) -> Result<GivenBack, Refusal> {
    for _ in 0..ATTEMPTS {
        let order = order_of(ports, buyer, number).await?.ok_or(Refusal::NotFound)?;
        if request.number.get() <= order.refunds.made {
            return known(ports, order, request, now).await;
        }
        let payment = match &order.payment {
            Some(key) => ports.orders().payment(number, key).await?,
            None => None,
        };
        let plan = decide_refund(&order, payment.as_ref(), request, now)?;
        if must_be_undisputed(request.asked_by)
            && stands(Guard::DisputeOpen)
            && is_disputed(ports, &plan.payment).await?
        {
            return Err(RefundRefusal::Disputed.into());
        }
        if let Some(taken) = plan.order.wallet_change_now().and_then(|change| change.needs())
            && stands(Guard::WalletLimit)
        {
            let has = ports.orders().wallet(&order.user, order.total.currency).await?.left();
            if has < taken {
                // `has` is less than `taken`, so it fits an amount.
                let has = MinorUnits(i64::try_from(has).unwrap_or_default());
                return Err(RefundRefusal::WalletShort(has).into());
            }
        }
        match ports.orders().give_back(&plan).await? {
            ChangeReply::Done => {
                let is_disputed = plan.payment.open_dispute().is_some();
                let RefundPlan { order, refund, .. } = plan;
                follow_up(ports, &order, &refund, now).await;
                return Ok(GivenBack { order, refund, is_disputed });
            }
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")).into())
}

/// True if whoever asks is refused while the money is in dispute, before a ticket is void.
const fn must_be_undisputed(asked_by: AskedBy) -> bool {
    match asked_by {
        AskedBy::Buyer | AskedBy::Operator | AskedBy::Exchange => true,
        AskedBy::SaleCancelled | AskedBy::Dispute | AskedBy::Outside => false,
    }
}

/// The refund that an earlier request has made, if it was the same.
async fn known(
    ports: &impl Ports,
    order: Order,
    request: &RefundRequest,
    now: Timestamp,
) -> Result<GivenBack, Refusal> {
    let key = RefundKey { order: order.number, number: request.number };
    let missing = || {
        StoreError::Contract(format!("refund {key} is counted, and it or its payment is not there"))
    };
    let refund = ports.orders().order_refund(key).await?.ok_or_else(missing)?;
    let payment = ports.orders().payment(order.number, &refund.payment).await?;
    let payment = payment.ok_or_else(missing)?;
    if refund.answers(request, &order, payment.left()) {
        // The process that made the refund may have died before the steps that follow.
        follow_up(ports, &order, &refund, now).await;
        let is_disputed = payment.open_dispute().is_some();
        return Ok(GivenBack { order, refund, is_disputed });
    }
    let next = order.refunds.made.saturating_add(1);
    Err(RefundRefusal::OtherNumber { next }.into())
}

/// Finishes a refund that is made: frees the seats in Redis, and requests the money from the provider. The comparison
/// and the sweeper finish a step that fails.
pub(crate) async fn follow_up(
    ports: &impl Ports,
    order: &Order,
    refund: &OrderRefund,
    now: Timestamp,
) {
    let seats = order.seats_of(refund.key.number);
    if let Err(error) = unsell(ports, order, &seats).await {
        tracing::warn!(refund = %refund.key, %error, "its seats are left to the comparison");
    }
    if refund.refund.state == RefundState::Due
        && let Err(error) = request_part(ports, refund, now).await
    {
        tracing::warn!(refund = %refund.key, %error, "its money is left to the sweeper");
    }
    settle_soon(ports, order.number).await;
}
