//! Sync: count paid orders in their sales' statistics, each exactly once.

use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::ports::{Orders, Ports, Stored};

/// Counts those of the orders that are paid and not yet counted; the rest needs nothing. Returns
/// how many were counted now.
///
/// # Errors
/// Fails if DynamoDB does; orders that were counted before the failure stay counted, and giving
/// them again does not count them again.
pub async fn sync(ports: &impl Ports, numbers: &[OrderNumber]) -> Stored<usize> {
    let orders = ports.orders().get_many(numbers).await?;
    let is_new = |order: &Order| order.state == OrderState::Paid && !order.synced;
    let new: Vec<Order> = orders.into_iter().filter(is_new).collect();
    if new.is_empty() {
        return Ok(0);
    }
    Ok(ports.orders().sync(&new).await?.len())
}
