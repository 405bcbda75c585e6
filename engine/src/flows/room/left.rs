//! What is left of a sale: the only reading of the sale's slots that a turn needs.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use crate::domain::admission::room::document::Left;
use crate::domain::basics::ids::TierId;
use crate::domain::sale::Sale;
use crate::flows::admit::held_back;
use crate::ports::{InventoryCounts, Ports, Seats, Stored};

/// What is left of a sale, and whether anybody is let in to it now; `None` if Redis does not have all of it, or has lost some meanwhile. It is one request
/// to each inventory, all of them at once.
///
/// # Errors
/// Fails if Redis does.
pub async fn left(ports: &impl Ports, sale: &Sale) -> Stored<Option<Left>> {
    let inventories = sale.inventories();
    let counts = inventories.iter().map(|inventory| async move {
        let tiers: Vec<TierId> = sale.tiers_in(inventory).map(|tier| tier.tier.clone()).collect();
        let counted = ports.seats().count_left(inventory, &tiers).await?;
        Ok(counted.map(|counted| (tiers, counted)))
    });
    let mut taken: BTreeMap<TierId, u64> = BTreeMap::new();
    let mut holds = 0;
    for counted in try_join_all(counts).await? {
        let Some((tiers, InventoryCounts { taken: of_tiers, holds: more })) = counted else {
            return Ok(None);
        };
        taken.extend(tiers.into_iter().zip(of_tiers));
        holds += more;
    }
    let free = sale.tiers().iter().map(|tier| {
        let places = u64::from(tier.layout.places()) * u64::from(sale.leg_count());
        Some(places.saturating_sub(*taken.get(&tier.tier)?))
    });
    let tiers: Option<Vec<u64>> = free.collect();
    let Some(tiers) = tiers else { return Ok(None) };
    let is_held_back = held_back(ports).await.is_some();
    Ok(Some(Left { free: tiers.iter().sum(), holds: holds > 0, tiers, is_held_back }))
}
