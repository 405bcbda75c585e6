//! What stands in a queue, written by another version of us or by a person who redrives it.

use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use engine::ports::Stored;
use engine::ports::messages::{Expiry, LoadSale, Message, Refund, Sync};
use shared::runtime::functions::QueueName;
use shared::sqs::batch;
use tokio::runtime::{Builder, Runtime};

use crate::{Outcome, Target, must};

pub(crate) const QUEUE_MESSAGE: Target = Target {
    name: "queue-message",
    about: "Messages of every queue, one a line: what is read is written and read as the same; of a \
            batch each message is handed over or comes again, none is lost.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return Outcome::Refused };
    let record = |(index, body): (usize, &str)| {
        let mut record = SqsMessage::default();
        record.message_id = Some(index.to_string());
        record.body = Some(body.to_owned());
        record
    };
    let mut event = SqsEvent::default();
    event.records = text.lines().take(10).enumerate().map(record).collect();
    batches(event)
}

/// Hands a batch to the consumer of each queue.
pub(super) fn batches(event: SqsEvent) -> Outcome {
    for record in &event.records {
        QueueName::ALL.iter().for_each(|queue| survives(*queue, record.body.as_deref()));
    }
    let read = [
        queue::<Expiry>(&event),
        queue::<Sync>(&event),
        queue::<Refund>(&event),
        queue::<LoadSale>(&event),
    ];
    Outcome::from_accepted(read.into_iter().any(|read| read > 0))
}

/// A message of the queue, if this is one, is read again as it was written.
fn survives(queue: QueueName, body: Option<&str>) {
    if let Ok(message) = queue.read(body.unwrap_or_default()) {
        let again = must(message.body(), "a message is written");
        assert_eq!(must(queue.read(&again), "a message that was written is read"), message);
    }
}

/// How many messages of a batch are of one queue.
fn queue<M: Message>(event: &SqsEvent) -> usize {
    let is_read = |record: &SqsMessage| M::read(record.body.as_deref().unwrap_or_default()).is_ok();
    let unread: Vec<&str> = event
        .records
        .iter()
        .filter(|record| !is_read(record))
        .map(|record| record.message_id.as_deref().unwrap_or_default())
        .collect();
    let readable = event.records.len() - unread.len();

    let mut handed = 0;
    let each = batch::each(event.clone(), |messages: Vec<M>| {
        handed += messages.len();
        let outcomes = vec![Stored::Ok(()); messages.len()];
        async { outcomes }
    });
    assert_eq!(failures(&finished(each)), unread, "exactly what cannot be read comes again");
    let together = batch::together(event.clone(), |messages: Vec<M>| {
        handed += messages.len();
        async { Ok(()) }
    });
    assert_eq!(failures(&finished(together)), unread, "exactly what cannot be read comes again");
    assert_eq!(handed, 2 * readable, "what can be read is handed over, and nothing else");
    readable
}

fn failures(response: &SqsBatchResponse) -> Vec<&str> {
    let failures = response.batch_item_failures.iter();
    failures.map(|failure| failure.item_identifier.as_str()).collect()
}

/// The clock by which a batch is given up; none here takes any time.
static CLOCK: LazyLock<Runtime> =
    LazyLock::new(|| must(Builder::new_current_thread().enable_time().build(), "a runtime"));

/// The outcome of a future that waits for nothing.
fn finished<T>(future: impl Future<Output = T>) -> T {
    let _clock = CLOCK.enter();
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("a batch waits for something"),
    }
}
