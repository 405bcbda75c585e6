//! One Valkey or Redis server as a child process.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fake_limits::table::EVICTION;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;

use super::kept::{Kept, Signal, signal};
use super::slots::LOG_LENGTH;
use super::{Deadline, Error, Flavour, binary, free_port};
use crate::dir_lock::DirLock;

/// Attempts to find a free port, should another process take the one that was free.
const PORT_ATTEMPTS: u32 = 8;
/// Seconds a server may take to answer; loading a large append-only file takes a while.
const READY_SECONDS: u64 = 60;
/// Seconds a server may take to shut down.
const STOP_SECONDS: u64 = 60;
/// Lines of a server's log that an error quotes.
const LOG_TAIL_LINES: usize = 12;
/// File that the process which uses a data directory has locked.
const LOCK_FILE: &str = "owner.lock";
/// User of the engine at a server that is as the serverless cache, and its password.
const ENGINE_USER: &str = "engine";
/// File of the server's process id.
const PID_FILE: &str = "server.pid";
/// File of the server's log.
const LOG_FILE: &str = "server.log";

/// Options of a [`RedisServer`]; the default is an empty server without persistence.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    /// Valkey, Redis, or the first that is found.
    pub flavour: Flavour,
    /// Directory of its files; `None` is a temporary one, removed with the handle.
    pub data_dir: Option<PathBuf>,
    /// Whether every write is appended to a file before it is answered, so that what was
    /// acknowledged is still there after the server or this process is killed.
    pub append_only: bool,
    /// True if it runs in cluster mode.
    pub cluster: bool,
    /// Milliseconds after which a node of a cluster takes another one for dead; `None` is the server's
    /// default, fifteen seconds.
    pub node_timeout_ms: Option<u32>,
    /// Port of the master that it replicates.
    pub replica_of: Option<u16>,
    /// True if it is as ElastiCache Serverless: it may evict what has an expiry, and the engine's user
    /// may not run the commands that the service does not have.
    pub serverless: bool,
}

impl RedisOptions {
    /// A server whose state lives in `data_dir` and survives being killed.
    #[must_use]
    pub fn persistent(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: Some(data_dir.into()), append_only: true, ..Self::default() }
    }

    /// The same, of one flavour only.
    #[must_use]
    pub fn flavour(mut self, flavour: Flavour) -> Self {
        self.flavour = flavour;
        self
    }
}

/// A running Valkey or Redis server on a port of 127.0.0.1; killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    options: RedisOptions,
    program: PathBuf,
    flavour: Flavour,
    dir: PathBuf,
    ports: Ports,
    /// The process; `None` once it was killed on purpose.
    child: Mutex<Option<Kept>>,
    /// Declared before `_temporary`, so that the lock is released before the directory is removed.
    _lock: DirLock,
    _temporary: Option<TempDir>,
}

/// The ports one server listens on.
#[derive(Debug, Clone, Copy)]
struct Ports {
    clients: u16,
    /// The cluster bus, over which nodes talk to each other.
    bus: u16,
}

impl Ports {
    fn free() -> Result<Self, Error> {
        Ok(Self { clients: free_port()?, bus: free_port()? })
    }
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    ///
    /// A server that was left behind in the same directory is stopped first.
    ///
    /// # Errors
    ///
    /// [`Error::NoBinary`] when there is nothing to run, [`Error::InUse`] while another process
    /// has the directory, [`Error::Exited`] or [`Error::TimedOut`] when it does not come up.
    pub async fn start(options: RedisOptions) -> Result<Self, Error> {
        let (flavour, program) = binary::find(options.flavour).await?;
        let (dir, temporary) = data_dir(options.data_dir.as_deref())?;
        let lock = lock(&dir)?;
        stop_orphan(&dir).await?;
        let mut server = Self {
            options,
            program,
            flavour,
            dir,
            ports: Ports::free()?,
            child: Mutex::default(),
            _lock: lock,
            _temporary: temporary,
        };
        for _ in 1..PORT_ATTEMPTS {
            match server.launch().await {
                Err(Error::Exited { log, .. }) if log.contains("Address already in use") => {
                    server.ports = Ports::free()?;
                }
                outcome => return outcome.map(|()| server),
            }
        }
        server.launch().await.map(|()| server)
    }

    /// Valkey or Redis; never [`Flavour::Auto`].
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The port on 127.0.0.1; the same for as long as this handle lives.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.ports.clients
    }

    /// The port of the cluster bus, used in cluster mode only.
    pub(super) fn bus_port(&self) -> u16 {
        self.ports.bus
    }

    /// The address clients use: `redis://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.ports.clients)
    }

    /// The address that the engine uses, at its own port or that of a proxy: with a user of its own if
    /// it is as the serverless cache.
    #[must_use]
    pub fn engine_url(&self, port: u16) -> String {
        let user = if self.options.serverless {
            format!("{ENGINE_USER}:{ENGINE_USER}@")
        } else {
            String::new()
        };
        format!("redis://{user}127.0.0.1:{port}")
    }

    /// A client of it that may do everything.
    pub(super) fn client(&self) -> Result<redis::Client, Error> {
        Ok(redis::Client::open(self.url())?)
    }

    /// The binary that runs.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Directory of the server's files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens a connection of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Redis`] when the server does not accept it.
    pub async fn connect(&self) -> Result<MultiplexedConnection, Error> {
        let limit = Some(Duration::from_secs(READY_SECONDS));
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(limit)
            .set_response_timeout(limit);
        let client = self.client()?;
        Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// Waits until the server, a replica, is in sync with its master.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when it is not in time.
    pub async fn followed(&self) -> Result<(), Error> {
        let mut connection = self.connect().await?;
        let deadline = Deadline::with("the replica to follow its master", READY_SECONDS);
        loop {
            let mut ask = redis::cmd("INFO");
            let info: String = ask.arg("replication").query_async(&mut connection).await?;
            if info.lines().any(|line| line.trim() == "master_link_status:up") {
                return Ok(());
            }
            deadline.pause().await?;
        }
    }

    /// Kills the server as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the operating system does not say how it ended.
    pub fn kill(&mut self) -> Result<(), Error> {
        let Some(mut child) = self.child().take() else {
            return Ok(());
        };
        child.kill().map_err(Error::io("waiting for the server"))
    }

    /// Suspends the server's process, as a host that hangs: its connections stay open, and nothing is
    /// answered on them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it does not run.
    pub fn freeze(&self) -> Result<(), Error> {
        self.signal(Signal::Stop)
    }

    /// Resumes a suspended server.
    ///
    /// # Errors
    ///
    /// As [`RedisServer::freeze`].
    pub fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::Continue)
    }

    fn signal(&self, what: Signal) -> Result<(), Error> {
        let pid = fs::read_to_string(self.dir.join(PID_FILE));
        let pid = pid.map_err(Error::io("reading the process id"))?;
        signal(pid.trim(), what).map_err(Error::io("signalling the server"))
    }

    /// Starts the server again on the same port and directory, killing it first if it still runs.
    ///
    /// # Errors
    ///
    /// As [`RedisServer::start`]; also when another process took the port meanwhile.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.kill()?;
        self.launch().await
    }

    /// Shuts the server down: it writes out its data, then exits.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when it does not end in time; it is killed then.
    pub async fn stop(self) -> Result<(), Error> {
        if self.child().is_none() {
            return Ok(());
        }
        let mut connection = self.connect().await?;
        // The reply to SHUTDOWN is that the connection closes, which the client calls an error.
        let _closed: Result<(), _> = redis::cmd("SHUTDOWN").query_async(&mut connection).await;
        let deadline = Deadline::with("the server to end", STOP_SECONDS);
        while self.runs()? {
            deadline.pause().await?;
        }
        Ok(())
    }

    /// Why the server does not run any more though nobody has stopped it; `None` while it runs.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the operating system does not say.
    pub fn exited(&self) -> Result<Option<Error>, Error> {
        let status = match self.child().as_mut() {
            Some(child) => child.ended().map_err(Error::io("watching the server"))?,
            None => None,
        };
        Ok(status.map(|status| Error::Exited {
            program: self.program.clone(),
            status,
            log: self.log_tail(),
        }))
    }

    /// Starts the server again after it has [`exited`](Self::exited), on the same port and directory.
    ///
    /// # Errors
    ///
    /// As [`RedisServer::restart`].
    pub async fn revive(&self) -> Result<(), Error> {
        self.launch().await
    }

    fn child(&self) -> MutexGuard<'_, Option<Kept>> {
        // A panic under the lock leaves a process or none: both are fine.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self) -> Result<bool, Error> {
        match self.child().as_mut() {
            Some(child) => {
                let ended = child.ended().map_err(Error::io("waiting for the server"))?;
                Ok(ended.is_none())
            }
            None => Ok(false),
        }
    }

    /// Runs the binary on the ports chosen and waits until it answers.
    async fn launch(&self) -> Result<(), Error> {
        let log = File::create(self.dir.join(LOG_FILE)).map_err(Error::io("creating the log"))?;
        let errors = log.try_clone().map_err(Error::io("opening the log"))?;
        let output = (log.into(), errors.into());
        let child = Kept::start(&self.program, self.arguments(), &self.dir, output, &[])
            .map_err(Error::io(format!("running {}", self.program.display())))?;
        *self.child() = Some(child);
        let awaited = format!("{} to answer", self.program.display());
        let deadline = Deadline::with(awaited, READY_SECONDS);
        while !self.answers().await {
            if let Some(exited) = self.exited()? {
                return Err(exited);
            }
            deadline.pause().await?;
        }
        if self.options.serverless { self.restrict().await } else { Ok(()) }
    }

    /// Makes the engine's user, who may do what the serverless cache can.
    async fn restrict(&self) -> Result<(), Error> {
        let connection = self.connect().await?;
        let user = |rules: &[&str]| {
            let mut command = redis::cmd("ACL");
            command.arg("SETUSER").arg(ENGINE_USER).arg(rules);
            let mut connection = connection.clone();
            async move { command.query_async::<()>(&mut connection).await }
        };
        let password = format!(">{ENGINE_USER}");
        user(&["reset", "on", &password, "~*", "&*", "+@all"]).await?;
        for rule in fake_limits::redis::acl_rules() {
            match user(&[&rule]).await {
                // A command that this server does not have needs no rule.
                Err(error) if error.to_string().contains("Unknown command") => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// The server's command line.
    fn arguments(&self) -> Vec<String> {
        let yes_no = |on: bool| if on { "yes" } else { "no" }.to_owned();
        let dir = self.dir.display().to_string();
        let mut arguments: Vec<String> = [
            ("--port", self.ports.clients.to_string()),
            ("--bind", "127.0.0.1".to_owned()),
            ("--protected-mode", yes_no(true)),
            ("--dir", dir.clone()),
            ("--pidfile", format!("{dir}/{PID_FILE}")),
            // The command line must stay readable: by it an orphan is recognised.
            ("--set-proc-title", yes_no(false)),
            ("--save", String::new()),
            ("--appendonly", yes_no(self.options.append_only)),
            ("--appendfsync", "everysec".to_owned()),
            // A replica is to be had at once, not when others might have come, too.
            ("--repl-diskless-sync-delay", "0".to_owned()),
            // Inventory must never be evicted: a full server refuses writes instead. It has no expiry,
            // so the serverless cache, which has one policy only, does not evict it either.
            (
                "--maxmemory-policy",
                if self.options.serverless { EVICTION.text() } else { "noeviction" }.to_owned(),
            ),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
        if self.options.serverless {
            // Every command, with the time that it took: what the slots are charged.
            arguments.extend(["--slowlog-log-slower-than".to_owned(), "0".to_owned()]);
            arguments.extend(["--slowlog-max-len".to_owned(), LOG_LENGTH.to_string()]);
        }
        if self.options.cluster {
            arguments.extend(["--cluster-enabled".to_owned(), yes_no(true)]);
            arguments.extend(["--cluster-port".to_owned(), self.ports.bus.to_string()]);
            // Any replica may follow, however long ago it last heard of its master.
            arguments.extend(["--cluster-replica-validity-factor".to_owned(), "0".to_owned()]);
        }
        if let Some(timeout_ms) = self.options.node_timeout_ms {
            arguments.extend(["--cluster-node-timeout".to_owned(), timeout_ms.to_string()]);
        }
        if let Some(master) = self.options.replica_of {
            arguments.extend(["--replicaof".to_owned(), format!("127.0.0.1 {master}")]);
        }
        arguments
    }

    /// Whether a server answers on our port and it is ours: another process may have been
    /// quicker to take the port, and would answer just as well.
    async fn answers(&self) -> bool {
        let Ok(mut connection) = self.connect().await else {
            return false;
        };
        // While it loads its file, CONFIG is answered already and PING is not.
        let mut ask = redis::pipe();
        ask.cmd("PING").ignore();
        ask.cmd("CONFIG").arg("GET").arg("dir");
        let answer = ask.query_async::<(HashMap<String, String>,)>(&mut connection).await;
        answer.is_ok_and(|(config,)| {
            let dir = config.get("dir").map(Path::new);
            dir == Some(&self.dir)
        })
    }

    /// The last lines the server wrote.
    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.dir.join(LOG_FILE)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            tracing::warn!(%error, "the server could not be stopped");
        }
    }
}

/// The directory to work in, without symbolic links, and the guard that removes a temporary one.
fn data_dir(requested: Option<&Path>) -> Result<(PathBuf, Option<TempDir>), Error> {
    let creating = || Error::io("creating the data directory");
    let (dir, temporary) = match requested {
        Some(dir) => {
            fs::create_dir_all(dir).map_err(creating())?;
            (dir.to_owned(), None)
        }
        None => {
            let temporary = tempfile::Builder::new().prefix("onsale-redis-").tempdir();
            let temporary = temporary.map_err(creating())?;
            (temporary.path().to_owned(), Some(temporary))
        }
    };
    let dir = fs::canonicalize(dir).map_err(creating())?;
    Ok((dir, temporary))
}

/// Locks `dir` for this process. A server that the next holder of the lock finds there is an orphan.
fn lock(dir: &Path) -> Result<DirLock, Error> {
    let lock = DirLock::acquire(&dir.join(LOCK_FILE));
    let lock = lock.map_err(Error::io(format!("locking {}", dir.display())))?;
    lock.ok_or_else(|| Error::InUse(dir.to_owned()))
}

/// Stops a server that an owner of `dir` left running when it was killed.
///
/// It is known by the process id it wrote there, and trusted only while that process has this
/// directory on its command line: the number may long belong to somebody else.
async fn stop_orphan(dir: &Path) -> Result<(), Error> {
    let pid = match fs::read_to_string(dir.join(PID_FILE)) {
        Ok(content) => content.trim().to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("reading the process id")(error)),
    };
    if !serves(&pid, dir) {
        return Ok(());
    }
    tracing::info!(pid, dir = %dir.display(), "stopping the server an earlier run left behind");
    // Nothing is lost: whatever the server acknowledged is in its file already. It may end by itself
    // meanwhile.
    let _gone = signal(&pid, Signal::Kill);
    let deadline = Deadline::with("the server left behind to end", STOP_SECONDS);
    while serves(&pid, dir) {
        deadline.pause().await?;
    }
    Ok(())
}

/// True if process `pid` is a server that was told to work in `dir`.
fn serves(pid: &str, dir: &Path) -> bool {
    if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    // A process that is gone, or not yet reaped, has no command line.
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    let told = [b"--dir", dir.as_os_str().as_encoded_bytes()];
    words.windows(2).any(|pair| pair == told)
}
