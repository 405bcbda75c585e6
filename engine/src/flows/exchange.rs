//! Exchange: an order that replaces tickets of another one.
//!
//! The new order is reserved, paid and ended as any other ([`crate::flows::reserve`], [`crate::flows::pay`]); this file
//! has what differs. Before the new order is made, `begin` reads the old order and computes what its tickets are worth;
//! the new order records that worth. The transaction that pays the new order gives the old tickets up. If the old
//! tickets are no longer there, the new order is cancelled: its capture is refunded, and the old order stays as it is.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::UserId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::exchange::{Exchange, ExchangeRequest};
use crate::domain::order::fact::Cause;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::requested::RequestedLine;
use crate::domain::order::{Order, OrderEvent, PaymentKey, PaymentRecord};
use crate::domain::payment::exchange::{ExchangeRefusal, decide_exchange, redeem};
use crate::domain::payment::refund::{RefundPlan, RefundRefusal};
use crate::domain::sale::Sale;
use crate::flows::give_back;
use crate::flows::hold::{inventory_of, release, sale_of};
use crate::flows::outside::is_disputed;
use crate::flows::pay::close_the_rest;
use crate::flows::sync::settle_soon;
use crate::ports::{ChangeReply, Freshness, Orders, Ports, StoreError, Stored};

/// An order and the record of its payment.
pub(crate) struct Old {
    order: Order,
    payment: Option<PaymentRecord>,
}

impl Old {
    /// The payment of the order.
    fn captured(&self, number: OrderNumber) -> Stored<&PaymentRecord> {
        let missing = || StoreError::Contract(format!("order {number}: paid without a payment"));
        self.payment.as_ref().ok_or_else(missing)
    }

    async fn read(ports: &impl Ports, number: OrderNumber) -> Stored<Option<Self>> {
        let Some(order) = ports.orders().get(number).await? else { return Ok(None) };
        let payment = match &order.payment {
            Some(key) => ports.orders().payment(number, key).await?,
            None => None,
        };
        Ok(Some(Self { order, payment }))
    }
}

/// Decides whether `user` may give these tickets for lines of a sale, and returns the exchange with what they are
/// worth.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn begin(
    ports: &impl Ports,
    new: OrderNumber,
    user: &UserId,
    (sale, lines): (&Sale, &[RequestedLine]),
    request: &ExchangeRequest,
    now: Timestamp,
) -> Stored<Result<Exchange, ExchangeRefusal>> {
    let old = Old::read(ports, request.order).await?;
    let is_theirs = |old: &Old| old.order.user == *user && !old.order.is_tombstone();
    let Some(Old { order, payment }) = old.filter(is_theirs) else {
        return Ok(Err(ExchangeRefusal::NotFound));
    };
    let old_sale = match order.sale == *sale.id() {
        true => None,
        false => Some(sale_of(ports, &order.sale, Freshness::Cached).await?),
    };
    if let Some(payment) = payment.as_ref().filter(|_| stands(Guard::DisputeOpen))
        && is_disputed(ports, payment).await?
    {
        return Ok(Err(RefundRefusal::Disputed.into()));
    }
    let old_sale = old_sale.as_ref().map_or(sale, |published| &published.sale);
    let old = (old_sale, &order, payment.as_ref());
    Ok(decide_exchange(new, (sale, lines), request, old, now))
}

/// Plans the refund of the old order that the payment `by` of the new one makes; `None` if the old tickets cannot be
/// given up any more.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn plan(
    ports: &impl Ports,
    new: &Order,
    exchange: &Exchange,
    by: &PaymentKey,
    now: Timestamp,
) -> Stored<Option<RefundPlan>> {
    let Some(Old { order, payment }) = Old::read(ports, exchange.order).await? else {
        return Ok(None);
    };
    match redeem(new, exchange, &order, payment.as_ref(), by, now) {
        Ok(plan) if stands(Guard::DisputeOpen) && is_disputed(ports, &plan.payment).await? => {
            tracing::info!(order = %new.number, "its exchange is off: the money is in dispute");
            Ok(None)
        }
        Ok(plan) => Ok(Some(plan)),
        Err(refusal) => {
            tracing::info!(order = %new.number, %refusal, "its exchange is off");
            Ok(None)
        }
    }
}

/// Prepares the payment of `new` with the money of the tickets that it replaces. Reads the old order and writes
/// nothing.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn prepare_payment(
    ports: &impl Ports,
    new: &Order,
    exchange: &Exchange,
    now: Timestamp,
) -> Stored<PaymentRecord> {
    let missing = || StoreError::Contract(format!("order {} is lost", exchange.order));
    let old = Old::read(ports, exchange.order).await?.ok_or_else(missing)?;
    old.captured(exchange.order)?.moved_to(new, now).map_err(StoreError::contract)
}

/// Writes in DynamoDB that a pending order is cancelled because its exchange is impossible; `None` if the order changed
/// meanwhile.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn record_cancellation(
    ports: &impl Ports,
    order: &Order,
    now: Timestamp,
) -> Stored<Option<Order>> {
    let Some(end) = order.after(OrderEvent::Cancel, Cause::BUYER, now) else { return Ok(None) };
    Ok(match ports.orders().end(&end).await? {
        ChangeReply::Done => Some(end),
        ChangeReply::Conflict => None,
    })
}

/// Cancels a pending order whose exchange is impossible: [`record_cancellation`], then the seats are freed, open
/// attempts are closed, and the facts are settled. `None` if the order changed meanwhile.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn cancel_exchange(
    ports: &impl Ports,
    order: &Order,
    now: Timestamp,
) -> Stored<Option<Order>> {
    let Some(end) = record_cancellation(ports, order, now).await? else { return Ok(None) };
    release(ports, &inventory_of(ports, &end).await?, end.number).await?;
    close_the_rest(ports, &end).await;
    settle_soon(ports, end.number).await;
    Ok(Some(end))
}

/// The old order of a paid exchange, with the refund that took its tickets back.
async fn given_up(ports: &impl Ports, new: &Order) -> Stored<Option<(Order, OrderRefund)>> {
    let Some(exchange) = &new.exchange else { return Ok(None) };
    let refunds = ports.orders().order_refunds(exchange.order).await?;
    let is_it = |refund: &OrderRefund| refund.exchanged_for() == Some(new.number);
    let Some(refund) = refunds.into_iter().find(is_it) else { return Ok(None) };
    let order = ports.orders().get(exchange.order).await?;
    Ok(order.map(|order| (order, refund)))
}

/// Finishes a paid exchange: frees the old seats in Redis, and requests the refund of the old order. Running it twice
/// does nothing twice. The comparison and the sweeper finish a step that fails.
pub(crate) async fn follow_up(ports: &impl Ports, new: &Order, now: Timestamp) {
    match given_up(ports, new).await {
        Ok(Some((order, refund))) => give_back::follow_up(ports, &order, &refund, now).await,
        Ok(None) => {}
        Err(error) => tracing::warn!(order = %new.number, %error, "left to the comparison"),
    }
}
