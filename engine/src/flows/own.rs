//! A buyer's own order; another buyer's order is not found.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::UserId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::order::Order;
use crate::ports::{Orders as _, Ports, Stored};

/// The order of that number if `user` bought it; any order for an operator (`None`).
pub(crate) async fn order_of(
    ports: &impl Ports,
    buyer: Option<&UserId>,
    number: OrderNumber,
) -> Stored<Option<Order>> {
    let is_theirs = |order: &Order| {
        !stands(Guard::BuyerCheck) || buyer.is_none_or(|buyer| order.user == *buyer)
    };
    let order = ports.orders().get(number).await?;
    Ok(order.filter(|order| is_theirs(order) && !order.is_tombstone()))
}
