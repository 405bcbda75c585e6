//! Where the stores are that are audited, and how they are reached. Only reading is ever asked for.

use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use engine::domain::basics::time::Timestamp;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, RedisResult, TlsCertificates};
use shared::dynamodb::Tables;
use shared::redis::Topology;
use shared::runtime::app::{self, LOCAL_REGION};
use shared::runtime::config::Config;
use shared::runtime::connections::{Https, Trust};

use super::AuditError;

/// The longest that connecting to Redis may take.
const MAX_CONNECT: Duration = Duration::from_secs(5);
/// The longest that one reply of Redis may take; the hash of a large sale is many megabytes.
const MAX_REPLY: Duration = Duration::from_secs(20);

/// The stores to audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Redis.
    pub redis: RedisTarget,
    /// DynamoDB.
    pub dynamodb: DynamoDbTarget,
    /// The names of the tables.
    pub tables: Tables,
    /// File of the certificate authorities (PEM) that are trusted in place of the public ones.
    pub ca_file: Option<PathBuf>,
}

/// Where Redis is. An address is `redis://…`, or `rediss://…` with TLS, and may hold a password.
#[derive(Clone, PartialEq, Eq)]
pub enum RedisTarget {
    /// One server, or any node of a cluster: the server is asked which.
    Address(String),
    /// A topology that is known.
    Known(Topology),
}

impl std::fmt::Debug for RedisTarget {
    /// Leaves the addresses out: they may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Address(_) => "Address",
            Self::Known(Topology::Single(_)) => "Known(one server)",
            Self::Known(Topology::Cluster(_)) => "Known(a cluster)",
        })
    }
}

/// Where DynamoDB is, and whose credentials it is asked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DynamoDbTarget {
    /// A fake at this endpoint, which checks no credentials.
    Fake(String),
    /// DynamoDB, with the credentials and the region of AWS's environment, at this endpoint if it
    /// is not the region's own.
    Aws(Option<String>),
}

impl Target {
    /// Redis and a fake of DynamoDB at these addresses; the names of the tables begin with
    /// `table_prefix`.
    #[must_use]
    pub fn at(redis: &str, dynamodb: &str, table_prefix: &str) -> Self {
        Self {
            redis: RedisTarget::Address(redis.to_owned()),
            dynamodb: DynamoDbTarget::Fake(dynamodb.to_owned()),
            tables: Tables::with_prefix(table_prefix),
            ca_file: None,
        }
    }

    /// The stores of functions that run with this configuration.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        // As in the functions: where both services are fakes, nobody has credentials.
        let dynamodb = match (&config.dynamodb.endpoint, &config.sqs.endpoint) {
            (Some(endpoint), Some(_)) => DynamoDbTarget::Fake(endpoint.clone()),
            (endpoint, _) => DynamoDbTarget::Aws(endpoint.clone()),
        };
        Self {
            redis: RedisTarget::Known(config.redis.topology.clone()),
            dynamodb,
            tables: config.dynamodb.tables.clone(),
            ca_file: config.ca_file.as_ref().map(PathBuf::from),
        }
    }

    /// The authorities that are trusted, as PEM, if they are not the public ones.
    fn authorities(&self) -> Result<Option<Vec<u8>>, AuditError> {
        let Some(path) = &self.ca_file else { return Ok(None) };
        let pem = std::fs::read(path);
        pem.map(Some).map_err(|source| AuditError::NoAuthorities { path: path.clone(), source })
    }

    /// A client of DynamoDB.
    pub(super) async fn dynamodb(&self) -> Result<Client, AuditError> {
        let trust = match self.authorities()? {
            None => Trust::public(),
            Some(pem) => {
                Trust::only(pem).map_err(|bad| AuditError::Authorities(bad.to_string()))?
            }
        };
        let https = Https::new(&trust);
        let config = match &self.dynamodb {
            DynamoDbTarget::Fake(endpoint) => Builder::new()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::new(LOCAL_REGION))
                .credentials_provider(Credentials::new("local", "local", None, None, "local"))
                .http_client(https)
                .endpoint_url(endpoint),
            DynamoDbTarget::Aws(endpoint) => {
                let mut config = Builder::from(&app::aws(&https).await);
                config.set_endpoint_url(endpoint.clone());
                config
            }
        };
        Ok(Client::from_conf(config.build()))
    }

    /// The time by the clock of Redis, or of any node of its cluster.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn redis_now(&self) -> Result<Timestamp, AuditError> {
        let time = redis::cmd("TIME");
        let (seconds, micros): (i64, i64) = match self.redis().await? {
            RedisConnection::Single(mut one) => time.query_async(&mut one).await?,
            RedisConnection::Cluster(mut cluster) => time.query_async(&mut cluster).await?,
        };
        Ok(Timestamp::from_ms(seconds * 1_000 + micros / 1_000))
    }

    /// A connection to Redis.
    pub(super) async fn redis(&self) -> Result<RedisConnection, AuditError> {
        let pem = self.authorities()?;
        let topology = match &self.redis {
            RedisTarget::Address(url) => topology(url, pem.as_deref()).await?,
            RedisTarget::Known(topology) => topology.clone(),
        };
        Ok(match topology {
            Topology::Single(url) => RedisConnection::Single(connect(&url, pem.as_deref()).await?),
            Topology::Cluster(urls) => {
                let is_tls = urls.iter().all(|url| url.starts_with("rediss://"));
                let mut builder = ClusterClient::builder(urls.iter().map(String::as_str))
                    .connection_timeout(MAX_CONNECT)
                    .response_timeout(MAX_REPLY);
                if let Some(certificates) = certificates(pem.as_deref()).filter(|_| is_tls) {
                    builder = builder.certs(certificates);
                }
                RedisConnection::Cluster(builder.build()?.get_async_connection().await?)
            }
        })
    }
}

/// A connection to one server or to a cluster.
pub(super) enum RedisConnection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Whether the server at `url` is one of a cluster, by its own word.
///
/// # Errors
/// The server cannot be reached.
pub async fn topology_of(url: &str) -> RedisResult<Topology> {
    topology(url, None).await
}

async fn topology(url: &str, pem: Option<&[u8]>) -> RedisResult<Topology> {
    let mut server = connect(url, pem).await?;
    let says: String = redis::cmd("INFO").arg("cluster").query_async(&mut server).await?;
    Ok(if says.contains("cluster_enabled:1") {
        Topology::Cluster(vec![url.to_owned()])
    } else {
        Topology::Single(url.to_owned())
    })
}

async fn connect(url: &str, pem: Option<&[u8]>) -> RedisResult<MultiplexedConnection> {
    let is_tls = url.starts_with("rediss://");
    let client = match certificates(pem).filter(|_| is_tls) {
        Some(certificates) => redis::Client::build_with_tls(url, certificates)?,
        None => redis::Client::open(url)?,
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(MAX_CONNECT))
        .set_response_timeout(Some(MAX_REPLY));
    client.get_multiplexed_async_connection_with_config(&config).await
}

fn certificates(pem: Option<&[u8]>) -> Option<TlsCertificates> {
    pem.map(|pem| TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(changes: &[(&str, &str)]) -> Config {
        let find = |variable: &str| {
            let changed = changes.iter().find(|(name, _)| *name == variable);
            let queue = || variable.ends_with("_QUEUE_URL").then(|| "http://q/1".to_owned());
            changed.map(|(_, value)| (*value).to_owned()).or_else(queue)
        };
        Config::read(find).unwrap()
    }

    #[test]
    fn the_stores_of_a_configuration_are_those_that_its_functions_use() {
        let redis = ("ONSALE_REDIS_URL", "rediss://:hunter2@a:1,rediss://b:1");
        let cluster = ("ONSALE_REDIS_CLUSTER", "true");
        let aws = Target::from_config(&config(&[
            redis,
            cluster,
            ("ONSALE_TABLE_PREFIX", "prod-"),
            ("ONSALE_CA_FILE", "/ca.pem"),
        ]));
        let urls = ["rediss://:hunter2@a:1", "rediss://b:1"].map(str::to_owned).to_vec();
        assert_eq!(aws.redis, RedisTarget::Known(Topology::Cluster(urls)));
        assert_eq!(aws.dynamodb, DynamoDbTarget::Aws(None));
        assert_eq!(aws.tables.orders, "prod-orders");
        assert_eq!(aws.ca_file, Some(PathBuf::from("/ca.pem")));
        assert!(!format!("{aws:?}").contains("hunter2"));

        let fake = ("ONSALE_DYNAMODB_ENDPOINT", "http://d");
        let endpoint = Some("http://d".to_owned());
        let of_aws = Target::from_config(&config(&[redis, cluster, fake]));
        assert_eq!(of_aws.dynamodb, DynamoDbTarget::Aws(endpoint));
        let sqs = ("ONSALE_SQS_ENDPOINT", "http://s");
        let of_fakes = Target::from_config(&config(&[redis, cluster, fake, sqs]));
        assert_eq!(of_fakes.dynamodb, DynamoDbTarget::Fake("http://d".to_owned()));
    }

    #[tokio::test]
    async fn authorities_that_cannot_be_read_are_an_error() {
        let at = |ca_file: &str| Target {
            ca_file: Some(PathBuf::from(ca_file)),
            ..Target::at("rediss://127.0.0.1:1", "https://127.0.0.1:1", "")
        };
        let error = at("no-such-file").dynamodb().await.unwrap_err().to_string();
        assert!(error.starts_with("cannot read no-such-file: "), "{error}");
        let error = at(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).dynamodb().await;
        assert!(matches!(error, Err(AuditError::Authorities(_))));
    }
}
