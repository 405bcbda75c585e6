//! Requests of every route, up to the flow that would answer them.

use engine::domain::basics::bytes::{Hash, MapHash};
use engine::domain::basics::ids::{Legs, SaleId, SeatName, StopId};
use engine::domain::basics::limits::{MAX_LINES_PER_ORDER, MAX_SEATS_PER_ORDER};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::order_refund::AskedBy;
use engine::domain::order::requested::{RequestedLine, fingerprint};
use engine::domain::payment::refund::RefundedTickets;
use engine::domain::sale::{Sale, Tier};
use engine::domain::ticket::MAX_TICKET;
use lambda_http::Request;
use serde_json::{Value, json};
use shared::http::accounts::DebtsCursor;
use shared::http::admission::AdmissionBody;
use shared::http::attendees::AttendeeKeys;
use shared::http::identity::{Buyer, Operator, Scope, Unknown};
use shared::http::order_refund::{BuyerRefundBody, OperatorAsks, OperatorRefundBody};
use shared::http::origin::Origin;
use shared::http::payment_start::PaymentBody;
use shared::http::pictures;
use shared::http::place::PlaceBody;
use shared::http::problem::{Kind, Problem};
use shared::http::reservation::{ReservationBody, journey};
use shared::http::respond::refuse;
use shared::http::room::{CommandBody, RoundBody};
use shared::http::room_address::GroupAddress;
use shared::http::routes::{NoRoute, Route};
use shared::http::sales_page::{MAX_SALES, SalesCursor, SitemapStart};
use shared::http::standing::StandingBody;
use shared::http::stops::{STOPS, StopsQuery};
use shared::http::ticket::{CheckInsBody, MAX_CHECK_INS, ReissueBody};
use shared::http::tokens::AdmissionKeys;
use shared::http::trains::{TRAINS, TrainsQuery};
use shared::http::visit::VisitBody;
use shared::http::{checks, figures, sale_body};
use shared::providers::stripe::event;
use shared::providers::stripe::signature::{PaymentSecrets, header};

use super::{sale_file, ticket_code};
use crate::sample::{NOW, provider, sale};
use crate::{Outcome, Target, must, request};

pub(crate) const REQUEST: Target = Target {
    name: "request",
    about: "A request as it is written (HTTP, with `buyer:` or `operator:` for the authorizer), to \
            each route: a refusal has a documented problem; what is accepted keeps every limit and \
            is the same once written by others.",
    run,
};

/// Most bytes of the refusal of anybody's request: it must not repeat what was sent.
const MAX_REFUSAL_BYTES: usize = 4096;

fn run(input: &[u8]) -> Outcome {
    request::read(input).map_or(Outcome::Refused, |request| respond(&request))
}

/// Does with a request what its function does before any store is asked.
pub(super) fn respond(request: &Request) -> Outcome {
    let route = Route::from_request(request);
    let outcome = match &route {
        Ok(route) => {
            check_route(request, route);
            answer(request, route)
        }
        Err(NoRoute) => Err(NoRoute.into()),
    };
    if let Err(problem) = &outcome {
        check_refusal(problem, matches!(route, Ok(Route::PublishSale(_))));
    }
    Outcome::from_accepted(outcome.is_ok())
}

#[expect(clippy::too_many_lines, reason = "one arm for each route")]
fn answer(request: &Request, route: &Route) -> Result<(), Problem> {
    match route {
        Route::ShowOpenApi
        | Route::ShowSale(_)
        | Route::ShowSalePage(_)
        | Route::ShowPicture(_)
        | Route::ShowDocument(_) => Ok(()),
        Route::ListSales => {
            let cursor: Option<SalesCursor> = checks::query(request, "cursor")?;
            let again = cursor.as_ref().map(|cursor| cursor.to_string().parse());
            assert_eq!(again, cursor.map(Ok), "a cursor is written as it is read");
            let most = checks::query_within(request, "limit", 1..=MAX_SALES)?;
            assert!(most.is_none_or(|most| (1..=MAX_SALES).contains(&most)));
            Ok(())
        }
        Route::PublishSale(id) => {
            Operator::from_request(request)?;
            let file = checks::parse(request.body());
            if !file.is_ok_and(|file| sale_file::is_large(&file)) {
                sale_file::check(&sale_body::read(request, id)?);
            }
            Ok(())
        }
        Route::ListTrains => {
            let asked = TrainsQuery::from_request(request)?;
            let again = asked.cursor.as_ref().map(|cursor| cursor.to_string().parse());
            assert_eq!(again, asked.cursor.map(Ok), "a cursor is written as it is read");
            assert!((1..=TRAINS).contains(&asked.limit) && asked.from != asked.to);
            Ok(())
        }
        Route::ListStops => {
            let asked = StopsQuery::from_request(request)?;
            let again = asked.cursor.as_ref().map(|cursor| cursor.to_string().parse());
            assert_eq!(again, asked.cursor.map(Ok), "a cursor is written as it is read");
            assert!((1..=STOPS).contains(&asked.limit));
            Ok(())
        }
        Route::OperatorStanding(_) => Ok(StandingBody::read(request).map(drop)?),
        Route::KeepPicture(hash) | Route::OperatorPicture(hash) => {
            Ok(pictures::read(request, *hash).map(drop)?)
        }
        Route::ShowSitemap => {
            let from: Option<SitemapStart> = checks::query(request, "from")?;
            let again = from.as_ref().map(|from| from.to_string().parse());
            assert_eq!(again, from.map(Ok), "a start is written as it is read");
            Ok(())
        }
        Route::ShowMap(_) => Ok(checks::query::<MapHash>(request, "v").map(drop)?),
        Route::ShowAvailability(id) => availability(request, sale(id.as_str())),
        Route::JoinRoom(_) => {
            Buyer::from_request(request)?;
            PlaceBody::read(request)?;
            Ok(())
        }
        Route::ShowRoom(_)
        | Route::ShowPlainRoom(_)
        | Route::ShowRoomLeaves(_)
        | Route::ShowRoomWindow(_) => Ok(()),
        Route::ShowRoomLog(_) => Ok(checks::query::<u64>(request, "from").map(drop)?),
        Route::BringRound(_) => Ok(RoundBody::read(request).map(drop)?),
        Route::CommandRoom(_) => {
            Operator::from_request(request)?;
            CommandBody::read(request, Hash([0; 32]))?;
            Ok(())
        }
        Route::BeginVisit(_) => {
            Buyer::from_request(request)?;
            VisitBody::read(request)?;
            Ok(())
        }
        Route::Admit(id) => {
            Buyer::from_request(request)?;
            let sale = sale(id.as_str());
            let tickets = AdmissionBody::read(request)?.tickets(sale)?;
            assert!((1..=sale.max_tickets_per_order()).contains(&tickets));
            Ok(())
        }
        Route::Reserve(id) => reserve(request, sale(id.as_str())),
        Route::ListOrders => {
            Buyer::from_request(request)?;
            checks::query::<OrderNumber>(request, "before")?;
            let most = checks::query_within(request, "limit", 1..=100)?;
            assert!(most.is_none_or(|most| (1..=100).contains(&most)));
            Ok(())
        }
        Route::ShowOrder(_)
        | Route::CancelOrder(_)
        | Route::ListRefunds(_)
        | Route::PayFromWallet(_)
        | Route::ShowWallets
        | Route::ShowPoints
        | Route::ShowTickets(_) => Ok(Buyer::from_request(request).map(drop)?),
        Route::StartPayment(_) => start_payment(request),
        Route::GiveBack(_) | Route::RefundOrder(_) | Route::OperatorRefund(_) => {
            refund_order(request, route)
        }
        Route::OperatorPublish(id) => {
            operator(request, Scope::Operate)?;
            let file = checks::parse(request.body());
            if !file.is_ok_and(|file| sale_file::is_large(&file)) {
                sale_file::check(&sale_body::read(request, id)?);
            }
            Ok(())
        }
        Route::OperatorCommand(_) => {
            operator(request, Scope::Operate)?;
            CommandBody::read(request, Hash([0; 32]))?;
            Ok(())
        }
        Route::OperatorCancel(_) => Ok(operator(request, Scope::Operate).map(drop)?),
        Route::ShowTicketKeys => Ok(()),
        Route::ShowRevoked(_) => Ok(checks::query::<OrderNumber>(request, "from").map(drop)?),
        Route::OperatorCheckIn(id) => {
            operator(request, Scope::Scan)?;
            let keys = ticket_code::keys();
            let read = CheckInsBody::read(request, &keys, id, NOW)?;
            assert!((1..=MAX_CHECK_INS).contains(&read.len()));
            Ok(())
        }
        Route::OperatorReissue(_) => {
            operator(request, Scope::Operate)?;
            let tickets = ReissueBody::read(request)?;
            assert!(tickets.iter().all(|ticket| (1..=MAX_TICKET).contains(&ticket.get())));
            Ok(())
        }
        Route::OperatorCheckIns(_) => {
            operator(request, Scope::Watch)?;
            checks::query::<bool>(request, "conflicts")?;
            Ok(checks::query::<String>(request, "after").map(drop)?)
        }
        Route::OperatorAccounts => {
            operator(request, Scope::Watch)?;
            checks::query::<SaleId>(request, "sale")?;
            checks::query::<bool>(request, "debts")?;
            if let Some(cursor) = checks::query::<DebtsCursor>(request, "cursor")? {
                assert_eq!(cursor.to_string().parse(), Ok(cursor));
            }
            Ok(())
        }
        Route::OperatorOrder(_)
        | Route::OperatorOrders
        | Route::OperatorBoard(_)
        | Route::OperatorExport(_)
        | Route::OperatorTakings(_)
        | Route::OperatorActions
        | Route::OperatorWebhooks
        | Route::OperatorDisputes
        | Route::OperatorUnmatched
        | Route::TellUnmatched
        | Route::OperatorStuck => Ok(operator(request, Scope::Watch).map(drop)?),
        Route::OperatorFigures(_) => {
            operator(request, Scope::Watch)?;
            figures::minutes(request)?;
            Ok(())
        }
        Route::PaymentCallback(_) | Route::TakeCallback(_) => callback(request),
    }
}

/// The operator of a token, if it is one of the operators' issuer.
fn operator(sent: &Request, scope: Scope) -> Result<Operator, Unknown> {
    Operator::with_scope(sent, Some(request::OPERATOR_ISSUER), scope)
}

fn availability(request: &Request, sale: &Sale) -> Result<(), Problem> {
    let from: Option<StopId> = checks::query(request, "from")?;
    let to: Option<StopId> = checks::query(request, "to")?;
    let legs = journey(sale, "from", from.as_ref(), to.as_ref())?;
    assert!(legs.to() <= sale.leg_count());
    assert_eq!(sale.stop(legs.from()), from.as_ref());
    Ok(())
}

/// Whoever is let through comes back to an origin that is listed, whatever a browser makes of the address.
fn start_payment(request: &Request) -> Result<(), Problem> {
    Buyer::from_request(request)?;
    let body: PaymentBody = checks::json_body(request, checks::MAX_BODY_BYTES)?;
    let listed = Origin::new("https://shop.example");
    let choice = body.choice(listed.as_slice())?;
    if let Some(url) = choice.return_url {
        let rest = must(url.as_str().get(20..).ok_or("too short"), "an address is long enough");
        assert!(url.as_str()[..20].eq_ignore_ascii_case("https://shop.example"), "{url}");
        let ends = rest.is_empty() || rest.starts_with(['/', '?', '#']) || rest.starts_with(":443");
        assert!(ends, "{url}");
    }
    Ok(())
}

/// A buyer names no amount; whoever names one names its currency; nobody is owed less than nothing.
fn refund_order(request: &Request, route: &Route) -> Result<(), Problem> {
    let is_buyers = matches!(route, Route::GiveBack(_));
    let read = if is_buyers {
        Buyer::from_request(request)?;
        OperatorAsks::Make(BuyerRefundBody::read(request)?)
    } else if matches!(route, Route::OperatorRefund(_)) {
        operator(request, Scope::Refund)?;
        OperatorRefundBody::read(request)?
    } else {
        Operator::from_request(request)?;
        OperatorRefundBody::read(request)?
    };
    let OperatorAsks::Make(read) = read else { return Ok(()) };
    assert!(read.amount.is_none_or(|amount| !is_buyers && amount.amount_minor >= MinorUnits::ZERO));
    assert_eq!(read.asked_by == AskedBy::Buyer, is_buyers);
    if let RefundedTickets::Named(named) = &read.tickets {
        assert!(named.len() <= MAX_SEATS_PER_ORDER);
    }
    Ok(())
}

fn callback(request: &Request) -> Result<(), Problem> {
    checks::check_size(request, checks::MAX_BODY_BYTES)?;
    let secrets = PaymentSecrets::new(provider(), [&b"whsec"[..]], 300);
    let payment = secrets.verify(header(request.headers()), request.body(), NOW)?;
    event::capture(&payment, None)?;
    Ok(())
}

fn reserve(request: &Request, sale: &Sale) -> Result<(), Problem> {
    let buyer = Buyer::from_request(request)?;
    let body = ReservationBody::read(request)?;
    let keys = AdmissionKeys::new([("a", &b"0123456789abcdef0123456789abcdef"[..])]);
    let admission = body.admission().and_then(|token| keys.check(token, sale.id(), &buyer, NOW));
    if let Err(defect) = admission {
        check_refusal(&defect.into(), false);
    }
    let hashing = AttendeeKeys::new([&b"fedcba9876543210fedcba9876543210"[..]]);
    let requested = body.requested(sale, &hashing)?;
    check_requested(sale, &requested);
    let again = ReservationBody::read(&written(sale, &requested));
    let again = must(
        must(again, "a request written anew is read").requested(sale, &hashing),
        "and accepted",
    );
    assert_eq!(again, requested, "a request written anew is another request");
    assert_eq!(fingerprint(&again, None), fingerprint(&requested, None));
    Ok(())
}

/// The limits that the scripts, the transaction and the prices rely on.
fn check_requested(sale: &Sale, requested: &[RequestedLine]) {
    assert!((1..=MAX_LINES_PER_ORDER).contains(&requested.len()));
    let tickets: usize = requested.iter().map(|requested| requested.line.choice.count()).sum();
    assert!((1..=MAX_SEATS_PER_ORDER).contains(&tickets));
    let mut attendees: Vec<_> =
        requested.iter().flat_map(|requested| &requested.attendees).collect();
    let named = attendees.len();
    attendees.sort();
    attendees.dedup();
    assert_eq!(attendees.len(), named, "somebody has two tickets");
    for (index, RequestedLine { line, price_minor, attendees }) in requested.iter().enumerate() {
        let tier = tier(sale, line);
        assert!(requested[..index].iter().all(|earlier| earlier.line.tier != line.tier));
        assert_eq!(tier.price_minor(line.legs), Some(*price_minor));
        assert!(line.legs.to() <= sale.leg_count());
        assert!(attendees.is_empty() || attendees.len() == line.choice.count());
        if let Choice::Seats(seats) = &line.choice {
            assert!(seats.is_sorted_by(|a, b| a < b), "{seats:?}");
            assert!(seats.iter().all(|seat| tier.layout.name(*seat).is_some()));
        }
    }
}

fn tier<'sale>(sale: &'sale Sale, line: &engine::domain::inventory::Line) -> &'sale Tier {
    sale.tier(&line.tier).unwrap_or_else(|| panic!("{} is no tier of the sale", line.tier))
}

/// The request that somebody else would have written for the same seats.
fn written(sale: &Sale, requested: &[RequestedLine]) -> Request {
    let line = |RequestedLine { line, attendees, price_minor: _ }: &RequestedLine| {
        let layout = &tier(sale, line).layout;
        let ids: Vec<_> = attendees.iter().map(|attendee| &attendee.id).collect();
        let mut json = json!({ "tier": line.tier, "attendees": ids });
        if let Some((from, to)) = stops(sale, line.legs) {
            json["from"] = json!(from);
            json["to"] = json!(to);
        }
        match &line.choice {
            Choice::Seats(seats) => {
                let names: Vec<Option<SeatName>> =
                    seats.iter().map(|seat| layout.name(*seat)).collect();
                json["seats"] = json!(names);
            }
            Choice::Best { count, together } => {
                let together = match together {
                    Together::Required => "required",
                    Together::Preferred => "preferred",
                };
                json["best"] = json!({ "count": count, "together": together });
            }
            Choice::Pattern { column, offsets } => {
                let letter = |away: i16| {
                    let index = i32::from(*column) + i32::from(away);
                    usize::try_from(index).ok().and_then(|index| layout.columns().get(index))
                };
                let others =
                    offsets.iter().map(|at| json!({ "column": letter(at.column), "row": at.row }));
                let places: Vec<Value> =
                    std::iter::once(json!({ "column": letter(0) })).chain(others).collect();
                json["pattern"] = json!(places);
            }
        }
        json
    };
    let lines: Vec<Value> = requested.iter().map(line).collect();
    let body = json!({ "lines": lines }).to_string();
    let text =
        format!("POST /sales/{}/orders\ncontent-type: application/json\n\n{body}", sale.id());
    let request = request::read(text.as_bytes());
    request.unwrap_or_else(|| panic!("{text} is no request"))
}

fn stops(sale: &Sale, legs: Legs) -> Option<(&StopId, &StopId)> {
    sale.stop(legs.from()).zip(sale.stop(legs.to()))
}

/// A route says the path that leads to it, but for what a stage puts before it.
#[expect(clippy::too_many_lines, reason = "one arm for each route")]
fn check_route(request: &Request, route: &Route) {
    let (method, path) = match route {
        Route::ShowOpenApi => ("GET", "/openapi.json".to_owned()),
        Route::ListSales => ("GET", "/sales".to_owned()),
        Route::PublishSale(sale) => ("PUT", format!("/sales/{sale}")),
        Route::ShowSale(sale) => ("GET", format!("/sales/{sale}")),
        Route::ShowAvailability(sale) => ("GET", format!("/sales/{sale}/availability")),
        Route::ListTrains => ("GET", "/trains".to_owned()),
        Route::ListStops => ("GET", "/stops".to_owned()),
        Route::ShowMap(sale) => ("GET", format!("/sales/{sale}/map")),
        Route::ShowSalePage(sale) => ("GET", format!("/s/{sale}")),
        Route::ShowSitemap => ("GET", "/sitemap.xml".to_owned()),
        Route::ShowPicture(hash) => ("GET", format!("/pictures/{hash}")),
        Route::KeepPicture(hash) => ("PUT", format!("/pictures/{hash}")),
        Route::OperatorPicture(hash) => ("PUT", format!("/operator/pictures/{hash}")),
        Route::ShowDocument(hash) => ("GET", format!("/documents/{hash}")),
        Route::OperatorStanding(sale) => ("POST", format!("/operator/sales/{sale}/commands")),
        Route::JoinRoom(sale) => ("POST", format!("/sales/{sale}/places")),
        Route::ShowRoom(sale) => ("GET", format!("/sales/{sale}/room")),
        Route::ShowPlainRoom(sale) => ("GET", format!("/s/{sale}/room/plain")),
        Route::ShowRoomLog(sale) => ("GET", format!("/sales/{sale}/room/log")),
        Route::ShowRoomLeaves(GroupAddress { sale, group, number }) => {
            ("GET", format!("/sales/{sale}/room/leaves/{group}/{number}"))
        }
        Route::ShowRoomWindow(GroupAddress { sale, group, number }) => {
            ("GET", format!("/sales/{sale}/room/windows/{group}/{number}"))
        }
        Route::BringRound(sale) => ("POST", format!("/sales/{sale}/room/beacon")),
        Route::CommandRoom(sale) => ("POST", format!("/sales/{sale}/room/commands")),
        Route::BeginVisit(sale) => ("POST", format!("/sales/{sale}/visits")),
        Route::Admit(sale) => ("POST", format!("/sales/{sale}/admissions")),
        Route::Reserve(sale) => ("POST", format!("/sales/{sale}/orders")),
        Route::ListOrders => ("GET", "/orders".to_owned()),
        Route::ShowOrder(order) => ("GET", format!("/orders/{order}")),
        Route::CancelOrder(order) => ("POST", format!("/orders/{order}/cancel")),
        Route::StartPayment(order) => ("POST", format!("/orders/{order}/payments")),
        Route::PayFromWallet(order) => ("POST", format!("/orders/{order}/payments/wallet")),
        Route::ShowWallets => ("GET", "/wallets".to_owned()),
        Route::ShowPoints => ("GET", "/points".to_owned()),
        Route::GiveBack(order) => ("POST", format!("/orders/{order}/refunds")),
        Route::ListRefunds(order) => ("GET", format!("/orders/{order}/refunds")),
        Route::RefundOrder(order) => ("POST", format!("/orders/{order}/refunds/operator")),
        Route::OperatorPublish(sale) => ("PUT", format!("/operator/sales/{sale}")),
        Route::OperatorCommand(sale) => ("POST", format!("/operator/sales/{sale}/room/commands")),
        Route::OperatorRefund(order) => ("POST", format!("/operator/orders/{order}/refunds")),
        Route::OperatorCancel(order) => ("POST", format!("/operator/orders/{order}/cancel")),
        Route::OperatorOrder(order) => ("GET", format!("/operator/orders/{order}")),
        Route::OperatorOrders => ("GET", "/operator/orders".to_owned()),
        Route::OperatorBoard(sale) => ("GET", format!("/operator/sales/{sale}/board")),
        Route::OperatorTakings(sale) => ("GET", format!("/operator/sales/{sale}/takings")),
        Route::OperatorExport(sale) => ("GET", format!("/operator/sales/{sale}/orders.csv")),
        Route::OperatorFigures(sale) => ("GET", format!("/operator/sales/{sale}/figures")),
        Route::OperatorActions => ("GET", "/operator/actions".to_owned()),
        Route::OperatorStuck => ("GET", "/operator/stuck".to_owned()),
        Route::OperatorAccounts => ("GET", "/operator/accounts".to_owned()),
        Route::OperatorWebhooks => ("GET", "/operator/webhooks".to_owned()),
        Route::OperatorDisputes => ("GET", "/operator/disputes".to_owned()),
        Route::OperatorUnmatched => ("GET", "/operator/unmatched".to_owned()),
        Route::TellUnmatched => ("POST", "/operator/unmatched".to_owned()),
        Route::ShowTickets(order) => ("GET", format!("/orders/{order}/tickets")),
        Route::ShowTicketKeys => ("GET", "/ticket-keys".to_owned()),
        Route::ShowRevoked(sale) => ("GET", format!("/sales/{sale}/revoked")),
        Route::OperatorCheckIn(sale) => ("POST", format!("/operator/sales/{sale}/check-ins")),
        Route::OperatorCheckIns(sale) => ("GET", format!("/operator/sales/{sale}/check-ins")),
        Route::OperatorReissue(order) => {
            ("POST", format!("/operator/orders/{order}/tickets/reissue"))
        }
        Route::PaymentCallback(provider) => ("POST", format!("/payments/{provider}/callback")),
        Route::TakeCallback(address) => {
            let (key, provider) = (address.key(), address.provider());
            ("POST", format!("/callbacks/{key}/{provider}"))
        }
    };
    assert_eq!(request.method().as_str(), method);
    assert_eq!(Route::parse(request.method(), &path).as_ref(), Ok(route));
}

/// A refusal is a problem document of a documented type, and never says that the fault is ours.
fn check_refusal(problem: &Problem, may_be_long: bool) {
    let kind = problem.kind();
    assert!(kind != Kind::Internal, "a caller has found a bug of ours: {problem:?}");
    assert!(Kind::ALL.contains(&kind));
    let response = refuse(problem.clone());
    assert_eq!(response.status(), kind.status());
    let content_type = response.headers().get("content-type").map(|value| value.as_bytes());
    assert_eq!(content_type, Some(&b"application/problem+json"[..]));
    assert_eq!(response.headers().contains_key("retry-after"), kind.has_retry_after());
    let document: Value = must(serde_json::from_slice(response.body()), "a problem is JSON");
    assert_eq!(document["type"], kind.uri());
    assert_eq!(document["status"], kind.status().as_u16());
    assert!(document["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    let bytes = response.body().len();
    assert!(may_be_long || bytes <= MAX_REFUSAL_BYTES, "{bytes} bytes refuse {problem:?}");
}
