//! Lambda function `token-gate`: API Gateway, `POST /sales/{sale}/admissions` and
//! `POST /sales/{sale}/visits`. Admissions are not idempotent, and need not be: an unused one expires, and the buyer's
//! lock bounds how often one buyer gets one. The beginning of a visit is idempotent.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::TokenGate).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(token_gate::handle(app, request).await)
    }))
    .await
}
