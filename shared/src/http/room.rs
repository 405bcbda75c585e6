//! What an operator does to a waiting room, and what is shown of it beside the room document.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use engine::domain::admission::room::memory::EndedWindow;
use engine::domain::admission::room::serving::{Command, MAX_NAME_BYTES, MAX_NOTICE_BYTES};
use engine::domain::basics::bytes::{Hash, Signature};
use engine::flows::room::bring::{Brought, Round};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CommandName {
    Pause,
    Resume,
    Close,
    Rate,
    Notice,
    SoldOut,
    BeaconGivenUp,
}

/// Body of an operator's command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a command")]
pub struct CommandBody {
    /// `pause`: nobody is served or admitted, and no visit runs out. `resume`: the end of a pause. `close`:
    /// nobody is served any more, for good. `beacon_given_up`: the draw waits for the beacon no longer, from an hour after
    /// its round on; nobody can verify it then. The others set what is called as they are.
    command: CommandName,
    /// Most places that are served a second; without it the operator sets no bound.
    #[serde(default)]
    rate: Option<u32>,
    /// What everybody who waits reads, without control characters; without it nothing.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_NOTICE_BYTES))]
    notice: Option<String>,
    /// Whether the sale is said to be sold out, whatever is left.
    #[serde(default)]
    sold_out: Option<bool>,
    /// Who gives the beacon up, for everybody to read, without control characters.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_NAME_BYTES))]
    by: Option<String>,
}

impl CommandBody {
    /// Reads a request's body. `fresh` is new randomness, for a beacon that is given up.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request, fresh: Hash) -> Result<Command, Refusal> {
        json_body::<Self>(request, MAX_BODY_BYTES)?.command(fresh)
    }

    fn command(self, fresh: Hash) -> Result<Command, Refusal> {
        let Self { command, rate, notice, sold_out, by } = self;
        let given = [
            ("rate", rate.is_some(), CommandName::Rate),
            ("notice", notice.is_some(), CommandName::Notice),
            ("sold_out", sold_out.is_some(), CommandName::SoldOut),
            ("by", by.is_some(), CommandName::BeaconGivenUp),
        ];
        let strange = given.into_iter().find(|(_, is_given, of)| *is_given && *of != command);
        if let Some((at, ..)) = strange {
            return Err(Refusal::invalid(at, "belongs to the command of its name"));
        }
        Ok(match command {
            CommandName::Pause => Command::Pause,
            CommandName::Resume => Command::Resume,
            CommandName::Close => Command::Close,
            CommandName::Rate => Command::Rate(rate),
            CommandName::Notice => Command::Notice(notice),
            CommandName::SoldOut => {
                let lacking = || Refusal::invalid("sold_out", "is needed");
                Command::SoldOut(sold_out.ok_or_else(lacking)?)
            }
            CommandName::BeaconGivenUp => {
                let by = by.ok_or_else(|| Refusal::invalid("by", "is needed"))?;
                Command::BeaconGivenUp { by, randomness: fresh }
            }
        })
    }
}

/// Body of a request that brings the beacon's round.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with round and signature")]
pub struct RoundBody {
    /// The number of the round.
    round: u64,
    /// Its signature, in hexadecimal digits.
    signature: Signature,
}

impl RoundBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Round, Refusal> {
        let Self { round, signature } = json_body::<Self>(request, MAX_BODY_BYTES)?;
        Ok(Round { number: round, signature })
    }
}

/// What became of a round that was brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BroughtReply {
    /// Whether a draw was decided by it now; false if those that awaited it were decided before.
    pub drawn: bool,
}

impl From<Brought> for BroughtReply {
    fn from(brought: Brought) -> Self {
        match brought {
            Brought::Drawn => Self { drawn: true },
            Brought::Before => Self { drawn: false },
        }
    }
}

/// The window that an index was drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WindowReply {
    /// The first index of the window.
    pub first: u32,
    /// One past its last index.
    pub end: u32,
    /// The seed of its draw.
    pub seed: Hash,
    /// The number of the record of the log by which it was drawn.
    pub record: u64,
}

impl From<EndedWindow> for WindowReply {
    fn from(window: EndedWindow) -> Self {
        let EndedWindow { first, end, seed, record } = window;
        Self { first, end, seed, record }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: Value) -> Result<Command, String> {
        let body: CommandBody = serde_json::from_value(body).map_err(|error| error.to_string())?;
        body.command(Hash([9; 32])).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_command_has_what_belongs_to_it() {
        let notice = || "Doors at seven".to_owned();
        let table = [
            (json!({ "command": "pause" }), Command::Pause),
            (json!({ "command": "resume" }), Command::Resume),
            (json!({ "command": "close" }), Command::Close),
            (json!({ "command": "rate", "rate": 5 }), Command::Rate(Some(5))),
            (json!({ "command": "rate", "rate": null }), Command::Rate(None)),
            (json!({ "command": "notice", "notice": notice() }), Command::Notice(Some(notice()))),
            (json!({ "command": "notice" }), Command::Notice(None)),
            (json!({ "command": "sold_out", "sold_out": false }), Command::SoldOut(false)),
            (
                json!({ "command": "beacon_given_up", "by": "Ann" }),
                Command::BeaconGivenUp { by: "Ann".to_owned(), randomness: Hash([9; 32]) },
            ),
        ];
        for (body, command) in table {
            assert_eq!(read(body), Ok(command));
        }
        for (body, at) in [
            (json!({}), "command"),
            (json!({ "command": "stop" }), "stop"),
            (json!({ "command": "pause", "rate": 1 }), "rate"),
            (json!({ "command": "rate", "sold_out": true }), "sold_out"),
            (json!({ "command": "sold_out", "notice": "x" }), "notice"),
            (json!({ "command": "sold_out" }), "sold_out"),
            (json!({ "command": "beacon_given_up" }), "by"),
            (json!({ "command": "rate", "rate": -1 }), "-1"),
            (json!({ "command": "pause", "by": "me" }), "by"),
        ] {
            let refused = read(body).unwrap_err();
            assert!(refused.contains(at), "{refused:?} does not name {at:?}");
        }
    }
}
