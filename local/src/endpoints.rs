//! The addresses of a running `onsale up`, written to its data directory for commands in other
//! processes.

use std::io;
use std::path::{Path, PathBuf};

use engine::domain::payment::captures::ListLag;
use engine::domain::payment::grace::Grace;
use serde::{Deserialize, Serialize};

use crate::payment;
use crate::servers::{self, FakeBeacon, PaymentProvider};

/// The file's name in the data directory.
pub const FILE: &str = "endpoints.json";

/// The addresses that another process needs to reach the engine and its stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// The HTTP API, `http://127.0.0.1:8080`.
    pub gateway: String,
    /// Redis, `redis://127.0.0.1:PORT`; of a cluster, one of its nodes.
    pub redis: String,
    /// DynamoDB, `http://127.0.0.1:PORT`.
    pub dynamodb: String,
    /// SQS, `http://127.0.0.1:PORT`.
    pub sqs: String,
    /// The payment provider, `http://127.0.0.1:PORT`.
    pub provider: String,
    /// The fake of WeChat Pay, `http://127.0.0.1:PORT`; empty if there is none.
    #[serde(default)]
    pub wechat: String,
    /// The fake of Alipay, `http://127.0.0.1:PORT`; empty if there is none.
    #[serde(default)]
    pub alipay: String,
    /// The beacon, `http://127.0.0.1:PORT`.
    #[serde(default)]
    pub beacon: String,
    /// The issuers of buyers and operators, `http://127.0.0.1:PORT`; empty if there are none.
    #[serde(default)]
    pub issuers: String,
    /// Prefix of the tables' names; may be empty.
    pub table_prefix: String,
    /// How long an unpaid order waits past its deadline, in seconds.
    #[serde(default)]
    pub grace_seconds: u32,
    /// The longest that the provider's list has a capture late, in seconds.
    #[serde(default)]
    pub list_lag_seconds: u32,
    /// Process id of the engine and of the servers that run in it.
    pub pid: u32,
}

/// Why the endpoints could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum EndpointsError {
    /// There is no such file.
    #[error("{} is not there: is onsale up running with this data directory?", .0.display())]
    Missing(PathBuf),
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not what [`Endpoints::write`] writes.
    #[error("{}: {source}", path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
}

impl Endpoints {
    /// The endpoints of an engine in this process on these servers, before its gateway listens.
    #[must_use]
    pub fn from_servers(
        servers: servers::Endpoints,
        provider: &PaymentProvider,
        beacon: &FakeBeacon,
        table_prefix: impl Into<String>,
    ) -> Self {
        let servers::Endpoints { redis_url: redis, dynamodb_url: dynamodb, sqs_url: sqs } = servers;
        let grace_seconds = payment::grace(provider.search_lag_seconds()).seconds();
        let list_lag_seconds = payment::list_lag(provider.list_lag_seconds()).seconds();
        let (provider, table_prefix) = (provider.url(), table_prefix.into());
        let (gateway, pid) = (String::new(), std::process::id());
        Self {
            gateway,
            redis,
            dynamodb,
            sqs,
            provider,
            wechat: String::new(),
            alipay: String::new(),
            beacon: beacon.url(),
            issuers: String::new(),
            table_prefix,
            grace_seconds,
            list_lag_seconds,
            pid,
        }
    }

    /// How long an unpaid order waits past its deadline.
    #[must_use]
    pub fn grace(&self) -> Grace {
        Grace::from_seconds(self.grace_seconds).unwrap_or_default()
    }

    /// The longest that the provider's list has a capture late.
    #[must_use]
    pub fn list_lag(&self) -> ListLag {
        ListLag::from_seconds(self.list_lag_seconds).unwrap_or_default()
    }

    /// Reads what a running engine wrote.
    ///
    /// # Errors
    /// [`EndpointsError::Missing`] if nothing was written there.
    pub fn read(data_dir: &Path) -> Result<Self, EndpointsError> {
        let path = data_dir.join(FILE);
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|source| EndpointsError::Malformed { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(EndpointsError::Missing(path))
            }
            Err(source) => Err(EndpointsError::Io { path, source }),
        }
    }

    /// Writes the file in one step, so that nobody reads half of it.
    ///
    /// # Errors
    /// [`EndpointsError::Io`] if the directory cannot be written.
    pub fn write(&self, data_dir: &Path) -> Result<(), EndpointsError> {
        let path = data_dir.join(FILE);
        let fresh = data_dir.join(format!("{FILE}.new"));
        let text = serde_json::to_vec_pretty(self)
            .map_err(|source| EndpointsError::Malformed { path: path.clone(), source })?;
        std::fs::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, &path))
            .map_err(|source| EndpointsError::Io { path, source })
    }

    /// Removes the file, so that nobody looks for an engine that is gone.
    ///
    /// # Errors
    /// [`EndpointsError::Io`] if it is there and cannot be removed.
    pub fn remove(data_dir: &Path) -> Result<(), EndpointsError> {
        let path = data_dir.join(FILE);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(EndpointsError::Io { path, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Endpoints::read(dir.path()), Err(EndpointsError::Missing(_))));
        let endpoints = Endpoints {
            gateway: "http://127.0.0.1:8080".to_owned(),
            redis: "redis://127.0.0.1:1".to_owned(),
            dynamodb: "http://127.0.0.1:2".to_owned(),
            sqs: "http://127.0.0.1:3".to_owned(),
            provider: "http://127.0.0.1:5".to_owned(),
            wechat: "http://127.0.0.1:7".to_owned(),
            alipay: "http://127.0.0.1:8".to_owned(),
            beacon: "http://127.0.0.1:6".to_owned(),
            issuers: "http://127.0.0.1:9".to_owned(),
            table_prefix: "onsale-".to_owned(),
            grace_seconds: 5,
            list_lag_seconds: 2,
            pid: 4,
        };
        endpoints.write(dir.path()).unwrap();
        assert_eq!(Endpoints::read(dir.path()).unwrap(), endpoints);
        Endpoints::remove(dir.path()).unwrap();
        Endpoints::remove(dir.path()).unwrap();
        assert!(Endpoints::read(dir.path()).is_err());
    }
}
