//! Runs every minute: reads the providers' lists of captures, and decides the captures that no callback reported.

use std::time::Duration;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use engine::domain::basics::time::Timestamp;
use engine::flows;
use engine::flows::captures::Reading;
use engine::ports::Stored;
use lambda_runtime::Error;
use serde_json::Value;
use shared::runtime::app::{App, new_reader};
use shared::runtime::functions::Function;
use shared::runtime::metrics;
use tokio::time::{Instant, sleep, timeout};

/// The time between the beginnings of two readings while an order waits for them. It bounds the order's wait, and the
/// number of rationed reads that the wait costs.
const EVERY: Duration = Duration::from_secs(15);
/// The pause after a reading that another reader, the limit on calls or a failure has prevented.
const PAUSE: Duration = Duration::from_secs(1);
/// The most pages of one list that a reading takes before it gives the lease back: two seconds of calls.
const MAX_PAGES: u32 = 40;
/// No reading begins later than this after the beginning of the run: the next minute's run is near.
const LAST_READING: Duration = Duration::from_secs(50);
/// The longest that a run takes. A reading that takes longer is cut off, as if the process had died there.
pub const MAX_RUN: Duration = Duration::from_secs(80);

/// Makes the run of one minute, at the time of the system clock. The event only says that a minute is over.
///
/// # Errors
/// Fails if the last reading did; the next minute goes on where it stopped.
pub async fn handle(app: &App, _event: EventBridgeEvent<Value>) -> Result<Reading, Error> {
    let run = async {
        match timeout(MAX_RUN, read_for_a_minute(app)).await {
            Ok(reading) => reading,
            Err(late) => Err(Error::from(late)),
        }
    };
    app.metrics.of(Function::ReadCaptures, Box::pin(run)).await
}

/// Reads every list once. A run makes several readings.
///
/// # Errors
/// Fails if a store or a provider does; the next one goes on where it stopped.
pub async fn read(app: &App) -> Result<Reading, Error> {
    Ok(app.metrics.of(Function::ReadCaptures, Box::pin(read_once(app))).await?)
}

async fn read_once(app: &App) -> Stored<Reading> {
    let reader = new_reader(Timestamp::now())?;
    let clock = Timestamp::now;
    let reading = flows::captures::read_captures(&app.ports, &reader, clock, MAX_PAGES).await?;
    metrics::captures_read(&reading);
    Ok(reading)
}

/// Reads again and again while there is more to read, or an order waits for it.
async fn read_for_a_minute(app: &App) -> Result<Reading, Error> {
    let begun = Instant::now();
    let mut all = Reading::default();
    loop {
        let reading_begun = Instant::now();
        let read = read_once(app).await;
        let wait = match &read {
            Ok(reading) if reading.unfinished > 0 && reading.pages > 0 => Duration::ZERO,
            Ok(reading) if reading.unfinished > 0 => PAUSE,
            Ok(reading) if reading.is_awaited => EVERY.saturating_sub(reading_begun.elapsed()),
            Ok(_) => return Ok(all.and(read?)),
            Err(error) => {
                tracing::warn!(%error, "captures are read again in a moment");
                PAUSE
            }
        };
        let is_last = begun.elapsed() + wait > LAST_READING;
        match read {
            Ok(reading) => all = all.and(reading),
            Err(error) if is_last => return Err(error.into()),
            Err(_) => {}
        }
        if is_last {
            tracing::info!(reading = ?all, "captures read");
            return Ok(all);
        }
        sleep(wait).await;
    }
}
