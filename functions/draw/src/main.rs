//! Lambda function `draw`: consumes the draw queue. Idempotent: a draw goes on where an earlier one stopped, and a
//! drawn window stays as it is.

use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::Draw).await?;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        Ok::<_, Error>(draw::handle(app, event.payload).await)
    }))
    .await
}
