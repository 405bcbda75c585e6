//! Proxies of DynamoDB and SQS that pass everything on and count what AWS would charge for.
//!
//! DynamoDB says itself what a request consumed when it is asked: the proxy asks in the engine's
//! stead. What failed a condition consumed as well, and does not say so: it counts as the least that a
//! write costs.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The largest request that either service takes is 16 MB.
const MAX_BODY_BYTES: usize = 16 << 20;
/// The bytes after which SQS counts a request once more. Source: <https://aws.amazon.com/sqs/pricing/>
const SQS_BYTES: usize = 64 << 10;
/// What a transaction costs more than the same writes by themselves.
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html>
const TRANSACTION: f64 = 2.0;

/// Counts of a proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    pub calls: f64,
    /// Requests as SQS counts them, by their size.
    pub chunks: f64,
    pub reads: f64,
    pub writes: f64,
    /// Bytes of the answers.
    pub answered: f64,
}

impl Counted {
    /// The counts since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            chunks: self.chunks - earlier.chunks,
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            answered: self.answered - earlier.answered,
        }
    }
}

/// A running proxy; it stops when dropped.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    counted: Arc<Mutex<Counted>>,
    server: JoinHandle<io::Result<()>>,
}

/// State that the proxy has for each request.
#[derive(Debug, Clone)]
struct ProxyState {
    upstream: String,
    client: reqwest::Client,
    counted: Arc<Mutex<Counted>>,
}

impl Proxy {
    /// Starts before `upstream` (`http://host:port`) on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// There is no port.
    pub async fn start(upstream: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let counted = Arc::<Mutex<Counted>>::default();
        let state = ProxyState {
            upstream: upstream.to_owned(),
            client: reqwest::Client::new(),
            counted: Arc::clone(&counted),
        };
        let service = Router::new().fallback(pass).with_state(state);
        let server = tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(Self { url, counted, server })
    }

    /// URL at which it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its counts so far.
    #[must_use]
    pub fn counted(&self) -> Counted {
        *lock(&self.counted)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn lock(counted: &Mutex<Counted>) -> MutexGuard<'_, Counted> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn pass(State(state): State<ProxyState>, request: Request) -> Response {
    match state.pass(request).await {
        Ok(answer) => answer,
        Err(failed) => (StatusCode::BAD_GATEWAY, failed.to_string()).into_response(),
    }
}

impl ProxyState {
    async fn pass(&self, request: Request) -> Result<Response, super::Failure> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, MAX_BODY_BYTES).await?;
        let target = parts.headers.get("x-amz-target").and_then(|value| value.to_str().ok());
        let (service, operation) = target.and_then(|name| name.split_once('.')).unwrap_or_default();
        let asks_dynamodb = service.starts_with("DynamoDB");
        let (size, sent) = (body.len(), if asks_dynamodb { asking(&body) } else { body.clone() });
        let mut headers = parts.headers.clone();
        headers.remove(header::HOST);
        headers.remove(header::CONTENT_LENGTH);
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = format!("{}{path}", self.upstream);
        let sent = self.client.request(parts.method, url).headers(headers).body(sent).send();
        let answer = sent.await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        let content = answer.bytes().await?;
        {
            let mut counted = lock(&self.counted);
            counted.calls += 1.0;
            counted.answered += content.len() as f64;
            counted.chunks += size.div_ceil(SQS_BYTES).max(1) as f64;
            if asks_dynamodb {
                let units = consumed(operation, &body, status.is_success(), &content);
                match operation {
                    "GetItem" | "BatchGetItem" | "Query" | "Scan" | "TransactGetItems" => {
                        counted.reads += units;
                    }
                    _ => counted.writes += units,
                }
            }
        }
        headers.remove(header::TRANSFER_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
        // The checksum is of the answer without what was asked for besides; it is the same bytes here.
        let mut response = Response::new(Body::from(content));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// The same request, asking what it consumes.
fn asking(body: &Bytes) -> Bytes {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(body) else { return body.clone() };
    fields.insert("ReturnConsumedCapacity".to_owned(), json!("TOTAL"));
    Value::Object(fields).to_string().into()
}

/// The request units that a request consumed.
fn consumed(operation: &str, request: &Bytes, done: bool, answer: &Bytes) -> f64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    if done {
        let units = |one: &Value| one["CapacityUnits"].as_f64().unwrap_or_default();
        let capacity = &answer["ConsumedCapacity"];
        let tables = capacity.as_array();
        return tables.map_or_else(|| units(capacity), |tables| tables.iter().map(units).sum());
    }
    let kind = answer["__type"].as_str().unwrap_or_default();
    if kind.ends_with("TransactionCanceledException") {
        let request: Value = serde_json::from_slice(request).unwrap_or_default();
        let items = request["TransactItems"].as_array().map_or(0, Vec::len);
        return TRANSACTION * items as f64;
    }
    let wrote = ["PutItem", "UpdateItem", "DeleteItem"].contains(&operation);
    if wrote && kind.ends_with("ConditionalCheckFailedException") { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dynamodb_says_is_summed_and_what_failed_a_condition_counts() {
        let bytes = |value: Value| Bytes::from(value.to_string());
        let none = bytes(json!({}));
        let one = bytes(json!({ "ConsumedCapacity": { "TableName": "t", "CapacityUnits": 2.5 } }));
        assert_eq!(consumed("Query", &none, true, &one), 2.5);
        let two =
            bytes(json!({ "ConsumedCapacity": [{ "CapacityUnits": 6 }, { "CapacityUnits": 4 }] }));
        assert_eq!(consumed("TransactWriteItems", &none, true, &two), 10.0);
        assert_eq!(consumed("GetItem", &none, true, &none), 0.0);
        let refused = |kind: &str| bytes(json!({ "__type": format!("com.amazonaws#{kind}") }));
        let three = bytes(json!({ "TransactItems": [{}, {}, {}] }));
        let cancelled = refused("TransactionCanceledException");
        assert_eq!(consumed("TransactWriteItems", &three, false, &cancelled), 6.0);
        let failed = refused("ConditionalCheckFailedException");
        assert_eq!(consumed("UpdateItem", &none, false, &failed), 1.0);
        let throttled = refused("ThrottlingException");
        assert_eq!(consumed("UpdateItem", &none, false, &throttled), 0.0);
    }

    #[test]
    fn a_request_is_only_asked_for_what_it_consumes() {
        let asked: Value = serde_json::from_slice(&asking(&r#"{"TableName":"t"}"#.into())).unwrap();
        assert_eq!(asked, json!({ "TableName": "t", "ReturnConsumedCapacity": "TOTAL" }));
        assert_eq!(asking(&"[1".into()), Bytes::from("[1"));
    }
}
