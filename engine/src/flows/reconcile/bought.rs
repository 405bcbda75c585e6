//! The part of a comparison that finds buyers of whom Redis has too many tickets.
//!
//! A refund subtracts its tickets from the number that its buyer has bought, when it frees their seats. If that was cut
//! off, or Redis has forgotten it, no other step subtracts them, and the buyer may be refused tickets that the limit
//! allows. A number that is too high for another reason is corrected together with the hold that it counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::basics::ids::{Epoch, InventoryId, Seat, TierId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::inventory::{HeldLine, Recount, SeatLeg, TierGrid};
use crate::domain::order::{Order, OrderLine};
use crate::flows::discrepancy::{Discrepancy, SaleSnapshot};
use crate::ports::{Orders, Ports, Published, Seats, Stored};

/// Most buyers of a sale who are looked at closely in one run; the others come in the next.
const MAX_RECOUNTS: usize = 16;
/// Buyers whose numbers Redis is asked for at once: a cancelled sale has as many as it had orders.
const BUYERS_AT_ONCE: usize = 1000;
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
        let known = snapshot.known_tickets(&inventory);
        let mut suspects = Vec::new();
        for some in orders.chunks(BUYERS_AT_ONCE) {
            let users: Vec<UserId> = some.iter().map(|order| order.user.clone()).collect();
            let bought = ports.seats().bought(&inventory, &users).await?;
            let known_of = |order: &Order| known.get(&order.user).copied().unwrap_or_default();
            let of_some = some.iter().zip(bought);
            suspects.extend(of_some.filter(|(order, bought)| *bought > known_of(order)));
        }
        for (order, _) in suspects.into_iter().take(MAX_RECOUNTS) {
            let read = count(ports, published, snapshot, epoch, &inventory, &order.user);
            let recount = read.await?;
            if recount.seen > recount.tickets {
                found.push(Discrepancy::Overcounted(Box::new(Order::clone(order)), recount));
            }
        }
    }
    Ok(found)
}

/// What Redis has of a buyer, and what it should have: the tickets of holds, of live orders without one, and those
/// that went back and that Redis does not know of yet.
/// The order of the readings matters: first the counters, then the number, the holds, and the orders. A hold
/// that was counted is then among the holds, or its order among the orders, unless it was given back.
async fn count(
    ports: &impl Ports,
    published: &Published,
    snapshot: &SaleSnapshot,
    epoch: &Epoch,
    at: &InventoryId,
    user: &UserId,
) -> Stored<Recount> {
    let sale = &published.sale;
    let mut grids = BTreeMap::new();
    for tier in sale.tiers_in(at) {
        let grid = ports.seats().grid(at, &tier.tier, sale.leg_count()).await?;
        grids.insert(tier.tier.clone(), grid);
    }
    let seen = ports.seats().bought(at, std::slice::from_ref(user)).await?;
    let mut held = ports.seats().holds(at).await?;
    held.retain(|(_, record)| record.user == *user);
    let mut tickets: Tickets = held.iter().map(|(_, record)| record.tickets()).sum();
    let mut seats: BTreeMap<TierId, BTreeSet<Seat>> = BTreeMap::new();
    let mut add = |lines: &[HeldLine]| {
        for line in lines {
            seats.entry(line.tier.clone()).or_default().extend(&line.seats);
        }
    };
    held.iter().for_each(|(_, record)| add(&record.lines));
    for order in orders_in(ports, at, user).await? {
        add(&order.all_lines());
        // Another hold under the order's number belongs to a repeated request, which will be refused and gives the hold
        // back.
        let all = order.all_lines();
        let is_held =
            held.iter().any(|(number, hold)| *number == order.number && hold.lines == all);
        if order.state.is_live() && !is_held {
            tickets += order.tickets();
        }
        tickets += untold(&order, &grids, snapshot);
    }
    let legs = sale.whole();
    let line = |(tier, seats): (TierId, BTreeSet<Seat>)| {
        let seats: Vec<Seat> = seats.into_iter().collect();
        let freed = grids.get(&tier)?.freed.of(seats.iter().copied());
        Some((HeldLine { tier, legs, seats }, freed))
    };
    let (lines, freed) = seats.into_iter().filter_map(line).unzip();
    let (inventory, epoch, user) = (at.clone(), epoch.clone(), user.clone());
    let seen = seen.first().copied().unwrap_or_default();
    Ok(Recount { inventory, epoch, user, seen, tickets, lines, freed })
}

/// Tickets of an order that went back and that Redis has as sold, for nobody else: whoever frees their seats takes
/// them off, so they count until then.
fn untold(order: &Order, grids: &BTreeMap<TierId, TierGrid>, snapshot: &SaleSnapshot) -> Tickets {
    let is_sold_for_it = |at: SeatLeg| {
        grids.get(&at.tier).is_some_and(|grid| grid.is_sold(at.leg, at.seat))
            && snapshot.owner(&at).is_none_or(|owner| owner == order.number)
    };
    let refunded = order.lines.iter().flat_map(|line| {
        let refunded = line.tickets.iter().filter(|ticket| !ticket.is_live());
        refunded.filter_map(|ticket| line.held_line_of(std::iter::once(ticket)))
    });
    Tickets::of_seats(refunded.filter(|line| line.seat_legs().all(is_sold_for_it)).count())
}

/// A buyer's orders in an inventory, in any state.
async fn orders_in(ports: &impl Ports, at: &InventoryId, user: &UserId) -> Stored<Vec<Order>> {
    let mut found = Vec::new();
    let mut before: Option<OrderNumber> = None;
    loop {
        let page = ports.orders().of_user(user, before, ORDERS_A_PAGE).await?;
        found.extend(page.orders.into_iter().filter(|order| {
            let is_here = |line: &OrderLine| at.tier().is_none_or(|tier| line.tier == *tier);
            order.sale == *at.sale() && order.lines.iter().all(is_here)
        }));
        before = page.next;
        if before.is_none() {
            return Ok(found);
        }
    }
}
