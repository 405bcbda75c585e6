//! Requests and replies as AWS JSON 1.0 carries them.
//!
//! Source: the operations of the Amazon SQS API Reference. A request is parsed and checked as
//! far as that goes without knowing the queues; the broker checks the rest.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::attributes::{
    DELAY_SECONDS_MAX, MESSAGE_BYTES_MAX, VISIBILITY_SECONDS_MAX, WAIT_SECONDS_MAX,
};
use crate::error::{ErrorKind, SqsError};
use crate::message::{Attributes, Content, Message, attributes_md5};

/// Entries of a batch, and messages of a receive.
const BATCH_MAX: usize = 10;

/// Results on one page of a list.
const PAGE_MAX: usize = 1_000;

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Only what comes after this token.
    pub after: Option<String>,
    /// At most so many results.
    pub count: usize,
    /// Whether the caller asked for pages: only then a token is returned.
    pub paged: bool,
}

/// A message to send.
#[derive(Debug)]
pub(crate) struct Send {
    /// What to send.
    pub content: Content,
    /// `DelaySeconds`, if the sender gave one.
    pub delay_seconds: Option<u64>,
}

/// One entry of a batch: its id, and the request or its refusal.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// The caller's id for it.
    pub id: String,
    /// What is asked, or why it cannot be.
    pub request: Result<T, SqsError>,
}

/// A receive.
#[derive(Debug)]
pub(crate) struct Receive {
    /// The queue's name.
    pub queue: String,
    /// At most so many messages.
    pub count: usize,
    /// How long they are hidden, in seconds, if not as long as the queue says.
    pub visibility_seconds: Option<u64>,
    /// How long to wait for the first, in seconds, if not as long as the queue says.
    pub wait_seconds: Option<u64>,
    /// Which system attributes to return.
    pub system_names: Vec<String>,
    /// Which message attributes to return: names, `All`, or prefixes that end in `.*`.
    pub attribute_names: Vec<String>,
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum Request {
    CancelMove {
        handle: String,
    },
    ChangeVisibility {
        queue: String,
        handle: String,
        seconds: u64,
    },
    ChangeVisibilityBatch {
        queue: String,
        entries: Vec<Entry<(String, u64)>>,
    },
    CreateQueue {
        name: String,
        attributes: BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
    },
    Delete {
        queue: String,
        handle: String,
    },
    DeleteBatch {
        queue: String,
        entries: Vec<Entry<String>>,
    },
    DeleteQueue {
        queue: String,
    },
    GetAttributes {
        queue: String,
        names: Vec<String>,
    },
    GetUrl {
        name: String,
    },
    ListMoves {
        source_arn: String,
        count: usize,
    },
    ListQueues {
        prefix: String,
        page: Page,
    },
    ListSources {
        queue: String,
        page: Page,
    },
    ListTags {
        queue: String,
    },
    Purge {
        queue: String,
    },
    Receive(Receive),
    Send {
        queue: String,
        send: Send,
    },
    SendBatch {
        queue: String,
        entries: Vec<Entry<Send>>,
    },
    SetAttributes {
        queue: String,
        attributes: BTreeMap<String, String>,
    },
    StartMove {
        source_arn: String,
        destination_arn: Option<String>,
        per_second: Option<u64>,
    },
    Tag {
        queue: String,
        tags: BTreeMap<String, String>,
    },
    Untag {
        queue: String,
        keys: Vec<String>,
    },
}

/// Every field any operation has; each operation takes the ones it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Fields {
    attribute_names: Option<Vec<String>>,
    attributes: Option<BTreeMap<String, String>>,
    delay_seconds: Option<i64>,
    destination_arn: Option<String>,
    entries: Option<Vec<EntryFields>>,
    max_number_of_messages: Option<i64>,
    max_number_of_messages_per_second: Option<i64>,
    max_results: Option<i64>,
    message_attribute_names: Option<Vec<String>>,
    message_attributes: Option<Attributes>,
    message_body: Option<String>,
    message_deduplication_id: Option<String>,
    message_group_id: Option<String>,
    message_system_attribute_names: Option<Vec<String>>,
    message_system_attributes: Option<Attributes>,
    next_token: Option<String>,
    queue_name: Option<String>,
    queue_name_prefix: Option<String>,
    queue_url: Option<String>,
    receipt_handle: Option<String>,
    source_arn: Option<String>,
    tag_keys: Option<Vec<String>>,
    #[serde(alias = "tags")]
    tags: Option<BTreeMap<String, String>>,
    task_handle: Option<String>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
}

/// Every field the entry of any batch has.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct EntryFields {
    id: Option<String>,
    delay_seconds: Option<i64>,
    message_attributes: Option<Attributes>,
    message_body: Option<String>,
    message_deduplication_id: Option<String>,
    message_group_id: Option<String>,
    message_system_attributes: Option<Attributes>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<i64>,
}

impl Request {
    /// Reads a request: `operation` is what follows `AmazonSQS.` in the `X-Amz-Target` header.
    ///
    /// # Errors
    /// Everything that can be refused without knowing the queues.
    pub fn parse(operation: &str, body: &[u8]) -> Result<Self, SqsError> {
        let body = if body.is_empty() { b"{}" } else { body };
        let mut fields: Fields = serde_json::from_slice(body)
            .map_err(|error| SqsError::new(ErrorKind::Serialization, error.to_string()))?;
        let fields = &mut fields;
        Ok(match operation {
            "CancelMessageMoveTask" => {
                Request::CancelMove { handle: required(&mut fields.task_handle, "TaskHandle")? }
            }
            "ChangeMessageVisibility" => Request::ChangeVisibility {
                queue: fields.queue()?,
                handle: required(&mut fields.receipt_handle, "ReceiptHandle")?,
                seconds: required_visibility(fields.visibility_timeout)?,
            },
            "ChangeMessageVisibilityBatch" => Request::ChangeVisibilityBatch {
                queue: fields.queue()?,
                entries: fields.batch(|entry| {
                    let seconds = required_visibility(entry.visibility_timeout)?;
                    Ok((required(&mut entry.receipt_handle, "ReceiptHandle")?, seconds))
                })?,
            },
            "CreateQueue" => Request::CreateQueue {
                name: required(&mut fields.queue_name, "QueueName")?,
                attributes: fields.attributes.take().unwrap_or_default(),
                tags: fields.tags.take().unwrap_or_default(),
            },
            "DeleteMessage" => Request::Delete {
                queue: fields.queue()?,
                handle: required(&mut fields.receipt_handle, "ReceiptHandle")?,
            },
            "DeleteMessageBatch" => Request::DeleteBatch {
                queue: fields.queue()?,
                entries: fields
                    .batch(|entry| required(&mut entry.receipt_handle, "ReceiptHandle"))?,
            },
            "DeleteQueue" => Request::DeleteQueue { queue: fields.queue()? },
            "GetQueueAttributes" => Request::GetAttributes {
                queue: fields.queue()?,
                names: fields.attribute_names.take().unwrap_or_default(),
            },
            "GetQueueUrl" => {
                Request::GetUrl { name: required(&mut fields.queue_name, "QueueName")? }
            }
            "ListDeadLetterSourceQueues" => {
                Request::ListSources { queue: fields.queue()?, page: fields.page()? }
            }
            "ListMessageMoveTasks" => Request::ListMoves {
                source_arn: required(&mut fields.source_arn, "SourceArn")?,
                count: bounded(fields.max_results, "MaxResults", 1, 10)?.unwrap_or(1) as usize,
            },
            "ListQueueTags" => Request::ListTags { queue: fields.queue()? },
            "ListQueues" => Request::ListQueues {
                prefix: fields.queue_name_prefix.take().unwrap_or_default(),
                page: fields.page()?,
            },
            "PurgeQueue" => Request::Purge { queue: fields.queue()? },
            "ReceiveMessage" => Request::Receive(fields.receive()?),
            "SendMessage" => Request::Send { queue: fields.queue()?, send: fields.send()? },
            "SendMessageBatch" => fields.send_batch()?,
            "SetQueueAttributes" => Request::SetAttributes {
                queue: fields.queue()?,
                attributes: required(&mut fields.attributes, "Attributes")?,
            },
            "StartMessageMoveTask" => Request::StartMove {
                source_arn: required(&mut fields.source_arn, "SourceArn")?,
                destination_arn: fields.destination_arn.take(),
                per_second: bounded(
                    fields.max_number_of_messages_per_second,
                    "MaxNumberOfMessagesPerSecond",
                    1,
                    500,
                )?,
            },
            "TagQueue" => {
                Request::Tag { queue: fields.queue()?, tags: required(&mut fields.tags, "Tags")? }
            }
            "UntagQueue" => Request::Untag {
                queue: fields.queue()?,
                keys: required(&mut fields.tag_keys, "TagKeys")?,
            },
            "AddPermission" | "RemovePermission" => {
                return Err(SqsError::new(
                    ErrorKind::UnsupportedOperation,
                    "Nobody's permissions are checked here, so none are kept.",
                ));
            }
            _ => {
                return Err(SqsError::new(
                    ErrorKind::UnknownOperation,
                    format!("The operation {operation} does not exist."),
                ));
            }
        })
    }
}

impl Fields {
    /// The queue's name: the last part of its URL. The rest of the URL is not looked at, so
    /// that a URL stays good when the server comes back on another port.
    fn queue(&mut self) -> Result<String, SqsError> {
        let url = required(&mut self.queue_url, "QueueUrl")?;
        match url.rsplit_once('/') {
            Some((before, name)) if !before.is_empty() && !name.is_empty() => Ok(name.to_owned()),
            Some(_) | None => Err(SqsError::new(
                ErrorKind::InvalidAddress,
                format!("The address {url} is not valid for this endpoint."),
            )),
        }
    }

    fn page(&mut self) -> Result<Page, SqsError> {
        let count = bounded(self.max_results, "MaxResults", 1, PAGE_MAX as u64)?;
        Ok(Page {
            after: self.next_token.take(),
            count: count.map_or(PAGE_MAX, |count| count as usize),
            paged: count.is_some(),
        })
    }

    fn receive(&mut self) -> Result<Receive, SqsError> {
        // `AttributeNames` is the older name of `MessageSystemAttributeNames`.
        let mut system_names = self.message_system_attribute_names.take().unwrap_or_default();
        system_names.extend(self.attribute_names.take().unwrap_or_default());
        Ok(Receive {
            queue: self.queue()?,
            count: bounded(self.max_number_of_messages, "MaxNumberOfMessages", 1, BATCH_MAX as u64)?
                .unwrap_or(1) as usize,
            visibility_seconds: visibility(self.visibility_timeout)?,
            wait_seconds: bounded(self.wait_time_seconds, "WaitTimeSeconds", 0, WAIT_SECONDS_MAX)?,
            system_names,
            attribute_names: self.message_attribute_names.take().unwrap_or_default(),
        })
    }

    fn send(&mut self) -> Result<Send, SqsError> {
        send(&mut EntryFields {
            id: None,
            delay_seconds: self.delay_seconds,
            message_attributes: self.message_attributes.take(),
            message_body: self.message_body.take(),
            message_deduplication_id: self.message_deduplication_id.take(),
            message_group_id: self.message_group_id.take(),
            message_system_attributes: self.message_system_attributes.take(),
            receipt_handle: None,
            visibility_timeout: None,
        })
    }

    fn send_batch(&mut self) -> Result<Request, SqsError> {
        let entries = self.batch(send)?;
        let bytes: usize = entries
            .iter()
            .filter_map(|entry| entry.request.as_ref().ok())
            .map(|send| send.content.size_bytes())
            .sum();
        if bytes as u64 > MESSAGE_BYTES_MAX {
            return Err(SqsError::new(
                ErrorKind::BatchRequestTooLong,
                format!(
                    "Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes. You have sent {bytes} bytes."
                ),
            ));
        }
        Ok(Request::SendBatch { queue: self.queue()?, entries })
    }

    fn batch<T>(
        &mut self,
        mut read: impl FnMut(&mut EntryFields) -> Result<T, SqsError>,
    ) -> Result<Vec<Entry<T>>, SqsError> {
        let entries = self.entries.take().unwrap_or_default();
        if entries.is_empty() {
            return Err(SqsError::new(
                ErrorKind::EmptyBatchRequest,
                "There should be at least one entry in the request.",
            ));
        }
        if entries.len() > BATCH_MAX {
            return Err(SqsError::new(
                ErrorKind::TooManyEntriesInBatchRequest,
                format!(
                    "Maximum number of entries per request are {BATCH_MAX}. You have sent {}.",
                    entries.len()
                ),
            ));
        }
        let mut seen = HashSet::new();
        let mut batch = Vec::with_capacity(entries.len());
        for mut fields in entries {
            let id = required(&mut fields.id, "Id")?;
            let well_formed = (1..=80).contains(&id.len())
                && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
            if !well_formed {
                return Err(SqsError::new(
                    ErrorKind::InvalidBatchEntryId,
                    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
                ));
            }
            if !seen.insert(id.clone()) {
                return Err(SqsError::new(
                    ErrorKind::BatchEntryIdsNotDistinct,
                    format!("Id {id} repeated."),
                ));
            }
            batch.push(Entry { id, request: read(&mut fields) });
        }
        Ok(batch)
    }
}

fn send(fields: &mut EntryFields) -> Result<Send, SqsError> {
    Ok(Send {
        delay_seconds: bounded(fields.delay_seconds, "DelaySeconds", 0, DELAY_SECONDS_MAX)?,
        content: Content::new(
            fields.message_body.take(),
            fields.message_attributes.take().unwrap_or_default(),
            &fields.message_system_attributes.take().unwrap_or_default(),
            fields.message_group_id.take(),
            fields.message_deduplication_id.take(),
        )?,
    })
}

fn required<T>(field: &mut Option<T>, name: &str) -> Result<T, SqsError> {
    field.take().ok_or_else(|| SqsError::missing(name))
}

fn bounded(value: Option<i64>, name: &str, least: u64, most: u64) -> Result<Option<u64>, SqsError> {
    let Some(value) = value else { return Ok(None) };
    match u64::try_from(value) {
        Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
        Ok(_) | Err(_) => Err(SqsError::invalid_value(
            value,
            name,
            &format!("Must be between {least} and {most}, if provided."),
        )),
    }
}

fn visibility(value: Option<i64>) -> Result<Option<u64>, SqsError> {
    bounded(value, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX)
}

fn required_visibility(value: Option<i64>) -> Result<u64, SqsError> {
    visibility(value)?.ok_or_else(|| SqsError::missing("VisibilityTimeout"))
}

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
    /// Its place in a FIFO queue.
    pub sequence_number: Option<String>,
}

/// One delivered message.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The message as it was delivered.
    pub message: Message,
    /// Its receipt handle.
    pub handle: String,
    /// Whether it comes from a FIFO queue.
    pub fifo: bool,
}

/// The state of one move task.
#[derive(Debug, Clone)]
pub(crate) struct MoveStatus {
    /// Its handle, while it runs.
    pub handle: Option<String>,
    /// `RUNNING`, `COMPLETED`, `CANCELLED` or `FAILED`.
    pub status: &'static str,
    /// Where the messages come from.
    pub source_arn: String,
    /// Where they go, if not each to where it came from.
    pub destination_arn: Option<String>,
    /// At most so many a second.
    pub per_second: Option<u64>,
    /// How many were moved.
    pub moved: u64,
    /// How many there were to move.
    pub to_move: u64,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it was started, Unix milliseconds.
    pub started_ms: u64,
}

/// What is answered.
#[derive(Debug)]
pub(crate) enum Reply {
    Attributes(BTreeMap<String, String>),
    Batch(Vec<(String, Result<(), SqsError>)>),
    Done,
    MoveCancelled { moved: u64 },
    MoveStarted { handle: String },
    Moves(Vec<MoveStatus>),
    Received(Vec<Delivery>),
    Sent(Sent),
    SentBatch(Vec<(String, Result<Sent, SqsError>)>),
    SourceUrls { urls: Vec<String>, next: Option<String> },
    Tags(BTreeMap<String, String>),
    Url(String),
    Urls { urls: Vec<String>, next: Option<String> },
}

impl Reply {
    /// The reply's JSON. `asked` says which attributes a receive wants.
    pub fn into_json(self, asked: Option<&Receive>) -> Value {
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
                "Messages": deliveries.into_iter().map(|one| delivery(one, asked)).collect::<Vec<_>>(),
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

/// The number a FIFO queue gave a message: twenty digits, growing.
pub(crate) fn sequence_number(seq: u64) -> String {
    format!("{seq:020}")
}

fn delivery(delivery: Delivery, asked: Option<&Receive>) -> Value {
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
        asked.is_some_and(|asked| {
            asked.system_names.iter().any(|wanted| wanted == "All" || wanted == name)
        })
    });
    if !system.is_empty() {
        body.insert("Attributes".to_owned(), Value::Object(system));
    }

    let attributes: Attributes = content
        .attributes
        .iter()
        .filter(|(name, _)| {
            asked.is_some_and(|asked| wants_attribute(&asked.attribute_names, name))
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

fn wants_attribute(wanted: &[String], name: &str) -> bool {
    wanted.iter().any(|wanted| {
        wanted == "All"
            || wanted == name
            || wanted.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
    })
}
