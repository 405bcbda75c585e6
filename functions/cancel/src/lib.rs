//! `POST /orders/{order}/cancel`: a buyer gives up an order that is not paid.
//! `POST /operator/orders/{order}/cancel`: an operator cancels an order that is not paid.

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::flows;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::Problem;
use shared::http::edge;
use shared::http::identity::{Buyer, Operator, Scope};
use shared::http::operators::{self, Action, ActionKind};
use shared::http::order_reply::OrderReply;
use shared::http::respond::{Answer, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = answer(app, &request, Timestamp::now());
    edge::answer(app, Function::Cancel, &request, work).await
}

async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    let route = Route::from_request(request);
    if let Ok(Route::CancelOrder(order)) = route {
        respond(by_buyer(app, request, order, now)).await
    } else if let Ok(Route::OperatorCancel(order)) = route {
        respond(by_operator(app, request, order, now)).await
    } else {
        refuse(NoRoute)
    }
}

/// Ends the buyer's own pending order and gives its seats back.
async fn by_buyer(
    app: &App,
    request: &Request,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Answer<OrderReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let order = flows::cancel::cancel(&app.ports, buyer.user(), number, now).await?;
    Ok(Answer(OrderReply::read(&app.ports, &order).await?))
}

/// Ends anybody's pending order, and records who asked for it.
async fn by_operator(
    app: &App,
    request: &Request,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Answer<OrderReply>, Problem> {
    let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Operate)?;
    let action = Action::new(ActionKind::Cancel).of_order(number);
    let work = async { Ok(flows::cancel::by_operator(&app.ports, number, now).await?) };
    let order = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(operator = operator.who(), order = %number, "an order was cancelled");
    Ok(Answer(OrderReply::read(&app.ports, &order).await?))
}
