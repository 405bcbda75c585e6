//! The schedule: finish what is due, and make Redis agree with DynamoDB again.

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::Error;
use serde_json::Value;
use shared::app::{App, new_epoch};
use shared::domain::time::Timestamp;
use shared::flows;
use shared::flows::reconcile::Report;
use shared::metrics::{self, Function};

/// Runs once at the time of the system clock. The event says nothing but that a minute is over.
///
/// # Errors
/// Fails if what is due cannot be listed; the next minute tries again.
pub async fn handle(app: &App, _event: EventBridgeEvent<Value>) -> Result<Report, Error> {
    app.metrics.of(Function::Reconcile, Box::pin(reconcile(app, Timestamp::now()))).await
}

/// Sweeps and repairs every sale, counts what it found, and logs what there was to do.
async fn reconcile(app: &App, now: Timestamp) -> Result<Report, Error> {
    let run = flows::reconcile::run(&app.ports, &new_epoch(now)?, now).await?;
    metrics::reconciled(&run);
    let report = run.report;
    if !report.is_quiet() {
        tracing::info!(?report, "reconciled");
    }
    Ok(report)
}
