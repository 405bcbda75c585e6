//! Lambda function `figures`: API Gateway, `GET /operator/sales/{sale}/figures`. Reads only.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::figures::cloudwatch;
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &cloudwatch::read_by(App::start(Function::Figures).await?).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(figures::handle(app, request).await)
    }))
    .await
}
