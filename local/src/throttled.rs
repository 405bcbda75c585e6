//! What the servers of an engine have refused for their limits, kept in a file of its data directory
//! for commands in other processes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_limits::redis::Account;
use fake_limits::table::Service;
use fake_limits::{Limits, Throttled, Throttles};
use redis::Client;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// The file of an engine.
pub const FILE: &str = "throttled.json";
/// The file of servers in a process of their own, in the same directory.
pub const SERVERS_FILE: &str = "throttled-servers.json";
/// How often the file is written, and the account of Redis read.
const PERIOD: Duration = Duration::from_secs(1);

/// Reads a file; nothing was refused if it is not there or cannot be read.
#[must_use]
pub fn read(file: &Path) -> Throttled {
    let text = std::fs::read(file).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Writes a file in one step, so that nobody reads half of it.
///
/// # Errors
/// The directory cannot be written.
pub fn write(file: &Path, throttled: &Throttled) -> io::Result<()> {
    let fresh = file.with_extension("new");
    let text = serde_json::to_vec_pretty(throttled).map_err(io::Error::other)?;
    std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, file))
}

/// Keeps a file up to date until it is dropped.
#[derive(Debug)]
pub struct Recorder {
    limits: Limits,
    throttles: Throttles,
    file: PathBuf,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Starts recording what is counted in `throttles`, and what the scripts of a Redis cost, if there
    /// is one.
    #[must_use]
    pub fn start(
        limits: Limits,
        throttles: Throttles,
        file: PathBuf,
        redis: Option<Client>,
    ) -> Self {
        let scripts = redis.map(|client| Scripts { client, connection: None, account: None });
        let task = tokio::spawn(record(limits, throttles.clone(), file.clone(), scripts));
        Self { limits, throttles, file, task }
    }

    /// What was refused so far.
    #[must_use]
    pub fn throttled(&self) -> Throttled {
        Throttled::new(self.limits, &self.throttles)
    }

    /// Writes the file for the last time.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn finish(self) -> io::Result<()> {
        write(&self.file, &self.throttled())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn record(limits: Limits, throttles: Throttles, file: PathBuf, mut scripts: Option<Scripts>) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written = None;
    loop {
        ticks.tick().await;
        if let Some(scripts) = &mut scripts {
            // A Redis that is ill or restarting is asked again in a second.
            match scripts.ecpu().await {
                Ok(ecpu) => measure(&throttles, ecpu),
                Err(_ill) => (scripts.connection, scripts.account) = (None, None),
            }
        }
        let now = Throttled::new(limits, &throttles);
        if written.as_ref() != Some(&now) {
            if let Err(error) = write(&file, &now) {
                tracing::warn!(%error, file = %file.display(), "throttling is not recorded");
            }
            written = Some(now);
        }
    }
}

/// Records what the commands of one second cost.
fn measure(throttles: &Throttles, ecpu: f64) {
    let whole: u64 = format!("{ecpu:.0}").parse().unwrap_or(u64::MAX);
    let what = "ECPU in the busiest second, all slots together";
    throttles.peak(Service::ElastiCache.name(), what, whole);
}

/// The account of a Redis, as it was read last.
struct Scripts {
    client: Client,
    connection: Option<MultiplexedConnection>,
    account: Option<Account>,
}

impl Scripts {
    /// The units since the last reading; none at the first.
    async fn ecpu(&mut self) -> redis::RedisResult<f64> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.client.get_multiplexed_async_connection().await?,
        };
        let mut ask = redis::cmd("INFO");
        let stats: String = ask.arg("commandstats").query_async(&mut connection).await?;
        self.connection = Some(connection);
        let now = account(&stats);
        let earlier = self.account.replace(now);
        Ok(earlier.map_or(0.0, |earlier| now.ecpu_since(&earlier)))
    }
}

/// The sum over `cmdstat_get:calls=1,usec=2,…`, without the question itself.
fn account(stats: &str) -> Account {
    let lines = stats.lines().filter(|line| !line.starts_with("cmdstat_info:"));
    lines.fold(Account::default(), |sum, line| {
        let fields = line.split_once(':').map_or("", |(_, fields)| fields);
        let field = |name: &str| -> f64 {
            let mut fields = fields.split(',').filter_map(|field| field.split_once('='));
            fields
                .find(|(field, _)| *field == name)
                .map_or(0.0, |(_, value)| value.trim().parse().unwrap_or(0.0))
        };
        Account {
            calls: sum.calls + field("calls"),
            engine_micros: sum.engine_micros + field("usec"),
        }
    })
}

#[cfg(test)]
mod tests {
    use fake_limits::Quotas;

    use super::*;

    #[test]
    fn the_account_of_redis_is_summed_without_the_question() {
        let stats = "# Commandstats\r\n\
            cmdstat_evalsha:calls=10,usec=300,usec_per_call=30.00,rejected_calls=0\r\n\
            cmdstat_info:calls=99,usec=9999,usec_per_call=1.00\r\n\
            cmdstat_hget:calls=5,usec=5,usec_per_call=1.00,rejected_calls=0\r\n";
        assert_eq!(account(stats), Account { calls: 15.0, engine_micros: 305.0 });
    }

    #[tokio::test]
    async fn what_is_counted_is_in_the_file_within_a_second_and_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        assert_eq!(read(&file), Throttled::default());
        let (limits, throttles) = (Limits::Aws(Quotas::default()), Throttles::default());
        let recorder = Recorder::start(limits, throttles.clone(), file.clone(), None);
        throttles.one("SQS", "OverLimit");
        let deadline = crate::servers::Deadline::with("the file", 120);
        while read(&file) != recorder.throttled() {
            deadline.pause().await.unwrap();
        }
        measure(&throttles, 30_001.4);
        let last = recorder.throttled();
        recorder.finish().unwrap();
        assert_eq!(read(&file), last);
        assert_eq!((last.counts.len(), last.peaks[0].times), (1, 30_001));
    }
}
