//! Requests: one variant an operation.

use std::collections::BTreeMap;

use super::fields::{Fields, bounded, bounded_count, required, required_visibility};
use crate::error::{ErrorKind, SqsError};
use crate::message::Content;

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Only results after this token are on the page.
    pub after: Option<String>,
    /// The most results, 1 to 1,000.
    pub count: usize,
    /// Whether the caller asked for pages; only then a token is returned.
    pub paged: bool,
}

/// A message to send.
#[derive(Debug)]
pub(crate) struct Send {
    pub content: Content,
    /// `DelaySeconds`, if the sender gave one.
    pub delay_seconds: Option<u64>,
}

/// One entry of a batch: its id, and the request or its refusal.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// The caller's id of the entry, unique in its batch.
    pub id: String,
    /// The request, or its refusal.
    pub request: Result<T, SqsError>,
}

#[derive(Debug)]
pub(crate) struct Receive {
    pub queue: String,
    /// The most messages, 1 to 10.
    pub count: usize,
    /// Visibility timeout in seconds; `None` takes the queue's.
    pub visibility_seconds: Option<u64>,
    /// Time to wait for the first message, in seconds; `None` takes the queue's.
    pub wait_seconds: Option<u64>,
    /// Names of the system attributes to return, or `All`.
    pub system_names: Vec<String>,
    /// Message attributes to return: names, `All`, or prefixes that end in `.*`.
    pub attribute_names: Vec<String>,
}

/// A request: one variant an operation.
#[derive(Debug)]
pub(crate) enum Request {
    /// `CancelMessageMoveTask`.
    CancelMove { handle: String },
    /// `ChangeMessageVisibility`, in seconds from now.
    ChangeVisibility { queue: String, handle: String, seconds: u64 },
    /// `ChangeMessageVisibilityBatch`: receipt handles and seconds from now.
    ChangeVisibilityBatch { queue: String, entries: Vec<Entry<(String, u64)>> },
    /// `CreateQueue`.
    CreateQueue {
        name: String,
        attributes: BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
    },
    /// `DeleteMessage`.
    Delete { queue: String, handle: String },
    /// `DeleteMessageBatch`: receipt handles.
    DeleteBatch { queue: String, entries: Vec<Entry<String>> },
    /// `DeleteQueue`.
    DeleteQueue { queue: String },
    /// `GetQueueAttributes`.
    GetAttributes { queue: String, names: Vec<String> },
    /// `GetQueueUrl`.
    GetUrl { name: String },
    /// `ListMessageMoveTasks`.
    ListMoves { source_arn: String, count: usize },
    /// `ListQueues`.
    ListQueues { prefix: String, page: Page },
    /// `ListDeadLetterSourceQueues`.
    ListSources { queue: String, page: Page },
    /// `ListQueueTags`.
    ListTags { queue: String },
    /// `PurgeQueue`.
    Purge { queue: String },
    /// `ReceiveMessage`.
    Receive(Receive),
    /// `SendMessage`.
    Send { queue: String, send: Send },
    /// `SendMessageBatch`.
    SendBatch { queue: String, entries: Vec<Entry<Send>> },
    /// `SetQueueAttributes`.
    SetAttributes { queue: String, attributes: BTreeMap<String, String> },
    /// `StartMessageMoveTask`, at most `per_second` messages a second.
    StartMove { source_arn: String, destination_arn: Option<String>, per_second: Option<u64> },
    /// `TagQueue`.
    Tag { queue: String, tags: BTreeMap<String, String> },
    /// `UntagQueue`.
    Untag { queue: String, keys: Vec<String> },
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
        if let Some(request) = Self::parse_message(operation, fields)? {
            return Ok(request);
        }
        if let Some(request) = Self::parse_queue(operation, fields)? {
            return Ok(request);
        }
        if let Some(request) = Self::parse_move_task(operation, fields)? {
            return Ok(request);
        }
        Err(match operation {
            "AddPermission" | "RemovePermission" => SqsError::new(
                ErrorKind::UnsupportedOperation,
                "Nobody's permissions are checked here, so none are kept.",
            ),
            _ => SqsError::new(
                ErrorKind::UnknownOperation,
                format!("The operation {operation} does not exist."),
            ),
        })
    }

    /// An operation on messages; `None` for any other operation.
    fn parse_message(operation: &str, fields: &mut Fields) -> Result<Option<Self>, SqsError> {
        Ok(Some(match operation {
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
            "DeleteMessage" => Request::Delete {
                queue: fields.queue()?,
                handle: required(&mut fields.receipt_handle, "ReceiptHandle")?,
            },
            "DeleteMessageBatch" => Request::DeleteBatch {
                queue: fields.queue()?,
                entries: fields
                    .batch(|entry| required(&mut entry.receipt_handle, "ReceiptHandle"))?,
            },
            "ReceiveMessage" => Request::Receive(fields.receive()?),
            "SendMessage" => Request::Send { queue: fields.queue()?, send: fields.send()? },
            "SendMessageBatch" => fields.send_batch()?,
            _ => return Ok(None),
        }))
    }

    /// An operation on a queue as a whole; `None` for any other operation.
    fn parse_queue(operation: &str, fields: &mut Fields) -> Result<Option<Self>, SqsError> {
        Ok(Some(match operation {
            "CreateQueue" => Request::CreateQueue {
                name: required(&mut fields.queue_name, "QueueName")?,
                attributes: fields.attributes.take().unwrap_or_default(),
                tags: fields.tags.take().unwrap_or_default(),
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
            "ListQueueTags" => Request::ListTags { queue: fields.queue()? },
            "ListQueues" => Request::ListQueues {
                prefix: fields.queue_name_prefix.take().unwrap_or_default(),
                page: fields.page()?,
            },
            "PurgeQueue" => Request::Purge { queue: fields.queue()? },
            "SetQueueAttributes" => Request::SetAttributes {
                queue: fields.queue()?,
                attributes: required(&mut fields.attributes, "Attributes")?,
            },
            "TagQueue" => {
                Request::Tag { queue: fields.queue()?, tags: required(&mut fields.tags, "Tags")? }
            }
            "UntagQueue" => Request::Untag {
                queue: fields.queue()?,
                keys: required(&mut fields.tag_keys, "TagKeys")?,
            },
            _ => return Ok(None),
        }))
    }

    /// An operation on move tasks; `None` for any other operation.
    fn parse_move_task(operation: &str, fields: &mut Fields) -> Result<Option<Self>, SqsError> {
        Ok(Some(match operation {
            "CancelMessageMoveTask" => {
                Request::CancelMove { handle: required(&mut fields.task_handle, "TaskHandle")? }
            }
            "ListMessageMoveTasks" => Request::ListMoves {
                source_arn: required(&mut fields.source_arn, "SourceArn")?,
                count: bounded_count(fields.max_results, "MaxResults", 10)?.unwrap_or(1),
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
            _ => return Ok(None),
        }))
    }
}
