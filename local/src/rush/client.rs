//! The crowd's side of HTTP: sends, times and classifies.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use reqwest::Method;
use serde_json::Value;

/// Longest wait for one answer; the gateway gives up earlier.
const TIMEOUT: Duration = Duration::from_secs(35);

/// One answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A 2xx with its body.
    Ok(Value),
    /// A `problem+json`.
    Problem {
        /// The HTTP status.
        status: u16,
        /// The last part of the problem's type, such as `seat-taken`.
        kind: String,
        /// When to come back, if the server says so.
        retry_after: Option<Duration>,
        /// The whole document.
        body: Value,
    },
    /// No answer, or none that can be understood: the request may or may not have been acted on.
    Lost(String),
}

impl std::fmt::Display for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ok(_) => formatter.write_str("done"),
            Self::Problem { status, kind, body, .. } => {
                let detail = body.get("detail").and_then(Value::as_str).unwrap_or(kind);
                write!(formatter, "{status} {kind}: {detail}")
            }
            Self::Lost(why) => formatter.write_str(why),
        }
    }
}

/// The endpoints that are timed, by the name that the report gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// `POST /sales/{sale}/admissions`.
    Admission,
    /// `POST /sales/{sale}/orders`.
    Reserve,
    /// `POST /orders/{order}/cancel`.
    Cancel,
    /// `POST /payments/{provider}/callback`.
    PayCallback,
    /// Every query.
    Query,
}

impl Endpoint {
    /// The endpoint's name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admission => "token-gate",
            Self::Reserve => "reserve",
            Self::Cancel => "cancel",
            Self::PayCallback => "pay-callback",
            Self::Query => "queries",
        }
    }
}

/// A client with its stopwatch.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    latencies: Mutex<BTreeMap<Endpoint, Histogram<u64>>>,
}

impl Client {
    /// A client of the gateway at `base`, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// Fails if the HTTP client cannot be built.
    pub fn new(base: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(usize::MAX)
            .build()?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { http, base, latencies: Mutex::default() })
    }

    /// Sends one request and times it.
    pub async fn send(
        &self,
        endpoint: Endpoint,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Reply {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let started = Instant::now();
        let reply = Self::read(request).await;
        self.record(endpoint, started.elapsed());
        reply
    }

    async fn read(request: reqwest::RequestBuilder) -> Reply {
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Reply::Lost(error.to_string()),
        };
        let status = response.status();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = match response.text().await {
            Ok(text) => text,
            Err(error) => return Reply::Lost(error.to_string()),
        };
        let value = serde_json::from_str(&body).unwrap_or(Value::Null);
        if status.is_success() {
            return Reply::Ok(value);
        }
        let kind = value["type"].as_str().and_then(|kind| kind.rsplit('/').next());
        match kind {
            Some(kind) => Reply::Problem {
                status: status.as_u16(),
                kind: kind.to_owned(),
                retry_after,
                body: value,
            },
            None => Reply::Lost(format!("{status} without a problem document")),
        }
    }

    fn record(&self, endpoint: Endpoint, elapsed: Duration) {
        let mut latencies =
            self.latencies.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let histogram = latencies.entry(endpoint).or_insert_with(|| {
            // One microsecond to two minutes at three digits is always a valid histogram.
            Histogram::new_with_bounds(1, 120_000_000, 3)
                .unwrap_or_else(|error| unreachable!("histogram bounds: {error}"))
        });
        histogram.saturating_record(elapsed.as_micros() as u64);
    }

    /// What was measured so far, in microseconds.
    #[must_use]
    pub fn latencies(&self) -> BTreeMap<Endpoint, Histogram<u64>> {
        self.latencies.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
