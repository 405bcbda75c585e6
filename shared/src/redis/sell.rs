//! `lua/sell.lua`: marks the seats of an order sold.

use super::call::{Call, Reply};
use super::hold_record;
use super::keys::InventoryKeys;
use super::repair::counters_to_text;
use super::script::{Script, script};
use engine::domain::inventory::{Sell, SellReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full:
        "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
        "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
        "include/blocks.lua" "include/counters.lua" "sell.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Sell) -> Call<'s> {
    let call = Call::over_freed_lines(script, InventoryKeys(&command.inventory), &command.lines)
        .arg("epoch", command.epoch.as_str())
        .arg("order", command.order.to_string())
        .arg("user", command.user.as_str())
        .arg("lines", hold_record::lines_to_text(&command.lines));
    let freed = command.freed.iter().flatten();
    freed.fold(call, |call, freed| call.arg("freed[line]", counters_to_text(freed)))
}

pub(super) fn decode(reply: &Reply) -> Stored<SellReply> {
    match reply.tag() {
        "sold" => Ok(SellReply::Sold),
        "not_held" => Ok(SellReply::NotHeld),
        "changed" => Ok(SellReply::Conflict),
        "not_loaded" => Ok(SellReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
