//! Lambda function `load-sale`: consumes the load queue. Idempotent: a sale that Redis has stays as it is, and a lease
//! lets only one process load a sale at a time.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::LoadSale).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(load_sale::handle(app, event.payload).await)
    }))
    .await
}
