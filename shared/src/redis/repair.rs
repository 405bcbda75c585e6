//! `lua/repair.lua`: frees seat-legs of one tier that are taken though nobody holds or claims them.

use std::collections::BTreeMap;

use super::call::{Call, Reply};
use super::hold_record::seats_to_text;
use super::keys::InventoryKeys;
use super::script::{Script, script};
use engine::domain::basics::ids::{Leg, Seat};
use engine::domain::inventory::{Repair, RepairReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full:
        "include/names.lua" "include/lines.lua" "include/runs.lua" "include/bits.lua"
        "include/grid.lua" "include/blocks.lua" "include/counters.lua" "include/freed.lua" "repair.lua")
}

/// Counters as `1.0.7`: what the scripts compare with those that they read.
pub(super) fn counters_to_text(counters: &[u32]) -> String {
    let texts: Vec<String> = counters.iter().map(u32::to_string).collect();
    texts.join(".")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Repair) -> Call<'s> {
    let (keys, tier) = (InventoryKeys(&command.inventory), &command.tier);
    let mut by_leg: BTreeMap<Leg, Vec<Seat>> = BTreeMap::new();
    for (leg, seat) in &command.leaked {
        by_leg.entry(*leg).or_default().push(*seat);
    }
    let mut call = Call::new(script)
        .key("sale", keys.sale())
        .key("tier", keys.tier(tier))
        .key("freed", keys.freed(tier))
        .key("taken", keys.taken(tier))
        .key("sold", keys.sold(tier))
        .arg("epoch", command.epoch.as_str())
        .arg("freed", counters_to_text(&command.freed));
    for (leg, mut seats) in by_leg {
        seats.sort_unstable();
        seats.dedup();
        call.add_arg("leg[leg]", leg.0);
        call.add_arg("seats[leg]", seats_to_text(&seats));
    }
    call
}

pub(super) fn decode(reply: &Reply) -> Stored<RepairReply> {
    match reply.tag() {
        "repaired" => Ok(RepairReply::Repaired),
        "changed" => Ok(RepairReply::Conflict),
        "not_loaded" => Ok(RepairReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
