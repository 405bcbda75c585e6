//! The body of `POST /operator/sales/{sale}/commands`: what an operator says of a sale while it sells.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use engine::domain::sale::SaleState;
use engine::domain::sale::event::Text;
use engine::flows::standing::Standing;

/// What is said anew of a sale: at least one of the three.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a command, which is an object")]
pub struct StandingBody {
    /// Whether it takes new reservations.
    #[serde(default)]
    pub state: Option<Selling>,
    /// Whether nothing is left, so that no gate admits anybody any more.
    #[serde(default)]
    pub sold_out: Option<bool>,
    /// What everybody reads who looks at the sale; `null` takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Text>")]
    pub notice: Option<Option<Text>>,
}

/// Whether a sale takes new reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selling {
    /// It does.
    Open,
    /// It does not; payments and cancellations go on.
    Paused,
}

/// A field that is there, and may be `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Text>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl StandingBody {
    /// Reads a request.
    ///
    /// # Errors
    /// Returns the first check that the request does not pass.
    pub fn read(request: &Request) -> Result<Standing, Refusal> {
        let Self { state, sold_out, notice } = json_body(request, MAX_BODY_BYTES)?;
        if state.is_none() && sold_out.is_none() && notice.is_none() {
            return Err(Refusal::invalid("state", "must be given, or sold_out, or notice"));
        }
        let state = state.map(|state| match state {
            Selling::Open => SaleState::Open,
            Selling::Paused => SaleState::Paused,
        });
        Ok(Standing { state, sold_out, notice })
    }
}
