//! Consumer of the draw queue: closes the first window of a waiting room at its time, and draws its places.

use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::Drawing;
use engine::flows::room::request::draw_or_requeue;
use engine::ports::Stored;
use engine::ports::messages::Draw;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::runtime::metrics;
use shared::sqs::batch;

/// The most time that a batch may take: less than the function's deadline, so that the function logs why the message
/// comes again. The next batch finds everything that this one has kept.
pub const MAX_BATCH: Duration = Duration::from_secs(115);

/// Handles one batch, its rooms one after the other (a million members are 32 MB of leaves), at the time of the
/// system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each_within(MAX_BATCH, event, |messages| draw_rooms(app, messages));
    app.metrics.of(Function::Draw, work).await
}

async fn draw_rooms(app: &App, messages: Vec<Draw>) -> Vec<Stored<()>> {
    let mut outcomes = Vec::with_capacity(messages.len());
    for Draw { sale } in messages {
        outcomes.push(draw_room(app, &sale).await);
    }
    outcomes
}

/// Draws a room as far as that is possible now. If the room is not drawn yet, the flow sends its message again.
async fn draw_room(app: &App, sale: &SaleId) -> Stored<()> {
    match draw_or_requeue(&app.ports, sale, Timestamp::now).await? {
        Drawing::Drawn => tracing::info!(%sale, "the waiting room is drawn"),
        Drawing::AwaitsBeacon { round, out_at } => {
            tracing::info!(%sale, round, %out_at, "awaits the beacon");
        }
        Drawing::NotDue(at) => tracing::info!(%sale, %at, "the draw is not due"),
        Drawing::NoRoom => tracing::warn!(%sale, "a draw was requested, and there is no room"),
        Drawing::NoSecret => {
            tracing::error!(%sale, "the secret has to decide, and is missing or another");
            metrics::draw_without_secret();
        }
    }
    Ok(())
}
