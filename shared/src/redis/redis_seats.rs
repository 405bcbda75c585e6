//! The inventory in Redis: one script a verb, pipelines for reading.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::keys::{SaleKeys, buyer};
use super::{Call, Connection, Reply, Script, Scripts};
use engine::domain::choice::{Choice, Together};
use engine::domain::ids::{Epoch, Legs, SaleId, Seat, TierId};
use engine::domain::inventory::{
    HeldLine, Hold, HoldRecord, HoldReply, Load, LoadReply, Mark, MarkReply, Release, ReleaseReply,
    Repair, RepairReply, Restore, RestoreReply, Sell, SellReply, Terms, TierGrid, pack_lines,
};
use engine::domain::number::OrderNumber;
use engine::domain::sale::SaleState;
use engine::domain::time::Timestamp;
use engine::ports::{Seats, Snapshot, StoreError, Stored};

/// How often a load starts over when another load came between its two steps.
const LOAD_ATTEMPTS: u32 = 3;

/// How many holds are read in one command, so that it is a short one.
const HOLDS_A_COMMAND: usize = 1000;

/// The inventory in Redis; the rules are in [`engine::domain::inventory`].
#[derive(Debug, Clone)]
pub struct RedisSeats {
    connection: Connection,
    scripts: Arc<Scripts>,
}

impl RedisSeats {
    /// The inventory behind a connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self::with_scripts(connection, Scripts::standard())
    }

    /// The inventory with scripts of one's own, for tests.
    #[must_use]
    pub fn with_scripts(connection: Connection, scripts: Arc<Scripts>) -> Self {
        Self { connection, scripts }
    }

    /// The request that [`Seats::hold`] sends first, for measuring what it costs without the adapter.
    ///
    /// # Errors
    /// As [`Seats::hold`], if the command cannot be meant.
    pub fn hold_request(&self, command: &Hold) -> Stored<redis::Cmd> {
        let call = hold_call(&self.scripts, command)?;
        Ok(call.command("EVALSHA", self.scripts.hold.hash()))
    }

    /// Loads over what the field `tiers` said a moment ago; `None` if it says something else now.
    async fn load_over(&self, command: &Load, old_tiers: &str) -> Stored<Option<LoadReply>> {
        let reply = load_call(&self.scripts, command, old_tiers)?.send(&self.connection).await?;
        match reply.tag.as_str() {
            "loaded" => Ok(Some(LoadReply::Loaded)),
            "updated" => Ok(Some(LoadReply::Updated)),
            "stale" => Ok(Some(LoadReply::Stale(Some(reply.value(0)?)))),
            "absent" => Ok(Some(LoadReply::Stale(None))),
            "other_tiers" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }
}

fn broken(what: impl std::fmt::Display) -> StoreError {
    StoreError::Contract(what.to_string())
}

/// `seat.seat`
fn pack_seats(seats: &[Seat]) -> String {
    let texts: Vec<String> = seats.iter().map(|seat| seat.0.to_string()).collect();
    texts.join(".")
}

/// Reads what [`pack_seats`] wrote.
fn unpack_seats(text: &str) -> Option<Vec<Seat>> {
    text.split('.').map(|seat| seat.parse().ok().map(Seat)).collect()
}

/// How a script is told to choose.
struct PackedChoice {
    /// The way.
    way: &'static str,
    /// Under which name the script remembers where such a search of this journey left off.
    search: String,
    /// What else the way needs.
    detail: String,
}

fn pack_choice(choice: &Choice, legs: Legs) -> PackedChoice {
    let journey = format!("{}:{}", legs.from(), legs.to());
    match choice {
        Choice::Seats(seats) => {
            PackedChoice { way: "seats", search: String::new(), detail: pack_seats(seats) }
        }
        Choice::Best { count, together } => {
            let detail = match together {
                Together::Required => "required",
                Together::Preferred => "preferred",
            };
            let search = format!("{count}:{journey}");
            PackedChoice { way: "best", search, detail: detail.to_owned() }
        }
        Choice::Pattern { column, offsets } => {
            let mut detail = column.to_string();
            for offset in offsets {
                // Writing to a String cannot fail.
                let _ = write!(detail, ",{}:{}", offset.row, offset.column);
            }
            // How far it reaches says which rows a freed seat concerns.
            let reach = offsets.iter().map(|offset| offset.row).max().unwrap_or(0);
            PackedChoice { way: "pattern", search: format!("p{reach}:{detail}:{journey}"), detail }
        }
    }
}

/// A call that holds seats of one tier twice would pass every check of the script.
fn refuse_repeated_tiers<'t>(tiers: impl Iterator<Item = &'t TierId>) -> Stored<()> {
    let mut seen: Vec<&TierId> = Vec::new();
    for tier in tiers {
        if seen.contains(&tier) {
            return Err(broken(format!("two lines of tier {tier}")));
        }
        seen.push(tier);
    }
    Ok(())
}

/// A call of a script that settles lines whose seats are known: it takes the sale, what is due, and
/// every bitmap of the lines.
fn settling_call<'s>(script: &'s Script, keys: SaleKeys<'_>, lines: &[HeldLine]) -> Call<'s> {
    let mut call = Call::new(script).key("sale", keys.sale()).key("due", keys.due());
    for line in lines {
        call.add_key("tier[line]", keys.tier(&line.tier));
        for leg in line.legs.iter() {
            call.add_key("taken[line,leg]", keys.taken(&line.tier, leg));
            call.add_key("sold[line,leg]", keys.sold(&line.tier, leg));
        }
    }
    call
}

/// `tier:legs` joined by `;`: from this a later load knows which keys to remove.
fn pack_tiers(tiers: &[TierGrid]) -> String {
    let texts: Vec<String> =
        tiers.iter().map(|grid| format!("{}:{}", grid.tier, grid.taken.len())).collect();
    texts.join(";")
}

/// Reads what [`pack_tiers`] wrote.
fn unpack_tiers(text: &str) -> Stored<Vec<(TierId, u16)>> {
    let tier = |text: &str| {
        let (tier, legs) = text.split_once(':')?;
        Some((TierId::new(tier).ok()?, legs.parse().ok()?))
    };
    let malformed = || broken(format!("not a list of tiers: {text:?}"));
    let tiers = text.split(';').filter(|tier| !tier.is_empty());
    tiers.map(|text| tier(text).ok_or_else(malformed)).collect()
}

fn load_call<'s>(scripts: &'s Scripts, command: &Load, old_tiers: &str) -> Stored<Call<'s>> {
    let keys = SaleKeys(&command.sale);
    let terms = &command.terms;
    let state = match terms.state {
        SaleState::Open => "open",
        SaleState::Paused => "paused",
    };
    let mut call = Call::new(&scripts.load)
        .key("sale", keys.sale())
        .key("due", keys.due())
        .key("scratch", keys.scratch())
        .arg("expected", command.expected.as_ref().map_or("", Epoch::as_str))
        .arg("epoch", command.epoch.as_str())
        .arg("state", state)
        .arg("opens_ms", terms.opens_at.ms())
        .arg("closes_ms", terms.closes_at.ms())
        .arg("limit", terms.limit)
        .arg("legs", terms.leg_count)
        .arg("old_tiers", old_tiers)
        .arg("tiers", pack_tiers(&command.tiers))
        .arg("tier_count", command.tiers.len())
        .arg("hold_count", command.holds.len())
        .arg("bought_count", command.bought.len());
    refuse_repeated_tiers(command.tiers.iter().map(|grid| &grid.tier))?;
    for grid in &command.tiers {
        let bytes = grid.taken.first().map_or(0, Vec::len);
        let rows = bytes.checked_div(grid.row_bytes as usize);
        let (Some(rows), true) = (rows, grid.taken.len() == grid.sold.len()) else {
            return Err(broken(format!("tier {} has no shape", grid.tier)));
        };
        call.add_key("tier[tier]", keys.tier(&grid.tier));
        call.add_arg("rows[tier]", rows);
        call.add_arg("row_bytes[tier]", grid.row_bytes);
        call.add_arg("leg_count[tier]", grid.taken.len());
        call.add_arg("freed[tier]", grid.freed);
        for (leg, (taken, sold)) in (0..).zip(grid.taken.iter().zip(&grid.sold)) {
            call.add_key("taken[tier,leg]", keys.taken(&grid.tier, leg));
            call.add_key("sold[tier,leg]", keys.sold(&grid.tier, leg));
            call.add_arg("taken[tier,leg]", taken.as_slice());
            call.add_arg("sold[tier,leg]", sold.as_slice());
        }
    }
    for (tier, legs) in unpack_tiers(old_tiers)? {
        call.add_key("old[old]", keys.tier(&tier));
        for leg in 0..legs {
            call.add_key("old[old]", keys.taken(&tier, leg));
            call.add_key("old[old]", keys.sold(&tier, leg));
        }
    }
    for (order, record) in &command.holds {
        call.add_arg("order[hold]", order.to_string());
        call.add_arg("record[hold]", record.pack());
    }
    for (user, tickets) in &command.bought {
        call.add_arg("buyer[buyer]", buyer(user));
        call.add_arg("tickets[buyer]", *tickets);
    }
    Ok(call)
}

fn hold_call<'s>(scripts: &'s Scripts, command: &Hold) -> Stored<Call<'s>> {
    let keys = SaleKeys(&command.sale);
    let mut call = Call::new(&scripts.hold)
        .key("sale", keys.sale())
        .key("due", keys.due())
        .key("scratch", keys.scratch())
        .arg("epoch", command.epoch.as_str())
        .arg("order", command.order.to_string())
        .arg("user", command.user.as_str())
        .arg("content", command.fingerprint.as_str())
        .arg("now_ms", command.now.ms())
        .arg("deadline_ms", command.deadline.ms());
    refuse_repeated_tiers(command.lines.iter().map(|line| &line.tier))?;
    for line in &command.lines {
        call.add_key("tier[line]", keys.tier(&line.tier));
        for leg in line.legs.iter() {
            call.add_key("taken[line,leg]", keys.taken(&line.tier, leg));
        }
        let PackedChoice { way, search, detail } = pack_choice(&line.choice, line.legs);
        call.add_arg("tier[line]", line.tier.as_str());
        call.add_arg("from[line]", line.legs.from());
        call.add_arg("to[line]", line.legs.to());
        call.add_arg("choice[line]", way);
        call.add_arg("count[line]", line.choice.count());
        call.add_arg("search[line]", search);
        call.add_arg("detail[line]", detail);
    }
    Ok(call)
}

fn read_record(reply: &Reply) -> Stored<HoldRecord> {
    let text = reply.values.first().ok_or_else(|| reply.unexpected())?;
    HoldRecord::unpack(text).map_err(broken)
}

impl Seats for RedisSeats {
    async fn load(&self, command: &Load) -> Stored<LoadReply> {
        let mut old = redis::cmd("HGET");
        old.arg(SaleKeys(&command.sale).sale()).arg("tiers");
        for _ in 0..LOAD_ATTEMPTS {
            let old_tiers: Option<String> = self.connection.query(&old).await?;
            let reply = self.load_over(command, old_tiers.as_deref().unwrap_or("")).await?;
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
        Err(StoreError::Unavailable(format!("sale {} is being loaded by others", command.sale)))
    }

    async fn hold(&self, command: &Hold) -> Stored<HoldReply> {
        let reply = hold_call(&self.scripts, command)?.send(&self.connection).await?;
        match reply.tag.as_str() {
            "held" => {
                Ok(HoldReply::Held { record: read_record(&reply)?, allowance: reply.value(1)? })
            }
            "not_loaded" => Ok(HoldReply::NotLoaded),
            "content_differs" => Ok(HoldReply::ContentDiffers),
            "hold_expired" => Ok(HoldReply::HoldExpired),
            "sale_closed" => Ok(HoldReply::SaleClosed),
            "limit_reached" => Ok(HoldReply::LimitReached { remaining: reply.value(0)? }),
            "seat_taken" => {
                let seats = reply.values.get(1).and_then(|seats| unpack_seats(seats));
                let seats = seats.ok_or_else(|| reply.unexpected())?;
                Ok(HoldReply::SeatTaken(reply.value(0)?, seats))
            }
            "sold_out" => Ok(HoldReply::SoldOut(reply.value(0)?)),
            "no_adjacent" => Ok(HoldReply::NoAdjacent(reply.value(0)?)),
            _ => Err(reply.unexpected()),
        }
    }

    async fn sell(&self, command: &Sell) -> Stored<SellReply> {
        let keys = SaleKeys(&command.sale);
        let call = settling_call(&self.scripts.sell, keys, &command.lines)
            .arg("epoch", command.epoch.as_str())
            .arg("order", command.order.to_string())
            .arg("user", command.user.as_str())
            .arg("lines", pack_lines(&command.lines));
        let reply = call.send(&self.connection).await?;
        match reply.tag.as_str() {
            "sold" => Ok(SellReply::Sold),
            "not_loaded" => Ok(SellReply::NotLoaded),
            _ => Err(reply.unexpected()),
        }
    }

    async fn release(&self, command: &Release) -> Stored<ReleaseReply> {
        let keys = SaleKeys(&command.sale);
        let call = settling_call(&self.scripts.release, keys, &command.record.lines)
            .arg("order", command.order.to_string())
            .arg("record", command.record.pack());
        let reply = call.send(&self.connection).await?;
        match reply.tag.as_str() {
            "released" => Ok(ReleaseReply::Released),
            "not_held" => Ok(ReleaseReply::NotHeld),
            "changed" => Ok(ReleaseReply::Conflict),
            _ => Err(reply.unexpected()),
        }
    }

    async fn mark(&self, command: &Mark) -> Stored<MarkReply> {
        let keys = SaleKeys(&command.sale);
        let lost: Vec<String> = command
            .taken
            .iter()
            .map(|lost| format!("{},{},{}", lost.tier, lost.leg, lost.seat.0))
            .collect();
        let call = settling_call(&self.scripts.mark, keys, &command.record.lines)
            .arg("order", command.order.to_string())
            .arg("record", command.record.pack())
            .arg("lost", lost.join(";"));
        let reply = call.send(&self.connection).await?;
        match reply.tag.as_str() {
            "marked" => Ok(MarkReply::Marked),
            "not_held" => Ok(MarkReply::NotHeld),
            "changed" => Ok(MarkReply::Conflict),
            _ => Err(reply.unexpected()),
        }
    }

    async fn restore(&self, command: &Restore) -> Stored<RestoreReply> {
        let keys = SaleKeys(&command.sale);
        let mut call = settling_call(&self.scripts.restore, keys, &command.record.lines)
            .arg("epoch", command.epoch.as_str())
            .arg("order", command.order.to_string())
            .arg("record", command.record.pack());
        for freed in &command.freed {
            call = call.arg("freed[line]", freed.to_string());
        }
        let reply = call.send(&self.connection).await?;
        match reply.tag.as_str() {
            "changed" => Ok(RestoreReply::Conflict),
            "restored" => Ok(RestoreReply::Restored),
            "not_loaded" => Ok(RestoreReply::NotLoaded),
            _ => Err(reply.unexpected()),
        }
    }

    async fn repair(&self, command: &Repair) -> Stored<RepairReply> {
        let keys = SaleKeys(&command.sale);
        let tier = &command.tier;
        let mut by_leg: BTreeMap<u16, Vec<Seat>> = BTreeMap::new();
        for (leg, seat) in &command.leaked {
            by_leg.entry(*leg).or_default().push(*seat);
        }
        let mut call = Call::new(&self.scripts.repair)
            .key("sale", keys.sale())
            .key("tier", keys.tier(tier))
            .arg("epoch", command.epoch.as_str())
            .arg("freed", command.freed);
        for (leg, mut seats) in by_leg {
            seats.sort_unstable();
            seats.dedup();
            call.add_key("taken[leg]", keys.taken(tier, leg));
            call.add_key("sold[leg]", keys.sold(tier, leg));
            call.add_arg("leg[leg]", leg);
            call.add_arg("seats[leg]", pack_seats(&seats));
        }
        let reply = call.send(&self.connection).await?;
        match reply.tag.as_str() {
            "repaired" => Ok(RepairReply::Repaired),
            "changed" => Ok(RepairReply::Conflict),
            "not_loaded" => Ok(RepairReply::NotLoaded),
            _ => Err(reply.unexpected()),
        }
    }

    async fn epoch(&self, sale: &SaleId) -> Stored<Option<Epoch>> {
        let mut command = redis::cmd("HGET");
        command.arg(SaleKeys(sale).sale()).arg("epoch");
        let epoch: Option<String> = self.connection.query(&command).await?;
        epoch.map(Epoch::new).transpose().map_err(broken)
    }

    async fn head(&self, sale: &SaleId) -> Stored<Option<(Epoch, Terms)>> {
        let mut command = redis::cmd("HMGET");
        command.arg(SaleKeys(sale).sale());
        command.arg(&["epoch", "state", "opens_ms", "closes_ms", "limit", "legs"]);
        type Head =
            (Option<String>, Option<String>, Option<i64>, Option<i64>, Option<u16>, Option<u16>);
        let (epoch, state, opens_ms, closes_ms, limit, legs): Head =
            self.connection.query(&command).await?;
        let Some(epoch) = epoch else { return Ok(None) };
        let absent = || broken(format!("sale {sale} has no terms"));
        let state = match state.as_deref() {
            Some("open") => SaleState::Open,
            Some("paused") => SaleState::Paused,
            Some(_) | None => return Err(absent()),
        };
        let terms = Terms {
            state,
            opens_at: Timestamp::from_ms(opens_ms.ok_or_else(absent)?),
            closes_at: Timestamp::from_ms(closes_ms.ok_or_else(absent)?),
            limit: limit.ok_or_else(absent)?,
            leg_count: legs.ok_or_else(absent)?,
        };
        Ok(Some((Epoch::new(epoch).map_err(broken)?, terms)))
    }

    async fn record(&self, sale: &SaleId, order: OrderNumber) -> Stored<Option<HoldRecord>> {
        let mut command = redis::cmd("HGET");
        command.arg(SaleKeys(sale).sale()).arg(order.to_string());
        let record: Option<String> = self.connection.query(&command).await?;
        record.map(|text| HoldRecord::unpack(&text)).transpose().map_err(broken)
    }

    async fn due(&self, sale: &SaleId, now: Timestamp, most: usize) -> Stored<Vec<OrderNumber>> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(SaleKeys(sale).due()).arg("-inf").arg(now.ms());
        command.arg("BYSCORE").arg("LIMIT").arg(0).arg(most);
        let orders: Vec<String> = self.connection.query(&command).await?;
        orders.iter().map(|order| order.parse().map_err(broken)).collect()
    }

    async fn taken(&self, sale: &SaleId, tiers: &[TierId], legs: Legs) -> Stored<Vec<Vec<u8>>> {
        let mut pipeline = redis::pipe();
        for tier in tiers {
            let keys: Vec<String> =
                legs.iter().map(|leg| SaleKeys(sale).taken(tier, leg)).collect();
            pipeline.cmd("MGET").arg(keys);
        }
        if tiers.is_empty() {
            return Ok(Vec::new());
        }
        let bitmaps: Vec<Vec<Option<Vec<u8>>>> = self.connection.pipeline(&pipeline).await?;
        let sum = |bitmaps: Vec<Option<Vec<u8>>>| {
            bitmaps.into_iter().flatten().reduce(|mut sum, bitmap| {
                sum.iter_mut().zip(bitmap).for_each(|(sum, byte)| *sum |= byte);
                sum
            })
        };
        Ok(bitmaps.into_iter().map(|legs| sum(legs).unwrap_or_default()).collect())
    }

    async fn count_taken(&self, sale: &SaleId, tiers: &[TierId], legs: u16) -> Stored<u64> {
        let mut pipeline = redis::pipe();
        for tier in tiers {
            for leg in 0..legs {
                pipeline.cmd("BITCOUNT").arg(SaleKeys(sale).taken(tier, leg));
            }
        }
        if pipeline.is_empty() {
            return Ok(0);
        }
        let counts: Vec<u64> = self.connection.pipeline(&pipeline).await?;
        Ok(counts.into_iter().sum())
    }

    async fn count_holds(&self, sale: &SaleId) -> Stored<u64> {
        let mut command = redis::cmd("ZCARD");
        command.arg(SaleKeys(sale).due());
        self.connection.query(&command).await
    }

    async fn snapshot(&self, sale: &SaleId, tier: &TierId, legs: u16) -> Stored<Snapshot> {
        let keys = SaleKeys(sale);
        let taken: Vec<String> = (0..legs).map(|leg| keys.taken(tier, leg)).collect();
        let sold: Vec<String> = (0..legs).map(|leg| keys.sold(tier, leg)).collect();
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
        let ((row_bytes, freed), taken, sold, orders): Read =
            self.connection.pipeline(&pipeline).await?;
        let mut holds = Vec::with_capacity(orders.len());
        for orders in orders.chunks(HOLDS_A_COMMAND) {
            let mut command = redis::cmd("HMGET");
            command.arg(keys.sale()).arg(orders);
            let records: Vec<Option<String>> = self.connection.query(&command).await?;
            for (order, record) in orders.iter().zip(records) {
                // One that has gone since was given back or sold.
                let Some(record) = record else { continue };
                let order = order.parse().map_err(broken)?;
                holds.push((order, HoldRecord::unpack(&record).map_err(broken)?));
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
}
