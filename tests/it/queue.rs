//! Sending through the queues of the local stack.

use std::time::Duration;

use aws_sdk_sqs::types::{Message as Received, MessageSystemAttributeName};
use chaos::proxy::http::{Act, HttpProxy};
use engine::domain::basics::ids::{InventoryId, PaymentId, ProviderId, SaleId, TierId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{Capture, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
use engine::ports::messages::{Expiry, Message, Refund, Sync};
use engine::ports::{Queue, StoreError};
use local::queues::Queues;
use local::servers::FakeSqs;
use local::stores::sdk_config;
use serde_json::json;
use shared::runtime::connections::{Https, Trust};
use shared::sqs::{QueueConfig, QueueUrls, SqsQueue};

use crate::backends::{self, Server};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

struct Fixture {
    server: Server<FakeSqs>,
    queue: SqsQueue,
    urls: QueueUrls,
}

fn queue_at(endpoint: &str, urls: &QueueUrls) -> SqsQueue {
    let config = QueueConfig {
        endpoint: Some(endpoint.to_owned()),
        attempt_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        ..QueueConfig::new(urls.clone())
    };
    SqsQueue::new(&sdk_config(), Https::new(&Trust::public()), config)
}

impl Fixture {
    async fn new() -> Self {
        let server = backends::sqs();
        let nowhere = QueueUrls::each(|_| String::new());
        let client = queue_at(&server.url, &nowhere).client().clone();
        let queues = Queues::create(&client, &backends::prefix(), None).await.unwrap();
        let urls = queues.urls();
        Self { queue: queue_at(&server.url, &urls), server, urls }
    }

    /// Everything that arrives within `seconds`, and at least one message.
    async fn receive(&self, url: &str, seconds: i32) -> Vec<Received> {
        let receive = self.queue.client().receive_message().queue_url(url);
        let received = receive
            .wait_time_seconds(seconds)
            .max_number_of_messages(10)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp)
            .message_system_attribute_names(
                MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
            );
        received.send().await.unwrap().messages.unwrap_or_default()
    }
}

fn order() -> OrderNumber {
    "4611686018427387905".parse().unwrap()
}

fn payment(outcome: PaymentOutcome) -> PaymentRecord {
    let key = PaymentKey {
        provider: ProviderId::new("stripe").unwrap(),
        payment: PaymentId::new("pi_1").unwrap(),
    };
    let amount =
        Money { amount_minor: MinorUnits(110_600), currency: Currency::new("CNY").unwrap() };
    PaymentRecord::decided(&Capture { key, order: order(), amount, attempt: None }, outcome, NOW)
}

#[tokio::test]
async fn each_message_arrives_in_its_queue() {
    let fixture = Fixture::new().await;
    let inventory =
        InventoryId::of_tier(SaleId::new("show").unwrap(), TierId::new("floor").unwrap());
    let due_at = NOW.plus_ms(900);
    fixture.queue.expire_later(&inventory, order(), NOW, due_at).await.unwrap();
    fixture.queue.sync(order()).await.unwrap();
    let refund = payment(PaymentOutcome::Refund(RefundReason::TooLate));
    fixture.queue.refund(&refund).await.unwrap();

    let sync = fixture.receive(&fixture.urls.sync, 10).await;
    assert_eq!(Sync::read(sync[0].body().unwrap()), Ok(Sync { order: order() }));
    let sent = fixture.receive(&fixture.urls.refund, 10).await;
    let sent = Refund::read(sent[0].body().unwrap()).unwrap();
    assert_eq!(Some(sent), Refund::from_record(&refund));

    // Less than a second is rounded up, so that the message is not early.
    let expiry = fixture.receive(&fixture.urls.expiry, 10).await;
    let expected = Expiry::new(&inventory, order(), due_at);
    assert_eq!(Expiry::read(expiry[0].body().unwrap()), Ok(expected));
    let stamp = |name: MessageSystemAttributeName| -> i64 {
        expiry[0].attributes().unwrap()[&name].parse().unwrap()
    };
    let waited = stamp(MessageSystemAttributeName::ApproximateFirstReceiveTimestamp)
        - stamp(MessageSystemAttributeName::SentTimestamp);
    assert!(waited >= 1000, "{waited} ms");
}

#[tokio::test]
async fn each_of_many_at_once_arrives_and_is_heard_of() {
    let fixture = Fixture::new().await;
    let number = |index: u64| (order().get() + index).to_string().parse::<OrderNumber>().unwrap();
    let sends = (0..100).map(|index| fixture.queue.sync(number(index)));
    assert!(futures_util::future::join_all(sends).await.iter().all(Result::is_ok));
    let mut arrived = std::collections::BTreeSet::new();
    while arrived.len() < 100 {
        let received = fixture.receive(&fixture.urls.sync, 20).await;
        assert!(!received.is_empty(), "only {} arrived", arrived.len());
        arrived.extend(received.iter().map(|one| Sync::read(one.body().unwrap()).unwrap().order));
    }
    assert_eq!(arrived, (0..100).map(number).collect());

    // A queue that is not there refuses everyone who asked, in whatever request.
    let nowhere = QueueUrls { sync: format!("{}-none", fixture.urls.sync), ..fixture.urls.clone() };
    let nowhere = queue_at(&fixture.server.url, &nowhere);
    let sends = (0..30).map(|index| nowhere.sync(number(index)));
    let refused = futures_util::future::join_all(sends).await;
    assert!(refused.iter().all(|sent| matches!(sent, Err(StoreError::Contract(_)))), "{refused:?}");
}

#[tokio::test]
async fn an_accepted_payment_is_never_sent_back() {
    let fixture = Fixture::new().await;
    let error = fixture.queue.refund(&payment(PaymentOutcome::Accepted)).await.unwrap_err();
    assert!(matches!(error, StoreError::Contract(_)), "{error}");
}

#[tokio::test]
async fn a_long_window_is_requeued_and_a_lost_answer_is_sent_again() {
    let fixture = Fixture::new().await;
    let proxy = HttpProxy::start(&fixture.server.url, |_, before| match before {
        0 => Act::LoseAnswer,
        _ => Act::Forward,
    })
    .await
    .unwrap();
    let queue = queue_at(&proxy.url(), &fixture.urls);
    let inventory = InventoryId::whole(SaleId::new("show").unwrap());
    queue.expire_later(&inventory, order(), NOW, NOW.plus_seconds(86_400)).await.unwrap();
    let sent = proxy.seen("SendMessage");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].body["DelaySeconds"], json!(900));
}

#[tokio::test]
async fn a_queue_that_refuses_says_how() {
    let fixture = Fixture::new().await;
    let lost = HttpProxy::start(&fixture.server.url, |_, _| Act::LoseRequest).await.unwrap();
    let error = queue_at(&lost.url(), &fixture.urls).sync(order()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown(_)), "{error}");

    let absent = QueueUrls { sync: format!("{}-not", fixture.urls.sync), ..fixture.urls.clone() };
    let queue = queue_at(&fixture.server.url, &absent);
    let error = queue.sync(order()).await.unwrap_err();
    assert!(matches!(error, StoreError::Contract(_)), "{error}");
}
