//! WeChat Pay v3: payments by QR code of a merchant in China.
//!
//! | request | as at WeChat Pay |
//! |---|---|
//! | `POST /v3/pay/transactions/native` | the same order again is the same; another one of its number is refused |
//! | `GET /v3/pay/transactions/out-trade-no/{number}?mchid=` | behind by the lag of queries |
//! | `POST …/{number}/close` | 204 also for a number that nobody has placed; refused for minutes after the start; 202 while the payer is at it |
//! | `POST /v3/refund/domestic/refunds`, `GET …/{number}` | at its published rates |
//! | `GET /v3/bill/tradebill?bill_date=&bill_type=ALL&tar_type=GZIP` | from ten o'clock on; the file at an address of its own, signed for as well |
//!
//! Requests are signed by the merchant, answers and notifications by the platform, over time, nonce and body.
//! (<https://pay.weixin.qq.com/docs/merchant/development/interface-rules/signature-verification.html>)

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State as Extracted};
use axum::response::Response;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use futures_util::stream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use fake_limits::table::{WECHAT_BILL_ADDRESS_SECONDS, WECHAT_BILL_SECONDS, WECHAT_THROTTLED};
use fake_limits::wechat::notification_gap;

use crate::account::broken;
use crate::bills::{self, BillFault};
use crate::clock::rfc3339;
use crate::keys::nonce;
use crate::merchant::{Account, Merchant, MerchantFault, Names, not_kept, notice_id, written};
use crate::notices::{Letter, Notice};
use crate::trades::{Close, Placed, Refund, Refunded, State, Terms, Trade};
use crate::{Error, settlement};

/// What a code begins with; the payment follows.
pub(crate) const CODE: &str = "weixin://wxpay/bizpayurl?pr=";
/// The name of the algorithm of signatures.
const ALGORITHM: &str = "WECHATPAY2-SHA256-RSA2048";
/// What a signature begins with that is wrong on purpose.
const PROBE: &str = "WECHATPAY/SIGNTEST/";
/// Most seconds by which the time of a request may differ.
const MAX_SKEW_SECONDS: u64 = 300;
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The shortest life of an order, in milliseconds: a shorter one is moved to it.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012525171>
const MIN_LIFE_MS: i64 = 60_000;
/// How long an order lives that says nothing, in milliseconds.
const LIFE_MS: i64 = 7_200_000;

/// An answer: a status, and a body if there is one.
type Said = (u16, Option<Value>);

fn refusal(status: u16, code: &str, message: &str) -> Said {
    (status, Some(json!({ "code": code, "message": message })))
}

/// The names of a merchant.
pub(crate) fn names() -> Result<Names, Error> {
    Ok(Names {
        app_id: "wx8888888888888888".to_owned(),
        account: "1900000001".to_owned(),
        serial: format!("1DDE55AD{}", nonce::<32>()?),
        key_id: "PUB_KEY_ID_0119000000012024101100397200000006".to_owned(),
        api_v3_key: nonce::<32>()?,
    })
}

/// The settings of a merchant.
pub(crate) fn settings(merchant: &Merchant, notify_url: &str) -> Result<Value, Error> {
    let Names { app_id, account, serial, key_id, api_v3_key } = &merchant.names;
    Ok(json!({
        "form": "wechat", "url": merchant.url, "notify_url": notify_url, "description": "门票",
        "merchant_id": account, "app_id": app_id, "serial": serial,
        "private_key": merchant.keys.merchant.private()?,
        "public_keys": { key_id: merchant.keys.own.public()? }, "api_v3_keys": [api_v3_key],
    }))
}

/// The routes of the API.
pub(crate) fn routes() -> Router<Arc<Merchant>> {
    Router::new()
        .route("/v3/pay/transactions/native", post(place))
        .route("/v3/pay/transactions/out-trade-no/{number}", get(query))
        .route("/v3/pay/transactions/out-trade-no/{number}/close", post(close))
        .route("/v3/refund/domestic/refunds", post(refund))
        .route("/v3/refund/domestic/refunds/{number}", get(query_refund))
        .route("/v3/bill/tradebill", get(bill))
        .route("/v3/billdownload/file", get(bill_file))
}

/// A request whose signature is checked.
struct Checked {
    body: String,
    query: BTreeMap<String, String>,
    fault: Option<MerchantFault>,
}

/// Checks a request, has it answered, and signs the answer.
async fn answered(
    merchant: &Merchant,
    route: &'static str,
    request: Request,
    answer: impl FnOnce(&Checked) -> Result<Said, Error>,
) -> Response {
    merchant.count(route);
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, MAX_BODY_BYTES).await;
    let Some(body) = body.ok().and_then(|body| String::from_utf8(body.to_vec()).ok()) else {
        return signed(merchant, refusal(400, "PARAM_ERROR", "参数错误"), false);
    };
    let target = parts.uri.path_and_query().map(http::uri::PathAndQuery::as_str);
    let target = target.unwrap_or_default();
    if let Some(refused) = refused(merchant, parts.method.as_str(), target, &parts.headers, &body) {
        return signed(merchant, refused, false);
    }
    let fault = merchant.fault();
    let query = parts.uri.query().unwrap_or_default();
    let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    if fault == Some(MerchantFault::FailRequest) {
        return signed(merchant, refusal(500, "SYSTEM_ERROR", "系统异常，请稍后重试"), false);
    }
    match answer(&Checked { body, query, fault }) {
        Ok(_) if fault == Some(MerchantFault::LoseAnswer) => {
            let lost = std::io::Error::other("lost on purpose");
            Response::new(Body::from_stream(stream::iter([Err::<&[u8], _>(lost)])))
        }
        Ok(said) => signed(merchant, said, fault == Some(MerchantFault::ProbeAnswer)),
        Err(failed) => not_kept(&failed),
    }
}

/// Why a request is not let in.
fn refused(
    merchant: &Merchant,
    method: &str,
    target: &str,
    headers: &HeaderMap,
    body: &str,
) -> Option<Said> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let names_json =
        |name: HeaderName| text(name).is_some_and(|to| to.contains("application/json"));
    if text(USER_AGENT).is_none_or(str::is_empty) || !names_json(ACCEPT) {
        return Some(refusal(400, "PARAM_ERROR", "Http头缺少Accept或User-Agent"));
    }
    if method == "POST" && !names_json(CONTENT_TYPE) {
        return Some(refusal(415, "PARAM_ERROR", "Content-Type必须为application/json"));
    }
    let wrong = || Some(refusal(401, "SIGN_ERROR", "签名错误"));
    let header = text(AUTHORIZATION).and_then(|header| header.strip_prefix(ALGORITHM));
    let Some(header) = header else { return wrong() };
    let parts: BTreeMap<&str, &str> = header
        .trim()
        .split(',')
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name, value.trim_matches('"')))
        .collect();
    let part = |name: &str| parts.get(name).copied().unwrap_or_default();
    let Names { account, serial, .. } = &merchant.names;
    if part("mchid") != account || part("serial_no") != serial {
        return wrong();
    }
    let seconds: Option<i64> = part("timestamp").parse().ok();
    let now = Timestamp::now().ms().div_euclid(1000);
    if seconds.is_none_or(|seconds| now.abs_diff(seconds) > MAX_SKEW_SECONDS) {
        return wrong();
    }
    let nonce = part("nonce_str");
    let message = format!("{method}\n{target}\n{}\n{nonce}\n{body}\n", part("timestamp"));
    // The value of base64 may end with the sign at which it was split: it is looked for by itself.
    let signature = header.split("signature=\"").nth(1).and_then(|rest| rest.split('"').next());
    let fits = merchant.keys.merchant.verify(message.as_bytes(), signature.unwrap_or_default());
    if fits && !nonce.is_empty() { None } else { wrong() }
}

/// The headers of a signature over a body.
fn signature(merchant: &Merchant, body: &str, is_probe: bool) -> Result<HeaderMap, Error> {
    let seconds = Timestamp::now().ms().div_euclid(1000).to_string();
    let nonce = nonce::<32>()?;
    let message = format!("{seconds}\n{nonce}\n{body}\n");
    let signature = merchant.keys.own.sign(message.as_bytes())?;
    let signature = if is_probe { format!("{PROBE}{signature}") } else { signature };
    let headers = [
        ("wechatpay-timestamp", seconds.as_str()),
        ("wechatpay-nonce", &nonce),
        ("wechatpay-signature", &signature),
        ("wechatpay-serial", &merchant.names.key_id),
        ("wechatpay-signature-type", ALGORITHM),
    ];
    let header = |(name, value): (&'static str, &str)| {
        Ok((HeaderName::from_static(name), HeaderValue::from_str(value).map_err(broken)?))
    };
    headers.into_iter().map(header).collect()
}

fn signed(merchant: &Merchant, (status, body): Said, is_probe: bool) -> Response {
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    match signature(merchant, &body, is_probe) {
        Ok(headers) => {
            let mut response = written(StatusCode::from_u16(status).unwrap_or_default(), body);
            response.headers_mut().extend(headers);
            response
        }
        Err(failed) => not_kept(&failed),
    }
}

#[derive(Deserialize)]
struct Native {
    appid: String,
    mchid: String,
    description: String,
    out_trade_no: String,
    time_expire: Option<String>,
    notify_url: String,
    amount: Total,
}

#[derive(Deserialize)]
struct Total {
    total: MinorUnits,
    currency: Option<String>,
}

impl Native {
    /// What is asked for; `None` if it breaks a rule.
    /// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
    fn terms(&self, names: &Names, now: Timestamp) -> Option<Terms> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-|*".contains(&byte);
        let is_number = (6..=32).contains(&self.out_trade_no.len());
        let is_ours = self.appid == names.app_id && self.mchid == names.account;
        let is_yuan = self.amount.currency.as_deref().is_none_or(|code| code == "CNY");
        let is_described = (1..=127).contains(&self.description.len());
        let expires_ms = match &self.time_expire {
            None => now.ms() + LIFE_MS,
            Some(text) => text.parse::<Timestamp>().ok()?.ms().max(now.ms() + MIN_LIFE_MS),
        };
        let is_good = is_number
            && is_ours
            && is_yuan
            && is_described
            && self.out_trade_no.bytes().all(is_plain)
            && self.amount.total > MinorUnits::ZERO
            && self.notify_url.starts_with("http");
        is_good.then(|| Terms {
            fen: self.amount.total,
            subject: self.description.clone(),
            expires_ms,
            is_default_life: self.time_expire.is_none(),
            notify_url: self.notify_url.clone(),
            return_url: None,
        })
    }
}

async fn place(Extracted(merchant): Account, request: Request) -> Response {
    answered(&merchant, "native", request, |checked| {
        let now = Timestamp::now();
        let native: Option<Native> = serde_json::from_str(&checked.body).ok();
        let asked = native.and_then(|native| Some((native.terms(&merchant.names, now)?, native)));
        let Some((terms, native)) = asked else {
            return Ok(refusal(400, "PARAM_ERROR", "参数错误"));
        };
        Ok(match merchant.trades.place(&native.out_trade_no, terms, false, now)? {
            Placed::Open(trade) => {
                (200, Some(json!({ "code_url": format!("{CODE}{}", trade.payment) })))
            }
            Placed::Differs => refusal(403, "OUT_TRADE_NO_USED", "商户订单号重复"),
            Placed::Paid => refusal(400, "ORDERPAID", "该订单已支付"),
            Placed::Closed => refusal(400, "ORDER_CLOSED", "该订单已关闭"),
        })
    })
    .await
}

async fn query(
    Extracted(merchant): Account,
    Path(number): Path<String>,
    request: Request,
) -> Response {
    answered(&merchant, "query", request, |checked| {
        if checked.query.get("mchid") != Some(&merchant.names.account) {
            return Ok(refusal(400, "PARAM_ERROR", "mchid错误"));
        }
        let now = Timestamp::now();
        Ok(match merchant.shown(&number, now) {
            Some(trade) => (200, Some(transaction(&merchant, &trade))),
            None => refusal(404, "ORDER_NOT_EXIST", "订单不存在"),
        })
    })
    .await
}

async fn close(
    Extracted(merchant): Account,
    Path(number): Path<String>,
    request: Request,
) -> Response {
    answered(&merchant, "close", request, |checked| {
        let body: Value = serde_json::from_str(&checked.body).unwrap_or_default();
        if body["mchid"] != json!(merchant.names.account) {
            return Ok(refusal(400, "PARAM_ERROR", "mchid错误"));
        }
        Ok(match merchant.trades.close(&number, Timestamp::now())? {
            Close::Done(_) | Close::Before | Close::Absent => (204, None),
            Close::TooEarly => refusal(
                400,
                "INVALID_REQUEST",
                "订单生成后不能马上调用关单接口，最短调用时间间隔为5分钟",
            ),
            Close::Paid => refusal(400, "ORDERPAID", "该订单已支付"),
            Close::Paying => refusal(202, "USER_PAYING", "用户支付中，需要输入密码"),
        })
    })
    .await
}

/// Seconds after the end of a day until its bill is made.
const BILL_READY_SECONDS: i64 = WECHAT_BILL_SECONDS.count().cast_signed();

async fn bill(Extracted(merchant): Account, request: Request) -> Response {
    answered(&merchant, "bill", request, |checked| {
        let text = |name: &str| checked.query.get(name).map(String::as_str);
        let is_form = text("bill_type") == Some("ALL") && text("tar_type") == Some("GZIP");
        let day = text("bill_date").and_then(bills::day).filter(|_| is_form);
        let made = day.and_then(|day| merchant.bills.is_made(day, BILL_READY_SECONDS));
        let Some((day, is_made)) = day.zip(made) else {
            return Ok(refusal(400, "PARAM_ERROR", "账单日期不正确"));
        };
        let fault = merchant.bills.fault();
        let bill = bills::bill_of(day, fault);
        let trades = merchant.trades.all(Timestamp::now());
        let is_empty = !trades.iter().any(|trade| trade.is_in(&bill));
        match fault {
            Some(BillFault::NotYet) => {}
            Some(BillFault::TooMany) => {
                return Ok(refusal(429, "RATELIMIT_EXCEEDED", "请求超过频率限制"));
            }
            Some(BillFault::Absent) => {
                return Ok(refusal(400, "NO_STATEMENT_EXIST", "账单文件不存在"));
            }
            _ if is_made && is_empty => {
                return Ok(refusal(400, "NO_STATEMENT_EXIST", "账单文件不存在"));
            }
            Some(_) | None if is_made => {
                let file = settlement::wechat(&merchant.names, &trades, bill);
                let packed = bills::gzip(file.as_bytes(), fault)?;
                let sum = bills::sha1(file.as_bytes(), fault);
                let token = merchant.bills.place(packed, fault, &WECHAT_BILL_ADDRESS_SECONDS)?;
                let path = format!("v3/billdownload/file?token={token}");
                let url = bills::address(&merchant.url, &path, fault);
                let place = json!({ "hash_type": "SHA1", "hash_value": sum, "download_url": url });
                return Ok((200, Some(place)));
            }
            Some(_) | None => {}
        }
        Ok(refusal(400, "STATEMENT_CREATING", "账单生成中"))
    })
    .await
}

/// The file of a bill: who asks signs as for a call, and the answer is not signed.
async fn bill_file(Extracted(merchant): Account, request: Request) -> Response {
    merchant.count("bill_file");
    let (parts, _) = request.into_parts();
    let target = parts.uri.path_and_query().map(http::uri::PathAndQuery::as_str);
    let target = target.unwrap_or_default();
    if let Some(refused) = refused(&merchant, "GET", target, &parts.headers, "") {
        return signed(&merchant, refused, false);
    }
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let token = query.into_owned().find(|(name, _)| name == "token").map(|(_, token)| token);
    let file = token.and_then(|token| merchant.bills.fetch(&token));
    let gone = || signed(&merchant, refusal(403, "NO_AUTH", "下载链接已失效"), false);
    file.unwrap_or_else(gone)
}

#[derive(Deserialize)]
struct RefundRequest {
    transaction_id: String,
    out_refund_no: String,
    amount: RefundAmount,
}

#[derive(Deserialize)]
struct RefundAmount {
    refund: MinorUnits,
    total: MinorUnits,
    currency: String,
}

async fn refund(Extracted(merchant): Account, request: Request) -> Response {
    answered(&merchant, "refund", request, |checked| {
        if !merchant.admits_refund() {
            return Ok(refusal(429, WECHAT_THROTTLED.text(), "频率限制"));
        }
        let said = refunded(&merchant, checked)?;
        if said.0 != 200 {
            merchant.faulty_refund();
        }
        Ok(said)
    })
    .await
}

fn refunded(merchant: &Merchant, checked: &Checked) -> Result<Said, Error> {
    let invalid = |message: &str| Ok(refusal(400, "PARAM_ERROR", message));
    let Ok(asked) = serde_json::from_str::<RefundRequest>(&checked.body) else {
        return invalid("参数错误");
    };
    let absent = || refusal(404, "RESOURCE_NOT_EXISTS", "订单不存在");
    let now = Timestamp::now();
    let Some(trade) = merchant.trades.by_payment(&asked.transaction_id, now) else {
        return Ok(absent());
    };
    if asked.amount.total != trade.terms.fen || asked.amount.currency != "CNY" {
        return invalid("订单金额或退款金额与之前请求不一致，请核实后再试");
    }
    let refund = Refund {
        number: asked.out_refund_no,
        fen: asked.amount.refund,
        created_ms: now.ms(),
        is_done: checked.fault != Some(MerchantFault::LeaveRefundPending),
    };
    Ok(match merchant.trades.refund(&trade.number, refund, now)? {
        Refunded::Made(trade, refund) | Refunded::Before(trade, refund) => {
            (200, Some(shown_refund(&trade, &refund)))
        }
        Refunded::Differs => refusal(400, "INVALID_REQUEST", "退款单号已存在，参数不一致"),
        Refunded::Absent => absent(),
        Refunded::NotPaid => refusal(400, "INVALID_REQUEST", "订单未支付"),
        Refunded::TooMuch => refusal(403, "NOT_ENOUGH", "退款金额大于支付金额"),
        Refunded::TooSoon => refusal(429, WECHAT_THROTTLED.text(), "频率限制"),
        Refunded::TooMany => refusal(400, "INVALID_REQUEST", "部分退款次数超限"),
    })
}

async fn query_refund(
    Extracted(merchant): Account,
    Path(number): Path<String>,
    request: Request,
) -> Response {
    answered(&merchant, "query_refund", request, |_| {
        let trade = merchant.trades.by_refund(&number, Timestamp::now());
        let of = |trade: Trade| {
            let refund = trade.refunds.iter().find(|refund| refund.number == number).cloned();
            refund.map(|refund| shown_refund(&trade, &refund))
        };
        Ok(match trade.and_then(of) {
            Some(shown) => (200, Some(shown)),
            None => refusal(404, "RESOURCE_NOT_EXISTS", "退款单不存在"),
        })
    })
    .await
}

fn transaction(merchant: &Merchant, trade: &Trade) -> Value {
    let Names { app_id, account, .. } = &merchant.names;
    let (state, described) = match trade.state {
        State::Waiting => ("NOTPAY", "未支付"),
        State::Paying { .. } => ("USERPAYING", "用户支付中"),
        State::Paid { .. } if !trade.refunds.is_empty() => ("REFUND", "转入退款"),
        State::Paid { .. } => ("SUCCESS", "支付成功"),
        State::Closed { .. } => ("CLOSED", "已关闭"),
    };
    let mut shown = json!({
        "appid": app_id, "mchid": account, "out_trade_no": trade.number,
        "trade_state": state, "trade_state_desc": described, "trade_type": "NATIVE",
        "bank_type": "OTHERS", "attach": "",
        "amount": {
            "total": trade.terms.fen, "currency": "CNY", "payer_total": trade.terms.fen,
            "payer_currency": "CNY",
        },
    });
    if let Some(paid_ms) = trade.paid_ms() {
        shown["transaction_id"] = json!(trade.payment);
        shown["success_time"] = json!(rfc3339(Timestamp::from_ms(paid_ms)));
        shown["payer"] = json!({ "openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o" });
    }
    shown
}

fn shown_refund(trade: &Trade, refund: &Refund) -> Value {
    json!({
        "refund_id": format!("5{}", trade.payment), "out_refund_no": refund.number,
        "transaction_id": trade.payment, "out_trade_no": trade.number, "channel": "ORIGINAL",
        "user_received_account": "支付用户零钱",
        "create_time": rfc3339(Timestamp::from_ms(refund.created_ms)),
        "status": if refund.is_done { "SUCCESS" } else { "PROCESSING" },
        "amount": {
            "total": trade.terms.fen, "refund": refund.fen, "payer_total": trade.terms.fen,
            "payer_refund": refund.fen, "settlement_refund": refund.fen,
            "settlement_total": trade.terms.fen, "discount_refund": 0, "currency": "CNY",
        },
    })
}

/// The notification of a payment, encrypted with the merchant's key.
/// Source: <https://pay.weixin.qq.com/docs/merchant/apis/native-payment/payment-notice.html>
fn event(merchant: &Merchant, trade: &Trade, id: &str) -> Result<String, Error> {
    let plain = transaction(merchant, trade).to_string();
    let nonce = nonce::<12>()?;
    let bytes: [u8; 12] = nonce.as_bytes().try_into().map_err(broken)?;
    let key = UnboundKey::new(&AES_256_GCM, merchant.names.api_v3_key.as_bytes());
    let key = LessSafeKey::new(key.map_err(broken)?);
    let mut sealed = plain.into_bytes();
    let associated = "transaction";
    let unique = Nonce::assume_unique_for_key(bytes);
    key.seal_in_place_append_tag(unique, Aad::from(associated), &mut sealed).map_err(broken)?;
    let event = json!({
        "id": id, "create_time": rfc3339(Timestamp::from_ms(trade.paid_ms().unwrap_or_default())),
        "resource_type": "encrypt-resource", "event_type": "TRANSACTION.SUCCESS",
        "summary": "支付成功",
        "resource": {
            "original_type": "transaction", "algorithm": "AEAD_AES_256_GCM",
            "ciphertext": STANDARD.encode(sealed), "associated_data": associated, "nonce": nonce,
        },
    });
    Ok(event.to_string())
}

/// The notification that a trade is paid, sent so much later.
pub(crate) fn paid(merchant: &Arc<Merchant>, trade: &Trade, after: Duration) -> Notice {
    let at_ms = trade.money_ms().unwrap_or_default();
    let trade = Trade { state: State::Paid { at_ms }, ..trade.clone() };
    // The same id each time, as a merchant knows one by it that came before.
    let id = notice_id().unwrap_or_else(|_| trade.payment.to_string());
    let writer = |is_probe: bool| {
        let (merchant, trade, id) = (Arc::clone(merchant), trade.clone(), id.clone());
        Box::new(move || -> Result<Letter, Error> {
            let body = event(&merchant, &trade, &id)?;
            let mut headers = signature(&merchant, &body, is_probe)?;
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok((headers, body))
        })
    };
    let (told, number) = (Arc::clone(merchant), trade.number.clone());
    Notice {
        url: trade.terms.notify_url.clone(),
        after,
        write: writer(false),
        probe: Some(writer(true)),
        is_taken: |status, _| status == StatusCode::OK || status == StatusCode::NO_CONTENT,
        gap: notification_gap,
        taken: Box::new(move || {
            if let Err(failed) = told.trades.tell(&number, Timestamp::now()) {
                tracing::error!(%failed, "that a notification was taken could not be kept");
            }
        }),
    }
}
