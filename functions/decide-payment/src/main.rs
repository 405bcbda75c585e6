//! Lambda function `decide-payment`: consumes the callback queue. Idempotent: one decision is recorded for each
//! payment, whether the provider's call or a message comes first.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::DecidePayment).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(decide_payment::handle(app, event.payload).await)
    }))
    .await
}
