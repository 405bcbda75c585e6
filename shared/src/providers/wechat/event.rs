//! The event of a notification as a [`Reported`] capture.
//! (<https://pay.weixin.qq.com/docs/merchant/apis/native-payment/payment-notice.html>)

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::resource::{ApiV3Key, Resource};
use super::transaction::{Payee, Transaction};
use crate::http::checks::{Refusal, parse};
use crate::providers::EventDefect;
use engine::domain::payment::ours::Reported;

/// The type of the event that says that money was captured; every other is passed over.
const CAPTURED: &str = "TRANSACTION.SUCCESS";

/// What every event has.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an event, which is an object")]
struct Event {
    event_type: String,
    resource: Resource,
}

/// The capture that a notification reports; `None` for an event of another kind, or of a payment that is
/// none of ours.
///
/// # Errors
/// Returns an [`EventDefect`] if it cannot be opened, or if a capture lacks what it must say.
pub(super) fn capture(
    body: &[u8],
    keys: &[ApiV3Key],
    payee: Payee<'_>,
) -> Result<Option<Reported>, EventDefect> {
    let event: Event = read(body)?;
    if event.event_type != CAPTURED {
        return Ok(None);
    }
    let plain = event.resource.open(keys).map_err(|sealed| EventDefect(sealed.to_string()))?;
    read::<Transaction>(&plain)?.capture(payee)
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, EventDefect> {
    parse(json).map_err(|refusal: Refusal| EventDefect(refusal.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{text, vectors};

    fn read(body: &str, key: &str) -> Result<Option<Reported>, EventDefect> {
        let wechat = &vectors()["wechat"];
        let (merchant_id, app_id) = (text(&wechat["merchant_id"]), text(&wechat["app_id"]));
        let provider = "wechat".parse().unwrap();
        let payee =
            Payee { provider: &provider, merchant_id: &merchant_id, app_id: &app_id, own: None };
        capture(body.as_bytes(), &[ApiV3Key::read(key).unwrap()], payee)
    }

    #[test]
    fn a_notification_of_a_payment_is_a_capture_and_of_a_refund_is_none() {
        let wechat = &vectors()["wechat"];
        let key = text(&wechat["api_v3_key"]);
        let of = |index: usize| read(&text(&wechat["notifications"][index]["body"]), &key);
        let capture = of(0).unwrap().unwrap();
        assert_eq!(capture.capture.amount.to_string(), "110600 CNY");
        assert_eq!((of(1), of(2)), (Ok(Some(capture)), Ok(None)));
    }

    #[test]
    fn what_cannot_be_opened_or_read_is_a_defect() {
        let body = text(&vectors()["wechat"]["notifications"][0]["body"]);
        let key = text(&vectors()["wechat"]["api_v3_key"]);
        assert!(read(&body, &"x".repeat(32)).is_err());
        assert!(read(&body.replace("fdasflkja484", "fdasflkja485"), &key).is_err());
        for wrong in ["", "[]", "{}", r#"{"event_type":"TRANSACTION.SUCCESS"}"#, &body[1..]] {
            assert!(read(wrong, &key).is_err(), "{wrong:.30}");
        }
    }
}
