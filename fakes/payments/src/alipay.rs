//! Alipay's gateway in China: payments on its page and by QR code.
//!
//! | request | as at Alipay |
//! |---|---|
//! | `alipay.trade.page.pay` | an address that the merchant signs; the trade is made when its payer opens it |
//! | `alipay.trade.precreate` | a code; its trade does not exist until its payer has opened it |
//! | `alipay.trade.query`, `alipay.trade.close` | `ACQ.TRADE_NOT_EXIST` until then |
//! | `alipay.data.dataservice.bill.downloadurl.query` | `isp.bill_not_exist` also before nine o'clock; the address of an archive, good for half a minute |
//! | `alipay.trade.refund`, `alipay.trade.fastpay.refund.query` | `fund_change` is `Y` once |
//!
//! Everything is signed with RSA2: requests over all parameters, answers over the bytes of their value,
//! notifications over all parameters but the signature and its type.
//! (<https://opendocs.alipay.com/common/02kf5q>)

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State as Extracted};
use axum::response::Response;
use axum::routing::get;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use fake_limits::alipay::notification_gap;
use fake_limits::table::{ALIPAY_BILL_ADDRESS_SECONDS, ALIPAY_BILL_SECONDS};
use futures_util::stream;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bills::{self, BillFault};
use crate::clock::{plain, read_plain};
use crate::merchant::{Account, Merchant, MerchantFault, Names, not_kept, notice_id, written};
use crate::notices::{Letter, Notice};
use crate::page::html;
use crate::trades::{Close, Placed, Refund, Refunded, State, Terms, Trade};
use crate::{Error, settlement};

const MAX_BODY_BYTES: usize = 64 * 1024;
/// How long a trade lives that says nothing, in milliseconds.
const LIFE_MS: i64 = 15 * 24 * 60 * 60 * 1000;
/// The interface that gives the address of a bill.
const BILL: &str = "alipay.data.dataservice.bill.downloadurl.query";
/// Seconds after the end of a day until its bill is made.
const BILL_READY_SECONDS: i64 = ALIPAY_BILL_SECONDS.count().cast_signed();
/// The interface by which a payer comes to the page.
const PAGE_PAY: &str = "alipay.trade.page.pay";

type Parameters = BTreeMap<String, String>;

/// The names of a merchant.
pub(crate) fn names() -> Names {
    Names {
        app_id: "2014072300007148".to_owned(),
        account: "2088102146225135".to_owned(),
        serial: String::new(),
        key_id: String::new(),
        api_v3_key: String::new(),
    }
}

/// The settings of a merchant.
pub(crate) fn settings(merchant: &Merchant, notify_url: &str) -> Result<Value, Error> {
    Ok(json!({
        "form": "alipay", "url": format!("{}/gateway.do", merchant.url),
        "notify_url": notify_url, "description": "门票",
        "app_id": merchant.names.app_id, "seller_id": merchant.names.account,
        "private_key": merchant.keys.merchant.private()?,
        "public_keys": [merchant.keys.own.public()?],
    }))
}

/// The route of the gateway.
pub(crate) fn routes() -> Router<Arc<Merchant>> {
    Router::new()
        .route("/gateway.do", get(gateway).post(gateway))
        .route("/downloadBillFile.resource", get(bill_file))
}

/// What an interface answers: the fields beside code and message.
enum Said {
    Done(Value),
    Failed(&'static str, &'static str),
}

impl Said {
    fn value(self) -> Value {
        match self {
            Self::Done(mut fields) => {
                fields["code"] = json!("10000");
                fields["msg"] = json!("Success");
                fields
            }
            Self::Failed(sub_code, sub_msg) => json!({
                "code": "40004", "msg": "Business Failed", "sub_code": sub_code,
                "sub_msg": sub_msg,
            }),
        }
    }
}

const ABSENT: Said = Said::Failed("ACQ.TRADE_NOT_EXIST", "交易不存在");
const INVALID: Said = Said::Failed("ACQ.INVALID_PARAMETER", "参数无效");

/// What is signed of parameters: sorted by name, without the names that `leave_out` has.
fn signed_text(parameters: &Parameters, leave_out: &[&str]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .filter(|(name, _)| !leave_out.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

async fn gateway(Extracted(merchant): Account, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY_BYTES).await else {
        return written(StatusCode::PAYLOAD_TOO_LARGE, String::new());
    };
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let pairs = form_urlencoded::parse(query).chain(form_urlencoded::parse(&body));
    let owned = |(name, value): (Cow<str>, Cow<str>)| (name.into_owned(), value.into_owned());
    let parameters: Parameters = pairs.map(owned).collect();
    let parameter = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
    let method = parameter("method").to_owned();
    let Some(route) = route(&method) else {
        let value = refused("40004", "isv.invalid-method", "不存在的方法名");
        return answer(&merchant, "error", &value, false);
    };
    merchant.count(route);
    // What is empty is not signed.
    let given = parameters.clone().into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let text = signed_text(&given, &["sign"]);
    let fits = merchant.keys.merchant.verify(text.as_bytes(), parameter("sign"));
    let is_ours = parameter("app_id") == merchant.names.app_id;
    let is_form = parameter("sign_type") == "RSA2" && parameter("version") == "1.0";
    if !fits || !is_ours || !is_form || read_plain(parameter("timestamp")).is_none() {
        let value = refused("40002", "isv.invalid-signature", "无效签名");
        return answer(&merchant, &method, &value, false);
    }
    if route == PAGE_PAY {
        return open_page(&merchant, &parameters, &parts.method);
    }
    let fault = merchant.fault();
    if fault == Some(MerchantFault::FailRequest) {
        let value = Said::Failed("ACQ.SYSTEM_ERROR", "系统错误").value();
        return answer(&merchant, &method, &value, false);
    }
    match said(&merchant, route, &parameters, fault) {
        Ok(_) if fault == Some(MerchantFault::LoseAnswer) => {
            let lost = std::io::Error::other("lost on purpose");
            Response::new(Body::from_stream(stream::iter([Err::<&[u8], _>(lost)])))
        }
        Ok(said) => {
            let is_probe = fault == Some(MerchantFault::ProbeAnswer);
            answer(&merchant, &method, &said.value(), is_probe)
        }
        Err(failed) => not_kept(&failed),
    }
}

/// The interfaces that there are.
fn route(method: &str) -> Option<&'static str> {
    let known = [
        PAGE_PAY,
        "alipay.trade.precreate",
        "alipay.trade.query",
        "alipay.trade.close",
        "alipay.trade.refund",
        "alipay.trade.fastpay.refund.query",
        BILL,
    ];
    known.into_iter().find(|known| *known == method)
}

fn refused(code: &str, sub_code: &str, sub_msg: &str) -> Value {
    json!({ "code": code, "msg": "Invalid Arguments", "sub_code": sub_code, "sub_msg": sub_msg })
}

/// Signs the bytes of a value, as they are sent.
fn answer(merchant: &Merchant, method: &str, value: &Value, is_probe: bool) -> Response {
    let value = value.to_string();
    let signed = if is_probe { format!("{value} ") } else { value.clone() };
    match merchant.keys.own.sign(signed.as_bytes()) {
        Ok(sign) => {
            let name = format!("{}_response", method.replace('.', "_"));
            written(StatusCode::OK, format!("{{\"{name}\":{value},\"sign\":\"{sign}\"}}"))
        }
        Err(failed) => not_kept(&failed),
    }
}

#[derive(Deserialize)]
struct Asked {
    out_trade_no: String,
    total_amount: String,
    subject: String,
    time_expire: Option<String>,
}

/// Yuan with a point as fen; `None` for anything else.
fn to_fen(yuan: &str) -> Option<MinorUnits> {
    let (whole, part) = yuan.split_once('.')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() != 2 || whole.is_empty() || whole.len() > 9 || !is_digits(whole) {
        return None;
    }
    let (whole, part): (i64, i64) =
        (whole.parse().ok()?, part.parse().ok().filter(|_| is_digits(part))?);
    Some(MinorUnits(whole * 100 + part)).filter(|fen| (1..=10_000_000_000).contains(&fen.0))
}

fn to_yuan(fen: MinorUnits) -> String {
    format!("{}.{:02}", fen.0 / 100, fen.0 % 100)
}

impl Asked {
    /// What a request for a trade says; `None` if it breaks a rule.
    /// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
    fn read(parameters: &Parameters, now: Timestamp) -> Option<(String, Terms)> {
        let asked: Self = serde_json::from_str(parameters.get("biz_content")?).ok()?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_number = (1..=64).contains(&asked.out_trade_no.len());
        if !is_number || !asked.out_trade_no.bytes().all(is_plain) || asked.subject.is_empty() {
            return None;
        }
        let expires_ms = match &asked.time_expire {
            None => now.ms() + LIFE_MS,
            Some(text) => read_plain(text)?.ms(),
        };
        let terms = Terms {
            fen: to_fen(&asked.total_amount)?,
            subject: asked.subject,
            expires_ms,
            is_default_life: asked.time_expire.is_none(),
            notify_url: parameters.get("notify_url").cloned().unwrap_or_default(),
            return_url: parameters.get("return_url").cloned(),
        };
        Some((asked.out_trade_no, terms))
    }
}

/// The payer comes to the page: only now there is a trade.
fn open_page(merchant: &Merchant, parameters: &Parameters, method: &Method) -> Response {
    let page = |text: &str| html(StatusCode::OK, &format!("<p role=\"alert\">{text}</p>"));
    let now = Timestamp::now();
    let asked = Asked::read(parameters, now);
    let Some((number, terms)) = asked else { return page("The order information is wrong.") };
    if terms.expires_ms <= now.ms() {
        return page("The time to pay is over.");
    }
    match merchant.trades.place(&number, terms, true, now) {
        Ok(Placed::Open(trade)) => {
            let location = HeaderValue::from_str(&format!("/pay/{}", trade.payment));
            let Ok(location) = location else { return page("The order information is wrong.") };
            let status =
                if *method == Method::GET { StatusCode::FOUND } else { StatusCode::SEE_OTHER };
            let mut response = html(status, "");
            response.headers_mut().insert(LOCATION, location);
            response
        }
        Ok(Placed::Differs) => page("The order information differs."),
        Ok(Placed::Paid) => page("It is paid."),
        Ok(Placed::Closed) => page("It is closed. Nothing was charged."),
        Err(failed) => not_kept(&failed),
    }
}

/// The trade that a request names, if its payer has opened it.
fn named(merchant: &Merchant, business: &Value, now: Timestamp) -> Option<Trade> {
    let number = match (business["trade_no"].as_str(), business["out_trade_no"].as_str()) {
        (Some(payment), _) => merchant.trades.by_payment(payment, now)?.number,
        (None, Some(number)) => number.to_owned(),
        (None, None) => return None,
    };
    merchant.shown(&number, now).filter(|trade| trade.opened_ms.is_some())
}

fn said(
    merchant: &Merchant,
    route: &str,
    parameters: &Parameters,
    fault: Option<MerchantFault>,
) -> Result<Said, Error> {
    let now = Timestamp::now();
    let business = parameters.get("biz_content").map(String::as_str).unwrap_or_default();
    let business: Value = serde_json::from_str(business).unwrap_or_default();
    match route {
        "alipay.trade.precreate" => precreated(merchant, parameters, now),
        "alipay.trade.query" => Ok(match named(merchant, &business, now) {
            Some(trade) => Said::Done(shown(&trade)),
            None => ABSENT,
        }),
        "alipay.trade.close" => closed(merchant, &business, now),
        "alipay.trade.refund" => refunded(merchant, &business, fault, now),
        BILL => bill(merchant, &business, now),
        _ => Ok(found_refund(merchant, &business, now)),
    }
}

fn bill(merchant: &Merchant, business: &Value, now: Timestamp) -> Result<Said, Error> {
    const NONE: Said = Said::Failed("isp.bill_not_exist", "账单不存在");
    let day = business["bill_date"].as_str().and_then(bills::day);
    let day = day.filter(|_| business["bill_type"] == json!("trade"));
    let Some(day) = day else { return Ok(INVALID) };
    let is_made = merchant.bills.is_made(day, BILL_READY_SECONDS) == Some(true);
    let fault = merchant.bills.fault();
    let which = bills::bill_of(day, fault);
    let trades: Vec<Trade> = merchant.trades.all(now);
    let trades: Vec<Trade> = trades.into_iter().filter(|trade| trade.is_in(&which)).collect();
    match fault {
        Some(BillFault::TooMany) => {
            return Ok(Said::Failed("aop.ACQ.SYSTEM_ERROR", "系统繁忙"));
        }
        Some(BillFault::NotYet | BillFault::Absent) => return Ok(NONE),
        _ if !is_made || trades.is_empty() => return Ok(NONE),
        Some(_) | None => {}
    }
    let parts: Vec<&[Trade]> = match fault {
        Some(BillFault::TwoFiles) => trades.chunks(trades.len().div_ceil(2)).collect(),
        Some(_) | None => vec![&trades],
    };
    let file = |part: &[Trade]| settlement::alipay(&merchant.names, part, which);
    let files: Vec<Vec<u8>> = parts.into_iter().map(file).collect();
    let packed = bills::zip(&files, &settlement::alipay_sums(), fault)?;
    let token = merchant.bills.place(packed, fault, &ALIPAY_BILL_ADDRESS_SECONDS)?;
    let path = format!("downloadBillFile.resource?bizType=trade&fileId={token}");
    let url = bills::address(&merchant.url, &path, fault);
    Ok(Said::Done(json!({ "bill_download_url": url })))
}

/// The file of a bill, to whoever has its address.
async fn bill_file(Extracted(merchant): Account, request: Request) -> Response {
    merchant.count("bill_file");
    let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    let token = query.into_owned().find(|(name, _)| name == "fileId").map(|(_, token)| token);
    let file = token.and_then(|token| merchant.bills.fetch(&token));
    file.unwrap_or_else(|| written(StatusCode::FORBIDDEN, String::new()))
}

fn precreated(merchant: &Merchant, parameters: &Parameters, now: Timestamp) -> Result<Said, Error> {
    let Some((number, terms)) = Asked::read(parameters, now) else { return Ok(INVALID) };
    Ok(match merchant.trades.place(&number, terms, false, now)? {
        Placed::Open(trade) => Said::Done(json!({
            "out_trade_no": number, "qr_code": format!("{}/pay/{}", merchant.url, trade.payment),
        })),
        Placed::Differs => Said::Failed("ACQ.CONTEXT_INCONSISTENT", "交易信息被篡改"),
        Placed::Paid => Said::Failed("ACQ.TRADE_HAS_SUCCESS", "交易已被支付"),
        Placed::Closed => Said::Failed("ACQ.TRADE_HAS_CLOSE", "交易已经关闭"),
    })
}

fn closed(merchant: &Merchant, business: &Value, now: Timestamp) -> Result<Said, Error> {
    let Some(trade) = named(merchant, business, now) else { return Ok(ABSENT) };
    Ok(match merchant.trades.close(&trade.number, now)? {
        Close::Done(trade) => Said::Done(json!({
            "trade_no": trade.payment, "out_trade_no": trade.number,
        })),
        Close::Absent => ABSENT,
        Close::Before => Said::Failed("ACQ.TRADE_STATUS_ERROR", "交易状态不合法"),
        Close::TooEarly | Close::Paid | Close::Paying => {
            Said::Failed("ACQ.REASON_TRADE_STATUS_INVALID", "交易状态异常")
        }
    })
}

fn refunded(
    merchant: &Merchant,
    business: &Value,
    fault: Option<MerchantFault>,
    now: Timestamp,
) -> Result<Said, Error> {
    let Some(trade) = named(merchant, business, now) else { return Ok(ABSENT) };
    let fen = business["refund_amount"].as_str().and_then(to_fen);
    let (Some(fen), Some(number)) = (fen, business["out_request_no"].as_str()) else {
        return Ok(INVALID);
    };
    let is_done = fault != Some(MerchantFault::LeaveRefundPending);
    let refund = Refund { number: number.to_owned(), fen, created_ms: now.ms(), is_done };
    let done = |trade: &Trade, moved: bool| {
        Said::Done(json!({
            "trade_no": trade.payment, "out_trade_no": trade.number,
            "buyer_logon_id": "159****5620", "fund_change": if moved { "Y" } else { "N" },
            "refund_fee": to_yuan(trade.terms.fen - trade.left()),
            "gmt_refund_pay": plain(now),
        }))
    };
    Ok(match merchant.trades.refund(&trade.number, refund, now)? {
        Refunded::Made(trade, refund) => done(&trade, refund.is_done),
        Refunded::Before(trade, _) => done(&trade, false),
        Refunded::Differs => Said::Failed("ACQ.DISCORDANT_REPEAT_REQUEST", "不一致的请求"),
        Refunded::Absent => ABSENT,
        Refunded::NotPaid => Said::Failed("ACQ.TRADE_STATUS_ERROR", "交易状态不合法"),
        Refunded::TooMuch => Said::Failed("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL", "退款金额超限"),
        Refunded::TooSoon | Refunded::TooMany => {
            Said::Failed("ACQ.TRADE_NOT_ALLOW_REFUND", "当前交易不允许退款")
        }
    })
}

fn found_refund(merchant: &Merchant, business: &Value, now: Timestamp) -> Said {
    let Some(trade) = named(merchant, business, now) else { return ABSENT };
    let number = business["out_request_no"].as_str().unwrap_or_default();
    let Some(refund) = trade.refunds.iter().find(|refund| refund.number == number) else {
        return Said::Done(json!({}));
    };
    Said::Done(json!({
        "trade_no": trade.payment, "out_trade_no": trade.number, "out_request_no": number,
        "total_amount": to_yuan(trade.terms.fen), "refund_amount": to_yuan(refund.fen),
        "refund_status": if refund.is_done { "REFUND_SUCCESS" } else { "REFUND_PROCESSING" },
    }))
}

/// The status of a trade: one that went back as a whole is closed.
fn status(trade: &Trade) -> &'static str {
    match trade.state {
        // That its payer is at it, nobody is told.
        State::Waiting | State::Paying { .. } => "WAIT_BUYER_PAY",
        State::Paid { .. } if trade.left() == MinorUnits::ZERO => "TRADE_CLOSED",
        State::Paid { .. } => "TRADE_SUCCESS",
        State::Closed { .. } => "TRADE_CLOSED",
    }
}

fn shown(trade: &Trade) -> Value {
    let total = to_yuan(trade.terms.fen);
    let mut shown = json!({
        "trade_no": trade.payment, "out_trade_no": trade.number,
        "buyer_logon_id": "159****5620", "buyer_user_id": "2088102177846880",
        "trade_status": status(trade), "total_amount": total, "receipt_amount": "0.00",
        "buyer_pay_amount": "0.00", "point_amount": "0.00", "invoice_amount": "0.00",
    });
    if let Some(paid_ms) = trade.paid_ms() {
        shown["send_pay_date"] = json!(plain(Timestamp::from_ms(paid_ms)));
        for field in ["receipt_amount", "buyer_pay_amount", "invoice_amount"] {
            shown[field] = json!(total);
        }
    }
    shown
}

/// The notification of a payment, as a form.
/// Source: <https://opendocs.alipay.com/open/270/105902>
fn form(merchant: &Merchant, trade: &Trade, id: &str) -> Result<String, Error> {
    let (total, paid) =
        (to_yuan(trade.terms.fen), plain(Timestamp::from_ms(trade.paid_ms().unwrap_or_default())));
    let (app_id, payment) = (merchant.names.app_id.as_str(), trade.payment.to_string());
    let created = plain(Timestamp::from_ms(trade.created_ms));
    let fields = [
        ("notify_time", paid.as_str()),
        ("notify_type", "trade_status_sync"),
        ("notify_id", id),
        ("app_id", app_id),
        ("auth_app_id", app_id),
        ("charset", "utf-8"),
        ("version", "1.0"),
        ("trade_no", &payment),
        ("out_trade_no", &trade.number),
        ("trade_status", status(trade)),
        ("total_amount", &total),
        ("receipt_amount", &total),
        ("invoice_amount", &total),
        ("buyer_pay_amount", &total),
        ("point_amount", "0.00"),
        ("seller_id", &merchant.names.account),
        ("buyer_id", "2088102177846880"),
        ("subject", &trade.terms.subject),
        ("body", ""),
        ("gmt_create", &created),
        ("gmt_payment", &paid),
        ("fund_bill_list", "[{\"amount\":\"0.00\",\"fundChannel\":\"ALIPAYACCOUNT\"}]"),
    ];
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let mut parameters: Parameters = fields.into_iter().map(owned).collect();
    let sign = merchant.keys.own.sign(signed_text(&parameters, &[]).as_bytes())?;
    parameters.insert("sign_type".to_owned(), "RSA2".to_owned());
    parameters.insert("sign".to_owned(), sign);
    Ok(form_urlencoded::Serializer::new(String::new()).extend_pairs(&parameters).finish())
}

/// The notification that a trade is paid, sent so much later: the same bytes each time.
pub(crate) fn paid(merchant: &Arc<Merchant>, trade: &Trade, after: Duration) -> Notice {
    let at_ms = trade.money_ms().unwrap_or_default();
    let trade = Trade { state: State::Paid { at_ms }, ..trade.clone() };
    let id = notice_id().unwrap_or_else(|_| trade.payment.to_string());
    let (writer, written) = (Arc::clone(merchant), trade.clone());
    let (told, number) = (Arc::clone(merchant), trade.number.clone());
    Notice {
        url: trade.terms.notify_url.clone(),
        after,
        write: Box::new(move || -> Result<Letter, Error> {
            let kind = "application/x-www-form-urlencoded;charset=utf-8";
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(kind))];
            Ok((HeaderMap::from_iter(headers), form(&writer, &written, &id)?))
        }),
        probe: None,
        is_taken: |status, text| status.is_success() && text == "success",
        gap: notification_gap,
        taken: Box::new(move || {
            if let Err(failed) = told.trades.tell(&number, Timestamp::now()) {
                tracing::error!(%failed, "that a notification was taken could not be kept");
            }
        }),
    }
}
