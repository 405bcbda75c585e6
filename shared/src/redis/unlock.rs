//! `lua/unlock.lua`: releases the lock of a buyer's wallet, if the caller still owns it.

use super::call::{Call, Reply};
use super::script::{Script, script};
use engine::ports::Stored;

pub(super) fn script() -> Script {
    script!(runs_when_full: "include/names.lua" "unlock.lua")
}

pub(super) fn encode<'s>(script: &'s Script, lock: String, owner: &str) -> Call<'s> {
    Call::new(script).key("lock", lock).arg("owner", owner)
}

/// True if the lock was the owner's, and is free now.
pub(super) fn decode(reply: &Reply) -> Stored<bool> {
    match reply.tag() {
        "unlocked" => Ok(true),
        "not_owned" => Ok(false),
        _ => Err(reply.unexpected()),
    }
}
