//! `POST /callbacks/{key}/{provider}`: a payment provider reports a capture at the entry of callbacks, whose key only
//! the providers know.

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
    let work = take_callback(app, &request, Timestamp::now());
    edge::answer(app, Function::TakeCallback, &request, respond(work)).await
}

/// Accepts the callback if its path has the key and its sender's address may call. Every other request is answered as
/// one for an unknown route.
async fn take_callback(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<CallbackAnswer, Problem> {
    let Route::TakeCallback(address) = Route::from_request(request)? else {
        return Err(NoRoute.into());
    };
    if !app.callbacks.has_key(address.key()) || !app.callbacks.allows(callback::source(request)) {
        return Err(NoRoute.into());
    }
    callback::accept(app, address.provider(), request, now).await
}
