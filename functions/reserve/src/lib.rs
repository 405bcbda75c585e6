//! `POST /sales/{sale}/orders`: an admitted buyer orders seats.

use std::time::Instant;

use engine::domain::admission::room::slot::MayAsk;
use engine::domain::basics::time::Timestamp;
use engine::flows;
use engine::flows::reserve::{Reservation, Reserved};
use engine::flows::room::enter;
use engine::flows::room::slot::{self, Became};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::identity::Buyer;
use shared::http::order_reply::OrderReply;
use shared::http::problem::{Kind, slot_is_busy};
use shared::http::reservation::ReservationBody;
use shared::http::respond::{Created, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::tokens::{self, Admission};
use shared::http::{Problem, checks, edge};
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::runtime::metrics;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = reserve(app, &request, Timestamp::now());
    edge::answer(app, Function::Reserve, &request, respond(work)).await
}

/// Makes the order that the buyer's admission is for, or finds the one that it has made.
async fn reserve(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Created<OrderReply>, Problem> {
    let Route::Reserve(sale) = Route::from_request(request)? else { return Err(NoRoute.into()) };
    let buyer = Buyer::from_request(request)?;
    let body = ReservationBody::read(request)?;
    let published = checks::sale(&app.ports, &sale).await?;
    let admission = app.admissions.check(body.admission()?, &sale, &buyer, now)?;
    let lines = body.requested(&published.sale, &app.attendees)?;
    admission.check_tickets(&lines)?;
    let (number, user) = (admission.order(), buyer.user().clone());
    let exchange = body.exchange()?;
    let reservation = Reservation { published, number, user, lines, exchange };
    let reserved = counted(app, &admission, &reservation, now).await?;
    Ok(Created(OrderReply::reserved(&reservation.published.sale, &reserved)))
}

/// Makes the order as [`order`] does. If the sale has a waiting room, also bounds the requests to the sale's slot and
/// counts the outcome of each: the room's turns read these counts.
async fn counted(
    app: &App,
    admission: &Admission,
    reservation: &Reservation,
    now: Timestamp,
) -> Result<Reserved, Problem> {
    let sale = &reservation.published.sale;
    let room = match sale.room() {
        Some(_) => enter::room(&app.ports, &app.room_memory, sale.id()).await?,
        None => None,
    };
    let Some(room) = room else { return order(app, admission, reservation, now).await };
    let asks = (&reservation.user, admission.asking());
    let refused = match slot::may_ask(&app.ports, &app.room_memory, &room, asks, now).await? {
        MayAsk::Yes => None,
        MayAsk::No { retry_ms } => Some(slot_is_busy(retry_ms)),
        MayAsk::Replaced => Some(tokens::Defect::Replaced.into()),
    };
    if let Some(problem) = refused {
        // If the order exists, it is read from DynamoDB, without a request to the sale's slot.
        return flows::reserve::repeat(&app.ports, reservation).await?.ok_or(problem);
    }
    let began = Instant::now();
    let result = order(app, admission, reservation, now).await;
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let became = match &result {
        Ok(Reserved { order, .. }) if order.created_at == now => {
            let held: usize = order.held_lines().iter().map(|line| line.seat_legs().count()).sum();
            Became::Order { held: u64::try_from(held).unwrap_or(u64::MAX) }
        }
        Ok(_) => Became::Answer,
        Err(problem) if problem.kind().status().is_server_error() => Became::Failure,
        Err(_) => Became::Answer,
    };
    if admission.entry().is_some()
        && result.as_ref().is_err_and(|problem| problem.kind() == Kind::SoldOut)
    {
        metrics::admitted_to_nothing(sale.id());
    }
    slot::report(&app.ports, &room, admission.entry(), became, took_ms, now).await;
    result
}

/// Makes the order if the admission is current. An expired admission still finds the order that it has made.
async fn order(
    app: &App,
    admission: &Admission,
    reservation: &Reservation,
    now: Timestamp,
) -> Result<Reserved, Problem> {
    if admission.is_current(now) {
        return Ok(flows::reserve::reserve(&app.ports, reservation, now).await?);
    }
    let repeated = flows::reserve::repeat(&app.ports, reservation).await?;
    Ok(repeated.ok_or(tokens::Defect::Expired)?)
}
