//! Lambda function `refund-order`: API Gateway, `POST /orders/{order}/refunds` of buyers and
//! `POST /operator/orders/{order}/refunds` of operators. Idempotent: one refund is made under each number.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::RefundOrder).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(refund_order::handle(app, request).await)
    }))
    .await
}
