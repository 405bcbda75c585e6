//! Lambda function `operator`: API Gateway, routes below `/operator`. Reads only, except for check-ins and reissues.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Operator).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(operator::handle(app, request).await)
    }))
    .await
}
