//! Lambda function `refund`: consumes the refund queue. Idempotent: the payment is the provider's idempotency
//! key, and the function does not ask again for a refund that is recorded as done.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Refund).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(refund::handle(app, event.payload).await)
    }))
    .await
}
