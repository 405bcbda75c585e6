//! DynamoDB's HTTP in front of the database: AWS JSON 1.0, one operation a request.
//!
//! dynoxide has a server of its own. It reads each body three or four times over, to word the
//! refusals of malformed requests as each AWS region does; no request of an SDK is malformed, and
//! during an on-sale that reading was a third of the emulator's work. What requests mean is dynoxide's
//! alone, here as there; the tokens of transactions are ours ([`super::tokens`]), and so is what AWS
//! refuses for its throughput ([`super::metered`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use dynoxide::actions;
use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::errors::DynoxideError;
use dynoxide::types::ConsumedCapacity;
use dynoxide::{Database, Result};
use fake_limits::Enforced;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;

use super::metered::{Metered, Refused, split};
use super::tokens::{Known, Tokens, digest};

/// The largest request: that of DynamoDB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// The longest token that is remembered; the database refuses longer ones.
const MAX_TOKEN_BYTES: usize = 36;
/// How a request asks what it consumes of its table and of each index.
const INDEXES: &str = "INDEXES";
/// Prefixes of the header that names the operation.
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

/// The state that every connection shares.
pub(super) struct Edge {
    database: Database,
    /// Held while a transaction with a token is carried out, so that a second one with the same
    /// token waits and finds it done. The database does one write at a time all the same.
    tokens: Mutex<Tokens>,
    requests: AtomicU64,
    /// Throttling, if limits are enforced.
    metered: Option<Metered>,
}

/// What a request has consumed, if that is of interest.
#[derive(Default)]
struct Spent {
    is_asked: bool,
    capacity: Vec<ConsumedCapacity>,
}

/// Carries one operation out, and asks what it consumes if that is of interest.
macro_rules! spending {
    ($database:expr, $body:expr, $spent:expr, $method:ident, $request:ty) => {{
        let mut request: $request = read($body)?;
        let is_ours = $spent.is_asked && request.return_consumed_capacity.is_none();
        if is_ours {
            request.return_consumed_capacity = Some(INDEXES.to_owned());
        }
        let mut answer = $database.$method(request)?;
        if is_ours {
            $spent.capacity.extend(answer.consumed_capacity.take());
        }
        write(&answer)
    }};
}

impl Edge {
    /// An edge in front of a database, which refuses what these limits refuse.
    pub(super) fn new(database: Database, limits: Option<Enforced>) -> Self {
        let metered = limits.map(Metered::new);
        Self { database, tokens: Mutex::default(), requests: AtomicU64::new(0), metered }
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

    /// Answers a request: its status and its document.
    fn answer(&self, headers: &HeaderMap, body: &[u8]) -> (StatusCode, String) {
        let operation = operation(headers);
        let answered = match &self.metered {
            None => self.carry_out(operation, body, &mut Spent::default()),
            Some(metered) => match self.admitted(metered, operation, body) {
                Ok(answered) => answered,
                Err(refused) => return (StatusCode::BAD_REQUEST, refused.to_string()),
            },
        };
        match answered {
            Ok(answer) => (StatusCode::OK, answer),
            Err(error) => {
                let status = StatusCode::from_u16(error.status_code());
                (status.unwrap_or(StatusCode::BAD_REQUEST), error.to_json())
            }
        }
    }

    /// Carries one operation out, unless its tables are throttled.
    fn admitted(
        &self,
        metered: &Metered,
        operation: &str,
        body: &[u8],
    ) -> std::result::Result<Result<String>, serde_json::Value> {
        if matches!(operation, "CreateTable" | "DeleteTable") {
            metered.forget(body);
        }
        let mut spent = Spent { is_asked: true, ..Spent::default() };
        let Some(needs) = metered.needs(&self.database, operation, body) else {
            return Ok(self.carry_out(operation, body, &mut Spent::default()));
        };
        let answered = match metered.admit(operation, &needs) {
            Ok(()) => self.carry_out(operation, body, &mut spent),
            Err(Refused::All(refusal)) => return Err(refusal),
            Err(Refused::Keys(keys)) => {
                let (rest, left) = split(body, &keys);
                let answered = self.carry_out(operation, &rest, &mut spent);
                answered.and_then(|answer| {
                    let mut answer: serde_json::Value = read(answer.as_bytes())?;
                    answer["UnprocessedKeys"] = left;
                    Ok(answer.to_string())
                })
            }
        };
        metered.charge(&needs, &spent.capacity);
        Ok(match operation {
            "Query" => answered.map(|answer| metered.as_indexed(body, answer)),
            _ => answered,
        })
    }

    /// Carries one operation out; the answer as JSON.
    fn carry_out(&self, operation: &str, body: &[u8], spent: &mut Spent) -> Result<String> {
        use actions::{
            batch_get_item::BatchGetItemRequest, delete_item::DeleteItemRequest,
            get_item::GetItemRequest, put_item::PutItemRequest, query::QueryRequest,
            update_item::UpdateItemRequest,
        };
        let database = &self.database;
        match operation {
            "TransactWriteItems" => self.transact(read(body)?, spent),
            "GetItem" => spending!(database, body, spent, get_item, GetItemRequest),
            "Query" => spending!(database, body, spent, query, QueryRequest),
            "BatchGetItem" => {
                let mut request: BatchGetItemRequest = read(body)?;
                let is_ours = spent.is_asked && request.return_consumed_capacity.is_none();
                if is_ours {
                    request.return_consumed_capacity = Some(INDEXES.to_owned());
                }
                let mut answer = database.batch_get_item(request)?;
                if is_ours {
                    spent.capacity.extend(answer.consumed_capacity.take().into_iter().flatten());
                }
                write(&answer)
            }
            "PutItem" => spending!(database, body, spent, put_item, PutItemRequest),
            "UpdateItem" => spending!(database, body, spent, update_item, UpdateItemRequest),
            "DeleteItem" => spending!(database, body, spent, delete_item, DeleteItemRequest),
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

    fn transact(
        &self,
        mut request: TransactWriteItemsRequest,
        spent: &mut Spent,
    ) -> Result<String> {
        // An answer that says what it cost differs when it is repeated: the database knows how.
        let plain = request.return_consumed_capacity.is_none();
        let ours = |token: &String| plain && token.len() <= MAX_TOKEN_BYTES;
        let token = request.client_request_token.take_if(|token| ours(token));
        let is_ours = plain && spent.is_asked;
        if is_ours {
            request.return_consumed_capacity = Some(INDEXES.to_owned());
        }
        let mut carry_out = |request| {
            let mut answer = self.database.transact_write_items(request)?;
            if is_ours {
                spent.capacity.extend(answer.consumed_capacity.take().into_iter().flatten());
            }
            write(&answer)
        };
        let Some(token) = token else { return carry_out(request) };
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
        let done = carry_out(request)?;
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
    let (status, answer) = edge.answer(&parts.headers, &body);
    let mut response = Response::new(Body::from(answer));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    let request = edge.requests.fetch_add(1, Ordering::Relaxed);
    if let Ok(id) = HeaderValue::from_str(&format!("{request:052X}")) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}
