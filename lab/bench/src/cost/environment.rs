//! The engine on servers of its own, with counting proxies before them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::aio::MultiplexedConnection;
use shared::dynamodb::{Dynamo, create_tables};
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::config::Config;

use super::Failure;
use super::watch::{Counted, Proxy};
use crate::scripts::counters::{Count, Counters};
use local::data_dir::{DataDir, Secrets};
use local::endpoints::Endpoints;
use local::queues::Queues;
use local::servers::redis_proxy::{Act, RedisProxy};
use local::servers::{self, FakeBeacon, Pace, PaymentProvider, Stack};
use local::stores;
use local::up;

/// Number of cheap commands that the unit of the cache is measured by.
const BASE_CALLS: u32 = 2_000;
/// The servers, the proxies and the configuration of the engine on them.
#[derive(Debug)]
pub(crate) struct Environment {
    dynamodb: Proxy,
    dynamo: Dynamo,
    sqs: Proxy,
    redis_calls: Arc<AtomicU64>,
    redis_trips: Arc<AtomicU64>,
    _redis: RedisProxy,
    config: Config,
    secrets: Secrets,
    endpoints: Endpoints,
    provider: PaymentProvider,
    _beacon: FakeBeacon,
    stack: Stack,
    _data_dir: DataDir,
}

/// Everything that was counted outside of the engine since an earlier reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    pub(crate) dynamodb: Counted,
    pub(super) sqs: Counted,
    /// Commands that came to Redis over the wire.
    pub(crate) redis_calls: f64,
    /// How often some of them were sent together, or one by itself.
    pub(super) redis_trips: f64,
    /// Those of them that were scripts.
    pub(super) redis_scripts: f64,
    /// Time of the scripts, in microseconds.
    pub(super) redis_micros: f64,
    /// Bytes that came in and went out.
    pub(super) redis_bytes: f64,
}

impl Environment {
    pub(crate) async fn start() -> Result<Self, Failure> {
        let data_dir = DataDir::temporary()?;
        let secrets = data_dir.secrets()?;
        let stack = Stack::ephemeral().await?;
        let servers = stack.endpoints();
        let queues = Queues::create(&stores::sqs(&servers.sqs_url), up::PREFIX, None).await?;
        let dynamodb = Proxy::start(&servers.dynamodb_url).await?;
        let sqs = Proxy::start(&servers.sqs_url).await?;
        let redis_calls = Arc::<AtomicU64>::default();
        let redis_trips = Arc::<AtomicU64>::default();
        let (calls, trips) = (Arc::clone(&redis_calls), Arc::clone(&redis_trips));
        let own = stack.redis().ok_or("the cache is one server here")?;
        let redis = RedisProxy::start(own.port(), move |request| {
            calls.fetch_add(1, Ordering::Relaxed);
            trips.fetch_add(request.begins_a_trip().into(), Ordering::Relaxed);
            Act::Forward
        });
        let redis = redis.await?;
        let provider = PaymentProvider::start(None)?;
        let beacon = FakeBeacon::start(Pace::OF_CHAIN)?;
        let watched = servers::Endpoints {
            dynamodb_url: dynamodb.url().to_owned(),
            sqs_url: sqs.url().to_owned(),
            ..servers
        };
        let endpoints = Endpoints::from_servers(watched, &provider, &beacon, up::PREFIX);
        let dynamo = stores::dynamo(&endpoints);
        create_tables(dynamo.client(), &dynamo.config().tables).await?;
        let topology = Topology::Single(redis.url());
        let mut config = up::config(topology, &endpoints, &queues, &secrets)?;
        // An order that nobody has begun to pay ends unasked.
        config.providers.only_started_here = true;
        Ok(Self {
            dynamodb,
            dynamo,
            sqs,
            redis_calls,
            redis_trips,
            _redis: redis,
            config,
            secrets,
            endpoints,
            provider,
            _beacon: beacon,
            stack,
            _data_dir: data_dir,
        })
    }

    /// An engine, as a function has it.
    pub(crate) async fn app(&self) -> Result<App, Failure> {
        Ok(App::from_config(&self.config).await?)
    }

    /// DynamoDB behind the proxy.
    pub(crate) fn dynamo(&self) -> &Dynamo {
        &self.dynamo
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The addresses of the servers.
    pub(super) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// A connection to Redis of one's own.
    pub(super) async fn redis(&self) -> Result<MultiplexedConnection, Failure> {
        let Topology::Single(url) = self.stack.topology() else {
            return Err("the cache is one server here".into());
        };
        Ok(redis::Client::open(url)?.get_multiplexed_async_connection().await?)
    }

    pub(crate) async fn begin(&self) -> Result<Begun, Failure> {
        let mut redis = self.redis().await?;
        // What a look itself moves is known by looking twice.
        let first = bytes(&mut redis).await?;
        let second = bytes(&mut redis).await?;
        let scripts = Counters::read(&mut redis).await?;
        let third = bytes(&mut redis).await?;
        let bytes = third + (second - first);
        Ok(Begun {
            redis,
            bytes,
            scripts,
            redis_calls: self.redis_calls.load(Ordering::Relaxed),
            redis_trips: self.redis_trips.load(Ordering::Relaxed),
            dynamodb: self.dynamodb.counted(),
            sqs: self.sqs.counted(),
        })
    }

    /// The counts since then.
    pub(crate) async fn end(&self, mut begun: Begun) -> Result<Look, Failure> {
        let redis_bytes = (bytes(&mut begun.redis).await? - begun.bytes).max(0.0);
        let scripts = Counters::read(&mut begun.redis).await?.since(&begun.scripts).scripts();
        let redis_calls = self.redis_calls.load(Ordering::Relaxed) - begun.redis_calls;
        let redis_trips = self.redis_trips.load(Ordering::Relaxed) - begun.redis_trips;
        Ok(Look {
            dynamodb: self.dynamodb.counted().since(&begun.dynamodb),
            sqs: self.sqs.counted().since(&begun.sqs),
            redis_calls: redis_calls as f64,
            redis_trips: redis_trips as f64,
            redis_scripts: scripts.calls as f64,
            redis_micros: scripts.micros as f64,
            redis_bytes,
        })
    }

    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.provider.stop().await;
        Ok(self.stack.stop().await?)
    }
}

/// The counts at the beginning.
#[derive(Debug)]
pub(crate) struct Begun {
    redis: MultiplexedConnection,
    bytes: f64,
    scripts: Counters,
    redis_calls: u64,
    redis_trips: u64,
    dynamodb: Counted,
    sqs: Counted,
}

/// Bytes that came in and went out so far.
async fn bytes(redis: &mut MultiplexedConnection) -> Result<f64, Failure> {
    let info: String = redis::cmd("INFO").arg("stats").query_async(redis).await?;
    let number = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or(0.0)
    };
    Ok(number("total_net_input_bytes") + number("total_net_output_bytes"))
}

/// What the cheapest write takes on this server, in microseconds: the unit that the cache counts in.
pub(super) async fn base_micros(redis: &mut MultiplexedConnection) -> Result<f64, Failure> {
    let before = Counters::read(redis).await?;
    for _ in 0..BASE_CALLS {
        redis::cmd("SET").arg("{cost}:unit").arg("0123456789").exec_async(redis).await?;
    }
    let Count { calls, micros } = Counters::read(redis).await?.since(&before).of("set");
    redis::cmd("DEL").arg("{cost}:unit").exec_async(redis).await?;
    Ok(micros as f64 / calls as f64)
}
