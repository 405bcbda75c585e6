//! Lambda function `start-payment`: API Gateway, `POST /orders/{order}/payments`. Idempotent: a request with the same
//! choice gets the same payment.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::StartPayment).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(start_payment::handle(app, request).await)
    }))
    .await
}
