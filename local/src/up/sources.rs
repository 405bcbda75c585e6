//! The event sources of a running engine: the pollers of the queue functions, and the schedule of
//! reconcile.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_lambda_events::sqs::SqsEvent;
use chrono::Utc;
use engine::flows::reconcile::Report;
use shared::runtime::app::App;

use crate::event_sources::{Failure, Mapping, Source, poll, schedule};
use crate::queues::{QueuePair, Queues};

/// Timeout of a queue function, as in `template.yaml`.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of reconcile, as in `template.yaml`.
pub(super) const RECONCILE_TIMEOUT: Duration = Duration::from_secs(300);

/// Starts the event sources, with the figures of `template.yaml`.
pub(super) fn start_sources(
    app: &Arc<App>,
    sqs: &aws_sdk_sqs::Client,
    queues: &Queues,
    reconcile_seconds: u32,
) -> Vec<Source> {
    let mapping = |queue: &QueuePair, batch_most, window_seconds, concurrency| Mapping {
        name: queue.name.clone(),
        url: queue.url.clone(),
        arn: queue.arn.clone(),
        batch_most,
        window: Duration::from_secs(window_seconds),
        concurrency,
        timeout: QUEUE_TIMEOUT,
    };
    let expiry = {
        let app = Arc::clone(app);
        move |event: SqsEvent| {
            let app = Arc::clone(&app);
            async move { expire_orders::handle(&app, event).await }
        }
    };
    let sync = {
        let app = Arc::clone(app);
        move |event: SqsEvent| {
            let app = Arc::clone(&app);
            async move { sync_db::handle(&app, event).await }
        }
    };
    let load = {
        let app = Arc::clone(app);
        move |event: SqsEvent| {
            let app = Arc::clone(&app);
            async move { load_sale::handle(&app, event).await }
        }
    };
    let refund = {
        let app = Arc::clone(app);
        move |event: SqsEvent| {
            let app = Arc::clone(&app);
            async move { refund::handle(&app, event).await }
        }
    };
    let period = Duration::from_secs(u64::from(reconcile_seconds.max(1)));
    let reconciled = {
        let app = Arc::clone(app);
        move || {
            let app = Arc::clone(&app);
            async move { report(Ok(reconcile(app).await)) }
        }
    };
    vec![
        poll(sqs.clone(), mapping(&queues.expiry, 10, 0, 20), expiry),
        poll(sqs.clone(), mapping(&queues.sync, 100, 2, 1), sync),
        poll(sqs.clone(), mapping(&queues.load, 10, 0, 2), load),
        poll(sqs.clone(), mapping(&queues.refund, 10, 0, 2), refund),
        schedule("reconcile", period, RECONCILE_TIMEOUT, reconciled),
    ]
}

/// Invokes reconcile with the event that EventBridge sends.
pub(super) async fn reconcile(app: Arc<App>) -> Result<Report, lambda_http::Error> {
    let mut event = EventBridgeEvent::<serde_json::Value>::default();
    event.source = "aws.scheduler".to_owned();
    event.detail_type = "Scheduled Event".to_owned();
    event.time = Some(Utc::now());
    event.detail = serde_json::json!({});
    reconcile::handle(&app, event).await
}

/// Logs a run of reconcile that failed.
pub(super) fn report(outcome: Result<Result<Report, lambda_http::Error>, Failure>) {
    match outcome {
        // What it did, it has logged itself.
        Ok(Ok(_report)) => {}
        Ok(Err(error)) => tracing::error!(%error, "reconcile failed; the next run tries again"),
        Err(failure) => tracing::error!(%failure, "reconcile failed; the next run tries again"),
    }
}
