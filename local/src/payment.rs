//! The payment provider's part in trying things out: the event of a captured payment, signed as Stripe
//! signs.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use engine::domain::basics::money::Money;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::captures::ListLag;
use engine::domain::payment::grace::Grace;
use serde_json::{Value, json};
use shared::hex::to_hex;
use shared::providers::stripe::signature;

use crate::data_dir::Secrets;

use fake_payments::stated;
pub use fake_payments::{API_KEY, PROVIDER, PaymentProvider};

/// How long the search of an engine's own provider lags unless the engine is told otherwise, in seconds.
pub const SEARCH_LAG_SECONDS: u32 = 2;
/// The longest such lag, in seconds.
pub const MAX_SEARCH_LAG_SECONDS: u32 = Grace::MAX_SECONDS - BEYOND_LAG_SECONDS;
/// Seconds by which an engine's grace is longer than the lag.
const BEYOND_LAG_SECONDS: u32 = 3;
/// Path at the provider that captures a payment.
pub const CAPTURE_PATH: &str = "/v1/payment_intents";
/// Header of a callback's signature.
pub const SIGNATURE_HEADER: &str = "Stripe-Signature";

/// The grace of an engine whose provider's search lags by so many seconds; none beside one that does
/// not lag.
#[must_use]
pub fn grace(search_lag_seconds: u32) -> Grace {
    match search_lag_seconds.min(MAX_SEARCH_LAG_SECONDS) {
        0 => Grace::NONE,
        lag => Grace::from_seconds(lag + BEYOND_LAG_SECONDS).unwrap_or_default(),
    }
}

/// The lag of its provider's list that an engine is configured with: a second more, for whole seconds.
#[must_use]
pub fn list_lag(list_lag_seconds: u32) -> ListLag {
    let seconds = list_lag_seconds.saturating_add(1).min(ListLag::MAX_SECONDS);
    ListLag::from_seconds(seconds).unwrap_or_default()
}

/// The value of [`SIGNATURE_HEADER`] for a body.
#[must_use]
pub fn sign(secrets: &Secrets, body: &[u8], now: Timestamp) -> String {
    signature::sign(secrets.stripe.as_bytes(), body, now)
}

/// The form that captures a payment at the provider, URL-encoded.
#[must_use]
pub fn capture_form(payment: &str, order: OrderNumber, amount: Money) -> String {
    let currency = amount.currency.to_string().to_ascii_lowercase();
    form_urlencoded::Serializer::new(String::new())
        .append_pair("id", payment)
        .append_pair("amount", &stated(amount).to_string())
        .append_pair("currency", &currency)
        .append_pair("confirm", "true")
        .append_pair("metadata[order]", &order.to_string())
        .finish()
}

/// The path of the API that callbacks may be sent to.
#[must_use]
pub fn callback_path() -> String {
    format!("/payments/{PROVIDER}/callback")
}

/// The key of the entry of callbacks. It is made from the key of admissions, so that a data directory needs no
/// new secret, and says nothing of it.
#[must_use]
pub fn entry_key(secrets: &Secrets) -> String {
    let key = hmac::Key::new(HMAC_SHA256, secrets.admission.as_bytes());
    let tag = hmac::sign(&key, b"entry of callbacks");
    to_hex(tag.as_ref())
}

/// The path of the entry of callbacks.
#[must_use]
pub fn entry_path(secrets: &Secrets) -> String {
    format!("/callbacks/{}/{PROVIDER}", entry_key(secrets))
}

/// The event of a captured payment.
/// Source: <https://docs.stripe.com/api/events/types#event_types-payment_intent.succeeded>
#[must_use]
pub fn captured(payment: &str, order: OrderNumber, amount: Money, now: Timestamp) -> Value {
    json!({
        "id": format!("evt_{payment}"),
        "object": "event",
        "type": "payment_intent.succeeded",
        "created": now.ms().div_euclid(1000),
        "data": { "object": {
            "id": payment,
            "object": "payment_intent",
            "status": "succeeded",
            "amount": stated(amount),
            "amount_received": stated(amount),
            "currency": amount.currency.to_string().to_ascii_lowercase(),
            "metadata": { "order": order.to_string() },
        } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_is_longer_than_the_lag() {
        assert_eq!(grace(0), Grace::NONE);
        for lag in [1, SEARCH_LAG_SECONDS, MAX_SEARCH_LAG_SECONDS] {
            assert_eq!(grace(lag).seconds(), lag + 3);
        }
        assert_eq!((list_lag(0).seconds(), list_lag(1).seconds()), (1, 2));
        assert_eq!(list_lag(u32::MAX).seconds(), ListLag::MAX_SECONDS);
        assert_eq!(grace(u32::MAX).seconds(), Grace::MAX_SECONDS);
    }
}
