//! Lambda function `orders`: API Gateway, `GET /orders/{order}` and `GET /orders`. Reads only.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::app::App;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::from_env().await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(orders::handle(app, request).await)
    }))
    .await
}
