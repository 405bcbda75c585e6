//! The provider's HTTP API: forms in, JSON out, errors in Stripe's format.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use engine::domain::money::{Currency, MinorUnits, Money};
use engine::domain::time::Timestamp;
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::API_KEY;
use crate::Error;
use crate::account::{Accounts, Answer, LOST, RefundRequest, error};
use crate::faults::Fault;

/// The largest form; Stripe's are smaller.
const MAX_BODY_BYTES: usize = 64 * 1024;

type Shared = State<Arc<Accounts>>;
type Form = BTreeMap<String, String>;

/// Serves connections until `end`, then finishes the requests that are under way.
pub(crate) async fn serve(
    accounts: Arc<Accounts>,
    listener: TcpListener,
    end: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/v1/payment_intents", post(create_intent))
        .route("/v1/payment_intents/search", get(search))
        .route("/v1/refunds", post(create_refund).get(list_refunds))
        .route("/ledger", get(ledger))
        .route("/faults", post(plan_faults))
        // The route's former name.
        .route("/mischief", post(plan_faults))
        .with_state(accounts);
    axum::serve(listener, router).with_graceful_shutdown(end).await
}

async fn create_intent(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
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
        let order = form.get("metadata[order]").and_then(|order| order.parse().ok());
        let Some(order) = order else { return Ok(missing("metadata[order]")) };
        let (id, amount) = (form.get("id"), Money { amount_minor, currency });
        let intent = accounts.capture(id.map(String::as_str), order, amount, Timestamp::now())?;
        Ok((200, intent.shown()))
    })
    .await
}

async fn search(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
        let query = form.get("query").map(String::as_str).unwrap_or_default();
        let order =
            query.strip_prefix("metadata['order']:'").and_then(|rest| rest.strip_suffix('\''));
        let Some(order) = order.and_then(|order| order.parse().ok()) else {
            let text = "This fake searches for metadata['order']:'<number>' only.";
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
                | Fault::LeaveRefundPending,
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

async fn create_refund(State(accounts): Shared, request: Request) -> Response {
    answered(request, |headers, form| {
        let Some(payment) = form.get("payment_intent") else {
            let text = "One of the following params should be provided: payment_intent.";
            return Ok(error(400, "invalid_request_error", Some("parameter_missing"), text));
        };
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        let request = RefundRequest {
            payment: payment.clone(),
            amount_minor: amount(&form),
            parameters: format!("{form:?}"),
            key: key.map(str::to_owned),
        };
        accounts.refund(request, Timestamp::now())
    })
    .await
}

async fn list_refunds(State(accounts): Shared, request: Request) -> Response {
    answered(request, |_, form| {
        let payment = form.get("payment_intent").map(String::as_str).unwrap_or_default();
        let found = accounts.refunds(payment);
        let list =
            json!({ "object": "list", "url": "/v1/refunds", "data": found, "has_more": false });
        Ok((200, list))
    })
    .await
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

/// Checks the key, reads the form of the body or the query, and writes the answer.
async fn answered(
    request: Request,
    answer: impl FnOnce(&HeaderMap, Form) -> Result<Answer, Error>,
) -> Response {
    let (parts, body) = request.into_parts();
    let bearer = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if bearer != Some(&format!("Bearer {API_KEY}")) {
        return written(error(401, "invalid_request_error", None, "Invalid API Key provided."));
    }
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY_BYTES).await else {
        return written(error(400, "invalid_request_error", None, "The body is too long."));
    };
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let form = form_urlencoded::parse(query).chain(form_urlencoded::parse(&body));
    let form: Form = form.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
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
