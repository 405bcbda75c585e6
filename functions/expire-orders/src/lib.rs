//! The expiry queue: end orders whose payment window is over.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use shared::app::App;
use shared::domain::time::Timestamp;
use shared::flows::expire::{Expired, expire};
use shared::ports::{Ports as _, Queue as _, Stored};
use shared::queue::{Expiry, batch};

/// Handles one batch, message by message, at the time of the system clock.
pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    batch::one_by_one(event, |message| expire_order(app, message, Timestamp::now())).await
}

/// Ends the order if its time is up; if it is not, the message hops on through the queue.
async fn expire_order(app: &App, message: Expiry, now: Timestamp) -> Stored<()> {
    let Expiry { sale, order, .. } = message;
    match expire(&app.ports, &sale, order, now).await? {
        Expired::NotDue(due) => app.ports.queue().expire_later(&sale, order, now, due).await,
        Expired::Ended | Expired::Resolved | Expired::Nothing => Ok(()),
    }
}
