//! `POST /sales/{sale}/places`, `GET /sales/{sale}/room` and what is below it, `GET /s/{sale}/room/plain`, and
//! `POST /sales/{sale}/room/commands`, also below `/operator`: a buyer joins a waiting room, everyone reads its
//! document and its log, and an operator runs it. A request for the room document makes a turn of the room if one is
//! due.

mod plain;

use std::sync::Arc;

use engine::domain::admission::room::code::{Code, CodeHash, MAX_CODES_TRIED};
use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::join::Membership;
use engine::domain::admission::room::leaves::Chunk;
use engine::domain::admission::room::serving::Room;
use engine::domain::admission::room::view::View;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use engine::domain::sale::challenge::Stage;
use engine::flows::room::bring::bring;
use engine::flows::room::enter;
use engine::flows::room::join::{JoinRequest, join, open_sale};
use engine::flows::room::left;
use engine::flows::room::turn::{command, turn};
use engine::flows::room::window::{GroupAt, drawn_window, place};
use engine::ports::{Ports as _, Published, Queue as _, RoomPorts as _, Rooms as _, StoreError};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::challenges;
use shared::http::identity::{Buyer, Operator, Scope, Unknown};
use shared::http::limits::{self, Passed};
use shared::http::operators::{self, Action, ActionKind};
use shared::http::place::{PlaceBody, PlaceReply};
use shared::http::respond::{
    Answer, Created, Html, Immutable, JsonLines, JsonText, refuse, respond,
};
use shared::http::room::{BroughtReply, CommandBody, RoundBody, WindowReply};
use shared::http::room_address::GroupAddress;
use shared::http::routes::{NoRoute, Route};
use shared::http::{Problem, checks, edge, problem};
use shared::runtime::app::{App, new_nonce, new_secret};
use shared::runtime::functions::Function;

/// The most records on a page of the log.
const MAX_RECORDS: u16 = 50;
/// The time for which caches may keep the room document, in seconds.
const MAX_AGE_SECONDS: u32 = 1;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    edge::answer(app, Function::WaitingRoom, &request, answer(app, &request, Timestamp::now()))
        .await
}

#[expect(clippy::too_many_lines, reason = "one arm for each route")]
async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    match Route::from_request(request) {
        Ok(Route::JoinRoom(sale)) => respond(join_room(app, request, sale, now)).await,
        Ok(Route::ShowRoom(sale)) => respond(show(app, &sale, now)).await,
        Ok(Route::ShowPlainRoom(sale)) => respond(show_plain(app, &sale, now)).await,
        Ok(Route::ShowRoomLog(sale)) => respond(log(app, request, &sale)).await,
        Ok(Route::ShowRoomLeaves(address)) => respond(leaves(app, &address)).await,
        Ok(Route::ShowRoomWindow(address)) => respond(window(app, &address)).await,
        Ok(Route::BringRound(sale)) => respond(bring_round(app, request, &sale, now)).await,
        Ok(Route::CommandRoom(sale)) => {
            let operator = Operator::from_request(request);
            respond(run_command(app, request, operator, &sale, now)).await
        }
        Ok(Route::OperatorCommand(sale)) => {
            let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Operate);
            respond(run_command(app, request, operator, &sale, now)).await
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
            | Route::OperatorPublish(_)
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
        )
        | Err(NoRoute) => refuse(NoRoute),
    }
}

/// The room of a sale, which must have one.
async fn room_of(app: &App, sale: &SaleId) -> Result<Arc<Room>, Problem> {
    let room = enter::room(&app.ports, &app.room_memory, sale).await?;
    Ok(room.ok_or(checks::Refusal::NoRoom)?)
}

/// The seats that are left of a sale; `None` if they are unknown, and then the room serves nobody.
async fn left_of(app: &App, sale: &Sale) -> Option<Left> {
    match left::left(&app.ports, sale).await {
        Ok(left) => left,
        Err(error) => {
            tracing::warn!(sale = %sale.id(), %error, "what is left is unknown");
            None
        }
    }
}

/// Makes the buyer a member of the room, or finds the buyer's earlier membership.
async fn join_room(
    app: &App,
    request: &Request,
    sale: SaleId,
    now: Timestamp,
) -> Result<Created<PlaceReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let PlaceBody { group, more_time, code, challenge } = PlaceBody::read(request)?;
    let published = checks::sale(&app.ports, &sale).await?;
    open_sale(&published, now)?;
    let Passed { harder, .. } = limits::check(app, request, &published.sale, &buyer, now).await?;
    let code = match code {
        Some(code) => Some(try_code(app, &sale, &group, &buyer, &code, now).await?),
        None => None,
    };
    let (stage, answer) = (Stage::Join, challenge.as_ref());
    let passed = challenges::check(app, &published, &buyer, stage, answer, harder, now).await?;
    let (buyer, nonce) = (buyer.user().clone(), new_nonce()?);
    let request = JoinRequest { sale, group, buyer, nonce, more_time, code };
    let joined = match join(&app.ports, &app.indices, &request, now).await {
        Ok(joined) => joined,
        Err(refusal) => {
            passed.give_back().await;
            return Err(refusal.into());
        }
    };
    let token = app.admissions.sign_place(&joined.membership, now)?;
    let place = place_of(app, &joined.membership, now).await;
    Ok(Created(PlaceReply::new(joined, place, token)))
}

/// The place of a member, if the member's window is drawn; `None` also if the place cannot be read now.
async fn place_of(app: &App, membership: &Membership, now: Timestamp) -> Option<u32> {
    let Membership { sale, group, index, .. } = membership;
    let found = async {
        let room = enter::room(&app.ports, &app.room_memory, sale).await?;
        let Some(room) = room else { return Ok(None) };
        let mut groups = room.settings.groups.iter();
        let Some(at) = groups.position(|known| known.group == *group) else { return Ok(None) };
        let view = enter::view(&app.ports, &app.room_memory, &room, now).await?;
        place(&app.ports, &app.room_memory, &view, GroupAt { sale, group, at }, index.number).await
    };
    found.await.unwrap_or_else(|error: StoreError| {
        tracing::warn!(%sale, %error, "a place is not known");
        None
    })
}

/// The hash of a code that a buyer tries. A code may be short, so a buyer may try only [`MAX_CODES_TRIED`] a day.
async fn try_code(
    app: &App,
    sale: &SaleId,
    group: &GroupId,
    buyer: &Buyer,
    code: &Code,
    now: Timestamp,
) -> Result<CodeHash, Problem> {
    let hash = code.hash(sale, group);
    let (tried, left_ms) = app.ports.counters().code_tried(sale, buyer.user(), hash).await?;
    if tried > MAX_CODES_TRIED {
        return Err(problem::too_many_codes(now.plus_ms(left_ms)));
    }
    Ok(hash)
}

/// Shows the room document.
async fn show(app: &App, id: &SaleId, now: Timestamp) -> Result<JsonText, Problem> {
    let (_, json) = shown(app, id, now).await?;
    Ok(JsonText { json, max_age_seconds: Some(MAX_AGE_SECONDS) })
}

/// Shows the room as a page without script.
async fn show_plain(app: &App, id: &SaleId, now: Timestamp) -> Result<Html, Problem> {
    let (published, json) = shown(app, id, now).await?;
    let room = serde_json::from_str(&json)
        .map_err(|error| StoreError::Contract(format!("the room document of {id}: {error}")))?;
    let markup = plain::page(&published.sale, &room);
    Ok(Html { markup, max_age_seconds: MAX_AGE_SECONDS })
}

/// A sale that has a room, and its room document. Makes a turn of the room if one is due.
async fn shown(app: &App, id: &SaleId, now: Timestamp) -> Result<(Published, String), Problem> {
    let sale = checks::sale(&app.ports, id).await?;
    if sale.lifecycle.is_over() {
        return Err(problem::sale_archived());
    }
    let room = room_of(app, id).await?;
    let turned = turn(&app.ports, &room, left_of(app, &sale.sale), now).await?;
    // If this message is lost, reconcile sends another.
    if turned.needs_draw
        && let Err(error) = app.ports.queue().draw(id, None).await
    {
        tracing::warn!(sale = %id, %error, "the draw was not requested");
    }
    Ok((sale, turned.shown.document))
}

/// Shows a page of the log: the very lines over which the hashes are computed.
async fn log(app: &App, request: &Request, sale: &SaleId) -> Result<JsonLines, Problem> {
    let from = checks::query(request, "from")?.unwrap_or(0);
    room_of(app, sale).await?;
    let records = app.ports.rooms().records(sale, from, MAX_RECORDS).await?;
    let is_full = records.len() == usize::from(MAX_RECORDS);
    Ok(JsonLines { lines: records.iter().map(|record| record.line()).collect(), is_full })
}

/// Shows a chunk of the leaves of a first window, with its path to the root.
async fn leaves(app: &App, address: &GroupAddress) -> Result<Immutable<Chunk>, Problem> {
    let GroupAddress { sale, group, number } = address;
    let rooms = app.ports.rooms();
    let tree = rooms.tree(sale, group).await?.ok_or(checks::Refusal::NotDrawn)?;
    let leaves = rooms.chunk(sale, group, *number).await?.ok_or(checks::Refusal::NotDrawn)?;
    let at = usize::try_from(*number).unwrap_or(usize::MAX);
    let chunk = Chunk::new(group, at, leaves, &tree.chunk_roots);
    Ok(Immutable(chunk.ok_or(checks::Refusal::NotDrawn)?))
}

/// Shows the window in which an index was drawn.
async fn window(app: &App, address: &GroupAddress) -> Result<Immutable<WindowReply>, Problem> {
    let GroupAddress { sale, group, number } = address;
    let room = room_of(app, sale).await?;
    let mut groups = room.settings.groups.iter();
    let at = groups.position(|known| known.group == *group).ok_or(checks::Refusal::NotDrawn)?;
    // Read from the log, which is never behind. Caches keep the answer for good, so few requests come here.
    let last = app.ports.rooms().last_record(sale).await?.ok_or(checks::Refusal::NotDrawn)?;
    let view = View::of(&last, false);
    let group = GroupAt { sale, group, at };
    let window = drawn_window(&app.ports, &app.room_memory, &view, group, *number).await?;
    Ok(Immutable(window.ok_or(checks::Refusal::NotDrawn)?.into()))
}

/// Takes a round of the beacon from anybody who sends one: only a valid signature is accepted.
async fn bring_round(
    app: &App,
    request: &Request,
    sale: &SaleId,
    now: Timestamp,
) -> Result<Answer<BroughtReply>, Problem> {
    let round = RoundBody::read(request)?;
    let brought = bring(&app.ports, sale, round, now).await?;
    Ok(Answer(brought.into()))
}

/// Carries out an operator's command, and returns the room document after it.
async fn run_command(
    app: &App,
    request: &Request,
    operator: Result<Operator, Unknown>,
    id: &SaleId,
    now: Timestamp,
) -> Result<JsonText, Problem> {
    let operator = operator?;
    let requested = CommandBody::read(request, Hash(new_secret()?.0))?;
    let sale = checks::sale(&app.ports, id).await?;
    let room = room_of(app, id).await?;
    let left = left_of(app, &sale.sale);
    let action = Action::new(ActionKind::CommandRoom).of_sale(id).with(format!("{requested:?}"));
    let work = async { Ok(command(&app.ports, &room, &requested, left, now).await??) };
    let shown = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(sale = %id, operator = operator.who(), command = ?requested, "commanded");
    Ok(JsonText { json: shown.document, max_age_seconds: None })
}
