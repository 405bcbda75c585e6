//! What is read without a script: single commands and pipelines.

use super::broken;
use super::connection::Connection;
use super::hold_record;
use super::keys::SaleKeys;
use super::load::state_from_text;
use engine::domain::ids::{Epoch, Leg, Legs, SaleId, TierId};
use engine::domain::inventory::{HoldRecord, Terms, TierGrid};
use engine::domain::number::OrderNumber;
use engine::domain::tickets::Tickets;
use engine::domain::time::Timestamp;
use engine::ports::{Snapshot, StoreError, Stored};

/// Most holds that are read in one command, so that it is a short one.
const MAX_HOLDS_PER_COMMAND: usize = 1000;

/// The tiers that were loaded last, as text; empty if there are none.
pub(super) async fn tiers(connection: &Connection, sale: &SaleId) -> Stored<String> {
    let mut command = redis::cmd("HGET");
    command.arg(SaleKeys(sale).sale()).arg("tiers");
    let tiers: Option<String> = connection.query(&command).await?;
    Ok(tiers.unwrap_or_default())
}

pub(super) async fn epoch(connection: &Connection, sale: &SaleId) -> Stored<Option<Epoch>> {
    let mut command = redis::cmd("HGET");
    command.arg(SaleKeys(sale).sale()).arg("epoch");
    let epoch: Option<String> = connection.query(&command).await?;
    epoch.map(Epoch::new).transpose().map_err(broken)
}

pub(super) async fn head(connection: &Connection, sale: &SaleId) -> Stored<Option<(Epoch, Terms)>> {
    let mut command = redis::cmd("HMGET");
    command.arg(SaleKeys(sale).sale());
    command.arg(&["epoch", "state", "opens_ms", "closes_ms", "limit", "legs"]);
    type Head =
        (Option<String>, Option<String>, Option<i64>, Option<i64>, Option<u16>, Option<u16>);
    let (epoch, state, opens_ms, closes_ms, limit, legs): Head = connection.query(&command).await?;
    let Some(epoch) = epoch else { return Ok(None) };
    let absent = || broken(format!("sale {sale} has no terms"));
    let state = state.as_deref().and_then(state_from_text).ok_or_else(absent)?;
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
    sale: &SaleId,
    order: OrderNumber,
) -> Stored<Option<HoldRecord>> {
    let mut command = redis::cmd("HGET");
    command.arg(SaleKeys(sale).sale()).arg(order.to_string());
    let record: Option<String> = connection.query(&command).await?;
    record.map(|text| hold_record::from_text(&text)).transpose().map_err(broken)
}

pub(super) async fn due(
    connection: &Connection,
    sale: &SaleId,
    now: Timestamp,
    most: usize,
) -> Stored<Vec<OrderNumber>> {
    let mut command = redis::cmd("ZRANGE");
    command.arg(SaleKeys(sale).due()).arg("-inf").arg(now.ms());
    command.arg("BYSCORE").arg("LIMIT").arg(0).arg(most);
    let orders: Vec<String> = connection.query(&command).await?;
    orders.iter().map(|order| order.parse().map_err(broken)).collect()
}

pub(super) async fn taken(
    connection: &Connection,
    sale: &SaleId,
    tiers: &[TierId],
    legs: Legs,
) -> Stored<Vec<Vec<u8>>> {
    let mut pipeline = redis::pipe();
    for tier in tiers {
        let keys: Vec<String> = legs.iter().map(|leg| SaleKeys(sale).taken(tier, leg)).collect();
        pipeline.cmd("MGET").arg(keys);
    }
    if tiers.is_empty() {
        return Ok(Vec::new());
    }
    let bitmaps: Vec<Vec<Option<Vec<u8>>>> = connection.pipeline(&pipeline).await?;
    let sum = |bitmaps: Vec<Option<Vec<u8>>>| {
        bitmaps.into_iter().flatten().reduce(|mut sum, bitmap| {
            sum.iter_mut().zip(bitmap).for_each(|(sum, byte)| *sum |= byte);
            sum
        })
    };
    Ok(bitmaps.into_iter().map(|legs| sum(legs).unwrap_or_default()).collect())
}

pub(super) async fn count_taken(
    connection: &Connection,
    sale: &SaleId,
    tiers: &[TierId],
    legs: u16,
) -> Stored<u64> {
    let mut pipeline = redis::pipe();
    for tier in tiers {
        for leg in Leg::first(legs) {
            pipeline.cmd("BITCOUNT").arg(SaleKeys(sale).taken(tier, leg));
        }
    }
    if pipeline.is_empty() {
        return Ok(0);
    }
    let counts: Vec<u64> = connection.pipeline(&pipeline).await?;
    Ok(counts.into_iter().sum())
}

pub(super) async fn count_holds(connection: &Connection, sale: &SaleId) -> Stored<u64> {
    let mut command = redis::cmd("ZCARD");
    command.arg(SaleKeys(sale).due());
    connection.query(&command).await
}

pub(super) async fn snapshot(
    connection: &Connection,
    sale: &SaleId,
    tier: &TierId,
    legs: u16,
) -> Stored<Snapshot> {
    let keys = SaleKeys(sale);
    let taken: Vec<String> = Leg::first(legs).map(|leg| keys.taken(tier, leg)).collect();
    let sold: Vec<String> = Leg::first(legs).map(|leg| keys.sold(tier, leg)).collect();
    // In this order, the guard of `repair` sees whatever came in between: a seat that was given
    // back and taken again raises the counter, and the hold of a bit that was seen is among the
    // holds unless it was given back, which raises the counter, or sold, which its order tells.
    let mut pipeline = redis::pipe();
    pipeline.cmd("HMGET").arg(keys.tier(tier)).arg("row_bytes").arg("freed");
    pipeline.cmd("MGET").arg(taken);
    pipeline.cmd("MGET").arg(sold);
    pipeline.cmd("ZRANGE").arg(keys.due()).arg(0).arg(-1);
    type Read =
        ((Option<u32>, Option<u64>), Vec<Option<Vec<u8>>>, Vec<Option<Vec<u8>>>, Vec<String>);
    let ((row_bytes, freed), taken, sold, orders): Read = connection.pipeline(&pipeline).await?;
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
    let absent = || StoreError::Unavailable(format!("tier {tier} of {sale} is not loaded"));
    let whole = |bitmaps: Vec<Option<Vec<u8>>>| bitmaps.into_iter().collect::<Option<Vec<_>>>();
    let grid = TierGrid {
        tier: tier.clone(),
        row_bytes: row_bytes.ok_or_else(absent)?,
        taken: whole(taken).ok_or_else(absent)?,
        sold: whole(sold).ok_or_else(absent)?,
        freed: freed.ok_or_else(absent)?,
    };
    Ok(Snapshot { grid, holds })
}
