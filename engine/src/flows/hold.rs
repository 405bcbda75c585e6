//! Steps that several flows share: they bring a hold in Redis to the state of its order.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::domain::basics::ids::{Epoch, InventoryId, SaleId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::inventory::{
    HeldLine, HoldRecord, Release, ReleaseReply, Sell, SellReply, Unsell, UnsellReply,
};
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::Sale;
use crate::flows::load;
use crate::ports::{
    Catalogue, Claim, Freshness, Orders, Ports, Published, Seats, StoreError, Stored, block_of,
};

/// Most attempts of a compare-and-set, after which the caller gets `Unavailable`.
const ATTEMPTS: usize = 4;

/// A sale that must exist because an order of it does.
///
/// # Errors
/// A missing sale breaks the contract: sales with orders are never removed.
pub async fn sale_of(ports: &impl Ports, sale: &SaleId, freshness: Freshness) -> Stored<Published> {
    let published = ports.catalogue().sale(sale, freshness).await?;
    published
        .ok_or_else(|| StoreError::Contract(format!("sale {sale} has orders but is not there")))
}

/// The epoch of a sale that has been loaded at least once.
fn epoch_of(published: &Published) -> Stored<&Epoch> {
    let missing = || StoreError::Unavailable(format!("sale {} is not loaded", published.sale.id()));
    published.epoch.as_ref().ok_or_else(missing)
}

/// The inventory that an order's seats are in.
///
/// # Errors
/// `Contract` if they are in several: no such order is made.
fn inventory_in(sale: &Sale, order: &Order) -> Stored<InventoryId> {
    let at = sale.inventory_of_all(order.lines.iter().map(|line| &line.tier));
    at.ok_or_else(|| StoreError::Contract(format!("order {} is in no inventory", order.number)))
}

/// The inventory that an order's seats are in. A tombstone has no seats; its inventory is the whole sale's.
///
/// # Errors
/// Fails if the catalogue does; `Contract` if they are in several: no such order is made.
pub async fn inventory_of(ports: &impl Ports, order: &Order) -> Stored<InventoryId> {
    if order.is_tombstone() {
        return Ok(InventoryId::whole(order.sale.clone()));
    }
    let published = sale_of(ports, &order.sale, Freshness::Cached).await?;
    inventory_in(&published.sale, order)
}

/// Number of orders that hold seats of a sale now.
///
/// # Errors
/// Fails if Redis does.
pub async fn count_holds(ports: &impl Ports, sale: &Sale) -> Stored<u64> {
    let mut count = 0;
    for inventory in sale.inventories() {
        count += ports.seats().count_holds(&inventory).await?;
    }
    Ok(count)
}

/// Gives back whatever a number holds in an inventory. Running it twice frees nothing twice.
///
/// # Errors
/// Fails if Redis does; `Unavailable` if the hold keeps changing.
pub async fn release(ports: &impl Ports, at: &InventoryId, order: OrderNumber) -> Stored<()> {
    for _ in 0..ATTEMPTS {
        let Some(record) = ports.seats().record(at, order).await? else { return Ok(()) };
        let command = Release { inventory: at.clone(), order, record };
        match ports.seats().release(&command).await? {
            ReleaseReply::Released | ReleaseReply::NotHeld => return Ok(()),
            ReleaseReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("the hold of order {order} keeps changing")))
}

/// Marks the seats of a paid order sold, in the epoch that Redis has now. Redis has no keys of an archived sale, so
/// nothing is marked there. The hold says whose the seats are. If Redis has forgotten the hold, `sell` reads the
/// counters of the seats' blocks and then the order again: its tickets may be refunded by now, and their seats sold to
/// another buyer.
///
/// # Errors
/// `Unavailable` while the sale is being loaded again, or if seats around keep being freed.
pub async fn sell(ports: &impl Ports, order: &Order) -> Stored<()> {
    let mut freshness = Freshness::Cached;
    let (mut order, mut freed) = (Cow::Borrowed(order), None);
    for _ in 0..ATTEMPTS {
        let published = sale_of(ports, &order.sale, freshness).await?;
        if published.lifecycle.is_over() {
            return Ok(());
        }
        let command = Sell {
            inventory: inventory_in(&published.sale, &order)?,
            epoch: epoch_of(&published)?.clone(),
            order: order.number,
            user: order.user.clone(),
            lines: order.held_lines(),
            freed,
        };
        match ports.seats().sell(&command).await? {
            SellReply::Sold => return Ok(()),
            SellReply::NotHeld | SellReply::Conflict => {
                // A hold of more tickets than the order has: some were refunded before it was sold.
                release(ports, &command.inventory, order.number).await?;
                let seen = freed_of(ports, &published.sale, &command.lines).await?;
                let read = ports.orders().get(order.number).await?;
                match read.filter(|order| order.state == OrderState::Paid) {
                    Some(paid) if paid.held_lines() == command.lines => freed = Some(seen),
                    Some(paid) => (order, freed) = (Cow::Owned(paid), None),
                    None => return Ok(()),
                }
            }
            SellReply::NotLoaded if freshness == Freshness::Fresh => {
                load::request_load(ports, &order.sale).await;
                return Err(not_loaded(&order.sale));
            }
            SellReply::NotLoaded => (freshness, freed) = (Freshness::Fresh, None),
        }
    }
    Err(StoreError::Unavailable(format!("the seats around order {} keep changing", order.number)))
}

fn not_loaded(sale: &SaleId) -> StoreError {
    StoreError::Unavailable(format!("sale {sale} is not loaded"))
}

/// The counters of the blocks of some lines' seats, line by line.
async fn freed_of(ports: &impl Ports, sale: &Sale, lines: &[HeldLine]) -> Stored<Vec<Vec<u32>>> {
    let mut freed = Vec::new();
    for line in lines {
        let at = sale.inventory_of(&line.tier);
        let grid = ports.seats().grid(&at, &line.tier, sale.leg_count()).await?;
        freed.push(grid.freed.of(line.seats.iter().copied()));
    }
    Ok(freed)
}

/// Frees the seats of tickets that were just refunded, unless an order claims one of them by now: then Redis had the
/// seat free, or another process has freed it. If seats around are changing or Redis does not answer, the comparison
/// finds the seats later.
///
/// # Errors
/// Fails if a store does.
pub async fn unsell(ports: &impl Ports, order: &Order, lines: &[HeldLine]) -> Stored<()> {
    let published = sale_of(ports, &order.sale, Freshness::Cached).await?;
    if published.lifecycle.is_over() || lines.is_empty() {
        return Ok(());
    }
    let sale = &published.sale;
    for _ in 0..ATTEMPTS {
        // First the counters and the bits, then the claims: `unsell` says why.
        let mut freed = Vec::new();
        for line in lines {
            let at = sale.inventory_of(&line.tier);
            let grid = ports.seats().grid(&at, &line.tier, sale.leg_count()).await?;
            if !line.seat_legs().all(|at| grid.is_sold(at.leg, at.seat)) {
                return Ok(());
            }
            freed.push(grid.freed.of(line.seats.iter().copied()));
        }
        if is_claimed(ports, sale, lines).await? {
            return Ok(());
        }
        let command = Unsell {
            inventory: inventory_in(sale, order)?,
            epoch: epoch_of(&published)?.clone(),
            user: order.user.clone(),
            lines: lines.to_vec(),
            freed,
        };
        match ports.seats().unsell(&command).await? {
            UnsellReply::Unsold | UnsellReply::NotSold | UnsellReply::NotLoaded => return Ok(()),
            UnsellReply::Conflict => {}
        }
    }
    Ok(())
}

/// True if an order claims one of these seats.
async fn is_claimed(ports: &impl Ports, sale: &Sale, lines: &[HeldLine]) -> Stored<bool> {
    for line in lines {
        let blocks: BTreeSet<u32> = line.seats.iter().map(|seat| block_of(*seat)).collect();
        for block in blocks {
            let claims = ports.orders().claims(sale.id(), &line.tier, block).await?;
            let is_of_line = |claim: &Claim| {
                line.seats.contains(&claim.seat) && line.legs.iter().any(|leg| leg == claim.leg)
            };
            if claims.iter().any(is_of_line) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Brings the hold under an order's number in an inventory to the order's state: held while pending, sold when paid,
/// freed when the order has ended. A hold in an inventory in which the order has no seats is freed too: if tiers are
/// kept apart, a request that was repeated with another tier makes such a hold. A pending order without a hold is left
/// alone.
///
/// # Errors
/// Fails if Redis does, or while the sale is being loaded again.
pub async fn align(ports: &impl Ports, order: &Order, at: &InventoryId) -> Stored<()> {
    let Some(record) = ports.seats().record(at, order.number).await? else { return Ok(()) };
    align_record(ports, order, at, &record).await
}

/// Does as [`align`], for a hold that the caller has just read.
///
/// # Errors
/// As [`align`].
pub async fn align_record(
    ports: &impl Ports,
    order: &Order,
    at: &InventoryId,
    record: &HoldRecord,
) -> Stored<()> {
    let is_of_the_order = record.lines == order.held_lines();
    match order.state {
        OrderState::Pending if is_of_the_order => Ok(()),
        // Redis has forgotten the order's hold, and a repeated attempt took other seats. The
        // reconciler writes the right hold; until then its claims keep the seats.
        OrderState::Pending => release(ports, at, order.number).await,
        OrderState::Paid => {
            if !is_of_the_order {
                release(ports, at, order.number).await?;
            }
            sell(ports, order).await
        }
        OrderState::Cancelled
        | OrderState::Expired
        | OrderState::RefundDue
        | OrderState::Refunded => release(ports, at, order.number).await,
    }
}
