//! The outbox of one queue: messages that are sent while a request to SQS is under way go together
//! in the next request.
//!
//! A sender gets the outcome of its own message, and only once SQS has answered: no message is lost that a
//! request of its own would not lose. Alone, as in a function with one invocation at a time, a
//! message goes at once and by itself; in a process with many, ten of them cost hardly more than one.
//! A message waits at most for one request before its own, so twice the time limit of a call bounds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use tokio::sync::oneshot;

use crate::dynamodb::errors::failure;
use engine::ports::{StoreError, Stored};

/// Most messages of one `SendMessageBatch` (a quota of SQS).
/// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
const MAX_BATCH_ENTRIES: usize = 10;
/// Most bytes of a message that the engine sends: a test writes the longest.
pub(super) const MAX_MESSAGE_BYTES: usize = 1024;
/// Most bytes of one request, all messages together: 256 KiB, the quota of SQS until 2025 and still
/// that of servers which emulate it.
const MAX_REQUEST_BYTES: usize = 256 * 1024;

const _: () = assert!(MAX_BATCH_ENTRIES * MAX_MESSAGE_BYTES <= MAX_REQUEST_BYTES);

/// The messages of one queue. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    client: Client,
    url: Arc<str>,
    backlog: Arc<Mutex<Backlog>>,
}

/// The messages that no request has taken yet.
#[derive(Debug, Default)]
struct Backlog {
    messages: Vec<Outgoing>,
    is_sending: bool,
}

impl Backlog {
    /// The messages of the next request, if one should begin now: for a message that finds nothing
    /// under way, and whenever a request is full.
    fn begin(&mut self) -> Option<Vec<Outgoing>> {
        let is_time = !self.is_sending || self.messages.len() >= MAX_BATCH_ENTRIES;
        if self.messages.is_empty() || !is_time {
            return None;
        }
        self.is_sending = true;
        let count = self.messages.len().min(MAX_BATCH_ENTRIES);
        Some(self.messages.drain(..count).collect())
    }

    /// Says that a request has ended.
    fn end(&mut self) {
        self.is_sending = false;
    }
}

/// A message that is to be sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) body: String,
    pub(super) delay_seconds: Option<i32>,
    /// Where it belongs in a FIFO queue.
    pub(super) group: Option<Group>,
}

/// Where a message belongs in a FIFO queue, of which each has a group and is recognised when it is sent again within
/// five minutes.
/// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html>
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) deduplication: String,
}

/// A message on its way out, with the channel on which its sender hears what became of it.
#[derive(Debug)]
struct Outgoing {
    sent: Sent,
    answer: oneshot::Sender<Stored<()>>,
}

impl Outbox {
    pub(super) fn new(client: Client, url: String) -> Self {
        Self { client, url: url.into(), backlog: Arc::default() }
    }

    /// Sends a message; returns when SQS has it.
    pub(super) async fn send(&self, sent: Sent) -> Stored<()> {
        let (answer, answered) = oneshot::channel();
        let messages = {
            let mut backlog = self.backlog();
            backlog.messages.push(Outgoing { sent, answer });
            backlog.begin()
        };
        if let Some(messages) = messages {
            // In a task of its own: others wait for it too, and go on when this sender gives up.
            tokio::spawn(self.clone().deliver(messages));
        }
        let lost = || StoreError::Unknown("the task that sends messages is gone".to_owned());
        answered.await.unwrap_or_else(|_dropped| Err(lost()))
    }

    async fn deliver(self, messages: Vec<Outgoing>) {
        let mut next = Some(messages);
        while let Some(messages) = next {
            // However this ends, the next sender must not wait for it.
            let ended = Ended(&self.backlog);
            self.request(messages).await;
            drop(ended);
            next = self.backlog().begin();
        }
    }

    async fn request(&self, messages: Vec<Outgoing>) {
        match <[Outgoing; 1]>::try_from(messages) {
            Ok([message]) => self.request_one(message).await,
            Err(messages) => self.request_many(messages).await,
        }
    }

    async fn request_one(&self, message: Outgoing) {
        let Outgoing { sent: Sent { body, delay_seconds, group }, answer } = message;
        let (group, deduplication) = group.map(|it| (it.name, it.deduplication)).unzip();
        let send = self.client.send_message().queue_url(&*self.url).message_body(body);
        let send = send.set_message_group_id(group).set_message_deduplication_id(deduplication);
        let sent = send.set_delay_seconds(delay_seconds).send().await;
        let sent = sent.map(|_| ()).map_err(|error| failure(&error).of_write());
        // Nobody may wait any more.
        let _unheard = answer.send(sent);
    }

    async fn request_many(&self, messages: Vec<Outgoing>) {
        let mut entries = Vec::with_capacity(messages.len());
        let mut answers = Vec::with_capacity(messages.len());
        for (index, Outgoing { sent, answer }) in messages.into_iter().enumerate() {
            let Sent { body, delay_seconds, group } = sent;
            let (group, deduplication) = group.map(|it| (it.name, it.deduplication)).unzip();
            let entry = SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(body)
                .set_delay_seconds(delay_seconds)
                .set_message_group_id(group)
                .set_message_deduplication_id(deduplication)
                .build();
            match entry {
                Ok(entry) => {
                    entries.push(entry);
                    answers.push((index.to_string(), answer));
                }
                Err(error) => {
                    let _unheard = answer.send(Err(StoreError::Contract(error.to_string())));
                }
            }
        }
        let send = self.client.send_message_batch().queue_url(&*self.url);
        match send.set_entries(Some(entries)).send().await {
            Err(error) => {
                let error = failure(&error).of_write();
                for (_, answer) in answers {
                    let _unheard = answer.send(Err(error.clone()));
                }
            }
            Ok(done) => {
                for (id, answer) in answers {
                    let is_sent = done.successful().iter().any(|entry| entry.id() == id);
                    let failed = done.failed().iter().find(|entry| entry.id() == id);
                    let sent = match failed {
                        _ if is_sent => Ok(()),
                        Some(failed) => {
                            let text = format!("{}: {:?}", failed.code(), failed.message());
                            Err(if failed.sender_fault() {
                                StoreError::Contract(text)
                            } else {
                                StoreError::Unavailable(text)
                            })
                        }
                        None => Err(StoreError::Unknown("SQS does not say".to_owned())),
                    };
                    let _unheard = answer.send(sent);
                }
            }
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is under way; when it is dropped, the next may begin.
struct Ended<'a>(&'a Mutex<Backlog>);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(backlog: &mut Backlog, count: usize) {
        backlog.messages.extend((0..count).map(|_| Outgoing {
            sent: Sent { body: String::new(), delay_seconds: None, group: None },
            answer: oneshot::channel().0,
        }));
    }

    fn begun(backlog: &mut Backlog) -> Option<usize> {
        backlog.begin().map(|messages| messages.len())
    }

    #[test]
    fn a_message_goes_at_once_and_those_that_come_meanwhile_go_together() {
        let mut backlog = Backlog::default();
        assert_eq!(begun(&mut backlog), None);
        messages(&mut backlog, 1);
        assert_eq!(begun(&mut backlog), Some(1));
        messages(&mut backlog, 4);
        assert_eq!(begun(&mut backlog), None, "one is under way");
        backlog.end();
        assert_eq!(begun(&mut backlog), Some(4));
        messages(&mut backlog, MAX_BATCH_ENTRIES);
        assert_eq!(
            begun(&mut backlog),
            Some(MAX_BATCH_ENTRIES),
            "a full request waits for nothing"
        );
        messages(&mut backlog, MAX_BATCH_ENTRIES + 1);
        backlog.end();
        assert_eq!(begun(&mut backlog), Some(MAX_BATCH_ENTRIES));
        backlog.end();
        assert_eq!(begun(&mut backlog), Some(1));
    }
}
