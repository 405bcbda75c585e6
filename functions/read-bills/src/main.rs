//! Lambda function `read-bills`: EventBridge, every hour. Idempotent: what a line tells is recorded once, and a cursor moves only
//! past lines that are done.

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::ReadBills).await?;
    run(service_fn(move |event: LambdaEvent<EventBridgeEvent>| async move {
        read_bills::handle(app, event.payload).await
    }))
    .await
}
