//! A client of the API that asks until it is answered: what is lost, broken or refused for a while is sent again.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longest pause before a request is repeated: the engine's own advice may be longer than a fault.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Time that one answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// The client of one person.
#[derive(Debug)]
pub(super) struct Persistent {
    client: Client,
    url: String,
    bearer: String,
}

#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: String,
}

/// An answer that is no success.
#[derive(Debug)]
enum Failure {
    /// Ask again after this time.
    Again(Duration),
    /// Refused for good, by the problem's type.
    Refused(String),
}

impl Persistent {
    /// Connections of its own.
    pub(super) fn client() -> Result<Client, reqwest::Error> {
        Client::builder().timeout(ANSWER).build()
    }

    /// Whoever has this token, below this address.
    pub(super) fn new(client: Client, url: String, bearer: String) -> Self {
        Self { client, url, bearer }
    }

    /// Sends a request until it is answered by a success, or by a refusal for good: then the problem's type.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        what: &str,
        body: Option<&Value>,
    ) -> Result<T, String> {
        loop {
            match self.send(method.clone(), what, body).await {
                Ok(body) => {
                    return serde_json::from_slice(&body).map_err(|error| error.to_string());
                }
                Err(Failure::Again(wait)) => tokio::time::sleep(wait.min(MAX_WAIT)).await,
                Err(Failure::Refused(kind)) => return Err(kind),
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        what: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, Failure> {
        let lost = |_error: reqwest::Error| Failure::Again(MAX_WAIT);
        let call = self.client.request(method, format!("{}/{what}", self.url));
        let call =
            body.into_iter().fold(call.bearer_auth(&self.bearer), |call, body| call.json(body));
        let reply = call.send().await.map_err(lost)?;
        let status = reply.status();
        let wait =
            reply.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = reply.bytes().await.map_err(lost)?;
        if status.is_success() {
            return Ok(bytes.to_vec());
        }
        let problem: Option<Problem> = serde_json::from_slice(&bytes).ok();
        let kind = problem.map_or_else(|| status.to_string(), |problem| problem.kind);
        let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
        // What has a time after which to repeat it is not for good: a place that a gate does not know to be due yet.
        if wait.is_some() || status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Failure::Again(wait.map_or(MAX_WAIT, Duration::from_secs)));
        }
        Err(Failure::Refused(kind))
    }
}
