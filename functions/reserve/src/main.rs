//! Lambda function `reserve`: API Gateway, `POST /sales/{sale}/orders`. Idempotent: an admission
//! makes one order, however often the request comes.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Reserve).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(reserve::handle(app, request).await)
    }))
    .await
}
