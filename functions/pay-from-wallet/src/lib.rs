//! `POST /orders/{order}/payments/wallet`: a buyer pays an order from the wallet.

use engine::domain::basics::time::Timestamp;
use engine::flows::wallet;
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
    let work = pay(app, &request, Timestamp::now());
    edge::answer(app, Function::PayFromWallet, &request, respond(work)).await
}

/// Pays the buyer's own pending order, or finds it paid from the wallet.
async fn pay(app: &App, request: &Request, now: Timestamp) -> Result<Answer<OrderReply>, Problem> {
    let Route::PayFromWallet(number) = Route::from_request(request)? else {
        return Err(NoRoute.into());
    };
    let buyer = Buyer::from_request(request)?;
    let paying = wallet::pay(&app.ports, buyer.user(), number, now);
    let order = app.wallet_locks.with(buyer.user(), paying).await?;
    Ok(Answer(OrderReply::read(&app.ports, &order).await?))
}
