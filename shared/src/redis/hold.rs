//! `lua/hold.lua`: holds seats for every line of an order, or for none.

use std::fmt::Write as _;

use super::broken;
use super::call::{Call, Reply};
use super::hold_record::{self, seats_from_text, seats_to_text};
use super::keys::InventoryKeys;
use super::load::refuse_repeated_tiers;
use super::script::{Script, script};
use engine::domain::basics::ids::Legs;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{Hold, HoldReply};
use engine::domain::sale::MAX_LEGS;
use engine::ports::Stored;

// The script unpacks a byte of each leg of a line at once: Lua's stack holds 8000 values.
// Source: LUAI_MAXCSTACK in luaconf.h of Lua 5.1, <https://www.lua.org/source/5.1/luaconf.h.html>
const _: () = assert!(MAX_LEGS + 1 < 8000);

pub(super) fn script() -> Script {
    script!(refused_when_full:
        "include/names.lua" "include/record.lua" "include/runs.lua" "include/search.lua"
        "hold.lua")
}

/// A choice of seats in the words of the script.
struct ChoiceArgs {
    /// `seats`, `best` or `pattern`.
    way: &'static str,
    /// The field of the tier's hash under which the script remembers where such a search of this
    /// journey left off; empty for chosen seats.
    search: String,
    /// The seats, how they lie together, or the pattern.
    detail: String,
}

fn encode_choice(choice: &Choice, legs: Legs) -> ChoiceArgs {
    let journey = format!("{}:{}", legs.from(), legs.to());
    match choice {
        Choice::Seats(seats) => {
            ChoiceArgs { way: "seats", search: String::new(), detail: seats_to_text(seats) }
        }
        Choice::Best { count, together } => {
            let detail = match together {
                Together::Required => "required",
                Together::Preferred => "preferred",
            };
            let search = format!("{count}:{journey}");
            ChoiceArgs { way: "best", search, detail: detail.to_owned() }
        }
        Choice::Pattern { column, offsets } => {
            let mut detail = column.to_string();
            for offset in offsets {
                // Writing to a String cannot fail.
                let _ = write!(detail, ",{}:{}", offset.row, offset.column);
            }
            // How far it reaches says which rows a freed seat concerns.
            let reach = offsets.iter().map(|offset| offset.row).max().unwrap_or(0);
            ChoiceArgs { way: "pattern", search: format!("p{reach}:{detail}:{journey}"), detail }
        }
    }
}

/// # Errors
/// [`Contract`](engine::ports::StoreError::Contract) if two lines have the same tier.
pub(super) fn encode<'s>(script: &'s Script, command: &Hold) -> Stored<Call<'s>> {
    let keys = InventoryKeys(&command.inventory);
    let mut call = Call::new(script)
        .key("sale", keys.sale())
        .key("due", keys.due())
        .arg("epoch", command.epoch.as_str())
        .arg("order", command.order.to_string())
        .arg("user", command.user.as_str())
        .arg("content", command.fingerprint.as_str())
        .arg("now_ms", command.now.ms())
        .arg("deadline_ms", command.deadline.ms())
        .arg("replaced", command.replaced.get());
    refuse_repeated_tiers(command.lines.iter().map(|line| &line.tier))?;
    for line in &command.lines {
        call.add_key("tier[line]", keys.tier(&line.tier));
        call.add_key("taken[line]", keys.taken(&line.tier));
        call.add_key("middles[line]", keys.middles(&line.tier));
        let ChoiceArgs { way, search, detail } = encode_choice(&line.choice, line.legs);
        call.add_arg("tier[line]", line.tier.as_str());
        call.add_arg("from[line]", line.legs.from());
        call.add_arg("to[line]", line.legs.to());
        call.add_arg("choice[line]", way);
        call.add_arg("count[line]", line.choice.count());
        call.add_arg("search[line]", search);
        call.add_arg("detail[line]", detail);
    }
    Ok(call)
}

pub(super) fn decode(reply: &Reply) -> Stored<HoldReply> {
    match reply.tag() {
        "held" => Ok(HoldReply::Held {
            record: hold_record::from_text(reply.text(0)?).map_err(broken)?,
            allowance: reply.value(1)?,
        }),
        "not_loaded" => Ok(HoldReply::NotLoaded),
        "content_differs" => Ok(HoldReply::ContentDiffers),
        "hold_expired" => Ok(HoldReply::HoldExpired),
        "sale_closed" => Ok(HoldReply::SaleClosed),
        "limit_reached" => Ok(HoldReply::LimitReached { remaining: reply.value(0)? }),
        "seat_taken" => {
            let seats = seats_from_text(reply.text(1)?).ok_or_else(|| reply.unexpected())?;
            Ok(HoldReply::SeatTaken(reply.value(0)?, seats))
        }
        "sold_out" => Ok(HoldReply::SoldOut(reply.value(0)?)),
        "no_adjacent" => Ok(HoldReply::NoAdjacent(reply.value(0)?)),
        _ => Err(reply.unexpected()),
    }
}
