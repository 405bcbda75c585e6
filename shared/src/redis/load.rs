//! `lua/load.lua`: starts a sale, starts it again after Redis lost it, or replaces its terms.

use super::broken;
use super::call::{Call, Reply};
use super::contract::{Contract, DUE, KeyKind, SALE, SCRATCH, bitmap, integer, key, reply, string};
use super::hold_record;
use super::keys::{SaleKeys, buyer};
use super::script::{Script, script};
use engine::domain::ids::{Epoch, Leg, TierId};
use engine::domain::inventory::{Load, LoadReply, TierGrid};
use engine::domain::sale::{MAX_BITMAP_BYTES, SaleState};
use engine::ports::Stored;

/// The keys, arguments and replies of `lua/load.lua`.
pub(super) const CONTRACT: Contract = Contract {
    script: "load",
    keys: &[
        SALE,
        DUE,
        SCRATCH,
        key("tier[tier]", KeyKind::Hash),
        key("taken[tier,leg]", KeyKind::Bitmap),
        key("sold[tier,leg]", KeyKind::Bitmap),
        key("old[old]", KeyKind::Any),
    ],
    args: &[
        string("expected"),
        string("epoch"),
        string("state"),
        integer("opens_ms"),
        integer("closes_ms"),
        integer("limit"),
        integer("legs"),
        string("old_tiers"),
        string("tiers"),
        integer("tier_count"),
        integer("hold_count"),
        integer("bought_count"),
        integer("rows[tier]"),
        integer("row_bytes[tier]"),
        integer("leg_count[tier]"),
        integer("freed[tier]"),
        bitmap("taken[tier,leg]"),
        bitmap("sold[tier,leg]"),
        string("order[hold]"),
        string("record[hold]"),
        string("buyer[buyer]"),
        integer("tickets[buyer]"),
    ],
    replies: &[
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
// The bitmaps of what is taken and of what is sold are one request, with room for holds and buyers:
// 1 GB, `client-query-buffer-limit`.
// Source: <https://redis.io/docs/latest/develop/reference/clients/#query-buffer-hard-limit>
const _: () = assert!(2 * MAX_BITMAP_BYTES <= 1024 * 1024 * 1024 / 2);

pub(super) fn script() -> Script {
    script!(CONTRACT, refused_when_full: "include/names.lua" "load.lua")
}

/// The value of the field `state`.
pub(super) fn state_text(state: SaleState) -> &'static str {
    match state {
        SaleState::Open => "open",
        SaleState::Paused => "paused",
    }
}

/// Reads what [`state_text`] wrote.
pub(super) fn state_from_text(text: &str) -> Option<SaleState> {
    [SaleState::Open, SaleState::Paused].into_iter().find(|state| state_text(*state) == text)
}

/// Lists tiers as `tier:legs` joined by `;`: from this a later load knows which keys to remove.
fn tiers_to_text(tiers: &[TierGrid]) -> String {
    let texts: Vec<String> =
        tiers.iter().map(|grid| format!("{}:{}", grid.tier, grid.taken.len())).collect();
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

/// `old_tiers` is the field `tiers` of the sale as it was read a moment ago; empty if there is none.
///
/// # Errors
/// [`Contract`](engine::ports::StoreError::Contract) if a tier is listed twice, if its bitmaps have
/// no shape, or if `old_tiers` is no list of tiers.
pub(super) fn encode<'s>(script: &'s Script, command: &Load, old_tiers: &str) -> Stored<Call<'s>> {
    let keys = SaleKeys(&command.sale);
    let terms = &command.terms;
    let mut call = Call::new(script)
        .key("sale", keys.sale())
        .key("due", keys.due())
        .key("scratch", keys.scratch())
        .arg("expected", command.expected.as_ref().map_or("", Epoch::as_str))
        .arg("epoch", command.epoch.as_str())
        .arg("state", state_text(terms.state))
        .arg("opens_ms", terms.opens_at.ms())
        .arg("closes_ms", terms.closes_at.ms())
        .arg("limit", terms.limit.get())
        .arg("legs", terms.leg_count)
        .arg("old_tiers", old_tiers)
        .arg("tiers", tiers_to_text(&command.tiers))
        .arg("tier_count", command.tiers.len())
        .arg("hold_count", command.holds.len())
        .arg("bought_count", command.bought.len());
    refuse_repeated_tiers(command.tiers.iter().map(|grid| &grid.tier))?;
    for grid in &command.tiers {
        add_grid(&mut call, keys, grid)?;
    }
    for (tier, legs) in tiers_from_text(old_tiers)? {
        call.add_key("old[old]", keys.tier(&tier));
        for leg in Leg::first(legs) {
            call.add_key("old[old]", keys.taken(&tier, leg));
            call.add_key("old[old]", keys.sold(&tier, leg));
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

fn add_grid(call: &mut Call<'_>, keys: SaleKeys<'_>, grid: &TierGrid) -> Stored<()> {
    let bytes = grid.taken.first().map_or(0, Vec::len);
    let row_bytes = usize::try_from(grid.row_bytes).map_err(broken)?;
    let rows = bytes.checked_div(row_bytes);
    let (Some(rows), true) = (rows, grid.taken.len() == grid.sold.len()) else {
        return Err(broken(format!("tier {} has no shape", grid.tier)));
    };
    call.add_key("tier[tier]", keys.tier(&grid.tier));
    call.add_arg("rows[tier]", rows);
    call.add_arg("row_bytes[tier]", grid.row_bytes);
    call.add_arg("leg_count[tier]", grid.taken.len());
    call.add_arg("freed[tier]", grid.freed);
    for (leg, (taken, sold)) in (0..).map(Leg).zip(grid.taken.iter().zip(&grid.sold)) {
        call.add_key("taken[tier,leg]", keys.taken(&grid.tier, leg));
        call.add_key("sold[tier,leg]", keys.sold(&grid.tier, leg));
        call.add_arg("taken[tier,leg]", taken.as_slice());
        call.add_arg("sold[tier,leg]", sold.as_slice());
    }
    Ok(())
}

/// `None` if other tiers are loaded than the call was made for: read them again.
pub(super) fn decode(reply: &Reply) -> Stored<Option<LoadReply>> {
    match reply.tag() {
        "loaded" => Ok(Some(LoadReply::Loaded)),
        "updated" => Ok(Some(LoadReply::Updated)),
        "stale" => Ok(Some(LoadReply::Stale(Some(reply.value(0)?)))),
        "absent" => Ok(Some(LoadReply::Stale(None))),
        "other_tiers" => Ok(None),
        _ => Err(reply.unexpected()),
    }
}
