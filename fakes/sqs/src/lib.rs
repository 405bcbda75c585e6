//! A small fake of Amazon SQS on one machine.
//!
//! It speaks AWS JSON 1.0 over HTTP on the loopback interface, which is what the AWS SDKs
//! speak: point a client's endpoint at [`FakeSqs::endpoint`] and use it as it is. Queues with
//! their attributes, delays, visibility, redrive and dead-letter queues, FIFO groups and
//! deduplication, batches, long polls, purges, tags and move tasks behave as the API reference
//! says, and refuse with its error codes.
//!
//! The working state is in memory, in ordered indexes: a send, a receive and a delete cost the
//! same in a queue of a hundred messages and of a hundred thousand. Given a file, every change
//! is in it before its reply is sent, so a killed process loses nothing that it has confirmed.
//!
//! On request it injects the faults that a standard queue may show: messages delivered twice, out
//! of order or late ([`Faults`]).
//!
//! What it is not: a replacement for SQS. One process, one machine, no permissions, no
//! encryption, no throttling, no signature checks; it listens on 127.0.0.1 only. The older query
//! protocol (XML) is not spoken. Production is SQS.
//!
//! ```no_run
//! # async fn example() -> Result<(), fake_sqs::StartError> {
//! use fake_sqs::{Options, FakeSqs};
//!
//! let sqs = FakeSqs::start(Options::default())?;
//! println!("{}", sqs.endpoint());
//! sqs.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod attributes;
mod broker;
mod change;
mod error;
mod faults;
mod fifo;
mod message;
mod moves;
mod queue;
mod server;
mod store;
mod wire;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fake_limits::Throttles;
use tokio::sync::oneshot;

use crate::broker::{Broker, Home};
use crate::change::Snapshot;
use crate::server::{Server, now_ms};
use crate::store::{Store, StoreError};

pub use crate::faults::Faults;

/// Prefix of the names of its threads, by which a program can sum up their processor time.
pub const THREADS: &str = "sqs-standin";

/// The `SenderId` of every message: no signature is checked, so no sender is known.
pub(crate) const SENDER_ID: &str = "AIDASTANDINSTANDINSTA";

/// Time limit for the threads of a stopping server, which only ever compute.
const STOP_MAX: Duration = Duration::from_secs(5);

/// Options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// File of the queues; in memory only if `None`. One server a file: a second one
    /// is refused.
    pub file: Option<PathBuf>,
    /// The port on 127.0.0.1; 0 for a free one.
    pub port: u16,
    /// The region in the queues' ARNs.
    pub region: String,
    /// The account in the queues' ARNs and URLs: twelve digits.
    pub account: String,
    /// Faults to inject; none by default.
    pub faults: Faults,
    /// Whether a queue can be purged only once in sixty seconds and a deleted queue's name used
    /// again only after sixty, as at Amazon. Off by default: tests start over more often.
    pub cooldowns: bool,
    /// Where refusals for a limit are counted.
    pub throttles: Throttles,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            file: None,
            port: 0,
            region: "us-east-1".to_owned(),
            account: "000000000000".to_owned(),
            faults: Faults::default(),
            cooldowns: false,
            throttles: Throttles::default(),
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken, or threads or sockets have run out.
    #[error("the queue server cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    /// The file cannot be used: damaged, not this program's, or in use by another server.
    #[error("the queue file {path} cannot be used: {reason}; {remedy}", path = path.display())]
    File {
        path: PathBuf,
        /// The reason why it cannot be used.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl StartError {
    fn file(path: PathBuf, error: &StoreError) -> Self {
        let remedy = match error {
            StoreError::Sqlite(error) if is_busy(error) => {
                "stop the other server, or give this one another file"
            }
            StoreError::Sqlite(_)
            | StoreError::Contents(_)
            | StoreError::Damaged(_)
            | StoreError::Row { .. } => {
                "put back a copy of it with its -wal file, or move it away to begin with no queues: \
                 their messages are then lost"
            }
        };
        StartError::File { path, reason: error.to_string(), remedy }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A running server. It has its own threads and stops when dropped.
#[derive(Debug)]
pub struct FakeSqs {
    endpoint: String,
    server: Arc<Server>,
    stop: Option<oneshot::Sender<()>>,
    stopped: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeSqs {
    /// Starts a server; it answers when this returns. With a file, this reads it first.
    ///
    /// # Errors
    /// The port cannot be listened on, or the file cannot be used.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let Options { file, port, region, account, faults, cooldowns, throttles } = options;
        let (store, kept) = match file {
            None => (None, Snapshot::default()),
            Some(path) => {
                let (store, kept) =
                    Store::open(&path).map_err(|error| StartError::file(path, &error))?;
                (Some(store), kept)
            }
        };
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        listener.set_nonblocking(true)?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let home = Home { endpoint: endpoint.clone(), region, account, cooldowns, throttles };
        // The keys of a hash map are random at each start: all the randomness ids need.
        let nonce = RandomState::new().hash_one(now_ms());
        let broker = Broker::new(home, faults, nonce, store.is_some(), kept, now_ms());
        let server = Arc::new(Server::new(broker, store));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(THREADS)
            .enable_all()
            .build()?;
        let (stop, stop_requested) = oneshot::channel();
        let (report_stopped, stopped) = oneshot::channel();
        let serving = server.clone();
        let thread = std::thread::Builder::new().name(THREADS.to_owned()).spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                    return;
                };
                tokio::select! {
                    // The sender is dropped or used: both mean stop.
                    _ = stop_requested => {}
                    outcome = serving.serve(listener) => {
                        tracing::error!(?outcome, "the queue server ended by itself");
                    }
                }
            });
            runtime.shutdown_timeout(STOP_MAX);
            let _ = report_stopped.send(());
        })?;
        let (stop, stopped, thread) = (Some(stop), Some(stopped), Some(thread));
        Ok(FakeSqs { endpoint, server, stop, stopped, thread })
    }

    /// Its address, for a client's endpoint: `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// True if it serves no more though nobody has stopped it.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Replaces the faults to inject; the draws start at the new seed.
    pub fn set_faults(&self, faults: Faults) {
        self.server.set_faults(faults);
    }

    /// Stops it: open requests are dropped, and what was confirmed is in the file.
    pub async fn shutdown(mut self) {
        drop(self.stop.take());
        if let Some(stopped) = self.stopped.take() {
            let _ = stopped.await;
        }
    }
}

impl Drop for FakeSqs {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It only waits for threads that compute for microseconds.
            let _ = thread.join();
        }
    }
}
