//! `lua/load.lua`: starts a sale, starts it again after Redis lost it, or replaces its terms.

use super::broken;
use super::call::{Call, Reply};
use super::contract::{Contract, DUE, KeyKind, SALE, SCRATCH, bitmap, integer, key, reply, string};
use super::hold_record;
use super::keys::{InventoryKeys, buyer};
use super::script::{Script, script};
use engine::domain::ids::{Epoch, Leg, TierId};
use engine::domain::inventory::{Load, LoadPart, LoadReply, PartLimit, TierGrid};
use engine::domain::sale::MAX_BITMAP_BYTES;
use engine::ports::{MAX_REQUEST_ARGUMENTS, PLAIN_LOAD_ARGUMENTS, Stored};

/// The keys, arguments and replies of `lua/load.lua`.
pub(super) const CONTRACT: Contract = Contract {
    script: "load",
    keys: &[
        SALE,
        DUE,
        SCRATCH,
        key("loading", KeyKind::Hash),
        key("loading_due", KeyKind::Zset),
        key("tier[tier]", KeyKind::Hash),
        key("freed[tier]", KeyKind::Counters),
        key("taken[tier,leg]", KeyKind::Bitmap),
        key("sold[tier,leg]", KeyKind::Bitmap),
        key("old[old]", KeyKind::Any),
    ],
    args: &[
        string("expected"),
        string("epoch"),
        integer("place"),
        integer("is_last"),
        string("state"),
        integer("opens_ms"),
        integer("closes_ms"),
        integer("limit"),
        integer("legs"),
        string("old_tiers"),
        string("left_tiers"),
        string("tiers"),
        integer("tier_count"),
        integer("hold_count"),
        integer("bought_count"),
        integer("rows[tier]"),
        integer("row_bytes[tier]"),
        integer("leg_count[tier]"),
        bitmap("taken[tier,leg]"),
        bitmap("sold[tier,leg]"),
        string("order[hold]"),
        string("record[hold]"),
        string("buyer[buyer]"),
        integer("tickets[buyer]"),
    ],
    replies: &[
        reply("staged", &[]),
        reply("loaded", &[]),
        reply("updated", &[]),
        reply("stale", &["epoch"]),
        reply("absent", &[]),
        reply("other_tiers", &[]),
    ],
};

// A bitmap is one argument and one value: 512 MB.
// Source: <https://redis.io/docs/latest/develop/data-types/strings/>
const _: () = assert!(MAX_BITMAP_BYTES <= 512 * 1024 * 1024);
// A tier is never divided, so the bitmaps of what is taken and of what is sold may be one request, with
// room for holds and buyers: 1 GB, `client-query-buffer-limit`.
// Source: <https://redis.io/docs/latest/develop/reference/clients/#query-buffer-hard-limit>
const _: () = assert!(2 * MAX_BITMAP_BYTES <= 1024 * 1024 * 1024 / 2);
// The script unpacks all keys of before, or all holds, at once: Lua's stack holds 8000 values.
// Source: LUAI_MAXCSTACK in luaconf.h of Lua 5.1, <https://www.lua.org/source/5.1/luaconf.h.html>
const _: () = assert!(MAX_REQUEST_ARGUMENTS < 8000);

pub(super) fn script() -> Script {
    script!(CONTRACT, refused_when_full: "include/names.lua" "load.lua")
}

/// Lists tiers as `tier:legs` joined by `;`: from this a later load knows which keys to remove.
fn tiers_to_text<'t>(tiers: impl Iterator<Item = (&'t TierId, usize)>) -> String {
    let texts: Vec<String> = tiers.map(|(tier, legs)| format!("{tier}:{legs}")).collect();
    texts.join(";")
}

/// Reads what [`tiers_to_text`] wrote.
fn tiers_from_text(text: &str) -> Stored<Vec<(TierId, u16)>> {
    let tier = |text: &str| {
        let (tier, legs) = text.split_once(':')?;
        Some((TierId::new(tier).ok()?, legs.parse().ok()?))
    };
    let malformed = || broken(format!("not a list of tiers: {text:?}"));
    let tiers = text.split(';').filter(|tier| !tier.is_empty());
    tiers.map(|text| tier(text).ok_or_else(malformed)).collect()
}

/// Refuses a call that names one tier twice: it would pass every check of a script.
pub(super) fn refuse_repeated_tiers<'t>(tiers: impl Iterator<Item = &'t TierId>) -> Stored<()> {
    let mut seen: Vec<&TierId> = Vec::new();
    for tier in tiers {
        if seen.contains(&tier) {
            return Err(broken(format!("two lines of tier {tier}")));
        }
        seen.push(tier);
    }
    Ok(())
}

/// The tiers of before, and how many of them have their keys removed by a part: as many as fit.
struct OldTiers {
    tiers: Vec<(TierId, u16)>,
    removed: usize,
}

impl OldTiers {
    fn of_part(load: &Load, old_tiers: &str) -> Stored<Self> {
        let groups = load.tiers.iter().map(|grid| PartLimit::tier_arguments(grid.taken.len()));
        let given = groups.sum::<usize>() + 2 * (load.holds.len() + load.bought.len());
        let mut room = MAX_REQUEST_ARGUMENTS.saturating_sub(PLAIN_LOAD_ARGUMENTS + given);
        let tiers = tiers_from_text(old_tiers)?;
        let fits = |(_, legs): &&(TierId, u16)| {
            let keys = 2 + 2 * usize::from(*legs);
            let has_room = keys <= room;
            room = room.saturating_sub(keys);
            has_room
        };
        let removed = tiers.iter().take_while(fits).count();
        Ok(Self { tiers, removed })
    }

    fn left(&self) -> String {
        let left = self.tiers.iter().skip(self.removed);
        tiers_to_text(left.map(|(tier, legs)| (tier, usize::from(*legs))))
    }
}

/// `old_tiers` is the field `tiers` of what the first part of a load removes, as it was read a moment
/// ago; empty if there is none, and for every other part.
///
/// # Errors
/// [`Contract`](engine::ports::StoreError::Contract) if a tier is listed twice, if its bitmaps have
/// no shape, or if `old_tiers` is no list of tiers.
pub(super) fn encode<'s>(script: &'s Script, part: &LoadPart, old_tiers: &str) -> Stored<Call<'s>> {
    let LoadPart { place, is_last, load: command } = part;
    let keys = InventoryKeys(&command.inventory);
    let terms = &command.terms;
    let old = OldTiers::of_part(command, old_tiers)?;
    let tiers = command.tiers.iter().map(|grid| (&grid.tier, grid.taken.len()));
    let mut call = Call::new(script)
        .key("sale", keys.sale())
        .key("due", keys.due())
        .key("scratch", keys.scratch())
        .key("loading", keys.loading())
        .key("loading_due", keys.loading_due())
        .arg("expected", command.expected.as_ref().map_or("", Epoch::as_str))
        .arg("epoch", command.epoch.as_str())
        .arg("place", *place)
        .arg("is_last", u8::from(*is_last))
        .arg("state", terms.state.as_str())
        .arg("opens_ms", terms.opens_at.ms())
        .arg("closes_ms", terms.closes_at.ms())
        .arg("limit", terms.limit.get())
        .arg("legs", terms.leg_count)
        .arg("old_tiers", old_tiers)
        .arg("left_tiers", old.left())
        .arg("tiers", tiers_to_text(tiers))
        .arg("tier_count", command.tiers.len())
        .arg("hold_count", command.holds.len())
        .arg("bought_count", command.bought.len());
    refuse_repeated_tiers(command.tiers.iter().map(|grid| &grid.tier))?;
    for grid in &command.tiers {
        add_grid(&mut call, keys, grid)?;
    }
    for (tier, legs) in old.tiers.iter().take(old.removed) {
        call.add_key("old[old]", keys.tier(tier));
        call.add_key("old[old]", keys.freed(tier));
        for leg in Leg::first(*legs) {
            call.add_key("old[old]", keys.taken(tier, leg));
            call.add_key("old[old]", keys.sold(tier, leg));
        }
    }
    for (order, record) in &command.holds {
        call.add_arg("order[hold]", order.to_string());
        call.add_arg("record[hold]", hold_record::to_text(record));
    }
    for (user, tickets) in &command.bought {
        call.add_arg("buyer[buyer]", buyer(user));
        call.add_arg("tickets[buyer]", tickets.get());
    }
    Ok(call)
}

fn add_grid(call: &mut Call<'_>, keys: InventoryKeys<'_>, grid: &TierGrid) -> Stored<()> {
    let bytes = grid.taken.first().map_or(0, Vec::len);
    let row_bytes = usize::try_from(grid.row_bytes).map_err(broken)?;
    let rows = bytes.checked_div(row_bytes);
    let (Some(rows), true) = (rows, grid.taken.len() == grid.sold.len()) else {
        return Err(broken(format!("tier {} has no shape", grid.tier)));
    };
    call.add_key("tier[tier]", keys.tier(&grid.tier));
    call.add_key("freed[tier]", keys.freed(&grid.tier));
    call.add_arg("rows[tier]", rows);
    call.add_arg("row_bytes[tier]", grid.row_bytes);
    call.add_arg("leg_count[tier]", grid.taken.len());
    for (leg, (taken, sold)) in (0..).map(Leg).zip(grid.taken.iter().zip(&grid.sold)) {
        call.add_key("taken[tier,leg]", keys.taken(&grid.tier, leg));
        call.add_key("sold[tier,leg]", keys.sold(&grid.tier, leg));
        call.add_arg("taken[tier,leg]", taken.as_slice());
        call.add_arg("sold[tier,leg]", sold.as_slice());
    }
    Ok(())
}

/// `None` if other tiers are in the way than the call was made for, or more than fitted it: read them
/// again.
pub(super) fn decode(reply: &Reply) -> Stored<Option<LoadReply>> {
    match reply.tag() {
        "staged" => Ok(Some(LoadReply::Staged)),
        "loaded" => Ok(Some(LoadReply::Loaded)),
        "updated" => Ok(Some(LoadReply::Updated)),
        "stale" => Ok(Some(LoadReply::Stale(Some(reply.value(0)?)))),
        "absent" => Ok(Some(LoadReply::Stale(None))),
        "other_tiers" => Ok(None),
        _ => Err(reply.unexpected()),
    }
}
