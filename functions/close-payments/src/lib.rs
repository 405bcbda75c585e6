//! Consumer of the close queue: closes payments at their providers, and gives the orders back to the expiry queue,
//! which ends them.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::time::Timestamp;
use engine::flows::close::close_or_requeue;
use engine::ports::Stored;
use engine::ports::messages::ClosePayments;
use futures_util::future::join_all;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::sqs::batch;

/// Handles one batch, its messages side by side, at the time of the system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each(event, |messages| close(app, messages, Timestamp::now()));
    app.metrics.of(Function::ClosePayments, work).await
}

/// Closes the open attempts of each order. If an attempt cannot be closed yet, the order's message goes back to the
/// queue with a delay, and the batch does not count it as failed.
async fn close(app: &App, messages: Vec<ClosePayments>, now: Timestamp) -> Vec<Stored<()>> {
    let closings = messages.iter().map(|message| close_or_requeue(&app.ports, message, now));
    join_all(closings).await
}
