//! `POST /orders/{order}/cancel`: a buyer gives up an order that is not paid.

use engine::domain::time::Timestamp;
use engine::flows;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::Problem;
use shared::http::edge;
use shared::http::identity::Buyer;
use shared::http::order_reply::OrderReply;
use shared::http::respond::{Answer, respond};
use shared::http::routes::{NoRoute, Route};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = cancel(app, &request, Timestamp::now());
    edge::answer(app, Function::Cancel, &request, respond(work)).await
}

/// Ends the buyer's own pending order and gives its seats back.
async fn cancel(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Answer<OrderReply>, Problem> {
    let Route::CancelOrder(number) = Route::from_request(request)? else {
        return Err(NoRoute.into());
    };
    let buyer = Buyer::from_request(request)?;
    let order = flows::cancel::cancel(&app.ports, buyer.user(), number, now).await?;
    Ok(Answer(OrderReply::read(&app.ports, &order).await?))
}
