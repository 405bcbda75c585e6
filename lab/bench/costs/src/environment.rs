//! The engine as a function has it after its cold start, and servers for it.

use engine::domain::admission::call_rate::CallRate;
use engine::domain::basics::ids::{DeploymentId, ProviderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::grace::Grace;
use local::payment::{API_KEY, PaymentProvider};
use local::queues::Queues;
use local::servers::{Endpoints, Stack};
use local::stores;
use serde::{Deserialize, Serialize};
use shared::dynamodb::{Dynamo, StoreConfig, Tables, create_tables};
use shared::providers::stripe::signature;
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::callbacks::CallbackEntry;
use shared::runtime::config::{
    AdmissionConfig, AttendeeConfig, BeaconConfig, BusConfig, ChallengeConfig, Config,
    DynamoDbConfig, MetricsConfig, OperatorsConfig, PaymentConfig, ProviderApi, ProvidersConfig,
    RedisConfig, SalesConfig, Secret, SiteConfig, SqsConfig, WebhooksConfig,
};
use shared::runtime::edge::EdgeSecrets;
use shared::tickets::TicketSecrets;

/// What the payments carry.
pub(crate) const DEPLOYMENT: &str = "costs";
/// What the names of tables and queues begin with.
const PREFIX: &str = "costs-";
const ADMISSION_SECRET: [u8; 32] = [7; 32];
const PAYMENT_SECRET: &[u8] = b"whsec_costs";

/// For how long what was prepared holds (admissions, payment windows, signatures of callbacks): everything is prepared
/// before anything is counted, which takes minutes on a busy machine.
pub(crate) const AMPLE_SECONDS: u32 = 3_600;

/// Reason why there is no environment.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Addresses of the servers of an environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Servers {
    redis: String,
    dynamodb: String,
    sqs: String,
    provider: String,
}

/// Servers in this process and its children, on threads of their own.
#[derive(Debug)]
pub struct Own {
    stack: Stack,
    provider: PaymentProvider,
}

impl Own {
    /// Starts them.
    ///
    /// # Errors
    /// One did not start.
    pub async fn start() -> Result<Self, Failure> {
        Ok(Self { stack: Stack::ephemeral().await?, provider: PaymentProvider::start(None)? })
    }

    #[must_use]
    pub fn servers(&self) -> Servers {
        let Endpoints { redis_url, dynamodb_url, sqs_url } = self.stack.endpoints();
        let provider = self.provider.url();
        Servers { redis: redis_url, dynamodb: dynamodb_url, sqs: sqs_url, provider }
    }
}

#[derive(Debug)]
pub struct Environment {
    /// The app that handlers are given.
    pub app: App,
    /// The app of those that start payments: it has a provider to call, whom orders that expire would ask.
    pub paid_app: App,
}

impl Environment {
    /// Makes tables and queues on empty servers, and the engine on them.
    ///
    /// # Errors
    /// A server refuses.
    pub async fn on(servers: &Servers) -> Result<Self, Failure> {
        let Servers { redis, dynamodb, sqs, provider } = servers.clone();
        let queues = Queues::create(&stores::sqs(&sqs), PREFIX, None).await?;
        let tables = Tables::with_prefix(PREFIX);
        let store =
            StoreConfig { endpoint: Some(dynamodb.clone()), ..StoreConfig::new(tables.clone()) };
        create_tables(Dynamo::new(&stores::sdk_config(), store).client(), &tables).await?;
        let urls = queues.urls();
        let secret = Secret(PAYMENT_SECRET.to_vec());
        let config = Config {
            redis: RedisConfig { topology: Topology::Single(redis), kind: None },
            sales: SalesConfig::default(),
            dynamodb: DynamoDbConfig { tables, endpoint: Some(dynamodb) },
            sqs: SqsConfig { urls, endpoint: Some(sqs) },
            admission: AdmissionConfig {
                keys: vec![("costs".to_owned(), Secret(ADMISSION_SECRET.to_vec()))],
            },
            attendees: AttendeeConfig {
                keys: vec![("costs".to_owned(), Secret(ADMISSION_SECRET.to_vec()))],
            },
            challenges: ChallengeConfig::default(),
            payments: PaymentConfig {
                secrets: vec![(ProviderId::new(local::payment::PROVIDER)?, secret)],
                tolerance_seconds: AMPLE_SECONDS,
            },
            callbacks: CallbackEntry::default(),
            edge: EdgeSecrets::default(),
            tickets: TicketSecrets::default(),
            webhooks: WebhooksConfig::default(),
            bus: BusConfig::default(),
            providers: ProvidersConfig {
                grace: Grace::NONE,
                deployment: Some(DeploymentId::new(DEPLOYMENT)?),
                ..ProvidersConfig::default()
            },
            beacon: BeaconConfig::default(),
            operators: OperatorsConfig::default(),
            metrics: MetricsConfig::Off,
            site: SiteConfig::default(),
            ca_file: None,
        };
        let app = App::from_config(&config).await?;
        let api = ProviderApi {
            provider: ProviderId::new(local::payment::PROVIDER)?,
            url: Some(provider),
            key: Secret(API_KEY.as_bytes().to_vec()),
        };
        // Starts are counted one after the other, and none waits for a turn.
        let call_rate = CallRate::from_per_second(1000).ok_or("no rate")?;
        let providers = ProvidersConfig { apis: vec![api], call_rate, ..config.providers.clone() };
        let paid_app = App::from_config(&Config { providers, ..config }).await?;
        Ok(Self { app, paid_app })
    }

    /// The signature of a payment callback.
    #[must_use]
    pub fn sign(&self, body: &[u8]) -> String {
        signature::sign(PAYMENT_SECRET, body, Timestamp::now())
    }
}
