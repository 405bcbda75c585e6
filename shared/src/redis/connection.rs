//! The connection to Redis: one server or a cluster, plain or TLS, with a time limit for each request.
//!
//! Nothing outside of this module knows the client library. Requests share one multiplexed
//! connection. A connection that was silent for too long is not trusted again: it is dropped, and
//! after a random pause the request is repeated on a new one, which every script allows.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_read_routing::RandomReplicaStrategy;
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo as _, Pipeline, RedisError, ServerError, ServerErrorKind, TlsCertificates,
    Value,
};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::meter::Meter;
use crate::runtime::connections::{Trust, pause};
use engine::ports::{StoreError, Stored};

/// Most repetitions by the cluster client itself: to follow a slot that has moved.
const CLUSTER_RETRIES: u32 = 2;
/// Silence after which an idle connection is probed.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
/// Error codes of a server that has not run the command and may run it later.
const REFUSAL_CODES: [&str; 13] = [
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "READONLY",
    "OOM",
    "BUSY",
    "NOREPLICAS",
    "MISCONF",
    "NOAUTH",
    "UNKILLABLE",
];

/// The servers of Redis and their addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// One server: `redis://…`, or `rediss://…` with TLS.
    Single(String),
    /// A cluster: the address of any node, or of several. ElastiCache Serverless is one, with TLS.
    Cluster(Vec<String>),
}

/// Time limits of a connection, and how often a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// To connect, with all handshakes.
    pub connect: Duration,
    /// From a request to its reply.
    pub response: Duration,
    /// Most times that a request is sent when its reply is lost; at least once.
    pub attempts: u32,
    /// The least and the most that is waited, at random, before it is sent again. It is taken from
    /// the time to connect.
    pub pauses: (Duration, Duration),
}

impl Default for Bounds {
    /// A second each, and one repetition: four seconds at worst, with its pause.
    fn default() -> Self {
        let second = Duration::from_secs(1);
        let pauses = (Duration::from_millis(5), Duration::from_millis(50));
        Self { connect: second, response: second, attempts: 2, pauses }
    }
}

/// A connection to Redis that renews itself; clones share it.
#[derive(Debug, Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    meter: Meter,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    bounds: Bounds,
    current: Mutex<Current>,
}

#[derive(Debug)]
enum Endpoint {
    Single(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// The current connection and its generation: whoever finds a connection dead drops that one only.
#[derive(Debug, Default)]
struct Current {
    generation: u64,
    live: Option<Live>,
}

#[derive(Clone)]
enum Live {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Single(_) => "Single",
            Self::Cluster(_) => "Cluster",
        })
    }
}

impl Live {
    async fn send(&mut self, request: Request<'_>) -> Result<Value, RedisError> {
        match (self, request) {
            (Self::Single(live), Request::One(command)) => command.query_async(live).await,
            (Self::Cluster(live), Request::One(command)) => command.query_async(live).await,
            (Self::Single(live), Request::Many(pipeline)) => pipeline.query_async(live).await,
            (Self::Cluster(live), Request::Many(pipeline)) => pipeline.query_async(live).await,
        }
    }
}

/// The nodes of a cluster that answer commands that only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    Primary,
    Replicas,
}

#[derive(Clone, Copy)]
enum Request<'r> {
    One(&'r Cmd),
    Many(&'r Pipeline),
}

/// The outcome of a request without a reply.
enum Fault {
    /// The server does not know the script.
    NoScript,
    Store(StoreError),
}

impl Connection {
    /// Prepares a connection; nothing is sent before the first request or [`Connection::warm_up`].
    /// With TLS it trusts the public certificate authorities.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if an address cannot be read.
    pub fn new(topology: &Topology, bounds: Bounds) -> Stored<Self> {
        Self::trusting(topology, bounds, &Trust::public())
    }

    /// As [`Connection::new`], trusting the certificate authorities of `trust`.
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn trusting(topology: &Topology, bounds: Bounds, trust: &Trust) -> Stored<Self> {
        Self::reading(topology, bounds, trust, Reads::Primary)
    }

    /// As [`Connection::trusting`], for commands that only read: a cluster's replicas answer them, which
    /// may lag a little.
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn to_replicas(topology: &Topology, bounds: Bounds, trust: &Trust) -> Stored<Self> {
        Self::reading(topology, bounds, trust, Reads::Replicas)
    }

    fn reading(topology: &Topology, bounds: Bounds, trust: &Trust, reads: Reads) -> Stored<Self> {
        let endpoint = match topology {
            Topology::Single(url) => Endpoint::Single(Box::new(single(url, bounds, trust)?)),
            Topology::Cluster(urls) => {
                Endpoint::Cluster(Box::new(cluster(urls, bounds, trust, reads)?))
            }
        };
        let current = Mutex::default();
        let shared = Arc::new(Shared { endpoint, bounds, current });
        Ok(Self { shared, meter: Meter::default() })
    }

    /// The same connection, whose commands are counted with those of another one.
    #[must_use]
    pub fn counted_with(self, other: &Self) -> Self {
        Self { meter: other.meter.clone(), ..self }
    }

    /// Counts the commands that are sent.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Connects now, so that the first request need not.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if nobody answers.
    pub async fn warm_up(&self) -> Stored<()> {
        self.live(None).await.map(drop)
    }

    /// Sends one command.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if nothing was sent or the server has not run it,
    /// [`StoreError::Unknown`] if the reply was lost, [`StoreError::Contract`] if the server calls
    /// the command wrong or its reply is of another type.
    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Stored<T> {
        self.typed(Request::One(command)).await
    }

    /// Sends several commands at once, all of one slot; they run in order, others in between.
    ///
    /// # Errors
    /// As [`Connection::query`]; [`StoreError::Unavailable`] if the server has refused one of them. Those
    /// beside it may have run (a full memory refuses only what needs some), so whoever repeats the pipeline
    /// repeats them: only counts and what may be written again is sent this way.
    pub async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Stored<T> {
        self.typed(Request::Many(pipeline)).await
    }

    async fn typed<T: FromRedisValue>(&self, request: Request<'_>) -> Stored<T> {
        let value = match self.send(request).await {
            Ok(value) => value,
            Err(Fault::NoScript) => return Err(StoreError::Contract("no such script".to_owned())),
            Err(Fault::Store(error)) => return Err(error),
        };
        redis::from_redis_value(value).map_err(|error| StoreError::Contract(error.to_string()))
    }

    /// Runs a script; `None` if the server does not know it.
    pub(super) async fn call(&self, command: &Cmd) -> Stored<Option<Value>> {
        match self.send(Request::One(command)).await {
            Ok(value) => Ok(Some(value)),
            Err(Fault::NoScript) => Ok(None),
            Err(Fault::Store(error)) => Err(error),
        }
    }

    async fn send(&self, request: Request<'_>) -> Result<Value, Fault> {
        let Bounds { attempts, pauses: (least, most), .. } = self.shared.bounds;
        let mut lost = None;
        for _ in 0..attempts.max(1) {
            let after = lost.as_ref().map(|_| pause::between(least, most));
            let (generation, mut live) = match self.live(after).await {
                Ok(current) => current,
                Err(error) => return Err(Fault::Store(lost.unwrap_or(error))),
            };
            match request {
                Request::One(command) => self.meter.record(std::iter::once(command)),
                Request::Many(pipeline) => self.meter.record(pipeline.cmd_iter()),
            }
            let error = match live.send(request).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) {
                return Err(Fault::NoScript);
            }
            if is_loss(&error) {
                tracing::warn!(%error, "a reply was lost; the connection is renewed");
                self.drop_generation(generation).await;
                lost = Some(StoreError::Unknown(error.to_string()));
                continue;
            }
            let codes = codes_of(&error);
            let is_refused = !codes.is_empty() && codes.iter().all(|code| is_refusal(code));
            if !is_refused {
                return Err(Fault::Store(StoreError::Contract(error.to_string())));
            }
            if codes.iter().any(|code| code == "READONLY") {
                // The server was demoted: its address may lead to its successor already.
                self.drop_generation(generation).await;
            }
            // The cluster client may have sent the command before it met this refusal.
            let may_have_run = lost.is_some() || matches!(live, Live::Cluster(_));
            let says = error.to_string();
            return Err(Fault::Store(match may_have_run {
                true => StoreError::Unknown(says),
                false => StoreError::Unavailable(says),
            }));
        }
        Err(Fault::Store(lost.unwrap_or(StoreError::Unavailable("no attempt made".to_owned()))))
    }

    /// The current connection, or a new one, after a pause. Many may wait here for one to connect.
    async fn live(&self, after: Option<Duration>) -> Stored<(u64, Live)> {
        let Shared { endpoint, bounds, current } = &*self.shared;
        let connecting = async {
            if let Some(pause) = after {
                let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
                tracing::debug!(pause_us, "asking again");
                sleep(pause).await;
            }
            let mut current = current.lock().await;
            if let Some(live) = &current.live {
                return Ok((current.generation, live.clone()));
            }
            // Boxed: seldom needed, and nested deeper than the compiler follows through a deep flow.
            let live = endpoint.connect(*bounds).boxed().await?;
            current.generation += 1;
            current.live = Some(live.clone());
            Ok::<_, RedisError>((current.generation, live))
        };
        match timeout(bounds.connect, connecting).await {
            Ok(outcome) => outcome.map_err(|error| StoreError::Unavailable(error.to_string())),
            Err(late) => Err(StoreError::Unavailable(format!("connecting: {late}"))),
        }
    }

    async fn drop_generation(&self, generation: u64) {
        let mut current = self.shared.current.lock().await;
        if current.generation == generation {
            current.live = None;
        }
    }
}

impl Endpoint {
    async fn connect(&self, bounds: Bounds) -> Result<Live, RedisError> {
        match self {
            Self::Single(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(bounds.connect))
                    .set_response_timeout(Some(bounds.response));
                let live = client.get_multiplexed_async_connection_with_config(&config).await?;
                Ok(Live::Single(live))
            }
            Self::Cluster(client) => client.get_async_connection().await.map(Live::Cluster),
        }
    }
}

fn misread(error: RedisError) -> StoreError {
    StoreError::Contract(format!("the address of Redis: {error}"))
}

/// A socket that finds out by itself that the other side is gone: a sandbox that was frozen wakes
/// up with such ones.
fn tcp_settings(bounds: Bounds) -> TcpSettings {
    let settings = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(TcpKeepalive::new().with_time(KEEPALIVE_AFTER));
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(bounds.response);
    settings
}

/// The authorities in place of the public ones, as the client wants them.
fn certificates(trust: &Trust) -> Option<TlsCertificates> {
    trust.pem().map(|pem| TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) })
}

fn single(url: &str, bounds: Bounds, trust: &Trust) -> Stored<Client> {
    let info = url.into_connection_info().map_err(misread)?;
    let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
    let info = info.set_tcp_settings(tcp_settings(bounds));
    let client = match certificates(trust).filter(|_| is_tls) {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    };
    client.map_err(misread)
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn cluster(urls: &[String], bounds: Bounds, trust: &Trust, reads: Reads) -> Stored<ClusterClient> {
    let is_tls = urls.iter().all(|url| url.starts_with("rediss://"));
    let mut builder = ClusterClient::builder(urls.iter().map(String::as_str));
    if let Some(certificates) = certificates(trust).filter(|_| is_tls) {
        builder = builder.certs(certificates);
    }
    if reads == Reads::Replicas {
        builder = builder.read_routing_strategy(RandomReplicaStrategy);
    }
    builder
        .retries(CLUSTER_RETRIES)
        .min_retry_wait(whole_ms(bounds.pauses.0))
        .max_retry_wait(whole_ms(bounds.pauses.1))
        .connection_timeout(bounds.connect)
        .response_timeout(bounds.response)
        .overall_response_timeout(Some(bounds.response))
        .tcp_settings(tcp_settings(bounds))
        .build()
        .map_err(misread)
}

/// True if the request may have been run though no reply came, so that the connection is of no use.
fn is_loss(error: &RedisError) -> bool {
    let lost = [ErrorKind::Io, ErrorKind::Parse, ErrorKind::ClusterConnectionNotFound];
    lost.contains(&error.kind())
}

/// The codes of the errors that the server answered: of a command one, of a pipeline or a transaction one
/// for each command that failed; none if the error is not the server's.
fn codes_of(error: &RedisError) -> Vec<String> {
    let errors = error.clone().into_server_errors();
    let code_of = |(_, error): &(usize, ServerError)| match in_script(error) {
        Some(code) => code.to_owned(),
        None => error.code().to_owned(),
    };
    errors.iter().flat_map(|errors| errors.iter()).map(code_of).collect()
}

/// The code of a command that failed within a script, as Redis before 7 says it: its error is `ERR`, and
/// the command's stands in the text after a hyphen (`Error running script (…): @user_script: 9: -OOM …`).
/// Later servers answer the command's own code.
fn in_script(error: &ServerError) -> Option<&str> {
    let text = error.details().filter(|text| text.starts_with("Error running script"))?;
    let codes = text.split_ascii_whitespace().filter_map(|word| word.strip_prefix('-'));
    codes.into_iter().find(|code| is_refusal(code))
}

/// True if a server that answers this code has not run the command, and may run it later.
fn is_refusal(code: &str) -> bool {
    REFUSAL_CODES.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of what a server answers, as the wire carries it.
    fn codes(answer: &str) -> Vec<String> {
        let value = redis::parse_redis_value(answer.as_bytes()).unwrap();
        codes_of(&value.extract_error().unwrap_err())
    }

    #[test]
    fn a_refusal_is_known_by_its_code_also_of_a_command_within_a_script() {
        for code in REFUSAL_CODES {
            assert_eq!(codes(&format!("-{code} not now\r\n")), [code]);
        }
        let within = "-ERR Error running script (call to f_6b1b): @user_script:3: @user_script: 3: -OOM \
                      command not allowed when used memory > 'maxmemory'.\r\n";
        assert_eq!(codes(within), ["OOM"]);
        for (answer, code) in [
            ("-ERR wrong number of arguments for 'get' command\r\n", "ERR"),
            ("-ERR Error running script (call to f_6b1b): @user_script:3: -BUG here\r\n", "ERR"),
            // A text that a caller sent is no code of the server.
            ("-ERR unknown command '-OOM'\r\n", "ERR"),
            ("-WRONGTYPE Operation against a key\r\n", "WRONGTYPE"),
        ] {
            assert_eq!(codes(answer), [code], "{answer}");
            assert!(!is_refusal(code), "{answer}");
        }
        let lost = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(codes_of(&lost), Vec::<String>::new());
    }
}
