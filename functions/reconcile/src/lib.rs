//! Runs every minute: requests the draws that are due, makes the turns of rooms whose document nobody reads, finishes
//! overdue work, and makes Redis agree with DynamoDB again.

use std::time::Duration;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use engine::domain::basics::time::Timestamp;
use engine::flows;
use engine::flows::reconcile::Report;
use lambda_runtime::Error;
use serde_json::Value;
use shared::runtime::app::{App, new_epoch};
use shared::runtime::functions::Function;
use shared::runtime::metrics;
use tokio::time::{sleep, timeout};

/// Ends of the parts of a run, from its beginning: the last below the function's deadline, so that
/// a run ends by itself, with its metrics and its report. A run may be longer than the minute
/// between two runs, so that a single sale that takes long is compared to its end.
pub const PARTS_END: [Duration; 3] =
    [Duration::from_secs(90), Duration::from_secs(180), Duration::from_secs(280)];
/// End of the requests of draws, which come first: a draw has minutes.
pub const REQUESTS_END: Duration = Duration::from_secs(20);
/// End of the turns of rooms whose document nobody reads, counted from the end of the requests of draws.
pub const TURNS_END: Duration = Duration::from_secs(20);
/// End of the snapshots of tokens.
pub const TOKENS_END: Duration = Duration::from_secs(285);
/// End of the archiving of old sales, which comes last: a sale that there is no time for is tried again in an hour.
pub const ARCHIVING_ENDS: Duration = Duration::from_secs(290);

/// Makes the run of one minute, at the time of the system clock. The event only says that a minute is over.
///
/// # Errors
/// Fails if the overdue work cannot be listed; the next minute tries again.
pub async fn handle(app: &App, _event: EventBridgeEvent<Value>) -> Result<Report, Error> {
    app.metrics.of(Function::Reconcile, Box::pin(reconcile(app, Timestamp::now()))).await
}

/// Sweeps and repairs every sale, counts the work that it found, and logs it.
async fn reconcile(app: &App, now: Timestamp) -> Result<Report, Error> {
    let ends = PARTS_END.map(sleep);
    let (tokens_end, archiving_ends) = (sleep(TOKENS_END), sleep(ARCHIVING_ENDS));
    request_draws(app, now).await;
    make_turns(app).await;
    let run = flows::reconcile::run_until(&app.ports, &new_epoch(now)?, now, ends).await?;
    metrics::reconciled(&run);
    flows::tokens::keep(&app.ports, &run.bought, Timestamp::now, tokens_end).await;
    if let Some(days) = app.archive_after_days {
        let token = || new_epoch(now);
        let archived = flows::archive::by_age(
            &app.ports,
            &run.over,
            days,
            token,
            &Timestamp::now,
            archiving_ends,
        );
        // A failure is logged; the next try is in an hour.
        if let Err(error) = archived.await {
            tracing::warn!(%error, "no sale is archived by its age this time");
        }
    }
    let report = run.report;
    if !report.is_quiet() {
        tracing::info!(?report, "reconciled");
    }
    Ok(report)
}

/// Requests the draws that are due. The next minute repeats a request that fails.
async fn request_draws(app: &App, now: Timestamp) {
    let requests = flows::room::request::request_due(&app.ports, now);
    match timeout(REQUESTS_END, Box::pin(requests)).await {
        Ok(Ok(found)) => {
            metrics::rooms_seen(&found);
            if found.requested > 0 || found.failed > 0 {
                tracing::info!(?found, "draws are due");
            }
        }
        Ok(Err(error)) => tracing::warn!(%error, "no draw is requested this time"),
        Err(late) => tracing::warn!(%late, "not every draw is requested this time"),
    }
}

/// Makes the turns of rooms whose document nobody reads. The next minute repeats a turn that fails.
async fn make_turns(app: &App) {
    let turns = flows::room::awaited::make_turns(&app.ports, Timestamp::now());
    match timeout(TURNS_END, Box::pin(turns)).await {
        Ok(Ok(turns)) => {
            if turns.failed > 0 {
                tracing::warn!(?turns, "some rooms were not looked at");
            }
        }
        Ok(Err(error)) => tracing::warn!(%error, "no room makes a turn this time"),
        Err(late) => tracing::warn!(%late, "not every room makes a turn this time"),
    }
}
