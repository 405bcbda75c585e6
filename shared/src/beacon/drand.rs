//! drand's HTTP API: `/{chain}/public/{round}`.
//!
//! Source: <https://docs.drand.love/dev-guide/developer/http-api>. A server is trusted with nothing: what it
//! answers counts only with the signature that the chain's key makes of that very round. What it can still do
//! is to be silent, or to say that a round which is out is not.

use std::time::Duration;

use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::display::DisplayErrorContext;
use http::{Request, Response, StatusCode};
use hyper::body::Bytes;
use serde::Deserialize;
use tokio::time::timeout;

use super::signature::{Chains, Wrong};
use crate::runtime::config::BeaconConfig;
use crate::runtime::connections::Https;
use engine::domain::basics::bytes::{Hash, Signature};
use engine::ports::{Beacon, StoreError, Stored};

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Most bytes of an answer: those of quicknet have 200, those of chains that quote the round before 600.
const MAX_ANSWER_BYTES: usize = 4096;

/// What a server answers; it says more, which nothing here depends on.
#[derive(Debug, Deserialize)]
struct Answer {
    round: u64,
    signature: Signature,
}

/// The beacon, at servers of drand's HTTP API. Clones share their connections.
#[derive(Debug, Clone)]
pub struct DrandBeacon {
    https: Https,
    /// Addresses of the servers, without a slash at the end.
    urls: Vec<String>,
    chains: Chains,
    limit: Duration,
}

impl DrandBeacon {
    /// The beacon of a configuration. Nothing is connected.
    #[must_use]
    pub fn new(config: &BeaconConfig, https: Https) -> Self {
        let urls = config.urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
        Self { https, urls, chains: config.chains.clone(), limit: REQUEST_TIMEOUT }
    }

    /// The same with another time limit of one request: tests wait for a silent server.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The chains whose rounds it verifies.
    #[must_use]
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// Asks one server; `None` if it says that the round is not out.
    async fn ask(&self, url: &str, chain: Hash, round: u64) -> Stored<Option<Answer>> {
        if self.chains.rounds(chain).is_none() {
            // No server can mend that.
            return Err(StoreError::Contract(format!("beacon {chain}: {}", Wrong::UnknownChain)));
        }
        let unavailable = |why: String| StoreError::Unavailable(format!("beacon {url}: {why}"));
        let request = Request::get(format!("{url}/{chain}/public/{round}")).body(SdkBody::empty());
        let request = request.map_err(|error| unavailable(error.to_string()))?;
        let answered = timeout(self.limit, self.https.request_within(request, MAX_ANSWER_BYTES));
        let answered = answered.await.map_err(|late| unavailable(late.to_string()))?;
        let answered =
            answered.map_err(|broken| unavailable(DisplayErrorContext(broken).to_string()))?;
        let Some(answer) = read(&answered, round).map_err(unavailable)? else { return Ok(None) };
        match self.chains.verify(chain, answer.round, &answer.signature) {
            Ok(()) => Ok(Some(answer)),
            Err(wrong @ (Wrong::UnknownChain | Wrong::Key)) => {
                Err(StoreError::Contract(format!("beacon {chain}: {wrong}")))
            }
            Err(wrong @ Wrong::Signature) => Err(unavailable(wrong.to_string())),
        }
    }
}

/// Reads an answer to the question for a round, whose signature is still to be verified; `None` if the round is not out.
fn read(answered: &Response<Bytes>, round: u64) -> Result<Option<Answer>, String> {
    match answered.status() {
        StatusCode::OK => {}
        // Servers say either of a round that is to come.
        StatusCode::NOT_FOUND | StatusCode::TOO_EARLY => return Ok(None),
        other => return Err(format!("it answers {other}")),
    }
    let answer: Answer =
        serde_json::from_slice(answered.body()).map_err(|error| error.to_string())?;
    if answer.round == round {
        Ok(Some(answer))
    } else {
        Err(format!("it answers round {} to the question for {round}", answer.round))
    }
}

/// The worst of several errors: what no repetition would change before what one may.
fn worst(errors: Vec<StoreError>) -> StoreError {
    let none = || StoreError::Unavailable("no address of the beacon is configured".to_owned());
    let mut errors = errors;
    let broken = errors.iter().position(|error| !error.retryable());
    broken.map(|at| errors.swap_remove(at)).or_else(|| errors.pop()).unwrap_or_else(none)
}

impl Beacon for DrandBeacon {
    /// The servers are asked in turn until one has the round.
    async fn round(&self, chain: Hash, round: u64) -> Stored<Option<Signature>> {
        let mut errors = Vec::new();
        let mut is_to_come = false;
        for url in &self.urls {
            match self.ask(url, chain, round).await {
                Ok(Some(answer)) => return Ok(Some(answer.signature)),
                Ok(None) => is_to_come = true,
                Err(error) => {
                    tracing::warn!(%error, round, "a server of the beacon does not give the round");
                    errors.push(error);
                }
            }
        }
        let is_broken = errors.iter().any(|error| !error.retryable());
        if is_to_come && !is_broken { Ok(None) } else { Err(worst(errors)) }
    }

    async fn verify(&self, chain: Hash, round: u64, signature: Signature) -> Stored<bool> {
        match self.chains.verify(chain, round, &signature) {
            Ok(()) => Ok(true),
            Err(Wrong::Signature) => Ok(false),
            Err(wrong @ (Wrong::UnknownChain | Wrong::Key)) => {
                Err(StoreError::Contract(format!("beacon {chain}: {wrong}")))
            }
        }
    }
}
