//! Somebody's server that is told of every fact while something breaks: it fails at times, is slow at times, and is not
//! there at times. In the end it has heard each fact that the stores have settled, under one name and nothing else, and
//! those of an order first heard in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use engine::domain::basics::number::OrderNumber;
use ops::audit::facts::SaleFacts;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Error;
use super::rig::Rig;

/// The webhook that it is.
const ID: &str = "hearer";
/// Requests of a hundred that it answers with a failure, and that it answers late.
const FAILED: u32 = 8;
const SLOW: u32 = 4;
/// How late: within what a webhook may take.
const LATE: Duration = Duration::from_millis(700);
/// Most that is said of what is wrong.
const MOST_SAID: usize = 5;

/// What is told, as far as it is looked at.
#[derive(Debug, Deserialize)]
struct Event {
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    sale: String,
    order: OrderNumber,
    fact: u32,
    kind: String,
}

#[derive(Debug)]
struct Known {
    random: StdRng,
    is_away: bool,
    /// It takes everything now.
    is_calm: bool,
    /// What was heard of each order of each sale: the kind of each fact.
    heard: BTreeMap<(String, OrderNumber), BTreeMap<u32, String>>,
    /// Times that something was heard, also once more.
    times: u64,
    violations: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Hearer {
    known: Arc<Mutex<Known>>,
    serving: JoinHandle<()>,
}

impl Drop for Hearer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes an event, or does not.
async fn hear(State(known): State<Arc<Mutex<Known>>>, body: Bytes) -> StatusCode {
    let is_slow = {
        let mut known = locked(&known);
        let event: Event = match serde_json::from_slice(&body) {
            Ok(event) => event,
            Err(error) => {
                known.violations.push(format!("what it was told cannot be read: {error}"));
                return StatusCode::BAD_REQUEST;
            }
        };
        let luck = known.random.random_range(0..100);
        if !known.is_calm && (known.is_away || luck < FAILED) {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        known.take(event.data);
        !known.is_calm && luck < FAILED + SLOW
    };
    if is_slow {
        tokio::time::sleep(LATE).await;
    }
    StatusCode::NO_CONTENT
}

impl Known {
    fn take(&mut self, Data { sale, order, fact, kind }: Data) {
        self.times += 1;
        let heard = self.heard.entry((sale, order)).or_default();
        let next = u32::try_from(heard.len()).unwrap_or(u32::MAX).saturating_add(1);
        let what = match heard.get(&fact) {
            Some(known) if *known == kind => None,
            Some(known) => Some(format!("fact {fact} of {order} was {known}, and then {kind}")),
            None if fact == next => None,
            None => Some(format!("fact {fact} of {order} was first heard before fact {next}")),
        };
        heard.insert(fact, kind);
        self.violations.extend(what);
    }
}

impl Hearer {
    /// Starts it, and makes it a webhook of the rig's engine.
    pub(super) async fn start(rig: &Rig, program: &Path, seed: u64) -> Result<Self, Error> {
        let listening = || Error::io("listening for events");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(listening())?;
        let url = format!("http://{}/", listener.local_addr().map_err(listening())?);
        let known = Known {
            random: StdRng::seed_from_u64(seed ^ 5),
            is_away: false,
            is_calm: false,
            heard: BTreeMap::new(),
            times: 0,
            violations: Vec::new(),
        };
        let known = Arc::new(Mutex::new(known));
        let routes = Router::new().route("/", post(hear)).with_state(Arc::clone(&known));
        let serving = tokio::spawn(async move {
            // It ends with its task.
            let _ended = axum::serve(listener, routes).await;
        });
        command(program, rig.dir(), &["webhooks", "set", ID, &url])
            .await?
            .map_err(Error::Refused)?;
        Ok(Self { known, serving })
    }

    /// Goes away, or comes back.
    pub(super) fn set_away(&self, is_away: bool) {
        locked(&self.known).is_away = is_away;
    }

    /// Takes everything from now on, and has what it did not take told again at once.
    pub(super) async fn calm(&self, rig: &Rig, program: &Path) -> Result<(), Error> {
        locked(&self.known).is_calm = true;
        // A shard that is being told at the moment is held: whoever asks again finds it.
        let _held = command(program, rig.dir(), &["webhooks", "retry", ID]).await?;
        Ok(())
    }

    /// How many facts it has heard.
    pub(super) fn heard(&self) -> usize {
        locked(&self.known).heard.values().map(BTreeMap::len).sum()
    }

    /// What was wrong with what it heard.
    pub(super) fn violations(&self) -> Vec<String> {
        let known = locked(&self.known);
        known.violations.iter().take(MOST_SAID).map(|what| format!("a webhook: {what}")).collect()
    }

    /// Settled facts of a sale that it has not heard, and what it has heard and nothing has settled.
    pub(super) fn differs(&self, facts: &SaleFacts) -> Vec<String> {
        let known = locked(&self.known);
        let sale = facts.sale.id().to_string();
        let mut found = Vec::new();
        for order in facts.orders.values() {
            let heard = known.heard.get(&(sale.clone(), order.number));
            let settled = usize::try_from(order.settled).unwrap_or(usize::MAX);
            let told: Vec<&str> =
                order.told.iter().take(settled).map(|told| told.kind.as_str()).collect();
            let heard: Vec<&str> =
                heard.into_iter().flatten().map(|(_, kind)| kind.as_str()).collect();
            if told != heard {
                found.push(format!(
                    "a webhook: of {} it heard {heard:?}, and {told:?} are settled",
                    order.number
                ));
            }
        }
        let orders: BTreeSet<&OrderNumber> = facts.orders.keys().collect();
        let strange =
            known.heard.keys().filter(|(of, order)| *of == sale && !orders.contains(order));
        found.extend(
            strange.map(|(_, order)| format!("a webhook: it heard of {order}, which is not there")),
        );
        found.truncate(MOST_SAID);
        found
    }
}

/// Runs the program on the engine's data directory; what it said if it failed.
async fn command(
    program: &Path,
    dir: &Path,
    arguments: &[&str],
) -> Result<Result<(), String>, Error> {
    let mut command = tokio::process::Command::new(program);
    command.arg("--data-dir").arg(dir).args(arguments);
    let output = command.stdin(Stdio::null()).output().await;
    let output = output.map_err(Error::io("running the program"))?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(output.status.success().then_some(()).ok_or_else(said))
}
