//! The body of a request for an admission, and its reply.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::challenges::ChallengeAnswer;
use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body, within};
use engine::domain::basics::ids::GroupId;
use engine::domain::basics::limits::MAX_SEATS_PER_ORDER;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;

/// Body of a request for an admission.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with tickets")]
pub struct AdmissionBody {
    /// For how many tickets at most: no more than the sale's limit.
    #[schemars(range(min = 1, max = MAX_SEATS_PER_ORDER))]
    tickets: u16,
    /// The answer to the challenge that a request without one was refused with.
    #[serde(default)]
    challenge: Option<ChallengeAnswer>,
    /// The place in the waiting room, if the sale has one.
    #[serde(default)]
    place: Option<PlaceClaim>,
}

/// A place that is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with place and token")]
pub struct PlaceClaim {
    /// The group; `all` unless the room names others.
    #[serde(default = "GroupId::all")]
    pub group: GroupId,
    /// The place, as the client computes it from its index.
    pub place: u32,
    /// The place token that joining gave.
    pub token: String,
}

impl AdmissionBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Self, Refusal> {
        json_body(request, MAX_BODY_BYTES)
    }

    /// The answer to a challenge, if it has one.
    #[must_use]
    pub fn challenge(&self) -> Option<&ChallengeAnswer> {
        self.challenge.as_ref()
    }

    /// The place that is claimed, if one is.
    #[must_use]
    pub fn place(&self) -> Option<&PlaceClaim> {
        self.place.as_ref()
    }

    /// For how many tickets: no more than an order of this sale could ever have.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`].
    pub fn tickets(&self, sale: &Sale) -> Result<u16, Refusal> {
        within("tickets", self.tickets, 1..=sale.max_tickets_per_order())?;
        Ok(self.tickets)
    }
}

/// An admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdmissionReply {
    /// The token; the bearer may make one order with it.
    pub token: String,
    /// The number of that order.
    pub order: OrderNumber,
    /// End of its validity.
    pub expires_at: Timestamp,
    /// Most tickets of the order.
    pub tickets: u16,
}
