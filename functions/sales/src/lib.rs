//! `PUT /sales/{sale}`, `PUT /operator/sales/{sale}`, `GET /sales`, `GET /sales/{sale}`, `GET /sales/{sale}/availability` and
//! `GET /sales/{sale}/map`: an operator publishes a sale, and everyone reads its terms, its map and the seats that are
//! left. `GET /s/{sale}` and `GET /sitemap.xml` are pages for whoever has no script, for link previews and search engines.
//! `PUT /pictures/{picture}`, `PUT /operator/pictures/{picture}`, `GET /pictures/{picture}` and
//! `GET /documents/{document}`: what belongs to events. `POST /operator/sales/{sale}/commands`: what is said of a sale while it
//! sells. `GET /trains` finds trains by day and stops, and `GET /stops` lists the stops of a day. `GET /openapi.json` describes the API.

mod sale_page;
mod sitemap;

use engine::domain::basics::bytes::{Hash, MapHash};
use engine::domain::basics::ids::{Legs, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::MapDocument;
use engine::domain::sale::attachment::AttachmentKind;
use engine::domain::sale::timetable::CallMark;
use engine::flows;
use engine::flows::publish::publish_with_room;
use engine::ports::{
    Catalogue as _, Freshness, ListedSale, Ports as _, RoomPorts as _, SalesPage, Stored,
};
use futures_util::future::try_join_all;
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::checks::Refusal;
use shared::http::identity::{Operator, Scope, Unknown};
use shared::http::operators::{self, Action, ActionKind};
use shared::http::pictures::{self, PictureReply};
use shared::http::reservation::journey;
use shared::http::respond::{
    Answer, Cacheable, Document, KeptFile, LargeJson, MAX_PUBLISH, Reply as _, refuse, respond,
    respond_within, takes_gzip,
};
use shared::http::routes::{NoRoute, Route, RouteName, Row};
use shared::http::sale_reply::{AvailabilityReply, SaleReply, SaleSummary, tiers_on};
use shared::http::sales_page::{MAX_SALES, SALES, SalesCursor, SalesReply};
use shared::http::standing::StandingBody;
use shared::http::stops::{StopsCursor, StopsQuery, StopsReply};
use shared::http::trains::{
    TrainReply, TrainsCursor, TrainsQuery, TrainsReply, journey as journey_of,
};
use shared::http::{Problem, checks, edge, problem, sale_body};
use shared::runtime::app::{App, new_epoch, new_secret};
use shared::runtime::functions::Function;

/// The time for which caches may keep the replies about a sale, in seconds.
const MAX_AGE_SECONDS: u32 = 1;

/// The OpenAPI document. It changes only with a deployment, so caches may keep it a while.
const OPENAPI: Document =
    Document { json: include_str!("../../../docs/openapi.json"), max_age_seconds: 300 };

/// The time for which caches may keep the list of the stops of a day, in seconds: it has what a whole day's timetable has,
/// and only a new train changes it.
const STOPS_MAX_AGE_SECONDS: u32 = 60;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    edge::answer(app, Function::Sales, &request, answer(app, &request, Timestamp::now())).await
}

#[expect(clippy::too_many_lines, reason = "one arm for each route")]
async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    match Route::from_request(request) {
        Ok(Route::ShowOpenApi) => OPENAPI.into_response(),
        Ok(Route::ListSales) => respond(list(app, request, now)).await,
        Ok(Route::PublishSale(sale)) => {
            let operator = Operator::from_request(request);
            respond_within(MAX_PUBLISH, publish(app, request, operator, &sale, now)).await
        }
        Ok(Route::OperatorPublish(sale)) => {
            let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Operate);
            respond_within(MAX_PUBLISH, publish(app, request, operator, &sale, now)).await
        }
        Ok(Route::OperatorStanding(sale)) => {
            respond_within(MAX_PUBLISH, say(app, request, &sale, now)).await
        }
        Ok(Route::ShowSale(sale)) => respond(show(app, &sale, now)).await,
        Ok(Route::ShowSalePage(sale)) => respond(sale_page::show(app, &sale, now)).await,
        Ok(Route::ShowSitemap) => respond(sitemap::show(app, request, now)).await,
        Ok(Route::ShowPicture(hash)) => respond(attachment(app, hash, AttachmentKind::Jpeg)).await,
        Ok(Route::ShowDocument(hash)) => {
            respond(attachment(app, hash, AttachmentKind::About)).await
        }
        Ok(Route::KeepPicture(hash)) => {
            respond(keep_picture(app, request, Operator::from_request(request), hash)).await
        }
        Ok(Route::OperatorPicture(hash)) => {
            let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Operate);
            respond(keep_picture(app, request, operator, hash)).await
        }
        Ok(Route::ShowMap(sale)) => respond(map(app, request, &sale)).await,
        Ok(Route::ListTrains) => respond(trains(app, request, now)).await,
        Ok(Route::ListStops) => respond(stops(app, request)).await,
        Ok(Route::ShowAvailability(sale)) => respond(availability(app, request, &sale, now)).await,
        Ok(
            Route::JoinRoom(_)
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
            | Route::ListOrders
            | Route::ShowOrder(_)
            | Route::CancelOrder(_)
            | Route::StartPayment(_)
            | Route::GiveBack(_)
            | Route::ListRefunds(_)
            | Route::PayFromWallet(_)
            | Route::ShowWallets
            | Route::ShowPoints
            | Route::RefundOrder(_)
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
            | Route::ShowTickets(_)
            | Route::ShowTicketKeys
            | Route::ShowRevoked(_)
            | Route::OperatorCheckIn(_)
            | Route::OperatorCheckIns(_)
            | Route::OperatorReissue(_),
        ) => refuse(NoRoute),
        Err(NoRoute) => match Row::of(request).map(|row| row.name) {
            // What stands there is no id of a sale. People are told so as of any sale that is not there.
            Some(RouteName::ShowSalePage) => {
                sale_page::refused(app, NoRoute.into()).into_response()
            }
            Some(_) | None => refuse(NoRoute),
        },
    }
}

/// Publishes the waiting room of the operator's sale, if it has one, and writes the sale to the catalogue and to
/// Redis.
async fn publish(
    app: &App,
    request: &Request,
    operator: Result<Operator, Unknown>,
    id: &SaleId,
    now: Timestamp,
) -> Result<Answer<SaleReply>, Problem> {
    let operator = operator?;
    let sale = sale_body::read(request, id)?;
    let draw_by = sale_body::draw_by(&sale, app.ports.beacon().chains(), new_secret)?;
    let epoch = new_epoch(now)?;
    let action = Action::new(ActionKind::Publish).of_sale(id);
    let work = async { Ok(publish_with_room(&app.ports, &sale, &epoch, &draw_by, now).await?) };
    let published = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(sale = %id, operator = operator.who(), version = published.version, "published");
    let reply = SaleReply::new(&published, now);
    let offers = app.ports.offers();
    Ok(Answer(reply.warned(&published, app.cache, app.starts_per_second, &offers)))
}

/// Changes what is said of a sale: paused, open, sold out, a notice.
async fn say(
    app: &App,
    request: &Request,
    id: &SaleId,
    now: Timestamp,
) -> Result<Answer<SaleReply>, Problem> {
    let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Operate)?;
    let standing = StandingBody::read(request)?;
    let epoch = new_epoch(now)?;
    let action = Action::new(ActionKind::Publish).of_sale(id).with(standing.to_string());
    let work = async {
        let said = flows::standing::say(&app.ports, id, &standing, &epoch, now).await?;
        Ok(said.ok_or(Refusal::NoSuchSale)?)
    };
    let published = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(sale = %id, operator = operator.who(), version = published.version, "said");
    Ok(Answer(SaleReply::new(&published, now)))
}

/// Lists the sales that are not archived, a page at a time: one query, however many there ever were.
async fn list(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Cacheable<SalesReply>, Problem> {
    let cursor: Option<SalesCursor> = checks::query(request, "cursor")?;
    let most = checks::query_within(request, "limit", 1..=MAX_SALES)?.unwrap_or(SALES);
    let after = cursor.as_ref().map(|SalesCursor(sale)| sale);
    let page = app.ports.catalogue().listed(after, most).await?;
    let next = page.next.clone().map(SalesCursor);
    let body = SalesReply { sales: summaries(app, page, now).await?, next };
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}

async fn summaries(app: &App, page: SalesPage, now: Timestamp) -> Stored<Vec<SaleSummary>> {
    let mut summaries = Vec::new();
    for ListedSale { sale, terms } in page.sales {
        match terms {
            Some(terms) => summaries.push(SaleSummary::listed(sale, terms, now)),
            // The sale was published before the list repeated terms: its file has them.
            None => {
                let published = app.ports.catalogue().sale(&sale, Freshness::Cached).await?;
                summaries.extend(published.map(|published| SaleSummary::new(&published, now)));
            }
        }
    }
    Ok(summaries)
}

async fn show(app: &App, id: &SaleId, now: Timestamp) -> Result<Cacheable<SaleReply>, Problem> {
    let published = checks::sale(&app.ports, id).await?;
    let body = SaleReply::new(&published, now);
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}

/// Lists the trains of a day between two stops, with the seats that are left on each train of the page.
async fn trains(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Cacheable<TrainsReply>, Problem> {
    let asked = TrainsQuery::from_request(request)?;
    let TrainsQuery { day, from, to, cursor, limit } = &asked;
    let after = cursor.as_ref().map(|TrainsCursor(mark)| mark);
    let page = app.ports.catalogue().trains(*day, from, to, after, now, *limit).await?;
    // Futures first and the join then: the compiler cannot follow a closure in it.
    let each: Vec<_> = page.calls.iter().map(|call| train(app, &asked, call, now)).collect();
    let trains = try_join_all(each).await?;
    let trains = trains.into_iter().flatten().collect();
    let next = page.next.map(TrainsCursor);
    let body = TrainsReply { date: *day, from: from.clone(), to: to.clone(), trains, next };
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}

/// Lists the stops of a day's trains, a page at a time: one query.
async fn stops(app: &App, request: &Request) -> Result<Cacheable<StopsReply>, Problem> {
    let StopsQuery { day, cursor, limit } = StopsQuery::from_request(request)?;
    let after = cursor.as_ref().map(|StopsCursor(mark)| mark);
    let page = app.ports.catalogue().stops(day, after, limit).await?;
    Ok(Cacheable { body: StopsReply::new(day, page), max_age_seconds: STOPS_MAX_AGE_SECONDS })
}

/// One train of a search; `None` if the train does not sell the journey. If the seats that are left cannot be read, the
/// reply leaves them out: a search is useful without them.
async fn train(
    app: &App,
    asked: &TrainsQuery,
    call: &CallMark,
    now: Timestamp,
) -> Result<Option<TrainReply>, Problem> {
    let published = app.ports.catalogue().sale(&call.sale, Freshness::Cached).await?;
    let Some(published) = published else { return Ok(None) };
    let Some(legs) = journey_of(&published, asked, call, now) else { return Ok(None) };
    let sale = &published.sale;
    let reading = app.availability.reading(sale, now).await;
    let reading = reading.inspect_err(|error| {
        tracing::warn!(sale = %call.sale, %error, "what is left is not known");
    });
    Ok(TrainReply::new(sale, legs, reading.ok().as_deref(), now))
}

/// Shows the map of a sale. A request that names the map's hash gets a reply that caches keep for good; a request
/// without a hash gets one that no cache keeps.
async fn map(app: &App, request: &Request, id: &SaleId) -> Result<LargeJson, Problem> {
    let asked: Option<MapHash> = checks::query(request, "v")?;
    let mut published = checks::sale(&app.ports, id).await?;
    if asked.is_some() && published.map != asked {
        // The map may have been published a moment ago: read the sale again, past the cache.
        let newest = app.ports.catalogue().sale(id, Freshness::Fresh).await?;
        published = newest.ok_or(Refusal::NoSuchSale)?;
    }
    if published.map.is_none() || asked.is_some_and(|asked| published.map != Some(asked)) {
        return Err(Refusal::NoSuchMap.into());
    }
    let document = app.ports.catalogue().map(id).await?;
    let document = document.filter(|document| asked.is_none_or(|asked| asked == document.hash));
    let MapDocument { json, .. } = document.ok_or(Refusal::NoSuchMap)?;
    Ok(LargeJson { json, is_final: asked.is_some(), may_compress: takes_gzip(request.headers()) })
}

/// Shows a picture or the document of an event. Its path is its hash, so that caches keep it for good.
async fn attachment(app: &App, hash: Hash, kind: AttachmentKind) -> Result<KeptFile, Problem> {
    let kept = app.ports.catalogue().attachment(hash).await?;
    let kept = kept.filter(|kept| kept.kind == kind).ok_or(Refusal::NoSuchAttachment)?;
    let media_type = match kind {
        AttachmentKind::About => "application/json",
        AttachmentKind::Jpeg => "image/jpeg",
    };
    Ok(KeptFile { bytes: kept.bytes, media_type })
}

/// Keeps an operator's picture under its hash. Nobody knows of it until a sale names it.
async fn keep_picture(
    app: &App,
    request: &Request,
    operator: Result<Operator, Unknown>,
    hash: Hash,
) -> Result<Answer<PictureReply>, Problem> {
    let operator = operator?;
    let (picture, reply) = pictures::read(request, hash)?;
    app.ports.catalogue().keep_attachment(&picture).await?;
    tracing::info!(picture = %hash, operator = operator.who(), bytes = reply.bytes, "kept");
    Ok(Answer(reply))
}

/// Shows the seats that are left in each tier of a sale on one journey.
async fn availability(
    app: &App,
    request: &Request,
    id: &SaleId,
    now: Timestamp,
) -> Result<Cacheable<AvailabilityReply>, Problem> {
    let published = checks::sale(&app.ports, id).await?;
    if published.lifecycle.is_over() {
        return Err(problem::sale_archived());
    }
    let sale = published.sale;
    let (from, to) = (checks::query(request, "from")?, checks::query(request, "to")?);
    let legs: Legs = journey(&sale, "from", from.as_ref(), to.as_ref())?;
    let reading = app.availability.reading(&sale, now).await?;
    let taken: Vec<Vec<u8>> =
        tiers_on(&sale, legs).map(|tier| reading.taken(&tier.tier, legs)).collect();
    let body = AvailabilityReply::new(&sale, legs, &taken, reading.as_of, MAX_AGE_SECONDS);
    let Some(body) = body else {
        flows::load::request_load(&app.ports, id).await;
        return Err(problem::not_loaded());
    };
    Ok(Cacheable { body, max_age_seconds: MAX_AGE_SECONDS })
}
