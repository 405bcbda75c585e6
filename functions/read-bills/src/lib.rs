//! Runs every hour: reads the bills of the days that are over at each provider and not read yet, records what went back outside,
//! and keeps what differs. A bill that is not made yet is asked for by the next run.

use std::time::Duration;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use engine::domain::basics::time::{Clock, Timestamp};
use engine::flows;
use engine::flows::bills::BillReading;
use engine::ports::{Ports as _, Stored};
use lambda_runtime::Error;
use serde_json::Value;
use shared::bills::LiveBills;
use shared::runtime::app::{App, new_reader};
use shared::runtime::functions::Function;
use shared::runtime::metrics;
use tokio::time::timeout;

/// No window of lines and no page is begun later than this after the beginning of the run, in seconds: one request for a bill
/// may still take two minutes, and the next run goes on.
const LAST_SECONDS: i64 = 660;
/// The longest that a run takes. One that takes longer is cut off, as if the process had died there.
pub const MAX_RUN: Duration = Duration::from_secs(840);

/// Makes the run of one hour, at the time of the system clock. The event only says that an hour is over.
///
/// # Errors
/// Fails if the run takes too long; the next hour goes on where it stopped, as after a store or a provider that failed.
pub async fn handle(app: &App, _event: EventBridgeEvent<Value>) -> Result<BillReading, Error> {
    read(app, Timestamp::now).await
}

/// Reads the bills that are there at the time of `clock`.
///
/// # Errors
/// As [`handle`].
pub async fn read(app: &App, clock: impl Clock) -> Result<BillReading, Error> {
    let run = async {
        match timeout(MAX_RUN, Box::pin(read_once(app, clock))).await {
            Ok(reading) => Ok(reading?),
            Err(late) => Err(Error::from(late)),
        }
    };
    app.metrics.of(Function::ReadBills, Box::pin(run)).await
}

async fn read_once(app: &App, clock: impl Clock) -> Stored<BillReading> {
    let now = clock.time();
    let reader = new_reader(now)?;
    let bills = LiveBills { providers: app.ports.provider(), kept: app.ports.bills() };
    let stop_at = now.plus_seconds(LAST_SECONDS);
    let reading = flows::bills::read_bills(&app.ports, &bills, &reader, clock, stop_at).await;
    metrics::bills_read(&reading);
    if reading.lines > 0 || reading.differences > 0 {
        tracing::info!(?reading, "bills read");
    }
    Ok(reading)
}
