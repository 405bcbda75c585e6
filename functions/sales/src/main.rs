//! Lambda function `sales`: API Gateway, `PUT /sales/{sale}`, `GET /sales`, `GET /sales/{sale}` and
//! `GET /sales/{sale}/availability`. Idempotent: publishing the same file again finishes a publication that a crash
//! interrupted.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Sales).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(sales::handle(app, request).await)
    }))
    .await
}
