//! A fake of EventBridge: it takes `PutEvents` in the protocol that the SDK speaks (AWS JSON 1.1), for one bus.
//!
//! It refuses what EventBridge refuses: a request without a signature, more entries or more bytes than a call may have,
//! another bus, more calls a second than the quota. On demand it takes some entries and not others, is not there, or
//! takes a call and loses the answer.
//!
//! Source: <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html>

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
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What the SDK asks for.
const TARGET: &str = "AWSEvents.PutEvents";
/// Bytes that an entry counts for its time.
/// Source: <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html>
const TIME_BYTES: usize = 14;

/// An event that the bus has taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub kind: String,
    pub detail: Value,
}

/// A running fake, until it is dropped.
#[derive(Debug)]
pub struct EventBridge {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    bus: String,
    since: Instant,
    state: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    taken: Vec<Taken>,
    rate: Bucket,
    throttled: u32,
    refused: u32,
    lost: u32,
    is_away: bool,
    calls: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEvents {
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    event_bus_name: String,
    source: String,
    detail_type: String,
    detail: String,
    time: Option<f64>,
}

impl Entry {
    fn bytes(&self) -> usize {
        let time = if self.time.is_some() { TIME_BYTES } else { 0 };
        time + self.source.len() + self.detail_type.len() + self.detail.len()
    }
}

impl EventBridge {
    /// Starts it on a free port of this machine, with a bus.
    ///
    /// # Errors
    /// Returns why the system gives no port.
    pub async fn start(bus: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Known {
            taken: Vec::new(),
            rate: Bucket::of_a_second(table::PUT_EVENTS.rate(), std::time::Duration::ZERO),
            throttled: 0,
            refused: 0,
            lost: 0,
            is_away: false,
            calls: 0,
        };
        let (bus, since) = (bus.to_owned(), Instant::now());
        let shared = Arc::new(Shared { bus, since, state: Mutex::new(state) });
        let routes = Router::new().route("/", post(answer)).with_state(Arc::clone(&shared));
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

    /// Throttles the next calls.
    pub fn throttle(&self, calls: u32) {
        self.shared.lock().throttled = calls;
    }

    /// Takes the next entries not, though it takes others of their calls.
    pub fn refuse_entries(&self, entries: u32) {
        self.shared.lock().refused = entries;
    }

    /// Takes the next calls, and answers as if it had not.
    pub fn lose_answers(&self, calls: u32) {
        self.shared.lock().lost = calls;
    }

    /// Is not there, or is there again.
    pub fn set_away(&self, is_away: bool) {
        self.shared.lock().is_away = is_away;
    }

    /// What it has taken, in its order.
    #[must_use]
    pub fn taken(&self) -> Vec<Taken> {
        self.shared.lock().taken.clone()
    }

    /// How often it was called.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.shared.lock().calls
    }
}

impl Drop for EventBridge {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a call is refused, if it is.
    fn defect(&self, entries: &[Entry]) -> Option<String> {
        if entries.is_empty() || entries.len() > table::EVENT_ENTRIES.size() {
            return Some("1 to 10 entries are needed".to_owned());
        }
        let bytes: usize = entries.iter().map(Entry::bytes).sum();
        if bytes > table::EVENT_BYTES.size() {
            return Some(format!(
                "Total size of the entries in the request is over the limit: {bytes}"
            ));
        }
        let is_object = |entry: &Entry| {
            serde_json::from_str::<Value>(&entry.detail).is_ok_and(|detail| detail.is_object())
        };
        let broken = entries.iter().position(|entry| !is_object(entry))?;
        Some(format!("Detail of entry {broken} is malformed"))
    }

    /// Takes the entries of a call: the answer.
    fn put(&self, state: &mut Known, entries: Vec<Entry>) -> Value {
        let mut results = Vec::new();
        let mut failed = 0;
        for Entry { event_bus_name, detail_type, detail, .. } in entries {
            // It names a bus by its name or its ARN.
            let is_ours = event_bus_name.rsplit('/').next() == Some(self.bus.as_str());
            let code = if !is_ours {
                Some("NotAuthorizedForSourceException")
            } else if state.refused > 0 {
                state.refused -= 1;
                Some("InternalFailure")
            } else {
                None
            };
            if let Some(code) = code {
                failed += 1;
                results.push(json!({ "ErrorCode": code, "ErrorMessage": "It was not taken." }));
                continue;
            }
            let detail = serde_json::from_str(&detail).unwrap_or_default();
            state.taken.push(Taken { kind: detail_type, detail });
            results.push(json!({ "EventId": state.taken.len().to_string() }));
        }
        json!({ "FailedEntryCount": failed, "Entries": results })
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("x-amz-target") != Some(TARGET) {
        return refused("UnknownOperationException", "It does nothing but PutEvents");
    }
    let is_signed = header(AUTHORIZATION.as_str()).is_some_and(|value| {
        value.starts_with("AWS4-HMAC-SHA256 ") && value.contains("/events/aws4_request")
    });
    if !is_signed {
        return refused(
            "MissingAuthenticationTokenException",
            "Request is missing Authentication Token",
        );
    }
    let mut state = shared.lock();
    state.calls += 1;
    if state.is_away {
        return reply(StatusCode::SERVICE_UNAVAILABLE, &json!({ "__type": "InternalException" }));
    }
    if state.throttled > 0 || !state.rate.try_take(1.0, shared.since.elapsed()) {
        state.throttled = state.throttled.saturating_sub(1);
        return refused("ThrottlingException", "Rate exceeded");
    }
    let entries = match serde_json::from_slice::<PutEvents>(&body) {
        Ok(PutEvents { entries }) => entries,
        Err(error) => return refused("SerializationException", &error.to_string()),
    };
    if let Some(defect) = shared.defect(&entries) {
        return refused("ValidationException", &defect);
    }
    let answer = shared.put(&mut state, entries);
    if state.lost > 0 {
        state.lost -= 1;
        return reply(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "__type": "InternalException" }));
    }
    reply(StatusCode::OK, &answer)
}

fn refused(code: &str, message: &str) -> Response {
    reply(StatusCode::BAD_REQUEST, &json!({ "__type": code, "message": message }))
}

fn reply(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE.as_str(), "application/x-amz-json-1.1")], body.to_string())
        .into_response()
}
