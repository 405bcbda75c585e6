//! The queues as `template.yaml` defines them, created on the fake or an emulator of SQS.

use std::ops::Deref;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::QueueAttributeName;
use shared::runtime::functions::{Function, PerQueue, QueueName};
use shared::sqs::QueueUrls;

/// Seconds for which messages are kept: 14 days, the most that SQS allows.
const RETENTION_SECONDS: u32 = 14 * 24 * 60 * 60;
/// Visibility timeout of a queue whose consumer has half a minute.
const USUAL_VISIBILITY: Duration = Duration::from_secs(200);
/// Suffix of a dead-letter queue's name.
const DEAD: &str = "-dead";

/// Redelivery of messages that were received and not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redelivery {
    /// Visibility timeout of every queue; the default's is longer where a consumer needs it
    /// ([`Redelivery::visibility_of`]).
    pub visibility: Duration,
    /// Receives after which it goes to the dead-letter queue.
    pub max_receives: u32,
}

impl Default for Redelivery {
    fn default() -> Self {
        Self { visibility: USUAL_VISIBILITY, max_receives: 10 }
    }
}

impl Redelivery {
    /// Visibility timeout of a queue. The usual one is longer where the consumer's time asks for it: as AWS
    /// advises, at least six times the function's timeout plus the batching window, so that no message
    /// is delivered twice while it is processed.
    #[must_use]
    pub fn visibility_of(&self, queue: QueueName) -> Duration {
        if self.visibility != USUAL_VISIBILITY {
            return self.visibility;
        }
        let needed = Function::ALL.into_iter().filter_map(|function| {
            let consumer = function.consumer().filter(|consumer| consumer.queue == queue)?;
            let window = Duration::from_secs(consumer.window_seconds.into());
            Some(function.row().timeout * 6 + window)
        });
        needed.fold(USUAL_VISIBILITY, Duration::max)
    }
}

/// A queue that could not be created.
#[derive(Debug, thiserror::Error)]
#[error("queue {queue}: {why}")]
pub struct Error {
    /// Name of the queue.
    queue: String,
    /// The error of the client, as text.
    why: String,
}

/// A queue and its dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePair {
    pub name: String,
    pub url: String,
    pub arn: String,
    /// URL of its dead-letter queue.
    pub dead_url: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues(PerQueue<QueuePair>);

impl Deref for Queues {
    type Target = PerQueue<QueuePair>;

    fn deref(&self) -> &PerQueue<QueuePair> {
        &self.0
    }
}

impl Queues {
    /// Creates what is missing and corrects what is different. Without `redelivery`, failures are
    /// treated as in `template.yaml`.
    ///
    /// # Errors
    /// The first queue that could not be created.
    pub async fn create(
        sqs: &Client,
        prefix: &str,
        redelivery: Option<Redelivery>,
    ) -> Result<Self, Error> {
        let redelivery = redelivery.unwrap_or_default();
        let receives = redelivery.max_receives;
        let pair = |name: QueueName| {
            let names = Names::of(prefix, name);
            let visibility = redelivery.visibility_of(name);
            async move {
                let made = create_pair(sqs, &names, visibility, receives).await;
                made.map_err(|why| Error { queue: names.queue, why })
            }
        };
        PerQueue::each(pair).in_order().await.map(Self)
    }

    /// The URLs that the engine sends to.
    #[must_use]
    pub fn urls(&self) -> QueueUrls {
        QueueUrls::each(|queue| self.get(queue).url.clone())
    }

    /// Finds the queues that an engine has created.
    ///
    /// # Errors
    /// The first queue that is not there.
    pub async fn find(sqs: &Client, prefix: &str) -> Result<Self, Error> {
        let pair = |name: QueueName| {
            let names = Names::of(prefix, name);
            async move {
                let found = find_pair(sqs, &names).await;
                found.map_err(|why| Error { queue: names.queue, why })
            }
        };
        PerQueue::each(pair).in_order().await.map(Self)
    }
}

/// Number of messages of a queue, those included that are delayed or being worked on.
///
/// # Errors
/// The attributes of the queue cannot be read.
pub async fn depth(sqs: &Client, queue: &QueuePair) -> Result<u64, Error> {
    depth_at(sqs, &queue.name, &queue.url).await
}

/// The same of the queue at a URL, which has this name in errors.
///
/// # Errors
/// As [`depth`].
pub async fn depth_at(sqs: &Client, name: &str, url: &str) -> Result<u64, Error> {
    use QueueAttributeName as Name;
    let counts = [
        Name::ApproximateNumberOfMessages,
        Name::ApproximateNumberOfMessagesNotVisible,
        Name::ApproximateNumberOfMessagesDelayed,
    ];
    let error = |why: String| Error { queue: name.to_owned(), why };
    let asked = sqs.get_queue_attributes().queue_url(url);
    let asked = asked.set_attribute_names(Some(counts.to_vec())).send().await;
    let attributes = asked.map_err(|failed| error(shown(failed)))?.attributes.unwrap_or_default();
    let count = |name| {
        let text =
            attributes.get(name).ok_or_else(|| error(format!("the answer has no {name}")))?;
        text.parse::<u64>().map_err(|_| error(format!("{name} is no number: {text}")))
    };
    counts.iter().map(count).sum()
}

/// The names of a queue and of its dead-letter queue, which is of the same kind.
struct Names {
    queue: String,
    dead: String,
    is_fifo: bool,
}

impl Names {
    fn of(prefix: &str, name: QueueName) -> Self {
        let (queue, dead) = (name.named(prefix, ""), name.named(prefix, DEAD));
        Self { queue, dead, is_fifo: name.is_fifo() }
    }
}

async fn create_pair(
    sqs: &Client,
    names: &Names,
    visibility: Duration,
    max_receives: u32,
) -> Result<QueuePair, String> {
    use QueueAttributeName as Name;
    let retention = (Name::MessageRetentionPeriod, RETENTION_SECONDS.to_string());
    let Names { queue, dead, is_fifo } = names;
    let (dead_url, dead_arn) = create(sqs, dead, *is_fifo, vec![retention.clone()]).await?;
    let redrive = serde_json::json!({
        "deadLetterTargetArn": dead_arn,
        "maxReceiveCount": max_receives,
    });
    let mut attributes = vec![
        retention,
        (Name::VisibilityTimeout, visibility.as_secs().to_string()),
        (Name::RedrivePolicy, redrive.to_string()),
    ];
    if *is_fifo {
        attributes.extend([
            (Name::DeduplicationScope, "messageGroup".to_owned()),
            (Name::FifoThroughputLimit, "perMessageGroupId".to_owned()),
        ]);
    }
    let (url, arn) = create(sqs, queue, *is_fifo, attributes).await?;
    Ok(QueuePair { name: queue.clone(), url, arn, dead_url })
}

async fn find_pair(sqs: &Client, names: &Names) -> Result<QueuePair, String> {
    let url_of = async |name: &str| {
        let found = sqs.get_queue_url().queue_name(name).send().await.map_err(shown)?;
        found.queue_url.ok_or_else(|| "the answer names no URL".to_owned())
    };
    let url = url_of(&names.queue).await?;
    let dead_url = url_of(&names.dead).await?;
    let arn = arn_of(sqs, &url).await?;
    Ok(QueuePair { name: names.queue.clone(), url, arn, dead_url })
}

/// The URL and the ARN of a queue with these attributes.
async fn create(
    sqs: &Client,
    name: &str,
    is_fifo: bool,
    attributes: Vec<(QueueAttributeName, String)>,
) -> Result<(String, String), String> {
    // Not with its attributes at once: creating a queue that has others is refused. Its kind is fixed.
    let kind = is_fifo.then(|| [(QueueAttributeName::FifoQueue, "true".to_owned())].into());
    let created = sqs.create_queue().queue_name(name).set_attributes(kind);
    let created = created.send().await.map_err(shown)?;
    let url = created.queue_url.ok_or("the answer names no URL")?;
    let set = sqs.set_queue_attributes().queue_url(&url);
    set.set_attributes(Some(attributes.into_iter().collect())).send().await.map_err(shown)?;
    let arn = arn_of(sqs, &url).await?;
    Ok((url, arn))
}

async fn arn_of(sqs: &Client, url: &str) -> Result<String, String> {
    let asked = sqs.get_queue_attributes().queue_url(url);
    let asked = asked.attribute_names(QueueAttributeName::QueueArn).send().await.map_err(shown)?;
    let arn = asked.attributes.unwrap_or_default().remove(&QueueAttributeName::QueueArn);
    arn.ok_or_else(|| "the answer names no ARN".to_owned())
}

fn shown(error: impl std::error::Error) -> String {
    DisplayErrorContext(error).to_string()
}
