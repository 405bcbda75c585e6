//! `lua/recount.lua`: corrects the number of tickets that a buyer has.

use super::call::{Call, Reply};
use super::keys::InventoryKeys;
use super::repair::counters_to_text;
use super::script::{Script, script};
use engine::domain::inventory::{Recount, RecountReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full:
        "include/names.lua" "include/lines.lua" "include/grid.lua" "include/bought.lua"
        "include/blocks.lua" "include/counters.lua" "include/freed.lua" "recount.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Recount) -> Call<'s> {
    let keys = InventoryKeys(&command.inventory);
    let mut call = Call::new(script)
        .key("sale", keys.sale())
        .arg("epoch", command.epoch.as_str())
        .arg("user", command.user.as_str())
        .arg("seen", command.seen.to_string())
        .arg("tickets", command.tickets.to_string());
    for (line, freed) in command.lines.iter().zip(&command.freed) {
        let seats: Vec<String> = line.seats.iter().map(|seat| seat.0.to_string()).collect();
        call.add_key("tier[line]", keys.tier(&line.tier));
        call.add_key("freed[line]", keys.freed(&line.tier));
        call.add_arg("seats[line]", seats.join("."));
        call.add_arg("freed[line]", counters_to_text(freed));
    }
    call
}

pub(super) fn decode(reply: &Reply) -> Stored<RecountReply> {
    match reply.tag() {
        "counted" => Ok(RecountReply::Counted),
        "changed" => Ok(RecountReply::Conflict),
        "not_loaded" => Ok(RecountReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
