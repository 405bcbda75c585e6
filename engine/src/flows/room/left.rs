//! What is left of a sale: the only reading of the sale's slots that a turn needs.

use crate::domain::ids::Epoch;
use crate::domain::room::document::Left;
use crate::domain::sale::Sale;
use crate::flows::hold::count_holds;
use crate::ports::{Ports, Seats, Stored};

/// What is left of a sale; `None` if Redis does not have all of it, or has lost some meanwhile.
///
/// # Errors
/// Fails if Redis does.
pub async fn left(ports: &impl Ports, sale: &Sale) -> Stored<Option<Left>> {
    let Some(before) = epochs(ports, sale).await? else { return Ok(None) };
    let mut tiers = Vec::with_capacity(sale.tiers().len());
    for tier in sale.tiers() {
        let inventory = sale.inventory_of(&tier.tier);
        let name = std::slice::from_ref(&tier.tier);
        let taken = ports.seats().count_taken(&inventory, name, sale.leg_count()).await?;
        let places = u64::from(tier.layout.places()) * u64::from(sale.leg_count());
        tiers.push(places.saturating_sub(taken));
    }
    let holds = count_holds(ports, sale).await? > 0;
    // What was lost in between was counted as free.
    let is_whole = epochs(ports, sale).await? == Some(before);
    Ok(is_whole.then(|| Left { free: tiers.iter().sum(), holds, tiers }))
}

/// The epochs of a sale's inventories; `None` if one has none.
async fn epochs(ports: &impl Ports, sale: &Sale) -> Stored<Option<Vec<Epoch>>> {
    let mut epochs = Vec::new();
    for inventory in sale.inventories() {
        match ports.seats().epoch(&inventory).await? {
            Some(epoch) => epochs.push(epoch),
            None => return Ok(None),
        }
    }
    Ok(Some(epochs))
}
