//! `lua/restore.lua`: writes the hold of a pending order that Redis has forgotten.

use super::call::{Call, Reply};
use super::hold_record;
use super::keys::InventoryKeys;
use super::repair::counters_to_text;
use super::script::{Script, script};
use engine::domain::inventory::{Restore, RestoreReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(refused_when_full:
        "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
        "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
        "include/blocks.lua" "include/counters.lua" "restore.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Restore) -> Call<'s> {
    let mut call =
        Call::over_freed_lines(script, InventoryKeys(&command.inventory), &command.record.lines)
            .arg("epoch", command.epoch.as_str())
            .arg("order", command.order.to_string())
            .arg("record", hold_record::to_text(&command.record))
            .arg("sold", command.sold.as_str());
    for freed in &command.freed {
        call.add_arg("freed[line]", counters_to_text(freed));
    }
    call
}

pub(super) fn decode(reply: &Reply) -> Stored<RestoreReply> {
    match reply.tag() {
        "restored" => Ok(RestoreReply::Restored),
        "changed" => Ok(RestoreReply::Conflict),
        "not_loaded" => Ok(RestoreReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
