//! `POST /sales/{sale}/admissions`: a buyer asks the gate for an admission. `POST /sales/{sale}/visits`: a member of a
//! waiting room, whose place is due, begins to look at what there is.

mod place;

use engine::domain::admission::room::slot::Asking;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use engine::domain::sale::challenge::Stage;
use engine::flows::admit::{admit, check_open, check_starts};
use engine::flows::room::enter::Entrance;
use engine::ports::Published;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::challenges;
use shared::http::admission::{AdmissionBody, AdmissionReply};
use shared::http::identity::Buyer;
use shared::http::limits::{self, Passed};
use shared::http::respond::{Answer, Created, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::tokens::Grant;
use shared::http::visit::{VisitBody, VisitReply};
use shared::http::{Problem, checks, edge};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

use place::CheckedPlace;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    edge::answer(app, Function::TokenGate, &request, answer(app, &request, Timestamp::now())).await
}

async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    let route = Route::from_request(request);
    if let Ok(Route::BeginVisit(sale)) = &route {
        return respond(begin_visit(app, request, sale, now)).await;
    }
    let Ok(Route::Admit(sale)) = route else { return refuse(NoRoute) };
    respond(token_gate(app, request, &sale, now)).await
}

/// Begins the visit of the buyer's place, or says how long the one that has begun lasts. It uses up no attempt and asks
/// for no answer to a challenge.
async fn begin_visit(
    app: &App,
    request: &Request,
    sale: &SaleId,
    now: Timestamp,
) -> Result<Answer<VisitReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let body = VisitBody::read(request)?;
    let published = checks::sale(&app.ports, sale).await?;
    check_open(&published, now)?;
    let place = place::check(app, &published, Some(&body.place), &buyer, now).await?;
    let place = place.ok_or(checks::Refusal::NoRoom)?;
    let left_ms = place.begin(app, &buyer, now).await?;
    let ends_at = now.plus_ms(i64::try_from(left_ms).unwrap_or(i64::MAX));
    Ok(Answer(VisitReply { ends_at }))
}

/// Admits the buyer if the gate does. The token carries the number of the order that the buyer may make.
async fn token_gate(
    app: &App,
    request: &Request,
    sale: &SaleId,
    now: Timestamp,
) -> Result<Created<AdmissionReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let body = AdmissionBody::read(request)?;
    let published = checks::sale(&app.ports, sale).await?;
    let tickets = body.tickets(&published.sale)?;
    check_open(&published, now)?;
    let place = place::check(app, &published, body.place(), &buyer, now).await?;
    let Passed { harder, gave_up } =
        limits::check(app, request, &published.sale, &buyer, now).await?;
    let (stage, answer) = (Stage::Visit, body.challenge());
    let passed = challenges::check(app, &published, &buyer, stage, answer, harder, now).await?;
    let entrance = match let_in(app, &published, &buyer, place, tickets, now).await {
        Ok(entrance) => entrance,
        Err(problem) => {
            passed.give_back().await;
            return Err(problem);
        }
    };
    let mut grant = grant(app, &published.sale, &buyer, tickets, now);
    if let Some(Entrance { entry, attempt }) = entrance {
        grant.entry = Some(entry);
        grant.asking = Asking { attempt, gave_up };
    }
    Ok(Created(sign(app, grant, now)?))
}

/// Asks the gate, and admits the buyer if it does; writes the visit of the buyer's place last.
async fn let_in(
    app: &App,
    published: &Published,
    buyer: &Buyer,
    place: Option<CheckedPlace>,
    tickets: u16,
    now: Timestamp,
) -> Result<Option<Entrance>, Problem> {
    // Whose place in a room is due was let in by the room, which looks at the same.
    if place.is_none() {
        check_starts(&app.ports).await?;
    }
    admit(&app.ports, published, buyer.user(), tickets, now).await?;
    match place {
        Some(place) => Ok(Some(place.enter(app, buyer, now).await?)),
        None => Ok(None),
    }
}

fn grant(app: &App, sale: &Sale, buyer: &Buyer, tickets: u16, now: Timestamp) -> Grant {
    Grant {
        sale: sale.id().clone(),
        user: buyer.user().clone(),
        order: app.mint.mint(now, buyer.user()),
        tickets,
        expires_at: now.plus_seconds(i64::from(sale.file().gate.token_seconds)),
        entry: None,
        asking: Asking::default(),
    }
}

fn sign(app: &App, grant: Grant, now: Timestamp) -> Result<AdmissionReply, Problem> {
    let token = app.admissions.sign(&grant, now)?;
    let Grant { order, expires_at, tickets, .. } = grant;
    Ok(AdmissionReply { token, order, expires_at, tickets })
}
