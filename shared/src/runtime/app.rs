//! The engine with its real adapters, built once at cold start and shared by every request.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use aws_config::environment::{
    EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider,
};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_lc_rs::rand;
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use crate::beacon::DrandBeacon;
use crate::challenges::Challenges;
use crate::challenges::keys::ChallengeKeys;
use crate::challenges::siteverify::Siteverify;
use crate::dynamodb::{
    Dynamo, DynamoBills, DynamoCalls, DynamoCatalogue, DynamoCursors, DynamoOperators,
    DynamoOrders, DynamoRooms, DynamoRules, DynamoSubscriptions, DynamoWebhooks, StoreConfig,
};
use crate::events::{EventBus, WEBHOOK_KEYS, WebhookConnections};
use crate::figures::FigureSource;
use crate::http::attendees::AttendeeKeys;
use crate::http::origin::Origin;
use crate::http::tokens::AdmissionKeys;
use crate::providers::{Limits, Operation, Providers, TurnRequest, Turns};
use crate::redis::RedisWalletLocks;
use crate::redis::availability::Availability;
use crate::redis::counters::Counters;
use crate::redis::{Bounds, Connection, Meter, RedisBoard, RedisChallenges, RedisGate, RedisSeats};
use crate::runtime::callbacks::CallbackEntry;
use crate::runtime::config::{
    AdmissionConfig, AttendeeConfig, CA_FILE, ChallengeConfig, Config, Defect, ProvidersConfig,
    SiteConfig, WebhooksConfig,
};
use crate::runtime::connections::{Https, Trust};
use crate::runtime::edge::EdgeSecrets;
use crate::runtime::functions::{Function, QueueName};
use crate::runtime::given_up::Reported;
use crate::runtime::merchants::{Merchants, MerchantsDefect, MerchantsSource};
use crate::runtime::metrics::{Counted, Metrics};
use crate::runtime::secret_document;
use crate::sqs::{QueueConfig, SqsQueue};
use crate::tickets::{TICKET_KEYS, TicketKeys};
use engine::domain::admission::call_rate::Take;
use engine::domain::admission::room::code::made_code;
use engine::domain::admission::room::join::IndexStock;
use engine::domain::admission::room::memory::RoomMemory;
use engine::domain::basics::bytes::{Nonce, Secret};
use engine::domain::basics::ids::{DeploymentId, Epoch, InvalidId, ProviderId, ReaderId};
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::capacity::CacheKind;
use engine::domain::payment::captures::Listing;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::ports::{BoardPorts, Ports, RoomPorts, StoreError, Stored};

/// The region of servers that emulate AWS. Every client of theirs must name the same one: some
/// keep the tables and queues of each region apart, as AWS does.
pub const LOCAL_REGION: &str = "us-east-1";
/// Time that a cold start waits for its connections. A service that has not answered by then is met
/// by the first request, which says so to its buyer.
pub const MAX_WARM_UP: Duration = Duration::from_secs(2);
/// Time that an environment which was provisioned before anybody asks reads sales at most: an init of
/// provisioned concurrency may take 130 seconds.
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>
pub const MAX_PRELOAD: Duration = Duration::from_secs(30);
/// What Lambda says of how an environment came to be, and what it says of one that was provisioned.
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
const INITIALIZATION_TYPE: &str = "AWS_LAMBDA_INITIALIZATION_TYPE";
const PROVISIONED: &str = "provisioned-concurrency";

/// What a function needs to start: services to which it connects before its first request, and
/// secrets without which it does not start. Other services are connected to on their first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Redis,
    /// DynamoDB, by a role that may read single items of the table of sales.
    Sales,
    /// DynamoDB, by a role that may read single items of the table of orders.
    Order,
    /// DynamoDB, by a role that may read the table of orders in batches.
    Orders,
    Queues,
    /// The keys of admission tokens.
    AdmissionKeys,
    /// The keys that hash attendees.
    AttendeeKeys,
    /// The keys of challenges.
    ChallengeKeys,
    /// The secrets of payment providers.
    PaymentSecrets,
    /// The key of the entry of callbacks.
    CallbackKey,
    /// The keys of tickets.
    TicketKeys,
    /// The keys that the secrets of webhooks are made from.
    WebhookKeys,
}

/// Why the engine could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] Defect),
    /// The accounts of merchants are wrong.
    #[error(transparent)]
    Merchants(#[from] MerchantsDefect),
    /// A client could not be built.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gave no random number.
    #[error("the system gives no entropy")]
    NoEntropy,
}

/// A value that is built when it is first used: not every function uses everything.
type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// The adapters: Redis, DynamoDB, SQS, the payment provider.
#[derive(Debug)]
pub struct LivePorts {
    redis: Connection,
    https: Https,
    seats: RedisSeats,
    gate: Counted<RedisGate>,
    counters: Counters,
    board: RedisBoard,
    store: Arc<Lazy<Store>>,
    queue: Lazy<Counted<SqsQueue>>,
    provider: Providers,
    webhook_connections: Lazy<WebhookConnections>,
    beacon: DrandBeacon,
    grace: Grace,
    listings: Vec<Listing>,
    offers: Vec<Offer>,
    started_elsewhere: bool,
}

#[derive(Debug)]
struct Store {
    dynamo: Dynamo,
    orders: Reported<Counted<DynamoOrders>>,
    catalogue: DynamoCatalogue,
    rooms: Counted<DynamoRooms>,
    cursors: DynamoCursors,
    bills: DynamoBills,
    calls: DynamoCalls,
    rules: DynamoRules,
    operators: DynamoOperators,
    webhooks: DynamoWebhooks,
    subscriptions: DynamoSubscriptions,
}

/// The turns of calls to providers, in the store, which is built when the first one is taken.
#[derive(Debug)]
struct StoredTurns(Arc<Lazy<Store>>);

/// The accounts of merchants, read where they are kept.
async fn merchants(source: &MerchantsSource, secrets: &SdkConfig) -> Result<Merchants, Error> {
    let document = match source.secret() {
        Some(name) => Some(secret_document::read(secrets, name).await?),
        None => None,
    };
    Ok(source.load(document.as_ref())?)
}

/// The limits on calls to providers, whose turns the tables keep.
fn limits(config: &ProvidersConfig, turns: StoredTurns) -> Limits {
    Limits::new(Arc::new(turns), config.call_rate)
        .with_capture_refunds(config.capture_refunds)
        .of_deployment(config.deployment.clone())
}

impl Turns for StoredTurns {
    fn take<'a>(&'a self, request: TurnRequest<'a>) -> BoxFuture<'a, Stored<Take>> {
        Turns::take(&self.0.calls, request)
    }

    fn next<'a>(
        &'a self,
        provider: &'a ProviderId,
        operation: Operation,
    ) -> BoxFuture<'a, Stored<Option<i64>>> {
        Turns::next(&self.0.calls, provider, operation)
    }

    fn own<'a>(
        &'a self,
        provider: &'a ProviderId,
        deployment: &'a DeploymentId,
    ) -> BoxFuture<'a, Stored<()>> {
        Turns::own(&self.0.calls, provider, deployment)
    }
}

impl LivePorts {
    /// What is kept of the providers' bills.
    #[must_use]
    pub fn bills(&self) -> &DynamoBills {
        &self.store.bills
    }

    /// The locks of wallets.
    #[must_use]
    pub fn wallet_locks(&self) -> RedisWalletLocks {
        RedisWalletLocks::new(self.redis.clone())
    }

    /// Builds the clients. None connects before its first use.
    async fn new(config: &Config) -> Result<Self, Error> {
        let trust = trust(config)?;
        let https = Https::new(&trust);
        let sdk = sdk_config(config, &https).await;
        let secrets_sdk = sdk.clone();
        let redis = Connection::trusting(&config.redis.topology, Bounds::default(), &trust)?;
        let store = StoreConfig {
            endpoint: config.dynamodb.endpoint.clone(),
            catalogue_bytes: config.sales.memory_bytes,
            ..StoreConfig::new(config.dynamodb.tables.clone())
        };
        let queue = QueueConfig {
            endpoint: config.sqs.endpoint.clone(),
            ..QueueConfig::new(config.sqs.urls.clone())
        };
        let (of_queue, of_challenges) = (sdk.clone(), https.clone());
        let secret = config.admission.keys.first().map(|(_, secret)| secret.0.as_slice());
        let counters = Counters::new(redis.clone(), secret);
        let of_orders = counters.clone();
        let store: Lazy<Store> = LazyLock::new(Box::new(move || {
            let dynamo = Dynamo::new(&sdk, store);
            Store {
                orders: Reported::new(Counted(DynamoOrders::new(dynamo.clone())), of_orders),
                catalogue: DynamoCatalogue::new(dynamo.clone()),
                rooms: Counted(DynamoRooms::new(dynamo.clone())),
                cursors: DynamoCursors::new(dynamo.clone()),
                bills: DynamoBills::new(dynamo.clone()),
                calls: DynamoCalls::new(dynamo.clone()),
                rules: DynamoRules::new(dynamo.clone()),
                operators: DynamoOperators::new(dynamo.clone()),
                webhooks: DynamoWebhooks::new(dynamo.clone()),
                subscriptions: DynamoSubscriptions::new(dynamo.clone()),
                dynamo,
            }
        }));
        let store = Arc::new(store);
        let limits = limits(&config.providers, StoredTurns(Arc::clone(&store)));
        let merchants = merchants(&config.providers.merchants, &secrets_sdk).await?;
        let tolerance_seconds = config.payments.tolerance_seconds;
        let provider = Providers::limited(&config.payments, &config.providers, &https, &limits)?
            .with_merchants(merchants, tolerance_seconds, &https, &limits)?;
        let beacon = DrandBeacon::new(&config.beacon, https.clone());
        let addresses = config.webhooks.addresses;
        Ok(Self {
            seats: RedisSeats::new(redis.clone()),
            gate: Counted(RedisGate::new(redis.clone())),
            counters,
            board: RedisBoard::new(redis.clone()),
            redis,
            https: of_challenges,
            store,
            queue: LazyLock::new(Box::new(move || Counted(SqsQueue::new(&of_queue, https, queue)))),
            listings: provider.listings(config.providers.list_lag),
            offers: provider.offers(),
            started_elsewhere: !config.providers.only_started_here,
            provider,
            webhook_connections: LazyLock::new(Box::new(move || {
                WebhookConnections::new(addresses, &trust)
            })),
            beacon,
            grace: config.providers.grace,
        })
    }

    #[must_use]
    pub fn rules(&self) -> &DynamoRules {
        &self.store.rules
    }

    /// What operators did, and what they look up.
    #[must_use]
    pub fn operators(&self) -> &DynamoOperators {
        &self.store.operators
    }

    #[must_use]
    pub fn webhooks(&self) -> &DynamoWebhooks {
        &self.store.webhooks
    }

    /// How far each webhook was told.
    #[must_use]
    pub fn subscriptions(&self) -> &DynamoSubscriptions {
        &self.store.subscriptions
    }

    #[must_use]
    pub fn webhook_connections(&self) -> &WebhookConnections {
        &self.webhook_connections
    }

    /// How many messages each dead-letter queue has, by its own count.
    ///
    /// # Errors
    /// Fails if SQS does.
    pub async fn dead_letters(&self) -> Stored<BTreeMap<QueueName, u64>> {
        self.queue.0.dead_letters().await
    }

    /// The counters of the gate's limits.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    async fn warm_up(&self, need: Need) -> Stored<()> {
        match need {
            Need::Redis => self.redis.warm_up().await,
            Need::Sales => self.store.dynamo.read_a_sale().await,
            Need::Order => self.store.dynamo.read_an_order().await,
            Need::Orders => self.store.dynamo.read_orders().await,
            Need::Queues => self.queue.0.connect().await,
            Need::AdmissionKeys
            | Need::AttendeeKeys
            | Need::ChallengeKeys
            | Need::PaymentSecrets
            | Need::CallbackKey
            | Need::TicketKeys
            | Need::WebhookKeys => Ok(()),
        }
    }
}

impl Ports for LivePorts {
    type Seats = RedisSeats;
    type Gate = Counted<RedisGate>;
    type Orders = Reported<Counted<DynamoOrders>>;
    type Catalogue = DynamoCatalogue;
    type Queue = Counted<SqsQueue>;
    type Provider = Providers;
    type Cursors = DynamoCursors;

    fn seats(&self) -> &RedisSeats {
        &self.seats
    }

    fn gate(&self) -> &Counted<RedisGate> {
        &self.gate
    }

    fn orders(&self) -> &Reported<Counted<DynamoOrders>> {
        &self.store.orders
    }

    fn catalogue(&self) -> &DynamoCatalogue {
        &self.store.catalogue
    }

    fn queue(&self) -> &Counted<SqsQueue> {
        &self.queue
    }

    fn provider(&self) -> &Providers {
        &self.provider
    }

    fn cursors(&self) -> &DynamoCursors {
        &self.store.cursors
    }

    fn grace(&self) -> Grace {
        self.grace
    }

    fn listings(&self) -> Vec<Listing> {
        self.listings.clone()
    }

    fn offers(&self) -> Vec<Offer> {
        self.offers.clone()
    }

    fn started_elsewhere(&self) -> bool {
        self.started_elsewhere
    }
}

impl RoomPorts for LivePorts {
    type Rooms = Counted<DynamoRooms>;
    type Beacon = DrandBeacon;

    fn rooms(&self) -> &Counted<DynamoRooms> {
        &self.store.rooms
    }

    fn beacon(&self) -> &DrandBeacon {
        &self.beacon
    }
}

impl BoardPorts for LivePorts {
    type Board = RedisBoard;

    fn board(&self) -> &RedisBoard {
        &self.board
    }
}

/// The engine: what every handler is given.
#[derive(Debug)]
pub struct App {
    pub ports: LivePorts,
    /// Mints order numbers for this process.
    pub mint: Mint,
    /// Signs and checks admission tokens and place tokens.
    pub admissions: AdmissionKeys,
    /// What is left of the indices that this process took of waiting rooms.
    pub indices: Mutex<IndexStock>,
    /// What this process remembers of waiting rooms.
    pub room_memory: Mutex<RoomMemory>,
    /// The kind of cache, if it is known.
    pub cache: Option<CacheKind>,
    /// Payments a second that each provider is asked to start at most.
    pub starts_per_second: u32,
    /// What is left of each sale.
    pub availability: Availability,
    pub attendees: AttendeeKeys,
    /// What buyers must answer first.
    pub challenges: Challenges,
    /// The locks of wallets.
    pub wallet_locks: RedisWalletLocks,
    /// The entry of callbacks.
    pub callbacks: CallbackEntry,
    /// Signs the codes of tickets, and checks them.
    pub tickets: TicketKeys,
    /// How webhooks are told.
    pub webhooks: WebhooksConfig,
    /// The secrets of the edge.
    pub edge: EdgeSecrets,
    /// The origins that buyers may come back to from a provider's page.
    pub return_origins: Vec<Origin>,
    /// Where the pages are, and what they may call.
    pub site: SiteConfig,
    /// Counts what comes of each request.
    pub metrics: Metrics,
    /// Days after its closing at which a sale is archived by itself; `None` never.
    pub archive_after_days: Option<u16>,
    operator_issuer: Option<String>,
    figures: Option<Arc<dyn FigureSource>>,
    bus: Option<Arc<dyn EventBus>>,
}

impl App {
    /// The engine of one function that the environment describes, ready for its first request.
    ///
    /// # Errors
    /// Returns why it could not be built; the function then does not start. A service that does not
    /// answer is no reason.
    pub async fn start(function: Function) -> Result<Self, Error> {
        let app = Self::from_config(&Config::from_env()?).await?;
        app.has(function.needs())?;
        app.warm_up(function.needs()).await;
        let is_provisioned = env::var(INITIALIZATION_TYPE).is_ok_and(|kind| kind == PROVISIONED);
        if is_provisioned && function.needs().contains(&Need::Sales) {
            app.preload().await;
        }
        Ok(app)
    }

    /// Reads the open sales, so that the first request finds its own. What cannot be read within
    /// [`MAX_PRELOAD`] is left to the requests that want it.
    pub async fn preload(&self) {
        let preloaded = self.ports.store.catalogue.preload(Timestamp::now());
        match timeout(MAX_PRELOAD, preloaded).await {
            Ok(Ok(sales)) => tracing::info!(sales, "remembered before the first request"),
            Ok(Err(error)) => tracing::warn!(%error, "started without every open sale"),
            Err(late) => tracing::warn!(%late, "started without every open sale"),
        }
    }

    /// The issuer of operators' tokens; without one, no token makes an operator.
    #[must_use]
    pub fn operator_issuer(&self) -> Option<&str> {
        self.operator_issuer.as_deref()
    }

    /// The same, with figures to read.
    #[must_use]
    pub fn with_figures(self, figures: Option<Arc<dyn FigureSource>>) -> Self {
        Self { figures, ..self }
    }

    /// What the metrics say of the last minutes; `None` if nothing can be read of them.
    #[must_use]
    pub fn figures(&self) -> Option<&dyn FigureSource> {
        self.figures.as_deref()
    }

    /// The same, with an event bus to tell.
    #[must_use]
    pub fn with_bus(self, bus: Option<Arc<dyn EventBus>>) -> Self {
        Self { bus, ..self }
    }

    /// The event bus that is told of facts; `None` if there is none.
    #[must_use]
    pub fn bus(&self) -> Option<&dyn EventBus> {
        self.bus.as_deref()
    }

    /// Counts the commands to the slots of sales that are watched.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.ports.redis.meter()
    }

    /// The engine that a configuration describes.
    ///
    /// # Errors
    /// Returns why it could not be built.
    pub async fn from_config(config: &Config) -> Result<Self, Error> {
        let ports = LivePorts::new(config).await?;
        let (topology, bounds) = (&config.redis.topology, Bounds::default());
        let replicas =
            Connection::to_replicas(topology, bounds, &trust(config)?)?.counted_with(&ports.redis);
        Ok(Self {
            availability: Availability::new(ports.redis.clone(), replicas, random_u32()?),
            cache: config.redis.kind,
            starts_per_second: Operation::StartPayment
                .rate(config.providers.call_rate)
                .per_second(),
            challenges: challenges(&config.challenges, &ports),
            wallet_locks: ports.wallet_locks(),
            ports,
            mint: Mint::new(random_u32()?),
            admissions: admission_keys(&config.admission),
            indices: Mutex::default(),
            room_memory: Mutex::default(),
            attendees: attendee_keys(&config.attendees),
            callbacks: config.callbacks.clone(),
            tickets: TicketKeys::new(config.dynamodb.deployment(), &config.tickets),
            webhooks: config.webhooks.clone(),
            edge: config.edge.clone(),
            return_origins: config.providers.return_origins.clone(),
            site: config.site.clone(),
            metrics: Metrics::new(&config.metrics),
            archive_after_days: config.sales.archive_after_days,
            operator_issuer: config.operators.issuer.clone(),
            figures: None,
            bus: None,
        })
    }

    /// A function that signs or checks admissions does not start without a key, rather than turn
    /// every buyer away; nor does one that asks for challenges without theirs; one that takes names not
    /// without the key that hashes them, one that signs or checks tickets not without theirs, one that tells webhooks
    /// not without what signs, one that takes callbacks not without a secret, and the entry not without its key.
    ///
    /// # Errors
    /// Returns the variable that is missing.
    pub fn has(&self, needs: &[Need]) -> Result<(), Defect> {
        let lacks = |need: Need, is_empty: bool| is_empty && needs.contains(&need);
        let missing = |variable| Err(Defect { variable, rule: "must be set" });
        if lacks(Need::AdmissionKeys, self.admissions.is_empty()) {
            return missing("ONSALE_ADMISSION_KEYS");
        }
        if lacks(Need::AttendeeKeys, self.attendees.is_empty()) {
            return missing("ONSALE_ATTENDEE_KEYS");
        }
        if lacks(Need::ChallengeKeys, self.challenges.keys.is_empty()) {
            return missing("ONSALE_CHALLENGE_KEYS");
        }
        if lacks(Need::PaymentSecrets, !self.ports.provider.take_callbacks()) {
            return missing("ONSALE_PAYMENT_SECRETS");
        }
        if lacks(Need::TicketKeys, self.tickets.is_empty()) {
            return missing(TICKET_KEYS);
        }
        if lacks(Need::WebhookKeys, self.webhooks.keys.0.is_empty()) {
            return missing(WEBHOOK_KEYS);
        }
        if lacks(Need::CallbackKey, self.callbacks.keys.is_empty()) {
            return missing("ONSALE_CALLBACK_KEYS");
        }
        Ok(())
    }

    /// Connects to what the function needs, all at once, so that the first request need not. What
    /// does not answer within [`MAX_WARM_UP`] is left to that request.
    pub async fn warm_up(&self, needs: &[Need]) {
        let each = needs.iter().map(|need| async move {
            match timeout(MAX_WARM_UP, self.ports.warm_up(*need)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(?need, %error, "started without it"),
                Err(late) => tracing::warn!(?need, %late, "started without it"),
            }
        });
        join_all(each).await;
    }
}

/// A name for a load of a sale that no other load has: the time, and random digits.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] if the system gives no random number.
pub fn new_epoch(now: Timestamp) -> Result<Epoch, StoreError> {
    let random = random_u32().map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Epoch::new(format!("{:x}-{random:08x}", now.ms()))
        .map_err(|error: InvalidId| StoreError::Contract(error.to_string()))
}

/// A name for a run of a reader of captures, or of the log, that no other run has: the time, and random digits.
///
/// # Errors
/// As [`new_epoch`].
pub fn new_reader(now: Timestamp) -> Result<ReaderId, StoreError> {
    let random = random_u32().map_err(|error| StoreError::Unavailable(error.to_string()))?;
    ReaderId::new(format!("{:x}-{random:08x}", now.ms()))
        .map_err(|error: InvalidId| StoreError::Contract(error.to_string()))
}

/// A secret that nobody can guess, for a waiting room to commit to.
///
/// # Errors
/// As [`new_epoch`].
pub fn new_secret() -> Result<Secret, StoreError> {
    random_bytes().map(Secret).map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Random bytes for whoever joins a waiting room.
///
/// # Errors
/// As [`new_epoch`].
pub fn new_nonce() -> Result<Nonce, StoreError> {
    random_bytes().map(Nonce).map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// A new code for a group of a waiting room, which nobody can guess.
///
/// # Errors
/// As [`new_epoch`].
pub fn new_code() -> Result<String, StoreError> {
    random_bytes().map(made_code).map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn random_u32() -> Result<u32, Error> {
    random_bytes().map(u32::from_be_bytes)
}

fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| Error::NoEntropy)?;
    Ok(bytes)
}

fn trust(config: &Config) -> Result<Trust, Defect> {
    let Some(file) = &config.ca_file else { return Ok(Trust::public()) };
    let defect = || Defect { variable: CA_FILE, rule: "must name a file of authorities in PEM" };
    let pem = std::fs::read(file).map_err(|_| defect())?;
    Trust::only(pem).map_err(|_| defect())
}

/// AWS as the environment describes it.
pub async fn aws(https: &Https) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(https.clone());
    // The SDK's own search would find these first as well, but makes everything else that it could
    // ask before it looks: a function, to which Lambda gives all of them, would wait for that.
    let has = |variables: &[&str]| variables.iter().all(|name| env::var_os(name).is_some());
    if has(&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) {
        loader = loader.credentials_provider(EnvironmentVariableCredentialsProvider::new());
    }
    if has(&["AWS_REGION"]) {
        loader = loader.region(EnvironmentVariableRegionProvider::new());
    }
    loader.load().await
}

/// The SDK's configuration, for a client that not every function has.
///
/// # Errors
/// The configuration is wrong.
pub(crate) async fn sdk(config: &Config) -> Result<SdkConfig, Error> {
    Ok(sdk_config(config, &Https::new(&trust(config)?)).await)
}

/// The SDK's configuration. Where both services are emulated there are no credentials to look for,
/// and looking would take seconds.
async fn sdk_config(config: &Config, https: &Https) -> SdkConfig {
    if config.dynamodb.endpoint.is_none() || config.sqs.endpoint.is_none() {
        return aws(https).await;
    }
    let credentials = Credentials::new("local", "local", None, None, "local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(LOCAL_REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(https.clone())
        .build()
}

fn admission_keys(config: &AdmissionConfig) -> AdmissionKeys {
    AdmissionKeys::new(config.keys.iter().map(|(kid, secret)| (kid.as_str(), secret.0.as_slice())))
}

fn challenges(config: &ChallengeConfig, ports: &LivePorts) -> Challenges {
    let keys = ChallengeKeys::new(config.keys.iter().map(|(_, secret)| secret.0.as_slice()));
    let siteverify = Siteverify::new(config.siteverify.clone(), ports.https.clone());
    Challenges::new(keys, RedisChallenges::new(ports.redis.clone()), siteverify)
}

fn attendee_keys(config: &AttendeeConfig) -> AttendeeKeys {
    AttendeeKeys::new(config.keys.iter().map(|(_, secret)| secret.0.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [Need; 2] = [Need::AdmissionKeys, Need::PaymentSecrets];

    async fn app(keys: &str, secrets: &str) -> App {
        let variable = |variable: &str| match variable {
            "ONSALE_ADMISSION_KEYS" => Some(keys.to_owned()),
            "ONSALE_PAYMENT_SECRETS" => Some(secrets.to_owned()),
            "ONSALE_REDIS_URL" => Some("redis://127.0.0.1:1".to_owned()),
            _ => Some("http://127.0.0.1:1".to_owned()).filter(|_| variable.ends_with("_URL")),
        };
        let mut config = Config::read(variable).unwrap();
        config.dynamodb.endpoint = Some("http://127.0.0.1:1".to_owned());
        config.sqs.endpoint = Some("http://127.0.0.1:1".to_owned());
        App::from_config(&config).await.unwrap()
    }

    #[tokio::test]
    async fn a_function_without_the_secrets_it_needs_does_not_start() {
        let key = format!("a:{}=", "A".repeat(43));
        let secret = "stripe:whsec";
        assert_eq!(app(&key, "").await.has(&[Need::AdmissionKeys, Need::Redis]), Ok(()));
        assert_eq!(app("", secret).await.has(&[Need::PaymentSecrets, Need::Sales]), Ok(()));
        assert_eq!(app(&key, secret).await.has(&SECRETS), Ok(()));
        let missing = app("", secret).await.has(&SECRETS).unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_ADMISSION_KEYS must be set");
        let missing = app(&key, "").await.has(&SECRETS).unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_PAYMENT_SECRETS must be set");
        let missing = app(&key, secret).await.has(&[Need::AttendeeKeys]).unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_ATTENDEE_KEYS must be set");
        let missing = app(&key, secret).await.has(&[Need::ChallengeKeys]).unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_CHALLENGE_KEYS must be set");
        let missing = app(&key, secret).await.has(&[Need::CallbackKey]).unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_CALLBACK_KEYS must be set");
    }
}
