//! One account against a server that signs as Alipay does, and as others would.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::providers::fake::{
    Asked, Fake, Reply, attempt, https, limits, order, part, record, refused_part,
    with_two_attempts, yuan,
};
use crate::providers::rsa::{SigningKey, VerifyingKey};
use crate::providers::vectors::{NOW, alipay_settings, key, text, vectors};
use crate::runtime::merchants::{Merchant, Merchants};
use engine::domain::basics::money::{Currency, Money};
use engine::domain::order::attempt::{PaymentMethod, PaymentStep};
use engine::ports::StoreError;

const PAYMENT: &str = "2027011522001473371000001";
const TRADE: &str = "169218430493097984_1";

fn account(url: &str) -> Alipay {
    let mut settings = alipay_settings();
    settings["url"] = json!(url);
    let document = json!({ "cn": settings }).to_string();
    let merchants = Merchants::read(document.as_bytes()).unwrap();
    let (name, merchant) = merchants.by_name.into_iter().next().unwrap();
    let Merchant::Alipay(merchant) = merchant else { unreachable!() };
    Alipay::new(name, merchant, None, https(), &limits())
}

fn form(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The parameters of a signed form or query, whose signature must be ours.
fn believed(text: &str) -> BTreeMap<String, String> {
    let mut parameters = form(text);
    let sign = parameters.remove("sign").unwrap();
    let signed: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let ours = VerifyingKey::read(&key("merchant", "public_pem")).unwrap();
    assert!(ours.verify(signed.join("&").as_bytes(), &sign), "{text}");
    parameters
}

fn business(parameters: &BTreeMap<String, String>) -> Value {
    serde_json::from_str(&parameters["biz_content"]).unwrap()
}

/// The answer to a call that the key of a name signs.
fn signed_by(name: &str, asked: &Asked, value: &Value) -> Reply {
    let method = believed(&asked.body)["method"].replace('.', "_");
    let sign = SigningKey::read(&key(name, "pkcs8_pem")).unwrap();
    let sign = sign.sign(value.to_string().as_bytes()).unwrap();
    let body = format!(r#"{{"{method}_response":{value},"sign":"{sign}"}}"#);
    Reply { status: 200, headers: Vec::new(), body }
}

fn done(asked: &Asked, more: &Value) -> Reply {
    let mut value = json!({ "code": "10000", "msg": "Success" });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    signed_by("platform", asked, &value)
}

fn failed(asked: &Asked, code: &str, sub_code: &str) -> Reply {
    let value = json!({ "code": code, "msg": "M", "sub_code": sub_code, "sub_msg": "words" });
    signed_by("platform", asked, &value)
}

fn trade(status: &str) -> Value {
    json!({ "out_trade_no": TRADE, "trade_no": PAYMENT, "trade_status": status, "total_amount": "1106.00" })
}

fn code() -> Attempt {
    attempt(PaymentMethod::Code, 900)
}

#[tokio::test]
async fn a_page_is_an_address_that_we_sign_and_the_same_one_each_time() {
    let alipay = account("http://127.0.0.1:1/gateway.do");
    let (order, attempt) = (order(yuan(110_600)), attempt(PaymentMethod::Page, 900));
    let started = alipay.start(&order, &attempt).await.unwrap();
    assert_eq!(alipay.start(&order, &attempt).await, Ok(started.clone()));
    let StartReply::Started { reference, step: PaymentStep::Page(url) } = started else {
        panic!("{started:?}")
    };
    assert_eq!(reference.as_str(), TRADE);
    let (gateway, query) = url.split_once('?').unwrap();
    assert_eq!(gateway, "http://127.0.0.1:1/gateway.do");
    let parameters = believed(query);
    assert_eq!(parameters["method"], "alipay.trade.page.pay");
    assert_eq!(parameters["return_url"], "https://shop.example/paid?order=7");
    assert_eq!(parameters["notify_url"], "https://api.example/payments/alipay/callback");
    assert_eq!(parameters["sign_type"], "RSA2");
    let mut business = business(&parameters);
    let expires = text(&business["time_expire"].take()).replace(' ', "T") + "+08:00";
    let expires: Timestamp = expires.parse().unwrap();
    assert_eq!(expires.ms(), attempt.expires_at.ms() / 1000 * 1000);
    assert_eq!(
        business,
        json!({
            "out_trade_no": TRADE, "product_code": "FAST_INSTANT_TRADE_PAY", "total_amount": "1106.00",
            "subject": "演唱会门票", "time_expire": null,
        })
    );
}

#[tokio::test]
async fn a_code_is_asked_for() {
    let qr_code = "https://qr.alipay.com/bax1";
    let fake = Fake::start(move |asked| {
        done(asked, &json!({ "out_trade_no": TRADE, "qr_code": qr_code }))
    })
    .await;
    let started = account(&fake.url)
        .start(&order(yuan(1)), &attempt(PaymentMethod::Code, 899))
        .await
        .unwrap();
    let step = PaymentStep::Code(qr_code.to_owned());
    assert_eq!(started, StartReply::Started { reference: TRADE.parse().unwrap(), step });
    let [asked] = fake.asked().try_into().unwrap();
    let parameters = believed(&asked.body);
    assert_eq!((asked.method.as_str(), &*parameters["method"]), ("POST", "alipay.trade.precreate"));
    let business = business(&parameters);
    assert_eq!(business["total_amount"], "0.01");
    assert_eq!(business["qr_code_timeout_express"], "14m", "never longer than the attempt");

    let other = Fake::start(|asked| {
        done(asked, &json!({ "out_trade_no": "7_1", "qr_code": "https://evil" }))
    })
    .await;
    let refused = account(&other.url).start(&order(yuan(1)), &code()).await;
    assert!(matches!(refused, Err(StoreError::Contract(_))), "{refused:?}");
}

#[tokio::test]
async fn what_cannot_be_paid_so_is_refused_unasked() {
    let alipay = account("http://127.0.0.1:1");
    let money = |amount: i64, currency: &str| Money {
        currency: Currency::new(currency).unwrap(),
        ..yuan(amount)
    };
    let mut tries = vec![
        (order(yuan(0)), code()),
        (order(yuan(10_000_000_001)), code()),
        (order(yuan(1)), attempt(PaymentMethod::Code, 69)),
        (order(yuan(1)), attempt(PaymentMethod::Page, 69)),
        (order(yuan(1)), attempt(PaymentMethod::Form, 900)),
    ];
    for currency in ["EUR", "JPY", "KWD"] {
        tries.push((order(money(500, currency)), attempt(PaymentMethod::Page, 900)));
        let refund = alipay.refund(&record(PAYMENT, money(500, currency))).await;
        assert!(matches!(refund, Ok(RefundReply::Refused(_))), "{refund:?}");
    }
    for (order, attempt) in &tries {
        let refused = alipay.start(order, attempt).await;
        assert!(matches!(refused, Ok(StartReply::Refused(_))), "{attempt:?} {refused:?}");
    }
}

#[tokio::test]
async fn a_start_that_fails_says_what_may_have_happened() {
    let start = async |answer: fn(&Asked) -> Reply| {
        let fake = Fake::start(answer).await;
        account(&fake.url).start(&order(yuan(1)), &code()).await
    };
    let refused = start(|asked| failed(asked, "40004", "ACQ.TRADE_HAS_SUCCESS")).await;
    assert_eq!(refused, Ok(StartReply::Refused("ACQ.TRADE_HAS_SUCCESS: words".to_owned())));
    for (answer, is_unknown) in [
        ((|asked| failed(asked, "20000", "isp.unknow-error")) as fn(&Asked) -> Reply, true),
        (|asked| failed(asked, "40004", "ACQ.SYSTEM_ERROR"), true),
        (|asked| failed(asked, "40002", "isv.invalid-signature"), false),
        (|asked| signed_by("merchant", asked, &json!({ "code": "40004" })), true),
        (|_| Reply { status: 200, headers: Vec::new(), body: "<html>".to_owned() }, true),
        (|_| Reply { status: 200, headers: Vec::new(), body: " ".repeat(300_000) }, true),
        (|_| Reply { status: 502, headers: Vec::new(), body: String::new() }, true),
        (|_| Reply { status: 429, headers: Vec::new(), body: String::new() }, false),
        (
            |_| Reply {
                status: 200,
                headers: Vec::new(),
                body: r#"{"error_response":{"code":"40002","msg":"Invalid"}}"#.to_owned(),
            },
            true,
        ),
    ] {
        let failed = start(answer).await.unwrap_err();
        assert_eq!(matches!(failed, StoreError::Unknown(_)), is_unknown, "{failed}");
        assert!(failed.retryable(), "{failed}");
    }
    let senseless = start(|asked| done(asked, &json!({}))).await;
    assert!(matches!(senseless, Err(StoreError::Contract(_))), "{senseless:?}");
}

/// What a close answers if the close itself and the query after it are answered so.
async fn close(
    closed: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    found: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Stored<CloseReply> {
    let fake = Fake::start(move |asked: &Asked| {
        let parameters = believed(&asked.body);
        assert_eq!(business(&parameters), json!({ "out_trade_no": TRADE }));
        match parameters["method"].as_str() {
            "alipay.trade.close" => closed(asked),
            _ => found(asked),
        }
    })
    .await;
    account(&fake.url).close(&order(yuan(110_600)), &code()).await
}

#[tokio::test]
async fn a_close_tells_closed_from_paid_and_from_not_there() {
    let none = |asked: &Asked| failed(asked, "40004", "ACQ.TRADE_NOT_EXIST");
    let not_waiting = |asked: &Asked| failed(asked, "40004", "ACQ.TRADE_STATUS_ERROR");
    let gone = |asked: &Asked| done(asked, &json!({ "trade_no": PAYMENT, "out_trade_no": TRADE }));
    let in_state = |state: &'static str| move |asked: &Asked| done(asked, &trade(state));
    assert_eq!(close(gone, none).await, Ok(CloseReply::Closed));
    assert_eq!(close(none, none).await, Ok(CloseReply::Absent));
    assert_eq!(close(not_waiting, none).await, Ok(CloseReply::Absent));
    assert_eq!(close(not_waiting, in_state("TRADE_CLOSED")).await, Ok(CloseReply::Closed));
    assert_eq!(close(not_waiting, in_state("WAIT_BUYER_PAY")).await, Ok(CloseReply::NotYet));
    for state in ["TRADE_SUCCESS", "TRADE_FINISHED"] {
        let Ok(CloseReply::Paid(capture)) = close(not_waiting, in_state(state)).await else {
            panic!("{state} is paid")
        };
        assert_eq!(capture.key.payment.as_str(), PAYMENT);
        assert_eq!((capture.amount, capture.attempt), (yuan(110_600), Some(code().number)));
    }
}

#[tokio::test]
async fn a_close_is_not_believed_without_proof() {
    let not_waiting = |asked: &Asked| failed(asked, "40004", "ACQ.TRADE_STATUS_ERROR");
    let closed = |asked: &Asked| done(asked, &trade("TRADE_CLOSED"));
    let forged = |asked: &Asked| signed_by("merchant", asked, &json!({ "code": "10000" }));
    assert!(matches!(close(forged, closed).await, Err(StoreError::Unknown(_))));
    assert!(matches!(close(not_waiting, forged).await, Err(StoreError::Unavailable(_))));
    let system = |asked: &Asked| failed(asked, "40004", "ACQ.SYSTEM_ERROR");
    assert!(matches!(close(system, closed).await, Err(StoreError::Unknown(_))));
    let odd = |asked: &Asked| failed(asked, "40004", "ACQ.INVALID_PARAMETER");
    assert!(matches!(close(odd, closed).await, Err(StoreError::Contract(_))));
    let another = |asked: &Asked| done(asked, &json!({ "out_trade_no": "7_1" }));
    assert!(matches!(close(another, closed).await, Err(StoreError::Contract(_))));
    let other = |asked: &Asked| {
        let mut other = trade("TRADE_CLOSED");
        other["out_trade_no"] = json!("169218430493097984_2");
        done(asked, &other)
    };
    assert!(matches!(close(not_waiting, other).await, Err(StoreError::Contract(_))));
    let unknown = |asked: &Asked| done(asked, &trade("TRADE_DONE"));
    assert!(matches!(close(not_waiting, unknown).await, Err(StoreError::Contract(_))));
}

#[tokio::test]
async fn the_captures_of_an_order_are_those_of_its_attempts() {
    let fake =
        Fake::start(|asked| match business(&believed(&asked.body))["out_trade_no"] == TRADE {
            true => done(asked, &trade("TRADE_SUCCESS")),
            false => failed(asked, "40004", "ACQ.TRADE_NOT_EXIST"),
        })
        .await;
    let captures =
        account(&fake.url).captures(&with_two_attempts(order(yuan(110_600)), &code().choice)).await;
    let captures = captures.unwrap();
    let payments: Vec<&str> = captures.iter().map(|one| one.capture.key.payment.as_str()).collect();
    assert_eq!((payments, fake.asked().len()), (vec![PAYMENT], 2));
}

/// What a refund of 5.00 answers if the query before it and the refund itself are answered so, and how many
/// calls that took.
async fn refund(found: Value, made: Value) -> (Stored<RefundReply>, usize) {
    let fake = Fake::start(move |asked: &Asked| {
        let parameters = believed(&asked.body);
        let mut expected =
            json!({ "trade_no": PAYMENT, "out_request_no": format!("refund_{PAYMENT}") });
        if parameters["method"] == "alipay.trade.refund" {
            expected["refund_amount"] = json!("5.00");
            assert_eq!(business(&parameters), expected);
            match made["sub_code"].as_str() {
                Some(sub_code) => failed(asked, "40004", sub_code),
                None => done(asked, &made),
            }
        } else {
            assert_eq!(business(&parameters), expected);
            done(asked, &found)
        }
    })
    .await;
    let reply = account(&fake.url).refund(&record(PAYMENT, yuan(500))).await;
    (reply, fake.asked().len())
}

#[tokio::test]
async fn a_refund_is_asked_about_first_and_moves_money_once() {
    let none = json!({});
    let moved = |change: &str| json!({ "trade_no": PAYMENT, "fund_change": change });
    let found = |status: &str| {
        json!({ "refund_status": status, "refund_amount": "5.00",
        "out_request_no": format!("refund_{PAYMENT}") })
    };
    assert_eq!(refund(found("REFUND_SUCCESS"), none.clone()).await, (Ok(RefundReply::Refunded), 1));
    assert_eq!(
        refund(found("REFUND_PROCESSING"), none.clone()).await,
        (Ok(RefundReply::Pending), 1)
    );
    assert_eq!(refund(none.clone(), moved("Y")).await, (Ok(RefundReply::Refunded), 2));
    assert_eq!(refund(none.clone(), moved("N")).await, (Ok(RefundReply::Pending), 2));
    assert_eq!(
        refund(json!({ "refund_amount": "5.00" }), moved("N")).await,
        (Ok(RefundReply::Refunded), 2)
    );
    assert_eq!(refund(found("REFUND_FAIL"), moved("Y")).await, (Ok(RefundReply::Refunded), 2));
    let broke = json!({ "sub_code": "ACQ.SELLER_BALANCE_NOT_ENOUGH" });
    let why = "ACQ.SELLER_BALANCE_NOT_ENOUGH: words".to_owned();
    assert_eq!(refund(none.clone(), broke).await, (Ok(RefundReply::Refused(why)), 2));
    for (found, made) in [
        (json!({ "refund_status": "REFUND_SUCCESS", "refund_amount": "4.99" }), none.clone()),
        (json!({ "refund_status": "REFUND_SUCCESS", "out_request_no": "x" }), none.clone()),
        (json!({ "refund_status": "DONE" }), none.clone()),
        (none.clone(), json!({ "trade_no": "1", "fund_change": "Y" })),
    ] {
        let (reply, _) = refund(found, made).await;
        assert!(matches!(reply, Err(StoreError::Contract(_))), "{reply:?}");
    }
    let system = json!({ "sub_code": "ACQ.SYSTEM_ERROR" });
    assert!(matches!(refund(none, system).await.0, Err(StoreError::Unknown(_))));
}

/// C1, as at WeChat Pay.
#[tokio::test]
async fn a_part_that_was_refused_is_not_sent_again_before_an_operator_says_so() {
    let calls = async |part: &OrderRefund, found: Value| {
        let fake = Fake::start(move |asked: &Asked| done(asked, &found)).await;
        let payment = record(PAYMENT, yuan(500));
        let reply = account(&fake.url).refund_part(&payment, part, MinorUnits::ZERO).await;
        (reply, fake.asked().len())
    };
    let payment = record(PAYMENT, yuan(500));
    let refused = refused_part(&payment, "no funds");
    let reply = Ok(RefundReply::Refused("no funds".to_owned()));
    assert_eq!(calls(&refused, json!({})).await, (reply.clone(), 1));
    let failed = json!({ "refund_status": "REFUND_FAIL", "refund_amount": "2.00" });
    assert_eq!(calls(&refused, failed).await, (reply, 1));
    let made = json!({ "refund_status": "REFUND_SUCCESS", "refund_amount": "2.00" });
    assert_eq!(calls(&refused, made).await, (Ok(RefundReply::Refunded), 1), "found by its name");
    assert_eq!(calls(&part(&payment, 200), json!({})).await.1, 2, "one that is due is sent");
}

#[test]
fn a_notification_is_verified_and_checked() {
    let alipay = account("http://127.0.0.1:1");
    let none = HeaderMap::new();
    let read = |body: &str| {
        let verified = alipay.verify(&none, body.as_bytes(), NOW)?;
        Ok::<_, SignatureDefect>(alipay.capture(&verified))
    };
    let [paid, closed] =
        [0, 1].map(|index| text(&vectors()["alipay"]["notifications"][index]["body"]));
    let capture = read(&paid).unwrap().unwrap().unwrap();
    assert_eq!(
        (capture.capture.key.provider.as_str(), capture.capture.amount),
        ("cn", yuan(110_600))
    );
    assert_eq!(read(&closed), Ok(Ok(None)));
    let changed = paid.replace("1106.00", "1106.01");
    assert_eq!(read(&changed), Err(SignatureDefect::Mismatch));
    let huge = format!("{paid}&more={}", "x".repeat(MAX_BODY_BYTES));
    assert_eq!(read(&huge), Err(SignatureDefect::Malformed));
    assert_eq!(alipay.acknowledgement(), Some("success"));
}

#[test]
fn nothing_secret_is_shown() {
    let shown = format!("{:?}", account("http://127.0.0.1:1"));
    assert!(!shown.contains("PRIVATE") && !shown.contains("MII"), "{shown}");
}
