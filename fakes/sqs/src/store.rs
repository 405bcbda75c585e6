//! The file: one SQLite database that follows the broker's changes and is loaded at the start.
//!
//! Memory is the working state; the file is its log, folded. One thread writes. It takes
//! whatever changes have queued up and commits them together, so that many clients share the
//! cost of one commit. Write-ahead logging without a sync at each commit: a killed process loses
//! nothing that was committed, a machine that loses power may lose the last moments.
//!
//! A commit that fails, on a full disk say, is tried again until it succeeds. Memory is ahead of the
//! file meanwhile: whoever waits for these changes is told that they are not written, and the server
//! takes no further request ([`Store::is_behind`]).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Row, Statement, params};
use tokio::sync::oneshot;

use crate::change::{Change, DeduplicationRecord, QueueRecord, Snapshot};
use crate::message::{Content, Message, Place, Seq};
use crate::queue::QueueId;

/// The layout of the file; another number is another program's file.
const LAYOUT: i64 = 1;

/// Requests whose changes are committed together at most.
const GROUP_MAX: usize = 256;

/// Pause before a commit that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What [`CHECK`] finds at most: the first defects say which file to replace.
const DEFECTS_MAX: usize = 3;

/// Reads every page of the file and compares each with the structure around it. An index that lacks
/// an entry is not found; that would take `integrity_check`, which is several times as long.
const CHECK: &str = "PRAGMA quick_check";

const SCHEMA: &str = "
CREATE TABLE queue (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_ms INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL, attributes TEXT NOT NULL, tags TEXT NOT NULL
);
CREATE TABLE message (
    seq INTEGER PRIMARY KEY, queue INTEGER NOT NULL, id TEXT NOT NULL, sent_ms INTEGER NOT NULL,
    visible_ms INTEGER NOT NULL, receive_count INTEGER NOT NULL, receipt INTEGER NOT NULL,
    first_receive_ms INTEGER, source TEXT, copy INTEGER NOT NULL, content TEXT NOT NULL
);
CREATE TABLE deduplication (
    queue INTEGER NOT NULL, key TEXT NOT NULL, sent_ms INTEGER NOT NULL,
    message_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE TABLE number (next_seq INTEGER NOT NULL);
INSERT INTO number VALUES (1);
";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// SQLite says no: not a database, no room, or in use by another process.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The file holds something else than this program writes.
    #[error("the file's contents are not this program's: {0}")]
    Contents(String),
    /// Pages of the file are damaged.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// A row of the file cannot be read.
    #[error("row {row} of table {table} cannot be read: {reason}")]
    Row {
        table: &'static str,
        /// The row, from 1 in the order in which rows are read.
        row: usize,
        reason: String,
    },
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        StoreError::Contents(error.to_string())
    }
}

/// Changes to write, and whom to tell.
struct Batch {
    changes: Vec<Change>,
    written: oneshot::Sender<()>,
}

/// The writing thread; it ends, with everything written, when this is dropped.
#[derive(Debug)]
pub(crate) struct Store {
    batches: Option<Sender<Batch>>,
    /// True while a commit fails and is tried again.
    behind: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens or creates the file, reads what it holds and starts the writing thread.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, belongs to another program, or is in use.
    pub fn open(path: &Path) -> Result<(Self, Snapshot), StoreError> {
        let connection = Connection::open(path)?;
        // Exclusive: two servers on one file would each keep a state of their own.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        check(&connection)?;
        let layout: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match layout {
            LAYOUT => {}
            0 => {
                let create =
                    format!("BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {LAYOUT}; COMMIT;");
                connection.execute_batch(&create)?;
            }
            other => return Err(StoreError::Contents(format!("layout {other}"))),
        }
        let snapshot = load(&connection)?;
        let (batches, received) = channel();
        let behind = Arc::new(AtomicBool::new(false));
        let writer = Writer { connection, behind: Arc::clone(&behind) };
        let thread = std::thread::Builder::new()
            .name(format!("{}-store", crate::THREADS))
            .spawn(move || writer.run(&received))
            .map_err(|error| StoreError::Contents(error.to_string()))?;
        Ok((Store { batches: Some(batches), behind, thread: Some(thread) }, snapshot))
    }

    /// True while the file cannot be written: memory is ahead of it, and what is changed now could
    /// not be confirmed.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Acquire)
    }

    /// Queues changes for writing; what is returned resolves when they are in the file, and
    /// to an error when that is not certain.
    pub fn write(&self, changes: Vec<Change>) -> oneshot::Receiver<()> {
        let (written, receiver) = oneshot::channel();
        if let Some(batches) = &self.batches {
            // A writer that has given up has closed the channel; the receiver then says so.
            let _ = batches.send(Batch { changes, written });
        }
        receiver
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the writing thread owns.
struct Writer {
    connection: Connection,
    behind: Arc<AtomicBool>,
}

impl Writer {
    /// Commits what is sent until nobody can send any more.
    fn run(mut self, batches: &Receiver<Batch>) {
        while let Ok(first) = batches.recv() {
            let mut changes = first.changes;
            let mut waiting = vec![first.written];
            for batch in batches.try_iter().take(GROUP_MAX - 1) {
                changes.extend(batch.changes);
                waiting.push(batch.written);
            }
            match commit(&mut self.connection, &changes) {
                Ok(()) => waiting.into_iter().for_each(|written| {
                    // The client may have gone.
                    let _ = written.send(());
                }),
                Err(error) => {
                    self.behind.store(true, Ordering::Release);
                    // Whoever waits learns now that it is not written.
                    drop(waiting);
                    tracing::error!(
                        %error,
                        "the queue file cannot be written: requests are refused until it can"
                    );
                    if !self.catch_up(changes, batches) {
                        return;
                    }
                    self.behind.store(false, Ordering::Release);
                }
            }
        }
    }

    /// Tries until everything that memory is ahead by is in the file; false if the server stops
    /// before it is.
    fn catch_up(&mut self, mut changes: Vec<Change>, batches: &Receiver<Batch>) -> bool {
        let since = Instant::now();
        loop {
            // What was under way when it began, and what comes due without a request; its senders
            // are dropped, so that nobody takes it for written.
            let stops = match batches.recv_timeout(RETRY_PAUSE) {
                Ok(batch) => {
                    changes.extend(batch.changes);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            match commit(&mut self.connection, &changes) {
                Ok(()) => {
                    let seconds = since.elapsed().as_secs();
                    let count = changes.len();
                    tracing::info!(seconds, changes = count, "the queue file is written again");
                    return true;
                }
                Err(error) if stops => {
                    tracing::error!(
                        %error, changes = changes.len(),
                        "the queue file could not be written to the end; nobody was told that it was"
                    );
                    return false;
                }
                Err(error) => tracing::debug!(%error, "the queue file still cannot be written"),
            }
        }
    }
}

/// Looks for damaged pages.
fn check(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare(CHECK)?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?.take(DEFECTS_MAX);
    let found = found.collect::<Result<Vec<String>, _>>()?;
    match found.as_slice() {
        [only] if only == "ok" => Ok(()),
        defects => Err(StoreError::Damaged(defects.join("; "))),
    }
}

fn commit(connection: &mut Connection, changes: &[Change]) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    for change in changes {
        apply(&transaction, change)?;
    }
    Ok(transaction.commit()?)
}

fn apply(connection: &Connection, change: &Change) -> Result<(), StoreError> {
    match change {
        Change::PutQueue(queue) => connection
            .prepare_cached("INSERT OR REPLACE INTO queue VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![
                queue.id,
                queue.name,
                queue.created_ms,
                queue.modified_ms,
                serde_json::to_string(&queue.attributes)?,
                serde_json::to_string(&queue.tags)?,
            ])?,
        Change::DropQueue(id) => {
            connection.execute("DELETE FROM queue WHERE id = ?", [id])?;
            connection.execute("DELETE FROM deduplication WHERE queue = ?", [id])?;
            connection.execute("DELETE FROM message WHERE queue = ?", [id])?
        }
        Change::Purge(id) => connection.execute("DELETE FROM message WHERE queue = ?", [id])?,
        Change::PutMessage(queue, message) => connection
            .prepare_cached(
                "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                message.seq,
                queue,
                message.id.as_ref(),
                message.sent_ms,
                message.visible_ms,
                message.receive_count,
                message.receipt,
                message.first_receive_ms,
                message.source.as_deref(),
                message.copy,
                serde_json::to_string(message.content.as_ref())?,
            ])?,
        Change::Delivery { seq, visible_ms, receive_count, receipt, first_receive_ms } => {
            connection
                .prepare_cached(
                    "UPDATE message SET visible_ms = ?, receive_count = ?, receipt = ?, \
                 first_receive_ms = ? WHERE seq = ?",
                )?
                .execute(params![visible_ms, receive_count, receipt, first_receive_ms, seq])?
        }
        Change::DropMessage(seq) => {
            connection.prepare_cached("DELETE FROM message WHERE seq = ?")?.execute([seq])?
        }
        Change::Remember(record) => connection
            .prepare_cached("INSERT OR REPLACE INTO deduplication VALUES (?, ?, ?, ?, ?)")?
            .execute(params![
                record.queue,
                record.key,
                record.sent_ms,
                record.message_id,
                record.seq
            ])?,
        Change::Forget(queue, key) => connection
            .prepare_cached("DELETE FROM deduplication WHERE queue = ? AND key = ?")?
            .execute(params![queue, key])?,
        Change::Reserve(next_seq) => {
            connection.execute("UPDATE number SET next_seq = ?", [next_seq])?
        }
    };
    Ok(())
}

fn load(connection: &Connection) -> Result<Snapshot, StoreError> {
    let mut snapshot = Snapshot::default();
    let mut statement = connection
        .prepare("SELECT id, name, created_ms, modified_ms, attributes, tags FROM queue")?;
    snapshot.queues = rows(&mut statement, "queue", queue)?;
    let mut statement = connection.prepare(
        "SELECT queue, seq, id, sent_ms, visible_ms, receive_count, receipt, first_receive_ms, \
         source, copy, content FROM message ORDER BY seq",
    )?;
    snapshot.messages = rows(&mut statement, "message", message)?;
    let mut statement =
        connection.prepare("SELECT queue, key, sent_ms, message_id, seq FROM deduplication")?;
    snapshot.deduplication = rows(&mut statement, "deduplication", deduplication)?;
    snapshot.next_seq =
        connection.query_row("SELECT next_seq FROM number", [], |row| row.get(0))?;
    Ok(snapshot)
}

/// Reads every row of a table, and names the one that cannot be read.
fn rows<T>(
    statement: &mut Statement<'_>,
    table: &'static str,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut all = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let named = |error: StoreError| StoreError::Row {
            table,
            row: all.len() + 1,
            reason: error.to_string(),
        };
        let one = read(row).map_err(named)?;
        all.push(one);
    }
    Ok(all)
}

fn queue(row: &Row<'_>) -> Result<QueueRecord, StoreError> {
    Ok(QueueRecord {
        id: row.get(0)?,
        name: row.get(1)?,
        created_ms: row.get(2)?,
        modified_ms: row.get(3)?,
        attributes: serde_json::from_str(&row.get::<_, String>(4)?)?,
        tags: serde_json::from_str(&row.get::<_, String>(5)?)?,
    })
}

fn deduplication(row: &Row<'_>) -> Result<DeduplicationRecord, StoreError> {
    Ok(DeduplicationRecord {
        queue: row.get(0)?,
        key: row.get(1)?,
        sent_ms: row.get(2)?,
        message_id: row.get(3)?,
        seq: row.get(4)?,
    })
}

fn message(row: &Row<'_>) -> Result<(QueueId, Message), StoreError> {
    let queue: QueueId = row.get(0)?;
    let seq: Seq = row.get(1)?;
    let content: Content = serde_json::from_str(&row.get::<_, String>(10)?)?;
    let message = Message {
        seq,
        id: row.get::<_, String>(2)?.into(),
        content: Arc::new(content),
        sent_ms: row.get(3)?,
        visible_ms: row.get(4)?,
        receive_count: row.get(5)?,
        receipt: row.get(6)?,
        first_receive_ms: row.get(7)?,
        source: row.get::<_, Option<String>>(8)?.map(Into::into),
        copy: row.get(9)?,
        place: Place::Ready,
    };
    Ok((queue, message))
}
