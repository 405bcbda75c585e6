//! DynamoDB's HTTP in front of the database: AWS JSON 1.0, one operation a request.
//!
//! dynoxide has a server of its own. It reads each body three or four times over, to word the
//! refusals of malformed requests as each AWS region does; no request of an SDK is malformed, and
//! during an on-sale that reading was a third of the emulator's work. What requests mean is dynoxide's
//! alone, here as there; the tokens of transactions are ours ([`super::tokens`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::errors::DynoxideError;
use dynoxide::{Database, Result};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;

use super::tokens::{Known, Tokens, digest};

/// The largest request: that of DynamoDB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// The longest token that is remembered; the database refuses longer ones.
const MAX_TOKEN_BYTES: usize = 36;
/// Prefixes of the header that names the operation.
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

/// The state that every connection shares.
pub(super) struct Edge {
    database: Database,
    /// Held while a transaction with a token is carried out, so that a second one with the same
    /// token waits and finds it done. The database does one write at a time all the same.
    tokens: Mutex<Tokens>,
    requests: AtomicU64,
}

impl Edge {
    /// An edge in front of a database.
    pub(super) fn new(database: Database) -> Self {
        Self { database, tokens: Mutex::default(), requests: AtomicU64::new(0) }
    }

    /// Serves connections until `end`, then finishes the requests that are under way.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
        });
        let service = Router::new().fallback(handle).with_state(Arc::new(self));
        axum::serve(listener, service).with_graceful_shutdown(end).await
    }

    /// Carries one operation out; the answer as JSON.
    fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Result<String> {
        let database = &self.database;
        match operation(headers) {
            "TransactWriteItems" => self.transact(read(body)?),
            "GetItem" => write(&database.get_item(read(body)?)?),
            "Query" => write(&database.query(read(body)?)?),
            "BatchGetItem" => write(&database.batch_get_item(read(body)?)?),
            "PutItem" => write(&database.put_item(read(body)?)?),
            "UpdateItem" => write(&database.update_item(read(body)?)?),
            "DeleteItem" => write(&database.delete_item(read(body)?)?),
            "BatchWriteItem" => write(&database.batch_write_item(read(body)?)?),
            "TransactGetItems" => write(&database.transact_get_items(read(body)?)?),
            "Scan" => write(&database.scan(read(body)?)?),
            "CreateTable" => write(&database.create_table(read(body)?)?),
            "DeleteTable" => write(&database.delete_table(read(body)?)?),
            "DescribeTable" => write(&database.describe_table(read(body)?)?),
            "ListTables" => write(&database.list_tables(read(body)?)?),
            "UpdateTable" => write(&database.update_table(read(body)?)?),
            "UpdateTimeToLive" => write(&database.update_time_to_live(read(body)?)?),
            "DescribeTimeToLive" => write(&database.describe_time_to_live(read(body)?)?),
            "TagResource" => write(&database.tag_resource(read(body)?)?),
            "UntagResource" => write(&database.untag_resource(read(body)?)?),
            "ListTagsOfResource" => write(&database.list_tags_of_resource(read(body)?)?),
            "ExecuteStatement" => write(&database.execute_statement(read(body)?)?),
            "ExecuteTransaction" => write(&database.execute_transaction(read(body)?)?),
            "BatchExecuteStatement" => write(&database.batch_execute_statement(read(body)?)?),
            "ListStreams" => write(&database.list_streams(read(body)?)?),
            "DescribeStream" => write(&database.describe_stream(read(body)?)?),
            "GetShardIterator" => write(&database.get_shard_iterator(read(body)?)?),
            "GetRecords" => write(&database.get_records(read(body)?)?),
            other => Err(DynoxideError::UnsupportedCapability(other.to_owned())),
        }
    }

    fn transact(&self, mut request: TransactWriteItemsRequest) -> Result<String> {
        // An answer that says what it cost differs when it is repeated: the database knows how.
        let plain = request.return_consumed_capacity.is_none();
        let ours = |token: &String| plain && token.len() <= MAX_TOKEN_BYTES;
        let Some(token) = request.client_request_token.take_if(|token| ours(token)) else {
            return write(&self.database.transact_write_items(request)?);
        };
        let digest = digest(&request.transact_items);
        // A panic under the lock is a bug of one request; nothing was recorded.
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        match tokens.known(&token, digest, Instant::now()) {
            Known::No => {}
            Known::Done => return Ok("{}".to_owned()),
            Known::Other => {
                return Err(DynoxideError::IdempotentParameterMismatchException(
                    "The token was used for another request.".to_owned(),
                ));
            }
        }
        let done = write(&self.database.transact_write_items(request)?)?;
        tokens.record(token, digest, Instant::now());
        Ok(done)
    }
}

/// The operation that a request names; empty if it names none of DynamoDB's.
fn operation(headers: &HeaderMap) -> &str {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = |target| TARGETS.iter().find_map(|start| str::strip_prefix(target, start));
    target.and_then(operation).unwrap_or_default()
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        if error.is_data() {
            DynoxideError::ValidationException(error.to_string())
        } else {
            DynoxideError::SerializationException(error.to_string())
        }
    })
}

fn write(answer: &impl Serialize) -> Result<String> {
    serde_json::to_string(answer)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

async fn handle(State(edge): State<Arc<Edge>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let mut refusal = Response::new(Body::empty());
        *refusal.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return refusal;
    };
    // The database computes and waits for its disk on this thread: these threads are for that.
    let answered = edge.answer(&parts.headers, &body);
    let mut response = match answered {
        Ok(answer) => Response::new(Body::from(answer)),
        Err(error) => {
            let mut refusal = Response::new(Body::from(error.to_json()));
            let status = StatusCode::from_u16(error.status_code());
            *refusal.status_mut() = status.unwrap_or(StatusCode::BAD_REQUEST);
            refusal
        }
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    let request = edge.requests.fetch_add(1, Ordering::Relaxed);
    if let Ok(id) = HeaderValue::from_str(&format!("{request:052X}")) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}
