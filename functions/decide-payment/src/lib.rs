//! Consumer of the callback queue: decides captures that providers reported while a store did not answer.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::time::Timestamp;
use engine::flows::pay::pay_reported;
use engine::ports::Stored;
use engine::ports::messages::Callback;
use futures_util::future::join_all;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::sqs::batch;

/// Handles one batch, its messages side by side, at the time of the system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each(event, |messages| decide(app, messages, Timestamp::now()));
    app.metrics.of(Function::DecidePayment, work).await
}

/// Decides each capture and changes its order, by the same flow as a provider's callback.
async fn decide(app: &App, messages: Vec<Callback>, now: Timestamp) -> Vec<Stored<()>> {
    let decisions = messages.into_iter().map(|message| async move {
        let Some(record) = pay_reported(&app.ports, &message.into(), now).await? else {
            return Ok(());
        };
        let (order, payment) = (record.capture.order, &record.capture.key.payment);
        tracing::info!(%order, %payment, outcome = ?record.outcome, "a kept capture is decided");
        Ok(())
    });
    join_all(decisions).await
}
