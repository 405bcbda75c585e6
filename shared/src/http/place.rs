//! The body of a request to join a waiting room, and its reply.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::challenges::ChallengeAnswer;
use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use engine::domain::admission::room::code::Code;
use engine::domain::admission::room::join::JoinWindow;
use engine::domain::basics::bytes::Nonce;
use engine::domain::basics::ids::GroupId;
use engine::flows::room::join::{Joined, Standing};

/// Time after which to ask again whose membership is not certain, in milliseconds: a draw is rarely longer in
/// the buckets.
const UNDECIDED_RETRY_MS: u32 = 3_000;

/// Body of a request to join.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct PlaceBody {
    /// The group; `all` unless the room names others. Who is a member already stays in its own.
    #[serde(default = "GroupId::all")]
    pub group: GroupId,
    /// Whether the buyer asks for a visit three times as long. Nobody is asked why.
    #[serde(default)]
    pub more_time: bool,
    /// The code, for a group that is joined with one. Who is a member already needs none.
    #[serde(default)]
    pub code: Option<Code>,
    /// The answer to the challenge that a request without one was refused with.
    #[serde(default)]
    pub challenge: Option<ChallengeAnswer>,
}

impl PlaceBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Self, Refusal> {
        json_body(request, MAX_BODY_BYTES)
    }
}

/// A buyer's membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceReply {
    /// The token, of use together with the buyer's own bearer token only.
    pub place_token: String,
    /// The group.
    pub group: GroupId,
    /// The window that the index is drawn in.
    pub window: JoinWindow,
    /// The index in the group.
    pub index: u32,
    /// The nonce of the leaf, in hexadecimal digits: with it the buyer finds the own leaf.
    pub nonce: Nonce,
    /// Whether the membership takes part in the draw of its window for certain.
    pub standing: Standing,
    /// The place, if its window is drawn: whoever joined later learns it by sending the request again once the room
    /// document says that its window has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Milliseconds after which to send the request again, if that is not certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u32>,
}

impl PlaceReply {
    /// The reply to who has joined.
    #[must_use]
    pub fn new(joined: Joined, place: Option<u32>, place_token: String) -> Self {
        let Joined { membership, standing } = joined;
        let retry_ms = match standing {
            Standing::Certain => None,
            Standing::Undecided => Some(UNDECIDED_RETRY_MS),
        };
        Self {
            place_token,
            group: membership.group,
            window: membership.index.window,
            index: membership.index.number,
            nonce: membership.nonce,
            standing,
            place,
            retry_ms,
        }
    }
}
