//! `GET /orders/{order}`, `GET /orders/{order}/refunds`, `GET /orders/{order}/tickets`, `GET /orders` and
//! `GET /wallets`: a buyer reads the buyer's own orders and wallets. `GET /ticket-keys` and
//! `GET /sales/{sale}/revoked`: a door reads the public keys and the revoked tickets, by which it checks tickets.

use std::collections::BTreeSet;

use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::Order;
use engine::domain::sale::SaleState;
use engine::flows::hold::sale_of;
use engine::ports::{Catalogue as _, Freshness, Orders as _, Page, Ports as _, Stored};
use futures_util::future::{try_join, try_join_all};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::checks::Refusal;
use shared::http::identity::Buyer;
use shared::http::order_refund::OrderRefundsReply;
use shared::http::order_reply::{AllowanceReply, OrderReply, PageReply};
use shared::http::points::PointsReply;
use shared::http::respond::{Answer, Cacheable, Reply as _, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::ticket::{IssuedTicketsReply, RevokedReply};
use shared::http::wallet::WalletsReply;
use shared::http::{Problem, checks, edge, problem};
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::tickets::RevokedList;

/// Orders of a page, unless the request says how many.
pub const PAGE: u16 = 20;
/// Most orders of a page.
pub const MAX: u16 = 100;

/// The number of orders on a page of revoked tickets: with ten tickets each a page has some 500 kB.
pub const REVOKED: u16 = 1000;
/// The time for which caches may keep the public keys, in seconds: a new key is published as long before it signs.
const KEYS_MAX_AGE_SECONDS: u32 = 300;
/// The time for which caches may keep a page of revoked tickets, in seconds.
const REVOKED_MAX_AGE_SECONDS: u32 = 5;

pub async fn handle(app: &App, request: Request) -> Response<Body> {
    edge::answer(app, Function::Orders, &request, answer(app, &request)).await
}

#[expect(clippy::too_many_lines, reason = "one arm for each route")]
async fn answer(app: &App, request: &Request) -> Response<Body> {
    match Route::from_request(request) {
        Ok(Route::ShowOrder(order)) => respond(show(app, request, order)).await,
        Ok(Route::ListOrders) => respond(list(app, request)).await,
        Ok(Route::ListRefunds(order)) => respond(refunds(app, request, order)).await,
        Ok(Route::ShowTickets(order)) => respond(tickets(app, request, order)).await,
        Ok(Route::ShowWallets) => respond(wallets(app, request)).await,
        Ok(Route::ShowPoints) => respond(points(app, request)).await,
        Ok(Route::ShowTicketKeys) => {
            let body = app.tickets.public().clone();
            Cacheable { body, max_age_seconds: KEYS_MAX_AGE_SECONDS }.into_response()
        }
        Ok(Route::ShowRevoked(sale)) => {
            respond(revoked(app, request, &sale, Timestamp::now())).await
        }
        Ok(
            Route::ShowOpenApi
            | Route::ListSales
            | Route::PublishSale(_)
            | Route::ShowSale(_)
            | Route::ShowAvailability(_)
            | Route::ShowMap(_)
            | Route::ShowSalePage(_)
            | Route::ShowSitemap
            | Route::ShowPicture(_)
            | Route::KeepPicture(_)
            | Route::OperatorPicture(_)
            | Route::OperatorStanding(_)
            | Route::ShowDocument(_)
            | Route::ListTrains
            | Route::ListStops
            | Route::JoinRoom(_)
            | Route::ShowRoom(_)
            | Route::ShowPlainRoom(_)
            | Route::ShowRoomLog(_)
            | Route::ShowRoomLeaves(_)
            | Route::ShowRoomWindow(_)
            | Route::BringRound(_)
            | Route::CommandRoom(_)
            | Route::BeginVisit(_)
            | Route::Admit(_)
            | Route::Reserve(_)
            | Route::CancelOrder(_)
            | Route::StartPayment(_)
            | Route::GiveBack(_)
            | Route::PayFromWallet(_)
            | Route::RefundOrder(_)
            | Route::OperatorPublish(_)
            | Route::OperatorCommand(_)
            | Route::OperatorRefund(_)
            | Route::OperatorCancel(_)
            | Route::OperatorOrder(_)
            | Route::OperatorOrders
            | Route::OperatorBoard(_)
            | Route::OperatorExport(_)
            | Route::OperatorTakings(_)
            | Route::OperatorFigures(_)
            | Route::OperatorActions
            | Route::OperatorStuck
            | Route::OperatorAccounts
            | Route::OperatorWebhooks
            | Route::OperatorDisputes
            | Route::OperatorUnmatched
            | Route::TellUnmatched
            | Route::PaymentCallback(_)
            | Route::TakeCallback(_)
            | Route::OperatorCheckIn(_)
            | Route::OperatorCheckIns(_)
            | Route::OperatorReissue(_),
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

/// Shows the buyer's wallets, with every change of them.
async fn wallets(app: &App, request: &Request) -> Result<Answer<WalletsReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let statement = app.ports.orders().statement(buyer.user()).await?;
    Ok(Answer(WalletsReply::from(&statement)))
}

/// Shows the buyer's points and growth, with what each order has given.
async fn points(app: &App, request: &Request) -> Result<Answer<PointsReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let statement = app.ports.orders().points(buyer.user()).await?;
    Ok(Answer(PointsReply::from(&statement)))
}

/// Shows the tickets of the buyer's own order with their codes; any other is not found.
async fn tickets(
    app: &App,
    request: &Request,
    number: OrderNumber,
) -> Result<Answer<IssuedTicketsReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let order = own(app.ports.orders().get(number).await?, &buyer)?;
    let published = sale_of(&app.ports, &order.sale, Freshness::Cached).await?;
    Ok(Answer(IssuedTicketsReply::new(&app.tickets, &published.sale, &order)?))
}

/// Shows a signed page of the revoked tickets of a sale. A cancelled sale is one line.
async fn revoked(
    app: &App,
    request: &Request,
    id: &SaleId,
    now: Timestamp,
) -> Result<Cacheable<RevokedReply>, Problem> {
    let from: Option<OrderNumber> = checks::query(request, "from")?;
    let published = app.ports.catalogue().sale(id, Freshness::Fresh).await?;
    let published = published.ok_or(Refusal::NoSuchSale)?;
    let deployment = app.tickets.deployment();
    let list = match published.sale.file().state {
        SaleState::Cancelled => RevokedList::of_cancelled(deployment, id, now),
        SaleState::Open | SaleState::Paused => {
            let page = app.ports.orders().revoked(id, from, REVOKED).await?;
            RevokedList::new(deployment, id, from, &page, now)
        }
    };
    let body = RevokedReply { list: app.tickets.sign_list(&list)?, next: list.next };
    Ok(Cacheable { body, max_age_seconds: REVOKED_MAX_AGE_SECONDS })
}

/// The order with a number, if there is one and it is the buyer's.
fn own(order: Option<Order>, buyer: &Buyer) -> Result<Order, Problem> {
    let own = order.filter(|order| order.user == *buyer.user() && !order.is_tombstone());
    own.ok_or_else(problem::no_such_order)
}

/// Lists the buyer's orders, newest first, a page at a time, with the allowance that the buyer has left.
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

/// The allowance that the buyer has left in each sale of the page: one read of a count for each sale, side by side.
async fn allowances(app: &App, user: &UserId, page: &Page) -> Stored<Vec<AllowanceReply>> {
    let sales: BTreeSet<&SaleId> = page.orders.iter().map(|order| &order.sale).collect();
    try_join_all(sales.into_iter().map(|sale| AllowanceReply::read(&app.ports, sale, user))).await
}
