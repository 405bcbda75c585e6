//! Lambda function `send-events`: EventBridge, every minute. Idempotent: an event that is sent again has the same
//! name, and a position in the log moves only past facts that were sent or are recorded as waiting.

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::events::eventbridge;
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &eventbridge::told_by(App::start(Function::SendEvents).await?).await?;
    run(service_fn(move |event: LambdaEvent<EventBridgeEvent>| async move {
        send_events::handle(app, event.payload).await
    }))
    .await
}
