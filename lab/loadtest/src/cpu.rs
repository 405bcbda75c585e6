//! Where the processors' time goes: engine, fakes, Redis and crowd, each by the threads or the
//! process of its own.
//!
//! The kernel keeps the account: `/proc/PID/task/TID/stat` has the time of every thread under its
//! name, and `/proc/PID/stat` that of the threads which have ended too. Any process on the machine
//! can read the account of an engine that runs in another, because the engine's process id is in
//! its [`Endpoints`]; nothing has to be asked of the functions. Redis accounts for itself
//! (`INFO cpu`). Where there is no `/proc` there is no account.
//!
//! Source of the fields: proc(5), redis.io/commands/info.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use local::endpoints::Endpoints;
use local::servers::{DYNAMODB_THREADS, SQS_THREADS};

/// The name of the thread that a crowd runs on; its time is known by it as long as it runs.
pub const GENERATOR_THREADS: &str = "generator";
/// The kernel counts in these for programs, whatever its own clock: `sysconf(_SC_CLK_TCK)`, which is
/// 100 a second on every Linux there is today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Whoever uses the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The gateway, the functions, the pollers, and their clients of the stores.
    Engine,
    /// The fake of DynamoDB.
    #[serde(rename = "dynamodb")]
    DynamoDb,
    /// The fake of SQS.
    Sqs,
    Redis,
    Generator,
}

impl Part {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::DynamoDb => "fake DynamoDB",
            Self::Sqs => "fake SQS",
            Self::Redis => "Redis",
            Self::Generator => "generator",
        }
    }
}

/// Reason why there is no account.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's account cannot be read: no `/proc`, or the process is gone.
    #[error("{path}: {source}")]
    Kernel {
        /// Path that was to be read.
        path: String,
        /// Error of reading it.
        source: io::Error,
    },
    /// Redis did not say.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
}

/// The processor time of each part since it began, in seconds.
type Account = BTreeMap<Part, f64>;

/// Measures who uses the processors from one moment on.
#[derive(Debug, Clone)]
pub struct Meter {
    endpoints: Endpoints,
    began: Instant,
    before: Account,
}

/// Shares of the processor time during a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shares {
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Number of processors that were at work on average.
    pub processors: f64,
    /// The processor time of each part, in seconds.
    pub cpu_seconds: BTreeMap<Part, f64>,
}

impl Meter {
    /// Begins to measure a running engine, and the crowd: the threads called
    /// [`GENERATOR_THREADS`] if the engine runs in this process, else this process.
    ///
    /// # Errors
    /// [`Error`] if there is no account to read.
    pub async fn start(endpoints: &Endpoints) -> Result<Self, Error> {
        let before = account(endpoints).await?;
        Ok(Self { endpoints: endpoints.clone(), began: Instant::now(), before })
    }

    /// Shares of the time since the start.
    ///
    /// # Errors
    /// [`Error`] if there is no account to read any more.
    pub async fn read(&self) -> Result<Shares, Error> {
        let now = account(&self.endpoints).await?;
        Ok(Shares::between(&self.before, &now, self.began.elapsed()))
    }
}

impl Shares {
    fn between(before: &Account, now: &Account, elapsed: Duration) -> Self {
        // Redis may have been started again meanwhile: its account then begins at zero.
        let spent = |(part, seconds): (&Part, &f64)| {
            let earlier = before.get(part).filter(|earlier| *earlier <= seconds).unwrap_or(&0.0);
            (*part, seconds - earlier)
        };
        let cpu_seconds: Account = now.iter().map(spent).collect();
        let seconds = elapsed.as_secs_f64();
        let processors = cpu_seconds.values().sum::<f64>() / seconds.max(f64::EPSILON);
        Self { seconds, processors, cpu_seconds }
    }

    /// All processor time together, in seconds.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.cpu_seconds.values().sum()
    }
}

impl fmt::Display for Shares {
    /// One line: `CPU 35.1 s in 20.0 s (1.8 processors): engine 41 %, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let Self { seconds, processors, cpu_seconds } = self;
        write!(f, "CPU {total:.1} s in {seconds:.1} s ({processors:.1} processors)")?;
        let mut between = ": ";
        for (part, spent) in cpu_seconds {
            let percent = 100.0 * spent / total.max(f64::EPSILON);
            write!(f, "{between}{} {percent:.0} %", part.name())?;
            between = ", ";
        }
        Ok(())
    }
}

/// Processor time of each part so far.
async fn account(endpoints: &Endpoints) -> Result<Account, Error> {
    let mut account = processes(endpoints.pid, std::process::id())?;
    account.insert(Part::Redis, redis_seconds(&endpoints.redis).await?);
    Ok(account)
}

/// What the engine's process has used, and the crowd's.
fn processes(engine: u32, here: u32) -> Result<Account, Error> {
    let mut account = Account::from([(Part::DynamoDb, 0.0), (Part::Sqs, 0.0)]);
    account.insert(Part::Generator, if here == engine { 0.0 } else { process_seconds(here)? });
    let mut named = 0.0;
    for (name, seconds) in threads(engine)? {
        if let Some(part) = part_of(&name, here == engine) {
            *account.entry(part).or_default() += seconds;
            named += seconds;
        }
    }
    // Everything else in it, threads that have ended included. The process is read after its
    // threads, so that it is never behind them.
    account.insert(Part::Engine, (process_seconds(engine)? - named).max(0.0));
    Ok(account)
}

/// The part that a thread of the engine's process belongs to, if it is not the engine's own.
fn part_of(thread: &str, with_crowd: bool) -> Option<Part> {
    if thread.starts_with(DYNAMODB_THREADS) {
        Some(Part::DynamoDb)
    } else if thread.starts_with(SQS_THREADS) {
        Some(Part::Sqs)
    } else if thread.starts_with(GENERATOR_THREADS) && with_crowd {
        Some(Part::Generator)
    } else {
        None
    }
}

/// Every thread of a process: its name, cut to 15 bytes by the kernel, and its time.
fn threads(process: u32) -> Result<Vec<(String, f64)>, Error> {
    let path = format!("/proc/{process}/task");
    let failed = |source| Error::Kernel { path: path.clone(), source };
    let mut threads = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let stat = entry.map_err(failed)?.path().join("stat");
        match read_stat(&stat) {
            Ok(thread) => threads.push(thread),
            // It has ended since it was listed.
            Err(Error::Kernel { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(threads)
}

fn process_seconds(process: u32) -> Result<f64, Error> {
    read_stat(Path::new(&format!("/proc/{process}/stat"))).map(|(_, seconds)| seconds)
}

fn read_stat(path: &Path) -> Result<(String, f64), Error> {
    let failed = |source| Error::Kernel { path: path.display().to_string(), source };
    let text = fs::read_to_string(path).map_err(failed)?;
    parse_stat(&text).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
}

/// The name and the time, user and system together, of a line as proc(5) describes it. The name is
/// in parentheses and may itself contain some.
fn parse_stat(line: &str) -> Option<(String, f64)> {
    let (head, fields) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    // Behind the name comes field 3; user and system time are fields 14 and 15.
    let mut times = fields.split_ascii_whitespace().skip(11);
    let mut ticks = || times.next()?.parse::<u64>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some((name.to_owned(), (user + system) as f64 / TICKS_PER_SECOND))
}

/// What the server of Redis has used, its helpers' processes included.
async fn redis_seconds(url: &str) -> Result<f64, Error> {
    let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    let info: String = redis::cmd("INFO").arg("cpu").query_async(&mut connection).await?;
    Ok(parse_info(&info))
}

fn parse_info(info: &str) -> f64 {
    const FIELDS: [&str; 4] =
        ["used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children"];
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    let of_interest = fields.filter(|(name, _)| FIELDS.contains(name));
    of_interest.filter_map(|(_, value)| value.trim().parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_whatever_its_name() {
        let line = |name: &str| {
            format!("77 ({name}) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1234 0 0\n")
        };
        for name in ["dynamodb", "sqs-standin-sto", "a) b (c", ""] {
            assert_eq!(parse_stat(&line(name)), Some((name.to_owned(), 3.0)));
        }
        for broken in ["", "77 (x", "77 (x) S 1", "77 (x) S 1 2 3 4 5 6 7 8 9 10 a b"] {
            assert_eq!(parse_stat(broken), None, "{broken}");
        }
    }

    #[test]
    fn redis_counts_its_children_but_its_main_thread_only_once() {
        let info = "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:0.25\r\n\
                    used_cpu_user_children:1.0\r\nused_cpu_sys_main_thread:9\r\n";
        assert!((parse_info(info) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn every_thread_is_counted_for_the_part_that_it_belongs_to() {
        assert_eq!(part_of("dynamodb", false), Some(Part::DynamoDb));
        assert_eq!(part_of("sqs-standin-sto", true), Some(Part::Sqs));
        assert_eq!(part_of("generator", true), Some(Part::Generator));
        assert_eq!(part_of("generator", false), None);
        assert_eq!(part_of("tokio-rt-worker", true), None);
    }

    #[test]
    fn a_server_that_was_started_again_is_counted_from_zero() {
        let before = Account::from([(Part::Redis, 5.0), (Part::Engine, 1.0)]);
        let now = Account::from([(Part::Redis, 2.0), (Part::Engine, 4.0)]);
        let shares = Shares::between(&before, &now, Duration::from_secs(5));
        assert_eq!(shares.cpu_seconds, Account::from([(Part::Redis, 2.0), (Part::Engine, 3.0)]));
        let text = "CPU 5.0 s in 5.0 s (1.0 processors): engine 60 %, Redis 40 %";
        assert_eq!(shares.to_string(), text);
    }

    /// Burns processor time until the kernel's account, which has steps of 10 ms, shows it.
    fn work(shown: impl Fn() -> bool) {
        let mut sum = 0_u64;
        while !shown() {
            sum = (0..1_000_000_u64).fold(sum, |sum, next| std::hint::black_box(sum ^ next));
        }
    }

    #[test]
    fn a_crowd_in_the_same_process_has_an_account_of_its_own() {
        let here = std::process::id();
        let generator = move || processes(here, here).unwrap()[&Part::Generator];
        let before = generator();
        let crowd = std::thread::Builder::new().name(GENERATOR_THREADS.to_owned());
        crowd.spawn(move || work(|| generator() > before)).unwrap().join().unwrap();
    }
}
