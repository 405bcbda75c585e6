//! The page of a trade, where a person pays, is slow, is refused, or leaves. It needs no script.

use axum::response::Response;
use engine::domain::basics::time::Timestamp;
use http::StatusCode;

use crate::page::{back_to, html};
use crate::trades::{State, Trade};

/// The page of a trade as it is now, with a line of text above its buttons.
pub(crate) fn show(trade: &Trade, now: Timestamp, text: &str) -> Response {
    let is_over = trade.terms.expires_ms <= now.ms();
    let (said, is_open) = match trade.state {
        State::Waiting if is_over => ("The time to pay is over.", false),
        State::Waiting => (text, true),
        State::Paying { .. } => ("Your payment is being made.", false),
        State::Paid { .. } => ("It is paid.", false),
        State::Closed { .. } => ("It is closed. Nothing was charged.", false),
    };
    let form = "<form method=\"post\">\
        <button name=\"action\" value=\"pay\">Pay</button> \
        <button name=\"action\" value=\"late\">Pay slowly</button> \
        <button name=\"action\" value=\"refuse\">Pay with an account that has no money</button> \
        <button name=\"action\" value=\"leave\">Leave</button></form>";
    let form = if is_open { form } else { "" };
    let Trade { number, terms, .. } = trade;
    let number: String = number.chars().filter(char::is_ascii_alphanumeric).collect();
    let (yuan, fen) = (terms.fen.0 / 100, terms.fen.0 % 100);
    let body = format!(
        "<h1>Payment</h1><p>Number {number}: ¥{yuan}.{fen:02}</p><p role=\"status\">{said}</p>{form}"
    );
    html(StatusCode::OK, &body)
}

/// The person goes back to the shop, if it has said where that is.
pub(crate) fn back(trade: &Trade) -> Response {
    back_to(trade.terms.return_url.as_deref())
}
