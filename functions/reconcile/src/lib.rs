//! The schedule: finish what is due, and make Redis agree with DynamoDB again.

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::Error;
use serde_json::Value;
use shared::app::{App, new_epoch};
use shared::domain::time::Timestamp;
use shared::flows;
use shared::flows::reconcile::Report;

/// Runs once at the time of the system clock. The event says nothing but that a minute is over.
///
/// # Errors
/// Fails if what is due cannot be listed; the next minute tries again.
pub async fn handle(app: &App, _event: EventBridgeEvent<Value>) -> Result<Report, Error> {
    Box::pin(reconcile(app, Timestamp::now())).await
}

/// Sweeps and repairs every sale, and logs what there was to do.
async fn reconcile(app: &App, now: Timestamp) -> Result<Report, Error> {
    let report = flows::reconcile::reconcile(&app.ports, &new_epoch(now)?, now).await?;
    if !report.is_quiet() {
        tracing::info!(?report, "reconciled");
    }
    Ok(report)
}
