//! `lua/load.lua`: starts a sale, starts it again after Redis lost it, or replaces its terms.

use super::broken;
use super::call::{Call, Reply};
use super::hold_record;
use super::keys::{InventoryKeys, buyer};
use super::leg_bytes;
use super::script::{Script, script};
use engine::domain::basics::ids::{Epoch, TierId};
use engine::domain::inventory::{LoadPart, LoadReply, TierGrid};
use engine::domain::sale::MAX_BITMAP_BYTES;
use engine::ports::{MAX_REQUEST_ARGUMENTS, Stored};

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
    script!(refused_when_full: "include/names.lua" "load.lua")
}

/// Lists tiers joined by `;`: from this a later load knows which keys to remove.
fn tiers_to_text<'t>(tiers: impl Iterator<Item = &'t TierId>) -> String {
    let texts: Vec<&str> = tiers.map(TierId::as_str).collect();
    texts.join(";")
}

/// Reads what [`tiers_to_text`] wrote. Releases that had a key for each leg wrote `tier:legs`; their bitmaps are left.
fn tiers_from_text(text: &str) -> Stored<Vec<TierId>> {
    let malformed = |_| broken(format!("not a list of tiers: {text:?}"));
    let tiers = text.split(';').filter(|tier| !tier.is_empty());
    let name = |text: &'_ str| text.split(':').next().unwrap_or_default().to_owned();
    tiers.map(|tier| TierId::new(name(tier)).map_err(malformed)).collect()
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
    let old = tiers_from_text(old_tiers)?;
    let tiers = command.tiers.iter().map(|grid| &grid.tier);
    let mut call = Call::new(script)
        .key("sale", keys.sale())
        .key("due", keys.due())
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
        .arg("tiers", tiers_to_text(tiers))
        .arg("tier_count", command.tiers.len())
        .arg("hold_count", command.holds.len())
        .arg("bought_count", command.bought.len());
    refuse_repeated_tiers(command.tiers.iter().map(|grid| &grid.tier))?;
    for grid in &command.tiers {
        add_grid(&mut call, keys, grid)?;
    }
    for key in old.iter().flat_map(|tier| keys.of_tier(tier)) {
        call.add_key("old[old]", key);
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
    let is_even = grid.taken.iter().chain(&grid.sold).all(|bitmap| bitmap.len() == bytes);
    let (Some(rows), true) = (rows, is_even && grid.taken.len() == grid.sold.len()) else {
        return Err(broken(format!("tier {} has no shape", grid.tier)));
    };
    call.add_key("tier[tier]", keys.tier(&grid.tier));
    call.add_key("freed[tier]", keys.freed(&grid.tier));
    call.add_arg("rows[tier]", rows);
    call.add_arg("row_bytes[tier]", grid.row_bytes);
    call.add_arg("leg_count[tier]", grid.taken.len());
    call.add_key("taken[tier]", keys.taken(&grid.tier));
    call.add_key("sold[tier]", keys.sold(&grid.tier));
    call.add_arg("taken[tier]", leg_bytes::beside(&grid.taken));
    call.add_arg("sold[tier]", leg_bytes::beside(&grid.sold));
    call.add_key("middles[tier]", keys.middles(&grid.tier));
    call.add_arg("middles[tier]", middles_to_bytes(&grid.middles));
    Ok(())
}

fn middles_to_bytes(middles: &[u16]) -> Vec<u8> {
    middles.iter().flat_map(|middle| middle.to_be_bytes()).collect()
}

/// Reads what [`middles_to_bytes`] wrote.
pub(super) fn middles_from_bytes(bytes: &[u8]) -> Vec<u16> {
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect()
}

/// `None` if other tiers are in the way than the call was made for: read them again.
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
