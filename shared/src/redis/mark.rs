//! `lua/mark.lua`: frees a hold after a claim conflict, but leaves the seat-legs taken that other orders own.

use super::call::{Call, Reply};
use super::hold_record;
use super::keys::InventoryKeys;
use super::script::{Script, script};
use engine::domain::inventory::{Mark, MarkReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full:
        "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
        "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
        "include/blocks.lua" "include/freed.lua" "include/give_back.lua" "mark.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Mark) -> Call<'s> {
    let lost: Vec<String> = command
        .taken
        .iter()
        .map(|lost| format!("{},{},{}", lost.tier, lost.leg, lost.seat.0))
        .collect();
    Call::over_freed_lines(script, InventoryKeys(&command.inventory), &command.record.lines)
        .arg("order", command.order.to_string())
        .arg("record", hold_record::to_text(&command.record))
        .arg("lost", lost.join(";"))
}

pub(super) fn decode(reply: &Reply) -> Stored<MarkReply> {
    match reply.tag() {
        "marked" => Ok(MarkReply::Marked),
        "not_held" => Ok(MarkReply::NotHeld),
        "changed" => Ok(MarkReply::Conflict),
        _ => Err(reply.unexpected()),
    }
}
