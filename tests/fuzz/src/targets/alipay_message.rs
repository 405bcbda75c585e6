//! What Alipay sends: notifications, which are forms, and answers.

use engine::domain::order::Capture;
use engine::domain::payment::ours::Reported;
use lambda_http::http::HeaderMap;
use serde_json::Value;
use shared::providers::EventDefect;
use shared::providers::alipay::queried;
use std::collections::BTreeMap;

use crate::merchants::{PROVIDERS, PUBLIC, VECTORS, provider, sign, text};
use crate::sample::NOW;
use crate::{Outcome, Target, signed};

pub(crate) const ALIPAY_MESSAGE: Target = Target {
    name: "alipay-message",
    about: "The input as a notification, and as an answer; as lines of name=value that Alipay signed, and as \
            the value of an answer that it signed; and as edits of a good notification and a good answer. \
            Trusted only if Alipay's key gives the signature of what it says.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let from_anyone = notified(input).is_some_and(|report| report.is_ok());
    let answer_of_anyone = queried(input, &*PUBLIC, &provider("alipay")).is_ok();

    let reported = form(input).is_some_and(|body| {
        let Some(report) = notified(body.as_bytes()) else {
            panic!("a form that Alipay signed is refused: {body}");
        };
        report.is_ok_and(|capture| capture.inspect(check).is_some())
    });
    let answered = answer(input).is_some_and(|body| {
        let read = queried(body.as_bytes(), &*PUBLIC, &provider("alipay"));
        capture_of(read).is_ok_and(|capture| capture.inspect(check).is_some())
    });
    forged(input);
    Outcome::from_accepted(from_anyone || answer_of_anyone || reported || answered)
}

pub(super) type Report = Result<Option<Capture>, String>;

/// What a notification reports; `None` if it is not trusted.
fn notified(body: &[u8]) -> Option<Report> {
    let name = provider("alipay");
    let callback = PROVIDERS.verify(&name, &HeaderMap::new(), body, NOW).ok()?;
    Some(capture_of(PROVIDERS.capture(&callback)))
}

/// The capture, whosever it is.
pub(super) fn capture_of(read: Result<Option<Reported>, EventDefect>) -> Report {
    let capture = read.map(|reported| reported.map(|one| one.capture));
    capture.map_err(|defect| defect.to_string())
}

fn check(read: &Capture) {
    assert!(read.amount.amount_minor.0 > 0 && read.amount.currency.to_string() == "CNY");
    assert!(read.attempt.is_some() && read.key.provider == provider("alipay"));
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// A form of lines of `name=value`, signed; `None` if they are no text or too many.
fn form(input: &[u8]) -> Option<String> {
    let lines = std::str::from_utf8(input).ok()?.split('\n');
    let mut parameters: BTreeMap<&str, &str> =
        lines.filter_map(|line| line.split_once('=')).take(100).collect();
    for name in ["sign", "sign_type", "charset"] {
        parameters.remove(name);
    }
    let pairs = |glue: fn(&str) -> String| -> Vec<String> {
        parameters.iter().map(|(name, value)| format!("{}={}", glue(name), glue(value))).collect()
    };
    let sign = sign(pairs(str::to_owned).join("&").as_bytes());
    let mut sent = pairs(escaped);
    sent.extend([format!("sign={}", escaped(&sign)), "sign_type=RSA2".to_owned()]);
    Some(sent.join("&"))
}

/// An answer to a query with a value that is JSON, signed.
fn answer(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok()?.trim();
    serde_json::from_str::<Value>(value).ok()?;
    let sign = sign(value.as_bytes());
    Some(format!(r#"{{"alipay_trade_query_response":{value},"sign":"{sign}"}}"#))
}

/// A notification that was edited says what it said, or is not trusted.
fn forged(edits: &[u8]) {
    let good = text(&VECTORS["alipay"]["notifications"][0]["body"]);
    let of = |body: &str| notified(body.as_bytes());
    let edited = signed::edited(&good, edits);
    if let Some(report) = of(&edited) {
        assert_eq!(Some(report), of(&good), "{edited}");
    }
    let Some(body) = answer(br#"{"code":"10000","msg":"Success"}"#) else {
        panic!("an answer is no JSON");
    };
    let edited = signed::edited(&body, edits);
    let read = queried(edited.as_bytes(), &*PUBLIC, &provider("alipay"));
    assert!(read.is_err(), "{edited}");
}
