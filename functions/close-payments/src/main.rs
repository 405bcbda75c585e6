//! Lambda function `close-payments`: the queue of orders whose payments are to be closed. Idempotent: what is
//! closed stays closed, and a capture that is found is decided once.

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
