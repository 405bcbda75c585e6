//! What WeChat Pay sends: notifications, and the transactions in them and in its answers.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::order::Capture;
use serde_json::json;
use shared::providers::wechat::queried;

use super::admission_token::split;
use super::alipay_message::{Report, capture_of};
use crate::merchants::{PROVIDERS, PUBLIC, VECTORS, headers, provider, sign, text};
use crate::sample::NOW;
use crate::{Outcome, Target, must, signed};

pub(crate) const WECHAT_MESSAGE: Target = Target {
    name: "wechat-message",
    about: "The input as a signature and, from the second line on, the body of a notification; as a body \
            that WeChat Pay signed; as a transaction in an answer and, sealed, in a notification; and as \
            edits of a good notification. Trusted only if WeChat Pay's key gives the signature; a \
            transaction is the same capture in both, and when it is written by others.",
    run,
};

/// Nonce of a signature, and of a seal.
const NONCE: &str = "fdasflkja484";

fn run(input: &[u8]) -> Outcome {
    let (signature, body) = split(input);
    let from_anyone = std::str::from_utf8(signature)
        .is_ok_and(|signature| notified(signature, body).is_some_and(|report| report.is_ok()));

    let report = notified(&sign(&message(input)), input);
    let Some(report) = report else { panic!("a body that WeChat Pay signed is refused") };

    let answered = transaction(input);
    let event = sealed(input);
    let told = notified(&sign(&message(event.as_bytes())), event.as_bytes());
    // A notification is read more strictly than an answer (no key stands in it twice).
    match (&answered, told) {
        (Ok(answered), Some(Ok(told))) => assert_eq!(*answered, told),
        (Err(_), Some(Ok(told))) => panic!("{told:?} is no transaction in an answer"),
        (_, Some(Err(_))) => {}
        (_, None) => panic!("an event that WeChat Pay signed is refused"),
    }
    if let Ok(Some(capture)) = &answered {
        check(capture);
    }
    forged(input);
    let is_capture = answered.is_ok_and(|capture| capture.is_some());
    Outcome::from_accepted(from_anyone || report.is_ok() || is_capture)
}

fn message(body: &[u8]) -> Vec<u8> {
    let seconds = (NOW.ms() / 1000).to_string();
    [seconds.as_bytes(), NONCE.as_bytes(), body].map(|part| [part, b"\n"].concat()).concat()
}

/// What a notification with this signature reports; `None` if it is not trusted.
fn notified(signature: &str, body: &[u8]) -> Option<Report> {
    let seconds = (NOW.ms() / 1000).to_string();
    let headers = headers(&[
        ("wechatpay-timestamp", &seconds),
        ("wechatpay-nonce", NONCE),
        ("wechatpay-serial", &text(&VECTORS["wechat"]["key_id"])),
        ("wechatpay-signature", signature),
    ])?;
    let name = provider("wechat");
    let callback = PROVIDERS.verify(&name, &headers, body, NOW).ok()?;
    assert!(PUBLIC[0].verify(&message(body), signature), "trusted, and not signed");
    assert_eq!(callback.body(), body);
    Some(capture_of(PROVIDERS.capture(&callback)))
}

/// What a transaction in an answer reports.
fn transaction(json: &[u8]) -> Report {
    let wechat = &VECTORS["wechat"];
    let (merchant_id, app_id) = (text(&wechat["merchant_id"]), text(&wechat["app_id"]));
    capture_of(queried(json, &provider("wechat"), &merchant_id, &app_id))
}

/// The event of a payment with anything as its resource.
fn sealed(plain: &[u8]) -> String {
    let key = text(&VECTORS["wechat"]["api_v3_key"]);
    let key = LessSafeKey::new(must(UnboundKey::new(&AES_256_GCM, key.as_bytes()), "a key"));
    let nonce: [u8; 12] = must(NONCE.as_bytes().try_into(), "a nonce");
    let mut bytes = plain.to_vec();
    let nonce = Nonce::assume_unique_for_key(nonce);
    must(key.seal_in_place_append_tag(nonce, Aad::from("transaction"), &mut bytes), "a seal");
    let event = json!({
        "id": "EV-1", "event_type": "TRANSACTION.SUCCESS",
        "resource": {
            "algorithm": "AEAD_AES_256_GCM", "ciphertext": STANDARD.encode(bytes),
            "associated_data": "transaction", "nonce": NONCE,
        },
    });
    event.to_string()
}

/// A capture is read the same from another transaction that says no more than it.
fn check(read: &Capture) {
    assert!(read.amount.amount_minor.0 > 0 && read.amount.currency.to_string() == "CNY");
    let Some(attempt) = read.attempt else { panic!("{read:?} pays no attempt") };
    let wechat = &VECTORS["wechat"];
    let written = json!({
        "mchid": wechat["merchant_id"], "appid": wechat["app_id"], "trade_state": "SUCCESS",
        "out_trade_no": format!("{}-{attempt}", read.order), "transaction_id": read.key.payment,
        "amount": { "total": read.amount.amount_minor, "currency": "CNY" },
    });
    assert_eq!(transaction(written.to_string().as_bytes()).as_ref(), Ok(&Some(read.clone())));
}

/// A notification that was edited is not trusted.
fn forged(edits: &[u8]) {
    let good = &VECTORS["wechat"]["notifications"][0];
    let of = |name: &str| text(&good["headers"][name]);
    let body = text(&good["body"]);
    let edited = signed::edited(&body, edits);
    let headers = headers(&[
        ("wechatpay-timestamp", &of("Wechatpay-Timestamp")),
        ("wechatpay-nonce", &of("Wechatpay-Nonce")),
        ("wechatpay-serial", &of("Wechatpay-Serial")),
        ("wechatpay-signature", &of("Wechatpay-Signature")),
    ]);
    let Some(headers) = headers else { panic!("the vectors have no headers") };
    let trusted = PROVIDERS.verify(&provider("wechat"), &headers, edited.as_bytes(), NOW).is_ok();
    assert_eq!(trusted, edited == body, "{edited}");
}
