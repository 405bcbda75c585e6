//! The reads that need no script: single commands and pipelines.

use redis::{Value, from_redis_value_ref};

use super::broken;
use super::connection::Connection;
use super::hold_record;
use super::keys::{EPOCH_FIELD, InventoryKeys};
use super::leg_bytes;
use super::load::middles_from_bytes;
use engine::domain::basics::ids::{Epoch, InventoryId, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{Freed, HoldRecord, Terms, TierGrid};
use engine::domain::sale::SaleState;
use engine::ports::{InventoryCounts, StoreError, Stored};

/// Most holds that are read in one command, so that it is a short one.
const MAX_HOLDS_PER_COMMAND: usize = 1000;

/// The tiers whose keys are there, as text: of the load before, or of one that was not finished; empty
/// if there are none.
pub(super) async fn tiers(connection: &Connection, inventory: &InventoryId) -> Stored<String> {
    let keys = InventoryKeys(inventory);
    for key in [keys.sale(), keys.loading()] {
        let mut command = redis::cmd("HGET");
        let tiers: Option<String> = connection.query(command.arg(key).arg("tiers")).await?;
        if let Some(tiers) = tiers {
            return Ok(tiers);
        }
    }
    Ok(String::new())
}

pub(super) async fn epoch(
    connection: &Connection,
    inventory: &InventoryId,
) -> Stored<Option<Epoch>> {
    let mut command = redis::cmd("HGET");
    command.arg(InventoryKeys(inventory).sale()).arg(EPOCH_FIELD);
    let epoch: Option<String> = connection.query(&command).await?;
    epoch.map(Epoch::new).transpose().map_err(broken)
}

pub(super) async fn head(
    connection: &Connection,
    inventory: &InventoryId,
) -> Stored<Option<(Epoch, Terms)>> {
    let mut command = redis::cmd("HMGET");
    command.arg(InventoryKeys(inventory).sale());
    command.arg(&[EPOCH_FIELD, "state", "opens_ms", "closes_ms", "limit", "legs"]);
    type Head =
        (Option<String>, Option<String>, Option<i64>, Option<i64>, Option<u16>, Option<u16>);
    let (epoch, state, opens_ms, closes_ms, limit, legs): Head = connection.query(&command).await?;
    let Some(epoch) = epoch else { return Ok(None) };
    let absent = || broken(format!("inventory {inventory} has no terms"));
    let state = state.as_deref().and_then(SaleState::from_text).ok_or_else(absent)?;
    let terms = Terms {
        state,
        opens_at: Timestamp::from_ms(opens_ms.ok_or_else(absent)?),
        closes_at: Timestamp::from_ms(closes_ms.ok_or_else(absent)?),
        limit: limit.map(Tickets::new).ok_or_else(absent)?,
        leg_count: legs.ok_or_else(absent)?,
    };
    Ok(Some((Epoch::new(epoch).map_err(broken)?, terms)))
}

pub(super) async fn record(
    connection: &Connection,
    inventory: &InventoryId,
    order: OrderNumber,
) -> Stored<Option<HoldRecord>> {
    let mut command = redis::cmd("HGET");
    command.arg(InventoryKeys(inventory).sale()).arg(order.to_string());
    let record: Option<String> = connection.query(&command).await?;
    record.map(|text| hold_record::from_text(&text)).transpose().map_err(broken)
}

pub(super) async fn due(
    connection: &Connection,
    inventory: &InventoryId,
    now: Timestamp,
    most: usize,
) -> Stored<Vec<OrderNumber>> {
    let mut command = redis::cmd("ZRANGE");
    command.arg(InventoryKeys(inventory).due()).arg("-inf").arg(now.ms());
    command.arg("BYSCORE").arg("LIMIT").arg(0).arg(most);
    let orders: Vec<String> = connection.query(&command).await?;
    orders.iter().map(|order| order.parse().map_err(broken)).collect()
}

/// What is taken in each of some tiers: a bitmap for each leg, empty where a tier is not loaded.
pub(super) async fn bitmaps(
    connection: &Connection,
    inventory: &InventoryId,
    tiers: &[TierId],
    legs: u16,
) -> Stored<Vec<Vec<Vec<u8>>>> {
    if tiers.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = redis::cmd("MGET");
    command.arg(tiers.iter().map(|tier| InventoryKeys(inventory).taken(tier)).collect::<Vec<_>>());
    let bitmaps: Vec<Option<Vec<u8>>> = connection.query(&command).await?;
    let each = |bytes: Option<Vec<u8>>| leg_bytes::apart(&bytes.unwrap_or_default(), legs);
    Ok(bitmaps.into_iter().map(each).collect())
}

/// What is taken on any of some legs; empty if there is none, or one that is not loaded.
pub(super) fn union(legs: &[Vec<u8>]) -> Vec<u8> {
    let mut union = legs.first().cloned().unwrap_or_default();
    for bitmap in legs {
        union.truncate(bitmap.len());
        union.iter_mut().zip(bitmap).for_each(|(sum, byte)| *sum |= byte);
    }
    union
}

pub(super) async fn count_taken(
    connection: &Connection,
    inventory: &InventoryId,
    tiers: &[TierId],
) -> Stored<u64> {
    let mut pipeline = redis::pipe();
    for tier in tiers {
        pipeline.cmd("BITCOUNT").arg(InventoryKeys(inventory).taken(tier));
    }
    if pipeline.is_empty() {
        return Ok(0);
    }
    let counts: Vec<u64> = connection.pipeline(&pipeline).await?;
    Ok(counts.into_iter().sum())
}

pub(super) async fn count_holds(connection: &Connection, inventory: &InventoryId) -> Stored<u64> {
    let mut command = redis::cmd("ZCARD");
    command.arg(InventoryKeys(inventory).due());
    connection.query(&command).await
}

/// What is taken of each tier, and the number of holds: one pipeline, between two readings of the epoch.
pub(super) async fn count_left(
    connection: &Connection,
    inventory: &InventoryId,
    tiers: &[TierId],
) -> Stored<Option<InventoryCounts>> {
    let keys = InventoryKeys(inventory);
    let mut pipeline = redis::pipe();
    pipeline.hget(keys.sale(), EPOCH_FIELD);
    for tier in tiers {
        pipeline.cmd("BITCOUNT").arg(keys.taken(tier));
    }
    pipeline.zcard(keys.due());
    pipeline.hget(keys.sale(), EPOCH_FIELD);
    let replies: Vec<Value> = connection.pipeline(&pipeline).await?;
    let [before, taken @ .., holds, after] = replies.as_slice() else {
        return Err(broken("a pipeline lacks replies"));
    };
    let epoch = |reply: &Value| from_redis_value_ref::<Option<String>>(reply).map_err(broken);
    let (before, after) = (epoch(before)?, epoch(after)?);
    if before.is_none() || before != after {
        return Ok(None);
    }
    let count = |reply: &Value| from_redis_value_ref::<u64>(reply).map_err(broken);
    let taken = taken.iter().map(count).collect::<Stored<_>>()?;
    Ok(Some(InventoryCounts { taken, holds: count(holds)? }))
}

pub(super) async fn grid(
    connection: &Connection,
    inventory: &InventoryId,
    tier: &TierId,
    legs: u16,
) -> Stored<TierGrid> {
    let keys = InventoryKeys(inventory);
    // In this order, the guard of `repair` sees whatever came in between: a seat that was given back
    // and taken again raises its block's counter.
    let mut pipeline = redis::pipe();
    pipeline.cmd("GET").arg(keys.freed(tier));
    pipeline.cmd("HGET").arg(keys.tier(tier)).arg("row_bytes");
    pipeline.cmd("GET").arg(keys.taken(tier));
    pipeline.cmd("GET").arg(keys.sold(tier));
    pipeline.cmd("GET").arg(keys.middles(tier));
    type Bytes = Option<Vec<u8>>;
    let (freed, row_bytes, taken, sold, middles): (Bytes, Option<u32>, Bytes, Bytes, Bytes) =
        connection.pipeline(&pipeline).await?;
    let absent = || StoreError::Unavailable(format!("tier {tier} of {inventory} is not loaded"));
    let of_legs = |bytes: Bytes| bytes.map(|bytes| leg_bytes::apart(&bytes, legs));
    Ok(TierGrid {
        tier: tier.clone(),
        row_bytes: row_bytes.ok_or_else(absent)?,
        middles: middles_from_bytes(&middles.unwrap_or_default()),
        taken: of_legs(taken).ok_or_else(absent)?,
        sold: of_legs(sold).ok_or_else(absent)?,
        freed: freed_from_bytes(&freed.unwrap_or_default()),
    })
}

/// Reads counters as the scripts write them: 32 bits each, the highest first. Redis has none beyond the
/// last block that was ever counted.
fn freed_from_bytes(bytes: &[u8]) -> Freed {
    let counter = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    Freed::from_counters(bytes.chunks(4).map(counter))
}

pub(super) async fn holds(
    connection: &Connection,
    inventory: &InventoryId,
) -> Stored<Vec<(OrderNumber, HoldRecord)>> {
    let keys = InventoryKeys(inventory);
    // All numbers at one moment: of a list that is read in pieces while it gets shorter, some would be
    // passed over, and their seats taken for leaked.
    let mut command = redis::cmd("ZRANGE");
    command.arg(keys.due()).arg(0).arg(-1);
    let orders: Vec<String> = connection.query(&command).await?;
    let mut holds = Vec::with_capacity(orders.len());
    for orders in orders.chunks(MAX_HOLDS_PER_COMMAND) {
        let mut command = redis::cmd("HMGET");
        command.arg(keys.sale()).arg(orders);
        let records: Vec<Option<String>> = connection.query(&command).await?;
        for (order, record) in orders.iter().zip(records) {
            // One that has gone since was given back or sold.
            let Some(record) = record else { continue };
            let order = order.parse().map_err(broken)?;
            holds.push((order, hold_record::from_text(&record).map_err(broken)?));
        }
    }
    Ok(holds)
}

/// How many tickets each of some buyers has.
pub(super) async fn bought(
    connection: &Connection,
    inventory: &InventoryId,
    users: &[UserId],
) -> Stored<Vec<Tickets>> {
    let mut tickets = Vec::with_capacity(users.len());
    for users in users.chunks(MAX_HOLDS_PER_COMMAND) {
        let fields: Vec<String> = users.iter().map(|user| format!("@{user}")).collect();
        let mut command = redis::cmd("HMGET");
        command.arg(InventoryKeys(inventory).sale()).arg(fields);
        let counts: Vec<Option<u16>> = connection.query(&command).await?;
        tickets.extend(counts.into_iter().map(|count| Tickets::new(count.unwrap_or(0))));
    }
    Ok(tickets)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use engine::domain::basics::ids::SaleId;

    use super::*;
    use crate::redis::{Bounds, Topology};

    /// Tiers of the largest sale.
    const TIERS: usize = 64;

    /// A server that answers the connection's own commands at once, and nothing else before it has `awaited`
    /// commands: then each reads as what `reply` says. Its address.
    fn patient(awaited: usize, reply: fn(usize, &str) -> String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
            let mut line = || {
                let mut line = String::new();
                (reader.read_line(&mut line).unwrap_or(0) > 0).then(|| line.trim_end().to_owned())
            };
            let mut read = Vec::new();
            while let Some(head) = line() {
                let count: usize = head.strip_prefix('*').unwrap().parse().unwrap();
                let parts: Vec<String> = (0..2 * count).map_while(|_| line()).collect();
                let name = parts[1].to_uppercase();
                if name == "CLIENT" {
                    writer.write_all(b"+OK\r\n").unwrap();
                    continue;
                }
                read.push(name);
                if read.len() == awaited {
                    for (index, name) in read.drain(..).enumerate() {
                        writer.write_all(reply(index, &name).as_bytes()).unwrap();
                    }
                }
            }
        });
        url
    }

    /// What is counted by a server that waits for everything that is asked: a second round trip would wait for
    /// ever.
    async fn counted(reply: fn(usize, &str) -> String) -> Stored<Option<InventoryCounts>> {
        // Each tier, the holds, and the epoch twice.
        let topology = Topology::Single(patient(TIERS + 3, reply));
        let bounds = Bounds { response: Duration::from_secs(60), attempts: 1, ..Bounds::default() };
        let connection = Connection::new(&topology, bounds).unwrap();
        let tiers: Vec<TierId> =
            (0..TIERS).map(|tier| TierId::new(format!("t{tier}")).unwrap()).collect();
        let inventory = InventoryId::whole(SaleId::new("s").unwrap());
        count_left(&connection, &inventory, &tiers).await
    }

    fn counts(index: usize, name: &str) -> String {
        match name {
            "HGET" => "$1\r\ne\r\n".to_owned(),
            "BITCOUNT" => format!(":{index}\r\n"),
            "ZCARD" => ":7\r\n".to_owned(),
            other => panic!("{other} was not expected"),
        }
    }

    #[tokio::test]
    async fn all_tiers_are_counted_in_one_round_trip() {
        let left = counted(counts).await.unwrap().unwrap();
        // The count of a tier is the next reply.
        let expected: Vec<u64> = (1..=64).collect();
        assert_eq!(left, InventoryCounts { taken: expected, holds: 7 });
    }

    #[tokio::test]
    async fn what_is_loaded_again_meanwhile_is_not_counted() {
        let reloaded = |index: usize, name: &str| match (index, name) {
            (0, "HGET") => "$1\r\nd\r\n".to_owned(),
            (index, name) => counts(index, name),
        };
        assert_eq!(counted(reloaded).await, Ok(None));
        let unloaded = |index: usize, name: &str| match name {
            "HGET" => "$-1\r\n".to_owned(),
            name => counts(index, name),
        };
        assert_eq!(counted(unloaded).await, Ok(None));
    }
}
