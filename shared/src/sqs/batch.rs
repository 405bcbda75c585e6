//! Partial batch failure: a function handles the messages of a batch, and SQS delivers those again that failed.
//!
//! A message that fails comes again after its visibility timeout, and after a few times goes to the
//! dead-letter queue. A malformed one goes the same way: it is never dropped.
//! (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>)

use std::iter::repeat_with;
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};

use tokio::time::timeout;

use engine::ports::messages::{Malformed, Message};
use engine::ports::{StoreError, Stored};

/// Most time that a batch may take: below the deadline of the functions that consume queues, so
/// that it is known, and logged, why its messages come again.
pub const MAX_BATCH: Duration = Duration::from_secs(27);

// Both box the handler's future: a flow over three clients is large and deeply nested.

/// Hands all messages that can be read to `handle`, which says of each what became of it, in their
/// order. Those that fail come again; they hold none of the others up.
pub async fn each<M: Message, F>(
    event: SqsEvent,
    handle: impl FnOnce(Vec<M>) -> F,
) -> SqsBatchResponse
where
    F: Future<Output = Vec<Stored<()>>>,
{
    each_within(MAX_BATCH, event, handle).await
}

/// [`each`] with another limit: of a function that takes longer.
pub async fn each_within<M: Message, F>(
    limit: Duration,
    event: SqsEvent,
    handle: impl FnOnce(Vec<M>) -> F,
) -> SqsBatchResponse
where
    F: Future<Output = Vec<Stored<()>>>,
{
    let (mut response, messages, ids) = read_all(event);
    if messages.is_empty() {
        return response;
    }
    let outcomes = timeout(limit, Box::pin(handle(messages))).await.unwrap_or_else(|late| {
        tracing::warn!(%late, kind = M::KIND, count = ids.len(), "a batch took too long");
        Vec::new()
    });
    let unsaid = || Err(StoreError::Contract("nothing was said of a message".to_owned()));
    for (id, outcome) in ids.into_iter().zip(outcomes.into_iter().chain(repeat_with(unsaid))) {
        if let Err(error) = outcome {
            tracing::warn!(%error, kind = M::KIND, "a message failed and will come again");
            response.add_failure(id);
        }
    }
    response
}

/// Hands all messages that can be read to `handle` at once. If it fails, all of them come again.
pub async fn together<M: Message, F>(
    event: SqsEvent,
    handle: impl FnOnce(Vec<M>) -> F,
) -> SqsBatchResponse
where
    F: Future<Output = Stored<()>>,
{
    together_within(MAX_BATCH, event, handle).await
}

async fn together_within<M: Message, F>(
    limit: Duration,
    event: SqsEvent,
    handle: impl FnOnce(Vec<M>) -> F,
) -> SqsBatchResponse
where
    F: Future<Output = Stored<()>>,
{
    let (mut response, messages, ids) = read_all(event);
    if messages.is_empty() {
        return response;
    }
    let outcome = timeout(limit, Box::pin(handle(messages))).await;
    let outcome = outcome.unwrap_or_else(|late| Err(StoreError::Unknown(late.to_string())));
    if let Err(error) = outcome {
        tracing::warn!(%error, kind = M::KIND, count = ids.len(), "a batch failed and will come again");
        ids.into_iter().for_each(|id| response.add_failure(id));
    }
    response
}

/// The messages that can be read with their ids; the others have failed.
fn read_all<M: Message>(event: SqsEvent) -> (SqsBatchResponse, Vec<M>, Vec<String>) {
    let mut response = SqsBatchResponse::default();
    let (mut messages, mut ids) = (Vec::new(), Vec::new());
    for record in event.records {
        match read(&record) {
            Ok(message) => {
                messages.push(message);
                ids.push(id(record));
            }
            Err(malformed) => {
                tracing::error!(%malformed, "left to the dead-letter queue");
                response.add_failure(id(record));
            }
        }
    }
    (response, messages, ids)
}

fn read<M: Message>(record: &SqsMessage) -> Result<M, Malformed> {
    M::read(record.body.as_deref().unwrap_or_default())
}

/// A record without an id, which SQS never sends, gets the empty one: Lambda then takes the whole
/// batch for failed, so that nothing is lost.
fn id(record: SqsMessage) -> String {
    record.message_id.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ports::messages::Sync;
    use serde_json::json;

    fn batch(bodies: &[&str]) -> SqsEvent {
        let record = |(index, body): (usize, &&str)| json!({ "messageId": format!("m{index}"), "body": body });
        let records: Vec<_> = bodies.iter().enumerate().map(record).collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    }

    fn failed(response: &SqsBatchResponse) -> Vec<&str> {
        let failures = response.batch_item_failures.iter();
        failures.map(|failure| failure.item_identifier.as_str()).collect()
    }

    const BODIES: [&str; 4] =
        [r#"{"order":"1"}"#, "not json", r#"{"order":"2"}"#, r#"{"order":"3"}"#];

    #[tokio::test]
    async fn only_what_failed_comes_again() {
        let mut seen = Vec::new();
        let response = each(batch(&BODIES), |messages: Vec<Sync>| {
            seen = messages.iter().map(|message| message.order.get()).collect();
            let outcome = |&order: &u64| match order {
                2 => Err(StoreError::Unavailable(String::new())),
                _ => Ok(()),
            };
            let outcomes: Vec<Stored<()>> = seen.iter().map(outcome).collect();
            async { outcomes }
        })
        .await;
        assert_eq!((failed(&response), seen), (vec!["m1", "m2"], vec![1, 2, 3]));
    }

    #[tokio::test]
    async fn a_message_of_which_nothing_is_said_comes_again() {
        let response = each(batch(&BODIES), |_: Vec<Sync>| async { vec![Ok(())] }).await;
        assert_eq!(failed(&response), vec!["m1", "m2", "m3"]);
    }

    #[tokio::test]
    async fn a_batch_is_handed_over_once_without_what_is_malformed() {
        let mut seen = Vec::new();
        let response = together(batch(&BODIES), |messages: Vec<Sync>| {
            seen = messages.iter().map(|message| message.order.get()).collect();
            async { Ok(()) }
        })
        .await;
        assert_eq!((failed(&response), seen), (vec!["m1"], vec![1, 2, 3]));
    }

    #[tokio::test]
    async fn a_batch_that_fails_comes_again_whole() {
        let fail = |_: Vec<Sync>| async { Err(StoreError::Unknown(String::new())) };
        let response = together(batch(&BODIES), fail).await;
        assert_eq!(failed(&response), ["m1", "m0", "m2", "m3"]);
        let untouched = |_: Vec<Sync>| async { Err(StoreError::Unknown(String::new())) };
        assert_eq!(failed(&together(batch(&["x"]), untouched).await), ["m0"]);
    }

    #[tokio::test]
    async fn a_batch_that_takes_too_long_comes_again() {
        let limit = Duration::from_millis(1);
        let endless = |_: Vec<Sync>| std::future::pending::<Vec<Stored<()>>>();
        let all = ["m1", "m0", "m2", "m3"];
        assert_eq!(failed(&each_within(limit, batch(&BODIES), endless).await), all);
        let endless = |_: Vec<Sync>| std::future::pending::<Stored<()>>();
        assert_eq!(failed(&together_within(limit, batch(&BODIES), endless).await), all);
    }

    #[tokio::test]
    async fn a_record_without_an_id_fails_the_whole_batch() {
        let event = serde_json::from_value(json!({ "Records": [{ "body": "x" }] })).unwrap();
        let response = each(event, |_: Vec<Sync>| async { vec![Ok(())] }).await;
        assert_eq!(failed(&response), [""]);
    }
}
