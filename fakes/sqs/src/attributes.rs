//! The attributes of a queue: their names, ranges and defaults.
//!
//! Source: the SetQueueAttributes and GetQueueAttributes pages of the Amazon SQS API Reference.

use std::collections::BTreeMap;

use fake_limits::table::{MESSAGE_BYTES, QUEUE_DELAY, QUEUE_POLL, QUEUE_VISIBILITY};
use serde_json::{Value, json};

use crate::error::{ErrorKind, SqsError};

/// The largest message, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: u64 = MESSAGE_BYTES.count();

/// The longest visibility timeout, in seconds: twelve hours.
pub(crate) const VISIBILITY_SECONDS_MAX: u64 = QUEUE_VISIBILITY.count();

/// The longest delay, in seconds.
pub(crate) const DELAY_SECONDS_MAX: u64 = QUEUE_DELAY.count();

/// The longest poll, in seconds.
pub(crate) const WAIT_SECONDS_MAX: u64 = QUEUE_POLL.count();

/// The dead-letter queue of messages that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RedrivePolicy {
    pub target_arn: String,
    /// Receives after which a message goes there, 1 to 1,000.
    pub max_receive_count: u32,
}

impl RedrivePolicy {
    fn parse(text: &str) -> Option<Self> {
        let policy: Value = serde_json::from_str(text).ok()?;
        let count = match policy.get("maxReceiveCount")? {
            Value::String(text) => text.parse().ok()?,
            Value::Number(number) => number.as_u64()?,
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        Some(RedrivePolicy {
            target_arn: policy.get("deadLetterTargetArn")?.as_str()?.to_owned(),
            max_receive_count: u32::try_from(count)
                .ok()
                .filter(|count| (1..=1_000).contains(count))?,
        })
    }

    fn text(&self) -> String {
        json!({
            "deadLetterTargetArn": self.target_arn,
            "maxReceiveCount": self.max_receive_count,
        })
        .to_string()
    }
}

/// The attributes of a queue that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueAttributes {
    /// `VisibilityTimeout`, seconds.
    pub visibility_seconds: u64,
    /// `DelaySeconds`.
    pub delay_seconds: u64,
    /// `MessageRetentionPeriod`, seconds.
    pub retention_seconds: u64,
    /// `MaximumMessageSize`, bytes.
    pub message_bytes_max: u64,
    /// `ReceiveMessageWaitTimeSeconds`.
    pub wait_seconds: u64,
    /// `RedrivePolicy`.
    pub redrive: Option<RedrivePolicy>,
    /// `FifoQueue`; fixed when the queue is created.
    pub fifo: bool,
    /// `ContentBasedDeduplication`.
    pub content_deduplication: bool,
    /// `DeduplicationScope` is `messageGroup`.
    pub deduplicates_by_group: bool,
    /// Attributes that are stored and have no effect here.
    inert: BTreeMap<String, String>,
}

impl Default for QueueAttributes {
    fn default() -> Self {
        QueueAttributes {
            visibility_seconds: 30,
            delay_seconds: 0,
            retention_seconds: 345_600,
            message_bytes_max: MESSAGE_BYTES_MAX,
            wait_seconds: 0,
            redrive: None,
            fifo: false,
            content_deduplication: false,
            deduplicates_by_group: false,
            inert: BTreeMap::new(),
        }
    }
}

/// Attributes that can be read and not set.
const COMPUTED: [&str; 6] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
];

/// Attributes that can be set.
const SETTABLE: [&str; 15] = [
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "Policy",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "VisibilityTimeout",
];

/// True if an attribute of this name can be read.
pub(crate) fn is_attribute(name: &str) -> bool {
    COMPUTED.contains(&name) || SETTABLE.contains(&name)
}

impl QueueAttributes {
    /// Sets one attribute; an empty policy removes it.
    ///
    /// # Errors
    /// `InvalidAttributeName` for a name that cannot be set, `InvalidAttributeValue` for a
    /// value out of its range, `InvalidParameterValue` for a redrive policy that is none.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SqsError> {
        let refused = || {
            SqsError::new(
                ErrorKind::InvalidAttributeValue,
                format!("Invalid value for the parameter {name}."),
            )
        };
        let number = |least: u64, most: u64| {
            value.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(refused)
        };
        let flag = || value.to_ascii_lowercase().parse::<bool>().map_err(|_| refused());
        match name {
            "VisibilityTimeout" => self.visibility_seconds = number(0, VISIBILITY_SECONDS_MAX)?,
            "DelaySeconds" => self.delay_seconds = number(0, DELAY_SECONDS_MAX)?,
            "MessageRetentionPeriod" => self.retention_seconds = number(60, 1_209_600)?,
            "MaximumMessageSize" => self.message_bytes_max = number(1_024, MESSAGE_BYTES_MAX)?,
            "ReceiveMessageWaitTimeSeconds" => self.wait_seconds = number(0, WAIT_SECONDS_MAX)?,
            "ContentBasedDeduplication" => self.content_deduplication = flag()?,
            "FifoQueue" => self.fifo = flag()?,
            "DeduplicationScope" => {
                self.deduplicates_by_group = match value {
                    "messageGroup" => true,
                    "queue" => false,
                    _ => return Err(refused()),
                }
            }
            "RedrivePolicy" if value.is_empty() => self.redrive = None,
            "RedrivePolicy" => {
                self.redrive = Some(RedrivePolicy::parse(value).ok_or_else(|| {
                    SqsError::invalid_value(
                        value,
                        "RedrivePolicy",
                        "It needs a deadLetterTargetArn and a maxReceiveCount from 1 to 1000.",
                    )
                })?)
            }
            _ if SETTABLE.contains(&name) => {
                if value.is_empty() {
                    self.inert.remove(name);
                } else {
                    self.inert.insert(name.to_owned(), value.to_owned());
                }
            }
            _ => {
                return Err(SqsError::new(
                    ErrorKind::InvalidAttributeName,
                    format!("Unknown Attribute {name}."),
                ));
            }
        }
        Ok(())
    }

    /// Every attribute that can be set, with its value now.
    pub fn values(&self) -> BTreeMap<String, String> {
        let mut values = self.inert.clone();
        let mut put = |name: &str, value: String| values.insert(name.to_owned(), value);
        put("VisibilityTimeout", self.visibility_seconds.to_string());
        put("DelaySeconds", self.delay_seconds.to_string());
        put("MessageRetentionPeriod", self.retention_seconds.to_string());
        put("MaximumMessageSize", self.message_bytes_max.to_string());
        put("ReceiveMessageWaitTimeSeconds", self.wait_seconds.to_string());
        if let Some(redrive) = &self.redrive {
            put("RedrivePolicy", redrive.text());
        }
        if self.fifo {
            put("FifoQueue", "true".to_owned());
            put("ContentBasedDeduplication", self.content_deduplication.to_string());
            let scope = if self.deduplicates_by_group { "messageGroup" } else { "queue" };
            put("DeduplicationScope", scope.to_owned());
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        for (name, value) in [
            ("VisibilityTimeout", "43201"),
            ("VisibilityTimeout", "-1"),
            ("VisibilityTimeout", "soon"),
            ("DelaySeconds", "901"),
            ("MessageRetentionPeriod", "59"),
            ("MessageRetentionPeriod", "1209601"),
            ("MaximumMessageSize", "1023"),
            ("MaximumMessageSize", "1048577"),
            ("ReceiveMessageWaitTimeSeconds", "21"),
            ("FifoQueue", "maybe"),
            ("DeduplicationScope", "world"),
        ] {
            let error = QueueAttributes::default().set(name, value).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidAttributeValue, "{name}={value}");
        }
        for name in ["Colour", "QueueArn", "ApproximateNumberOfMessages"] {
            let error = QueueAttributes::default().set(name, "1").unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidAttributeName, "{name}");
        }
        for policy in [
            "{",
            "{}",
            r#"{"deadLetterTargetArn":"a","maxReceiveCount":0}"#,
            r#"{"deadLetterTargetArn":"a","maxReceiveCount":1001}"#,
            r#"{"deadLetterTargetArn":"a","maxReceiveCount":true}"#,
            r#"{"maxReceiveCount":1}"#,
        ] {
            let error = QueueAttributes::default().set("RedrivePolicy", policy).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParameterValue, "{policy}");
        }
    }

    #[test]
    fn what_was_set_is_given_back_and_can_be_set_again() {
        let mut attributes = QueueAttributes::default();
        for (name, value) in [
            ("VisibilityTimeout", "5"),
            ("DelaySeconds", "900"),
            ("FifoQueue", "true"),
            ("DeduplicationScope", "messageGroup"),
            ("RedrivePolicy", r#"{"maxReceiveCount":"3","deadLetterTargetArn":"arn:x"}"#),
            ("Policy", "{}"),
        ] {
            attributes.set(name, value).unwrap();
        }
        let mut copy = QueueAttributes::default();
        for (name, value) in attributes.values() {
            copy.set(&name, &value).unwrap();
        }
        assert_eq!(copy, attributes);
        let redrive = copy.redrive.clone().unwrap();
        assert_eq!((redrive.target_arn.as_str(), redrive.max_receive_count), ("arn:x", 3));
        copy.set("RedrivePolicy", "").unwrap();
        copy.set("Policy", "").unwrap();
        assert!(copy.redrive.is_none());
        assert!(!copy.values().contains_key("Policy"));
    }
}
