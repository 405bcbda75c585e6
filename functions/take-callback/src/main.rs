//! Lambda function `take-callback`: API Gateway, `POST /callbacks/{key}/{provider}`. Idempotent: one
//! decision is recorded for each payment, and a repeated call finishes the work of an interrupted one.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::TakeCallback).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(take_callback::handle(app, request).await)
    }))
    .await
}
