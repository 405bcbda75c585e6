//! Pay from a wallet: the buyer's own pending order, in one transaction that takes the money and pays it.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::UserId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::{Capture, Order, OrderState, PaymentOutcome, PaymentRecord};
use crate::domain::sale::SaleState;
use crate::flows::exchange;
use crate::flows::hold::sale_of;
use crate::flows::own::order_of;
use crate::flows::pay::{close_the_rest, hand_over, plan_payment};
use crate::ports::{Freshness, Orders, Ports, SettleReply, StoreError, Stored};

/// Most tries; an order or a wallet that changed meanwhile is read again.
const TRIES: usize = 6;

/// Why an order was not paid from its buyer's wallet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The buyer has no such order.
    #[error("there is no such order")]
    NotFound,
    /// It was paid otherwise, or has ended.
    #[error("the order is {}", .0.as_str())]
    Resolved(OrderState),
    /// Its deadline has passed; it is about to end.
    #[error("the order was to be paid by {0}")]
    TooLate(Timestamp),
    /// Its sale takes no payment from wallets.
    #[error("the order cannot be paid from a wallet")]
    NotTaken,
    /// The wallet has less than the order costs.
    #[error("the wallet has only {0}")]
    Short(i128),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Pays the buyer's own pending order from the buyer's wallet, or finds it paid from there. The order as it is then.
///
/// # Errors
/// Returns a [`Refusal`]; another buyer's order is not found. After one of `Store` the same request finds out what
/// happened.
pub async fn pay(
    ports: &impl Ports,
    user: &UserId,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Order, Refusal> {
    for _ in 0..TRIES {
        let order = order_of(ports, Some(user), number).await?.ok_or(Refusal::NotFound)?;
        if order.state == OrderState::Paid && order.is_paid_from_wallet() {
            follow_up(ports, &order, now).await?;
            return Ok(order);
        }
        if order.state != OrderState::Pending {
            return Err(Refusal::Resolved(order.state));
        }
        if !order.may_start(now) {
            return Err(Refusal::TooLate(order.payable_until()));
        }
        if order.needs_no_payment() || order.tops_up() || !takes_wallets(ports, &order).await? {
            return Err(Refusal::NotTaken);
        }
        let has = ports.orders().wallet(user, order.total.currency).await?.left();
        if has < i128::from(order.total.amount_minor) && stands(Guard::WalletLimit) {
            return Err(Refusal::Short(has));
        }
        let capture = Capture::from_wallet(&order).map_err(StoreError::contract)?;
        let record = PaymentRecord::decided(&capture, PaymentOutcome::Accepted, now);
        let Some(settlement) = plan_payment(ports, order.clone(), &capture, now).await? else {
            // What it was to replace is not there any more; the order is read again, and has ended.
            exchange::cancel_exchange(ports, &order, now).await?;
            continue;
        };
        // Known, it was paid by the request that this one repeats, and is read again.
        if ports.orders().settle(&record, &settlement, Tickets::NONE).await? == SettleReply::Settled
        {
            let missing = || StoreError::Contract(format!("order {number}: paid and not"));
            let paid = settlement.into_order().ok_or_else(missing)?;
            follow_up(ports, &paid, now).await?;
            return Ok(paid);
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")).into())
}

/// What follows from a payment: all of it may be repeated.
async fn follow_up(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<()> {
    hand_over(ports, order, now).await?;
    close_the_rest(ports, order).await;
    if order.exchange.is_some() {
        Box::pin(exchange::follow_up(ports, order, now)).await;
    }
    Ok(())
}

/// True if the order's sale takes payments from wallets and takes place.
async fn takes_wallets(ports: &impl Ports, order: &Order) -> Stored<bool> {
    let published = sale_of(ports, &order.sale, Freshness::Cached).await?;
    let file = published.sale.file();
    Ok(file.wallet && file.state != SaleState::Cancelled)
}
