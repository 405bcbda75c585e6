//! Lambda function `sales`: API Gateway, `PUT /sales/{sale}`, `GET /sales`, `GET /sales/{sale}` and
//! `GET /sales/{sale}/availability`. Idempotent: publishing the same file again finishes what a
//! crash left.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::app::App;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::from_env().await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(sales::handle(app, request).await)
    }))
    .await
}
