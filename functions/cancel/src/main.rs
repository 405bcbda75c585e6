//! Lambda function `cancel`: API Gateway, `POST /orders/{order}/cancel` and
//! `POST /operator/orders/{order}/cancel`. Idempotent: a repeated request gets the cancelled order again.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Cancel).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(cancel::handle(app, request).await)
    }))
    .await
}
