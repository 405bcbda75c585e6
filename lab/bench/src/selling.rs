//! Whole sales, one after the other in each of several workers: an admission, an order for two seats,
//! its payment, and the counting of it.
//!
//! Everybody takes the best that is left and pays, there are seats for all, and the next buyer comes
//! when one leaves: what is measured is the engine, not the crowd.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::SaleFile;
use futures_util::stream::{self, StreamExt as _};
use http::HeaderName;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use loadtest::client::{Call, Client, Reply};
use loadtest::cpu::{GENERATOR_THREADS, Meter, Part};
use loadtest::credentials::Credentials;
use loadtest::stopwatch::Endpoint;
use local::payment::{SIGNATURE_HEADER, callback_path, captured};
use local::up::Engine;

/// Reason why it could not be measured, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Number of tickets of an order.
pub const TICKETS: u64 = 2;
/// The only tier of a hall.
pub const TIER: &str = "all";
/// What a seat of a hall costs, in minor units.
pub const PRICE_MINOR: MinorUnits = MinorUnits(5000);
/// Seats of one row of a hall.
const ROW_SEATS: u32 = 50;
/// Time that the last orders may take to be counted.
const SETTLE: Duration = Duration::from_secs(60);

/// A sale of `seats` seats in rows of fifty, on `legs` legs.
///
/// # Errors
/// There is no such sale.
pub fn hall(id: &str, seats: u32, legs: u16) -> Result<SaleFile, Failure> {
    let rows = seats.div_ceil(ROW_SEATS);
    let mut sale = json!({
        "sale": id,
        "title": format!("{seats} seats, {legs} legs"),
        "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00.000Z",
        "closes_at": "2099-12-31T23:59:59.000Z",
        "limit_per_buyer": 4,
        "pay_window_seconds": 900,
        "gate": {
            "shards": 4, "budget_percent": 1000, "rate_per_second": 1_000_000,
            "user_lock_ms": 1, "token_seconds": 300,
        },
        "tiers": [{
            "tier": TIER, "name": "All", "price_minor": PRICE_MINOR,
            "sections": [{
                "section": "s",
                "rows": [{
                    "row": "1", "to": rows.to_string(),
                    "seats": { "first": 1, "count": ROW_SEATS.min(seats) },
                }],
            }],
        }],
    });
    if legs > 1 {
        let stop = |stop| json!({ "stop": format!("s{stop}"), "name": format!("Stop {stop}") });
        let stops: Vec<Value> = (0..=legs).map(stop).collect();
        sale["stops"] = json!(stops);
    }
    Ok(serde_json::from_value(sale)?)
}

/// Puts a sale on sale, through the API.
///
/// # Errors
/// The engine refuses.
pub async fn publish(engine: &Engine, file: &SaleFile) -> Result<(), Failure> {
    let url = format!("{}/sales/{}", engine.url(), file.sale);
    let put = reqwest::Client::new().put(url).bearer_auth(engine.operator_token()?).json(file);
    let reply = put.send().await?;
    if reply.status().is_success() {
        return Ok(());
    }
    Err(format!("sale {} was refused: {}", file.sale, reply.text().await?).into())
}

/// What selling came to.
#[derive(Debug, Clone, Serialize)]
pub struct Sold {
    /// Orders that were made, paid and counted.
    pub orders: u64,
    /// Time from the first request to the last count, in seconds.
    pub seconds: f64,
    pub per_second: f64,
    /// Processor time of each order, all parts together, in milliseconds.
    pub cpu_ms: f64,
    /// The same by part.
    pub cpu_ms_by_part: BTreeMap<Part, f64>,
}

/// Sells `orders` orders of some halls, in turns, on `legs` legs each.
///
/// # Errors
/// The engine does not do everything that it is asked.
pub async fn sell(
    engine: &Engine,
    sales: &[String],
    legs: u16,
    orders: u64,
    at_once: usize,
) -> Result<Sold, Failure> {
    let crowd = Crowd {
        sales: sales.to_vec(),
        legs,
        orders,
        at_once: at_once.max(1),
        url: engine.url().to_owned(),
    };
    let credentials = Credentials::new(engine.secrets());
    let meter = Meter::start(engine.endpoints()).await?;
    let started = Instant::now();
    let (done, outcome) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(GENERATOR_THREADS.to_owned()).spawn(move || {
        let sold = LocalSet::new().block_on(&runtime, crowd.go(credentials));
        let measured = runtime.block_on(meter_of_crowd(&meter));
        // Whoever asked may have lost interest meanwhile.
        let _unheard = done.send(sold.and(measured).map(|before| (meter, before)));
    })?;
    let (meter, generator_seconds) = outcome.await??;
    while engine.sync_backlog().await? > 0 {
        if started.elapsed() > SETTLE + Duration::from_secs(orders / 50) {
            return Err("the orders are not counted".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    let shares = meter.read().await?;
    let mut by_part = shares.cpu_seconds;
    // The crowd's thread has ended: its time is no longer known by its name, but the process's.
    let known = by_part.insert(Part::Generator, generator_seconds).unwrap_or_default();
    by_part.entry(Part::Engine).and_modify(|engine| *engine -= generator_seconds - known);
    by_part.values_mut().for_each(|value| *value *= 1000.0 / orders.max(1) as f64);
    Ok(Sold {
        orders,
        seconds,
        per_second: orders as f64 / seconds,
        cpu_ms: by_part.values().sum(),
        cpu_ms_by_part: by_part,
    })
}

/// The processor time of the crowd, in seconds, while its thread still lives.
async fn meter_of_crowd(meter: &Meter) -> Result<f64, Failure> {
    let shares = meter.read().await?;
    Ok(shares.cpu_seconds.get(&Part::Generator).copied().unwrap_or_default())
}

/// The buyers of a run.
struct Crowd {
    url: String,
    sales: Vec<String>,
    legs: u16,
    orders: u64,
    at_once: usize,
}

#[derive(Deserialize)]
struct Admitted {
    token: String,
}

#[derive(Deserialize)]
struct Made {
    order: OrderNumber,
    amount_minor: MinorUnits,
    currency: Currency,
}

impl Crowd {
    async fn go(self, credentials: Credentials) -> Result<(), Failure> {
        let client = Client::new(&self.url, self.at_once)?;
        let next = Rc::new(Cell::new(0));
        let places = stream::iter(0..self.at_once).map(|_| async {
            loop {
                let index = next.get();
                if index >= self.orders {
                    return Ok::<(), Failure>(());
                }
                next.set(index + 1);
                self.buy(&client, &credentials, index).await?;
            }
        });
        let outcomes: Vec<Result<(), Failure>> =
            places.buffer_unordered(self.at_once).collect().await;
        outcomes.into_iter().collect()
    }

    async fn buy(
        &self,
        client: &Client,
        credentials: &Credentials,
        index: u64,
    ) -> Result<(), Failure> {
        let sale = &self.sales[usize::try_from(index)? % self.sales.len()];
        let bearer = credentials.buyer(&format!("bench-{index}"), Timestamp::now())?;

        let path = format!("/sales/{sale}/admissions");
        let body = json!({ "tickets": TICKETS }).to_string();
        let call = Call::post(Endpoint::Admission, &path, body)?.by(&bearer);
        let Admitted { token } = must(client.send(&call).await)?;

        let choice = json!({ "count": TICKETS, "together": "preferred" });
        let mut line = json!({ "tier": TIER, "best": choice });
        if self.legs > 1 {
            line["from"] = json!("s0");
            line["to"] = json!(format!("s{}", self.legs));
        }
        let path = format!("/sales/{sale}/orders");
        let body = json!({ "admission": token, "lines": [line] }).to_string();
        let call = Call::post(Endpoint::Reserve, &path, body)?.by(&bearer);
        let Made { order, amount_minor, currency } = must(client.send(&call).await)?;

        let payment = format!("pi_{order}");
        let amount = Money { amount_minor, currency };
        let body = captured(&payment, order, amount, Timestamp::now()).to_string();
        let signature = credentials.signature(body.as_bytes(), Timestamp::now())?;
        let header: HeaderName = SIGNATURE_HEADER.parse()?;
        let call = Call::post(Endpoint::PayCallback, &callback_path(), body)?;
        let call = Call { credential: Some((header, signature)), ..call };
        must::<Value>(client.send(&call).await).map(drop)
    }
}

/// What an answer says; there are no refusals here.
fn must<T: serde::de::DeserializeOwned>(reply: Reply) -> Result<T, Failure> {
    reply.read().ok_or_else(|| reply.to_string().into())
}
