//! The servers that the engine needs, started and stopped by their handles.
//!
//! `onsale up` and every integration test get theirs here: Valkey or Redis as a child process,
//! alone ([`RedisServer`]) or as three masters ([`RedisCluster`]), DynamoDB ([`DynamoDb`]) and SQS
//! ([`FakeSqs`]) in this process. Each listens on a free port of 127.0.0.1 only, so that any
//! number of them run side by side, and each stops when its handle is dropped. In place of each,
//! a server that runs already can be used ([`External`]). The payment provider
//! ([`PaymentProvider`]) the beacon ([`FakeBeacon`]) and the issuers
//! ([`FakeIssuers`]) stand beside them.

mod binary;
mod cluster;
mod dynamodb;
mod kept;
mod redis;
pub mod redis_proxy;
mod slots;
mod watch;

pub use binary::Flavour;
pub use cluster::RedisCluster;
pub use dynamodb::{DYNAMODB_THREADS, DynamoDb};
pub use fake_beacon::{FakeBeacon, Pace};
pub use fake_identity::FakeIssuers;
pub use fake_payments::PaymentProvider;
pub use fake_sqs::{FakeSqs, THREADS as SQS_THREADS};
pub use kept::{Kept, Signal, signal};
pub use redis::{RedisOptions, RedisServer};

use std::io;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fake_limits::{Cache, Enforced};
use shared::redis::Topology;

use self::slots::SlotProxy;

/// Why a server could not be started, reached or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No binary of the requested flavour is on this machine.
    #[error("no {requested} found: run make setup, or name one in {variable}")]
    NoBinary {
        /// The program that was looked for.
        requested: &'static str,
        /// The environment variable that names one.
        variable: &'static str,
    },
    /// The environment names a binary that is not a server of that flavour.
    #[error("{variable} names {}, which is no {requested} of version 7 or newer that runs here", path.display())]
    WrongBinary {
        variable: &'static str,
        /// The program that was looked for.
        requested: &'static str,
        /// The path in the variable.
        path: PathBuf,
    },
    /// Another live process has its servers in this data directory.
    #[error("{} is in use by another onsale that is still running", .0.display())]
    InUse(PathBuf),
    /// The server exited while it was starting.
    #[error("{program} exited while starting ({status}); its log says:\n{log}")]
    Exited {
        /// The binary that was run.
        program: PathBuf,
        status: std::process::ExitStatus,
        /// The last lines it wrote.
        log: String,
    },
    /// A condition was not met in time.
    #[error("waited {seconds} s for {what} in vain")]
    TimedOut {
        /// The condition that was waited for.
        what: String,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The server answered with an error.
    #[error("redis: {0}")]
    Redis(#[from] ::redis::RedisError),
    /// A server of ours serves no more, and cannot be started again.
    #[error("{what} has ended by itself{}", .why.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    Ended {
        what: &'static str,
        /// Why it ended, if it says.
        why: Option<Box<Error>>,
    },
    /// A server ends again and again.
    #[error("it was started again {times} times within {seconds} s; at last {last}")]
    KeepsEnding {
        /// How often it was started again.
        times: usize,
        /// In how many seconds.
        seconds: u64,
        /// Why it ended the last time.
        last: Box<Error>,
    },
    /// Pages of the database's file are damaged.
    #[error(
        "{} is damaged: {defects}; put back a copy of it, or move it away with its -wal file and start \
         with --accept-lost-orders, which begins without the orders in it",
        path.display()
    )]
    Damaged { path: PathBuf, defects: String },
    /// The DynamoDB emulator failed.
    #[error("dynamodb: {0}")]
    DynamoDb(String),
    /// The payment provider failed.
    #[error(transparent)]
    Provider(#[from] fake_payments::Error),
    /// The beacon did not start.
    #[error(transparent)]
    Beacon(#[from] fake_beacon::Error),
    /// The issuers did not start.
    #[error(transparent)]
    Issuers(#[from] fake_identity::Error),
    /// The fake SQS did not start.
    #[error("sqs: {0}")]
    Sqs(#[from] fake_sqs::StartError),
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        source: io::Error,
    },
}

impl Error {
    /// An error of the operating system during the operation `what`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Addresses of the servers of a [`Stack`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// `redis://127.0.0.1:PORT`; of a cluster one of its nodes.
    pub redis_url: String,
    /// `http://127.0.0.1:PORT`
    pub dynamodb_url: String,
    /// `http://127.0.0.1:PORT`
    pub sqs_url: String,
}

/// Servers that run already, in place of ours. They must not check credentials, as ministack and
/// DynamoDB Local do not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct External {
    /// A Redis or Valkey, alone or a cluster.
    pub redis: Option<Topology>,
    /// A DynamoDB, `http://host:port`.
    pub dynamodb_url: Option<String>,
    /// An SQS, `http://host:port`.
    pub sqs_url: Option<String>,
}

/// A server of ours, or the address of one that is not.
#[derive(Debug)]
enum Server<S> {
    Own(S),
    External(String),
}

impl<S> Server<S> {
    /// The server at `external`, or else the one that `start` starts.
    fn at<E>(external: Option<&String>, start: impl FnOnce() -> Result<S, E>) -> Result<Self, E> {
        match external {
            Some(url) => Ok(Self::External(url.trim_end_matches('/').to_owned())),
            None => start().map(Self::Own),
        }
    }

    fn url(&self, own: impl FnOnce(&S) -> String) -> String {
        match self {
            Self::Own(server) => own(server),
            Self::External(url) => url.clone(),
        }
    }
}

/// The cache that holds the inventory while a sale runs.
#[derive(Debug)]
enum RedisSide {
    Own(Box<RedisServer>),
    External(Topology),
}

/// Every server the engine needs, each on a port of its own.
#[derive(Debug)]
pub struct Stack {
    redis: RedisSide,
    /// Stands before a cache of ours that is as the serverless one.
    slots: Option<SlotProxy>,
    dynamodb: Server<DynamoDb>,
    sqs: Server<FakeSqs>,
}

impl Stack {
    /// Starts servers that keep everything in memory and leave nothing behind.
    ///
    /// # Errors
    ///
    /// Returns the first [`Error`] of a server that did not start.
    pub async fn ephemeral() -> Result<Self, Error> {
        Self::start(None, &External::default()).await
    }

    /// Starts servers on the state kept in `data_dir`, creating it when it is absent.
    ///
    /// The state survives `kill -9` of this process. Servers that such a death left running
    /// there are stopped first. Ports differ from one start to the next.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while another process has this directory, otherwise the first
    /// [`Error`] of a server that did not start.
    pub async fn persistent(data_dir: &Path) -> Result<Self, Error> {
        Self::start(Some(data_dir), &External::default()).await
    }

    /// Starts what is not `external`, on the state kept in `data_dir` or, without one, in memory.
    ///
    /// # Errors
    ///
    /// As [`Self::persistent`]. Whether an external server answers is not looked at here.
    pub async fn start(data_dir: Option<&Path>, external: &External) -> Result<Self, Error> {
        Self::start_within(data_dir, external, None).await
    }

    /// [`Stack::start`], with servers of ours that enforce limits if they are given.
    ///
    /// # Errors
    ///
    /// As [`Stack::start`].
    pub async fn start_within(
        data_dir: Option<&Path>,
        external: &External,
        limits: Option<&Enforced>,
    ) -> Result<Self, Error> {
        let own = match data_dir {
            Some(dir) => RedisOptions::persistent(dir.join("redis")),
            None => RedisOptions::default(),
        };
        let serverless = limits.filter(|limits| limits.quotas.cache == Cache::Serverless);
        let own = RedisOptions { serverless: serverless.is_some(), ..own };
        // Redis first: its lock on the directory keeps a second process out of the whole stack.
        let redis = match &external.redis {
            Some(topology) => RedisSide::External(topology.clone()),
            None => RedisSide::Own(Box::new(RedisServer::start(own).await?)),
        };
        let slots = if let (RedisSide::Own(server), Some(limits)) = (&redis, serverless) {
            let (client, throttles) = (server.client()?, limits.throttles.clone());
            let proxy = SlotProxy::start(server.port(), client, throttles).await;
            Some(proxy.map_err(Error::io("starting the proxy of the cache"))?)
        } else {
            None
        };
        let dynamodb = Server::at(external.dynamodb_url.as_ref(), || match data_dir {
            Some(dir) => DynamoDb::file_within(&dir.join("dynamodb.sqlite"), limits.cloned()),
            None => DynamoDb::memory_within(limits.cloned()),
        })?;
        let sqs = Server::at(external.sqs_url.as_ref(), || {
            let file = data_dir.map(|dir| dir.join("sqs.sqlite"));
            let throttles = limits.map(|limits| limits.throttles.clone()).unwrap_or_default();
            FakeSqs::start(fake_sqs::Options { file, throttles, ..Default::default() })
        })?;
        Ok(Self { redis, slots, dynamodb, sqs })
    }

    /// Addresses of the servers.
    #[must_use]
    pub fn endpoints(&self) -> Endpoints {
        Endpoints {
            redis_url: match self.topology() {
                Topology::Single(url) => url,
                Topology::Cluster(urls) => urls.into_iter().next().unwrap_or_default(),
            },
            dynamodb_url: self.dynamodb.url(DynamoDb::url),
            sqs_url: self.sqs.url(|server| server.endpoint().to_owned()),
        }
    }

    /// Addresses of the cache, alone or a cluster.
    #[must_use]
    pub fn topology(&self) -> Topology {
        match &self.redis {
            RedisSide::Own(server) => Topology::Single(server.url()),
            RedisSide::External(topology) => topology.clone(),
        }
    }

    /// The same as the engine uses it.
    #[must_use]
    pub fn engine_topology(&self) -> Topology {
        match &self.redis {
            RedisSide::Own(server) => {
                let port = self.slots.as_ref().map_or(server.port(), SlotProxy::port);
                Topology::Single(server.engine_url(port))
            }
            RedisSide::External(topology) => topology.clone(),
        }
    }

    /// The cache, if it is ours.
    #[must_use]
    pub fn redis(&self) -> Option<&RedisServer> {
        match &self.redis {
            RedisSide::Own(server) => Some(server),
            RedisSide::External(_) => None,
        }
    }

    /// Stops every server of ours in good order; dropping the stack stops them at once.
    ///
    /// # Errors
    ///
    /// Returns the first [`Error`] of a server that did not stop; none is left running.
    pub async fn stop(self) -> Result<(), Error> {
        if let Server::Own(sqs) = self.sqs {
            sqs.shutdown().await;
        }
        let dynamodb = match self.dynamodb {
            Server::Own(dynamodb) => dynamodb.stop().await,
            Server::External(_) => Ok(()),
        };
        if let RedisSide::Own(redis) = self.redis {
            redis.stop().await?;
        }
        dynamodb
    }
}

/// Ports below the range that Linux (32768 and up) and IANA (49152 and up) give to a connection or to a
/// listener that asks for any. Where that range was widened, another process may take one in between: the
/// caller tries another.
const OUR_PORTS: Range<u32> = 20_000..32_000;

/// A port of 127.0.0.1 on which nothing listens now, another one each time.
///
/// Another process may take it before the caller does, who must be ready to try another.
///
/// # Errors
///
/// [`Error::Io`] when no port is free.
pub fn free_port() -> Result<u16, Error> {
    static FOUND: AtomicU32 = AtomicU32::new(0);
    let count = OUR_PORTS.end - OUR_PORTS.start;
    // Processes that begin one after the other look in different places first.
    let first = std::process::id().wrapping_mul(97);
    for _ in OUR_PORTS {
        let next = first.wrapping_add(FOUND.fetch_add(1, Ordering::Relaxed));
        let port = OUR_PORTS.start + next % count;
        let Ok(port) = u16::try_from(port) else { break };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(Error::io("finding a free port"))
}

/// A deadline for something that another process is about to do: check whether it is done,
/// [pause](Self::pause), check again.
#[derive(Debug)]
pub struct Deadline {
    what: String,
    seconds: u64,
    since: Instant,
}

impl Deadline {
    /// Starts waiting for `what`, for at most `seconds`.
    pub fn with(what: impl Into<String>, seconds: u64) -> Self {
        Self { what: what.into(), seconds, since: Instant::now() }
    }

    /// Waits a few milliseconds before the next check.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when the deadline has passed.
    pub async fn pause(&self) -> Result<(), Error> {
        if self.since.elapsed() > Duration::from_secs(self.seconds) {
            return Err(Error::TimedOut { what: self.what.clone(), seconds: self.seconds });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    }
}
