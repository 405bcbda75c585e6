//! Replies, and their JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::request::Receive;
use crate::error::SqsError;
use crate::message::{Attributes, Message, attributes_md5};

/// The reply to one send.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Its `MessageId`.
    pub message_id: String,
    /// MD5 of the body.
    pub body_md5: String,
    /// MD5 of the attributes, if there are any.
    pub attributes_md5: Option<String>,
    /// MD5 of the system attributes, if there are any.
    pub system_attributes_md5: Option<String>,
    /// Its number in a FIFO queue: twenty digits.
    pub sequence_number: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Delivery {
    /// The message as it was delivered.
    pub message: Message,
    pub handle: String,
    /// True if it comes from a FIFO queue.
    pub fifo: bool,
}

/// The state of one move task.
#[derive(Debug, Clone)]
pub(crate) struct MoveStatus {
    /// Its handle, while it runs.
    pub handle: Option<String>,
    /// `RUNNING`, `COMPLETED`, `CANCELLED` or `FAILED`.
    pub status: &'static str,
    /// ARN of the queue that the messages come from.
    pub source_arn: String,
    /// ARN of the queue they go to; `None` returns each to its source.
    pub destination_arn: Option<String>,
    /// The most messages a second.
    pub per_second: Option<u64>,
    /// Messages moved so far.
    pub moved: u64,
    /// Messages that were there to move.
    pub to_move: u64,
    /// Reason of the failure.
    pub failure: Option<String>,
    /// Time at which it was started, Unix milliseconds.
    pub started_ms: u64,
}

/// A reply: one variant a shape of its JSON.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Attributes of a queue by name.
    Attributes(BTreeMap<String, String>),
    /// Outcomes of a batch by entry id.
    Batch(Vec<(String, Result<(), SqsError>)>),
    Done,
    /// Number of messages that a cancelled task had moved.
    MoveCancelled {
        moved: u64,
    },
    /// The handle of a new move task.
    MoveStarted {
        handle: String,
    },
    /// Move tasks, newest first.
    Moves(Vec<MoveStatus>),
    Received(Vec<Delivery>),
    Sent(Sent),
    /// Sent messages by entry id.
    SentBatch(Vec<(String, Result<Sent, SqsError>)>),
    /// URLs of queues that redrive to a queue, and the token of the next page.
    SourceUrls {
        urls: Vec<String>,
        next: Option<String>,
    },
    /// Tags of a queue.
    Tags(BTreeMap<String, String>),
    /// URL of a queue.
    Url(String),
    /// URLs of queues, and the token of the next page.
    Urls {
        urls: Vec<String>,
        next: Option<String>,
    },
}

impl Reply {
    /// The reply's JSON. `receive` names the attributes that a receive asked for.
    pub fn into_json(self, receive: Option<&Receive>) -> Value {
        match self {
            Reply::Attributes(attributes) => json!({ "Attributes": attributes }),
            Reply::Batch(entries) => batch(entries, |()| Map::new()),
            Reply::Done => json!({}),
            Reply::MoveCancelled { moved } => json!({ "ApproximateNumberOfMessagesMoved": moved }),
            Reply::MoveStarted { handle } => json!({ "TaskHandle": handle }),
            Reply::Moves(moves) => {
                json!({ "Results": moves.into_iter().map(move_status).collect::<Vec<_>>() })
            }
            Reply::Received(deliveries) if deliveries.is_empty() => json!({}),
            Reply::Received(deliveries) => json!({
                "Messages": deliveries.into_iter().map(|one| delivery(one, receive)).collect::<Vec<_>>(),
            }),
            Reply::Sent(one) => Value::Object(sent(one)),
            Reply::SentBatch(entries) => batch(entries, sent),
            Reply::SourceUrls { urls, next } => page("queueUrls", urls, next),
            Reply::Tags(tags) => json!({ "Tags": tags }),
            Reply::Url(url) => json!({ "QueueUrl": url }),
            Reply::Urls { urls, next } => page("QueueUrls", urls, next),
        }
    }
}

fn page(name: &str, urls: Vec<String>, next: Option<String>) -> Value {
    let mut body = Map::from_iter([(name.to_owned(), json!(urls))]);
    put(&mut body, "NextToken", next);
    Value::Object(body)
}

fn put(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}

fn batch<T>(
    entries: Vec<(String, Result<T, SqsError>)>,
    mut fields: impl FnMut(T) -> Map<String, Value>,
) -> Value {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (id, result) in entries {
        match result {
            Ok(done) => {
                let mut body = fields(done);
                body.insert("Id".to_owned(), id.into());
                successful.push(Value::Object(body));
            }
            Err(error) => failed.push(json!({
                "Id": id,
                "SenderFault": error.kind.sender_fault(),
                "Code": error.kind.code(),
                "Message": error.message,
            })),
        }
    }
    json!({ "Successful": successful, "Failed": failed })
}

fn sent(sent: Sent) -> Map<String, Value> {
    let mut body = Map::new();
    put(&mut body, "MessageId", Some(sent.message_id));
    put(&mut body, "MD5OfMessageBody", Some(sent.body_md5));
    put(&mut body, "MD5OfMessageAttributes", sent.attributes_md5);
    put(&mut body, "MD5OfMessageSystemAttributes", sent.system_attributes_md5);
    put(&mut body, "SequenceNumber", sent.sequence_number);
    body
}

fn move_status(status: MoveStatus) -> Value {
    let mut body = Map::new();
    put(&mut body, "TaskHandle", status.handle);
    put(&mut body, "Status", Some(status.status));
    put(&mut body, "SourceArn", Some(status.source_arn));
    put(&mut body, "DestinationArn", status.destination_arn);
    put(&mut body, "MaxNumberOfMessagesPerSecond", status.per_second);
    put(&mut body, "ApproximateNumberOfMessagesMoved", Some(status.moved));
    put(&mut body, "ApproximateNumberOfMessagesToMove", Some(status.to_move));
    put(&mut body, "FailureReason", status.failure);
    put(&mut body, "StartedTimestamp", Some(status.started_ms));
    Value::Object(body)
}

/// The number that a FIFO queue gave a message: twenty digits, ascending.
pub(crate) fn sequence_number(seq: u64) -> String {
    format!("{seq:020}")
}

fn delivery(delivery: Delivery, receive: Option<&Receive>) -> Value {
    let Delivery { message, handle, fifo } = delivery;
    let content = &message.content;
    let mut body = Map::new();
    put(&mut body, "MessageId", Some(message.id.as_ref()));
    put(&mut body, "ReceiptHandle", Some(handle));
    put(&mut body, "MD5OfBody", Some(content.body_md5.as_str()));
    put(&mut body, "Body", Some(content.body.as_str()));

    let mut system = Map::new();
    put(&mut system, "SenderId", Some(crate::SENDER_ID));
    put(&mut system, "SentTimestamp", Some(message.sent_ms.to_string()));
    put(&mut system, "ApproximateReceiveCount", Some(message.receive_count.to_string()));
    put(
        &mut system,
        "ApproximateFirstReceiveTimestamp",
        message.first_receive_ms.map(|at_ms| at_ms.to_string()),
    );
    put(&mut system, "SequenceNumber", fifo.then(|| sequence_number(message.seq)));
    put(&mut system, "MessageGroupId", content.group.as_deref());
    put(&mut system, "MessageDeduplicationId", content.deduplication.as_deref());
    put(&mut system, "AWSTraceHeader", content.trace_header.as_deref());
    put(&mut system, "DeadLetterQueueSourceArn", message.source.as_deref());
    system.retain(|name, _| {
        receive.is_some_and(|receive| {
            receive.system_names.iter().any(|requested| requested == "All" || requested == name)
        })
    });
    if !system.is_empty() {
        body.insert("Attributes".to_owned(), Value::Object(system));
    }

    let attributes: Attributes = content
        .attributes
        .iter()
        .filter(|(name, _)| {
            receive.is_some_and(|receive| is_requested(&receive.attribute_names, name))
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !attributes.is_empty() {
        // The digest covers what is returned, so that the receiver can check it.
        let digest = if attributes.len() == content.attributes.len() {
            content.attributes_md5.clone()
        } else {
            attributes_md5(attributes.iter()).unwrap_or_default()
        };
        put(&mut body, "MD5OfMessageAttributes", digest);
        body.insert("MessageAttributes".to_owned(), json!(attributes));
    }
    Value::Object(body)
}

fn is_requested(requested: &[String], name: &str) -> bool {
    requested.iter().any(|pattern| {
        pattern == "All"
            || pattern == name
            || pattern.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
    })
}
