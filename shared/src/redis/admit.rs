//! `lua/admit.lua`: admits a buyer at one shard of a sale's gate, or returns the time after which to ask again.

use super::call::{Call, Reply};
use super::keys::GateKeys;
use super::script::{Script, script};
use engine::domain::admission::gate::{Admit, AdmitReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(refused_when_full: "include/names.lua" "admit.lua")
}

/// True if held tickets may still come back, as the script writes it.
fn holds_text(holds: bool) -> &'static str {
    if holds { "held" } else { "none" }
}

pub(super) fn encode<'s>(script: &'s Script, command: &Admit) -> Call<'s> {
    let keys = GateKeys { sale: &command.sale, shard: command.shard };
    let top_up = command.top_up;
    Call::new(script)
        .key("gate", keys.gate())
        .key("lock", keys.lock(&command.user))
        .arg("tickets", command.tickets)
        .arg("now_ms", command.now.ms())
        .arg("user_lock_ms", command.user_lock_ms)
        .arg("rate_per_second", command.rate_per_second)
        .arg("first_budget", command.first.budget)
        .arg("first_left", command.first.left)
        .arg("generation", top_up.map_or(String::new(), |new| new.generation.to_string()))
        .arg("budget", top_up.map_or(0, |new| new.share.budget))
        .arg("left", top_up.map_or(0, |new| new.share.left))
        .arg("dry_ms", top_up.map_or(0, |new| new.exhausted_ms))
        .arg("holds", holds_text(top_up.is_some_and(|new| new.holds)))
}

pub(super) fn decode(reply: &Reply) -> Stored<AdmitReply> {
    match reply.tag() {
        "admitted" => Ok(AdmitReply::Admitted),
        "dry" => {
            let holds = reply.text(1)? == holds_text(true);
            Ok(AdmitReply::Exhausted { retry_ms: reply.value(0)?, holds })
        }
        "locked" => Ok(AdmitReply::Locked { retry_ms: reply.value(0)? }),
        "too_fast" => Ok(AdmitReply::TooFast { retry_ms: reply.value(0)? }),
        "exhausted" => Ok(AdmitReply::BudgetUsedUp { generation: reply.value(0)? }),
        _ => Err(reply.unexpected()),
    }
}
