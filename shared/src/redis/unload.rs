//! Unloading: the keys of a sale that is archived are removed, a bounded command at a time.
//!
//! No script is needed: nothing else writes them once the catalogue names no epoch. The hash of the sale
//! goes first, and every script then answers that the sale is not loaded, whatever else is left. UNLINK
//! frees the memory beside the commands of others.

use super::connection::Connection;
use super::keys::InventoryKeys;
use engine::domain::ids::{InventoryId, Leg, TierId};
use engine::ports::Stored;

/// Removes the keys of a sale, in this order: its own, then those of each tier.
pub(super) async fn unload(
    connection: &Connection,
    inventory: &InventoryId,
    tiers: &[TierId],
    leg_count: u16,
) -> Stored<()> {
    let keys = InventoryKeys(inventory);
    remove(connection, &[keys.sale(), keys.due(), keys.scratch()]).await?;
    for tier in tiers {
        let bitmaps =
            Leg::first(leg_count).flat_map(|leg| [keys.taken(tier, leg), keys.sold(tier, leg)]);
        let of_tier: Vec<String> =
            [keys.tier(tier), keys.freed(tier)].into_iter().chain(bitmaps).collect();
        remove(connection, &of_tier).await?;
    }
    Ok(())
}

async fn remove(connection: &Connection, keys: &[String]) -> Stored<()> {
    let mut command = redis::cmd("UNLINK");
    command.arg(keys);
    connection.query::<u64>(&command).await.map(drop)
}
