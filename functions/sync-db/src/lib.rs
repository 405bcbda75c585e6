//! The sync queue: count paid orders in their sales' statistics.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::number::OrderNumber;
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

/// Counts the orders, each exactly once, with one write for each sale and tier.
async fn sync_db(app: &App, messages: Vec<Sync>) -> Stored<()> {
    let orders: Vec<OrderNumber> = messages.iter().map(|message| message.order).collect();
    let counted = flows::sync::sync(&app.ports, &orders).await?;
    tracing::debug!(messages = messages.len(), counted, "orders counted");
    Ok(())
}
