//! The gateway, for one account: attempts, captures and refunds.
//!
//! An answer is believed only with Alipay's signature, be it a success or a failure.

use futures_util::future::try_join_all;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::amount::{to_fen, to_yuan};
use super::notification::{self, Payee};
use super::request::{Request, business};
use super::response::{self, Failure, Meaning};
use super::trade::{
    ByNumber, CURRENCY, Closed, PagePay, Precreate, Precreated, Refund, RefundFound, RefundQuery,
    RefundStatus, Refunded, SEPARATOR, Trade, part_number, refund_number,
};
use crate::providers::account::{Account, Answer, Effect};
use crate::providers::bill::{self, RawBill};
use crate::providers::limit::{Limits, Operation};
use crate::providers::rotation::Rotation;
use crate::providers::rsa::{SigningKey, Unsigned, VerifyingKey};
use crate::providers::{EventDefect, SignatureDefect, beijing, trade_number};
use crate::runtime::connections::Https;
use crate::runtime::merchants::{AlipayMerchant, Shop};
use engine::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use engine::domain::basics::money::Money;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{Attempt, PaymentMethod, PaymentStep, ReturnUrl};
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Order, PaymentRecord};
use engine::domain::payment::bill::{BillDay, Billed};
use engine::domain::payment::ours::Reported;
use engine::domain::payment::start::{CloseReply, StartReply, Turn};
use engine::ports::{StoreError, Stored};

/// Address of the gateway unless configured.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
const URL: &str = "https://openapi.alipay.com/gateway.do";
/// Most bytes of an answer: a trade has some two thousand.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Shortest life of an attempt, in milliseconds: a trade lives for a minute at least. A request may wait for
/// its turn and its answer for ten seconds more.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
const MIN_LIFE_MS: i64 = 70_000;
/// The code of a trade that Alipay does not know: of a page or a code until the buyer has opened it.
/// Source: <https://developer.aliyun.com/article/710933>
const ABSENT: &str = "ACQ.TRADE_NOT_EXIST";
/// The codes of a trade that is not waiting for its buyer.
/// Source: <https://opendocs.alipay.com/open/ce0b4954_alipay.trade.close>
const NOT_WAITING: [&str; 3] =
    ["ACQ.TRADE_STATUS_ERROR", "ACQ.REASON_TRADE_STATUS_INVALID", "ACQ.REASON_ILLEGAL_STATUS"];
/// The code of a request whose signature does not fit.
const UNSIGNED: &str = "isv.invalid-signature";
const NOT_CNY: &str = "Alipay's gateway in China takes CNY only";

/// The hosts of files, beside the address of the gateway.
const HOSTS: &str = ".alipay.com";
/// Seconds after the end of a day until its bill can be there: about nine o'clock.
/// Source: <https://opendocs.alipay.com/open/02e7go>
const BILL_READY_SECONDS: i64 = 9 * 60 * 60;
/// The codes of a day without a bill, in the spellings of the gateway and of its documentation.
const NO_BILL: [&str; 2] = ["isp.bill_not_exist", "BILL_NOT_EXIST"];

/// Parameters of `alipay.data.dataservice.bill.downloadurl.query`.
#[derive(Debug, Serialize)]
struct BillQuery {
    bill_type: &'static str,
    bill_date: String,
}

/// The answer to [`BillQuery`].
#[derive(Debug, Deserialize)]
struct BillFound {
    bill_download_url: String,
}

/// The gateway, for one account.
#[derive(Debug)]
pub(super) struct Api {
    account: Account,
    shop: Shop,
    seller_id: String,
    /// The deployment's id, which payments carry.
    own: Option<DeploymentId>,
    own_keys: Rotation<SigningKey>,
    keys: Vec<VerifyingKey>,
}

/// One call: what it asks for, and what it means.
#[derive(Clone, Copy)]
struct Call<'a> {
    operation: Operation,
    effect: Effect,
    method: &'a str,
    notify_url: Option<&'a str>,
}

impl<'a> Call<'a> {
    fn new(operation: Operation, effect: Effect, method: &'a str) -> Self {
        Self { operation, effect, method, notify_url: None }
    }
}

impl Api {
    pub(super) fn new(
        name: ProviderId,
        merchant: AlipayMerchant,
        own: Option<DeploymentId>,
        https: Https,
        limits: &Limits,
    ) -> Self {
        let AlipayMerchant { shop, seller_id, private_key, next_private_key, public_keys } =
            merchant;
        let own_keys = Rotation::new(private_key, next_private_key);
        let url = shop.url.as_deref().unwrap_or(URL);
        let account = Account::unsigned(name, url, MAX_ANSWER_BYTES, https, limits);
        Self { account, shop, seller_id, own, own_keys, keys: public_keys }
    }

    /// The deployment's id, which payments carry.
    pub(super) fn own(&self) -> Option<&DeploymentId> {
        self.own.as_ref()
    }

    pub(super) fn provider(&self) -> &ProviderId {
        &self.account.provider
    }

    /// Checks the signature of a notification, which is in its body.
    pub(super) fn verify(&self, _headers: &HeaderMap, body: &[u8]) -> Result<(), SignatureDefect> {
        notification::verify(body, &self.keys)
    }

    /// The capture that a notification reports.
    pub(super) fn notified(&self, body: &[u8]) -> Result<Option<Reported>, EventDefect> {
        let (app_id, seller_id) = (&self.shop.app_id, &self.seller_id);
        let own = self.own.as_ref();
        notification::capture(body, Payee { provider: self.provider(), app_id, seller_id, own })
    }

    /// Every capture of an order's attempts, as there is no search by order.
    pub(super) async fn captures(&self, order: &Order) -> Stored<Vec<Reported>> {
        let each = order.attempts.handed().map(|attempt| async move {
            match self.query(&trade_number::of_attempt(order.number, attempt, SEPARATOR)).await? {
                Some(trade) => self.captured(&trade),
                None => Ok(None),
            }
        });
        Ok(try_join_all(each).await?.into_iter().flatten().collect())
    }

    /// Takes the turn of a call that starts an attempt, or the next start. A page is signed here, and takes none.
    pub(super) async fn turn(&self, method: PaymentMethod) -> Stored<Turn> {
        match method {
            PaymentMethod::Page | PaymentMethod::Form => {
                self.account.own().await?;
                Ok(Turn::Now)
            }
            PaymentMethod::Code => self.account.next_start().await,
        }
    }

    /// Starts an attempt: a page is an address that we sign ourselves, the same one however often; a code is
    /// asked for.
    pub(super) async fn start(&self, order: &Order, attempt: &Attempt) -> Stored<StartReply> {
        let refused = |why: &str| Ok(StartReply::Refused(why.to_owned()));
        let now = Timestamp::now();
        if order.total.currency.to_string() != CURRENCY {
            return refused(NOT_CNY);
        }
        let Some(total_amount) = to_yuan(order.total.amount_minor) else {
            return refused("Alipay takes 0.01 to 100000000.00 yuan");
        };
        if attempt.expires_at.ms_since(now) < MIN_LIFE_MS {
            return refused(
                "the attempt would end in little more than a minute, and no trade is that short",
            );
        }
        let number = trade_number::of_attempt(order.number, attempt, SEPARATOR);
        let reference = PaymentId::new(number.as_str())
            .map_err(|error| StoreError::Contract(error.to_string()))?;
        let step = match attempt.choice.method {
            PaymentMethod::Page => Ok(self.page(number, total_amount, attempt)?),
            PaymentMethod::Code => self.code(number, total_amount, attempt, now).await?,
            PaymentMethod::Form => return refused("Alipay has no form of the seller's own"),
        };
        Ok(match step {
            Ok(step) => StartReply::Started { reference, step },
            Err(failure) => StartReply::Refused(failure.text()),
        })
    }

    fn page(
        &self,
        out_trade_no: String,
        total_amount: String,
        attempt: &Attempt,
    ) -> Stored<PaymentStep> {
        let Shop { app_id, notify_url, description, .. } = &self.shop;
        let parameters = PagePay {
            out_trade_no,
            product_code: "FAST_INSTANT_TRADE_PAY",
            total_amount,
            subject: description,
            time_expire: beijing::plain(attempt.expires_at),
        };
        let signed = Request {
            app_id,
            method: "alipay.trade.page.pay",
            at: attempt.started_at,
            notify_url: Some(notify_url),
            return_url: attempt.choice.return_url.as_ref().map(ReturnUrl::as_str),
            business: &self.business(&parameters)?,
        };
        let key = self.own_keys.key(self.own_keys.turn());
        let query = signed.signed(key).map_err(|error| self.unsigned(error))?;
        Ok(PaymentStep::Page(format!("{}?{query}", self.account.url)))
    }

    async fn code(
        &self,
        out_trade_no: String,
        total_amount: String,
        attempt: &Attempt,
        now: Timestamp,
    ) -> Stored<Result<PaymentStep, Failure>> {
        let minutes = attempt.expires_at.ms_since(now).div_euclid(60_000);
        let parameters = Precreate {
            out_trade_no: out_trade_no.clone(),
            total_amount,
            subject: &self.shop.description,
            time_expire: beijing::plain(attempt.expires_at),
            qr_code_timeout_express: format!("{minutes}m"),
        };
        let call = Call::new(Operation::StartPayment, Effect::Write, "alipay.trade.precreate");
        let call = Call { notify_url: Some(&self.shop.notify_url), ..call };
        let made: Result<Precreated, Failure> = self.call(call, &parameters).await?;
        match made {
            Ok(made) if made.out_trade_no == out_trade_no => {
                Ok(Ok(PaymentStep::Code(made.qr_code)))
            }
            Ok(_) => Err(self.contract("it answered with another trade")),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Closes an attempt. "Not there" is not "closed": a page that the buyer has not opened may still be.
    pub(super) async fn close(&self, order: &Order, attempt: &Attempt) -> Stored<CloseReply> {
        let out_trade_no = trade_number::of_attempt(order.number, attempt, SEPARATOR);
        let call = Call::new(Operation::ClosePayment, Effect::Write, "alipay.trade.close");
        let parameters = ByNumber { out_trade_no: out_trade_no.clone() };
        let closed: Result<Closed, Failure> = self.call(call, &parameters).await?;
        match closed {
            Ok(Closed { out_trade_no: Some(other) }) if other != out_trade_no => {
                return Err(self.contract("it closed another trade"));
            }
            Ok(_) => return Ok(CloseReply::Closed),
            Err(failure) if failure.sub_code() == ABSENT => return Ok(CloseReply::Absent),
            Err(failure) if !NOT_WAITING.contains(&failure.sub_code()) => {
                return Err(self.contract(&failure.text()));
            }
            Err(_) => {}
        }
        let Some(trade) = self.query(&out_trade_no).await? else { return Ok(CloseReply::Absent) };
        if let Some(reported) = self.captured(&trade)? {
            return Ok(CloseReply::Paid(reported.capture));
        }
        Ok(if trade.trade_status.is_closed() { CloseReply::Closed } else { CloseReply::NotYet })
    }

    /// Sends a whole payment back, or says how far that is. It is asked about first; the request has one
    /// number however often it is made, and moves money once.
    pub(super) async fn refund(&self, record: &PaymentRecord) -> Stored<RefundReply> {
        let number = refund_number(record);
        self.refund_as(record, number, record.capture.amount, None).await
    }

    /// Sends a part of a payment back, or says how far that is, under its own name. One that was refused is only asked
    /// about, as at WeChat Pay.
    pub(super) async fn refund_part(
        &self,
        record: &PaymentRecord,
        part: &OrderRefund,
    ) -> Stored<RefundReply> {
        self.refund_as(record, part_number(part.name()), part.amount, part.held()).await
    }

    async fn refund_as(
        &self,
        record: &PaymentRecord,
        out_request_no: String,
        asked: Money,
        held: Option<RefundReply>,
    ) -> Stored<RefundReply> {
        let payment = &record.capture.key.payment;
        let whole = to_yuan(asked.amount_minor);
        let whole = whole.filter(|_| asked.currency.to_string() == CURRENCY);
        let Some(refund_amount) = whole else {
            return Ok(RefundReply::Refused(NOT_CNY.to_owned()));
        };
        let method = "alipay.trade.fastpay.refund.query";
        let call = Call::new(Operation::ListRefunds, Effect::Read, method);
        let parameters = RefundQuery { trade_no: payment, out_request_no: out_request_no.clone() };
        let found: Result<RefundFound, Failure> = self.call(call, &parameters).await?;
        let found = match found {
            Ok(found) => found,
            Err(failure) => return Ok(RefundReply::Refused(failure.text())),
        };
        let amount = found.refund_amount.as_deref().map(to_fen);
        let is_all = amount == Some(Some(asked.amount_minor));
        let is_ours = found.out_request_no.as_ref().is_none_or(|number| *number == out_request_no);
        if !is_ours || (amount.is_some() && !is_all) {
            return Err(self.contract("it answered with another refund"));
        }
        match found.refund_status {
            Some(RefundStatus::Success) => return Ok(RefundReply::Refunded),
            Some(RefundStatus::Processing) => return Ok(RefundReply::Pending),
            Some(RefundStatus::Failed) | None => {}
        }
        // An older form of the query has no status, and an amount once it is done.
        let is_done = is_all && found.refund_status.is_none();
        if let Some(held) = held.filter(|_| !is_done) {
            return Ok(held);
        }
        let call = Call::new(Operation::Refund, Effect::Write, "alipay.trade.refund");
        let parameters = Refund { trade_no: payment, refund_amount, out_request_no };
        let made: Result<Refunded, Failure> = self.call(call, &parameters).await?;
        match made {
            Ok(made) if made.trade_no != *payment => {
                Err(self.contract("it refunded another trade"))
            }
            Ok(made) if made.fund_change.as_deref() == Some("Y") => Ok(RefundReply::Refunded),
            // Nothing moved now. An older form of the query has no status, and an amount once it is done.
            Ok(_) if is_all => Ok(RefundReply::Refunded),
            Ok(_) => Ok(RefundReply::Pending),
            Err(failure) => Ok(RefundReply::Refused(failure.text())),
        }
    }

    /// The account whose bills are read.
    pub(super) fn billed(&self) -> Billed {
        Billed {
            provider: self.provider().clone(),
            day_ahead_ms: beijing::AHEAD_MS,
            ready_after_seconds: BILL_READY_SECONDS,
            merchant: Some(self.seller_id.clone()),
            lists_refunds: false,
            own: self.own.clone(),
        }
    }

    /// The bill of trades of a day: an archive, at an address that is good for half a minute. Of a day that has none Alipay
    /// says the same as of one that has none yet.
    /// Source: <https://opendocs.alipay.com/open/02e7go>
    pub(super) async fn bill(&self, day: BillDay) -> Stored<RawBill> {
        let method = "alipay.data.dataservice.bill.downloadurl.query";
        let call = Call::new(Operation::ReadBill, Effect::Read, method);
        let parameters = BillQuery { bill_type: "trade", bill_date: day.to_string() };
        let found: Result<BillFound, Failure> = self.signed_call(call, &parameters).await?;
        let found = match found {
            Ok(found) => found,
            Err(failure) if NO_BILL.contains(&failure.sub_code()) => return Ok(RawBill::Absent),
            Err(failure) => return Err(self.failed(call, &failure)),
        };
        let address = bill::address(&found.bill_download_url, &self.account.url, &[HOSTS]);
        let elsewhere = || self.contract("its bill is not at its own address");
        let head = http::Request::builder().uri(address.ok_or_else(elsewhere)?);
        let answer = self.account.fetch(head, bill::MAX_PACKED_BYTES).await?;
        match answer.status {
            StatusCode::OK => Ok(RawBill::Zip(answer.body)),
            // The address was good for half a minute: another one is asked for the next time.
            status => Err(StoreError::Unavailable(self.said(&format!("no bill: {status}")))),
        }
    }

    /// The trade of an attempt; `None` if Alipay knows none.
    async fn query(&self, out_trade_no: &str) -> Stored<Option<Trade>> {
        let call = Call::new(Operation::ReadPayment, Effect::Read, "alipay.trade.query");
        let parameters = ByNumber { out_trade_no: out_trade_no.to_owned() };
        let found: Result<Trade, Failure> = self.call(call, &parameters).await?;
        match found {
            Ok(trade) if trade.out_trade_no == out_trade_no => Ok(Some(trade)),
            Ok(_) => Err(self.contract("it answered with another trade")),
            Err(failure) if failure.sub_code() == ABSENT => Ok(None),
            Err(failure) => Err(self.contract(&failure.text())),
        }
    }

    fn captured(&self, trade: &Trade) -> Stored<Option<Reported>> {
        let capture = trade.capture(self.provider(), self.own.as_ref());
        capture.map_err(|EventDefect(defect)| self.contract(&defect))
    }

    /// Signs and makes a request, and reads its answer: a success, or a failure that Alipay has decided on.
    ///
    /// A request whose signature is refused was not looked at: it is signed with the app's other key, if there is
    /// one.
    async fn call<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
        parameters: &(impl Serialize + Sync),
    ) -> Stored<Result<T, Failure>> {
        let read = self.signed_call(call, parameters).await?;
        let Err(failure) = &read else { return Ok(read) };
        match failure.meaning() {
            Meaning::Unknown | Meaning::NotLetIn => Err(self.failed(call, failure)),
            Meaning::Refused => Ok(read),
        }
    }

    /// The error of a call that Alipay did not answer with a success.
    fn failed(&self, call: Call<'_>, failure: &Failure) -> StoreError {
        match failure.meaning() {
            Meaning::Unknown => call.effect.lost(self.said(&failure.text())),
            Meaning::NotLetIn => StoreError::Unavailable(self.said(&failure.text())),
            Meaning::Refused => self.contract(&failure.text()),
        }
    }

    /// [`Api::call`], with every failure as Alipay gives it.
    async fn signed_call<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
        parameters: &(impl Serialize + Sync),
    ) -> Stored<Result<T, Failure>> {
        let turn = self.own_keys.turn();
        let read = self.call_with(self.own_keys.key(turn), call, parameters).await?;
        let is_refused = read.as_ref().err().is_some_and(|refused| refused.sub_code() == UNSIGNED);
        let other = if is_refused { self.own_keys.after(turn) } else { None };
        match other {
            Some(other) => self.call_with(self.own_keys.key(other), call, parameters).await,
            None => Ok(read),
        }
    }

    async fn call_with<T: DeserializeOwned>(
        &self,
        key: &SigningKey,
        call: Call<'_>,
        parameters: &(impl Serialize + Sync),
    ) -> Stored<Result<T, Failure>> {
        let Call { operation, effect, method, notify_url } = call;
        let request = Request {
            app_id: &self.shop.app_id,
            method,
            at: Timestamp::now(),
            notify_url,
            return_url: None,
            business: &self.business(parameters)?,
        };
        let form = request.signed(key).map_err(|error| self.unsigned(error))?;
        let head = http::Request::builder()
            .method(Method::POST)
            .uri(&self.account.url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded;charset=utf-8");
        let answer = self.account.ask(operation, head, form.into(), effect).await?;
        if answer.status != StatusCode::OK {
            return Err(self.account.error(&answer, effect, |_: &Answer| String::new()));
        }
        let value = response::verified(&answer.body, method, &self.keys);
        let value = value.map_err(|error| effect.lost(self.said(&error.to_string())))?;
        response::read(value).map_err(|error| self.contract(&error.to_string()))
    }

    fn business(&self, parameters: &impl Serialize) -> Stored<String> {
        business(parameters).map_err(|error| self.contract(&error.to_string()))
    }

    fn unsigned(&self, error: Unsigned) -> StoreError {
        StoreError::Unavailable(self.said(&error.to_string()))
    }

    fn contract(&self, what: &str) -> StoreError {
        StoreError::Contract(self.said(what))
    }

    fn said(&self, what: &str) -> String {
        format!("provider {}: {what}", self.provider())
    }
}
