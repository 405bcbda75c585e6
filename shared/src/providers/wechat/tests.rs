//! One account against a server that signs as WeChat Pay does, and as others would.

use http::HeaderMap;
use serde_json::{Value, json};

use super::*;
use crate::providers::fake::{
    Asked, Fake, Reply, attempt, https, limits, order, part, record, refused_part,
    with_two_attempts, yuan,
};
use crate::providers::rsa::SigningKey;
use crate::providers::vectors::{NOW, headers, key, text, vectors, wechat_settings};
use crate::runtime::merchants::{Merchant, Merchants};
use engine::domain::basics::money::{Currency, Money};
use engine::domain::order::attempt::{PaymentMethod, PaymentStep};
use engine::ports::StoreError;

const PAYMENT: &str = "4200000000202701150000000001";
const KEY: &str = "169218430493097984-1";

fn account(url: &str) -> Wechat {
    let mut settings = wechat_settings();
    settings["url"] = json!(url);
    let document = json!({ "cn": settings }).to_string();
    let merchants = Merchants::read(document.as_bytes()).unwrap();
    let (name, merchant) = merchants.by_name.into_iter().next().unwrap();
    let Merchant::Wechat(merchant) = merchant else { unreachable!() };
    Wechat::new(name, merchant, None, 300, https(), &limits())
}

/// An answer that the key of a name signs.
fn signed_by(name: &str, status: u16, body: &str) -> Reply {
    let seconds = Timestamp::now().ms().div_euclid(1000).to_string();
    let message = format!("{seconds}\nn\n{body}\n");
    let signature = SigningKey::read(&key(name, "pkcs8_pem")).unwrap();
    let signature = signature.sign(message.as_bytes()).unwrap();
    let header = |name: &str, value: &str| (format!("Wechatpay-{name}"), value.to_owned());
    let headers = vec![
        header("Timestamp", &seconds),
        header("Nonce", "n"),
        header("Serial", &text(&vectors()["wechat"]["key_id"])),
        header("Signature", &signature),
    ];
    Reply { status, headers, body: body.to_owned() }
}

fn signed(status: u16, body: &Value) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    signed_by("platform", status, &body)
}

fn error(status: u16, code: &str) -> Reply {
    let body = json!({ "code": code, "message": "words" }).to_string();
    Reply { status, headers: Vec::new(), body }
}

/// The transaction of the vectors in a state.
fn transaction(state: &str) -> Value {
    let plain = text(&vectors()["wechat"]["notifications"][0]["plaintext"]);
    let mut transaction: Value = serde_json::from_str(&plain).unwrap();
    transaction["trade_state"] = json!(state);
    transaction
}

fn code() -> Attempt {
    attempt(PaymentMethod::Code, 900)
}

#[tokio::test]
async fn an_attempt_is_a_code_to_scan_and_the_same_request_each_time() {
    let fake = Fake::start(|_| signed(200, &json!({ "code_url": "weixin://x?pr=1" }))).await;
    let wechat = account(&fake.url);
    let (order, attempt) = (order(yuan(110_600)), code());
    for _ in 0..2 {
        let started = wechat.start(&order, &attempt).await.unwrap();
        let step = PaymentStep::Code("weixin://x?pr=1".to_owned());
        assert_eq!(started, StartReply::Started { reference: KEY.parse().unwrap(), step });
    }
    let [one, two] = fake.asked().try_into().unwrap();
    assert_eq!((&one.body, one.method.as_str()), (&two.body, "POST"));
    assert_eq!(one.target, "/v3/pay/transactions/native");
    assert!(one.authorization.starts_with("WECHATPAY2-SHA256-RSA2048 mchid=\"1900000001\","));
    assert_eq!(one.serial, text(&vectors()["wechat"]["key_id"]));
    assert_ne!(one.authorization, two.authorization, "each has a nonce of its own");
    let mut body: Value = serde_json::from_str(&one.body).unwrap();
    let expires: Timestamp = text(&body["time_expire"].take()).parse().unwrap();
    assert_eq!(expires.ms(), attempt.expires_at.ms() / 1000 * 1000);
    assert_eq!(
        body,
        json!({
            "appid": "wx8888888888888888", "mchid": "1900000001", "description": "演唱会门票",
            "out_trade_no": KEY, "time_expire": null,
            "notify_url": "https://api.example/callbacks/k/wechat",
            "amount": { "total": 110_600, "currency": "CNY" },
        })
    );
}

#[tokio::test]
async fn what_cannot_be_paid_so_is_refused_unasked() {
    let fake = Fake::start(|_| error(500, "SYSTEM_ERROR")).await;
    let wechat = account(&fake.url);
    let money = |amount: i64, currency: &str| Money {
        currency: Currency::new(currency).unwrap(),
        ..yuan(amount)
    };
    let mut tries =
        vec![(order(yuan(0)), code()), (order(yuan(1)), attempt(PaymentMethod::Code, 69))];
    for currency in ["EUR", "JPY", "KWD", "HKD"] {
        tries.push((order(money(500, currency)), code()));
    }
    for method in [PaymentMethod::Page, PaymentMethod::Form] {
        tries.push((order(yuan(1)), attempt(method, 900)));
    }
    for (order, attempt) in &tries {
        let refused = wechat.start(order, attempt).await;
        assert!(matches!(refused, Ok(StartReply::Refused(_))), "{attempt:?} {refused:?}");
    }
    let refund = wechat.refund(&record(PAYMENT, money(500, "EUR"))).await;
    assert!(matches!(refund, Ok(RefundReply::Refused(_))), "{refund:?}");
    assert_eq!(fake.asked(), []);
}

#[tokio::test]
async fn a_start_that_fails_says_what_may_have_happened() {
    let start = async |answer: fn(&Asked) -> Reply| {
        let fake = Fake::start(answer).await;
        account(&fake.url).start(&order(yuan(1)), &code()).await
    };
    let refused = start(|_| error(403, "OUT_TRADE_NO_USED")).await;
    assert_eq!(refused, Ok(StartReply::Refused("OUT_TRADE_NO_USED: words".to_owned())));
    for (answer, is_unknown) in [
        ((|_| error(500, "SYSTEM_ERROR")) as fn(&Asked) -> Reply, true),
        (|_| error(429, "FREQUENCY_LIMITED"), false),
        (|_| error(401, "SIGN_ERROR"), false),
        (|_| error(200, "no signature"), true),
        (|_| signed_by("merchant", 200, r#"{"code_url":"weixin://evil"}"#), true),
        (|_| signed_by("platform", 200, &" ".repeat(300_000)), true),
    ] {
        let failed = start(answer).await.unwrap_err();
        assert_eq!(matches!(failed, StoreError::Unknown(_)), is_unknown, "{failed}");
        assert!(failed.retryable() && !failed.to_string().contains("PRIVATE"), "{failed}");
    }
    let nowhere = account("http://127.0.0.1:1").start(&order(yuan(1)), &code()).await;
    assert!(matches!(nowhere, Err(StoreError::Unavailable(_))), "{nowhere:?}");
    let senseless = start(|_| signed(200, &json!({ "code": 1 }))).await;
    assert!(matches!(senseless, Err(StoreError::Contract(_))), "{senseless:?}");
}

/// What a close answers if the close itself and the query after it are answered so.
async fn close(
    closed: impl Fn() -> Reply + Send + Sync + 'static,
    found: impl Fn() -> Reply + Send + Sync + 'static,
) -> Stored<CloseReply> {
    let fake = Fake::start(move |asked: &Asked| {
        let path = "/v3/pay/transactions/out-trade-no/169218430493097984-1";
        match asked.method.as_str() {
            "POST" => {
                assert_eq!(
                    (asked.target.as_str(), asked.body.as_str()),
                    (&*format!("{path}/close"), r#"{"mchid":"1900000001"}"#)
                );
                closed()
            }
            _ => {
                assert_eq!(asked.target, format!("{path}?mchid=1900000001"));
                found()
            }
        }
    })
    .await;
    account(&fake.url).close(&order(yuan(110_600)), &code()).await
}

#[tokio::test]
async fn a_close_is_what_the_query_says_whatever_it_was_answered() {
    let in_state = |state: &'static str| move || signed(200, &transaction(state));
    let none = || error(404, "ORDER_NOT_EXIST");
    let done = || signed(204, &Value::Null);
    assert_eq!(close(done, in_state("CLOSED")).await, Ok(CloseReply::Closed));
    assert_eq!(
        close(|| error(400, "ORDER_CLOSED"), in_state("CLOSED")).await,
        Ok(CloseReply::Closed)
    );
    // A number that was never used is answered with 204 too.
    assert_eq!(close(done, none).await, Ok(CloseReply::Absent));
    for state in ["NOTPAY", "USERPAYING", "PAYERROR", "ACCEPT"] {
        assert_eq!(close(done, in_state(state)).await, Ok(CloseReply::NotYet), "{state}");
    }
    let paying = || signed(202, &json!({ "code": "USER_PAYING" }));
    assert_eq!(close(paying, in_state("USERPAYING")).await, Ok(CloseReply::NotYet));
    for state in ["SUCCESS", "REFUND"] {
        let Ok(CloseReply::Paid(capture)) =
            close(|| error(400, "ORDERPAID"), in_state(state)).await
        else {
            panic!("{state} is paid")
        };
        assert_eq!(capture.key.payment.as_str(), PAYMENT);
        assert_eq!((capture.amount, capture.attempt), (yuan(110_600), Some(code().number)));
    }
}

#[tokio::test]
async fn a_close_is_not_believed_without_proof() {
    let done = || signed(204, &Value::Null);
    let failed = |answer: fn() -> Reply, found: fn() -> Reply| async move {
        close(answer, found).await.unwrap_err()
    };
    let closed = || signed(200, &transaction("CLOSED"));
    let unsigned =
        failed(|| Reply { status: 204, headers: Vec::new(), body: String::new() }, closed);
    assert!(matches!(unsigned.await, StoreError::Unknown(_)));
    assert!(matches!(failed(|| error(500, "SYSTEM_ERROR"), closed).await, StoreError::Unknown(_)));
    assert!(matches!(
        failed(|| error(429, "FREQUENCY_LIMITED"), closed).await,
        StoreError::Limited(5)
    ));
    let forged = || signed_by("merchant", 200, &transaction("CLOSED").to_string());
    assert!(matches!(failed(done, forged).await, StoreError::Unavailable(_)));
    // Any server answers 404.
    let bare = || Reply { status: 404, headers: Vec::new(), body: "not found".to_owned() };
    assert!(matches!(failed(done, bare).await, StoreError::Contract(_)));
    let other = || {
        let mut other = transaction("CLOSED");
        other["out_trade_no"] = json!("169218430493097984-2");
        signed(200, &other)
    };
    assert!(matches!(failed(done, other).await, StoreError::Contract(_)));
    let foreign = || {
        let mut foreign = transaction("SUCCESS");
        foreign["mchid"] = json!("1900000002");
        signed(200, &foreign)
    };
    assert!(matches!(failed(done, foreign).await, StoreError::Contract(_)));
    let unknown = || signed(200, &transaction("PAID"));
    assert!(matches!(failed(done, unknown).await, StoreError::Contract(_)));
}

#[tokio::test]
async fn the_captures_of_an_order_are_those_of_its_attempts() {
    let fake = Fake::start(|asked| match asked.target.contains("-1?") {
        true => signed(200, &transaction("SUCCESS")),
        false => error(404, "ORDER_NOT_EXIST"),
    })
    .await;
    let wechat = account(&fake.url);
    let captures =
        wechat.captures(&with_two_attempts(order(yuan(110_600)), &code().choice)).await.unwrap();
    let payments: Vec<&str> = captures.iter().map(|one| one.capture.key.payment.as_str()).collect();
    assert_eq!((payments, fake.asked().len()), (vec![PAYMENT], 2));
}

fn refund(status: &str) -> Value {
    json!({
        "out_refund_no": format!("refund-{PAYMENT}"), "transaction_id": PAYMENT, "status": status,
        "amount": { "total": 500, "refund": 500, "currency": "CNY" },
    })
}

#[tokio::test]
async fn a_refund_is_asked_about_first_and_made_once() {
    let known = Fake::start(|_| signed(200, &refund("PROCESSING"))).await;
    let reply = account(&known.url).refund(&record(PAYMENT, yuan(500))).await;
    assert_eq!((reply, known.asked().len()), (Ok(RefundReply::Pending), 1));

    let fresh = Fake::start(|asked| match asked.method.as_str() {
        "POST" => signed(200, &refund("SUCCESS")),
        _ => error(404, "RESOURCE_NOT_EXISTS"),
    })
    .await;
    let reply = account(&fresh.url).refund(&record(PAYMENT, yuan(500))).await;
    assert_eq!(reply, Ok(RefundReply::Refunded));
    let [asked, made] = fresh.asked().try_into().unwrap();
    assert_eq!(asked.target, format!("/v3/refund/domestic/refunds/refund-{PAYMENT}"));
    assert_eq!(made.target, "/v3/refund/domestic/refunds");

    let refused = Fake::start(|asked| match asked.method.as_str() {
        "POST" => error(403, "NOT_ENOUGH"),
        _ => error(404, "RESOURCE_NOT_EXISTS"),
    })
    .await;
    let reply = account(&refused.url).refund(&record(PAYMENT, yuan(500))).await;
    assert_eq!(reply, Ok(RefundReply::Refused("NOT_ENOUGH: words".to_owned())));
    let another = Fake::start(|_| signed(200, &refund("SUCCESS"))).await;
    let reply = account(&another.url).refund(&record(PAYMENT, yuan(501))).await;
    assert!(matches!(reply, Err(StoreError::Contract(_))), "{reply:?}");
}

/// C1: whether a hand has sent the money back meanwhile, nobody can ask.
#[tokio::test]
async fn a_part_that_was_refused_is_not_sent_again_before_an_operator_says_so() {
    let fake = Fake::start(|_| error(404, "RESOURCE_NOT_EXISTS")).await;
    let payment = record(PAYMENT, yuan(500));
    let refused = refused_part(&payment, "NOT_ENOUGH: words");
    let reply = account(&fake.url).refund_part(&payment, &refused, MinorUnits::ZERO).await;
    assert_eq!(reply, Ok(RefundReply::Refused("NOT_ENOUGH: words".to_owned())));
    assert_eq!(fake.asked().iter().map(|asked| asked.method.as_str()).collect::<Vec<_>>(), ["GET"]);
    let again = Fake::start(|asked| match asked.method.as_str() {
        "POST" => error(403, "NOT_ENOUGH"),
        _ => error(404, "RESOURCE_NOT_EXISTS"),
    })
    .await;
    let _ = account(&again.url).refund_part(&payment, &part(&payment, 200), MinorUnits::ZERO).await;
    assert_eq!(again.asked().len(), 2, "one that is due is sent");
}

#[tokio::test]
async fn a_notification_is_verified_opened_and_checked() {
    let wechat = account("http://127.0.0.1:1");
    let [notification, bare, refund] =
        [0, 1, 2].map(|index| &vectors()["wechat"]["notifications"][index]);
    let read = |notification: &Value, headers: &HeaderMap| {
        let body = text(&notification["body"]).into_bytes();
        let verified = wechat.verify(headers, &body, NOW)?;
        assert_eq!(verified.provider().as_str(), "cn");
        Ok::<_, SignatureDefect>(wechat.capture(&verified))
    };
    let good = |notification: &Value| headers(&notification["headers"]);
    let capture = read(notification, &good(notification)).unwrap().unwrap().unwrap();
    assert_eq!(capture.capture.key.payment.as_str(), PAYMENT);
    assert_eq!(read(bare, &good(bare)), Ok(Ok(Some(capture))));
    assert_eq!(read(refund, &good(refund)), Ok(Ok(None)));
    // The signature is of another body.
    assert_eq!(read(notification, &good(refund)), Err(SignatureDefect::Mismatch));
    assert_eq!(read(notification, &HeaderMap::new()), Err(SignatureDefect::Missing));
    let huge = vec![b' '; MAX_BODY_BYTES + 1];
    let refused = wechat.verify(&good(notification), &huge, NOW).err();
    assert_eq!(refused, Some(SignatureDefect::Malformed));
    assert_eq!(wechat.acknowledgement(), None);
}

#[test]
fn nothing_secret_is_shown() {
    let shown = format!("{:?}", account("http://127.0.0.1:1"));
    for secret in ["PRIVATE", "MII", "0123456789abcdef"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
