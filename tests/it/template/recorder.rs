//! Stands between the functions and their stores, and notes who calls what: what a function's role
//! must allow, by evidence.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderMap;
use serde_json::Value;
use shared::dynamodb::tables::ACTIONS;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What the keys begin with of how far webhooks were told.
pub const SUBSCRIBERS: &str = "#subscriber#*";

/// A right that a call needs: who, which action, and on what (`table orders`, `table orders index
/// due`, `table rooms secret#*`, `queue expiry`; `*` if the action knows no resources).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub function: String,
    pub action: String,
    pub on: String,
}

/// The proxy. Each function calls it under a path of its own.
pub struct Recorder {
    url: String,
    seen: Arc<Mutex<BTreeSet<Right>>>,
    task: JoinHandle<()>,
}

struct Behind {
    http: reqwest::Client,
    dynamodb: String,
    sqs: String,
    cloudwatch: String,
    eventbridge: String,
    /// What the names of tables and queues begin with here.
    prefix: String,
    seen: Arc<Mutex<BTreeSet<Right>>>,
}

impl Recorder {
    /// Starts one in front of these servers.
    pub async fn start([dynamodb, sqs, cloudwatch, eventbridge]: [&str; 4], prefix: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::default();
        let behind = Behind {
            http: reqwest::Client::new(),
            dynamodb: dynamodb.to_owned(),
            sqs: sqs.to_owned(),
            cloudwatch: cloudwatch.to_owned(),
            eventbridge: eventbridge.to_owned(),
            prefix: prefix.to_owned(),
            seen: Arc::clone(&seen),
        };
        let service = Router::new().fallback(pass_on).with_state(Arc::new(behind));
        let task = tokio::spawn(async { axum::serve(listener, service).await.unwrap() });
        Self { url, seen, task }
    }

    /// The address of all services.
    pub fn endpoint(&self, function: &str) -> String {
        format!("{}/{function}", self.url)
    }

    /// Every right that was needed until now.
    pub fn seen(&self) -> BTreeSet<Right> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(State(behind): State<Arc<Behind>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().trim_matches('/');
    let (function, path) = path.split_once('/').unwrap_or((path, ""));
    // CloudWatch has its operations in the path, and none of them on a resource.
    if let Some((_, operation)) = path.rsplit_once("/operation/") {
        let (function, action) = (function.to_owned(), format!("cloudwatch:{operation}"));
        let right = Right { function, action, on: "*".to_owned() };
        behind.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(right);
        let url = format!("{}/{path}", behind.cloudwatch);
        return forward(&behind.http, parts.method, &url, &parts.headers, body).await;
    }
    let target = parts.headers.get("x-amz-target").map(|target| target.to_str().unwrap());
    let (service, operation) = target.and_then(|target| target.split_once('.')).unwrap_or_default();
    if service == "AWSEvents" {
        let content: Value = serde_json::from_slice(&body).unwrap();
        let bus = content["Entries"][0]["EventBusName"].as_str().unwrap();
        let (action, on) = (format!("events:{operation}"), format!("event-bus {bus}"));
        let right = Right { function: function.to_owned(), action, on };
        behind.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(right);
        return forward(&behind.http, parts.method, &behind.eventbridge, &parts.headers, body)
            .await;
    }
    let is_dynamodb = service.starts_with("DynamoDB");
    // A request without an operation only connects, and needs no right.
    if !operation.is_empty() {
        let content: Value = serde_json::from_slice(&body).unwrap();
        let needed = match is_dynamodb {
            true => of_dynamodb(operation, &content),
            false => of_sqs(operation, &content),
        };
        let right = |(action, on): (String, String)| {
            let (kind, name) = on.split_once(' ').unwrap();
            let name = name.strip_prefix(&behind.prefix).unwrap_or(name);
            Right { function: function.to_owned(), action, on: format!("{kind} {name}") }
        };
        let mut seen = behind.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(needed.into_iter().map(right));
    }
    let url = if is_dynamodb { &behind.dynamodb } else { &behind.sqs };
    forward(&behind.http, parts.method, url, &parts.headers, body).await
}

async fn forward(
    http: &reqwest::Client,
    method: http::Method,
    url: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Response {
    let mut request = http.request(method, url).body(body);
    for (name, value) in headers {
        if name != "host" && name != "content-length" {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await.unwrap();
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if name != "content-length" && name != "transfer-encoding" {
            response = response.header(name, value);
        }
    }
    response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
}

/// The actions of a call: a transaction is allowed by the actions of its items.
fn of_dynamodb(operation: &str, content: &Value) -> Vec<(String, String)> {
    let table = |of: &Value| {
        let name = of["TableName"].as_str().unwrap_or("?");
        // The rights to the rooms are by what a key begins with; so are those to write what operators did and what
        // webhooks were told.
        let key = of["Item"]["pk"]["S"].as_str().or_else(|| of["Key"]["pk"]["S"].as_str());
        // What is written of tickets is allowed by what its keys end with.
        let ends = |with: &&&str| key.is_some_and(|key| key.ends_with(**with));
        let leads = match key {
            Some(ACTIONS) => format!(" {ACTIONS}"),
            Some(key) if key.starts_with("#subscriber#") => format!(" {SUBSCRIBERS}"),
            // Functions that ask providers write all that is kept of one; callbacks only that its list is to be read.
            Some(key) if key.starts_with("#provider#") && is_asking(of) => {
                " #provider#*".to_owned()
            }
            Some(_) | None if name.ends_with("rooms") => leading(of),
            Some(_) | None => {
                let of_tickets = ["#revoked", "#check-ins"];
                let found = of_tickets.iter().find(ends).filter(|_| name.ends_with("sales"));
                found.map(|with| format!(" *{with}")).unwrap_or_default()
            }
        };
        format!("table {name}{leads}")
    };
    let keys = |of: &Value| -> Vec<String> {
        of.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect()
    };
    let action = |operation: &str| format!("dynamodb:{operation}");
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            let items = content["TransactItems"].as_array().unwrap();
            let of_item = |item: &Value| {
                let kind = keys(item).remove(0);
                let suffix = if kind == "ConditionCheck" { "" } else { "Item" };
                let name = if suffix.is_empty() {
                    "ConditionCheckItem".to_owned()
                } else {
                    format!("{kind}{suffix}")
                };
                (action(&name), table(&item[&kind]))
            };
            items.iter().map(of_item).collect()
        }
        "BatchGetItem" | "BatchWriteItem" => {
            let tables = keys(&content["RequestItems"]);
            tables.into_iter().map(|name| (action(operation), format!("table {name}"))).collect()
        }
        _ => {
            let index = content["IndexName"].as_str();
            let on = index.map_or_else(
                || table(content),
                |index| format!("{} index {index}", table(content)),
            );
            vec![(action(operation), on)]
        }
    }
}

/// True if a write notes that a provider's list is to be read.
fn is_asking(of: &Value) -> bool {
    of["UpdateExpression"].as_str().is_some_and(|update| update.contains("#asked_ms"))
}

/// What the keys begin with that an item's key, or a query's, is one of.
fn leading(of: &Value) -> String {
    let keys = [&of["Key"]["pk"], &of["Item"]["pk"], &of["ExpressionAttributeValues"][":pk"]];
    let key = keys.into_iter().find_map(|key| key["S"].as_str()).unwrap_or("?");
    format!(" {}#*", key.split('#').next().unwrap_or_default())
}

/// Batches are allowed by the action of one message.
fn of_sqs(operation: &str, content: &Value) -> Vec<(String, String)> {
    let url = content["QueueUrl"].as_str().unwrap_or("?/?");
    let action = format!("sqs:{}", operation.trim_end_matches("Batch"));
    vec![(action, format!("queue {}", url.rsplit('/').next().unwrap()))]
}
