//! Lambda function `read-captures`: EventBridge, every minute. Idempotent: a capture is decided once, and a
//! cursor moves only past captures that are decided.

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::ReadCaptures).await?;
    run(service_fn(move |event: LambdaEvent<EventBridgeEvent>| async move {
        read_captures::handle(app, event.payload).await
    }))
    .await
}
