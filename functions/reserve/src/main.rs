//! Lambda function `reserve`: API Gateway, `POST /sales/{sale}/orders`. Idempotent: an admission
//! makes one order, however often the request comes.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::app::App;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::from_env().await?.with_admission_keys()?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(reserve::handle(app, request).await)
    }))
    .await
}
