//! A message: the content that never changes and the state of its delivery.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{ErrorKind, SqsError};

/// The number of a message: given in the order of sending, never reused.
pub(crate) type Seq = u64;

/// Message attributes a message may carry.
const ATTRIBUTES_MAX: usize = 10;

/// The typed value of one message attribute, in the form of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct AttributeValue {
    /// `String`, `Number` or `Binary`, with an optional label after a dot.
    pub data_type: Option<String>,
    /// The value of a `String` or a `Number`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_value: Option<String>,
    /// The value of a `Binary`, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_value: Option<String>,
}

impl AttributeValue {
    fn bytes(&self) -> Result<(u8, Vec<u8>), &'static str> {
        let data_type = self.data_type.as_deref().unwrap_or_default();
        match data_type.split('.').next().unwrap_or_default() {
            "String" | "Number" => match self.string_value.as_deref() {
                None | Some("") => Err("must contain a non-empty string value"),
                Some(text) => Ok((1, text.as_bytes().to_vec())),
            },
            "Binary" => match self.binary_value.as_deref() {
                None | Some("") => Err("must contain a non-empty binary value"),
                Some(text) => match BASE64.decode(text) {
                    Ok(bytes) => Ok((2, bytes)),
                    Err(_) => Err("must contain a binary value in base64"),
                },
            },
            _ => Err("must have a type that starts with String, Number or Binary"),
        }
    }
}

/// The attributes of a message by name.
pub(crate) type Attributes = BTreeMap<String, AttributeValue>;

/// Body and attributes as the sender gave them: shared by every delivery and never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub body: String,
    /// MD5 of the body in hex.
    pub body_md5: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
    /// MD5 of the attributes in hex, when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes_md5: Option<String>,
    /// MD5 of the system attributes in hex, when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_attributes_md5: Option<String>,
    /// `AWSTraceHeader`, the one system attribute a sender can give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_header: Option<String>,
    /// `MessageGroupId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `MessageDeduplicationId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication: Option<String>,
}

impl Content {
    /// Checks what the sender gave and takes its digests.
    ///
    /// # Errors
    /// `MissingParameter` without a body, `InvalidMessageContents` for characters outside the
    /// set of the SendMessage page, `InvalidParameterValue` for attributes and ids outside theirs.
    pub fn new(
        body: Option<String>,
        attributes: Attributes,
        system_attributes: &Attributes,
        group: Option<String>,
        deduplication: Option<String>,
    ) -> Result<Self, SqsError> {
        let body = match body {
            None => return Err(SqsError::missing("MessageBody")),
            Some(body) if body.is_empty() => return Err(SqsError::missing("MessageBody")),
            Some(body) => body,
        };
        if !body.chars().all(carried) {
            return Err(SqsError::new(
                ErrorKind::InvalidMessageContents,
                "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to \
                 #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
            ));
        }
        if attributes.len() > ATTRIBUTES_MAX {
            return Err(SqsError::new(
                ErrorKind::InvalidParameterValue,
                format!(
                    "Number of message attributes [{}] exceeds the allowed maximum [{ATTRIBUTES_MAX}].",
                    attributes.len()
                ),
            ));
        }
        for name in attributes.keys() {
            check_attribute_name(name)?;
        }
        for (parameter, id) in
            [("MessageGroupId", &group), ("MessageDeduplicationId", &deduplication)]
        {
            if let Some(id) = id {
                check_id(id, parameter)?;
            }
        }
        let digest = attributes_md5(attributes.iter())?;
        let system_attributes_md5 = attributes_md5(system_attributes.iter())?;
        let trace_header =
            system_attributes.get("AWSTraceHeader").and_then(|value| value.string_value.clone());
        Ok(Content {
            body_md5: format!("{:x}", md5::compute(&body)),
            body,
            attributes,
            attributes_md5: digest,
            system_attributes_md5,
            trace_header,
            group,
            deduplication,
        })
    }

    /// Size in bytes that counts against the limits: the body, and each attribute's name,
    /// type and value.
    pub fn size_bytes(&self) -> u64 {
        let attributes: usize = self
            .attributes
            .iter()
            .map(|(name, value)| {
                let value_bytes = value.bytes().map(|(_, bytes)| bytes.len()).unwrap_or(0);
                name.len() + value.data_type.as_ref().map_or(0, String::len) + value_bytes
            })
            .sum();
        u64::try_from(self.body.len() + attributes).unwrap_or(u64::MAX)
    }

    /// The deduplication id of a queue that deduplicates by content: the SHA-256 of the body.
    pub fn content_deduplication(&self) -> String {
        hex(&Sha256::digest(self.body.as_bytes()))
    }
}

/// MD5 over a set of attributes in the order of their names, as the developer guide's
/// "Calculating the MD5 message digest for message attributes" lays it out; none for none.
///
/// # Errors
/// `InvalidParameterValue` for an attribute without a value of its type.
pub(crate) fn attributes_md5<'a>(
    attributes: impl Iterator<Item = (&'a String, &'a AttributeValue)>,
) -> Result<Option<String>, SqsError> {
    let mut context = md5::Context::new();
    let mut any = false;
    let put = |context: &mut md5::Context, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        context.consume(length.to_be_bytes());
        context.consume(bytes);
    };
    for (name, value) in attributes {
        any = true;
        let (transport, bytes) = value.bytes().map_err(|reason| {
            SqsError::new(
                ErrorKind::InvalidParameterValue,
                format!("The message attribute '{name}' {reason}."),
            )
        })?;
        put(&mut context, name.as_bytes());
        put(&mut context, value.data_type.as_deref().unwrap_or_default().as_bytes());
        context.consume([transport]);
        put(&mut context, &bytes);
    }
    Ok(any.then(|| format!("{:x}", context.compute())))
}

fn carried(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn check_attribute_name(name: &str) -> Result<(), SqsError> {
    let lower = name.to_ascii_lowercase();
    let well_formed = (1..=256).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && !lower.starts_with("aws.")
        && !lower.starts_with("amazon.");
    if well_formed {
        return Ok(());
    }
    Err(SqsError::invalid_value(
        name,
        "MessageAttributeName",
        "A name has 1 to 256 letters, digits, underscores, hyphens and single inner dots, and does not start with AWS. or Amazon.",
    ))
}

fn check_id(id: &str, parameter: &str) -> Result<(), SqsError> {
    if (1..=128).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(());
    }
    Err(SqsError::invalid_value(
        id,
        parameter,
        "It can only include alphanumeric and punctuation characters. 1 to 128 in length.",
    ))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The index of its queue in which a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It may be delivered (in a FIFO queue: once it is at the head of a free group).
    Ready,
    /// Sent with a delay that has not run out.
    Delayed,
    /// Delivered, and hidden until its visibility timeout runs out.
    InFlight,
}

/// One message and how far its delivery has come.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// Its number, unique in the server.
    pub seq: Seq,
    /// Its `MessageId`.
    pub id: Arc<str>,
    pub content: Arc<Content>,
    /// Time at which it was sent, Unix milliseconds.
    pub sent_ms: u64,
    /// Time from which it is visible, Unix milliseconds.
    pub visible_ms: u64,
    /// Number of deliveries, which the redrive policy limits.
    pub receive_count: u32,
    /// Number of receipt handles given out: unlike the count, it is never reset.
    pub receipt: u32,
    /// Time at which it was first delivered, Unix milliseconds.
    pub first_receive_ms: Option<u64>,
    /// The ARN of the queue it was dead-lettered from.
    pub source: Option<Arc<str>>,
    /// True if it is the copy that a duplicated delivery left behind.
    pub copy: bool,
    /// The index of its queue in which it is.
    pub place: Place,
}

impl Message {
    /// A message that was just sent and becomes visible at `visible_ms`.
    pub fn sent(
        seq: Seq,
        id: Arc<str>,
        content: Arc<Content>,
        now_ms: u64,
        visible_ms: u64,
    ) -> Self {
        Message {
            seq,
            id,
            content,
            sent_ms: now_ms,
            visible_ms,
            receive_count: 0,
            receipt: 0,
            first_receive_ms: None,
            source: None,
            copy: false,
            place: Place::Ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> AttributeValue {
        AttributeValue {
            data_type: Some("String".into()),
            string_value: Some(value.into()),
            binary_value: None,
        }
    }

    fn content(body: &str, attributes: Attributes) -> Result<Content, SqsError> {
        Content::new(Some(body.into()), attributes, &Attributes::new(), None, None)
    }

    #[test]
    fn digests_are_those_of_the_service() {
        let attributes = Attributes::from([
            ("k".to_owned(), text("v")),
            (
                "b".to_owned(),
                AttributeValue {
                    data_type: Some("Binary".into()),
                    string_value: None,
                    binary_value: Some("AAEC".into()),
                },
            ),
        ]);
        let content = content("hello", attributes).unwrap();
        assert_eq!(content.body_md5, "5d41402abc4b2a76b9719d911017c592");
        // Taken by hand over: 1 "b" 6 "Binary" 0x02 3 000102, 1 "k" 6 "String" 0x01 1 "v".
        let mut bytes = vec![0, 0, 0, 1, b'b', 0, 0, 0, 6];
        bytes.extend(b"Binary\x02\x00\x00\x00\x03\x00\x01\x02");
        bytes.extend(b"\x00\x00\x00\x01k\x00\x00\x00\x06String\x01\x00\x00\x00\x01v");
        assert_eq!(content.attributes_md5, Some(format!("{:x}", md5::compute(bytes))));
        assert_eq!(content.size_bytes(), 5 + (1 + 6 + 3) + (1 + 6 + 1));
    }

    #[test]
    fn content_that_sqs_refuses_is_refused() {
        let kind = |result: Result<Content, SqsError>| result.unwrap_err().kind;
        assert_eq!(kind(content("", Attributes::new())), ErrorKind::MissingParameter);
        assert_eq!(kind(content("a\u{1}", Attributes::new())), ErrorKind::InvalidMessageContents);
        assert_eq!(
            kind(content("a\u{ffff}", Attributes::new())),
            ErrorKind::InvalidMessageContents
        );
        for (name, value) in [
            ("AWS.x", text("v")),
            ("a..b", text("v")),
            ("", text("v")),
            ("a b", text("v")),
            ("empty", text("")),
            ("type", AttributeValue { data_type: Some("Text".into()), ..text("v") }),
            (
                "binary",
                AttributeValue {
                    data_type: Some("Binary".into()),
                    binary_value: Some("!".into()),
                    ..text("v")
                },
            ),
        ] {
            let attributes = Attributes::from([(name.to_owned(), value)]);
            assert_eq!(kind(content("x", attributes)), ErrorKind::InvalidParameterValue, "{name}");
        }
        let many = (0..11).map(|n| (format!("a{n}"), text("v"))).collect();
        assert_eq!(kind(content("x", many)), ErrorKind::InvalidParameterValue);
        for id in ["", "with space", &"x".repeat(129)] {
            let result = Content::new(
                Some("x".into()),
                Attributes::new(),
                &Attributes::new(),
                Some(id.into()),
                None,
            );
            assert_eq!(kind(result), ErrorKind::InvalidParameterValue, "{id}");
        }
        assert!(content("tab\t line\n ünïcode \u{10ffff}", Attributes::new()).is_ok());
    }
}
