//! `GET /orders/{order}`, `GET /orders/{order}/refunds` and `GET /orders`: a buyer looks at the orders they
//! made.

use std::collections::BTreeSet;

use engine::domain::ids::{SaleId, UserId};
use engine::domain::number::OrderNumber;
use engine::domain::order::Order;
use engine::ports::{Orders as _, Page, Ports as _, Stored};
use futures_util::future::{try_join, try_join_all};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::identity::Buyer;
use shared::http::order_refund::OrderRefundsReply;
use shared::http::order_reply::{AllowanceReply, OrderReply, PageReply};
use shared::http::respond::{Answer, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::{Problem, checks, edge, problem};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Orders of a page, unless the request says how many.
pub const PAGE: u16 = 20;
/// Most orders of a page.
pub const MAX: u16 = 100;

/// Answers one request.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    edge::answer(app, Function::Orders, &request, answer(app, &request)).await
}

async fn answer(app: &App, request: &Request) -> Response<Body> {
    match Route::from_request(request) {
        Ok(Route::ShowOrder(order)) => respond(show(app, request, order)).await,
        Ok(Route::ListOrders) => respond(list(app, request)).await,
        Ok(Route::ListRefunds(order)) => respond(refunds(app, request, order)).await,
        Ok(
            Route::ShowOpenApi
            | Route::ListSales
            | Route::PublishSale(_)
            | Route::ShowSale(_)
            | Route::ShowAvailability(_)
            | Route::ShowMap(_)
            | Route::JoinRoom(_)
            | Route::ShowRoom(_)
            | Route::ShowRoomLog(_)
            | Route::ShowRoomLeaves(_)
            | Route::ShowRoomWindow(_)
            | Route::BringRound(_)
            | Route::CommandRoom(_)
            | Route::Admit(_)
            | Route::Reserve(_)
            | Route::CancelOrder(_)
            | Route::StartPayment(_)
            | Route::GiveBack(_)
            | Route::RefundOrder(_)
            | Route::OperatorPublish(_)
            | Route::OperatorCommand(_)
            | Route::OperatorRefund(_)
            | Route::OperatorCancel(_)
            | Route::OperatorOrder(_)
            | Route::OperatorOrders
            | Route::OperatorBoard(_)
            | Route::OperatorFigures(_)
            | Route::OperatorActions
            | Route::OperatorStuck
            | Route::PaymentCallback(_)
            | Route::TakeCallback(_),
        )
        | Err(NoRoute) => refuse(NoRoute),
    }
}

/// Shows the buyer's own order and its payments; any other is not found.
async fn show(
    app: &App,
    request: &Request,
    number: OrderNumber,
) -> Result<Answer<OrderReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let orders = app.ports.orders();
    let (order, payments) = try_join(orders.get(number), orders.payments(number)).await?;
    let order = own(order, &buyer)?;
    Ok(Answer(OrderReply::read(&app.ports, &order).await?.with_payments(&payments)))
}

/// Lists the refunds of the buyer's own order; of any other, nothing is found.
async fn refunds(
    app: &App,
    request: &Request,
    number: OrderNumber,
) -> Result<Answer<OrderRefundsReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let orders = app.ports.orders();
    let (order, refunds) = try_join(orders.get(number), orders.order_refunds(number)).await?;
    Ok(Answer(OrderRefundsReply::new(&own(order, &buyer)?, &refunds)))
}

/// The order, if it is there and the buyer's.
fn own(order: Option<Order>, buyer: &Buyer) -> Result<Order, Problem> {
    let own = order.filter(|order| order.user == *buyer.user() && !order.is_tombstone());
    own.ok_or_else(problem::no_such_order)
}

/// Lists the buyer's orders, newest first, a page at a time, with what the buyer may still have.
async fn list(app: &App, request: &Request) -> Result<Answer<PageReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let before = checks::query(request, "before")?;
    let most = checks::query_within(request, "limit", 1..=MAX)?.unwrap_or(PAGE);
    let page = app.ports.orders().of_user(buyer.user(), before, most).await?;
    let page = Page {
        orders: page.orders.into_iter().filter(|order| !order.is_tombstone()).collect(),
        ..page
    };
    let (orders, allowances) =
        try_join(shown(app, &page), allowances(app, buyer.user(), &page)).await?;
    Ok(Answer(PageReply { orders, allowances, next: page.next }))
}

async fn shown(app: &App, page: &Page) -> Stored<Vec<OrderReply>> {
    let mut orders = Vec::with_capacity(page.orders.len());
    for order in &page.orders {
        orders.push(OrderReply::read(&app.ports, order).await?);
    }
    Ok(orders)
}

/// What the buyer may still have in each sale of the page: one read of a count for each, side by
/// side.
async fn allowances(app: &App, user: &UserId, page: &Page) -> Stored<Vec<AllowanceReply>> {
    let sales: BTreeSet<&SaleId> = page.orders.iter().map(|order| &order.sale).collect();
    try_join_all(sales.into_iter().map(|sale| AllowanceReply::read(&app.ports, sale, user))).await
}
