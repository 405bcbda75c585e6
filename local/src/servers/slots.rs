//! The hash slots of a serverless cache: a proxy that delays, and refuses, what a slot does not carry.
//!
//! What a request costs is known only when it was carried out: the server measures each, and its log of
//! slow commands, which here has all of them, is read several times a second. A request is charged what
//! requests of its kind (a command, or a script) took lately.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fake_limits::redis::{Slots, ecpu, slot};
use fake_limits::table::{SLOT_THROTTLED, Service};
use fake_limits::{Now, Throttles};
use redis::{Client, RedisResult};
use tokio::task::JoinHandle;

use super::redis_proxy::{Act, RedisProxy, Request};

/// Requests that the server keeps in its log.
pub(super) const LOG_LENGTH: usize = 512;
/// Time between two readings of that log.
const PERIOD: Duration = Duration::from_millis(250);
/// The share of a mean that the last request of a kind makes up.
const WEIGHT: f64 = 0.05;
/// Time that a request takes the engine of whose kind none was measured yet, in microseconds.
const UNKNOWN_US: f64 = 3.0;

/// A proxy in front of a server; it stops when dropped.
#[derive(Debug)]
pub(super) struct SlotProxy {
    proxy: RedisProxy,
    sampler: JoinHandle<()>,
}

impl SlotProxy {
    /// Starts in front of a port of 127.0.0.1, where `client` may read the server's log. What is delayed
    /// and refused is counted in `throttles`.
    ///
    /// # Errors
    /// There is no port to listen on.
    pub(super) async fn start(port: u16, client: Client, throttles: Throttles) -> io::Result<Self> {
        let meter = Arc::new(Meter::new(throttles));
        let metered = Arc::clone(&meter);
        let proxy = RedisProxy::start(port, move |request| metered.act(request)).await?;
        let sampler = tokio::spawn(async move { meter.sample(&client).await });
        Ok(Self { proxy, sampler })
    }

    /// The port on 127.0.0.1 on which it listens.
    pub(super) fn port(&self) -> u16 {
        self.proxy.port()
    }
}

impl Drop for SlotProxy {
    fn drop(&mut self) {
        self.sampler.abort();
    }
}

/// An entry of the server's log: its number, its time, the microseconds that it took, its strings, and the
/// client's address and name.
type Entry = (i64, i64, i64, Vec<Vec<u8>>, Vec<u8>, Vec<u8>);

#[derive(Debug)]
struct Meter {
    state: Mutex<State>,
    throttles: Throttles,
    started: Instant,
}

#[derive(Debug, Default)]
struct State {
    slots: Slots,
    /// Mean time that requests of a kind take the engine, in microseconds.
    means: HashMap<Vec<u8>, f64>,
}

impl Meter {
    fn new(throttles: Throttles) -> Self {
        Self { state: Mutex::default(), throttles, started: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges a request to its slot. One without a key is not metered.
    fn act(&self, request: Request<'_>) -> Act {
        self.act_at(request, self.started.elapsed())
    }

    fn act_at(&self, request: Request<'_>, now: Now) -> Act {
        let Some(key) = key(request) else { return Act::Forward };
        let bytes = u32::try_from(request.size()).unwrap_or(u32::MAX);
        let mut state = self.state();
        let micros = state.means.get(kind(request.strings())).copied().unwrap_or(UNKNOWN_US);
        let delay = state.slots.delay(slot(key), ecpu(bytes, micros), now);
        drop(state);
        let service = Service::ElastiCache.name();
        match delay {
            Some(Duration::ZERO) => Act::Forward,
            Some(delay) => {
                self.throttles.one(service, "requests delayed: their slot had no units left");
                Act::ForwardLate(delay)
            }
            None => {
                self.throttles.one(service, SLOT_THROTTLED.text());
                Act::Refuse(SLOT_THROTTLED.text())
            }
        }
    }

    /// Reads the server's log until it is stopped. A server that is ill or restarting is asked again.
    async fn sample(&self, client: &Client) {
        let mut last = None;
        let mut connection = None;
        loop {
            tokio::time::sleep(PERIOD).await;
            let mut asked = match connection.take() {
                Some(connection) => connection,
                None => match client.get_multiplexed_async_connection().await {
                    Ok(fresh) => fresh,
                    Err(_ill) => continue,
                },
            };
            let mut log = redis::cmd("SLOWLOG");
            let log: RedisResult<Vec<Entry>> =
                log.arg("GET").arg(LOG_LENGTH).query_async(&mut asked).await;
            match log {
                Ok(entries) => {
                    self.learn(&entries, &mut last);
                    connection = Some(asked);
                }
                // It counts from nothing when it runs again.
                Err(_ill) => last = None,
            }
        }
    }

    /// Takes the times of entries that are newer than the `last` one of the reading before. The newest
    /// comes first.
    fn learn(&self, entries: &[Entry], last: &mut Option<i64>) {
        let mut state = self.state();
        let is_new = |entry: &&Entry| last.is_none_or(|last| entry.0 > last);
        for (_, _, micros, strings, _, _) in entries.iter().rev().filter(is_new) {
            let micros = i32::try_from(*micros).map_or(f64::from(i32::MAX), f64::from);
            let kind = kind(strings.iter().map(Vec::as_slice)).to_vec();
            let mean = state.means.entry(kind).or_insert(micros);
            *mean += (micros - *mean) * WEIGHT;
        }
        *last = entries.first().map(|entry| entry.0).max(*last);
    }
}

/// What requests are distinguished by: the digest of a script, or the command.
fn kind<'r>(mut strings: impl Iterator<Item = &'r [u8]>) -> &'r [u8] {
    let command = strings.next().unwrap_or_default();
    if is_script(command) { strings.next().unwrap_or_default() } else { command }
}

/// The first key of a request; `None` if it has none. A script names the number of its keys first.
fn key(request: Request<'_>) -> Option<&[u8]> {
    let mut strings = request.strings();
    let command = strings.next()?;
    if is_script(command) {
        let count = strings.nth(1)?;
        return if count == b"0" { None } else { strings.next() };
    }
    let command = command.to_ascii_uppercase();
    let keyless: [&[u8]; 14] = [
        b"ACL",
        b"AUTH",
        b"CLIENT",
        b"CLUSTER",
        b"COMMAND",
        b"ECHO",
        b"EXEC",
        b"HELLO",
        b"INFO",
        b"MULTI",
        b"PING",
        b"READONLY",
        b"SCRIPT",
        b"TIME",
    ];
    if keyless.contains(&command.as_slice()) { None } else { strings.next() }
}

fn is_script(command: &[u8]) -> bool {
    let commands: [&[u8]; 4] = [b"EVAL", b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO"];
    commands.iter().any(|script| command.eq_ignore_ascii_case(script))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(strings: &[&str]) -> Vec<u8> {
        let each = strings.iter().map(|string| format!("${}\r\n{string}\r\n", string.len()));
        format!("*{}\r\n{}", strings.len(), each.collect::<String>()).into_bytes()
    }

    #[test]
    fn a_request_is_charged_to_the_slot_of_its_first_key() {
        let key_of = |strings: &[&str]| {
            key(Request::from_bytes(&bytes(strings)))
                .map(|key| String::from_utf8_lossy(key).into_owned())
        };
        assert_eq!(
            key_of(&["EVALSHA", "abc", "2", "{a}:sale", "{a}:due", "x"]).unwrap(),
            "{a}:sale"
        );
        assert_eq!(key_of(&["evalsha_ro", "abc", "1", "k"]).unwrap(), "k");
        assert_eq!(key_of(&["GET", "k"]).unwrap(), "k");
        assert_eq!(key_of(&["EVAL", "return 1", "0"]), None);
        assert_eq!(key_of(&["ping"]), None);
        assert_eq!(key_of(&["CLIENT", "SETINFO", "lib-name", "x"]), None);
    }

    #[test]
    fn a_script_is_charged_what_the_server_measured_and_delayed_where_its_slot_is_used_up() {
        let throttles = Throttles::default();
        let meter = Meter::new(throttles.clone());
        let entry = |number: i64, micros: i64| -> Entry {
            let strings = ["EVALSHA", "abc", "1", "k"].map(|string| string.as_bytes().to_vec());
            (number, 0, micros, strings.to_vec(), Vec::new(), Vec::new())
        };
        let mut last = None;
        meter.learn(&[entry(2, 300), entry(1, 300)], &mut last);
        // What was read already changes nothing.
        meter.learn(&[entry(2, 9_000_000), entry(1, 9_000_000)], &mut last);
        assert_eq!(last, Some(2));
        let mean = meter.state().means[b"abc".as_slice()];
        assert!((299.0..301.0).contains(&mean), "{mean}");

        // A hundred units each: three hundred at once, three hundred late, and no more.
        let script = bytes(&["EVALSHA", "abc", "1", "k"]);
        let act = |request: &[u8]| meter.act_at(Request::from_bytes(request), Now::ZERO);
        let acts: Vec<Act> = (0..1000).map(|_| act(&script)).collect();
        let count = |is_it: fn(&Act) -> bool| acts.iter().filter(|act| is_it(act)).count();
        assert!((299..=301).contains(&count(|act| *act == Act::Forward)));
        assert!((299..=303).contains(&count(|act| matches!(act, Act::ForwardLate(_)))));
        assert!(count(|act| matches!(act, Act::Refuse(_))) > 300);
        let other = bytes(&["EVALSHA", "abc", "1", "another"]);
        assert_eq!(act(&other), Act::Forward);
        let refused = |reason: &str| throttles.rows().iter().any(|row| row.reason.contains(reason));
        assert!(refused("delayed") && refused("exceeded"));
    }
}
