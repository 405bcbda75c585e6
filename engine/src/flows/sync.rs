//! Sync: settle the facts of orders. Each fact is settled once: the statistics of the sale count a fact that sells, and
//! the log gets every fact. The order's award is requested before.

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

/// Settles the unsettled facts of orders as they were read, and returns the orders settled now. Awards are requested
/// first: nobody looks at an order once its facts are settled, and a process that dies between the two steps requests
/// them again.
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

/// Requests that an order's facts are settled. If the message is lost, the sweeper finds the order: an order is due
/// until all of its facts are settled.
pub(crate) async fn settle_soon(ports: &impl Ports, order: OrderNumber) {
    if let Err(error) = ports.queue().sync(order).await {
        tracing::warn!(%order, %error, "its facts are left to the sweeper");
    }
}
