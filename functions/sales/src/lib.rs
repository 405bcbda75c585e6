//! `PUT /sales/{sale}`, `GET /sales`, `GET /sales/{sale}` and `GET /sales/{sale}/availability`: an
//! operator puts a sale on sale, and everyone sees what is sold and what is left. `GET /openapi.json`
//! says how to ask for all of it.

use engine::domain::ids::{Legs, SaleId, TierId};
use engine::domain::time::Timestamp;
use engine::flows;
use engine::ports::{Catalogue as _, Freshness, Ports as _, Seats as _, Stored};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::identity::Operator;
use shared::http::reservation::journey;
use shared::http::respond::{
    Answer, Cacheable, Document, MAX_PUBLISH, Reply as _, refuse, respond, respond_within,
};
use shared::http::routes::{NoRoute, Route};
use shared::http::sale_reply::{AvailabilityReply, SaleReply, SaleSummary, SalesReply, tiers_on};
use shared::http::{Problem, checks, problem, sale_body};
use shared::runtime::app::{App, new_epoch};
use shared::runtime::functions::Function;

/// Time for which anyone may repeat what we say of a sale, in seconds.
const MAX_AGE_SECONDS: u32 = 1;

/// The API, described: it changes with a deployment, so that a cache may keep it a while.
const OPENAPI: Document =
    Document { json: include_str!("../../../docs/openapi.json"), max_age_seconds: 300 };

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    app.metrics.of(Function::Sales, answer(app, &request, Timestamp::now())).await
}

async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    match Route::from_request(request) {
        Ok(Route::ShowOpenApi) => OPENAPI.into_response(),
        Ok(Route::ListSales) => respond(list(app, now)).await,
        Ok(Route::PublishSale(sale)) => {
            respond_within(MAX_PUBLISH, publish(app, request, &sale, now)).await
        }
        Ok(Route::ShowSale(sale)) => respond(show(app, &sale, now)).await,
        Ok(Route::ShowAvailability(sale)) => respond(availability(app, request, &sale, now)).await,
        Ok(
            Route::Admit(_)
            | Route::Reserve(_)
            | Route::ListOrders
            | Route::ShowOrder(_)
            | Route::CancelOrder(_)
            | Route::PaymentCallback(_),
        )
        | Err(NoRoute) => refuse(NoRoute),
    }
}

/// Writes the operator's sale to the catalogue and to Redis.
async fn publish(
    app: &App,
    request: &Request,
    id: &SaleId,
    now: Timestamp,
) -> Result<Answer<SaleReply>, Problem> {
    let operator = Operator::from_request(request)?;
    let sale = sale_body::read(request, id)?;
    let published = flows::publish::publish(&app.ports, &sale, &new_epoch(now)?, now).await?;
    tracing::info!(sale = %id, operator = operator.arn(), version = published.version, "published");
    Ok(Answer(SaleReply::new(&published, now)))
}

/// Lists every sale.
async fn list(app: &App, now: Timestamp) -> Result<Cacheable<SalesReply>, Problem> {
    let body = SalesReply { sales: summaries(app, now).await? };
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}

async fn summaries(app: &App, now: Timestamp) -> Stored<Vec<SaleSummary>> {
    let mut summaries = Vec::new();
    for id in app.ports.catalogue().sales().await? {
        let published = app.ports.catalogue().sale(&id, Freshness::Cached).await?;
        summaries.extend(published.map(|published| SaleSummary::new(&published.sale, now)));
    }
    Ok(summaries)
}

/// Shows a sale.
async fn show(app: &App, id: &SaleId, now: Timestamp) -> Result<Cacheable<SaleReply>, Problem> {
    let published = checks::sale(&app.ports, id).await?;
    let body = SaleReply::new(&published, now);
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}

/// Shows what is left of a sale on one journey.
async fn availability(
    app: &App,
    request: &Request,
    id: &SaleId,
    now: Timestamp,
) -> Result<Cacheable<AvailabilityReply>, Problem> {
    let sale = checks::sale(&app.ports, id).await?.sale;
    let (from, to) = (checks::query(request, "from")?, checks::query(request, "to")?);
    let legs: Legs = journey(&sale, "from", from.as_ref(), to.as_ref())?;
    let tiers: Vec<TierId> = tiers_on(&sale, legs).map(|tier| tier.tier.clone()).collect();
    let taken = app.ports.seats().taken(id, &tiers, legs).await?;
    let body = AvailabilityReply::new(&sale, legs, &taken, now, MAX_AGE_SECONDS);
    let Some(body) = body else {
        flows::load::ask(&app.ports, id).await;
        return Err(problem::not_loaded());
    };
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}
