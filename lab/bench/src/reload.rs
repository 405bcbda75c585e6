//! How long nobody can buy after a total loss of Redis: `onsale bench reload`.
//!
//! Halls of several sizes are sold in part. While buyers go on buying, Redis is emptied, and the
//! clock runs until an order is acknowledged whose request was sent after that. Nothing is told to
//! repair anything: the buyers who are refused have the sale loaded. Afterwards both stores are
//! audited.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::domain::basics::ids::{PaymentId, ProviderId, SaleId, TierId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, PaymentKey};
use engine::flows::pay::pay;
use engine::flows::reserve::{Reservation, reserve};
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use serde_json::json;
use shared::redis::keys::EPOCH_FIELD;
use shared::runtime::app::App;
use tokio::task::LocalSet;

use super::selling::{Failure, PRICE_MINOR, TIER, hall, publish};
use loadtest::client::{Call, Client, Reply};
use loadtest::cpu::{GENERATOR_THREADS, Meter};
use loadtest::credentials::Credentials;
use loadtest::stopwatch::Endpoint;
use local::payment::PROVIDER;
use local::up::{self, Engine};
use ops::audit::{self, Target};

/// The sale of every engine.
const SALE: &str = "reload";
/// Number of orders that are made at a time before the loss.
const FILLED_AT_ONCE: usize = 16;
/// Buyers at once while Redis is lost.
const BUYERS: u8 = 8;
/// Time that a refused buyer waits: in an on-sale somebody else is there at once.
const AGAIN: Duration = Duration::from_millis(20);
/// Number of orders before the loss, and after it before the buyers leave.
const STEADY: usize = 20;
/// Time that any step may take.
const DEADLINE: Duration = Duration::from_secs(120);
/// Pause between two requests whether Redis has the sale again.
const LOOK: Duration = Duration::from_millis(2);
/// The runs of reconcile after which the audit is clean at the latest.
const REPAIRS: usize = 3;

/// Options of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Sizes of the hall, in seats.
    pub seats: Vec<u32>,
    /// Share of it that is sold or held before the loss, in per cent.
    pub fill_percent: u32,
    /// Number of times that Redis is lost at each size.
    pub rounds: usize,
}

impl Options {
    /// From small to three and a half stadiums.
    #[must_use]
    pub fn whole() -> Self {
        Self { seats: vec![1_000, 20_000, 60_000, 120_000, 200_000], fill_percent: 50, rounds: 3 }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Size {
    pub seats: u32,
    /// Seats that were sold or held when Redis was lost.
    pub taken: u64,
    /// Orders that owned them: three in four paid, the others pending.
    pub orders: u64,
    pub losses: Vec<Loss>,
}

/// One loss of Redis.
#[derive(Debug, Clone, Serialize)]
pub struct Loss {
    /// From the loss to the first answer that acknowledges an order whose request was sent after it,
    /// in milliseconds.
    pub selling_ms: f64,
    /// From the loss until Redis had the sale again, in milliseconds.
    pub loaded_ms: f64,
    /// Processor time until then and until the next buyers had their orders, all parts together, in
    /// milliseconds: on a machine that does other things too, this is what stays the same.
    pub cpu_ms: f64,
    /// The longest that one command or script kept Redis meanwhile, in milliseconds.
    pub redis_busy_ms: u64,
    /// The refusals that buyers got meanwhile, by problem.
    pub refused: BTreeMap<String, u64>,
    /// Repairs that reconcile made afterwards, before the audit was clean.
    pub repaired: u32,
}

/// A straight line through the measurements.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fit {
    /// Milliseconds whatever the size.
    pub base_ms: f64,
    /// Milliseconds for each 10,000 seats of the hall.
    pub ms_per_10000_seats: f64,
    /// Share of the differences that the line explains, 1 for all.
    pub r_squared: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Share of each hall that was taken, in per cent.
    pub fill_percent: u32,
    pub sizes: Vec<Size>,
    /// The line through every loss; `None` with one size.
    pub fit: Option<Fit>,
}

/// Measures every size, with an engine of its own each.
///
/// # Errors
/// An engine does not start, does not sell again, or its audit is not clean.
pub async fn run(options: &Options) -> Result<Report, Failure> {
    let mut sizes = Vec::new();
    for &seats in &options.seats {
        let engine = Engine::start(up::Options::ephemeral()).await?;
        let size = measure(&engine, seats, options).await;
        engine.stop().await?;
        sizes.push(size?);
    }
    let points = sizes.iter().flat_map(|size: &Size| {
        size.losses.iter().map(|loss| (f64::from(size.seats), loss.selling_ms))
    });
    let fit = Fit::through(&points.collect::<Vec<_>>());
    Ok(Report { fill_percent: options.fill_percent, sizes, fit })
}

async fn measure(engine: &Engine, seats: u32, options: &Options) -> Result<Size, Failure> {
    publish(engine, &hall(SALE, seats, 1)?).await?;
    let requested = u64::from(seats) * u64::from(options.fill_percent) / 100;
    let orders = fill(engine.app(), requested).await?;
    while engine.sync_backlog().await? > 0 {
        tokio::time::sleep(LOOK).await;
    }
    let mut size = Size { seats, taken: requested, orders, losses: Vec::new() };
    for round in 0..options.rounds {
        size.losses.push(lose(engine, round).await?);
    }
    Ok(size)
}

/// Sells `seats` seats through the flows, to one and to two people in turns; three orders in four
/// are paid. Returns how many orders that took.
async fn fill(app: &App, seats: u64) -> Result<u64, Failure> {
    // One and two in turns: three seats in two orders.
    let orders = seats * 2 / 3;
    let sale = SaleId::new(SALE)?;
    let published = app.ports.catalogue().sale(&sale, Freshness::Cached).await?;
    let published = &published.ok_or("the sale is not there")?;
    let made = stream::iter(0..orders).map(|index| async move {
        let now = Timestamp::now();
        let user = UserId::new(format!("early-{index}"))?;
        let count = if index % 2 == 0 { 1 } else { 2 };
        let choice = Choice::Best { count, together: Together::Preferred };
        let line = Line { tier: TierId::new(TIER)?, legs: published.sale.whole(), choice };
        let requested = RequestedLine { line, price_minor: PRICE_MINOR, attendees: Vec::new() };
        let number = app.mint.mint(now, &user);
        let published = published.clone();
        let reservation =
            Reservation { published, number, user, lines: vec![requested], exchange: None };
        let order = reserve(&app.ports, &reservation, now).await?.order;
        if index % 4 != 0 {
            let payment = PaymentId::new(format!("pi_{number}"))?;
            let key = PaymentKey { provider: ProviderId::new(PROVIDER)?, payment };
            pay(
                &app.ports,
                &Capture { key, order: number, amount: order.total, attempt: None },
                now,
            )
            .await?;
        }
        Ok::<(), Failure>(())
    });
    made.buffer_unordered(FILLED_AT_ONCE).try_collect::<()>().await?;
    Ok(orders)
}

/// The answers that the buyers got, for the measurement.
#[derive(Debug, Default)]
struct Watch {
    leave: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Times at which the request of each acknowledged order was sent and answered.
    acknowledged: Vec<(Instant, Instant)>,
    refused: BTreeMap<String, u64>,
    /// What should not have happened.
    failed: Option<String>,
}

impl Watch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `count` orders are acknowledged whose requests were sent after `since`.
    async fn until(&self, since: Instant, count: usize) -> Result<(), Failure> {
        let started = Instant::now();
        loop {
            {
                let seen = self.seen();
                if let Some(failed) = &seen.failed {
                    return Err(failed.clone().into());
                }
                if seen.acknowledged.iter().filter(|(sent, _)| *sent >= since).count() >= count {
                    return Ok(());
                }
                if started.elapsed() > DEADLINE {
                    return Err(format!("nobody can buy: {:?}", seen.refused).into());
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Empties Redis while buyers buy.
async fn lose(engine: &Engine, round: usize) -> Result<Loss, Failure> {
    let mut redis = connect(engine).await?;
    let watch = Arc::new(Watch::default());
    let crowd = Crowd { url: engine.url().to_owned(), round, watch: Arc::clone(&watch) };
    let credentials = Credentials::new(engine.secrets());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let buyers =
        std::thread::Builder::new().name(GENERATOR_THREADS.to_owned()).spawn(move || {
            LocalSet::new().block_on(&runtime, crowd.go(credentials));
        })?;
    let lost = async {
        watch.until(Instant::now(), STEADY).await?;
        set_latency_monitor(&mut redis).await?;
        let () = redis::cmd("FLUSHALL").query_async(&mut redis).await?;
        let lost_at = Instant::now();
        let meter = Meter::start(engine.endpoints()).await?;
        let () = redis::cmd("LATENCY").arg("RESET").query_async(&mut redis).await?;
        let told_before = watch.seen().refused.clone();
        let (loaded, sold) =
            tokio::join!(until_loaded(&mut redis, lost_at), watch.until(lost_at, STEADY));
        sold?;
        let loaded_ms = loaded?;
        let cpu_ms = meter.read().await?.total() * 1000.0;
        let seen = watch.seen();
        let after = seen.acknowledged.iter().filter(|(sent, _)| *sent >= lost_at);
        let first = after.map(|(_, answered)| *answered).min().ok_or("nobody bought")?;
        let mut refused = seen.refused.clone();
        for (kind, count) in told_before {
            refused.entry(kind).and_modify(|now| *now -= count);
        }
        refused.retain(|_, count| *count > 0);
        let selling_ms = first.duration_since(lost_at).as_secs_f64() * 1000.0;
        let (redis_busy_ms, repaired) = (0, 0);
        let loss = Loss { selling_ms, loaded_ms, cpu_ms, redis_busy_ms, refused, repaired };
        Ok::<Loss, Failure>(loss)
    }
    .await;
    watch.leave.store(true, Ordering::SeqCst);
    // Not in this thread: the engine may live on it.
    let left = tokio::task::spawn_blocking(move || buyers.join()).await?;
    let loss = lost?;
    left.map_err(|_panicked| "the buyers have panicked")?;
    let redis_busy_ms = longest_command(&mut redis).await?;
    let repaired = settle(engine).await?;
    Ok(Loss { redis_busy_ms, repaired, ..loss })
}

/// Waits until Redis has an epoch of the sale, and says how long that took.
async fn until_loaded(redis: &mut MultiplexedConnection, since: Instant) -> Result<f64, Failure> {
    while since.elapsed() < DEADLINE {
        let mut ask = redis::cmd("HEXISTS");
        let is_loaded: bool =
            ask.arg(format!("{{{SALE}}}:sale")).arg(EPOCH_FIELD).query_async(redis).await?;
        if is_loaded {
            return Ok(since.elapsed().as_secs_f64() * 1000.0);
        }
        tokio::time::sleep(LOOK).await;
    }
    Err("Redis does not get the sale again".into())
}

async fn connect(engine: &Engine) -> Result<MultiplexedConnection, Failure> {
    let client = redis::Client::open(engine.endpoints().redis.as_str())?;
    Ok(client.get_multiplexed_async_connection().await?)
}

async fn set_latency_monitor(redis: &mut MultiplexedConnection) -> Result<(), Failure> {
    let mut set = redis::cmd("CONFIG");
    Ok(set.arg("SET").arg("latency-monitor-threshold").arg(1).query_async(redis).await?)
}

/// The longest that a command kept the server since the last reset, in milliseconds.
/// Source: <https://valkey.io/commands/latency-latest/>
async fn longest_command(redis: &mut MultiplexedConnection) -> Result<u64, Failure> {
    type Event = (String, u64, u64, u64);
    // Later versions add columns behind these.
    let events: Vec<Vec<redis::Value>> =
        redis::cmd("LATENCY").arg("LATEST").query_async(redis).await?;
    let mut longest = 0;
    for mut event in events {
        event.truncate(4);
        let (name, _, _, most): Event = redis::from_redis_value(redis::Value::Array(event))?;
        if name.contains("command") {
            longest = longest.max(most);
        }
    }
    Ok(longest)
}

/// Runs reconcile until the audit is clean; how many repairs that took.
async fn settle(engine: &Engine) -> Result<u32, Failure> {
    let mut repaired = 0;
    let mut found = String::new();
    for _ in 0..REPAIRS {
        let report = engine.reconcile().await?;
        repaired += report.repairs();
        let options = audit::Options::at(Timestamp::now());
        let stores = engine.endpoints();
        let target = Target::at(&stores.redis, &stores.dynamodb, &stores.table_prefix);
        let report = audit::run(&target, &options).await?;
        if report.clean {
            return Ok(repaired);
        }
        found = report.to_string();
    }
    Err(format!("the audit is not clean: {found}").into())
}

/// The buyers of a run.
struct Crowd {
    url: String,
    round: usize,
    watch: Arc<Watch>,
}

#[derive(Deserialize)]
struct Admitted {
    token: String,
}

impl Crowd {
    async fn go(self, credentials: Credentials) {
        let client = match Client::new(&self.url, usize::from(BUYERS)) {
            Ok(client) => client,
            Err(error) => {
                self.watch.seen().failed = Some(error.to_string());
                return;
            }
        };
        let buyers = (0..BUYERS).map(|place| self.buy(&client, &credentials, place));
        let outcome = try_join_all(buyers).await;
        if let Err(failed) = outcome {
            self.watch.seen().failed = Some(failed.to_string());
        }
    }

    /// One buyer after another, until all shall leave.
    async fn buy(
        &self,
        client: &Client,
        credentials: &Credentials,
        place: u8,
    ) -> Result<(), Failure> {
        let mut buyer = 0;
        while !self.watch.leave.load(Ordering::SeqCst) {
            buyer += 1;
            let name = format!("late-{}-{place}-{buyer}", self.round);
            let bearer = credentials.buyer(&name, Timestamp::now())?;
            let path = format!("/sales/{SALE}/admissions");
            let call = Call::post(Endpoint::Admission, &path, r#"{"tickets":2}"#)?.by(&bearer);
            let Some(Admitted { token }) = self.hear(client.send(&call).await)? else {
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            let choice = json!({ "count": 2, "together": "preferred" });
            let body = json!({ "admission": token, "lines": [{ "tier": TIER, "best": choice }] });
            let path = format!("/sales/{SALE}/orders");
            let call = Call::post(Endpoint::Reserve, &path, body.to_string())?.by(&bearer);
            // The same token until it has its order.
            while !self.watch.leave.load(Ordering::SeqCst) {
                let sent = Instant::now();
                let reply = self.hear::<serde_json::Value>(client.send(&call).await)?;
                if reply.is_some() {
                    self.watch.seen().acknowledged.push((sent, Instant::now()));
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
        Ok(())
    }

    /// What an answer says, if it is no refusal.
    fn hear<T: serde::de::DeserializeOwned>(&self, reply: Reply) -> Result<Option<T>, Failure> {
        match &reply {
            Reply::Ok(_) => Ok(Some(reply.read().ok_or("an answer that cannot be read")?)),
            Reply::Problem(refused) => {
                *self.watch.seen().refused.entry(refused.kind.to_string()).or_default() += 1;
                Ok(None)
            }
            Reply::Lost(why) => Err(why.clone().into()),
        }
    }
}

impl Fit {
    /// The line of the least squares; `None` if all points have one size.
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let (mean_x, mean_y) = (
            points.iter().map(|(x, _)| x).sum::<f64>() / count,
            points.iter().map(|(_, y)| y).sum::<f64>() / count,
        );
        let sum = |term: &dyn Fn(f64, f64) -> f64| {
            points.iter().map(|(x, y)| term(x - mean_x, y - mean_y)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if points.is_empty() || xx == 0.0 {
            return None;
        }
        let slope = xy / xx;
        Some(Self {
            base_ms: mean_y - slope * mean_x,
            ms_per_10000_seats: slope * 10_000.0,
            r_squared: if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) },
        })
    }
}

impl Report {
    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }

    /// The report as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = reporting::table(vec![
            "seats",
            "taken",
            "orders",
            "selling again, ms (median)",
            "best",
            "worst",
            "loaded, ms (median)",
            "CPU ms (median)",
            "Redis busy at most, ms",
            "refused",
            "repaired after",
        ]);
        for size in &self.sizes {
            let of = |value: fn(&Loss) -> f64| {
                let mut values: Vec<f64> = size.losses.iter().map(value).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let (selling, loaded) = (of(|loss| loss.selling_ms), of(|loss| loss.loaded_ms));
            let cpu = of(|loss| loss.cpu_ms);
            let median = |values: &[f64]| values.get(values.len() / 2).copied().unwrap_or_default();
            let busy = size.losses.iter().map(|loss| loss.redis_busy_ms).max().unwrap_or_default();
            let refused: u64 = size.losses.iter().flat_map(|loss| loss.refused.values()).sum();
            let repaired: u32 = size.losses.iter().map(|loss| loss.repaired).sum();
            table.add_row(vec![
                reporting::grouped(u64::from(size.seats)),
                reporting::grouped(size.taken),
                reporting::grouped(size.orders),
                format!("{:.0}", median(&selling)),
                format!("{:.0}", selling.first().copied().unwrap_or_default()),
                format!("{:.0}", selling.last().copied().unwrap_or_default()),
                format!("{:.0}", median(&loaded)),
                format!("{:.0}", median(&cpu)),
                busy.to_string(),
                reporting::grouped(refused),
                repaired.to_string(),
            ]);
        }
        let fit = self.fit.map_or_else(String::new, |fit| {
            let Fit { base_ms, ms_per_10000_seats, r_squared } = fit;
            format!(
                "\n\n{base_ms:.0} ms, and {ms_per_10000_seats:.0} ms for each 10,000 seats \
                 ({}% of them taken); R² {r_squared:.3}",
                self.fill_percent
            )
        });
        format!("{table}{fit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_points_that_are_on_one() {
        let fit = Fit::through(&[(1_000.0, 110.0), (20_000.0, 300.0), (60_000.0, 700.0)]).unwrap();
        assert!((fit.base_ms - 100.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.ms_per_10000_seats - 100.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.r_squared - 1.0).abs() < 1e-9, "{fit:?}");
        let bent = Fit::through(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]).unwrap();
        assert!(bent.r_squared < 0.1, "{bent:?}");
        assert!(Fit::through(&[(1.0, 2.0), (1.0, 3.0)]).is_none() && Fit::through(&[]).is_none());
    }
}
