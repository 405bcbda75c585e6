//! The page of a Checkout Session, where a person pays, is refused, or leaves. It needs no script.

use axum::body::Body;
use axum::response::Response;
use engine::domain::basics::time::Timestamp;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};

use crate::attempts::{Waiting, Waits};

/// The page of a session as it is now.
pub(crate) fn show(waiting: &Waiting, now: Timestamp) -> Response {
    let text = match waiting.state_at(now) {
        Waits::Open => "",
        Waits::Paid => "<p role=\"status\">It is paid.</p>",
        Waits::Closed => "<p role=\"status\">This page has expired. Nothing was charged.</p>",
    };
    document(waiting, text, waiting.state_at(now) == Waits::Open)
}

/// The page after a card was declined: the person may try again.
pub(crate) fn declined(waiting: &Waiting) -> Response {
    document(waiting, "<p role=\"alert\">Your card was declined.</p>", true)
}

/// The page of a session that is not there.
pub(crate) fn missing() -> Response {
    html(StatusCode::NOT_FOUND, "<p>There is no such payment.</p>")
}

/// Sends the person to an address; without one they stay here.
pub(crate) fn back_to(address: Option<&str>) -> Response {
    let Some(location) = address.and_then(|to| HeaderValue::from_str(to).ok()) else {
        return html(StatusCode::OK, "<p>You can close this page.</p>");
    };
    let mut response = html(StatusCode::SEE_OTHER, "");
    response.headers_mut().insert(LOCATION, location);
    response
}

fn document(waiting: &Waiting, text: &str, is_open: bool) -> Response {
    let form = "<form method=\"post\">\
        <button name=\"action\" value=\"pay\">Pay</button> \
        <button name=\"action\" value=\"refuse\">Pay with a card that is declined</button> \
        <button name=\"action\" value=\"leave\">Leave</button></form>";
    let form = if is_open { form } else { "" };
    // Neither needs escaping: a number, and an amount with its currency's letters.
    let order = waiting.metadata.order().map(|order| order.to_string()).unwrap_or_default();
    let amount = waiting.amount;
    let body =
        format!("<h1>Payment</h1><p>Order {order}: {amount}, in minor units.</p>{text}{form}");
    html(StatusCode::OK, &body)
}

pub(crate) fn html(status: StatusCode, body: &str) -> Response {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Test payment</title><main>{body}</main></html>"
    );
    let mut response = Response::new(Body::from(page));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}
