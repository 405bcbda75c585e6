//! The event sources of a running engine: the pollers of the queue functions, and the schedule of
//! reconcile.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use chrono::Utc;
use engine::domain::basics::time::Timestamp;
use engine::flows::reconcile::Report;
use fake_limits::Limits;
use shared::runtime::app::App;
use shared::runtime::functions::{Consumer, Function, QueueName};

use crate::concurrency::Concurrency;
use crate::event_sources::{Failure, Mapping, Source, poll, schedule};
use crate::handlers::{consume, read_bills, read_captures, send_events};
use crate::queues::Queues;

/// Time between two readings of captures: payment windows are seconds here, and reads cost nothing.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks for bills of days that are over: as in a deployment.
const BILLS_EVERY: Duration = Duration::from_secs(3600);
/// Time between two looks at what webhooks were not told.
const TELL_EVERY: Duration = Duration::from_secs(1);
pub(super) const RECONCILE_TIMEOUT: Duration = Function::Reconcile.row().timeout;

/// Starts the event sources, with the figures of the table of functions.
pub(super) fn start_sources(
    app: &Arc<App>,
    sqs: &aws_sdk_sqs::Client,
    queues: &Queues,
    reconcile_seconds: u32,
    account: &Concurrency,
    limits: Limits,
) -> Vec<Source> {
    let grows = limits != Limits::None;
    let consumers = Function::ALL.into_iter().filter_map(|function| {
        let consumer = function.consumer()?;
        let app = Arc::clone(app);
        let mapping = mapping(queues, function, consumer);
        let mapping = Mapping { account: account.clone(), grows, ..mapping };
        Some(poll(sqs.clone(), mapping, move |event| {
            let app = Arc::clone(&app);
            async move { consume(&app, consumer.queue, event).await }
        }))
    });
    let mut sources: Vec<Source> = consumers.collect();
    let period = Duration::from_secs(u64::from(reconcile_seconds.max(1)));
    let [app, of_reader, of_bills, of_teller] = [(); 4].map(|()| Arc::clone(app));
    let reconciled = move || {
        let app = Arc::clone(&app);
        async move { report(Ok(reconcile(app).await)) }
    };
    let name = Function::Reconcile.as_str();
    sources.push(schedule(name, period, RECONCILE_TIMEOUT, reconciled));
    let captures_read = move || {
        let app = Arc::clone(&of_reader);
        async move { read(&app).await }
    };
    let name = Function::ReadCaptures.as_str();
    let timeout = Function::ReadCaptures.row().timeout;
    sources.push(schedule(name, READ_EVERY, timeout, captures_read));
    let bills_read = move || {
        let app = Arc::clone(&of_bills);
        async move { read_all_bills(&app).await }
    };
    let name = Function::ReadBills.as_str();
    let timeout = Function::ReadBills.row().timeout;
    sources.push(schedule(name, BILLS_EVERY, timeout, bills_read));
    let told = move || {
        let app = Arc::clone(&of_teller);
        async move { tell(&app).await }
    };
    let name = Function::SendEvents.as_str();
    let timeout = Function::SendEvents.row().timeout;
    sources.push(schedule(name, TELL_EVERY, timeout, told));
    sources
}

/// The event source mapping of a function on its queue.
fn mapping(queues: &Queues, function: Function, consumer: Consumer) -> Mapping {
    let queue = queues.get(consumer.queue);
    // On one machine, two batches of sync side by side would only wait for each other's counters.
    let most = if consumer.queue == QueueName::Sync { 1 } else { usize::MAX };
    Mapping {
        name: queue.name.clone(),
        url: queue.url.clone(),
        arn: queue.arn.clone(),
        max_batch: consumer.max_batch.into(),
        window: Duration::from_secs(consumer.window_seconds.into()),
        concurrency: usize::from(consumer.max_concurrency).min(most),
        timeout: function.row().timeout,
        function,
        account: Concurrency::default(),
        grows: false,
    }
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

/// Reads once what the provider lists, and logs what was found, or that it failed.
async fn read(app: &App) {
    match read_captures::read(app).await {
        Ok(reading) if reading.decided > 0 => tracing::info!(?reading, "captures read"),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "captures were not read; the next run tries again"),
    }
}

/// Reads the bills that are there and not read yet, and logs that it failed.
async fn read_all_bills(app: &App) {
    if let Err(error) = read_bills::read(app, Timestamp::now).await {
        tracing::warn!(%error, "bills were not read; the next run tries again");
    }
}

/// Tells webhooks once what there is, and logs that it failed.
async fn tell(app: &App) {
    match send_events::tell(app).await {
        Ok(telling) if telling.failed > 0 => tracing::info!(?telling, "webhooks were told"),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "webhooks were not told; the next run tries again"),
    }
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
