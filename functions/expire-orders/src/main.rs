//! Lambda function `expire-orders`: consumes the expiry queue, whose messages wait for the end of the payment window.
//! Idempotent: an order that has ended stays as it is.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::ExpireOrders).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(expire_orders::handle(app, event.payload).await)
    }))
    .await
}
