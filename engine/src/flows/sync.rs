//! Sync: settle what orders tell. Each fact is settled once: what sells is counted in the statistics of its
//! sale, and all are appended to the log. What an order gives its buyer is asked for before.

use futures_util::future::try_join_all;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::Order;
use crate::ports::{Orders, Ports, Queue, Stored};

/// Settles the facts of these orders that are not settled; the rest needs nothing. Returns the number of
/// orders that had some.
///
/// # Errors
/// Fails if DynamoDB or a queue does; what was settled before the failure stays settled, and giving the orders
/// again does not settle it again.
pub async fn sync(ports: &impl Ports, numbers: &[OrderNumber], now: Timestamp) -> Stored<usize> {
    let orders = ports.orders().get_many(numbers).await?;
    let new: Vec<Order> = orders.into_iter().filter(|order| !order.facts.are_settled()).collect();
    if new.is_empty() {
        return Ok(0);
    }
    Ok(settle(ports, &new, now).await?.len())
}

/// Settles what is not settled of the facts of orders, as they were read; those settled now. What they give is asked
/// for before: once they are settled nobody looks at them any more, and who dies between asks again.
///
/// # Errors
/// As [`sync`].
pub(crate) async fn settle(
    ports: &impl Ports,
    orders: &[Order],
    now: Timestamp,
) -> Stored<Vec<OrderNumber>> {
    if stands(Guard::AwardAsked) {
        let giving = orders.iter().filter(|order| order.award().is_some());
        try_join_all(giving.map(|order| ports.queue().award(order))).await?;
    }
    ports.orders().sync(orders, now).await
}

/// Has an order's facts settled, where nothing else depends on it. If the message is lost, the sweeper finds
/// the order: it is due until all of its facts are settled.
pub(crate) async fn settle_soon(ports: &impl Ports, order: OrderNumber) {
    if let Err(error) = ports.queue().sync(order).await {
        tracing::warn!(%order, %error, "its facts are left to the sweeper");
    }
}
