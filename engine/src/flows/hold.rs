//! Bringing a hold in Redis to where its order is: the steps that several flows end with.

use crate::domain::ids::{Epoch, SaleId};
use crate::domain::inventory::{HoldRecord, Release, ReleaseReply, Sell, SellReply};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::flows::load;
use crate::ports::{Catalogue, Freshness, Ports, Published, Seats, StoreError, Stored};

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

/// Gives back whatever an order holds. Running it twice frees nothing twice.
///
/// # Errors
/// Fails if Redis does; `Unavailable` if the hold keeps changing.
pub async fn release(ports: &impl Ports, sale: &SaleId, order: OrderNumber) -> Stored<()> {
    for _ in 0..ATTEMPTS {
        let Some(record) = ports.seats().record(sale, order).await? else { return Ok(()) };
        let command = Release { sale: sale.clone(), order, record };
        match ports.seats().release(&command).await? {
            ReleaseReply::Released | ReleaseReply::NotHeld => return Ok(()),
            ReleaseReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("the hold of order {order} keeps changing")))
}

/// Marks the seats of a paid order sold, in the epoch that Redis has now. Of an archived sale Redis has
/// nothing: there is nothing to mark.
///
/// # Errors
/// `Unavailable` while the sale is being loaded again.
pub async fn sell(ports: &impl Ports, order: &Order) -> Stored<()> {
    for freshness in [Freshness::Cached, Freshness::Fresh] {
        let published = sale_of(ports, &order.sale, freshness).await?;
        if published.lifecycle.is_over() {
            return Ok(());
        }
        let command = Sell {
            sale: order.sale.clone(),
            epoch: epoch_of(&published)?.clone(),
            order: order.number,
            user: order.user.clone(),
            lines: order.held_lines(),
        };
        match ports.seats().sell(&command).await? {
            SellReply::Sold => return Ok(()),
            SellReply::NotLoaded => {}
        }
    }
    load::ask(ports, &order.sale).await;
    Err(StoreError::Unavailable(format!("sale {} is not loaded", order.sale)))
}

/// Brings what Redis holds under an order's number to what the order says: held while pending,
/// sold when paid, free when it has ended. A pending order without a hold is left alone.
///
/// # Errors
/// Fails if Redis does, or while the sale is being loaded again.
pub async fn align(ports: &impl Ports, order: &Order) -> Stored<()> {
    let Some(record) = ports.seats().record(&order.sale, order.number).await? else {
        return Ok(());
    };
    align_to(ports, order, &record).await
}

/// [`align`] for a hold that the caller has just read.
///
/// # Errors
/// As [`align`].
pub async fn align_to(ports: &impl Ports, order: &Order, record: &HoldRecord) -> Stored<()> {
    let is_of_the_order = record.lines == order.held_lines();
    match order.state {
        OrderState::Pending if is_of_the_order => Ok(()),
        // Redis has forgotten the order's hold, and a repeated attempt took other seats. The
        // reconciler writes the right hold; until then its claims keep the seats.
        OrderState::Pending => release(ports, &order.sale, order.number).await,
        OrderState::Paid => {
            if !is_of_the_order {
                release(ports, &order.sale, order.number).await?;
            }
            sell(ports, order).await
        }
        OrderState::Cancelled
        | OrderState::Expired
        | OrderState::RefundDue
        | OrderState::Refunded => release(ports, &order.sale, order.number).await,
    }
}
