//! Sync: settle what orders tell. Each fact is settled once: what sells is counted in the statistics of its
//! sale, and all are appended to the log.

use crate::domain::number::OrderNumber;
use crate::domain::order::Order;
use crate::domain::time::Timestamp;
use crate::ports::{Orders, Ports, Queue, Stored};

/// Settles the facts of these orders that are not settled; the rest needs nothing. Returns the number of
/// orders that had some.
///
/// # Errors
/// Fails if DynamoDB does; what was settled before the failure stays settled, and giving the orders
/// again does not settle it again.
pub async fn sync(ports: &impl Ports, numbers: &[OrderNumber], now: Timestamp) -> Stored<usize> {
    let orders = ports.orders().get_many(numbers).await?;
    let new: Vec<Order> = orders.into_iter().filter(|order| !order.facts.are_settled()).collect();
    if new.is_empty() {
        return Ok(0);
    }
    Ok(ports.orders().sync(&new, now).await?.len())
}

/// Has an order's facts settled, where nothing else depends on it. If the message is lost, the sweeper finds
/// the order: it is due until all of its facts are settled.
pub(crate) async fn settle_soon(ports: &impl Ports, order: OrderNumber) {
    if let Err(error) = ports.queue().sync(order).await {
        tracing::warn!(%order, %error, "its facts are left to the sweeper");
    }
}
