//! The API of one account: attempts, captures and refunds.
//!
//! A request is signed; a success is believed only with WeChat Pay's signature, which also keeps an old
//! answer from being played again. What is no success carries none for certain: it comes over TLS from the
//! address of the API, and nothing is ever paid, closed or refunded by it.
//! (<https://pay.weixin.qq.com/wiki/doc/api_external/en/wechatpay/wechatpay3_3.shtml>)

use futures_util::future::try_join_all;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::uri::{InvalidUri, PathAndQuery};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};

use super::event;
use super::refund::{self, Asked, Refund};
use super::resource::ApiV3Key;
use super::signature::{self, PlatformKeys, Signer};
use super::transaction::{
    CURRENCY, Close, NativeOrder, NativeReply, Payee, SEPARATOR, Transaction,
};
use crate::providers::account::{Account, Answer, Effect, escaped};
use crate::providers::bill::{self, RawBill};
use crate::providers::limit::{Limits, Operation};
use crate::providers::rotation::Rotation;
use crate::providers::rsa::{SigningKey, Unsigned};
use crate::providers::{EventDefect, SignatureDefect, beijing, trade_number};
use crate::runtime::connections::Https;
use crate::runtime::merchants::{Shop, WechatMerchant};
use engine::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{Attempt, PaymentMethod, PaymentStep};
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Order, PaymentRecord};
use engine::domain::payment::bill::{BillDay, Billed};
use engine::domain::payment::ours::Reported;
use engine::domain::payment::start::{CloseReply, StartReply, Turn};
use engine::ports::{StoreError, Stored};

/// Address of the API unless configured.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
const URL: &str = "https://api.mch.weixin.qq.com";
/// Most bytes of an answer: a transaction has some two thousand.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Shortest life of an attempt, in milliseconds: WeChat Pay moves an earlier end to one minute after the
/// order is placed, and money could come when nobody expects it. A request may wait for its turn and its
/// answer for ten seconds more.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012525171>
const MIN_LIFE_MS: i64 = 70_000;
/// What the API is told of us, which it demands.
/// Source: <https://pay.weixin.qq.com/wiki/doc/apiv3/wechatpay/wechatpay2_0.shtml>
const AGENT: &str = "onsale";

/// The hosts of files, beside the address of the API.
const HOSTS: &str = ".mch.weixin.qq.com";
/// Seconds after the end of a day until its bill can be there: from ten o'clock on.
/// Source: <https://pay.weixin.qq.com/docs/merchant/apis/jsapi-payment/get-trade-bill.html>
const BILL_READY_SECONDS: i64 = 10 * 60 * 60;

/// Where the file of a bill is.
#[derive(Debug, Deserialize)]
struct Place {
    download_url: String,
    hash_type: String,
    hash_value: String,
}

/// The API of one account.
#[derive(Debug)]
pub(super) struct Api {
    account: Account,
    shop: Shop,
    merchant_id: String,
    /// The deployment's id, which payments carry.
    own: Option<DeploymentId>,
    signers: Rotation<Signer>,
    keys: PlatformKeys,
    api_v3_keys: Vec<ApiV3Key>,
}

/// What an answer says that is an error.
/// Source: <https://pay.weixin.qq.com/wiki/doc/apiv3/wechatpay/wechatpay2_0.shtml>
#[derive(Debug, Default, Deserialize)]
struct ApiError {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// One request: what it asks for, and what it means.
struct Question<'a> {
    operation: Operation,
    effect: Effect,
    method: Method,
    target: &'a str,
    body: String,
}

impl Api {
    pub(super) fn new(
        name: ProviderId,
        merchant: WechatMerchant,
        own: Option<DeploymentId>,
        tolerance_seconds: u32,
        https: Https,
        limits: &Limits,
    ) -> Self {
        let WechatMerchant {
            shop,
            merchant_id,
            serial,
            private_key,
            next,
            public_keys,
            api_v3_keys,
        } = merchant;
        let signer = |serial: String, key: SigningKey| Signer {
            merchant_id: merchant_id.clone(),
            serial,
            key,
        };
        let next = next.map(|(serial, key)| signer(serial, key));
        let url = shop.url.as_deref().unwrap_or(URL);
        Self {
            account: Account::unsigned(name, url, MAX_ANSWER_BYTES, https, limits),
            shop,
            signers: Rotation::new(signer(serial, private_key), next),
            merchant_id,
            own,
            keys: PlatformKeys::new(public_keys, tolerance_seconds),
            api_v3_keys,
        }
    }

    /// The deployment's id, which payments carry.
    pub(super) fn own(&self) -> Option<&DeploymentId> {
        self.own.as_ref()
    }

    pub(super) fn provider(&self) -> &ProviderId {
        &self.account.provider
    }

    /// Checks the signature of a notification.
    pub(super) fn verify(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), SignatureDefect> {
        self.keys.verify(headers, body, now)
    }

    /// The capture that a notification reports.
    pub(super) fn notified(&self, body: &[u8]) -> Result<Option<Reported>, EventDefect> {
        event::capture(body, &self.api_v3_keys, self.payee())
    }

    /// Every capture of an order's attempts, as there is no search by order.
    pub(super) async fn captures(&self, order: &Order) -> Stored<Vec<Reported>> {
        let each = order.attempts.handed().map(|attempt| async move {
            match self.query(&trade_number::of_attempt(order.number, attempt, SEPARATOR)).await? {
                Some(transaction) => self.captured(&transaction),
                None => Ok(None),
            }
        });
        Ok(try_join_all(each).await?.into_iter().flatten().collect())
    }

    /// Takes the turn of a call that starts an attempt, or the next start.
    pub(super) async fn turn(&self) -> Stored<Turn> {
        self.account.next_start().await
    }

    /// Places the order of an attempt. Placed again, it is the same one.
    pub(super) async fn start(&self, order: &Order, attempt: &Attempt) -> Stored<StartReply> {
        if let Some(why) = refusal(order, attempt, Timestamp::now()) {
            return Ok(StartReply::Refused(why.to_owned()));
        }
        let Shop { description, notify_url, .. } = &self.shop;
        let placed = NativeOrder::new(self.payee(), description, notify_url, order, attempt);
        let answer =
            self.post(Operation::StartPayment, "/v3/pay/transactions/native", &placed).await?;
        if is_refusal(answer.status) {
            return Ok(StartReply::Refused(words(&answer)));
        }
        let NativeReply { code_url } = self.account.read(&answer, Effect::Write, words)?;
        let reference = PaymentId::new(placed.out_trade_no.as_str())
            .map_err(|error| StoreError::Contract(error.to_string()))?;
        Ok(StartReply::Started { reference, step: PaymentStep::Code(code_url) })
    }

    /// Closes an attempt. A close is answered in the same way if there is no such order, and its code says
    /// little if it fails: what became of it, a query tells.
    /// (<https://developers.weixin.qq.com/community/pay/doc/00048a1efdc23011142d839d351800>)
    pub(super) async fn close(&self, order: &Order, attempt: &Attempt) -> Stored<CloseReply> {
        let number = trade_number::of_attempt(order.number, attempt, SEPARATOR);
        let target = format!("/v3/pay/transactions/out-trade-no/{number}/close");
        let close = Close { mchid: &self.merchant_id };
        let answer = self.post(Operation::ClosePayment, &target, &close).await?;
        // 202 is `USER_PAYING`.
        let is_told = answer.status.is_success() || is_refusal(answer.status);
        if !is_told {
            return Err(self.account.error(&answer, Effect::Write, words));
        }
        let Some(transaction) = self.query(&number).await? else { return Ok(CloseReply::Absent) };
        if transaction.trade_state.is_closed() {
            return Ok(CloseReply::Closed);
        }
        match self.captured(&transaction)? {
            Some(reported) => Ok(CloseReply::Paid(reported.capture)),
            None => Ok(CloseReply::NotYet),
        }
    }

    /// Sends a whole payment back, or says how far that is. It is asked about first: a refund that was
    /// closed or did not arrive stays so, and is not asked for again.
    pub(super) async fn refund(&self, record: &PaymentRecord) -> Stored<RefundReply> {
        self.refund_as(record, &Asked::whole(record), None).await
    }

    /// Sends a part of a payment back, or says how far that is, as a whole one. One that was refused is only asked about:
    /// WeChat Pay lists no refunds of a payment, so that nobody can see whether a hand has sent the money back
    /// meanwhile. An operator has it sent again.
    pub(super) async fn refund_part(
        &self,
        record: &PaymentRecord,
        part: &OrderRefund,
    ) -> Stored<RefundReply> {
        self.refund_as(record, &Asked::part(record, part), part.held()).await
    }

    async fn refund_as(
        &self,
        record: &PaymentRecord,
        asked: &Asked<'_>,
        held: Option<RefundReply>,
    ) -> Stored<RefundReply> {
        if record.capture.amount.currency.to_string() != CURRENCY {
            return Ok(RefundReply::Refused(NOT_CNY.to_owned()));
        }
        let target = asked.path();
        let answer = self.get(Operation::ListRefunds, &target).await?;
        if !is_absent(&answer) {
            return self.refunded(&answer, Effect::Read, asked);
        }
        if let Some(held) = held {
            return Ok(held);
        }
        let target = "/v3/refund/domestic/refunds";
        let request = refund::Request::new(asked);
        let answer = self.post(Operation::Refund, target, &request).await?;
        if is_refusal(answer.status) {
            return Ok(RefundReply::Refused(words(&answer)));
        }
        self.refunded(&answer, Effect::Write, asked)
    }

    fn refunded(&self, answer: &Answer, effect: Effect, asked: &Asked<'_>) -> Stored<RefundReply> {
        let refund: Refund = self.account.read(answer, effect, words)?;
        refund.reply(asked).map_err(|defect| StoreError::Contract(self.said(defect)))
    }

    /// The account whose bills are read.
    pub(super) fn billed(&self) -> Billed {
        Billed {
            provider: self.provider().clone(),
            day_ahead_ms: beijing::AHEAD_MS,
            ready_after_seconds: BILL_READY_SECONDS,
            merchant: Some(self.merchant_id.clone()),
            lists_refunds: false,
            own: self.own.clone(),
        }
    }

    /// The bill of all trades of a day. The answer has the address of the file, which is signed for like a call, and whose
    /// answer is not signed: what is in it is checked by the sum that the first answer gives.
    /// Source: <https://pay.weixin.qq.com/docs/merchant/apis/jsapi-payment/get-trade-bill.html>
    pub(super) async fn bill(&self, day: BillDay) -> Stored<RawBill> {
        let target = format!("/v3/bill/tradebill?bill_date={day}&bill_type=ALL&tar_type=GZIP");
        let answer = self.get(Operation::ReadBill, &target).await?;
        match error_of(&answer).code.as_str() {
            _ if answer.status.is_success() => {}
            "NO_STATEMENT_EXIST" => return Ok(RawBill::Nothing),
            "STATEMENT_CREATING" => return Ok(RawBill::NotYet),
            _ => return Err(self.account.error(&answer, Effect::Read, words)),
        }
        let Place { download_url, hash_type, hash_value } =
            self.account.read(&answer, Effect::Read, words)?;
        if hash_type != "SHA1" {
            return Err(StoreError::Contract(self.said("its bill has another hash than SHA1")));
        }
        let address = bill::address(&download_url, &self.account.url, &[HOSTS]);
        let elsewhere = || StoreError::Contract(self.said("its bill is not at its own address"));
        let packed = self.download(&address.ok_or_else(elsewhere)?).await?;
        Ok(RawBill::Gzip { packed, sha1: hash_value })
    }

    async fn download(&self, address: &str) -> Stored<Bytes> {
        let unsigned = |error: Unsigned| StoreError::Unavailable(self.said(&error.to_string()));
        let uri: Uri = address.parse().map_err(|error: InvalidUri| StoreError::contract(error))?;
        let target = uri.path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
        let nonce = signature::nonce().map_err(unsigned)?;
        let signer = self.signers.key(self.signers.turn());
        let authorization = signer.authorization("GET", target, &nonce, Timestamp::now(), "");
        let head = Request::builder()
            .uri(address)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, AGENT)
            .header(AUTHORIZATION, authorization.map_err(unsigned)?);
        let answer = self.account.fetch(head, bill::MAX_PACKED_BYTES).await?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            // The address is good for a short while: another one is asked for the next time.
            status => Err(StoreError::Unavailable(self.said(&format!("no bill: {status}")))),
        }
    }

    /// The transaction of an attempt; `None` if WeChat Pay knows none.
    async fn query(&self, number: &str) -> Stored<Option<Transaction>> {
        let mchid = escaped(&self.merchant_id);
        let target = format!("/v3/pay/transactions/out-trade-no/{number}?mchid={mchid}");
        let answer = self.get(Operation::ReadPayment, &target).await?;
        if is_absent(&answer) {
            return Ok(None);
        }
        let transaction: Transaction = self.account.read(&answer, Effect::Read, words)?;
        if transaction.out_trade_no != number {
            return Err(StoreError::Contract(self.said("it answered with another transaction")));
        }
        Ok(Some(transaction))
    }

    fn captured(&self, transaction: &Transaction) -> Stored<Option<Reported>> {
        let capture = transaction.capture(self.payee());
        capture.map_err(|EventDefect(defect)| StoreError::Contract(self.said(&defect)))
    }

    fn payee(&self) -> Payee<'_> {
        let (merchant_id, app_id) = (&self.merchant_id, &self.shop.app_id);
        Payee { provider: self.provider(), merchant_id, app_id, own: self.own.as_ref() }
    }

    async fn get(&self, operation: Operation, target: &str) -> Stored<Answer> {
        let (effect, method, body) = (Effect::Read, Method::GET, String::new());
        self.ask(Question { operation, effect, method, target, body }).await
    }

    async fn post<T: Serialize + Sync>(
        &self,
        operation: Operation,
        target: &str,
        body: &T,
    ) -> Stored<Answer> {
        let body = serde_json::to_string(body)
            .map_err(|error| StoreError::Contract(self.said(&error.to_string())))?;
        let (effect, method) = (Effect::Write, Method::POST);
        self.ask(Question { operation, effect, method, target, body }).await
    }

    /// Signs and makes a request, and checks the signature of an answer that is a success.
    ///
    /// A request whose signature is refused was not looked at: it is signed with the merchant's other key, if there
    /// is one.
    async fn ask(&self, question: Question<'_>) -> Stored<Answer> {
        let turn = self.signers.turn();
        let answer = self.ask_with(self.signers.key(turn), &question).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let Some(other) = self.signers.after(turn) else { return Ok(answer) };
        self.ask_with(self.signers.key(other), &question).await
    }

    async fn ask_with(&self, signer: &Signer, question: &Question<'_>) -> Stored<Answer> {
        let Question { operation, effect, method, target, body } = question;
        let unsigned = |error: Unsigned| StoreError::Unavailable(self.said(&error.to_string()));
        let nonce = signature::nonce().map_err(unsigned)?;
        let authorization = signer
            .authorization(method.as_str(), target, &nonce, Timestamp::now(), body)
            .map_err(unsigned)?;
        let head = Request::builder()
            .method(method.clone())
            .uri(format!("{}{target}", self.account.url))
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, AGENT)
            .header(AUTHORIZATION, authorization);
        let head = match self.keys.id_for_answers() {
            Some(id) => head.header("wechatpay-serial", id),
            None => head,
        };
        let answer = self.account.ask(*operation, head, body.clone().into(), *effect).await?;
        if answer.status.is_success() {
            let verified = self.keys.verify(&answer.headers, &answer.body, Timestamp::now());
            verified.map_err(|defect| {
                effect.lost(self.said(&format!("its answer is not believed: {defect}")))
            })?;
        }
        Ok(answer)
    }

    fn said(&self, what: &str) -> String {
        format!("provider {}: {what}", self.provider())
    }
}

/// Why an attempt is not even asked for.
fn refusal(order: &Order, attempt: &Attempt, now: Timestamp) -> Option<&'static str> {
    match attempt.choice.method {
        PaymentMethod::Code => {}
        PaymentMethod::Page => {
            return Some("a page (H5) needs the payer's address, which is not known");
        }
        PaymentMethod::Form => return Some("WeChat Pay has no form of the seller's own"),
    }
    if order.total.currency.to_string() != CURRENCY {
        return Some(NOT_CNY);
    }
    if order.total.amount_minor <= MinorUnits::ZERO {
        return Some("WeChat Pay takes no payment of nothing");
    }
    let is_short = attempt.expires_at.ms_since(now) < MIN_LIFE_MS;
    is_short.then_some(
        "the attempt would end in little more than a minute, and WeChat Pay would prolong it",
    )
}

const NOT_CNY: &str = "WeChat Pay takes CNY only";

/// True for an answer by which WeChat Pay says that it will not do what was asked.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND)
}

/// True for an answer that says so in words: any server can answer 404.
fn is_absent(answer: &Answer) -> bool {
    let code = error_of(answer).code;
    let is_code = matches!(code.as_str(), "ORDER_NOT_EXIST" | "RESOURCE_NOT_EXISTS");
    answer.status == StatusCode::NOT_FOUND && is_code
}

fn error_of(answer: &Answer) -> ApiError {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// What an answer says that is an error.
fn words(answer: &Answer) -> String {
    let ApiError { code, message } = error_of(answer);
    format!("{code}: {message}")
}
