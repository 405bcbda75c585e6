//! Exchange: an order that replaces tickets of another one.
//!
//! It is made, held, paid and ended as any other ([`crate::flows::reserve`], [`crate::flows::pay`]); here is what
//! differs. Before it is made, the old order is read, and what its tickets are worth is written on the new one. The
//! transaction that pays the new one gives the old tickets up. If they are not there any more, the new order is
//! cancelled: what was captured for it goes back, and the old order stands as it is.

use crate::domain::basics::ids::UserId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::exchange::{Exchange, ExchangeRequest};
use crate::domain::order::fact::Cause;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::requested::RequestedLine;
use crate::domain::order::{Order, OrderEvent, PaymentKey, PaymentRecord};
use crate::domain::payment::exchange::{ExchangeRefusal, decide_exchange, redeem};
use crate::domain::payment::refund::RefundPlan;
use crate::domain::sale::Sale;
use crate::flows::give_back;
use crate::flows::hold::{inventory_of, release, sale_of};
use crate::flows::pay::close_the_rest;
use crate::flows::sync::settle_soon;
use crate::ports::{ChangeReply, Freshness, Orders, Ports, StoreError, Stored};

/// An order and the record of its payment.
pub(crate) struct Old {
    order: Order,
    payment: Option<PaymentRecord>,
}

impl Old {
    /// What was captured for it.
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

/// Decides if `user` may give these tickets for lines of a sale, and says what they are worth.
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
    let old_sale = old_sale.as_ref().map_or(sale, |published| &published.sale);
    let old = (old_sale, &order, payment.as_ref());
    Ok(decide_exchange(new, (sale, lines), request, old, now))
}

/// What the payment `by` of an exchange does to the order whose tickets it replaces; `None` if they cannot be given
/// up any more.
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
        Ok(plan) => Ok(Some(plan)),
        Err(refusal) => {
            tracing::info!(order = %new.number, %refusal, "its exchange is off");
            Ok(None)
        }
    }
}

/// The payment of an order with the money of the tickets that it replaces, as it would be recorded.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn moved(
    ports: &impl Ports,
    new: &Order,
    exchange: &Exchange,
    now: Timestamp,
) -> Stored<PaymentRecord> {
    let missing = || StoreError::Contract(format!("order {} is lost", exchange.order));
    let old = Old::read(ports, exchange.order).await?.ok_or_else(missing)?;
    old.captured(exchange.order)?.moved_to(new, now).map_err(StoreError::contract)
}

/// Cancels a pending order whose exchange is off; `None` if it changed meanwhile.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn call_off(
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

/// [`call_off`] with all that follows from it: the seats are free again, and the facts are settled.
///
/// # Errors
/// Fails if a store does.
pub(crate) async fn off(
    ports: &impl Ports,
    order: &Order,
    now: Timestamp,
) -> Stored<Option<Order>> {
    let Some(end) = call_off(ports, order, now).await? else { return Ok(None) };
    release(ports, &inventory_of(ports, &end).await?, end.number).await?;
    close_the_rest(ports, &end).await;
    settle_soon(ports, end.number).await;
    Ok(Some(end))
}

/// The old order of one that is paid, with the refund that its tickets went with.
async fn given_up(ports: &impl Ports, new: &Order) -> Stored<Option<(Order, OrderRefund)>> {
    let Some(exchange) = &new.exchange else { return Ok(None) };
    let refunds = ports.orders().order_refunds(exchange.order).await?;
    let is_it = |refund: &OrderRefund| refund.exchanged_for() == Some(new.number);
    let Some(refund) = refunds.into_iter().find(is_it) else { return Ok(None) };
    let order = ports.orders().get(exchange.order).await?;
    Ok(order.map(|order| (order, refund)))
}

/// What follows from an exchange that is paid: the old seats are offered again, and what goes back is asked for.
/// Does nothing twice. What fails is done by the comparison and by the sweeper.
pub(crate) async fn follow_up(ports: &impl Ports, new: &Order, now: Timestamp) {
    match given_up(ports, new).await {
        Ok(Some((order, refund))) => give_back::follow_up(ports, &order, &refund, now).await,
        Ok(None) => {}
        Err(error) => tracing::warn!(order = %new.number, %error, "left to the comparison"),
    }
}
