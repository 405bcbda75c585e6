//! The rig: real servers, proxies in front of them, the engine as a child process on the proxies, and
//! a sale that it sells.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::domain::basics::ids::{InventoryId, SaleId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{Sale, SaleFile};
use redis::aio::ConnectionLike;
use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use fake_identity::{Identity, Role};
use fake_limits::{Limits, Throttled};
use local::data_dir::Secrets;
use local::payment::SEARCH_LAG_SECONDS;
use local::servers::redis_proxy::RedisProxy;
use local::servers::{Flavour, RedisCluster, RedisOptions, RedisServer, free_port};
use local::throttled;
use ops::audit::Target;

use super::Error;
use super::engine_process::EngineProcess;
use super::fakes::Fakes;
use super::proxy::faults::ProxyFaults;
use super::proxy::http::HttpProxy;
use super::proxy::pipe::Pipe;

/// What the names of tables and queues begin with.
const PREFIX: &str = "chaos-";
/// The sale that is sold.
pub const SALE: &str = "chaos";
/// Time that an operator's token is good, in seconds.
const TOKEN_SECONDS: u32 = 60;
/// Time that the operator waits for an answer.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a sale is tried to be published while somebody else is at it, and the pause between two tries.
const PUBLISHING: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// One Valkey and its replica, which an operator promotes; the engine knows an address that
    /// follows the promotion.
    Single,
    /// A cluster of three masters with a replica each, which promotes by itself.
    Cluster,
}

/// Options of a rig.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The program `onsale`.
    pub program: PathBuf,
    /// Time between two runs of reconcile, in seconds.
    pub reconcile_seconds: u32,
    /// Seconds after which a message that was not finished is given out again.
    pub redelivery_seconds: u64,
    /// Time that the buyers may take to pay, in seconds.
    pub pay_window_seconds: u32,
    /// Number of seats that are for sale, for each of two legs.
    pub seats: u32,
    /// Seeds the faults and the crowd, and says by one of its bits how the sale keeps its tiers.
    pub seed: u64,
    /// The limits of DynamoDB, SQS, the payment provider, the gateway and the functions. Redis is one
    /// that has replicas, which the serverless cache is not.
    pub limits: Limits,
}

impl Setup {
    /// True if the sale keeps its tiers apart, each in a slot of its own: by the second bit of the seed,
    /// because with `--kills` the two kinds of rig take turns, and the first bit would give each kind one
    /// answer.
    #[must_use]
    pub fn keeps_tiers_apart(&self) -> bool {
        self.seed & 2 != 0
    }
}

/// A Valkey and its replica.
#[derive(Debug)]
pub struct Pair {
    /// The one that sells.
    pub primary: RedisServer,
    /// The one that follows.
    pub replica: RedisServer,
    /// By which it follows.
    pub link: Pipe,
    /// The address that the engine knows.
    pub proxy: RedisProxy,
    /// Faults of requests on the way.
    pub faults: Arc<ProxyFaults>,
}

impl Pair {
    async fn start(seed: u64) -> Result<Self, Error> {
        let primary = RedisServer::start(RedisOptions::default()).await?;
        let (link, replica) = Self::replicate(&primary).await?;
        let faults = Arc::new(ProxyFaults::seeded(seed));
        let met = Arc::clone(&faults);
        let proxy =
            RedisProxy::start(primary.port(), move |request| met.of_redis(&request.command()))
                .await;
        let proxy = proxy.map_err(Error::io("starting the proxy of Redis"))?;
        Ok(Self { primary, replica, link, proxy, faults })
    }

    /// A replica of a server, and the link between the two.
    pub(super) async fn replicate(primary: &RedisServer) -> Result<(Pipe, RedisServer), Error> {
        let link = Pipe::start(primary.port()).await.map_err(Error::io("starting the link"))?;
        let replica_of = Some(link.port());
        let options = RedisOptions { replica_of, ..RedisOptions::default() };
        let replica = RedisServer::start(options).await?;
        replica.followed().await?;
        Ok((link, replica))
    }
}

/// The Redis of a rig.
#[derive(Debug)]
pub enum Cache {
    /// One server and its replica.
    Single(Box<Pair>),
    Cluster(RedisCluster),
}

#[derive(Debug)]
pub struct Rig {
    pub engine: EngineProcess,
    pub cache: Cache,
    /// Its DynamoDB and its SQS.
    pub fakes: Fakes,
    /// Faults of requests to DynamoDB.
    pub dynamodb_faults: Arc<ProxyFaults>,
    /// Faults of requests to SQS.
    pub sqs_faults: Arc<ProxyFaults>,
    sale: Sale,
    url: String,
    _proxies: [HttpProxy; 2],
    _dir: TempDir,
}

impl Rig {
    /// Starts everything, and puts the sale on sale.
    ///
    /// # Errors
    /// The first thing that does not start.
    pub async fn start(profile: Profile, setup: &Setup) -> Result<Self, Error> {
        let dir = tempfile::Builder::new().prefix("onsale-chaos-").tempdir();
        let dir = dir.map_err(Error::io("creating a directory"))?;
        let fakes = Fakes::start(&setup.program, dir.path(), setup.limits).await?;
        let cache = match profile {
            Profile::Single => Cache::Single(Box::new(Pair::start(setup.seed).await?)),
            Profile::Cluster => {
                Cache::Cluster(RedisCluster::start_with_replicas(Flavour::default()).await?)
            }
        };
        let dynamodb_faults = Arc::new(ProxyFaults::seeded(setup.seed ^ 1));
        let sqs_faults = Arc::new(ProxyFaults::seeded(setup.seed ^ 2));
        let (of_dynamodb, of_sqs) = (Arc::clone(&dynamodb_faults), Arc::clone(&sqs_faults));
        let dynamodb =
            HttpProxy::start(fakes.dynamodb(), move |request, _| of_dynamodb.of_dynamodb(request));
        let sqs = HttpProxy::start(fakes.sqs(), move |request, _| of_sqs.of_sqs(request));
        let starting = || Error::io("starting a proxy");
        let (dynamodb, sqs) = (dynamodb.await.map_err(starting())?, sqs.await.map_err(starting())?);
        let port = free_port()?;
        let mut arguments: Vec<String> = [
            ("--port", port.to_string()),
            ("--reconcile-seconds", setup.reconcile_seconds.to_string()),
            ("--redelivery-seconds", setup.redelivery_seconds.to_string()),
            ("--search-lag-seconds", SEARCH_LAG_SECONDS.to_string()),
            ("--dynamodb-url", dynamodb.url()),
            ("--sqs-url", sqs.url()),
            ("--prefix", PREFIX.to_owned()),
            (
                "--redis-url",
                match &cache {
                    Cache::Single(pair) => pair.proxy.url(),
                    Cache::Cluster(cluster) => cluster.urls().join(","),
                },
            ),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
        arguments.extend(setup.limits.arguments());
        if profile == Profile::Cluster {
            arguments.push("--redis-cluster".to_owned());
        }
        let engine = EngineProcess::start(&setup.program, dir.path(), arguments).await?;
        let sale = Sale::new(sale_file(setup)?);
        let sale = sale.map_err(|defects| Error::Refused(format!("{defects:?}")))?;
        let rig = Self {
            engine,
            cache,
            fakes,
            dynamodb_faults,
            sqs_faults,
            sale,
            url: format!("http://127.0.0.1:{port}"),
            _proxies: [dynamodb, sqs],
            _dir: dir,
        };
        rig.put(rig.sale.file()).await?;
        Ok(rig)
    }

    /// The address of the API.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Secrets that everything on the way is signed with.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn secrets(&self) -> Result<Secrets, Error> {
        Ok(Secrets::read(self.engine.dir())?)
    }

    /// Folder for files of this run.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.engine.dir()
    }

    /// The stores as they are, without a proxy in between.
    #[must_use]
    pub fn target(&self) -> Target {
        let redis = match &self.cache {
            Cache::Single(pair) => pair.primary.url(),
            Cache::Cluster(cluster) => cluster.urls().into_iter().next().unwrap_or_default(),
        };
        Target::at(&redis, self.fakes.dynamodb(), PREFIX)
    }

    /// What the servers, the gateway and the functions have refused for their limits.
    #[must_use]
    pub fn throttled(&self) -> Throttled {
        let of = |file| throttled::read(&self.dir().join(file));
        of(throttled::FILE).and(&of(throttled::SERVERS_FILE))
    }

    #[must_use]
    pub fn sale(&self) -> &SaleId {
        self.sale.id()
    }

    /// What Redis has of the sale, slot by slot.
    #[must_use]
    pub fn inventories(&self) -> Vec<InventoryId> {
        self.sale.inventories()
    }

    /// The operator puts a sale on sale.
    pub(super) async fn put(&self, file: &SaleFile) -> Result<(), Error> {
        let identity = Identity::new(self.secrets()?.identity.as_bytes());
        let token = identity.token("operator", Role::Operator, Timestamp::now(), TOKEN_SECONDS)?;
        let url = format!("{}/sales/{}", self.url, file.sale);
        let client = reqwest::Client::builder().timeout(ANSWER).build()?;
        let give_up = Instant::now() + PUBLISHING;
        loop {
            let reply = client.put(&url).bearer_auth(&token).json(file).send().await?;
            if reply.status().is_success() {
                return Ok(());
            }
            // Somebody else may be loading it, as reconcile does.
            let is_busy = reply.status() == StatusCode::SERVICE_UNAVAILABLE;
            let said = reply.text().await?;
            if !is_busy || Instant::now() > give_up {
                return Err(Error::Refused(said));
            }
            sleep(AGAIN).await;
        }
    }
}

/// The orders that one server holds seats for.
pub(super) async fn holds_of(
    server: &RedisServer,
    inventories: &[InventoryId],
) -> Result<BTreeSet<OrderNumber>, Error> {
    let mut connection = server.connect().await?;
    let mut all = BTreeSet::new();
    for inventory in inventories {
        all.extend(holds(&mut connection, inventory).await?);
    }
    Ok(all)
}

/// The orders among the fields of an inventory's hash: those that are numbers.
pub(super) async fn holds(
    connection: &mut impl ConnectionLike,
    inventory: &InventoryId,
) -> Result<BTreeSet<OrderNumber>, Error> {
    let mut ask = redis::cmd("HKEYS");
    let fields: Vec<String> =
        ask.arg(format!("{{{inventory}}}:sale")).query_async(connection).await?;
    Ok(fields.iter().filter_map(|field| field.parse().ok()).collect())
}

/// A sale with numbered rows and standing places, over two legs. If it keeps its tiers apart, their names
/// put them on two masters of a cluster of three.
fn sale_file(setup: &Setup) -> Result<SaleFile, Error> {
    let (row_seats, standing) = (50, setup.seats / 2);
    let rows: Vec<_> = (0..setup.seats.saturating_sub(standing).div_ceil(row_seats).max(1))
        .map(|row| {
            let seats = json!({ "prefix": format!("{row}-"), "first": 1, "count": row_seats });
            json!({ "row": row.to_string(), "seats": seats })
        })
        .collect();
    let file = json!({
        "sale": SALE, "title": "Chaos", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": setup.pay_window_seconds,
        "tiers_apart": setup.keeps_tiers_apart(),
        "points": { "per_minor": 100, "points": 3, "growth": 1 },
        "gate": { "user_lock_ms": 500, "rate_per_second": 20000 },
        "stops": [
            { "stop": "A", "name": "a" }, { "stop": "B", "name": "b" }, { "stop": "C", "name": "c" }
        ],
        "tiers": [
            { "tier": "stalls", "name": "Stalls", "price_minor": 900,
              "sections": [{ "section": "1", "rows": rows }] },
            { "tier": "standing", "name": "Standing", "price_minor": 500,
              "general_admission": standing.max(1) },
        ],
    });
    Ok(serde_json::from_value(file)?)
}
