//! `POST /payments/{provider}/callback`: a payment provider reports a capture.

use engine::domain::basics::time::Timestamp;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::callback::CallbackAnswer;
use shared::http::respond::respond;
use shared::http::routes::{NoRoute, Route};
use shared::http::{Problem, callback, edge};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = pay_callback(app, &request, Timestamp::now());
    edge::answer(app, Function::PayCallback, &request, respond(work)).await
}

/// Accepts the callback of the provider that the path names.
async fn pay_callback(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<CallbackAnswer, Problem> {
    let Route::PaymentCallback(provider) = Route::from_request(request)? else {
        return Err(NoRoute.into());
    };
    callback::accept(app, &provider, request, now).await
}
