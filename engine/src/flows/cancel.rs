//! Cancel: a buyer gives up a pending order, or an operator cancels it.
//!
//! The seats are free at once, because the buyer says that they do not want them. Payments that were started for the
//! order are closed afterwards ([`crate::flows::close`]). If the buyer paid all the same, the money is refunded: a
//! cancelled order is never rescued.

use crate::domain::basics::ids::UserId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::fact::Cause;
use crate::domain::order::{Order, OrderEvent, OrderState};
use crate::flows::hold::{inventory_of, release};
use crate::flows::own::order_of;
use crate::flows::pay::close_the_rest;
use crate::ports::{ChangeReply, Orders, Ports, StoreError};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 4;

/// Why an order was not cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The buyer has no such order.
    #[error("there is no such order")]
    NotFound,
    /// It is paid, or has ended in another way.
    #[error("the order is {}", .0.as_str())]
    Resolved(OrderState),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Cancels the buyer's own pending order. An order that is cancelled already is returned as it is,
/// and what Redis may still hold for it is given back.
///
/// # Errors
/// Returns a [`Refusal`]; another buyer's order is not found.
pub async fn cancel(
    ports: &impl Ports,
    user: &UserId,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Order, Refusal> {
    end(ports, Some(user), number, Cause::BUYER, now).await
}

/// Cancels anybody's pending order, by an operator's wish; otherwise as [`cancel`].
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn by_operator(
    ports: &impl Ports,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Order, Refusal> {
    end(ports, None, number, Cause::OPERATOR, now).await
}

/// Cancels a pending order for the actor in `cause`. `user` is the buyer who must own the order; `None` skips that
/// check.
pub(super) async fn end(
    ports: &impl Ports,
    user: Option<&UserId>,
    number: OrderNumber,
    cause: Cause,
    now: Timestamp,
) -> Result<Order, Refusal> {
    for _ in 0..ATTEMPTS {
        let order = order_of(ports, user, number).await?.ok_or(Refusal::NotFound)?;
        let end = match order.after(OrderEvent::Cancel, cause.clone(), now) {
            Some(end) => end,
            None if order.state == OrderState::Cancelled => {
                release(ports, &inventory_of(ports, &order).await?, number).await?;
                return Ok(order);
            }
            None => return Err(Refusal::Resolved(order.state)),
        };
        match ports.orders().end(&end).await? {
            ChangeReply::Done => {
                release(ports, &inventory_of(ports, &end).await?, number).await?;
                close_the_rest(ports, &end).await;
                return Ok(end);
            }
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")).into())
}
