//! `POST /orders/{order}/payments`: a buyer begins to pay an order.

use engine::domain::basics::time::Timestamp;
use engine::flows;
use engine::ports::StoreError;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::Problem;
use shared::http::checks::{MAX_BODY_BYTES, json_body};
use shared::http::edge;
use shared::http::identity::Buyer;
use shared::http::payment_start::{PaymentBody, StartedReply};
use shared::http::respond::{Answer, respond};
use shared::http::routes::{NoRoute, Route};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = start(app, &request, Timestamp::now());
    edge::answer(app, Function::StartPayment, &request, respond(work)).await
}

/// Starts a payment of the buyer's own pending order, or finds the one that was started.
async fn start(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Answer<StartedReply>, Problem> {
    let Route::StartPayment(number) = Route::from_request(request)? else {
        return Err(NoRoute.into());
    };
    let buyer = Buyer::from_request(request)?;
    let body: PaymentBody = json_body(request, MAX_BODY_BYTES)?;
    let choice = body.choice(&app.return_origins)?;
    let started = flows::start::start(&app.ports, buyer.user(), number, &choice, now).await?;
    let lost = || StoreError::Contract(format!("order {number}: the payment is lost"));
    Ok(Answer(StartedReply::new(started).ok_or_else(lost)?))
}
