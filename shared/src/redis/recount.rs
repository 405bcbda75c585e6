//! `lua/recount.lua`: corrects how many tickets a buyer has.

use super::call::{Call, Reply};
use super::contract::{Contract, SALE, integer, reply, string};
use super::keys::InventoryKeys;
use super::script::{Script, script};
use engine::domain::inventory::{Recount, RecountReply};
use engine::ports::Stored;

/// The keys, arguments and replies of `lua/recount.lua`.
pub(super) const CONTRACT: Contract = Contract {
    script: "recount",
    keys: &[SALE],
    args: &[string("epoch"), string("user"), integer("seen"), integer("tickets")],
    replies: &[reply("counted", &[]), reply("changed", &[]), reply("not_loaded", &[])],
};

pub(super) fn script() -> Script {
    script!(CONTRACT, runs_when_full: "include/names.lua" "include/bought.lua" "recount.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Recount) -> Call<'s> {
    Call::new(script)
        .key("sale", InventoryKeys(&command.inventory).sale())
        .arg("epoch", command.epoch.as_str())
        .arg("user", command.user.as_str())
        .arg("seen", command.seen.to_string())
        .arg("tickets", command.tickets.to_string())
}

pub(super) fn decode(reply: &Reply) -> Stored<RecountReply> {
    match reply.tag() {
        "counted" => Ok(RecountReply::Counted),
        "changed" => Ok(RecountReply::Conflict),
        "not_loaded" => Ok(RecountReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
