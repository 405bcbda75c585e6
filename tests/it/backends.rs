//! The servers that tests take DynamoDB and SQS from: our own fakes, or those that
//! `ONSALE_TEST_DYNAMODB_URL` and `ONSALE_TEST_SQS_URL` name, for a second opinion
//! (docs/independence.md).
//!
//! Every test takes its servers from here, and names of its own with them, because all tests share a
//! server that is not ours. A test that is about our own fakes says so with [`is_foreign`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::domain::admission::call_rate::CallRate;
use engine::domain::basics::ids::{DeploymentId, ProviderId};
use engine::domain::payment::grace::Grace;
use fake_limits::Limits;
use fake_payments::API_KEY;
use local::endpoints::Endpoints;
use local::payment;
use local::queues::Queues;
use local::servers::{DynamoDb, External, FakeBeacon, FakeSqs, Pace, PaymentProvider, Stack};
use local::stores;
use local::up::Options;
use ops::audit::Target;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use shared::dynamodb::{Dynamo, create_tables};
use shared::providers::CaptureRefunds;
use shared::runtime::config::{ProviderApi, ProvidersConfig, Secret};

/// Names a DynamoDB that runs already.
const DYNAMODB_URL: &str = "ONSALE_TEST_DYNAMODB_URL";
/// Names an SQS that runs already.
const SQS_URL: &str = "ONSALE_TEST_SQS_URL";

/// The latest round of a test's beacon at the beginning.
pub const FIRST_ROUND: u64 = 1000;

/// The servers that are not ours.
pub fn external() -> External {
    let url = |variable| std::env::var(variable).ok().filter(|url| !url.is_empty());
    External { redis: None, dynamodb_url: url(DYNAMODB_URL), sqs_url: url(SQS_URL) }
}

/// A prefix of table and queue names that no other test has, in any process.
pub fn prefix() -> String {
    static PREFIXES: AtomicU32 = AtomicU32::new(0);
    let number = PREFIXES.fetch_add(1, Ordering::Relaxed);
    format!("t{}-{number}-", std::process::id())
}

/// A connection to Redis with time limits that a slow machine keeps: the client's own are half a second.
pub async fn redis(url: &str) -> MultiplexedConnection {
    let limit = Some(Duration::from_secs(60));
    let config = AsyncConnectionConfig::new();
    let config = config.set_connection_timeout(limit).set_response_timeout(limit);
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

/// Redis, DynamoDB and SQS that keep nothing of ours.
pub async fn stack() -> Stack {
    Stack::start(None, &external()).await.unwrap()
}

/// Servers with tables and queues of a test's own, and no engine on them yet.
pub struct Servers {
    /// Redis, DynamoDB and SQS.
    pub stack: Stack,
    /// The fake payment provider.
    pub provider: PaymentProvider,
    /// The fake beacon, whose rounds come by hand.
    pub beacon: FakeBeacon,
    /// The addresses of the servers, and the prefix of the tables' names.
    pub endpoints: Endpoints,
    pub queues: Queues,
    /// A client of them.
    pub sqs: aws_sdk_sqs::Client,
    pub dynamo: Dynamo,
}

/// Servers, tables and queues that keep nothing of ours.
pub async fn servers() -> Servers {
    let stack = stack().await;
    let provider = PaymentProvider::start(None).unwrap();
    let beacon = FakeBeacon::start(Pace::ByHand(FIRST_ROUND)).unwrap();
    let endpoints = Endpoints::from_servers(stack.endpoints(), &provider, &beacon, prefix());
    let sqs = stores::sqs(&endpoints.sqs);
    let queues = Queues::create(&sqs, &endpoints.table_prefix, None).await.unwrap();
    let dynamo = stores::dynamo(&endpoints);
    create_tables(dynamo.client(), &dynamo.config().tables).await.unwrap();
    Servers { stack, provider, beacon, endpoints, queues, sqs, dynamo }
}

/// Redis, beside a DynamoDB and an SQS that a test is about.
pub async fn stack_beside(dynamodb_url: &str, sqs_url: &str) -> Stack {
    let (dynamodb_url, sqs_url) = (Some(dynamodb_url.to_owned()), Some(sqs_url.to_owned()));
    Stack::start(None, &External { redis: None, dynamodb_url, sqs_url }).await.unwrap()
}

/// An engine as `options` say, on these servers and with names of its own.
pub fn engine(options: Options) -> Options {
    Options { external: external(), prefix: prefix(), ..options }
}

/// The arguments of `onsale up` for the same servers and these names.
pub fn up_arguments(prefix: &str) -> Vec<String> {
    let External { redis: _, dynamodb_url, sqs_url } = external();
    let servers = [("--dynamodb-url", dynamodb_url), ("--sqs-url", sqs_url)];
    let named = servers.into_iter().filter_map(|(option, url)| Some([option.to_owned(), url?]));
    let prefix = ["--prefix".to_owned(), prefix.to_owned()];
    let limits = Limits::None.arguments();
    std::iter::once(prefix).chain(named).flatten().chain(limits).collect()
}

/// One server, which is stopped when this is dropped if it is ours.
pub struct Server<S> {
    pub url: String,
    _own: Option<S>,
}

pub fn dynamodb() -> Server<DynamoDb> {
    match external().dynamodb_url {
        Some(url) => Server { url, _own: None },
        None => {
            let own = DynamoDb::memory().unwrap();
            Server { url: own.url(), _own: Some(own) }
        }
    }
}

pub fn sqs() -> Server<FakeSqs> {
    match external().sqs_url {
        Some(url) => Server { url, _own: None },
        None => {
            let own = FakeSqs::start(fake_sqs::Options::default()).unwrap();
            Server { url: own.endpoint().to_owned(), _own: Some(own) }
        }
    }
}

/// What is audited of an engine: its stores.
pub fn audited(endpoints: &Endpoints) -> Target {
    Target::at(&endpoints.redis, &endpoints.dynamodb, &endpoints.table_prefix)
}

/// The deployment whose id the payments of the tests carry.
pub fn deployment() -> DeploymentId {
    DeploymentId::new("prod1").unwrap()
}

/// The configuration by which an engine calls this provider, without a grace: tests say what time it is.
pub fn providers(provider: &PaymentProvider) -> ProvidersConfig {
    let api = ProviderApi {
        provider: ProviderId::new(payment::PROVIDER).unwrap(),
        url: Some(provider.url()),
        key: Secret(API_KEY.as_bytes().to_vec()),
    };
    // Tests are about other things than waiting for turns.
    let call_rate = CallRate::from_per_second(1000).unwrap();
    ProvidersConfig {
        apis: vec![api],
        grace: Grace::NONE,
        call_rate,
        capture_refunds: CaptureRefunds(call_rate),
        deployment: Some(deployment()),
        ..ProvidersConfig::default()
    }
}

/// True if a server is not ours, so that a test about our own has nothing to test; it says so, and
/// `scripts/test-against` counts it as skipped.
pub fn is_foreign(why: &str) -> bool {
    let is_foreign = external() != External::default();
    if is_foreign {
        text::skipped(why);
    }
    is_foreign
}
