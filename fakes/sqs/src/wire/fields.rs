//! The fields of a request's JSON, and the checks that each of them passes.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

use super::request::{Entry, Page, Receive, Request, Send};
use crate::attributes::{
    DELAY_SECONDS_MAX, MESSAGE_BYTES_MAX, VISIBILITY_SECONDS_MAX, WAIT_SECONDS_MAX,
};
use crate::error::{ErrorKind, SqsError};
use crate::message::{Attributes, Content};

/// The most entries of a batch, and the most messages of a receive.
const BATCH_MAX: u16 = 10;

/// The most results on one page of a list.
const PAGE_MAX: u16 = 1_000;

/// Every field any operation has; each operation takes the ones it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Fields {
    pub(super) attribute_names: Option<Vec<String>>,
    pub(super) attributes: Option<BTreeMap<String, String>>,
    pub(super) delay_seconds: Option<i64>,
    pub(super) destination_arn: Option<String>,
    pub(super) entries: Option<Vec<EntryFields>>,
    pub(super) max_number_of_messages: Option<i64>,
    pub(super) max_number_of_messages_per_second: Option<i64>,
    pub(super) max_results: Option<i64>,
    pub(super) message_attribute_names: Option<Vec<String>>,
    pub(super) message_attributes: Option<Attributes>,
    pub(super) message_body: Option<String>,
    pub(super) message_deduplication_id: Option<String>,
    pub(super) message_group_id: Option<String>,
    pub(super) message_system_attribute_names: Option<Vec<String>>,
    pub(super) message_system_attributes: Option<Attributes>,
    pub(super) next_token: Option<String>,
    pub(super) queue_name: Option<String>,
    pub(super) queue_name_prefix: Option<String>,
    pub(super) queue_url: Option<String>,
    pub(super) receipt_handle: Option<String>,
    pub(super) source_arn: Option<String>,
    pub(super) tag_keys: Option<Vec<String>>,
    #[serde(alias = "tags")]
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) task_handle: Option<String>,
    pub(super) visibility_timeout: Option<i64>,
    pub(super) wait_time_seconds: Option<i64>,
}

/// Every field the entry of any batch has.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct EntryFields {
    pub(super) id: Option<String>,
    pub(super) delay_seconds: Option<i64>,
    pub(super) message_attributes: Option<Attributes>,
    pub(super) message_body: Option<String>,
    pub(super) message_deduplication_id: Option<String>,
    pub(super) message_group_id: Option<String>,
    pub(super) message_system_attributes: Option<Attributes>,
    pub(super) receipt_handle: Option<String>,
    pub(super) visibility_timeout: Option<i64>,
}

impl Fields {
    /// The queue's name: the last part of its URL. The rest of the URL is not looked at, so
    /// that a URL stays good when the server comes back on another port.
    pub(super) fn queue(&mut self) -> Result<String, SqsError> {
        let url = required(&mut self.queue_url, "QueueUrl")?;
        match url.rsplit_once('/') {
            Some((before, name)) if !before.is_empty() && !name.is_empty() => Ok(name.to_owned()),
            Some(_) | None => Err(SqsError::new(
                ErrorKind::InvalidAddress,
                format!("The address {url} is not valid for this endpoint."),
            )),
        }
    }

    pub(super) fn page(&mut self) -> Result<Page, SqsError> {
        let count = bounded_count(self.max_results, "MaxResults", PAGE_MAX)?;
        Ok(Page {
            after: self.next_token.take(),
            count: count.unwrap_or(usize::from(PAGE_MAX)),
            paged: count.is_some(),
        })
    }

    pub(super) fn receive(&mut self) -> Result<Receive, SqsError> {
        // `AttributeNames` is the older name of `MessageSystemAttributeNames`.
        let mut system_names = self.message_system_attribute_names.take().unwrap_or_default();
        system_names.extend(self.attribute_names.take().unwrap_or_default());
        Ok(Receive {
            queue: self.queue()?,
            count: bounded_count(self.max_number_of_messages, "MaxNumberOfMessages", BATCH_MAX)?
                .unwrap_or(1),
            visibility_seconds: visibility(self.visibility_timeout)?,
            wait_seconds: bounded(self.wait_time_seconds, "WaitTimeSeconds", 0, WAIT_SECONDS_MAX)?,
            system_names,
            attribute_names: self.message_attribute_names.take().unwrap_or_default(),
        })
    }

    pub(super) fn send(&mut self) -> Result<Send, SqsError> {
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

    pub(super) fn send_batch(&mut self) -> Result<Request, SqsError> {
        let entries = self.batch(send)?;
        let bytes: u64 = entries
            .iter()
            .filter_map(|entry| entry.request.as_ref().ok())
            .map(|send| send.content.size_bytes())
            .sum();
        if bytes > MESSAGE_BYTES_MAX {
            return Err(SqsError::new(
                ErrorKind::BatchRequestTooLong,
                format!(
                    "Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes. You have sent {bytes} bytes."
                ),
            ));
        }
        Ok(Request::SendBatch { queue: self.queue()?, entries })
    }

    pub(super) fn batch<T>(
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
        if entries.len() > usize::from(BATCH_MAX) {
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

/// Takes a field that must be there.
pub(super) fn required<T>(field: &mut Option<T>, name: &str) -> Result<T, SqsError> {
    field.take().ok_or_else(|| SqsError::missing(name))
}

/// A number in a range.
///
/// # Errors
/// `InvalidParameterValue` outside of the range.
pub(super) fn bounded(
    value: Option<i64>,
    name: &str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, SqsError> {
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

/// A count from 1 to `most`.
pub(super) fn bounded_count(
    value: Option<i64>,
    name: &str,
    most: u16,
) -> Result<Option<usize>, SqsError> {
    let count = bounded(value, name, 1, u64::from(most))?;
    Ok(count.and_then(|count| usize::try_from(count).ok()))
}

fn visibility(value: Option<i64>) -> Result<Option<u64>, SqsError> {
    bounded(value, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX)
}

pub(super) fn required_visibility(value: Option<i64>) -> Result<u64, SqsError> {
    visibility(value)?.ok_or_else(|| SqsError::missing("VisibilityTimeout"))
}
