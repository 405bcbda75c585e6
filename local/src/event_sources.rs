//! Event sources of the functions that no HTTP request invokes: Lambda's event source mappings for the
//! queues, and EventBridge's schedule.
//!
//! A poller does what Lambda does with `ReportBatchItemFailures`: it gathers a batch, invokes the
//! function, deletes the messages that succeeded and leaves the others, which come back when
//! their visibility runs out and go to the dead-letter queue when they have come too often. A
//! function that panics or takes too long fails its whole batch and nothing else.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use fake_limits::sqs::starts_after;
use shared::runtime::functions::Function;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::concurrency::{Concurrency, Invocation};

/// The most messages of one receive. Source: `ReceiveMessage` in the SQS API reference.
const MAX_RECEIVE: u8 = 10;
/// Seconds that a receive waits for the first message; the most that SQS allows.
const WAIT_SECONDS: i32 = 20;
/// Pause of a poller after a queue could not be reached.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The event source mapping of one queue; the same figures as in `template.yaml`.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// The queue's name, for the log.
    pub name: String,
    pub url: String,
    /// The queue's ARN, for the event.
    pub arn: String,
    /// The most messages of a batch.
    pub max_batch: usize,
    /// Batching window: how long to gather a batch that is not full; zero takes one receive.
    pub window: Duration,
    /// Batches that may be processed at once.
    pub concurrency: usize,
    /// Timeout of the function.
    pub timeout: Duration,
    pub function: Function,
    /// What the account may run at once, with the function's own share.
    pub account: Concurrency,
    /// True if it begins with few batches at once and grows, as AWS's does.
    pub grows: bool,
}

/// A task that runs until it is told to stop.
#[derive(Debug)]
pub struct Source {
    name: String,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Source {
    /// Stops taking work, and waits until what was taken is done.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        for task in self.tasks.drain(..) {
            if let Err(error) = task.await {
                tracing::error!(source = self.name, %error, "an event source had failed");
            }
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Polls a queue and invokes `function` with its messages.
pub fn poll<F, Fut>(sqs: aws_sdk_sqs::Client, mapping: Mapping, function: F) -> Source
where
    F: Fn(SqsEvent) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = SqsBatchResponse> + Send + 'static,
{
    let (stop, stopped) = watch::channel(false);
    let name = mapping.name.clone();
    let mapping = Arc::new(mapping);
    let worker = |index| {
        let starts_after = if mapping.grows { starts_after(index)? } else { Duration::ZERO };
        let poller = Poller { sqs: sqs.clone(), mapping: Arc::clone(&mapping) };
        let (function, mut stopped) = (function.clone(), stopped.clone());
        Some(tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(starts_after) => {}
                _ = stopped.wait_for(|stop| *stop) => return,
            }
            poller.run(function, stopped.clone()).await;
        }))
    };
    let tasks = (0..mapping.concurrency).map_while(worker).collect();
    Source { name, stop, tasks }
}

/// Invokes `function` every `period`, for the first time after one, and never twice at once.
pub fn schedule<F, Fut>(name: &str, period: Duration, timeout: Duration, function: F) -> Source
where
    F: Fn() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (stop, mut stopped) = watch::channel(false);
    let name = name.to_owned();
    let logged = name.clone();
    let task = tokio::spawn(async move {
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.changed() => return,
            }
            if let Err(failure) = invoke(timeout, function()).await {
                tracing::error!(function = logged, %failure, "a scheduled invocation failed");
            }
        }
    });
    Source { name, stop, tasks: vec![task] }
}

/// Why a function gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It panicked; the message is in the log.
    #[error("the function panicked")]
    Panicked,
    /// It took longer than it may.
    #[error("the function took longer than {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

/// Runs a function in a task of its own, which ends with it and cannot take the process along.
///
/// It runs on to its end when the caller stops waiting, as a function does.
pub async fn invoke<T: Send + 'static>(
    timeout: Duration,
    function: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::spawn(tokio::time::timeout(timeout, function)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_elapsed)) => Err(Failure::TimedOut(timeout)),
        Err(_panicked) => Err(Failure::Panicked),
    }
}

/// One of the workers of a mapping.
#[derive(Debug)]
struct Poller {
    sqs: aws_sdk_sqs::Client,
    mapping: Arc<Mapping>,
}

impl Poller {
    async fn run<F, Fut>(self, function: F, mut stopped: watch::Receiver<bool>)
    where
        F: Fn(SqsEvent) -> Fut,
        Fut: Future<Output = SqsBatchResponse> + Send + 'static,
    {
        loop {
            let batch = tokio::select! {
                // What a receive took when it is dropped comes back when its visibility runs out.
                batch = self.gather() => batch,
                _ = stopped.wait_for(|stop| *stop) => return,
            };
            if batch.is_empty() {
                continue;
            }
            let event = self.event(&batch);
            let Some(invocation) = self.begin(&mut stopped).await else { return };
            let ran = invoke(self.mapping.timeout, function(event)).await;
            drop(invocation);
            let done = match ran {
                Ok(response) => succeeded(&batch, &response),
                Err(failure) => {
                    tracing::error!(queue = self.mapping.name, %failure, "a batch failed");
                    Vec::new()
                }
            };
            self.delete(&done).await;
        }
    }

    /// Begins an invocation, as soon as it is not throttled; `None` if the source is stopped before.
    async fn begin(&self, stopped: &mut watch::Receiver<bool>) -> Option<Invocation> {
        loop {
            if let Ok(invocation) = self.mapping.account.begin(self.mapping.function) {
                return Some(invocation);
            }
            tokio::select! {
                () = tokio::time::sleep(RETRY_PAUSE) => {}
                _ = stopped.wait_for(|stop| *stop) => return None,
            }
        }
    }

    /// A batch: what the first receive gives and, while the window is open, the next ones.
    async fn gather(&self) -> Vec<Message> {
        let most = self.mapping.max_batch;
        let mut batch = self.receive(most, WAIT_SECONDS).await;
        if batch.is_empty() || self.mapping.window.is_zero() {
            return batch;
        }
        let closes = Instant::now() + self.mapping.window;
        while batch.len() < most && Instant::now() < closes {
            // Never dropped halfway, which could lose its messages for their visibility; so a
            // window may close late, by the second that a receive waits.
            batch.extend(self.receive(most - batch.len(), 1).await);
        }
        batch
    }

    /// At most `most` messages; none when there are none, or the queue cannot be reached.
    async fn receive(&self, most: usize, wait_seconds: i32) -> Vec<Message> {
        let received = self
            .sqs
            .receive_message()
            .queue_url(&self.mapping.url)
            .max_number_of_messages(
                u8::try_from(most).map_or(MAX_RECEIVE, |most| most.min(MAX_RECEIVE)).into(),
            )
            .wait_time_seconds(wait_seconds)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All")
            .send()
            .await;
        match received {
            Ok(received) => received.messages.unwrap_or_default(),
            Err(error) => {
                let error = DisplayErrorContext(&error);
                tracing::warn!(queue = self.mapping.name, %error, "the queue gives nothing");
                tokio::time::sleep(RETRY_PAUSE).await;
                Vec::new()
            }
        }
    }

    /// The event that the function is invoked with.
    fn event(&self, batch: &[Message]) -> SqsEvent {
        let mut event = SqsEvent::default();
        event.records = batch.iter().map(|message| self.record(message)).collect();
        event
    }

    fn record(&self, message: &Message) -> SqsMessage {
        let attributes = message.attributes.iter().flatten();
        let mut record = SqsMessage::default();
        record.message_id = message.message_id.clone();
        record.receipt_handle = message.receipt_handle.clone();
        record.body = message.body.clone();
        record.md5_of_body = message.md5_of_body.clone();
        record.attributes =
            attributes.map(|(name, value)| (name.as_str().to_owned(), value.clone())).collect();
        record.event_source = Some("aws:sqs".to_owned());
        record.event_source_arn = Some(self.mapping.arn.clone());
        record.aws_region = self.mapping.arn.split(':').nth(3).map(str::to_owned);
        record
    }

    /// Deletes what is done. A message that cannot be deleted is delivered again: functions are idempotent.
    async fn delete(&self, done: &[&Message]) {
        for entries in done.chunks(MAX_RECEIVE.into()) {
            let entries = entries.iter().enumerate().filter_map(|(index, message)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(index.to_string())
                    .set_receipt_handle(message.receipt_handle.clone())
                    .build()
                    .ok()
            });
            let delete = self.sqs.delete_message_batch().queue_url(&self.mapping.url);
            match delete.set_entries(Some(entries.collect())).send().await {
                Ok(deleted) if deleted.failed.is_empty() => {}
                Ok(deleted) => {
                    let failed = deleted.failed.len();
                    tracing::warn!(queue = self.mapping.name, failed, "messages will come again");
                }
                Err(error) => {
                    let error = DisplayErrorContext(&error);
                    tracing::warn!(queue = self.mapping.name, %error, "messages will come again");
                }
            }
        }
    }
}

/// The messages that the function did not report.
///
/// A report that names no message of the batch means that all failed, as in Lambda:
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>
fn succeeded<'batch>(
    batch: &'batch [Message],
    response: &SqsBatchResponse,
) -> Vec<&'batch Message> {
    let failed: HashSet<&str> =
        response.batch_item_failures.iter().map(|item| item.item_identifier.as_str()).collect();
    let ids: HashSet<&str> = batch.iter().filter_map(Message::message_id).collect();
    if !failed.is_subset(&ids) {
        return Vec::new();
    }
    let is_done = |message: &&Message| message.message_id().is_some_and(|id| !failed.contains(id));
    batch.iter().filter(is_done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(ids: &[&str]) -> Vec<Message> {
        ids.iter().map(|id| Message::builder().message_id(*id).build()).collect()
    }

    fn failures(ids: &[&str]) -> SqsBatchResponse {
        let mut response = SqsBatchResponse::default();
        ids.iter().for_each(|id| response.add_failure(*id));
        response
    }

    fn left<'batch>(batch: &'batch [Message], failed: &[&str]) -> Vec<&'batch str> {
        let done = succeeded(batch, &failures(failed));
        done.into_iter().filter_map(Message::message_id).collect()
    }

    #[test]
    fn only_what_the_function_did_not_report_is_deleted() {
        let batch = batch(&["a", "b", "c"]);
        assert_eq!(left(&batch, &[]), ["a", "b", "c"]);
        assert_eq!(left(&batch, &["b"]), ["a", "c"]);
        assert!(left(&batch, &["a", "b", "c"]).is_empty());
        assert!(left(&batch, &["stranger"]).is_empty());
        assert!(left(&batch, &["a", ""]).is_empty());
    }

    #[tokio::test]
    async fn a_function_that_panics_or_hangs_is_only_a_failure() {
        let limit = Duration::from_millis(5);
        let panicked = invoke::<()>(limit, async { panic!("broken invariant") }).await;
        assert!(matches!(panicked, Err(Failure::Panicked)));
        let hung = invoke(limit, std::future::pending::<()>()).await;
        assert!(matches!(hung, Err(Failure::TimedOut(_))));
        assert!(matches!(invoke(limit, async { 7 }).await, Ok(7)));
    }
}
