//! Whole sales a second: how many orders this machine can let in, make, be paid and count, with every
//! server that stands in for the cloud, and the crowd, on it.

use std::fmt;

use serde::Serialize;

use super::selling::{self, Failure, Sold, TICKETS, hall, publish};
use local::up::{self, Engine};

/// Halls are larger than what is sold, so that nobody searches for the last seats.
const SPARE: u64 = 2;
/// The most seats of one hall.
const HALL_SEATS: u64 = 100_000;
/// Orders that are sold before the measurement, so that every part is warm.
const WARM: u64 = 200;

/// Options of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub orders: u64,
    /// Number of buyers who are on the site at once.
    pub at_once: usize,
    /// Number of sales that they are spread over, at least.
    pub sales: usize,
}

/// Result of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Number of buyers who were on the site at once.
    pub at_once: usize,
    /// Number of sales that they were spread over.
    pub sales: usize,
    /// The orders that were sold.
    pub sold: Sold,
}

/// Measures.
///
/// # Errors
/// The engine does not start, or does not do everything that it is asked.
pub async fn run(options: Options) -> Result<Report, Failure> {
    let engine = Engine::start(up::Options::ephemeral()).await?;
    let report = measure(&engine, options).await;
    engine.stop().await?;
    report
}

async fn measure(engine: &Engine, options: Options) -> Result<Report, Failure> {
    let Options { orders, at_once, sales } = options;
    let seats = (orders + WARM) * TICKETS * SPARE;
    let sales = reporting::count(sales).max(seats.div_ceil(HALL_SEATS)).max(1);
    let seats = u32::try_from(seats.div_ceil(sales).max(1000))?;
    let ids: Vec<String> = (0..sales).map(|index| format!("bench-{index}")).collect();
    for id in &ids {
        publish(engine, &hall(id, seats, 1)?).await?;
    }
    let warm = [format!("warm-{seats}")];
    publish(engine, &hall(&warm[0], 1000, 1)?).await?;
    selling::sell(engine, &warm, 1, WARM, at_once).await?;
    let sold = selling::sell(engine, &ids, 1, orders, at_once).await?;
    Ok(Report { at_once, sales: ids.len(), sold })
}

impl Report {
    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_once, sales, sold } = self;
        let Sold { orders, seconds, per_second, cpu_ms, cpu_ms_by_part } = sold;
        let of_sales = if *sales == 1 { "one sale".to_owned() } else { format!("{sales} sales") };
        writeln!(
            f,
            "{orders} orders of {of_sales} let in, made, paid and counted in {seconds:.1} s, \
             {at_once} buyers at once: {per_second:.0} whole sales a second"
        )?;
        write!(f, "CPU {cpu_ms:.2} ms an order")?;
        let mut between = ": ";
        for (part, ms) in cpu_ms_by_part {
            write!(f, "{between}{} {ms:.2}", part.name())?;
            between = ", ";
        }
        Ok(())
    }
}
