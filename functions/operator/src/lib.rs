//! `GET /operator/orders`, `GET /operator/orders/{order}`, `GET /operator/sales/{sale}/board`,
//! `GET /operator/sales/{sale}/orders.csv`, `GET /operator/sales/{sale}/takings`, `GET /operator/actions`, `GET /operator/stuck`,
//! `GET /operator/accounts`, `GET /operator/webhooks`, `GET /operator/disputes`, `GET /operator/unmatched` and
//! `GET /operator/sales/{sale}/check-ins`: an operator with a token watches sales, orders, money and doors.
//! `POST /operator/sales/{sale}/check-ins`: a door reports the tickets that it has scanned.
//! `POST /operator/orders/{order}/tickets/reissue`: an operator issues tickets of an order anew, with new codes.

mod export;

use std::collections::BTreeSet;

use engine::domain::basics::ids::{AttendeeId, ProviderId, SaleId, SeatName, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::Account;
use engine::domain::ledger::takings::Takings;
use engine::domain::order::Order;
use engine::flows::check_in::{Scan, check_in};
use engine::flows::reissue::reissue;
use engine::ports::{Board as _, BoardPorts as _, Orders as _, Ports as _, StoreError, block_of};
use futures_util::future::{try_join, try_join_all, try_join3};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use serde_json::{Map, Value};
use shared::debts;
use shared::dynamodb::is_mark;
use shared::events::progress_of_all;
use shared::http::accounts::{AccountsReply, DebtsCursor};
use shared::http::attendees::NoKey;
use shared::http::checks::Refusal;
use shared::http::disputes::DisputesReply;
use shared::http::edge;
use shared::http::identity::{Operator, Scope};
use shared::http::operators::{
    self, Action, ActionKind, ActionReply, ActionsReply, BoardReply, FoundOrderReply,
    FoundOrdersReply, OperatorOrderReply, Search, StuckReply, WebhooksReply,
};
use shared::http::order_reply::OrderReply;
use shared::http::respond::{Answer, Reply, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::takings::{self, TakingsReply};
use shared::http::ticket::{
    CheckInBoardReply, CheckInsBody, CheckInsReply, DoubleReply, ReissueBody, ReissuedReply,
};
use shared::http::unmatched::UnmatchedPageReply;
use shared::http::{Problem, checks, problem};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// The number of orders on a page, and of actions.
const PAGE: u16 = 50;
/// Work counts as overdue this many seconds after it was due: reconcile runs each minute.
const OVERDUE_SECONDS: i64 = 120;
/// Most characters of the mark of a page of actions.
const MAX_MARK_CHARS: usize = 40;

/// Most bytes of the mark of a page of check-ins: the key of one.
const MAX_DOUBLE_BYTES: usize = 96;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    let work = answer(app, &request, Timestamp::now());
    edge::answer(app, Function::Operator, &request, work).await
}

async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    let route = Route::from_request(request);
    if let Ok(Route::OperatorOrder(order)) = route {
        watched(app, request, show(app, order)).await
    } else if let Ok(Route::OperatorOrders) = route {
        watched(app, request, find(app, request)).await
    } else if let Ok(Route::OperatorBoard(sale)) = route {
        watched(app, request, board(app, &sale, now)).await
    } else if let Ok(Route::OperatorExport(sale)) = route {
        watched(app, request, export::orders(app, request, &sale)).await
    } else if let Ok(Route::OperatorTakings(sale)) = route {
        watched(app, request, takings(app, request, sale, now)).await
    } else if let Ok(Route::OperatorActions) = route {
        watched(app, request, actions(app, request)).await
    } else if let Ok(Route::OperatorStuck) = route {
        watched(app, request, stuck(app, now)).await
    } else if let Ok(Route::OperatorAccounts) = route {
        watched(app, request, accounts(app, request)).await
    } else if let Ok(Route::OperatorWebhooks) = route {
        watched(app, request, webhooks(app)).await
    } else if let Ok(Route::OperatorDisputes) = route {
        watched(app, request, disputes(app, request)).await
    } else if let Ok(Route::OperatorUnmatched) = route {
        watched(app, request, unmatched(app, request, now)).await
    } else if let Ok(Route::OperatorCheckIns(sale)) = route {
        watched(app, request, check_ins(app, request, &sale)).await
    } else if let Ok(Route::OperatorCheckIn(sale)) = route {
        respond(scanned(app, request, &sale, now)).await
    } else if let Ok(Route::OperatorReissue(order)) = route {
        respond(issued_anew(app, request, order, now)).await
    } else {
        refuse(NoRoute)
    }
}

/// Answers an operator with the scope `onsale/watch`, and refuses everybody else.
async fn watched<R: Reply>(
    app: &App,
    request: &Request,
    work: impl Future<Output = Result<R, Problem>>,
) -> Response<Body> {
    respond(async {
        Operator::with_scope(request, app.operator_issuer(), Scope::Watch)?;
        work.await
    })
    .await
}

/// Shows an order with its payments, its refunds and its facts.
async fn show(app: &App, number: OrderNumber) -> Result<Answer<OperatorOrderReply>, Problem> {
    let orders = app.ports.orders();
    let read = try_join3(orders.get(number), orders.payments(number), orders.order_refunds(number));
    let (order, payments, refunds) = read.await?;
    let order = order.filter(|order| !order.is_tombstone()).ok_or_else(problem::no_such_order)?;
    let shown = OrderReply::read(&app.ports, &order).await?;
    Ok(Answer(OperatorOrderReply::new(shown, &order, &payments, &refunds)))
}

/// The search that a request asks for: it names orders in exactly one way.
fn search(request: &Request) -> Result<Search, Refusal> {
    let order: Option<OrderNumber> = checks::query(request, "order")?;
    let buyer: Option<UserId> = checks::query(request, "buyer")?;
    let before: Option<OrderNumber> = checks::query(request, "before")?;
    let sale: Option<SaleId> = checks::query(request, "sale")?;
    let tier: Option<TierId> = checks::query(request, "tier")?;
    let seat: Option<SeatName> = checks::query(request, "seat")?;
    let attendee: Option<AttendeeId> = checks::query(request, "attendee")?;
    match (order, buyer, before, sale, tier, seat, attendee) {
        (Some(order), None, None, None, None, None, None) => Ok(Search::Order(order)),
        (None, Some(buyer), before, None, None, None, None) => Ok(Search::Buyer(buyer, before)),
        (None, None, None, Some(sale), Some(tier), Some(seat), None) => {
            Ok(Search::Seat(sale, tier, seat))
        }
        (None, None, None, Some(sale), None, None, Some(attendee)) => {
            Ok(Search::Attendee(sale, attendee))
        }
        _ => {
            let rule =
                "must name an order, a buyer, a sale with tier and seat, or a sale with attendee";
            Err(Refusal::invalid("query", rule))
        }
    }
}

async fn find(app: &App, request: &Request) -> Result<Answer<FoundOrdersReply>, Problem> {
    let orders = app.ports.orders();
    let (found, next) = match search(request)? {
        Search::Order(order) => (orders.get_many(&[order]).await?, None),
        Search::Buyer(buyer, before) => {
            let page = orders.of_user(&buyer, before, PAGE).await?;
            (page.orders, page.next)
        }
        Search::Seat(sale, tier, seat) => {
            let numbers = owners(app, &sale, &tier, &seat).await?;
            (orders.get_many(&numbers).await?, None)
        }
        Search::Attendee(sale, attendee) => {
            (named(app, &sale, &attendee).await?.into_iter().collect(), None)
        }
    };
    let mut found: Vec<Order> = found.into_iter().filter(|order| !order.is_tombstone()).collect();
    found.sort_by_key(|order| std::cmp::Reverse(order.number));
    let mut replies = Vec::with_capacity(found.len());
    for order in &found {
        let shown = OrderReply::read(&app.ports, order).await?;
        replies.push(FoundOrderReply { buyer: order.user.clone(), order: shown });
    }
    Ok(Answer(FoundOrdersReply { orders: replies, next }))
}

/// The orders that own a seat on any leg, and the orders that owned it until a refund.
async fn owners(
    app: &App,
    sale: &SaleId,
    tier: &TierId,
    seat: &SeatName,
) -> Result<Vec<OrderNumber>, Problem> {
    let published = checks::sale(&app.ports, sale).await?;
    let layout = published.sale.tier(tier).map(|tier| &tier.layout);
    let unknown = || Refusal::invalid("seat", "the sale has no such seat in this tier");
    let seat = layout.and_then(|layout| layout.seat(seat)).ok_or_else(unknown)?;
    let claims = app.ports.orders().block_claims(sale, tier, block_of(seat)).await?;
    let of_seat = claims.holders().filter(|(of, _)| *of == seat).map(|(_, order)| order);
    // A seat with so many refunded orders is too much for one search.
    let numbers: BTreeSet<OrderNumber> = of_seat.collect();
    Ok(numbers.into_iter().rev().take(PAGE.into()).collect())
}

/// The order whose ticket names an attendee, found by the hash under any key.
async fn named(app: &App, sale: &SaleId, id: &AttendeeId) -> Result<Option<Order>, Problem> {
    let no_key = |error: NoKey| StoreError::Contract(error.to_string());
    let attendee = app.attendees.attendee(sale, id).map_err(no_key)?;
    for hash in attendee.hashes {
        if let Some(number) = app.ports.operators().order_of_attendee(sale, hash).await? {
            return Ok(app.ports.orders().get(number).await?);
        }
    }
    Ok(None)
}

/// Shows a sale live: the seats that are available, the sold tickets that are counted so far, and the waiting room.
async fn board(app: &App, id: &SaleId, now: Timestamp) -> Result<Answer<BoardReply>, Problem> {
    let published = checks::sale(&app.ports, id).await?;
    let sale = &published.sale;
    let (totals, reading) = if published.lifecycle.is_over() {
        (app.ports.orders().statistics(id).await?, None)
    } else {
        let (statistics, reading) =
            (app.ports.orders().statistics(id), app.availability.reading(sale, now));
        let (totals, reading) = try_join(statistics, reading).await?;
        (totals, Some(reading))
    };
    let room: Option<Map<String, Value>> = match app.ports.board().shown(id).await? {
        Some(shown) => serde_json::from_str(&shown.document).ok(),
        None => None,
    };
    let taken = |tier: &TierId, legs| {
        reading.as_ref().map(|reading| reading.taken(tier, legs)).unwrap_or_default()
    };
    let as_of = reading.as_ref().map_or(now, |reading| reading.as_of);
    Ok(Answer(BoardReply::new(&published, &totals, taken, room, as_of)))
}

/// Shows the tickets sold and the money taken by a sale, minute by minute.
async fn takings(
    app: &App,
    request: &Request,
    sale: SaleId,
    now: Timestamp,
) -> Result<Answer<TakingsReply>, Problem> {
    let during = takings::period(request, now)?;
    let published = checks::sale(&app.ports, &sale).await?;
    let currency = published.sale.file().currency;
    let mut found = Takings::new(currency);
    let log = app.ports.orders().orders.0.log();
    log.of_sale(&sale, during.clone(), |records| {
        records.iter().for_each(|placed| found.add(&placed.record));
    })
    .await?;
    Ok(Answer(TakingsReply::new(sale, currency, &found, &during)))
}

/// Lists the actions of operators, latest first.
async fn actions(app: &App, request: &Request) -> Result<Answer<ActionsReply>, Problem> {
    let before: Option<String> = checks::query(request, "before")?;
    let is_mark = |mark: &String| {
        let is_known = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        (1..=MAX_MARK_CHARS).contains(&mark.len()) && mark.bytes().all(is_known)
    };
    if !before.as_ref().is_none_or(is_mark) {
        return Err(Refusal::invalid("before", "must be next of the page before").into());
    }
    let page = app.ports.operators().actions(before.as_deref(), PAGE).await?;
    let actions = page.actions.into_iter().map(ActionReply::from).collect();
    Ok(Answer(ActionsReply { actions, next: page.next }))
}

/// Shows the overdue work, and the number of messages in the dead-letter queues.
async fn stuck(app: &App, now: Timestamp) -> Result<Answer<StuckReply>, Problem> {
    let overdue = app.ports.operators().overdue(now.plus_seconds(-OVERDUE_SECONDS));
    let (overdue, letters) = try_join(overdue, app.ports.dead_letters()).await?;
    let dead_letters = letters.into_iter().map(|(queue, count)| (queue.as_str().to_owned(), count));
    Ok(Answer(StuckReply {
        overdue: overdue.count,
        oldest_due_at: overdue.oldest_due_at,
        dead_letters: dead_letters.collect(),
    }))
}

/// Shows the balances of ledger accounts: those of the deployment, that of a sale's merchant, or those that owe something.
async fn accounts(app: &App, request: &Request) -> Result<Answer<AccountsReply>, Problem> {
    let sale: Option<SaleId> = checks::query(request, "sale")?;
    let cursor: Option<DebtsCursor> = checks::query(request, "cursor")?;
    if checks::query(request, "debts")? == Some(true) {
        if sale.is_some() {
            return Err(Refusal::invalid("sale", "must be absent with debts").into());
        }
        let start = cursor.map_or(debts::Start::FIRST, |cursor| cursor.0);
        return Ok(Answer(debts::page(&app.ports, start).await?.into()));
    }
    if cursor.is_some() {
        return Err(Refusal::invalid("cursor", "must be absent without debts").into());
    }
    let accounts = match sale {
        Some(sale) => {
            let published = checks::sale(&app.ports, &sale).await?;
            vec![Account::Merchant(published.sale.merchant().merchant, sale)]
        }
        None => {
            let own = [
                Account::Fees,
                Account::Owed,
                Account::Bank,
                Account::Costs,
                Account::Disputed,
                Account::Explained,
            ];
            let providers: BTreeSet<ProviderId> =
                app.ports.offers().iter().map(|offer| offer.provider.clone()).collect();
            own.into_iter().chain(providers.into_iter().map(Account::Provider)).collect()
        }
    };
    let ledger = app.ports.orders().orders.0.ledger();
    let each = accounts
        .into_iter()
        .map(async |account| ledger.sums(&account).await.map(|found| (account.clone(), found)));
    Ok(Answer(AccountsReply::new(try_join_all(each).await?)))
}

/// Shows the progress of each webhook and of the event bus.
async fn webhooks(app: &App) -> Result<Answer<WebhooksReply>, Problem> {
    let log = app.ports.orders().orders.0.log();
    let all = progress_of_all(app.ports.webhooks(), app.ports.subscriptions(), &log).await?;
    Ok(Answer(WebhooksReply { webhooks: all }))
}

/// Lists the payments with an open dispute, or those whose disputes are all over, latest change first.
async fn disputes(app: &App, request: &Request) -> Result<Answer<DisputesReply>, Problem> {
    let is_open = match checks::query::<String>(request, "state")?.as_deref() {
        None | Some("open") => true,
        Some("over") => false,
        Some(_) => return Err(Refusal::invalid("state", "must be open or over").into()),
    };
    let before = mark(request)?;
    let page = app.ports.operators().disputed_page(is_open, before.as_deref(), PAGE).await?;
    Ok(Answer(page.into()))
}

/// The mark of the page that is asked for.
fn mark(request: &Request) -> Result<Option<String>, Refusal> {
    let before: Option<String> = checks::query(request, "before")?;
    if !before.as_deref().is_none_or(is_mark) {
        return Err(Refusal::invalid("before", "must be next of the page before"));
    }
    Ok(before)
}

/// Lists the payments of no order about which an operator is to decide, latest number first.
async fn unmatched(
    app: &App,
    request: &Request,
    now: Timestamp,
) -> Result<Answer<UnmatchedPageReply>, Problem> {
    let before = mark(request)?;
    Ok(Answer(UnmatchedPageReply::read(&app.ports, before.as_deref(), PAGE, now).await?))
}

/// Records the tickets that a door has scanned.
async fn scanned(
    app: &App,
    request: &Request,
    sale: &SaleId,
    now: Timestamp,
) -> Result<Answer<CheckInsReply>, Problem> {
    Operator::with_scope(request, app.operator_issuer(), Scope::Scan)?;
    let read = CheckInsBody::read(request, &app.tickets, sale, now)?;
    checks::sale(&app.ports, sale).await?;
    let scans: Vec<Scan> = read.iter().flatten().cloned().collect();
    let outcomes = check_in(&app.ports, sale, &scans).await?;
    Ok(Answer(CheckInsReply::new(&read, outcomes)))
}

/// Shows the check-in counts of a sale, and on request the tickets that were checked in more than once.
async fn check_ins(
    app: &App,
    request: &Request,
    sale: &SaleId,
) -> Result<Answer<CheckInBoardReply>, Problem> {
    let shows_conflicts: Option<bool> = checks::query(request, "conflicts")?;
    let after: Option<String> = checks::query(request, "after")?;
    if after.as_ref().is_some_and(|after| after.len() > MAX_DOUBLE_BYTES) {
        return Err(Refusal::invalid("after", "must be next of the page before").into());
    }
    checks::sale(&app.ports, sale).await?;
    let orders = app.ports.orders();
    let mut reply = CheckInBoardReply::new(sale, orders.check_ins(sale).await?);
    if shows_conflicts == Some(true) {
        let page = orders.doubles(sale, after.as_ref(), PAGE).await?;
        reply.conflicts = Some(page.doubles.into_iter().map(DoubleReply::from).collect());
        reply.next = page.next;
    }
    Ok(Answer(reply))
}

/// Issues tickets of an order anew, and records who asked for it.
async fn issued_anew(
    app: &App,
    request: &Request,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Answer<ReissuedReply>, Problem> {
    let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Operate)?;
    let tickets = ReissueBody::read(request)?;
    let named: Vec<String> = tickets.iter().map(ToString::to_string).collect();
    let named = if named.is_empty() { "all".to_owned() } else { named.join(", ") };
    let action = Action::new(ActionKind::Reissue).of_order(number);
    let action = action.with(format!("tickets: {named}"));
    let work = async { Ok(reissue(&app.ports, number, &tickets).await?) };
    let order = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(operator = operator.who(), order = %number, "tickets were issued anew");
    Ok(Answer(ReissuedReply::from(&order)))
}
