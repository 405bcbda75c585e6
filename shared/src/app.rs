//! The engine with its real adapters, built once at cold start and shared by every request.

use std::collections::BTreeMap;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_lc_rs::rand;
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};

use crate::config::{AdmissionConfig, Config, Defect, PaymentConfig};
use crate::domain::ids::{Epoch, InvalidId, ProviderId};
use crate::domain::number::Mint;
use crate::domain::time::Timestamp;
use crate::http::signature::{self, PaymentSecrets};
use crate::http::tokens::AdmissionKeys;
use crate::metrics::{Counted, Metrics};
use crate::ports::{Ports, StoreError};
use crate::provider::Providers;
use crate::queue::{QueueConfig, SqsQueue};
use crate::scripts::{Bounds, Connection, RedisGate, RedisSeats};
use crate::store::{Dynamo, DynamoCatalogue, DynamoOrders, StoreConfig};

/// The region of servers that stand in for AWS. Every client of theirs must name the same one: some
/// keep the tables and queues of each region apart, as AWS does.
pub const STAND_IN_REGION: &str = "us-east-1";

/// Why the engine could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] Defect),
    /// A client could not be built.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gave no random number.
    #[error("the system gives no entropy")]
    NoEntropy,
}

/// The adapters: Redis, DynamoDB, SQS, the payment provider.
#[derive(Debug)]
pub struct LivePorts {
    seats: RedisSeats,
    gate: Counted<RedisGate>,
    orders: Counted<DynamoOrders>,
    catalogue: DynamoCatalogue,
    queue: Counted<SqsQueue>,
    provider: Providers,
}

impl LivePorts {
    /// Builds the clients. None connects before its first use.
    ///
    /// # Errors
    /// Returns [`StoreError::Contract`] if the address of Redis or a provider's key cannot be read.
    pub fn new(config: &Config, sdk: &SdkConfig) -> Result<Self, StoreError> {
        let redis = Connection::new(&config.redis.topology, Bounds::default())?;
        let store = StoreConfig {
            endpoint: config.dynamodb.endpoint.clone(),
            ..StoreConfig::new(config.dynamodb.tables.clone())
        };
        let queue = QueueConfig {
            endpoint: config.sqs.endpoint.clone(),
            ..QueueConfig::new(config.sqs.urls.clone())
        };
        let dynamo = Dynamo::new(sdk, store);
        Ok(Self {
            seats: RedisSeats::new(redis.clone()),
            gate: Counted(RedisGate::new(redis)),
            orders: Counted(DynamoOrders::new(dynamo.clone())),
            catalogue: DynamoCatalogue::new(dynamo),
            queue: Counted(SqsQueue::new(sdk, queue)),
            provider: Providers::new(&config.providers)?,
        })
    }
}

impl Ports for LivePorts {
    type Seats = RedisSeats;
    type Gate = Counted<RedisGate>;
    type Orders = Counted<DynamoOrders>;
    type Catalogue = DynamoCatalogue;
    type Queue = Counted<SqsQueue>;
    type Provider = Providers;

    fn seats(&self) -> &RedisSeats {
        &self.seats
    }

    fn gate(&self) -> &Counted<RedisGate> {
        &self.gate
    }

    fn orders(&self) -> &Counted<DynamoOrders> {
        &self.orders
    }

    fn catalogue(&self) -> &DynamoCatalogue {
        &self.catalogue
    }

    fn queue(&self) -> &Counted<SqsQueue> {
        &self.queue
    }

    fn provider(&self) -> &Providers {
        &self.provider
    }
}

/// The engine: what every handler is given.
#[derive(Debug)]
pub struct App {
    /// The adapters.
    pub ports: LivePorts,
    /// Mints order numbers for this process.
    pub mint: Mint,
    /// Signs and checks admission tokens.
    pub admissions: AdmissionKeys,
    /// Counts what comes of each request.
    pub metrics: Metrics,
    payments: BTreeMap<ProviderId, PaymentSecrets>,
}

impl App {
    /// The engine that the environment describes.
    ///
    /// # Errors
    /// Returns why it could not be built; the function then does not start.
    pub async fn from_env() -> Result<Self, Error> {
        Self::from_config(&Config::from_env()?).await
    }

    /// The engine that a configuration describes.
    ///
    /// # Errors
    /// Returns why it could not be built.
    pub async fn from_config(config: &Config) -> Result<Self, Error> {
        let ports = LivePorts::new(config, &sdk_config(config).await)?;
        Ok(Self {
            ports,
            mint: Mint::new(random_u32()?),
            admissions: admission_keys(&config.admission),
            metrics: Metrics::new(&config.metrics),
            payments: payment_secrets(&config.payments),
        })
    }

    /// The engine of a function that signs or checks admissions: without a key it does not start,
    /// rather than turn every buyer away.
    ///
    /// # Errors
    /// Returns the variable that is missing.
    pub fn with_admission_keys(self) -> Result<Self, Error> {
        let missing = Defect { variable: "ONSALE_ADMISSION_KEYS", rule: "must be set" };
        if self.admissions.is_empty() { Err(missing.into()) } else { Ok(self) }
    }

    /// The engine of a function that takes callbacks: without a secret it does not start, rather
    /// than turn every provider away.
    ///
    /// # Errors
    /// Returns the variable that is missing.
    pub fn with_payment_secrets(self) -> Result<Self, Error> {
        let missing = Defect { variable: "ONSALE_PAYMENT_SECRETS", rule: "must be set" };
        if self.payments.is_empty() { Err(missing.into()) } else { Ok(self) }
    }

    /// The secrets of a payment provider.
    ///
    /// # Errors
    /// Returns [`signature::Defect::UnknownProvider`].
    pub fn payment_secrets(
        &self,
        provider: &ProviderId,
    ) -> Result<&PaymentSecrets, signature::Defect> {
        self.payments.get(provider).ok_or(signature::Defect::UnknownProvider)
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

fn random_u32() -> Result<u32, Error> {
    let mut bytes = [0; 4];
    rand::fill(&mut bytes).map_err(|_| Error::NoEntropy)?;
    Ok(u32::from_be_bytes(bytes))
}

/// The SDK's configuration. Where both services are stand-ins there are no credentials to look for,
/// and looking would take seconds.
async fn sdk_config(config: &Config) -> SdkConfig {
    if config.dynamodb.endpoint.is_none() || config.sqs.endpoint.is_none() {
        return aws_config::load_defaults(BehaviorVersion::latest()).await;
    }
    let credentials = Credentials::new("local", "local", None, None, "local");
    aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(STAND_IN_REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .load()
        .await
}

fn admission_keys(config: &AdmissionConfig) -> AdmissionKeys {
    AdmissionKeys::new(config.keys.iter().map(|(kid, secret)| (kid.as_str(), secret.0.as_slice())))
}

fn payment_secrets(config: &PaymentConfig) -> BTreeMap<ProviderId, PaymentSecrets> {
    let secrets = |provider: &ProviderId| {
        let of_provider = config.secrets.iter().filter(|(name, _)| name == provider);
        let secrets = of_provider.map(|(_, secret)| secret.0.as_slice());
        PaymentSecrets::new(provider.clone(), secrets, config.tolerance_seconds)
    };
    config.secrets.iter().map(|(provider, _)| (provider.clone(), secrets(provider))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(app(&key, "").await.with_admission_keys().is_ok());
        assert!(app("", "stripe:whsec").await.with_payment_secrets().is_ok());
        let missing = app("", "stripe:whsec").await.with_admission_keys().unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_ADMISSION_KEYS must be set");
        let missing = app(&key, "").await.with_payment_secrets().unwrap_err();
        assert_eq!(missing.to_string(), "ONSALE_PAYMENT_SECRETS must be set");
    }
}
