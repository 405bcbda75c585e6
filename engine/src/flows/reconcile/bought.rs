//! The part of a comparison that finds buyers of whom Redis has too many tickets.
//!
//! A refund takes its tickets off what its buyer has bought, with their seats. Where that was cut off, or Redis
//! has forgotten it, nothing else takes them off, and the buyer may be refused what the limit allows. Of
//! all others a number that is too high corrects itself with the hold that it is of.

use std::collections::BTreeSet;

use crate::domain::ids::{InventoryId, UserId};
use crate::domain::inventory::Recount;
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderLine};
use crate::domain::tickets::Tickets;
use crate::flows::discrepancy::{Discrepancy, SaleSnapshot};
use crate::ports::{Orders, Ports, Published, Seats, Stored};

/// Most buyers of a sale who are looked at closely in one run; the others come in the next.
const MAX_RECOUNTS: usize = 16;
/// Orders of a buyer that are read at once.
const ORDERS_A_PAGE: u16 = 100;

/// Buyers of orders with refunded tickets of whom Redis has more tickets than are theirs.
pub(super) async fn overcounted(
    ports: &impl Ports,
    published: &Published,
    snapshot: &SaleSnapshot,
) -> Stored<Vec<Discrepancy>> {
    let mut found = Vec::new();
    let Some(epoch) = &published.epoch else { return Ok(found) };
    for (inventory, orders) in snapshot.returners(published) {
        let users: Vec<UserId> = orders.iter().map(|order| order.user.clone()).collect();
        let bought = ports.seats().bought(&inventory, &users).await?;
        let suspects = orders
            .into_iter()
            .zip(bought)
            .filter(|(order, bought)| *bought > snapshot.known_tickets(&inventory, &order.user));
        for (order, _) in suspects.take(MAX_RECOUNTS) {
            let (seen, tickets) = count(ports, &inventory, order).await?;
            if seen > tickets {
                let (inventory, epoch) = (inventory.clone(), epoch.clone());
                let recount = Recount { inventory, epoch, user: order.user.clone(), seen, tickets };
                found.push(Discrepancy::Overcounted(Box::new(order.clone()), recount));
            }
        }
    }
    Ok(found)
}

/// What Redis has of an order's buyer, and what it should have: the tickets of holds, and of live orders
/// without one. The order of the readings matters: a hold that was counted is among the holds, or its order
/// among the orders, unless the number has changed meanwhile.
async fn count(ports: &impl Ports, at: &InventoryId, order: &Order) -> Stored<(Tickets, Tickets)> {
    let user = &order.user;
    let seen = ports.seats().bought(at, std::slice::from_ref(user)).await?;
    let holds = ports.seats().holds(at).await?;
    let of_user = holds.iter().filter(|(_, record)| record.user == *user);
    let held: BTreeSet<OrderNumber> = of_user.clone().map(|(number, _)| *number).collect();
    let mut tickets: Tickets = of_user.map(|(_, record)| record.tickets()).sum();
    let mut before: Option<OrderNumber> = None;
    loop {
        let page = ports.orders().of_user(user, before, ORDERS_A_PAGE).await?;
        let counted = page.orders.iter().filter(|order| {
            let is_here = |line: &OrderLine| at.tier().is_none_or(|tier| line.tier == *tier);
            order.sale == *at.sale()
                && order.state.is_live()
                && order.lines.iter().all(is_here)
                && !held.contains(&order.number)
        });
        tickets += counted.map(Order::tickets).sum();
        before = page.next;
        if before.is_none() {
            return Ok((seen.first().copied().unwrap_or_default(), tickets));
        }
    }
}
