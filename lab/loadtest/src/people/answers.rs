//! Answers to challenges. Nobody solves one here, which would take more processors than a load test has: the
//! crowd is told the answer, and takes as long as whoever finds it.

use std::ops::Range;

use http::StatusCode;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::http::problem::Kind;

use super::Class;
use crate::client::{Call, Refused, Reply};
use crate::profile::Buyer;
use crate::session::LoadTest;

/// Time that a person takes to answer, in milliseconds.
const ANSWERING_MS: Range<u64> = 2_000..8_000;

/// What a refusal says of the challenge that it asks for.
#[derive(Debug, Deserialize)]
struct Required {
    challenge: Asked,
}

#[derive(Debug, Deserialize)]
struct Asked {
    token: String,
}

/// The token of the challenge that a reply asks for, if it asks for one.
fn required(reply: &Reply) -> Option<String> {
    let Reply::Problem(Refused { status: StatusCode::FORBIDDEN, kind, body, .. }) = reply else {
        return None;
    };
    let asks = *kind == Kind::ChallengeRequired.slug();
    let Required { challenge } = serde_json::from_slice(asks.then_some(body)?).ok()?;
    Some(challenge.token)
}

impl LoadTest {
    /// The same request with the answer to the challenge that a reply asks for, when its buyer has found it; `None`
    /// if it asks for none, or if the buyer has no answer: scripts and farms were not made for challenges, and a
    /// crowd may not have been told.
    pub(crate) async fn answered(&self, buyer: &Buyer, call: &Call, reply: &Reply) -> Option<Call> {
        let token = required(reply)?;
        let answer = self.credentials.answer()?;
        match buyer.class() {
            Class::Script | Class::Farm => return None,
            // A solver has come so much later.
            Class::Solver | Class::Hammer | Class::Gazer => {}
            Class::Nobody
            | Class::Person
            | Class::Early
            | Class::Leaver
            | Class::Sleeper
            | Class::Sharer
            | Class::Collector
            | Class::Looker
            | Class::Late => {
                self.think(ANSWERING_MS, &mut StdRng::seed_from_u64(!buyer.seed)).await;
            }
        }
        let mut body: Value = self.made(serde_json::from_slice(&call.body))?;
        body["challenge"] = json!({ "token": token, "answer": answer });
        Some(Call { body: body.to_string().into(), ..call.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_from_the_refusal_that_asks_for_it() {
        let refused = |status: StatusCode, kind: &'static str, body: &'static str| {
            let body = body.as_bytes().into();
            Reply::Problem(Refused { status, kind: kind.into(), retry_after: None, body })
        };
        let body = r#"{"type": "/problems/challenge-required", "challenge": {"kind": "question", "token": "t"}}"#;
        let (status, kind) = (StatusCode::FORBIDDEN, "challenge-required");
        assert_eq!(required(&refused(status, kind, body)).as_deref(), Some("t"));
        assert_eq!(required(&refused(status, "challenge-failed", body)), None);
        assert_eq!(required(&refused(StatusCode::CONFLICT, kind, body)), None);
        assert_eq!(required(&refused(status, kind, "{}")), None);
        assert_eq!(required(&Reply::Ok(body.into())), None);
    }
}
