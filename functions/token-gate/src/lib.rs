//! `POST /sales/{sale}/admissions`: a buyer asks to be let through the gate.

use engine::domain::challenge::Stage;
use engine::domain::sale::Sale;
use engine::domain::time::Timestamp;
use engine::flows::admit::{admit, check_open};
use engine::ports::Published;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::challenges;
use shared::http::admission::{AdmissionBody, AdmissionReply};
use shared::http::identity::Buyer;
use shared::http::respond::{Created, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::tokens::Grant;
use shared::http::{Problem, checks, limits};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = token_gate(app, &request, Timestamp::now());
    app.metrics.of(Function::TokenGate, respond(work)).await
}

/// Admits the buyer if the gate does, with the number of the order to be.
async fn token_gate(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Created<AdmissionReply>, Problem> {
    let Route::Admit(sale) = Route::from_request(request)? else { return Err(NoRoute.into()) };
    let buyer = Buyer::from_request(request)?;
    let body = AdmissionBody::read(request)?;
    let published = checks::sale(&app.ports, &sale).await?;
    let tickets = body.tickets(&published.sale)?;
    check_open(&published, now)?;
    let passed =
        challenges::check(app, &published, &buyer, Stage::Visit, body.challenge(), now).await?;
    if let Err(problem) = let_in(app, request, &published, &buyer, tickets, now).await {
        passed.give_back().await;
        return Err(problem);
    }
    Ok(Created(sign(app, grant(app, &published.sale, &buyer, tickets, now), now)?))
}

/// Lets the buyer in if limits, rules and the gate do.
async fn let_in(
    app: &App,
    request: &Request,
    published: &Published,
    buyer: &Buyer,
    tickets: u16,
    now: Timestamp,
) -> Result<(), Problem> {
    limits::check(app, request, &published.sale, buyer, now).await?;
    Ok(admit(&app.ports, published, buyer.user(), tickets, now).await?)
}

fn grant(app: &App, sale: &Sale, buyer: &Buyer, tickets: u16, now: Timestamp) -> Grant {
    Grant {
        sale: sale.id().clone(),
        user: buyer.user().clone(),
        order: app.mint.mint(now, buyer.user()),
        tickets,
        expires_at: now.plus_seconds(i64::from(sale.file().gate.token_seconds)),
    }
}

fn sign(app: &App, grant: Grant, now: Timestamp) -> Result<AdmissionReply, Problem> {
    let token = app.admissions.sign(&grant, now)?;
    let Grant { order, expires_at, tickets, .. } = grant;
    Ok(AdmissionReply { token, order, expires_at, tickets })
}
