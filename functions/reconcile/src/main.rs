//! Lambda function `reconcile`: EventBridge, every minute. Idempotent: a repeated run finds the same work done.

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Reconcile).await?;
    run(service_fn(move |event: LambdaEvent<EventBridgeEvent>| async move {
        reconcile::handle(app, event.payload).await
    }))
    .await
}
