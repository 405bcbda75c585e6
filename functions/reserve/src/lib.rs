//! `POST /sales/{sale}/orders`: an admitted buyer orders seats.

use engine::domain::time::Timestamp;
use engine::flows;
use engine::flows::reserve::{Reservation, Reserved};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::identity::Buyer;
use shared::http::order_reply::OrderReply;
use shared::http::reservation::ReservationBody;
use shared::http::respond::{Created, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::tokens::{self, Admission};
use shared::http::{Problem, checks};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = reserve(app, &request, Timestamp::now());
    app.metrics.of(Function::Reserve, respond(work)).await
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
    let reservation = Reservation { published, number, user, lines };
    let reserved = order(app, &admission, &reservation, now).await?;
    Ok(Created(OrderReply::reserved(&reservation.published.sale, &reserved)))
}

/// A current admission makes the order; one that has run out still finds it.
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
