//! `lua/release.lua`: frees a hold, if it is still the one that the caller has read.

use super::call::{Call, Reply};
use super::hold_record;
use super::keys::InventoryKeys;
use super::script::{Script, script};
use engine::domain::inventory::{Release, ReleaseReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full:
        "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
        "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
        "include/blocks.lua" "include/freed.lua" "include/give_back.lua" "release.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Release) -> Call<'s> {
    Call::over_freed_lines(script, InventoryKeys(&command.inventory), &command.record.lines)
        .arg("order", command.order.to_string())
        .arg("record", hold_record::to_text(&command.record))
}

pub(super) fn decode(reply: &Reply) -> Stored<ReleaseReply> {
    match reply.tag() {
        "released" => Ok(ReleaseReply::Released),
        "not_held" => Ok(ReleaseReply::NotHeld),
        "changed" => Ok(ReleaseReply::Conflict),
        _ => Err(reply.unexpected()),
    }
}
