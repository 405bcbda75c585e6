//! `lua/unsell.lua`: frees the seats of refunded tickets.

use super::call::{Call, Reply};
use super::hold_record;
use super::keys::InventoryKeys;
use super::repair::counters_to_text;
use super::script::{Script, script};
use engine::domain::inventory::{Unsell, UnsellReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full:
        "include/names.lua" "include/lines.lua" "include/runs.lua" "include/bits.lua"
        "include/grid.lua" "include/walk.lua" "include/bought.lua" "include/blocks.lua"
        "include/counters.lua" "include/freed.lua" "unsell.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &Unsell) -> Call<'s> {
    let mut call =
        Call::over_freed_lines(script, InventoryKeys(&command.inventory), &command.lines)
            .arg("epoch", command.epoch.as_str())
            .arg("user", command.user.as_str())
            .arg("lines", hold_record::lines_to_text(&command.lines));
    for freed in &command.freed {
        call.add_arg("freed[line]", counters_to_text(freed));
    }
    call
}

pub(super) fn decode(reply: &Reply) -> Stored<UnsellReply> {
    match reply.tag() {
        "unsold" => Ok(UnsellReply::Unsold),
        "not_sold" => Ok(UnsellReply::NotSold),
        "changed" => Ok(UnsellReply::Conflict),
        "not_loaded" => Ok(UnsellReply::NotLoaded),
        _ => Err(reply.unexpected()),
    }
}
