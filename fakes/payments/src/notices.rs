//! Notifications to the merchant: sent by the fake itself, again after the published gaps until they are
//! taken, and, if it is unruly, twice and out of order.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::Error;

/// How long an unruly provider sits on each notification in turn: what was sent later overtakes it.
const DELAYS_MS: [u64; 5] = [0, 0, 700, 0, 150];
/// Every so many notifications of an unruly provider are sent again when they were taken.
const AGAIN_EVERY: u64 = 3;
/// Every so many are preceded by a probe.
const PROBE_EVERY: u64 = 4;
/// Time limit of one try.
/// Source: <https://pay.weixin.qq.com/docs/merchant/apis/native-payment/payment-notice.html>
const TRY_SECONDS: Duration = Duration::from_secs(5);

/// Headers and body of one try.
pub(crate) type Letter = (HeaderMap, String);
pub(crate) type Writer = Box<dyn Fn() -> Result<Letter, Error> + Send + Sync>;

pub(crate) struct Notice {
    pub(crate) url: String,
    /// How long it waits before it is sent first.
    pub(crate) after: Duration,
    /// Writes it for each try.
    pub(crate) write: Writer,
    /// Writes the same with a signature that is wrong on purpose, if the provider probes.
    pub(crate) probe: Option<Writer>,
    /// True for an answer by which it is taken.
    pub(crate) is_taken: fn(StatusCode, &str) -> bool,
    /// How long after its n-th failed try it is sent again.
    pub(crate) gap: fn(u32) -> Option<Duration>,
    /// Called when it is taken.
    pub(crate) taken: Box<dyn Fn() + Send + Sync>,
}

/// What became of notifications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// Tries, probes not counted.
    pub tries: u64,
    /// Tries that were taken.
    pub taken: u64,
    /// Probes whose wrong signature was refused.
    pub probes_refused: u64,
    /// Probes that were believed: a fault of whoever is notified.
    pub probes_believed: u64,
    /// Notifications that were given up.
    pub given_up: u64,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    tries: AtomicU64,
    taken: AtomicU64,
    probes_refused: AtomicU64,
    probes_believed: AtomicU64,
    given_up: AtomicU64,
}

pub(crate) struct Notifier {
    client: reqwest::Client,
    counts: Arc<Counts>,
    tasks: Mutex<JoinSet<()>>,
    hurry: u32,
    is_unruly: bool,
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({:?})", self.counts)
    }
}

/// How one notification is delivered.
#[derive(Debug, Clone, Copy)]
struct Manner {
    delay: Duration,
    is_probed: bool,
    is_sent_again: bool,
    hurry: u32,
}

impl Notifier {
    pub(crate) fn new(hurry: u32, is_unruly: bool) -> Result<Self, Error> {
        let client = reqwest::Client::builder().timeout(TRY_SECONDS).build();
        let client = client.map_err(crate::account::broken)?;
        let (counts, tasks) = (Arc::default(), Mutex::default());
        Ok(Self { client, counts, tasks, hurry: hurry.max(1), is_unruly })
    }

    /// Sends a notification, in a task of its own.
    pub(crate) fn send(&self, notice: Notice) {
        let turn = self.counts.sent.fetch_add(1, Ordering::Relaxed);
        let delays = DELAYS_MS.iter().cycle();
        let index = usize::try_from(turn).unwrap_or_default() % DELAYS_MS.len();
        let delay_ms = delays.skip(index).copied().next().unwrap_or_default();
        let manner = Manner {
            delay: Duration::from_millis(if self.is_unruly { delay_ms } else { 0 }),
            is_probed: self.is_unruly && turn.is_multiple_of(PROBE_EVERY),
            is_sent_again: self.is_unruly && turn.is_multiple_of(AGAIN_EVERY),
            hurry: self.hurry,
        };
        let (client, counts) = (self.client.clone(), Arc::clone(&self.counts));
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { deliver(&client, &counts, &notice, manner).await });
    }

    /// What became of them so far.
    pub(crate) fn notified(&self) -> Notified {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { tries, taken, probes_refused, probes_believed, given_up, .. } = &*self.counts;
        Notified {
            tries: of(tries),
            taken: of(taken),
            probes_refused: of(probes_refused),
            probes_believed: of(probes_believed),
            given_up: of(given_up),
        }
    }

    pub(crate) fn stop(&self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

async fn deliver(client: &reqwest::Client, counts: &Counts, notice: &Notice, manner: Manner) {
    let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(notice.after + manner.delay).await;
    if let Some(probe) = notice.probe.as_ref().filter(|_| manner.is_probed) {
        match attempt(client, notice, probe).await {
            Some(true) => {
                tracing::error!(url = notice.url, "a probe with a wrong signature was believed");
                add(&counts.probes_believed);
            }
            Some(false) => {
                add(&counts.probes_refused);
            }
            None => {}
        }
    }
    let mut failed = 0;
    loop {
        add(&counts.tries);
        if attempt(client, notice, &notice.write).await == Some(true) {
            break;
        }
        failed += 1;
        let Some(gap) = (notice.gap)(failed) else {
            add(&counts.given_up);
            tracing::warn!(url = notice.url, "a notification was given up");
            return;
        };
        tokio::time::sleep(gap / manner.hurry).await;
    }
    add(&counts.taken);
    (notice.taken)();
    if manner.is_sent_again {
        add(&counts.tries);
        if attempt(client, notice, &notice.write).await == Some(true) {
            add(&counts.taken);
        }
    }
}

/// One try: whether it was taken; `None` without an answer.
async fn attempt(client: &reqwest::Client, notice: &Notice, write: &Writer) -> Option<bool> {
    let (headers, body) = match write() {
        Ok(letter) => letter,
        Err(failed) => {
            tracing::error!(%failed, "a notification could not be written");
            return None;
        }
    };
    let answer = client.post(&notice.url).headers(headers).body(body).send().await.ok()?;
    let status = answer.status();
    let text = answer.text().await.ok()?;
    Some((notice.is_taken)(status, &text))
}
