//! Lambda function `cancel`: API Gateway, `POST /orders/{order}/cancel`. Idempotent: an order that
//! is cancelled already is answered again.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::{App, Need};

/// What it works with in the usual case.
const NEEDS: &[Need] = &[Need::Redis, Need::Sales];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(NEEDS).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(cancel::handle(app, request).await)
    }))
    .await
}
