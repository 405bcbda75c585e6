//! `POST /payments/{provider}/callback`: a payment provider says that it has captured money.

use engine::domain::time::Timestamp;
use engine::flows::pay::pay;
use engine::ports::Ports as _;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::payment_reply::CallbackReply;
use shared::http::respond::{Answer, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::{Problem, checks};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = pay_callback(app, &request, Timestamp::now());
    app.metrics.of(Function::PayCallback, respond(work)).await
}

/// Trusts the provider if its signature is valid, and says so only when all that follows from the
/// payment is done: until then the provider calls again.
async fn pay_callback(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Answer<CallbackReply>, Problem> {
    let Route::PaymentCallback(provider) = Route::from_request(request)? else {
        return Err(NoRoute.into());
    };
    checks::check_size(request, checks::MAX_BODY_BYTES)?;
    let providers = app.ports.provider();
    let callback = providers.verify(&provider, request.headers(), request.body(), now)?;
    match providers.capture(&callback)? {
        Some(capture) => Ok(Answer(pay(&app.ports, &capture, now).await?.outcome.into())),
        None => Ok(Answer(CallbackReply::Ignored)),
    }
}
