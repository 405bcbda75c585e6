//! Lambda function `sync-db`: consumes the sync queue, with a batching window. Idempotent: each fact of an order is
//! settled once, however often its message comes.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::SyncDb).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(sync_db::handle(app, event.payload).await)
    }))
    .await
}
