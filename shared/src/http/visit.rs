//! The body of a request to begin a visit, and its reply.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::admission::PlaceClaim;
use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use engine::domain::basics::time::Timestamp;

/// Body of a request to begin the visit of a place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with place")]
pub struct VisitBody {
    /// The place in the waiting room.
    pub place: PlaceClaim,
}

impl VisitBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Self, Refusal> {
        json_body(request, MAX_BODY_BYTES)
    }
}

/// A visit that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VisitReply {
    /// The end of the visit, until which the gate admits the buyer. A pause of the room puts it off.
    pub ends_at: Timestamp,
}
