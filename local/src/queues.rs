//! The queues as `template.yaml` defines them, created on servers that stand in for SQS.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::QueueAttributeName;

/// How often a message is tried before it goes to the dead-letter queue.
pub const RECEIVES_MOST: u32 = 5;
/// How long messages are kept, in seconds: 14 days, the longest that SQS keeps them.
const RETENTION_SECONDS: u32 = 14 * 24 * 60 * 60;
/// What a dead-letter queue's name adds.
const DEAD: &str = "-dead";

/// What is not the same in every queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Its name after the prefix.
    pub name: &'static str,
    /// How long a received message is hidden; at least six times as long as its function may
    /// take, as AWS advises, so that no message is given out twice while it is worked on.
    pub visibility: Duration,
}

/// Expiry of orders that are not paid.
pub const EXPIRY: Definition = Definition { name: "expiry", visibility: Duration::from_secs(180) };
/// Counting of paid orders.
pub const SYNC: Definition = Definition { name: "sync", visibility: Duration::from_secs(360) };
/// Refund requests; whoever pays the money back takes them.
pub const REFUND: Definition = Definition { name: "refund", visibility: Duration::from_secs(180) };

/// A queue that could not be created.
#[derive(Debug, thiserror::Error)]
#[error("queue {queue}: {why}")]
pub struct Error {
    /// Its name.
    queue: String,
    /// Why not.
    why: String,
}

/// A queue and its dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePair {
    /// The queue's name.
    pub name: String,
    /// Where the queue is.
    pub url: String,
    /// Which queue it is.
    pub arn: String,
    /// Where the messages go that cannot be handled.
    pub dead_url: String,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues {
    /// [`EXPIRY`]
    pub expiry: QueuePair,
    /// [`SYNC`]
    pub sync: QueuePair,
    /// [`REFUND`]
    pub refund: QueuePair,
}

impl Queues {
    /// Creates what is missing and corrects what is different. `visibility` overrules the
    /// definitions, for tests that cannot wait.
    ///
    /// # Errors
    /// The first queue that could not be made.
    pub async fn create(
        sqs: &Client,
        prefix: &str,
        visibility: Option<Duration>,
    ) -> Result<Self, Error> {
        let pair = async |definition: Definition| {
            let name = format!("{prefix}{}", definition.name);
            let hidden = visibility.unwrap_or(definition.visibility);
            create_pair(sqs, &name, hidden).await.map_err(|why| Error { queue: name, why })
        };
        Ok(Self {
            expiry: pair(EXPIRY).await?,
            sync: pair(SYNC).await?,
            refund: pair(REFUND).await?,
        })
    }
}

async fn create_pair(sqs: &Client, name: &str, visibility: Duration) -> Result<QueuePair, String> {
    use QueueAttributeName as Name;
    let retention = (Name::MessageRetentionPeriod, RETENTION_SECONDS.to_string());
    let dead_name = format!("{name}{DEAD}");
    let (dead_url, dead_arn) = create(sqs, &dead_name, vec![retention.clone()]).await?;
    let redrive =
        serde_json::json!({ "deadLetterTargetArn": dead_arn, "maxReceiveCount": RECEIVES_MOST });
    let attributes = vec![
        retention,
        (Name::VisibilityTimeout, visibility.as_secs().to_string()),
        (Name::RedrivePolicy, redrive.to_string()),
    ];
    let (url, arn) = create(sqs, name, attributes).await?;
    Ok(QueuePair { name: name.to_owned(), url, arn, dead_url })
}

/// The URL and the ARN of a queue with these attributes.
async fn create(
    sqs: &Client,
    name: &str,
    attributes: Vec<(QueueAttributeName, String)>,
) -> Result<(String, String), String> {
    // Not with its attributes at once: creating a queue that has others is refused.
    let created = sqs.create_queue().queue_name(name).send().await.map_err(shown)?;
    let url = created.queue_url.ok_or("the answer names no URL")?;
    let set = sqs.set_queue_attributes().queue_url(&url);
    set.set_attributes(Some(attributes.into_iter().collect())).send().await.map_err(shown)?;
    let asked = sqs.get_queue_attributes().queue_url(&url);
    let asked = asked.attribute_names(QueueAttributeName::QueueArn).send().await.map_err(shown)?;
    let arn = asked.attributes.unwrap_or_default().remove(&QueueAttributeName::QueueArn);
    Ok((url, arn.ok_or("the answer names no ARN")?))
}

fn shown(error: impl std::error::Error) -> String {
    DisplayErrorContext(error).to_string()
}
