//! Consumer of the expiry queue: ends orders whose payment window is over.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::time::Timestamp;
use engine::flows::expire::{Expiry as Due, expire_or_requeue};
use engine::ports::Stored;
use engine::ports::messages::Expiry;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::sqs::batch;

/// Handles one batch, its messages side by side, at the time of the system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each(event, |messages| expire_orders(app, messages, Timestamp::now()));
    app.metrics.of(Function::ExpireOrders, work).await
}

/// Ends the orders that are due, and puts the messages of the others back with a delay.
async fn expire_orders(app: &App, messages: Vec<Expiry>, now: Timestamp) -> Vec<Stored<()>> {
    let due: Vec<Due> = messages.iter().map(Due::from).collect();
    expire_or_requeue(&app.ports, &due, now).await
}
