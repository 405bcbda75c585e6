//! Consumer of the refund queue: asks providers to refund payments, and records their answers.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::time::Timestamp;
use engine::flows;
use engine::ports::Stored;
use engine::ports::messages::Refund;
use futures_util::future::join_all;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::sqs::batch;

/// Handles one batch, its messages side by side, at the time of the system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each(event, |messages| refund(app, messages, Timestamp::now()));
    app.metrics.of(Function::Refund, work).await
}

/// Asks the provider of each payment to refund it. A refund that the provider refuses or has not finished is recorded,
/// and the batch does not count its message as failed: the sweeper asks again later.
async fn refund(app: &App, messages: Vec<Refund>, now: Timestamp) -> Vec<Stored<()>> {
    let refunds = messages.into_iter().map(|message| async move {
        let Refund { provider, payment, order, .. } = message.clone();
        let refund = flows::refund::refund_or_requeue(&app.ports, message, now).await?;
        let state = refund.as_ref().map_or("waits for the limit", |refund| refund.state.as_str());
        tracing::info!(%order, %provider, %payment, state, "refund");
        Ok(())
    });
    join_all(refunds).await
}
