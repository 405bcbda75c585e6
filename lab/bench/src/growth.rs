//! How the engine grows: with the seats of a sale, with the sales at once, with the legs of a
//! journey.
//!
//! Each point has an engine of its own, whose costs are taken from the kernel's account of processor
//! time: other work on the machine makes them slower, not larger.

use std::fs;

use serde::Serialize;

use super::selling::{self, Failure, TICKETS, hall, publish};
use loadtest::cpu::{Meter, Part};
use local::up::{self, Engine};

const AT_ONCE: usize = 32;
/// Orders that are sold at each point before it is measured, so that every part is warm.
const WARM: u64 = 50;

/// Factor by which a point whose rate is reported has more orders: the last orders wait up to two
/// seconds for the batch that they are counted in, and must be few.
const FOR_A_RATE: u64 = 5;

/// Options of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Sizes of a sale, in seats, ascending.
    pub seats: Vec<u32>,
    /// Numbers of sales at once.
    pub sales: Vec<u32>,
    pub legs: Vec<u16>,
    /// Orders at each point.
    pub orders: u64,
    /// Number of times that what is left is read at each size.
    pub reads: u32,
}

impl Options {
    /// From small to as large as a sale may be.
    #[must_use]
    pub fn whole() -> Self {
        Self {
            seats: vec![1_000, 10_000, 100_000, 1_000_000],
            sales: vec![1, 10, 100],
            legs: vec![1, 4, 16, 64],
            orders: 1000,
            reads: 50,
        }
    }

    /// Only to see that it runs.
    #[must_use]
    pub fn quick() -> Self {
        Self { seats: vec![400, 2_000], sales: vec![1, 3], legs: vec![1, 5], orders: 40, reads: 3 }
    }
}

/// One size of a sale.
#[derive(Debug, Clone, Serialize)]
pub struct Size {
    pub seats: u32,
    /// Its file, in bytes of JSON.
    pub file_bytes: usize,
    /// Time that it took to publish and to load, in milliseconds.
    pub publish_ms: f64,
    /// Processor time of that, all parts together, in milliseconds.
    pub publish_cpu_ms: f64,
    /// What Redis has in memory for it, in bytes.
    pub redis_bytes: u64,
    /// What the engine's process has in memory more than before, in bytes: the engine, its fakes
    /// and what the allocator keeps for later.
    pub process_bytes: u64,
    /// The answer to "what is left", in bytes.
    pub left_bytes: usize,
    /// Processor time of that answer, in milliseconds.
    pub left_cpu_ms: f64,
    /// Processor time of a whole sale, in milliseconds, by part.
    pub order_cpu_ms: Cost,
}

/// The number of sales at once.
#[derive(Debug, Clone, Serialize)]
pub struct Sales {
    /// The number of sales.
    pub sales: u32,
    /// Whole sales a second.
    pub per_second: f64,
    /// Processor time of each, in milliseconds.
    pub order_cpu_ms: Cost,
}

/// The number of legs.
#[derive(Debug, Clone, Serialize)]
pub struct Legs {
    /// Number of legs, all of which are bought.
    pub legs: u16,
    /// Processor time of a whole sale, in milliseconds.
    pub order_cpu_ms: Cost,
}

/// Processor time of a whole sale, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    pub all: f64,
    pub engine: f64,
    /// The fake of DynamoDB.
    pub dynamodb: f64,
    pub redis: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub seats: Vec<Size>,
    pub sales: Vec<Sales>,
    pub legs: Vec<Legs>,
}

/// Measures every point.
///
/// # Errors
/// An engine does not start, or does not do everything that it is asked.
pub async fn run(options: &Options) -> Result<Report, Failure> {
    let mut report = Report { seats: Vec::new(), sales: Vec::new(), legs: Vec::new() };
    for &seats in &options.seats {
        let engine = Engine::start(up::Options::ephemeral()).await?;
        let size = size(&engine, seats, options).await;
        engine.stop().await?;
        report.seats.push(size?);
    }
    for &sales in &options.sales {
        let engine = Engine::start(up::Options::ephemeral()).await?;
        let sold = sell(&engine, sales, 1, options.orders * FOR_A_RATE).await;
        engine.stop().await?;
        let (per_second, order_cpu_ms) = sold?;
        report.sales.push(Sales { sales, per_second, order_cpu_ms });
    }
    for &legs in &options.legs {
        let engine = Engine::start(up::Options::ephemeral()).await?;
        let sold = sell(&engine, 1, legs, options.orders).await;
        engine.stop().await?;
        report.legs.push(Legs { legs, order_cpu_ms: sold?.1 });
    }
    Ok(report)
}

async fn size(engine: &Engine, seats: u32, options: &Options) -> Result<Size, Failure> {
    warm(engine, 1).await?;
    let file = hall("grown", seats, 1)?;
    let (redis_before, process_before) = (redis_bytes(engine).await?, process_bytes()?);
    let meter = Meter::start(engine.endpoints()).await?;
    publish(engine, &file).await?;
    let published = meter.read().await?;
    let redis_bytes = redis_bytes(engine).await?.saturating_sub(redis_before);
    let process_bytes = process_bytes()?.saturating_sub(process_before);

    let client = reqwest::Client::new();
    let url = format!("{}/sales/grown/availability", engine.url());
    let read = async || client.get(&url).send().await?.error_for_status()?.bytes().await;
    let left_bytes = read().await?.len();
    let meter = Meter::start(engine.endpoints()).await?;
    for _ in 0..options.reads {
        read().await?;
    }
    // Here the crowd's work is the engine's too: it reads from the same threads.
    let left_cpu_ms = meter.read().await?.total() * 1000.0 / f64::from(options.reads.max(1));

    let orders = options.orders.min(u64::from(seats) / TICKETS / 2);
    let sold = selling::sell(engine, &["grown".to_owned()], 1, orders, AT_ONCE).await?;
    Ok(Size {
        seats,
        file_bytes: serde_json::to_vec(&file)?.len(),
        publish_ms: published.seconds * 1000.0,
        publish_cpu_ms: published.total() * 1000.0,
        redis_bytes,
        process_bytes,
        left_bytes,
        left_cpu_ms,
        order_cpu_ms: Cost::from_sold(&sold),
    })
}

/// Sells orders of some sales at once, each with seats enough for all its buyers.
async fn sell(engine: &Engine, sales: u32, legs: u16, orders: u64) -> Result<(f64, Cost), Failure> {
    warm(engine, legs).await?;
    let seats = orders.div_ceil(u64::from(sales.max(1))) * TICKETS * 2;
    let hall_seats = u32::try_from(seats.max(100))?;
    let ids: Vec<String> = (0..sales).map(|index| format!("grown-{index}")).collect();
    for id in &ids {
        publish(engine, &hall(id, hall_seats, legs)?).await?;
    }
    let sold = selling::sell(engine, &ids, legs, orders, AT_ONCE).await?;
    Ok((sold.per_second, Cost::from_sold(&sold)))
}

async fn warm(engine: &Engine, legs: u16) -> Result<(), Failure> {
    publish(engine, &hall("warm", 400, legs)?).await?;
    selling::sell(engine, &["warm".to_owned()], legs, WARM, AT_ONCE).await.map(drop)
}

/// Bytes of Redis' memory.
async fn redis_bytes(engine: &Engine) -> Result<u64, Failure> {
    let client = redis::Client::open(engine.endpoints().redis.as_str())?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let info: String = redis::cmd("INFO").arg("memory").query_async(&mut connection).await?;
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(used.ok_or("Redis does not say what it has in memory")?.trim().parse()?)
}

/// What this process has in memory, in bytes. Source: `VmRSS` in proc(5).
fn process_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|text| text.split_ascii_whitespace().next());
    Ok(kilobytes.ok_or("the kernel does not say what is in memory")?.parse::<u64>()? * 1024)
}

impl Cost {
    fn from_sold(sold: &selling::Sold) -> Self {
        let part = |part| sold.cpu_ms_by_part.get(&part).copied().unwrap_or_default();
        Self {
            all: sold.cpu_ms,
            engine: part(Part::Engine),
            dynamodb: part(Part::DynamoDb),
            redis: part(Part::Redis),
        }
    }

    fn cells(self) -> [String; 4] {
        [self.all, self.engine, self.dynamodb, self.redis].map(|ms| format!("{ms:.2}"))
    }
}

/// The columns of a [`Cost`].
const COST: [&str; 4] = ["ms CPU an order", "engine", "DynamoDB", "Redis"];

impl Report {
    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }

    /// The report as tables.
    #[must_use]
    pub fn tables(&self) -> String {
        let size = ["seats", "file kB", "publish ms", "its CPU ms", "Redis kB", "process kB"];
        let left = ["what is left kB", "its CPU ms"];
        let mut seats = reporting::table([&size[..], &left, &COST].concat());
        let kb = |bytes: u64| format!("{:.0}", bytes as f64 / 1000.0);
        for size in &self.seats {
            let mut row = vec![
                size.seats.to_string(),
                kb(reporting::count(size.file_bytes)),
                format!("{:.0}", size.publish_ms),
                format!("{:.0}", size.publish_cpu_ms),
                kb(size.redis_bytes),
                kb(size.process_bytes),
                kb(reporting::count(size.left_bytes)),
                format!("{:.2}", size.left_cpu_ms),
            ];
            row.extend(size.order_cpu_ms.cells());
            seats.add_row(row);
        }
        let mut sales =
            reporting::table([&["sales at once", "whole sales a second"][..], &COST].concat());
        for point in &self.sales {
            let mut row = vec![point.sales.to_string(), format!("{:.0}", point.per_second)];
            row.extend(point.order_cpu_ms.cells());
            sales.add_row(row);
        }
        let mut legs = reporting::table([&["legs"][..], &COST].concat());
        for point in &self.legs {
            let mut row = vec![point.legs.to_string()];
            row.extend(point.order_cpu_ms.cells());
            legs.add_row(row);
        }
        format!("{seats}\n\n{sales}\n\n{legs}")
    }
}
