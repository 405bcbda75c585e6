//! Awaited turns: a room in which somebody waits makes at least one turn a minute, even if nobody requests its
//! document.

use futures_util::future::join_all;

use super::left::left;
use super::published;
use super::turn::turn;
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::time::Timestamp;
use crate::ports::{BoardPorts, Catalogue, Freshness, Ports, Stored};

/// Rooms checked concurrently.
const TOGETHER: usize = 16;

/// Result of [`make_turns`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AwaitedTurns {
    /// Rooms that are open: each has made a turn within the last seconds, if anybody waits in it.
    pub open: u32,
    /// Rooms that could not be looked at.
    pub failed: u32,
}

/// Makes a turn of each room that is open and in which somebody waits, unless one was made just now. Where nobody
/// waits, nothing is written to the log ([`turn`]).
///
/// # Errors
/// Fails only if the sales cannot be listed; a room that fails is counted.
pub async fn make_turns(ports: &(impl Ports + BoardPorts), now: Timestamp) -> Stored<AwaitedTurns> {
    let sales = ports.catalogue().sales().await?;
    let mut turns = AwaitedTurns::default();
    for some in sales.chunks(TOGETHER) {
        let each = some.iter().map(|sale| Box::pin(make_turn(ports, sale, now)));
        for (sale, looked_at) in some.iter().zip(join_all(each).await) {
            match looked_at {
                Ok(is_open) => turns.open += u32::from(is_open),
                Err(error) => {
                    tracing::warn!(%sale, %error, "whether somebody waits is not known");
                    turns.failed += 1;
                }
            }
        }
    }
    Ok(turns)
}

/// Makes the turn of one sale, if it has a room that is open; whether it has.
async fn make_turn(ports: &(impl Ports + BoardPorts), id: &SaleId, now: Timestamp) -> Stored<bool> {
    let Some(listed) = ports.catalogue().sale(id, Freshness::Cached).await? else {
        return Ok(false);
    };
    let file = listed.sale.file();
    let sells = file.opens_at..listed.sale.sells_until();
    let is_open = sells.contains(&now) && !listed.lifecycle.is_over();
    if !is_open || file.room.is_none() {
        return Ok(false);
    }
    let Some(room) = published(ports, id).await? else { return Ok(false) };
    let left = async {
        left(ports, &listed.sale).await.unwrap_or_else(|error| {
            tracing::warn!(sale = %id, %error, "what is left is unknown");
            None
        })
    };
    turn(ports, &room, left, now).await?;
    Ok(true)
}
