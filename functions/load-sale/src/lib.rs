//! Consumer of the load queue: loads a sale into Redis again. A request of a buyer has found that Redis had lost it.

use std::collections::BTreeMap;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::load::{Loaded, load};
use engine::ports::Stored;
use engine::ports::messages::LoadSale;
use futures_util::future::join_all;
use shared::runtime::app::{App, new_epoch};
use shared::runtime::functions::Function;
use shared::runtime::metrics;
use shared::sqs::batch;

/// Handles one batch, its sales side by side, at the time of the system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each(event, |messages| load_sales(app, messages));
    app.metrics.of(Function::LoadSale, work).await
}

/// Loads each sale once, however many messages of the batch ask for it.
async fn load_sales(app: &App, messages: Vec<LoadSale>) -> Vec<Stored<()>> {
    let mut outcomes: BTreeMap<&SaleId, Stored<()>> = BTreeMap::new();
    for message in &messages {
        outcomes.insert(&message.sale, Ok(()));
    }
    let loads = outcomes.iter_mut().map(|(sale, outcome)| async move {
        *outcome = load_sale(app, sale).await;
    });
    join_all(loads).await;
    messages.iter().map(|message| outcomes[&message.sale].clone()).collect()
}

/// Loads a sale that Redis has lost. If another process is loading the sale, this one does nothing: should that load
/// fail, the next buyer's request asks for another.
async fn load_sale(app: &App, sale: &SaleId) -> Stored<()> {
    let clock = &Timestamp::now;
    match load(&app.ports, sale, &new_epoch(clock())?, clock).await? {
        Loaded::Now { orders } => {
            tracing::warn!(%sale, orders, "Redis had lost the sale: loaded again");
            metrics::reloaded(1);
        }
        Loaded::Already | Loaded::Busy | Loaded::Archived => {
            tracing::debug!(%sale, "nothing to load");
        }
    }
    Ok(())
}
