//! `lua/sell.lua`: marks the seats of an order sold, also if its hold was forgotten.

use super::call::{Call, Reply};
use super::contract::{Contract, KEYS_OF_HELD_LINES, reply, string};
use super::hold_record;
use super::keys::InventoryKeys;
use super::script::{Script, script};
use engine::domain::inventory::{Sell, SellReply};
use engine::ports::Stored;

/// The keys, arguments and replies of `lua/sell.lua`.
pub(super) const CONTRACT: Contract = Contract {
    script: "sell",
    keys: &KEYS_OF_HELD_LINES,
    args: &[string("epoch"), string("order"), string("user"), string("lines")],
    replies: &[reply("sold", &[]), reply("not_loaded", &[])],
};

pub(super) fn script() -> Script {
    script!(CONTRACT, runs_when_full:
        "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
        "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua" "sell.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Sell) -> Call<'s> {
    Call::over_held_lines(script, InventoryKeys(&command.inventory), &command.lines)
        .arg("epoch", command.epoch.as_str())
        .arg("order", command.order.to_string())
        .arg("user", command.user.as_str())
        .arg("lines", hold_record::lines_to_text(&command.lines))
}

pub(super) fn decode(reply: &Reply) -> Stored<SellReply> {
    match reply.tag() {
        "sold" => Ok(SellReply::Sold),
        "not_loaded" => Ok(SellReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
