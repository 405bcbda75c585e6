//! A fake of CloudWatch: it takes the lines of the embedded metric format that functions write, and answers
//! `GetMetricData` of them, as CloudWatch documents it, in the protocol that the SDK speaks (Smithy RPC v2, CBOR).
//!
//! It refuses what CloudWatch refuses: a request without a signature, more queries than a request may have, a period
//! that is no multiple of a minute, an id that is none or is there twice, more requests a second than the quota. An
//! answer has as many values as a page may have.
//!
//! Sources: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html>,
//! <https://smithy.io/2.0/additional-specs/protocols/smithy-rpc-v2.html>. What a refusal is called in this protocol is
//! not published; it has the names of the older one.

mod cbor;
mod request;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use fake_limits::bucket::Bucket;
use fake_limits::table;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use request::{Asked, Query};
use values::{Statistic, Values};

/// Where the SDK sends the operation.
const PATH: &str = "/service/GraniteServiceVersion20100801/operation/GetMetricData";

/// A running fake, until it is dropped.
#[derive(Debug)]
pub struct CloudWatch {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    since: Instant,
    state: Mutex<Known>,
}

/// What it knows and has to do.
#[derive(Debug)]
struct Known {
    values: Values,
    asked: Vec<Asked>,
    rate: Bucket,
    throttled: u32,
    page_values: usize,
}

impl CloudWatch {
    /// Starts it on a free port of this machine.
    ///
    /// # Errors
    /// Returns why the system gives no port.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Known {
            values: Values::default(),
            asked: Vec::new(),
            rate: Bucket::of_a_second(table::METRIC_REQUESTS.rate(), std::time::Duration::ZERO),
            throttled: 0,
            page_values: table::METRIC_VALUES.size(),
        };
        let shared = Arc::new(Shared { since: Instant::now(), state: Mutex::new(state) });
        let routes = Router::new().route(PATH, post(answer)).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            // It ends with its task.
            let _ended = axum::serve(listener, routes).await;
        });
        Ok(Self { address, shared, serving })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes a line that a function has logged.
    pub fn log(&self, line: &str) {
        if let Ok(line) = serde_json::from_str::<Value>(line) {
            self.shared.lock().values.take(&line);
        }
    }

    /// Takes a value of a metric.
    pub fn put(&self, metric: &str, dimensions: &[(&str, &str)], at_ms: i64, value: f64) {
        let of = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let dimensions: BTreeMap<String, String> = dimensions.iter().map(of).collect();
        let named = ("Onsale".to_owned(), metric.to_owned(), dimensions);
        self.shared.lock().values.put(named, at_ms, value);
    }

    /// Throttles the next requests.
    pub fn throttle(&self, requests: u32) {
        self.shared.lock().throttled = requests;
    }

    /// Ends each page of an answer after that many values, in place of the quota.
    pub fn page_values(&self, values: usize) {
        self.shared.lock().page_values = values;
    }

    /// The requests that it has answered.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }
}

impl Drop for CloudWatch {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// True if the quota is used up, or a test wants it to be.
    fn throttles(&mut self, since: Instant) -> bool {
        if self.throttled > 0 {
            self.throttled -= 1;
            return true;
        }
        !self.rate.try_take(1.0, since.elapsed())
    }

    /// A page of the answer, and the token of the next.
    fn page(&self, asked: &Asked) -> Result<Value, String> {
        let invalid = |_| "NextToken: is none".to_owned();
        let first: usize = asked.token.as_deref().unwrap_or("0").parse().map_err(invalid)?;
        let (mut results, mut values) = (Vec::new(), 0);
        let mut next = None;
        for (place, query) in asked.queries.iter().enumerate().skip(first) {
            let of = self.result(query, asked);
            if !results.is_empty() && values + of.len() > self.page_values {
                next = Some(place.to_string());
                break;
            }
            values += of.len();
            let (times, of): (Vec<i64>, Vec<f64>) = of.into_iter().unzip();
            let times: Vec<i64> = times.into_iter().map(|ms| ms / 1000).collect();
            results.push(json!({ "Id": query.id, "Label": query.metric, "StatusCode": "Complete",
                "Timestamps": times, "Values": of }));
        }
        let mut page = json!({ "MetricDataResults": results, "Messages": [] });
        if let Some(next) = next {
            page["NextToken"] = json!(next);
        }
        Ok(page)
    }

    fn result(&self, query: &Query, asked: &Asked) -> BTreeMap<i64, f64> {
        let Some(statistic) = Statistic::read(&query.statistic) else { return BTreeMap::new() };
        let period_ms = query.period_seconds.saturating_mul(1000);
        self.values.statistic(&query.named(), &statistic, period_ms, (asked.start_ms, asked.end_ms))
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("smithy-protocol") != Some("rpc-v2-cbor") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let is_signed = header(AUTHORIZATION.as_str()).is_some_and(|value| {
        value.starts_with("AWS4-HMAC-SHA256 ") && value.contains("/monitoring/aws4_request")
    });
    if !is_signed {
        let code = "MissingAuthenticationToken";
        return refused(StatusCode::FORBIDDEN, code, "The request has no signature");
    }
    let mut state = shared.lock();
    if state.throttles(shared.since) {
        return refused(StatusCode::BAD_REQUEST, "Throttling", "Rate exceeded");
    }
    let asked = cbor::read(&body).map_err(|error| error.to_string());
    let asked = asked.and_then(|body| Asked::read(&body));
    match asked.and_then(|asked| Ok((state.page(&asked)?, asked))) {
        Ok((page, asked)) => {
            state.asked.push(asked);
            reply(StatusCode::OK, &page)
        }
        Err(rule) => refused(StatusCode::BAD_REQUEST, "ValidationError", &rule),
    }
}

fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({ "__type": format!("com.amazonaws.cloudwatch#{code}"), "message": message });
    reply(status, &body)
}

fn reply(status: StatusCode, body: &Value) -> Response {
    let headers = [(CONTENT_TYPE.as_str(), "application/cbor"), ("smithy-protocol", "rpc-v2-cbor")];
    (status, headers, cbor::written(body)).into_response()
}
