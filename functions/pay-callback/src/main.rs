//! Lambda function `pay-callback`: API Gateway, `POST /payments/{provider}/callback`. Idempotent: one
//! decision is recorded for each payment, and each call finishes what an earlier one left.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::app::App;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::from_env().await?.with_payment_secrets()?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(pay_callback::handle(app, request).await)
    }))
    .await
}
