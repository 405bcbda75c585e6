//! Consumer of the sync queue: settles the facts of orders, in the statistics of their sales and in the log.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::flows;
use engine::ports::Stored;
use engine::ports::messages::Sync;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::sqs::batch;

/// Handles one batch, all messages together.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::together(event, |messages| sync_db(app, messages));
    app.metrics.of(Function::SyncDb, work).await
}

/// Settles the orders' facts, each exactly once, with one write for each sale and tier, and one record of the
/// log for each sale.
async fn sync_db(app: &App, messages: Vec<Sync>) -> Stored<()> {
    let orders: Vec<OrderNumber> = messages.iter().map(|message| message.order).collect();
    let counted = flows::sync::sync(&app.ports, &orders, Timestamp::now()).await?;
    tracing::debug!(messages = messages.len(), counted, "orders settled");
    Ok(())
}
