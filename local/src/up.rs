//! The whole engine in one process: its servers, the payment provider, the beacon, the gateway in front of the HTTP
//! functions, the pollers of the queue functions, and the schedule of reconcile.

mod lost_orders;
mod sources;

pub use lost_orders::LostOrders;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use engine::domain::admission::call_rate::CallRate;
use engine::domain::basics::ids::{InvalidId, ProviderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::capacity::CacheKind;
use engine::flows::reconcile::Report;
use engine::ports::{Ports as _, StoreError};
use shared::beacon::{Chain, Chains};
use shared::dynamodb::{Tables, create_tables};
use shared::events::{Addresses, WebhookKeys};
use shared::hex::to_hex;
use shared::http::origin::Origin;
use shared::providers::CaptureRefunds;
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::callbacks::CallbackEntry;
use shared::runtime::config::{
    AdmissionConfig, AttendeeConfig, BeaconConfig, BusConfig, ChallengeConfig, Config,
    DEFAULT_TOLERANCE_SECONDS, DynamoDbConfig, MetricsConfig, OperatorsConfig, PaymentConfig,
    ProviderApi, ProvidersConfig, RedisConfig, SalesConfig, Secret, SiteConfig, SqsConfig,
    WebhooksConfig,
};
use shared::runtime::edge::EdgeSecrets;
use shared::runtime::functions::{Function, Trigger};
use shared::runtime::listed_secrets::ListedSecrets;
use shared::runtime::merchants::MerchantsSource;
use shared::tickets::TicketSecrets;

use crate::concurrency::Concurrency;
use crate::data_dir::{self, DataDir, Secrets};
use crate::endpoints::{Endpoints, EndpointsError};
use crate::event_sources::{Source, invoke};
use crate::gateway::{EdgeOptions, Gateway, Place, Routes, edge_secret};
use crate::kept_metrics;
use crate::merchants::{self, MerchantProviders};
use crate::open_files::{self, Verdict};
use crate::pages_config::PagesConfig;
use crate::payment;
use crate::queues::{self, Queues, Redelivery};
use crate::servers::{self, External, FakeBeacon, FakeIssuers, Pace, PaymentProvider, Stack};
use crate::stores;
use crate::throttled::{self, Recorder};
use fake_identity::{Identity, Realm, Refused, Role, realm};
use fake_limits::{Cache, Enforced, Limits, Throttled, Throttles};
use fake_payments::{Form, Lags};
use sources::{RECONCILE_TIMEOUT, reconcile, report, start_sources};

/// Default prefix of the names of tables and queues.
pub const PREFIX: &str = "onsale-";
/// Default port of the gateway.
pub const PORT: u16 = 8080;
/// Default period of reconcile in seconds.
pub const RECONCILE_SECONDS: u32 = match Function::Reconcile.row().trigger {
    Trigger::Schedule { every_seconds } => every_seconds,
    Trigger::Http | Trigger::Queue(_) => panic!("reconcile runs on a schedule"),
};
/// File of the payment provider's ledger, in the data directory.
const PROVIDER_FILE: &str = "provider.jsonl";
/// How often [`Engine::watch`] looks whether everything runs.
const LOOK: Duration = Duration::from_millis(200);
/// Lifetime of a token from an [`Engine`], in seconds.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;

/// Options of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directory of its secrets, endpoints and state; `None` is a temporary one, removed with the
    /// engine.
    pub data_dir: Option<PathBuf>,
    /// True if the state is in memory only; secrets and endpoints are files all the same.
    pub ephemeral: bool,
    /// The port of the gateway on 127.0.0.1; 0 for a free one.
    pub port: u16,
    /// Whether a free port is taken if that one is in use.
    pub or_free_port: bool,
    /// Period of reconcile in seconds.
    pub reconcile_seconds: u32,
    /// Redelivery of messages that fail.
    pub redelivery: Redelivery,
    /// How long the search of its payment provider lags, in seconds. Its grace follows from that
    /// ([`payment::grace`]).
    pub search_lag_seconds: u32,
    /// Servers that run already, in place of our own.
    pub external: External,
    /// Prefix of the names of its tables and queues: engines that share external servers need different
    /// ones.
    pub prefix: String,
    /// The routes of the gateway.
    pub routes: Routes,
    /// Whether to begin with empty tables though Redis or the payment provider knows of orders.
    pub accept_lost_orders: bool,
    /// The limits that its servers, its gateway and its functions enforce.
    pub limits: Limits,
    /// The directory of the built pages; without it the gateway says how to build them.
    pub pages: Option<PathBuf>,
    /// Whether buyers and everybody else must come through the edge, below `/api`, as in a deployment.
    pub edge_only: bool,
}

impl Options {
    /// An engine that leaves nothing behind, on a free port.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self {
            data_dir: None,
            ephemeral: true,
            port: 0,
            or_free_port: false,
            reconcile_seconds: RECONCILE_SECONDS,
            redelivery: Redelivery::default(),
            search_lag_seconds: payment::SEARCH_LAG_SECONDS,
            external: External::default(),
            prefix: PREFIX.to_owned(),
            routes: Routes::Api,
            accept_lost_orders: false,
            limits: Limits::None,
            pages: None,
            edge_only: false,
        }
    }

    /// An engine whose state is in `data_dir`, on a free port.
    #[must_use]
    pub fn persistent(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: Some(data_dir.into()), ephemeral: false, ..Self::ephemeral() }
    }
}

/// Why an engine did not start, or not stop in good order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// A server did not start or stop.
    #[error(transparent)]
    Servers(#[from] servers::Error),
    /// There are no tables, and orders are known that were in them.
    #[error(transparent)]
    LostOrders(#[from] LostOrders),
    /// Too few files may be open.
    #[error(
        "only {0} files may be open (ulimit -n): an engine needs {least}, and {needed} for all its \
         connections; raise the limit, as with: ulimit -n {needed}",
        least = open_files::LEAST,
        needed = open_files::NEEDED
    )]
    TooFewFiles(u64),
    /// A part of the engine serves no more.
    #[error("{0} has ended by itself")]
    Ended(&'static str),
    /// The tables could not be created.
    #[error("tables: {0}")]
    Tables(#[from] StoreError),
    /// The queues could not be created.
    #[error(transparent)]
    Queues(#[from] queues::Error),
    /// The engine could not be built.
    #[error(transparent)]
    App(#[from] shared::runtime::app::Error),
    /// The gateway cannot listen.
    #[error("127.0.0.1:{port}: {source}; --port chooses another, 0 a free one")]
    Port {
        /// The port that was asked for.
        port: u16,
        source: io::Error,
    },
    /// The endpoints could not be written.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// An id of ours breaks the rules of ids: a defect.
    #[error(transparent)]
    Name(#[from] InvalidId),
}

/// A running engine. [`Engine::stop`] ends it in good order; dropping it ends it as a crash would.
#[derive(Debug)]
pub struct Engine {
    gateway: Gateway,
    sources: Vec<Source>,
    app: Arc<App>,
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
    endpoints: Endpoints,
    identity: Identity,
    secrets: Secrets,
    provider: PaymentProvider,
    merchants: MerchantProviders,
    beacon: FakeBeacon,
    issuers: FakeIssuers,
    stack: Stack,
    recorder: Recorder,
    // Last, so that the directory is given up when nothing uses it any more.
    data_dir: DataDir,
}

impl Engine {
    /// Starts everything. When this returns, the API answers, and what an earlier run left undone
    /// has been looked at once.
    ///
    /// # Errors
    /// The first [`Error`]; whatever was started by then is stopped.
    pub async fn start(options: Options) -> Result<Self, Error> {
        check_open_files()?;
        let data_dir = data_dir(options.data_dir.as_deref())?;
        let secrets = data_dir.secrets()?;
        let kept_in = (!options.ephemeral).then_some(data_dir.path());
        let throttles = Throttles::default();
        let limits = options.limits.enforced(&throttles);
        let stack = Stack::start_within(kept_in, &options.external, limits.as_ref()).await?;
        let (provider, merchants) =
            providers(kept_in, options.search_lag_seconds, limits.as_ref())?;
        let beacon = FakeBeacon::start(Pace::OF_CHAIN).map_err(servers::Error::from)?;
        let servers = stack.endpoints();
        let sqs = stores::sqs(&servers.sqs_url);
        let queues = Queues::create(&sqs, &options.prefix, Some(options.redelivery)).await?;
        let endpoints = Endpoints {
            wechat: merchants.url(Form::Wechat),
            alipay: merchants.url(Form::Alipay),
            ..Endpoints::from_servers(servers, &provider, &beacon, options.prefix)
        };
        let payments = provider.ledger().len() + merchants.ledger().len();
        let payments = (!options.accept_lost_orders).then_some(payments);
        tables(&stack, &endpoints, payments).await?;
        let mut config = config(stack.engine_topology(), &endpoints, &queues, &secrets)?;
        let place = take_place(options.port, options.or_free_port).await?;
        let issuers = issuers(data_dir.path(), &place)?;
        merchants.write(data_dir.path(), &place.url(), &secrets).map_err(servers::Error::from)?;
        config.providers.merchants = merchants::source(data_dir.path());
        sign_in(&mut config, &place, &issuers);
        config.edge = edge_secrets(options.edge_only, &secrets);
        limit(&mut config, options.limits);
        allow_return(&mut config, &place);
        let webhook = format!("{}{}", place.url(), payment::entry_path(&secrets));
        provider.notify(&webhook, &secrets.stripe).map_err(servers::Error::from)?;
        let app = Arc::new(kept_metrics::kept(App::from_config(&config).await?));

        // A crash loses at most a second of Redis; DynamoDB has it all. Repair before the first request.
        report(invoke(RECONCILE_TIMEOUT, reconcile(Arc::clone(&app))).await);

        let trusted = Arc::clone(issuers.issuers());
        let identity =
            || Identity::new(secrets.identity.as_bytes()).with_issuers(Arc::clone(&trusted));
        let account = Concurrency::new(limits.as_ref());
        let (routes, app_of, limited) = (options.routes, Arc::clone(&app), limits.as_ref());
        let config = PagesConfig::local(&issuers.url(), &app.ports.offers());
        let (secret, origin) = (Some(edge_secret(&secrets)), app.site.origin.clone());
        let edge = EdgeOptions { pages: options.pages, config, origin, secret };
        let gateway =
            Gateway::start_at(place, app_of, identity(), routes, limited, account.clone(), &edge);
        let (seconds, of) = (options.reconcile_seconds, options.limits);
        let sources = start_sources(&app, &sqs, &queues, seconds, &account, of);
        let recorder = recorder(&data_dir, kept_in.is_some(), of, throttles, &stack)?;
        let gateway_url = format!("http://{}", gateway.address());
        let endpoints = Endpoints { gateway: gateway_url, issuers: issuers.url(), ..endpoints };
        endpoints.write(data_dir.path())?;
        let identity = identity();
        Ok(Self {
            gateway,
            sources,
            app,
            sqs,
            queues,
            endpoints,
            identity,
            secrets,
            provider,
            merchants,
            beacon,
            issuers,
            stack,
            recorder,
            data_dir,
        })
    }

    /// The address of the API: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.endpoints.gateway
    }

    #[must_use]
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Directory of its files.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// The handlers' side of the engine.
    #[must_use]
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    #[must_use]
    pub fn provider(&self) -> &PaymentProvider {
        &self.provider
    }

    /// The fakes of WeChat Pay and Alipay.
    #[must_use]
    pub fn merchants(&self) -> &MerchantProviders {
        &self.merchants
    }

    #[must_use]
    pub fn beacon(&self) -> &FakeBeacon {
        &self.beacon
    }

    /// The issuers of buyers and operators.
    #[must_use]
    pub fn issuers(&self) -> &FakeIssuers {
        &self.issuers
    }

    /// What its servers have refused for their limits.
    #[must_use]
    pub fn throttled(&self) -> Throttled {
        self.recorder.throttled()
    }

    #[must_use]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Number of paid orders that wait to be counted, those included that are being counted.
    ///
    /// # Errors
    /// The attributes of the queue cannot be read.
    pub async fn sync_backlog(&self) -> Result<u64, queues::Error> {
        queues::depth(&self.sqs, &self.queues.sync).await
    }

    /// The secrets of its data directory.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// A bearer token of a buyer.
    ///
    /// # Errors
    /// [`Refused`] when it cannot be signed.
    pub fn token(&self, user: &str) -> Result<String, Refused> {
        self.identity.token(user, Role::Buyer, Timestamp::now(), TOKEN_SECONDS)
    }

    /// A bearer token of the operator.
    ///
    /// # Errors
    /// [`Refused`] when it cannot be signed.
    pub fn operator_token(&self) -> Result<String, Refused> {
        self.identity.token("operator", Role::Operator, Timestamp::now(), TOKEN_SECONDS)
    }

    /// An access token of the buyers' issuer, as somebody gets it who signs in.
    ///
    /// # Errors
    /// [`Refused`] when it cannot be signed.
    pub fn buyer_access_token(&self, name: &str) -> Result<String, Refused> {
        let issuers = self.issuers.issuers();
        issuers.access_token(Realm::Buyers, name, realm::OPENID, Timestamp::now())
    }

    /// An access token of the operators' issuer with these scopes, such as
    /// [`WATCH`](fake_identity::realm::WATCH).
    ///
    /// # Errors
    /// [`Refused`] when it cannot be signed.
    pub fn operator_access_token(&self, name: &str, scopes: &[&str]) -> Result<String, Refused> {
        let issuers = self.issuers.issuers();
        issuers.access_token(Realm::Operators, name, &scopes.join(" "), Timestamp::now())
    }

    /// The `Stripe-Signature` header of a payment callback with this body.
    #[must_use]
    pub fn sign_payment(&self, body: &[u8]) -> String {
        payment::sign(&self.secrets, body, Timestamp::now())
    }

    /// Runs reconcile now, as the schedule does.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn reconcile(&self) -> Result<Report, lambda_http::Error> {
        reconcile(Arc::clone(&self.app)).await
    }

    /// Watches the parts of the engine until one is lost for good: resolves to why that is. A Redis that
    /// ends is started again, and then everything is repaired.
    pub async fn watch(&self) -> Error {
        let revived = async || {
            report(invoke(RECONCILE_TIMEOUT, reconcile(Arc::clone(&self.app))).await);
        };
        let own = async {
            loop {
                if self.gateway.has_ended() {
                    return Error::Ended("the gateway");
                }
                if self.provider.has_ended() || self.merchants.has_ended() {
                    return Error::Ended("the payment provider");
                }
                if self.issuers.has_ended() {
                    return Error::Ended("the issuers");
                }
                if self.beacon.has_ended() {
                    return Error::Ended("the beacon");
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            lost = self.stack.watch(revived) => lost.into(),
            lost = own => lost,
        }
    }

    /// Accepts no more work, finishes what is under way, and stops the servers.
    ///
    /// # Errors
    /// The first [`Error`]; nothing is left running.
    pub async fn stop(self) -> Result<(), Error> {
        let removed = Endpoints::remove(self.data_dir.path());
        if let Err(error) = self.recorder.finish() {
            tracing::warn!(%error, "throttling is not recorded");
        }
        self.gateway.stop().await;
        for source in self.sources {
            source.stop().await;
        }
        self.provider.stop().await;
        self.merchants.stop().await;
        self.stack.stop().await?;
        Ok(removed?)
    }
}

/// Takes the port of the gateway.
async fn take_place(port: u16, or_free_port: bool) -> Result<Place, Error> {
    match Place::take(port).await {
        Err(error) if or_free_port && error.kind() == io::ErrorKind::AddrInUse => {
            Place::take(0).await.map_err(|source| Error::Port { port: 0, source })
        }
        taken => taken.map_err(|source| Error::Port { port, source }),
    }
}

/// The data directory, or a temporary one, without the endpoints of an earlier run that was killed.
fn data_dir(path: Option<&Path>) -> Result<DataDir, Error> {
    let data_dir = path.map_or_else(DataDir::temporary, DataDir::open)?;
    Endpoints::remove(data_dir.path())?;
    Ok(data_dir)
}

/// A secret of its own for a purpose, made from that of admissions: so a data directory needs no new one.
fn made_secret(secrets: &Secrets, purpose: &str) -> ListedSecrets {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secrets.admission.as_bytes());
    let tag = hmac::sign(&key, purpose.as_bytes());
    ListedSecrets::new(vec![to_hex(tag.as_ref())]).unwrap_or_default()
}

/// What its tickets are signed with.
#[must_use]
pub fn ticket_secrets(secrets: &Secrets) -> TicketSecrets {
    made_secret(secrets, "keys of tickets")
}

/// What the secrets of its webhooks are made from.
#[must_use]
pub fn webhook_keys(secrets: &Secrets) -> WebhookKeys {
    WebhookKeys(made_secret(secrets, "keys of webhooks"))
}

/// The secrets without which its functions refuse buyers: none, unless they must come through the edge.
fn edge_secrets(edge_only: bool, secrets: &Secrets) -> EdgeSecrets {
    let secret = edge_only.then(|| edge_secret(secrets));
    secret.and_then(|secret| EdgeSecrets::new(vec![secret])).unwrap_or_default()
}

/// Creates the tables, unless orders are known that were in them: `payments` are the captures that the
/// providers know, `None` if whatever is lost is accepted.
async fn tables(
    stack: &Stack,
    endpoints: &Endpoints,
    payments: Option<usize>,
) -> Result<(), Error> {
    let dynamo = stores::dynamo(endpoints);
    if let Some(payments) = payments {
        lost_orders::check(stack, payments, &dynamo).await?;
    }
    Ok(create_tables(dynamo.client(), &dynamo.config().tables).await?)
}

/// Tells the functions of the limits that their servers enforce.
fn limit(config: &mut Config, limits: Limits) {
    config.redis.kind = cache_kind(limits);
    config.providers.call_rate = call_rate(limits);
    config.providers.capture_refunds = capture_refunds(limits);
}

/// Lets buyers come back from a provider's page to the pages of the gateway, by either name of this machine.
fn allow_return(config: &mut Config, place: &Place) {
    let origins = &mut config.providers.return_origins;
    let url = place.url();
    let own = [url.clone(), url.replace("127.0.0.1", "localhost")];
    for origin in own.iter().filter_map(|text| Origin::new(text)) {
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
}

/// Tells the functions of the issuers: whose tokens are operators', and what the pages of the gateway call.
fn sign_in(config: &mut Config, place: &Place, issuers: &FakeIssuers) {
    config.operators = OperatorsConfig { issuer: Some(issuers.issuer(Realm::Operators)) };
    let connect = Origin::of_address(&issuers.url()).into_iter().collect();
    config.site = SiteConfig { origin: Origin::new(&place.url()), connect };
}

/// Starts the fakes of Stripe, and of WeChat Pay and Alipay.
fn providers(
    kept_in: Option<&Path>,
    search_lag_seconds: u32,
    limits: Option<&Enforced>,
) -> Result<(PaymentProvider, MerchantProviders), servers::Error> {
    let ledger = kept_in.map(|dir| dir.join(PROVIDER_FILE));
    let lags = Lags::from_search_seconds(search_lag_seconds);
    let stripe = PaymentProvider::start_within(ledger.as_deref(), lags, limits.cloned())?;
    Ok((stripe, MerchantProviders::start(kept_in, search_lag_seconds, limits)?))
}

/// Starts the issuers, whose pages come back to the gateway at this place, by either name of it.
fn issuers(data_dir: &Path, place: &Place) -> Result<FakeIssuers, servers::Error> {
    let url = place.url();
    let origins = vec![url.replace("127.0.0.1", "localhost"), url];
    Ok(FakeIssuers::start(data_dir, origins)?)
}

/// Records what is refused, in the data directory; an engine whose state is kept goes on counting.
fn recorder(
    data_dir: &DataDir,
    is_kept: bool,
    limits: Limits,
    throttles: Throttles,
    stack: &Stack,
) -> Result<Recorder, Error> {
    let file = data_dir.path().join(throttled::FILE);
    if is_kept {
        throttles.resume(&throttled::read(&file));
    }
    // Units are those of the serverless cache.
    let is_metered = matches!(limits, Limits::Aws(quotas) if quotas.cache == Cache::Serverless);
    let redis = stack.redis().filter(|_| is_metered);
    let redis = redis.map(|redis| redis::Client::open(redis.url())).transpose();
    Ok(Recorder::start(limits, throttles, file, redis.map_err(servers::Error::from)?))
}

/// The rate of calls with which the engine is configured: as its providers grant the beginning of payments, of
/// which the engine begins five for each four of its rate.
fn call_rate(limits: Limits) -> CallRate {
    let granted = match limits {
        Limits::None => CallRate::MAX_PER_SECOND,
        Limits::Aws(quotas) => quotas.payments_per_second.saturating_mul(4) / 5,
    };
    CallRate::from_per_second(granted.clamp(1, CallRate::MAX_PER_SECOND)).unwrap_or_default()
}

/// The rate of refunds that captures decide: as it is by default for a new account, in proportion for one that starts more
/// payments, as whoever has agreed on more sets it; without limits as fast as the provider takes them.
fn capture_refunds(limits: Limits) -> CaptureRefunds {
    let Limits::Aws(quotas) = limits else { return CaptureRefunds(call_rate(limits)) };
    let of_new = fake_limits::Quotas::default().payments_per_second.max(1);
    let rate = CallRate::from_per_second(quotas.payments_per_second / of_new);
    rate.map(CaptureRefunds).unwrap_or_default()
}

/// The kind of cache that the engine is configured with; `None` if its limits are not enforced.
fn cache_kind(limits: Limits) -> Option<CacheKind> {
    let Limits::Aws(quotas) = limits else { return None };
    Some(match quotas.cache {
        Cache::Nodes => CacheKind::Nodes,
        Cache::Serverless => CacheKind::Serverless,
    })
}

/// Says at the start that fewer files may be open than an engine needs, and not when the first buyers
/// are turned away.
fn check_open_files() -> Result<(), Error> {
    match Verdict::of(open_files::limit()) {
        Verdict::Enough => {}
        Verdict::Few(limit) => tracing::warn!(
            limit,
            needed = open_files::NEEDED,
            "few files may be open (ulimit -n): the gateway takes fewer connections"
        ),
        Verdict::TooFew(limit) => return Err(Error::TooFewFiles(limit)),
    }
    Ok(())
}

/// Where a buyer of a local engine may come back to from the provider's page: a shop that is being built, and
/// that of the examples, which is nowhere.
const RETURN_ORIGINS: [&str; 5] = [
    "https://shop.example",
    "http://localhost:3000",
    "http://127.0.0.1:3000",
    "http://localhost:8080",
    "http://127.0.0.1:8080",
];

/// The configuration by which an engine believes the fake beacon at this address, beside quicknet, and draws by it where
/// a sale file names none.
#[must_use]
pub fn beacon_config(url: &str) -> BeaconConfig {
    let chain = Chain { rounds: fake_beacon::rounds(), key: fake_beacon::key() };
    let chains = Chains::with([chain]);
    let chains = chains.clone().by_default(fake_beacon::hash()).unwrap_or(chains);
    BeaconConfig { urls: vec![url.to_owned()], chains }
}

/// The configuration that the functions read from the environment in Lambda.
///
/// # Errors
/// An id of ours breaks the rules of ids: a defect.
pub fn config(
    topology: Topology,
    endpoints: &Endpoints,
    queues: &Queues,
    secrets: &Secrets,
) -> Result<Config, InvalidId> {
    let secret = |text: &str| Secret(text.as_bytes().to_vec());
    let provider = ProviderId::new(payment::PROVIDER)?;
    Ok(Config {
        redis: RedisConfig { topology, kind: None },
        sales: SalesConfig::default(),
        dynamodb: DynamoDbConfig {
            tables: Tables::with_prefix(&endpoints.table_prefix),
            endpoint: Some(endpoints.dynamodb.clone()),
        },
        sqs: SqsConfig { urls: queues.urls(), endpoint: Some(endpoints.sqs.clone()) },
        admission: AdmissionConfig { keys: vec![("local".to_owned(), secret(&secrets.admission))] },
        // Another key than the admissions', made from it: so a data directory needs no new secret.
        attendees: AttendeeConfig {
            keys: vec![("local".to_owned(), secret(&format!("attendees:{}", secrets.admission)))],
        },
        challenges: ChallengeConfig {
            keys: vec![("local".to_owned(), secret(&format!("challenges:{}", secrets.admission)))],
            siteverify: Vec::new(),
        },
        payments: PaymentConfig {
            secrets: vec![(provider.clone(), secret(&secrets.stripe))],
            tolerance_seconds: DEFAULT_TOLERANCE_SECONDS,
        },
        callbacks: CallbackEntry {
            keys: vec![secret(&payment::entry_key(secrets))],
            sources: Vec::new(),
        },
        edge: EdgeSecrets::default(),
        tickets: ticket_secrets(secrets),
        webhooks: WebhooksConfig { keys: webhook_keys(secrets), addresses: Addresses::Any },
        bus: BusConfig::default(),
        providers: ProvidersConfig {
            apis: vec![ProviderApi {
                provider,
                url: Some(endpoints.provider.clone()),
                key: secret(fake_payments::API_KEY),
            }],
            merchants: MerchantsSource::default(),
            grace: endpoints.grace(),
            call_rate: CallRate::default(),
            capture_refunds: CaptureRefunds::default(),
            list_lag: endpoints.list_lag(),
            only_started_here: false,
            return_origins: RETURN_ORIGINS.iter().filter_map(|text| Origin::new(text)).collect(),
            deployment: Some(secrets.deployment()?),
        },
        beacon: beacon_config(&endpoints.beacon),
        operators: OperatorsConfig::default(),
        metrics: MetricsConfig::Off,
        site: SiteConfig::default(),
        ca_file: None,
    })
}
