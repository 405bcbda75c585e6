//! The provider's HTTP API: forms in, JSON out, errors in Stripe's format.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use fake_limits::stripe::{self, Endpoint};
use fake_limits::table::{STRIPE_REASON, STRIPE_THROTTLED, Service};
use fake_limits::{Enforced, Now, Throttles};

use crate::Error;
use crate::account::{
    Accounts, Answer, CAPTURED, Expands, INVALID, LOST, RefundRequest, charged, error,
};
use crate::attempts::{Kind, WaitingRequest};
use crate::faults::Fault;
use crate::metadata::Metadata;
use crate::page;
use crate::webhook::Webhook;
use crate::{API_KEY, RESTRICTED_KEY, VERSION_HEADER};

/// The largest form; Stripe's are smaller.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Between two values of a parameter that is a list.
const LISTED: char = '\n';
/// Most types of events that are listed at once.
/// Source: <https://docs.stripe.com/api/events/list>
const MAX_TYPES: usize = 20;

type Shared = State<Arc<Accounts>>;
type Form = BTreeMap<String, String>;

/// Serves connections until `end`, then finishes the requests that are under way.
pub(crate) async fn serve(
    accounts: Arc<Accounts>,
    limits: Option<Enforced>,
    listener: TcpListener,
    end: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/v1/payment_intents", post(create_intent))
        .route("/v1/payment_intents/search", get(search))
        .route("/v1/payment_intents/{id}", get(show_intent))
        .route("/v1/payment_intents/{id}/cancel", post(cancel_intent))
        .route("/v1/payment_intents/{id}/confirm", post(confirm_intent))
        .route("/v1/checkout/sessions", post(create_session))
        .route("/v1/checkout/sessions/{id}", get(show_session))
        .route("/v1/checkout/sessions/{id}/expire", post(expire_session))
        .route("/pay/{id}", get(show_page).post(use_page))
        .route("/v1/refunds", post(create_refund).get(list_refunds))
        .route("/v1/events", get(list_events))
        .route("/v1/disputes/{id}", get(show_dispute))
        .route("/v1/balance_transactions", get(list_balance))
        .route("/ledger", get(ledger))
        .route("/settlement", get(settlement))
        .route("/calls", get(calls))
        .route("/notified", get(notified))
        .route("/faults", post(plan_faults))
        // The route's former name.
        .route("/mischief", post(plan_faults))
        // Every route stands above: those below would not be throttled.
        .route_layer(middleware::from_fn_with_state(Arc::new(Rates::new(limits)), throttle))
        .with_state(accounts);
    axum::serve(listener, router).with_graceful_shutdown(end).await
}

/// The rates of the account; none without limits.
struct Rates(Option<(Mutex<stripe::Account>, Throttles, Instant)>);

impl Rates {
    fn new(limits: Option<Enforced>) -> Self {
        Self(limits.map(|Enforced { quotas, throttles }| {
            let account = stripe::Account::new(quotas, Duration::ZERO);
            (Mutex::new(account), throttles, Instant::now())
        }))
    }

    /// Why a request is refused, if it is.
    fn refused(&self, method: &Method, path: &str) -> Option<stripe::Throttle> {
        let (_, _, started) = self.0.as_ref()?;
        self.refused_at(method, path, started.elapsed())
    }

    fn refused_at(&self, method: &Method, path: &str, now: Now) -> Option<stripe::Throttle> {
        let (account, throttles, _) = self.0.as_ref()?;
        let endpoint = endpoint(method, path)?;
        let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
        let throttle = account.admit(&endpoint, now).err()?;
        let reason = format!("{} ({})", throttle.reason(), endpoint.name());
        throttles.one(Service::Stripe.name(), &reason);
        Some(throttle)
    }
}

/// The endpoint of a request: its operation, whatever object it names. What is not the provider's own
/// API has none.
fn endpoint(method: &Method, path: &str) -> Option<Endpoint> {
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let (objects, object) = (parts.next()?, parts.next());
    // Objects below another name: `checkout/sessions`.
    let (objects, object) = match (objects, object) {
        ("checkout", Some("sessions")) => ("checkout/sessions", parts.next()),
        named => named,
    };
    Some(match (objects, object) {
        ("payment_intents" | "checkout/sessions", None) if method == Method::POST => Endpoint::Pay,
        (_, Some("search")) => Endpoint::Search,
        (_, None) => Endpoint::Other(format!("{method} {objects}")),
        (_, Some(_named)) => {
            let verb = parts.next().map_or_else(String::new, |verb| format!("/{verb}"));
            Endpoint::Other(format!("{method} {objects}/…{verb}"))
        }
    })
}

/// Refuses what comes too often, as Stripe does.
async fn throttle(State(rates): State<Arc<Rates>>, request: Request, next: Next) -> Response {
    let Some(throttle) = rates.refused(request.method(), request.uri().path()) else {
        return next.run(request).await;
    };
    let body = json!({ "error": {
        "code": "rate_limit",
        "doc_url": "https://stripe.com/docs/error-codes/rate-limit",
        "message": STRIPE_THROTTLED.text(),
        "type": "invalid_request_error",
    } });
    let mut response = written((429, body));
    let reason = http::HeaderValue::from_static(throttle.reason());
    response.headers_mut().insert(STRIPE_REASON.text(), reason);
    response
}

async fn create_intent(State(accounts): Shared, request: Request) -> Response {
    let base = base(&request);
    answered(request, |headers, form| {
        let missing = |name: &str| {
            let text = format!("Missing or invalid required param: {name}.");
            error(400, "invalid_request_error", Some("parameter_missing"), &text)
        };
        let stated = amount(&form).filter(|amount| *amount > MinorUnits::ZERO);
        let Some(amount_minor) = stated else {
            return Ok(missing("amount"));
        };
        let currency = form.get("currency").and_then(|code| Currency::new(code).ok());
        let Some(currency) = currency else { return Ok(missing("currency")) };
        let metadata = Metadata::read(&form, "metadata");
        let amount = match charged(amount_minor, currency) {
            Ok(amount) => amount,
            Err(refusal) => return Ok(refusal),
        };
        let id = form.get("id");
        if metadata.attempt().is_some() {
            accounts.count("create_intent");
            let request = waiting(Kind::Intent, metadata, amount, headers, &form);
            return accounts.wait(request, &base, Timestamp::now());
        }
        let id = id.map(String::as_str);
        let intent = accounts.capture(id, metadata, amount, Timestamp::now())?;
        Ok((200, intent.shown()))
    })
    .await
}

/// What a request that makes a payment which waits says.
fn waiting(
    kind: Kind,
    metadata: Metadata,
    amount: Money,
    headers: &HeaderMap,
    form: &Form,
) -> WaitingRequest {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    WaitingRequest {
        kind,
        metadata,
        client_reference_id: form.get("client_reference_id").cloned(),
        amount,
        expires_seconds: form.get("expires_at").and_then(|at| at.parse().ok()),
        success_url: form.get("success_url").cloned(),
        cancel_url: form.get("cancel_url").cloned(),
        parameters: format!("{form:?}"),
        key: key.map(str::to_owned),
    }
}

/// The address that a request came to.
fn base(request: &Request) -> String {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    format!("http://{}", host.unwrap_or("127.0.0.1"))
}

async fn create_session(State(accounts): Shared, request: Request) -> Response {
    let base = base(&request);
    answered(request, |headers, form| {
        accounts.count("create_session");
        let invalid = |name: &str| {
            let text = format!("Missing or invalid required param: {name}.");
            error(400, "invalid_request_error", Some("parameter_missing"), &text)
        };
        let price = |name: &str| form.get(&format!("line_items[0][price_data][{name}]"));
        let amount = price("unit_amount").and_then(|text| text.parse::<MinorUnits>().ok());
        let Some(amount_minor) = amount.filter(|amount| *amount > MinorUnits::ZERO) else {
            return Ok(invalid("line_items[0][price_data][unit_amount]"));
        };
        let Some(currency) = price("currency").and_then(|code| Currency::new(code).ok()) else {
            return Ok(invalid("line_items[0][price_data][currency]"));
        };
        if form.get("mode").is_none_or(|mode| mode != "payment") {
            return Ok(invalid("mode"));
        }
        if !form.contains_key("success_url") {
            return Ok(invalid("success_url"));
        }
        let metadata = Metadata::read(&form, "payment_intent_data[metadata]");
        let amount = match charged(amount_minor, currency) {
            Ok(amount) => amount,
            Err(refusal) => return Ok(refusal),
        };
        let request = waiting(Kind::Session, metadata, amount, headers, &form);
        accounts.wait(request, &base, Timestamp::now())
    })
    .await
}

async fn show_session(
    State(accounts): Shared,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let base = base(&request);
    answered(request, |_, _| Ok(accounts.show(Kind::Session, &id, &base, Timestamp::now()))).await
}

async fn expire_session(
    State(accounts): Shared,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let base = base(&request);
    answered(request, |_, _| {
        accounts.count("expire_session");
        accounts.close(Kind::Session, &id, &base, Timestamp::now())
    })
    .await
}

async fn show_intent(
    State(accounts): Shared,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let base = base(&request);
    answered(request, |_, _| Ok(accounts.show(Kind::Intent, &id, &base, Timestamp::now()))).await
}

async fn cancel_intent(
    State(accounts): Shared,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let base = base(&request);
    answered(request, |_, _| {
        accounts.count("cancel_intent");
        accounts.close(Kind::Intent, &id, &base, Timestamp::now())
    })
    .await
}

/// The buyer's form confirms the payment, here with the account's key.
async fn confirm_intent(
    State(accounts): Shared,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    answered(request, |_, _| match accounts.pay(&id, Timestamp::now())? {
        Some(intent) => {
            accounts.tell(&intent);
            Ok((200, intent.shown()))
        }
        None => {
            let code = Some("payment_intent_unexpected_state");
            Ok(error(400, "invalid_request_error", code, "It cannot be confirmed."))
        }
    })
    .await
}

/// The page of a session, for a person.
async fn show_page(State(accounts): Shared, Path(id): Path<String>) -> Response {
    match accounts.waiting(&id) {
        Some(waiting) => page::show(&waiting, Timestamp::now()),
        None => page::missing(),
    }
}

/// What a person does on it.
async fn use_page(State(accounts): Shared, Path(id): Path<String>, body: Bytes) -> Response {
    let Some(waiting) = accounts.waiting(&id) else { return page::missing() };
    let form: Form = form_urlencoded::parse(&body).into_owned().collect();
    let back = |address: Option<&String>| page::back_to(address.map(String::as_str));
    match form.get("action").map(String::as_str) {
        Some("pay") => match accounts.pay(&id, Timestamp::now()) {
            Ok(Some(intent)) => {
                accounts.tell(&intent);
                back(waiting.success_url.as_ref())
            }
            Ok(None) => page::show(&waiting, Timestamp::now()),
            Err(failed) => {
                tracing::error!(%failed, "the payment provider could not keep a payment");
                written(error(500, "api_error", None, "The change could not be kept."))
            }
        },
        Some("refuse") => page::declined(&waiting),
        Some(_) | None => back(waiting.cancel_url.as_ref()),
    }
}

/// The order that a search is for. Stripe combines clauses by `OR`, or by `AND`.
/// Source: <https://docs.stripe.com/search#query-structure-and-terminology>
fn searched(query: &str) -> Option<OrderNumber> {
    let mut numbers = query.split(" OR ").map(|clause| {
        let value = ["metadata['onsale_order']:'", "metadata['order']:'"]
            .iter()
            .find_map(|name| clause.strip_prefix(name))?;
        value.strip_suffix('\'')?.parse::<OrderNumber>().ok()
    });
    let first = numbers.next()??;
    numbers.all(|number| number == Some(first)).then_some(first)
}

async fn search(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
        accounts.count("search_captures");
        let query = form.get("query").map(String::as_str).unwrap_or_default();
        let Some(order) = searched(query) else {
            let text = "This fake searches for metadata['onsale_order']:'<number>' and \
                        metadata['order']:'<number>' only, the same number in both.";
            return Ok(error(400, "invalid_request_error", None, text));
        };
        let found = match accounts.search_fault() {
            Some(Fault::FailSearch) => {
                return Ok(error(500, "api_error", None, "The search is not available."));
            }
            Some(Fault::FindNothing) => Vec::new(),
            Some(
                Fault::FailRefund
                | Fault::LoseRefundAnswer
                | Fault::RefuseRefund
                | Fault::LeaveRefundPending
                | Fault::FailStart
                | Fault::FailList,
            )
            | None => accounts.found(order, Timestamp::now()),
        };
        let page = json!({
            "object": "search_result", "url": "/v1/payment_intents/search", "data": found,
            "has_more": false, "next_page": null,
        });
        Ok((200, page))
    })
    .await
}

/// The list of events, newest first: of captures, and of disputes if they are asked for too.
/// Source: <https://docs.stripe.com/api/events/list>
async fn list_events(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
        accounts.count("list_events");
        let invalid = |text: &str| Ok(error(400, "invalid_request_error", None, text));
        if accounts.list_fails() {
            return Ok(error(500, "api_error", None, "The list is not available."));
        }
        let kinds = form.get("types[]").or_else(|| form.get("type"));
        let kinds: Vec<&str> = kinds.map(|kinds| kinds.split(LISTED).collect()).unwrap_or_default();
        if kinds.is_empty() || kinds.len() > MAX_TYPES {
            return invalid("Between 1 and 20 types are listed at once.");
        }
        if !kinds.contains(&CAPTURED) {
            return invalid(
                "This fake lists payment_intent.succeeded, and what is asked for with it.",
            );
        }
        let number = |name: &str, default: i64| {
            form.get(name).map_or(Some(default), |text| text.parse().ok())
        };
        let (since, limit) = (number("created[gte]", 0), number("limit", 10));
        let limit = limit.filter(|limit| (1..=100).contains(limit));
        let (Some(since), Some(limit)) =
            (since, limit.and_then(|limit| usize::try_from(limit).ok()))
        else {
            return invalid("Invalid integer.");
        };
        let after = form.get("starting_after").map(String::as_str);
        let Some((data, has_more)) = accounts.events(&kinds, since, after, limit, Timestamp::now())
        else {
            let text = format!("No such event: '{}'", after.unwrap_or_default());
            return Ok(error(404, "invalid_request_error", Some("resource_missing"), &text));
        };
        let list =
            json!({ "object": "list", "url": "/v1/events", "data": data, "has_more": has_more });
        Ok((200, list))
    })
    .await
}

async fn show_dispute(
    State(accounts): Shared,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    answered(request, |_, form| {
        accounts.count("show_dispute");
        let is_expanded = form.get("expand[]").is_some_and(|what| what == "payment_intent");
        Ok(accounts.dispute(&id, is_expanded))
    })
    .await
}

async fn calls(State(accounts): Shared) -> Response {
    written((200, json!(accounts.calls())))
}

async fn notified(State(accounts): Shared) -> Response {
    let notified = accounts.webhook().map(Webhook::notified).unwrap_or_default();
    written((200, json!(notified)))
}

async fn create_refund(State(accounts): Shared, request: Request) -> Response {
    answered(request, |headers, form| {
        accounts.count("create_refund");
        let Some(payment) = form.get("payment_intent") else {
            let text = "One of the following params should be provided: payment_intent.";
            return Ok(error(400, "invalid_request_error", Some("parameter_missing"), text));
        };
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        let request = RefundRequest {
            payment: payment.clone(),
            amount_minor: amount(&form),
            refund: form.get("metadata[refund]").cloned(),
            parameters: format!("{form:?}"),
            key: key.map(str::to_owned),
        };
        accounts.refund(request, Timestamp::now())
    })
    .await
}

async fn list_refunds(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
        accounts.count("list_refunds");
        let payment = form.get("payment_intent").map(String::as_str).unwrap_or_default();
        let text = |name: &str| form.get(name).map(String::as_str);
        let limit = text("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10);
        let is_expanded = text("expand[]") == Some("data.payment_intent");
        let page = accounts.refunds(payment, text("starting_after"), limit, is_expanded);
        let Some((found, has_more)) = page else {
            let text = "No such refund: the one that was named in starting_after.";
            return Ok(error(400, "invalid_request_error", Some("resource_missing"), text));
        };
        let list =
            json!({ "object": "list", "url": "/v1/refunds", "data": found, "has_more": has_more });
        Ok((200, list))
    })
    .await
}

async fn list_balance(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
        accounts.count("list_balance");
        let text = |name: &str| form.get(name).map(String::as_str);
        let seconds = |name: &str, default: i64| {
            text(name).and_then(|seconds| seconds.parse().ok()).unwrap_or(default)
        };
        let period = seconds("created[gte]", 0)..seconds("created[lt]", i64::MAX);
        let limit = text("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10);
        let expanded: Vec<&str> = text("expand[]").unwrap_or_default().split(LISTED).collect();
        let expands = if expanded.contains(&"data.source.payment_intent") {
            Expands::SourceAndPayment
        } else if expanded.contains(&"data.source") {
            Expands::Source
        } else {
            Expands::Nothing
        };
        let page = accounts.balance(period, text("starting_after"), limit, expands);
        let Some((data, has_more)) = page.filter(|_| (1..=100).contains(&limit)) else {
            let text = "No such balance transaction, or an invalid limit.";
            return Ok(error(400, "invalid_request_error", Some("resource_missing"), text));
        };
        Ok((
            200,
            json!({
                "object": "list", "url": "/v1/balance_transactions", "data": data,
                "has_more": has_more,
            }),
        ))
    })
    .await
}

/// What Stripe would report of everything so far, as CSV.
async fn settlement(State(accounts): Shared) -> Response {
    match crate::settlement::stripe(accounts.movements()) {
        Ok(report) => report.into_response(),
        Err(failed) => written(error(500, "api_error", None, &failed.to_string())),
    }
}

async fn ledger(State(accounts): Shared) -> Response {
    written((200, json!(accounts.ledger())))
}

/// Plans faults: the body is a list of their names, in order.
async fn plan_faults(State(accounts): Shared, body: Bytes) -> Response {
    match serde_json::from_slice::<Vec<Fault>>(&body) {
        Ok(plan) => {
            plan.into_iter().for_each(|fault| accounts.next(fault));
            written((200, json!({})))
        }
        Err(wrong) => written(error(400, "invalid_request_error", None, &wrong.to_string())),
    }
}

/// True for a version of the API: the day of its release, and the name of the major one.
/// Source: <https://docs.stripe.com/api/versioning>
fn is_version(text: &str) -> bool {
    let (day, name) = text.split_once('.').unwrap_or((text, "first"));
    let parts: Vec<&str> = day.split('-').collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_day = parts.iter().map(|part| part.len()).eq([4, 2, 2]);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    is_day && is_name && parts.iter().all(|part| digits(part))
}

/// What is refused whatever is asked: an unknown key, no version, what a restricted key may not do.
/// Sources: <https://docs.stripe.com/api/errors>, <https://docs.stripe.com/keys#limit-access>
fn refused_at_the_door(parts: &Parts) -> Option<Answer> {
    let text_of = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let key = text_of(AUTHORIZATION.as_str()).and_then(|bearer| bearer.strip_prefix("Bearer "));
    if !key.is_some_and(|key| [API_KEY, RESTRICTED_KEY].contains(&key)) {
        return Some(error(401, INVALID, None, "Invalid API Key provided."));
    }
    if !text_of(VERSION_HEADER).is_some_and(is_version) {
        let text = "This fake wants to be told a version of the API (Stripe-Version).";
        return Some(error(400, INVALID, None, text));
    }
    if key == Some(RESTRICTED_KEY) && parts.uri.path().starts_with("/v1/disputes") {
        let text = "The provided key 'rk_test_***' does not have the required permissions for this \
                    endpoint. Having the 'rak_dispute_read' permission would allow this request to \
                    continue.";
        return Some(error(403, INVALID, None, text));
    }
    None
}

/// Checks the key, reads the form of the body or the query, and writes the answer.
async fn answered(
    request: Request,
    answer: impl FnOnce(&HeaderMap, Form) -> Result<Answer, Error>,
) -> Response {
    let (parts, body) = request.into_parts();
    if let Some(refusal) = refused_at_the_door(&parts) {
        return written(refusal);
    }
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY_BYTES).await else {
        return written(error(400, "invalid_request_error", None, "The body is too long."));
    };
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let form = form_urlencoded::parse(query).chain(form_urlencoded::parse(&body));
    let mut all = Form::new();
    for (name, value) in form {
        match all.get_mut(name.as_ref()).filter(|_| name.ends_with("[]")) {
            Some(list) => {
                list.push(LISTED);
                list.push_str(&value);
            }
            None => drop(all.insert(name.into_owned(), value.into_owned())),
        }
    }
    let form = all;
    match answer(&parts.headers, form) {
        Ok(answer) => written(answer),
        Err(failed) => {
            tracing::error!(%failed, "the payment provider could not keep a change");
            written(error(500, "api_error", None, "The change could not be kept."))
        }
    }
}

fn amount(form: &Form) -> Option<MinorUnits> {
    form.get("amount")?.parse().ok()
}

fn written((status, body): (u16, Value)) -> Response {
    if status == LOST {
        return lost();
    }
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// A response that breaks off before the first byte of its body.
fn lost() -> Response {
    let broken = std::io::Error::other("lost on purpose");
    Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(broken)])))
}

#[cfg(test)]
mod tests {
    use fake_limits::Quotas;

    use super::*;

    #[test]
    fn an_operation_is_an_endpoint_whatever_it_names() {
        let at = |method: Method, path: &str| endpoint(&method, path);
        assert_eq!(at(Method::POST, "/v1/payment_intents"), Some(Endpoint::Pay));
        assert_eq!(at(Method::GET, "/v1/payment_intents/search"), Some(Endpoint::Search));
        let other = |name: &str| Some(Endpoint::Other(name.to_owned()));
        assert_eq!(at(Method::POST, "/v1/refunds"), other("POST refunds"));
        let cancel = other("POST payment_intents/…/cancel");
        assert_eq!(at(Method::POST, "/v1/payment_intents/pi_1/cancel"), cancel);
        assert_eq!(at(Method::POST, "/v1/payment_intents/pi_2/cancel"), cancel);
        assert_eq!(at(Method::GET, "/ledger"), None);
    }

    #[test]
    fn a_version_is_a_day_and_perhaps_a_name() {
        for good in ["2026-10-28.endive", "2020-08-27"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "latest", "2026-10-28.", "2026-1-28", "2026-10-28.E", "26-10-28"] {
            assert!(!is_version(bad), "{bad:?}");
        }
    }

    #[test]
    fn searches_beyond_twenty_a_second_are_refused_and_counted() {
        let throttles = Throttles::default();
        let enforced = Enforced { quotas: Quotas::default(), throttles: throttles.clone() };
        let rates = Rates::new(Some(enforced));
        let ask = |now| rates.refused_at(&Method::GET, "/v1/payment_intents/search", now);
        let refused = |now| (0..200).filter_map(|_| ask(now)).count();
        assert_eq!((refused(Now::ZERO), refused(Now::from_secs(1))), (180, 180));
        assert_eq!(throttles.rows()[0].times, 360);
        assert!(Rates::new(None).refused(&Method::GET, "/v1/payment_intents/search").is_none());
    }
}
