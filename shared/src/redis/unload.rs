//! Unloading: the keys of a sale that is archived are removed, a bounded command at a time.
//!
//! No script is needed: nothing else writes them once the catalogue names no epoch. The hash of the sale
//! goes first, and every script then answers that the sale is not loaded, whatever else is left. UNLINK
//! frees the memory beside the commands of others.

use super::connection::Connection;
use super::keys::InventoryKeys;
use engine::domain::basics::ids::{InventoryId, TierId};
use engine::ports::Stored;

/// Removes the keys of a sale, in this order: its own, then those of each tier.
pub(super) async fn unload(
    connection: &Connection,
    inventory: &InventoryId,
    tiers: &[TierId],
) -> Stored<()> {
    let keys = InventoryKeys(inventory);
    remove(connection, &[keys.sale(), keys.due()]).await?;
    for tier in tiers {
        remove(connection, &keys.of_tier(tier)).await?;
    }
    Ok(())
}

async fn remove(connection: &Connection, keys: &[String]) -> Stored<()> {
    let mut command = redis::cmd("UNLINK");
    command.arg(keys);
    connection.query::<u64>(&command).await.map(drop)
}
