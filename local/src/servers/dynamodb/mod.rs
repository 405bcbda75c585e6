//! DynamoDB in this process: dynoxide, served on loopback so that the AWS SDK talks to it as to
//! the real one.

mod check;
mod edge;
mod metered;
mod tokens;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::Path;

use dynoxide::Database;
use fake_limits::Enforced;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::edge::Edge;
use super::Error;

/// Name of its threads, by which their processor time can be summed up.
pub const DYNAMODB_THREADS: &str = "dynamodb";
/// Threads of its own: a request waits in SQLite for the disk and for the one before it, and must
/// not hold up the engine's threads meanwhile. Two, because it does one write at a time.
const THREADS: usize = 2;

/// A running DynamoDB emulator on a port of 127.0.0.1; stopped when dropped.
#[derive(Debug)]
pub struct DynamoDb {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<Result<(), String>>,
    runtime: Option<Runtime>,
}

impl DynamoDb {
    /// Starts an empty database in memory; it is gone when the handle is.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when no port or thread is available.
    pub fn memory() -> Result<Self, Error> {
        Self::memory_within(None)
    }

    /// [`DynamoDb::memory`], with throttling if limits are given.
    ///
    /// # Errors
    ///
    /// As [`DynamoDb::memory`].
    pub fn memory_within(limits: Option<Enforced>) -> Result<Self, Error> {
        Self::serve(Database::memory(), limits)
    }

    /// Starts a database in one SQLite file (and its write-ahead log beside it), creating it when
    /// it is absent. What was acknowledged is still there after this process is killed; a machine
    /// that loses power may lose the last moments.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when pages of the file are damaged, [`Error::DynamoDb`] when it is no
    /// database of ours, [`Error::Io`] when no port or thread is to be had.
    pub fn file(path: &Path) -> Result<Self, Error> {
        Self::file_within(path, None)
    }

    /// [`DynamoDb::file`], with throttling if limits are given.
    ///
    /// # Errors
    ///
    /// As [`DynamoDb::file`].
    pub fn file_within(path: &Path, limits: Option<Enforced>) -> Result<Self, Error> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("creating the data directory"))?;
        }
        let name = path
            .to_str()
            .ok_or_else(|| Error::DynamoDb(format!("{} is not valid Unicode", path.display())))?;
        check::pages(path)?;
        // Not one sync of the disk for each transaction, but one for each checkpoint. These are
        // the settings that the database has after bulk loading, and says so only there.
        let open = || {
            let database = Database::new(name)?;
            database.disable_bulk_loading().map(|()| database)
        };
        Self::serve(open(), limits)
    }

    /// The endpoint: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// True if it serves no more though nobody has stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.is_finished()
    }

    /// Has it end as by a defect of its own.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        self.server.abort();
    }

    /// Stops in good order: requests that are running are answered first.
    ///
    /// # Errors
    ///
    /// [`Error::DynamoDb`] when the server had failed.
    pub async fn stop(mut self) -> Result<(), Error> {
        drop(self.stop.take());
        match (&mut self.server).await {
            Ok(ended) => ended.map_err(Error::DynamoDb),
            Err(failed) => Err(Error::DynamoDb(failed.to_string())),
        }
    }

    /// Serves `database` on a port that the system chooses.
    fn serve(
        database: dynoxide::Result<Database>,
        limits: Option<Enforced>,
    ) -> Result<Self, Error> {
        let listening = || Error::io("listening for DynamoDB");
        let database = database.map_err(|error| Error::DynamoDb(error.to_string()))?;
        let listener = StdListener::bind(("127.0.0.1", 0)).map_err(listening())?;
        listener.set_nonblocking(true).map_err(listening())?;
        let address = listener.local_addr().map_err(listening())?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name(DYNAMODB_THREADS)
            .enable_all()
            .build()
            .map_err(Error::io("starting the threads of DynamoDB"))?;
        let (stop, stopped) = oneshot::channel::<()>();
        // Resolves when the handle sends or, as it always does, drops its end.
        let end = async {
            let _dropped = stopped.await;
        };
        let server = runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
            Edge::new(database, limits)
                .serve(listener, end)
                .await
                .map_err(|error| error.to_string())
        });
        Ok(Self { address, stop: Some(stop), server, runtime: Some(runtime) })
    }
}

impl Drop for DynamoDb {
    fn drop(&mut self) {
        // In the background, because a runtime must not be waited for inside another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
