//! Changes of the broker's state, in the form in which the file keeps them.

use std::collections::BTreeMap;

use crate::message::{Message, Seq};
use crate::queue::QueueId;

/// A queue as the file keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueRecord {
    /// Its number, unique in the file.
    pub id: QueueId,
    pub name: String,
    /// Time at which it was created, Unix milliseconds.
    pub created_ms: u64,
    /// Time at which its attributes were last set, Unix milliseconds.
    pub modified_ms: u64,
    /// Values of its attributes by name.
    pub attributes: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
}

/// A remembered send of a FIFO queue as the file keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeduplicationRecord {
    pub queue: QueueId,
    /// Deduplication key, unique in the queue.
    pub key: String,
    /// Time at which it was sent, Unix milliseconds.
    pub sent_ms: u64,
    /// The `MessageId` it got.
    pub message_id: String,
    /// The number it got.
    pub seq: Seq,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// A queue is there, or has changed.
    PutQueue(QueueRecord),
    /// A queue is gone, with its messages.
    DropQueue(QueueId),
    /// The messages of a queue are gone.
    Purge(QueueId),
    /// A message is in a queue: new, or come from another.
    PutMessage(QueueId, Box<Message>),
    /// The delivery of a message has changed.
    Delivery {
        seq: Seq,
        /// Time from which it is visible, Unix milliseconds.
        visible_ms: u64,
        receive_count: u32,
        /// Number of receipt handles given out.
        receipt: u32,
        /// Time at which it was first delivered, Unix milliseconds.
        first_receive_ms: Option<u64>,
    },
    /// A message is gone.
    DropMessage(Seq),
    /// A send is remembered.
    Remember(DeduplicationRecord),
    /// A remembered send is forgotten.
    Forget(QueueId, String),
    /// Numbers below this one may have been given out.
    Reserve(Seq),
}

/// Everything the file keeps, as it is loaded at the start.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub queues: Vec<QueueRecord>,
    /// The messages, each with its queue.
    pub messages: Vec<(QueueId, Message)>,
    pub deduplication: Vec<DeduplicationRecord>,
    /// Numbers from this one on were never given out.
    pub next_seq: Seq,
}
