//! `lua/add_tokens.lua`: adds tokens to one shard of a sale's gate by hand, once for each id.

use super::call::{Call, Reply};
use super::keys::GateKeys;
use super::script::{Script, script};
use engine::domain::admission::gate::tokens::{AddTokens, AddTokensReply};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(refused_when_full: "include/names.lua" "add_tokens.lua")
}

pub(super) fn encode<'s>(script: &'s Script, command: &AddTokens) -> Call<'s> {
    let keys = GateKeys { sale: &command.sale, shard: command.shard };
    Call::new(script)
        .key("gate", keys.gate())
        .arg("id", command.id.as_str())
        .arg("tokens", command.tokens)
        .arg("total", command.total)
        .arg("max_additions", command.max_additions)
        .arg("first_budget", command.first.budget)
        .arg("first_left", command.first.left)
        .arg("now_ms", command.now.ms())
}

pub(super) fn decode(reply: &Reply) -> Stored<AddTokensReply> {
    match reply.tag() {
        "added" => Ok(AddTokensReply::Added),
        "known" => Ok(AddTokensReply::Known),
        "differs" => Ok(AddTokensReply::Differs { total: reply.value(0)? }),
        "too_many" => Ok(AddTokensReply::TooMany),
        _ => Err(reply.unexpected()),
    }
}
