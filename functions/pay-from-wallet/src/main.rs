//! Lambda function `pay-from-wallet`: API Gateway, `POST /orders/{order}/payments/wallet`. Idempotent:
//! an order is paid once, and a repeated request gets the paid order again.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::PayFromWallet).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(pay_from_wallet::handle(app, request).await)
    }))
    .await
}
