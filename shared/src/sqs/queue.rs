//! Sends messages to their queues in SQS: implements the port [`Queue`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::StalledStreamProtectionConfig;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_smithy_types::body::SdkBody;
use futures_util::future::try_join_all;
use http::Request;

use super::dead_letters;
use super::outbox::{Group, Outbox, Sent};
use super::throttle::Throttle;
use crate::runtime::connections::Https;
use crate::runtime::functions::{PerQueue, QueueName};
use engine::ports::messages::{Draw, LoadSale, Malformed, QueueMessage};
use engine::ports::{LONGEST_DELAY_SECONDS, Queue, StoreError, Stored};

// Most seconds that a message may be delayed (a quota of SQS).
// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
const _: () = assert!(LONGEST_DELAY_SECONDS <= 900);

/// The URL of each queue.
pub type QueueUrls = PerQueue<String>;

/// How the adapter talks to SQS.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    pub urls: QueueUrls,
    /// Address of SQS; `None` for the one of the SDK's configuration.
    pub endpoint: Option<String>,
    /// Time limit of one attempt.
    pub attempt_timeout: Duration,
    /// Time limit of all attempts of a call.
    pub call_timeout: Duration,
    /// Most attempts of one call.
    pub attempts: u32,
}

impl QueueConfig {
    /// Times that suit a function with a deadline of ten seconds.
    #[must_use]
    pub fn new(urls: QueueUrls) -> Self {
        Self {
            urls,
            endpoint: None,
            attempt_timeout: Duration::from_millis(1500),
            call_timeout: Duration::from_secs(5),
            attempts: 4,
        }
    }
}

/// The queues, in SQS. Clones share their connections.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    outboxes: PerQueue<Outbox>,
    load_requests: Arc<Throttle>,
    draw_requests: Arc<Throttle>,
    https: Https,
    address: String,
    urls: Arc<QueueUrls>,
}

impl SqsQueue {
    /// Builds a client from the SDK's configuration. The SDK's retries are on: a message that is
    /// sent twice does no harm.
    #[must_use]
    pub fn new(sdk: &SdkConfig, https: Https, config: QueueConfig) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(config.attempt_timeout)
            .operation_attempt_timeout(config.attempt_timeout)
            .operation_timeout(config.call_timeout)
            .build();
        let retries = RetryConfig::standard()
            .with_max_attempts(config.attempts)
            .with_initial_backoff(Duration::from_millis(50));
        let mut builder = aws_sdk_sqs::config::Builder::from(sdk)
            .timeout_config(timeouts)
            .retry_config(retries)
            // As in the store: each attempt has its time limit.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(endpoint) = &config.endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        let own = || origin(&config.urls.expiry).to_owned();
        let address = config.endpoint.unwrap_or_else(own);
        let client = Client::from_conf(builder.build());
        let outbox = |queue| Outbox::new(client.clone(), config.urls.get(queue).clone());
        let outboxes = PerQueue::each(outbox);
        let (load_requests, draw_requests) = (Arc::default(), Arc::default());
        let urls = Arc::new(config.urls);
        Self { client, outboxes, load_requests, draw_requests, https, address, urls }
    }

    /// Connects now, so that the first message need not. Whatever is answered is an answer: the
    /// role may send and do nothing else, so nothing is asked that it would need.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if nobody answers.
    pub async fn connect(&self) -> Stored<()> {
        let request = Request::get(&self.address).body(SdkBody::empty());
        let request = request.map_err(|error| StoreError::Contract(error.to_string()))?;
        let unavailable = |broken| StoreError::Unavailable(DisplayErrorContext(broken).to_string());
        self.https.request(request).await.map(drop).map_err(unavailable)
    }

    /// How many messages each dead-letter queue has, by its own count.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if SQS does not answer.
    pub async fn dead_letters(&self) -> Stored<BTreeMap<QueueName, u64>> {
        let count = async |queue: QueueName| {
            let count = dead_letters::count(&self.client, self.urls.get(queue)).await?;
            Ok::<_, StoreError>((queue, count))
        };
        Ok(try_join_all(QueueName::ALL.map(count)).await?.into_iter().collect())
    }

    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }
}

/// The service that an address belongs to: scheme and host.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    url[host..].find('/').map_or(url, |path| &url[..host + path])
}

impl Queue for SqsQueue {
    async fn send(&self, message: &QueueMessage, delay_seconds: Option<i32>) -> Stored<()> {
        let is_admitted = match message {
            QueueMessage::Load(LoadSale { sale }) => {
                self.load_requests.admits(sale, Instant::now())
            }
            QueueMessage::Draw(Draw { sale }) if delay_seconds.is_none() => {
                self.draw_requests.admits(sale, Instant::now())
            }
            QueueMessage::Expiry(_)
            | QueueMessage::Sync(_)
            | QueueMessage::Refund(_)
            | QueueMessage::Close(_)
            | QueueMessage::Points(_)
            | QueueMessage::Callback(_)
            | QueueMessage::Draw(_) => true,
        };
        if !is_admitted {
            return Ok(());
        }
        let malformed = |malformed: Malformed| StoreError::Contract(malformed.to_string());
        let body = message.body().map_err(malformed)?;
        let group = if let QueueMessage::Points(message) = message {
            Some(Group { name: message.group(), deduplication: message.deduplication() })
        } else {
            None
        };
        let sent = Sent { body, delay_seconds, group };
        self.outboxes.get(QueueName::of(message)).send(sent).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqs::outbox::MAX_MESSAGE_BYTES;
    use engine::domain::basics::ids::{PaymentId, ProviderId, SaleId};
    use engine::domain::basics::money::{Currency, MinorUnits, Money};
    use engine::domain::basics::number::OrderNumber;
    use engine::domain::basics::time::Timestamp;
    use engine::domain::order::{Capture, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
    use engine::ports::messages::{Expiry, Message, Refund, Sync};

    #[test]
    fn the_longest_messages_fit() {
        let longest = |character: char, fits: &dyn Fn(String) -> bool| {
            let text = |length: usize| std::iter::repeat_n(character, length).collect::<String>();
            let length = (1..=1024).rev().find(|length| fits(text(*length))).unwrap();
            text(length)
        };
        let order: OrderNumber = u64::try_from(i64::MAX).unwrap().to_string().parse().unwrap();
        let sale = longest('s', &|text| SaleId::new(text).is_ok());
        let sale = SaleId::new(sale).unwrap();
        let provider = longest('p', &|text| ProviderId::new(text).is_ok());
        // A quotation mark is two bytes in JSON.
        let payment = longest('"', &|text| PaymentId::new(text).is_ok());
        let capture = Capture {
            attempt: None,
            key: PaymentKey {
                provider: ProviderId::new(provider).unwrap(),
                payment: PaymentId::new(payment).unwrap(),
            },
            order,
            amount: Money {
                amount_minor: MinorUnits(i64::MIN),
                currency: Currency::new("EUR").unwrap(),
            },
        };
        let now = Timestamp::from_ms(1_800_000_000_123);
        for reason in RefundReason::ALL {
            let outcome = PaymentOutcome::Refund(reason);
            let record = PaymentRecord::decided(&capture, outcome, now);
            let refund = Refund::from_record(&record).unwrap().body().unwrap();
            assert!(refund.len() <= MAX_MESSAGE_BYTES, "{} bytes", refund.len());
        }
        let expiry = Expiry { sale: sale.clone(), tier: None, order, due_at: now, heard_at: None }
            .body()
            .unwrap();
        let load = LoadSale { sale: sale.clone() }.body().unwrap();
        let draw = Draw { sale }.body().unwrap();
        let sync = Sync { order }.body().unwrap();
        assert!([expiry, load, draw, sync].iter().all(|text| text.len() <= MAX_MESSAGE_BYTES));
    }

    #[test]
    fn a_queue_is_where_its_address_begins() {
        let queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-onsale-expiry";
        assert_eq!(origin(queue), "https://sqs.eu-west-1.amazonaws.com");
        assert_eq!(origin("http://127.0.0.1:9"), "http://127.0.0.1:9");
    }
}
