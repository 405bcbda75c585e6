//! Lambda function `close-payments`: consumes the close queue. Idempotent: a closed attempt stays closed, and a
//! capture that a provider reports is decided once.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::ClosePayments).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(close_payments::handle(app, event.payload).await)
    }))
    .await
}
