//! Lambda function `waiting-room`: API Gateway, `POST /sales/{sale}/places` and `GET /sales/{sale}/room/…`.
//! Idempotent: who joins again is answered the same membership.

use lambda_http::{Error, Request, run, service_fn, tracing};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let app = &App::start(Function::WaitingRoom).await?;
    run(service_fn(move |request: Request| async move {
        Ok::<_, Error>(waiting_room::handle(app, request).await)
    }))
    .await
}
