//! Messages of one queue on their way out: what is sent while a request is under way goes together
//! in the next one.
//!
//! A sender is told what became of its own message, and not before SQS has it: nothing is lost that a
//! request of its own would not lose. Alone, as in a function with one invocation at a time, a
//! message goes at once and by itself; in a process with many, ten of them cost hardly more than one.
//! A message waits at most for one request before its own, so twice the time limit of a call bounds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use tokio::sync::oneshot;

use crate::dynamodb::errors::failure;
use engine::ports::{StoreError, Stored};

/// The most messages of one request (a quota of SQS).
const MAX_TOGETHER: usize = 10;

/// The messages of one queue. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    client: Client,
    url: Arc<str>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    letters: Vec<Letter>,
    is_sending: bool,
}

impl Waiting {
    /// The letters of the next request, if one should begin now: for a letter that finds nothing
    /// under way, and whenever a request is full.
    fn begin(&mut self) -> Option<Vec<Letter>> {
        let is_time = !self.is_sending || self.letters.len() >= MAX_TOGETHER;
        if self.letters.is_empty() || !is_time {
            return None;
        }
        self.is_sending = true;
        let count = self.letters.len().min(MAX_TOGETHER);
        Some(self.letters.drain(..count).collect())
    }

    /// Says that a request has ended.
    fn end(&mut self) {
        self.is_sending = false;
    }
}

/// A message, and who waits to hear of it.
#[derive(Debug)]
struct Letter {
    body: String,
    delay_seconds: Option<i32>,
    answer: oneshot::Sender<Stored<()>>,
}

impl Outbox {
    pub(super) fn new(client: Client, url: String) -> Self {
        Self { client, url: url.into(), waiting: Arc::default() }
    }

    /// Sends a message; returns when SQS has it.
    pub(super) async fn send(&self, body: String, delay_seconds: Option<i32>) -> Stored<()> {
        let (answer, answered) = oneshot::channel();
        let letters = {
            let mut waiting = self.waiting();
            waiting.letters.push(Letter { body, delay_seconds, answer });
            waiting.begin()
        };
        if let Some(letters) = letters {
            // In a task of its own: others wait for it too, and go on when this sender gives up.
            tokio::spawn(self.clone().deliver(letters));
        }
        let lost = || StoreError::Unknown("the task that sends messages is gone".to_owned());
        answered.await.unwrap_or_else(|_dropped| Err(lost()))
    }

    async fn deliver(self, letters: Vec<Letter>) {
        let mut next = Some(letters);
        while let Some(letters) = next {
            // However this ends, the next sender must not wait for it.
            let ended = Ended(&self.waiting);
            self.request(letters).await;
            drop(ended);
            next = self.waiting().begin();
        }
    }

    async fn request(&self, letters: Vec<Letter>) {
        match <[Letter; 1]>::try_from(letters) {
            Ok([letter]) => self.request_one(letter).await,
            Err(letters) => self.request_many(letters).await,
        }
    }

    async fn request_one(&self, letter: Letter) {
        let Letter { body, delay_seconds, answer } = letter;
        let send = self.client.send_message().queue_url(&*self.url).message_body(body);
        let sent = send.set_delay_seconds(delay_seconds).send().await;
        let sent = sent.map(|_| ()).map_err(|error| failure(&error).of_write());
        // Nobody may wait any more.
        let _unheard = answer.send(sent);
    }

    async fn request_many(&self, letters: Vec<Letter>) {
        let mut entries = Vec::with_capacity(letters.len());
        let mut answers = Vec::with_capacity(letters.len());
        for (index, letter) in letters.into_iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(letter.body)
                .set_delay_seconds(letter.delay_seconds)
                .build();
            match entry {
                Ok(entry) => {
                    entries.push(entry);
                    answers.push((index.to_string(), letter.answer));
                }
                Err(error) => {
                    let _unheard = letter.answer.send(Err(StoreError::Contract(error.to_string())));
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

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is under way; when it is dropped, the next may begin.
struct Ended<'a>(&'a Mutex<Waiting>);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(waiting: &mut Waiting, count: usize) {
        waiting.letters.extend((0..count).map(|_| Letter {
            body: String::new(),
            delay_seconds: None,
            answer: oneshot::channel().0,
        }));
    }

    fn begun(waiting: &mut Waiting) -> Option<usize> {
        waiting.begin().map(|letters| letters.len())
    }

    #[test]
    fn a_letter_goes_at_once_and_those_that_come_meanwhile_go_together() {
        let mut waiting = Waiting::default();
        assert_eq!(begun(&mut waiting), None);
        letters(&mut waiting, 1);
        assert_eq!(begun(&mut waiting), Some(1));
        letters(&mut waiting, 4);
        assert_eq!(begun(&mut waiting), None, "one is under way");
        waiting.end();
        assert_eq!(begun(&mut waiting), Some(4));
        letters(&mut waiting, MAX_TOGETHER);
        assert_eq!(begun(&mut waiting), Some(MAX_TOGETHER), "a full request waits for nothing");
        letters(&mut waiting, MAX_TOGETHER + 1);
        waiting.end();
        assert_eq!(begun(&mut waiting), Some(MAX_TOGETHER));
        waiting.end();
        assert_eq!(begun(&mut waiting), Some(1));
    }
}
