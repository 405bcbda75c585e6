//! A merchant's account at WeChat Pay or Alipay, whose API and pages a server of its own has.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Extracted};
use axum::response::Response;
use axum::routing::{get, post};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use fake_limits::table::Service;
use fake_limits::wechat::Refunds;
use fake_limits::{Enforced, Throttles};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::behaviour::Behaviour;
use crate::bills::{Bill, BillFault, Bills};
use crate::keys::{Keys, nonce};
use crate::ledger::LedgerEntry;
use crate::notices::{Notified, Notifier};
use crate::server::Server;
use crate::trades::{Pay, Refund, Refunded, Rules, Terms, Trade, Trades};
use crate::{Error, alipay, cashier, page, settlement, wechat};

/// A provider in China.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Wechat,
    Alipay,
}

impl Form {
    pub const ALL: [Self; 2] = [Self::Wechat, Self::Alipay];

    /// The provider's id, and the name of its form in the document of merchants.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wechat => "wechat",
            Self::Alipay => "alipay",
        }
    }

    fn rules(self, behaviour: Behaviour, is_limited: bool) -> Rules {
        match self {
            Self::Wechat => Rules {
                prefix: "4200",
                separator: '-',
                closes_at_expiry: false,
                no_close_for: behaviour.no_close_for,
                rations_refunds: is_limited,
            },
            Self::Alipay => Rules {
                prefix: "2088",
                separator: '_',
                closes_at_expiry: true,
                no_close_for: Duration::ZERO,
                rations_refunds: false,
            },
        }
    }
}

/// How one is started.
#[derive(Debug, Clone, Default)]
pub struct MerchantOptions {
    /// The file of its trades; in memory without one.
    pub file: Option<PathBuf>,
    /// How unkind it is.
    pub behaviour: Behaviour,
    /// Its published rates are enforced if limits are given.
    pub limits: Option<Enforced>,
}

/// A fault of the next request of its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MerchantFault {
    /// None: for who plans a fault of the request behind it.
    Spare,
    /// It is answered with a system error, and not done.
    FailRequest,
    /// It is done, and its answer is lost.
    LoseAnswer,
    /// It is done, and answered with a signature that is wrong on purpose.
    ProbeAnswer,
    /// The refund that it asks for is begun, and stays so.
    LeaveRefundPending,
}

/// Who the merchant is, to the provider.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) app_id: String,
    /// The merchant's number, or the seller's.
    pub(crate) account: String,
    /// Serial number of the merchant's certificate.
    pub(crate) serial: String,
    /// Id of the provider's key.
    pub(crate) key_id: String,
    /// The API v3 key.
    pub(crate) api_v3_key: String,
}

#[derive(Debug)]
pub(crate) struct Merchant {
    pub(crate) form: Form,
    pub(crate) names: Names,
    pub(crate) keys: Keys,
    pub(crate) trades: Trades,
    pub(crate) behaviour: Behaviour,
    pub(crate) notifier: Notifier,
    /// Where its server is.
    pub(crate) url: String,
    pub(crate) bills: Bills,
    faults: Mutex<VecDeque<MerchantFault>>,
    calls: Mutex<BTreeMap<&'static str, u64>>,
    refunds: Option<(Mutex<Refunds>, Throttles, Instant)>,
}

impl Merchant {
    pub(crate) fn count(&self, route: &'static str) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(route).or_default() += 1;
    }

    /// Takes the fault that is planned for the next request.
    pub(crate) fn fault(&self) -> Option<MerchantFault> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// True if one more request for a refund is within the rates.
    pub(crate) fn admits_refund(&self) -> bool {
        let Some((refunds, throttles, started)) = &self.refunds else { return true };
        let mut refunds = refunds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_admitted = refunds.admit(started.elapsed());
        if !is_admitted {
            throttles.one(Service::WechatPay.name(), "FREQUENCY_LIMITED (refunds)");
        }
        is_admitted
    }

    /// Counts a request for a refund that was answered with an error.
    pub(crate) fn faulty_refund(&self) {
        if let Some((refunds, _, started)) = &self.refunds {
            refunds.lock().unwrap_or_else(PoisonError::into_inner).fault(started.elapsed());
        }
    }

    /// What a query shows of a trade: what it was so long ago that it is shown by now.
    pub(crate) fn shown(&self, number: &str, now: Timestamp) -> Option<Trade> {
        let trade = self.trades.by_number(number, now)?;
        let lag_ms = i64::try_from(self.behaviour.query_lag.as_millis()).unwrap_or(i64::MAX);
        Some(trade.known_before(now.ms().saturating_sub(lag_ms)))
    }

    /// Tells the merchant that a trade is paid, as soon as it is.
    fn tell_paid(self: &Arc<Self>, trade: &Trade, now: Timestamp) {
        let after_ms = trade.money_ms().map_or(0, |at_ms| at_ms - now.ms());
        let after = Duration::from_millis(u64::try_from(after_ms).unwrap_or_default());
        self.notifier.send(match self.form {
            Form::Wechat => wechat::paid(self, trade, after),
            Form::Alipay => alipay::paid(self, trade, after),
        });
    }

    /// The person at the page pays.
    fn pay(self: &Arc<Self>, number: &str, takes: Duration, now: Timestamp) -> Result<Pay, Error> {
        let paid = self.trades.pay(number, takes, now)?;
        if let Pay::Taken(trade) = &paid {
            self.tell_paid(trade, now);
        }
        Ok(paid)
    }
}

/// A running fake of WeChat Pay or Alipay on a port of 127.0.0.1, with keys of its own; stopped when dropped.
#[derive(Debug)]
pub struct MerchantProvider {
    merchant: Arc<Merchant>,
    server: Server,
}

impl MerchantProvider {
    /// Starts one on this runtime.
    ///
    /// # Errors
    /// [`Error::Io`] when no port is free, [`Error::Line`] when the file is not one of its own.
    pub fn start(form: Form, options: MerchantOptions) -> Result<Self, Error> {
        let MerchantOptions { file, behaviour, limits } = options;
        let trades = Trades::open(file.as_deref(), form.rules(behaviour, limits.is_some()))?;
        let keys = Keys::generate()?;
        let names = match form {
            Form::Wechat => wechat::names()?,
            Form::Alipay => alipay::names(),
        };
        let notifier = Notifier::new(behaviour.hurry, behaviour.is_unruly)?;
        let rates = limits.filter(|_| form == Form::Wechat).map(|limits| {
            (Mutex::new(Refunds::new(Duration::ZERO)), limits.throttles, Instant::now())
        });
        let mut made = None;
        let server = Server::start(file.as_deref(), |address| {
            let merchant = Arc::new(Merchant {
                form,
                names,
                keys,
                trades,
                behaviour,
                notifier,
                url: format!("http://{address}"),
                bills: Bills::default(),
                faults: Mutex::default(),
                calls: Mutex::default(),
                refunds: rates,
            });
            made = Some(Arc::clone(&merchant));
            router(merchant)
        })?;
        let merchant = made.ok_or_else(|| Error::Provider("it has no account".to_owned()))?;
        // What a run before this one was killed over.
        let now = Timestamp::now();
        for trade in merchant.trades.untold(now) {
            merchant.tell_paid(&trade, now);
        }
        Ok(Self { merchant, server })
    }

    #[must_use]
    pub fn form(&self) -> Form {
        self.merchant.form
    }

    /// The address of its server: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The settings of its merchant's account, for the document of merchants, with the private key that was made
    /// for it. `notify_url` is where its notifications shall go.
    ///
    /// # Errors
    /// [`Error::Provider`] if a key has no text.
    pub fn settings(&self, notify_url: &str) -> Result<Value, Error> {
        match self.merchant.form {
            Form::Wechat => wechat::settings(&self.merchant, notify_url),
            Form::Alipay => alipay::settings(&self.merchant, notify_url),
        }
    }

    /// A person pays a trade, by the merchant's number, and the merchant is notified; false if it cannot be paid.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn pay(&self, number: &str, takes: Duration, now: Timestamp) -> Result<bool, Error> {
        match self.merchant.pay(number, takes, now)? {
            Pay::Taken(_) | Pay::Before => Ok(true),
            Pay::TooLate => Ok(false),
        }
    }

    /// Plans a fault for the next request of the API; faults planned before it come first.
    pub fn next(&self, fault: MerchantFault) {
        plan(&self.merchant, vec![fault]);
    }

    /// Ends the refunds of a payment that are under way.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn settle_refunds(&self, payment: &str) -> Result<(), Error> {
        self.merchant.trades.settle(payment, Timestamp::now())
    }

    /// Plans a fault for the next request for a bill; faults planned before it come first.
    pub fn next_bill(&self, fault: BillFault) {
        self.merchant.bills.next(fault);
    }

    /// Moves the time of bills so far ahead of the clock, in milliseconds, that those of today are made.
    pub fn bills_ahead(&self, ahead_ms: i64) {
        self.merchant.bills.set_ahead(ahead_ms);
    }

    /// Somebody sends a part of a trade back by hand, as on the provider's own pages, under a name of their own.
    ///
    /// # Errors
    /// [`Error::Provider`] if the provider refuses, or it cannot be kept.
    pub fn refund_by_hand(
        &self,
        payment: &str,
        name: &str,
        fen: MinorUnits,
        now: Timestamp,
    ) -> Result<(), Error> {
        let refused = || Error::Provider(format!("no refund of {payment} by hand"));
        let trade = self.merchant.trades.by_payment(payment, now).ok_or_else(refused)?;
        let number = name.to_owned();
        let refund = Refund { number, fen, created_ms: now.ms(), is_done: true };
        match self.merchant.trades.refund(&trade.number, refund, now)? {
            Refunded::Made(..) => Ok(()),
            Refunded::Before(..)
            | Refunded::Differs
            | Refunded::Absent
            | Refunded::NotPaid
            | Refunded::TooMuch
            | Refunded::TooSoon
            | Refunded::TooMany => Err(refused()),
        }
    }

    /// A trade that another system on the account, or another deployment, has placed under a number of its own, and that is
    /// paid: the provider's name of it.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn trade_of_others(
        &self,
        number: &str,
        fen: MinorUnits,
        now: Timestamp,
    ) -> Result<String, Error> {
        let terms = Terms {
            fen,
            subject: "T-shirt".to_owned(),
            expires_ms: now.plus_seconds(3600).ms(),
            is_default_life: true,
            notify_url: String::new(),
            return_url: None,
        };
        self.merchant.trades.place(number, terms, true, now)?;
        self.merchant.trades.pay(number, Duration::ZERO, now)?;
        let trade = self.merchant.trades.by_number(number, now);
        let payment = trade.map(|trade| trade.payment.to_string());
        payment.ok_or_else(|| Error::Provider(format!("no trade {number}")))
    }

    /// Every paid trade of an attempt, with its refunds.
    #[must_use]
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.merchant.trades.ledger(self.merchant.form.as_str(), Timestamp::now())
    }

    /// How often each operation was asked for.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.merchant.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What became of its notifications.
    #[must_use]
    pub fn notified(&self) -> Notified {
        self.merchant.notifier.notified()
    }

    /// True if it serves no more though nobody has stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.has_ended()
    }

    /// Answers what is under way, then stops.
    pub async fn stop(mut self) {
        self.merchant.notifier.stop();
        self.server.stop().await;
    }
}

impl Drop for MerchantProvider {
    fn drop(&mut self) {
        self.merchant.notifier.stop();
    }
}

/// The address of the page behind a code, at a fake whose server is at `url`. A person's phone opens it; on one
/// machine anybody does.
#[must_use]
pub fn page_of_code(url: &str, code: &str) -> Option<String> {
    match code.strip_prefix(wechat::CODE) {
        Some(payment) => Some(format!("{url}/pay/{payment}")),
        None => code.starts_with(&format!("{url}/pay/")).then(|| code.to_owned()),
    }
}

fn router(merchant: Arc<Merchant>) -> Router {
    let api = match merchant.form {
        Form::Wechat => wechat::routes(),
        Form::Alipay => alipay::routes(),
    };
    api.route("/pay/{payment}", get(show_page).post(use_page))
        .route("/ledger", get(show_ledger))
        .route("/settlement", get(show_settlement))
        .route("/calls", get(show_calls))
        .route("/notified", get(show_notified))
        .route("/faults", post(plan_faults))
        .with_state(merchant)
}

pub(crate) type Account = Extracted<Arc<Merchant>>;

fn plan(merchant: &Merchant, faults: Vec<MerchantFault>) {
    merchant.faults.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
}

async fn show_ledger(Extracted(merchant): Account) -> Response {
    let ledger = merchant.trades.ledger(merchant.form.as_str(), Timestamp::now());
    written(StatusCode::OK, json!(ledger).to_string())
}

/// The bill of everything so far, in the provider's own layout.
async fn show_settlement(Extracted(merchant): Account) -> Response {
    let trades = merchant.trades.all(Timestamp::now());
    let (names, all) = (&merchant.names, Bill::default());
    Response::new(Body::from(match merchant.form {
        Form::Wechat => settlement::wechat(names, &trades, all).into_bytes(),
        Form::Alipay => settlement::alipay(names, &trades, all),
    }))
}

async fn show_calls(Extracted(merchant): Account) -> Response {
    let calls = merchant.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    written(StatusCode::OK, json!(calls).to_string())
}

async fn show_notified(Extracted(merchant): Account) -> Response {
    written(StatusCode::OK, json!(merchant.notifier.notified()).to_string())
}

async fn plan_faults(Extracted(merchant): Account, body: Bytes) -> Response {
    match serde_json::from_slice(&body) {
        Ok(faults) => {
            plan(&merchant, faults);
            written(StatusCode::OK, "{}".to_owned())
        }
        Err(wrong) => written(StatusCode::BAD_REQUEST, json!(wrong.to_string()).to_string()),
    }
}

pub(crate) fn written(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The answer of a provider that could not keep a change.
pub(crate) fn not_kept(failed: &Error) -> Response {
    tracing::error!(%failed, "a payment provider could not keep a change");
    written(StatusCode::INTERNAL_SERVER_ERROR, "{}".to_owned())
}

async fn show_page(Extracted(merchant): Account, Path(payment): Path<String>) -> Response {
    let now = Timestamp::now();
    let Some(trade) = merchant.trades.by_payment(&payment, now) else { return page::missing() };
    match merchant.trades.show(&trade.number, now) {
        Ok(Some(trade)) => cashier::show(&trade, now, ""),
        Ok(None) => page::missing(),
        Err(failed) => not_kept(&failed),
    }
}

async fn use_page(
    Extracted(merchant): Account,
    Path(payment): Path<String>,
    body: Bytes,
) -> Response {
    let now = Timestamp::now();
    let Some(trade) = merchant.trades.by_payment(&payment, now) else { return page::missing() };
    let mut form = form_urlencoded::parse(&body);
    let action = form.find(|(name, _)| name == "action").map(|(_, action)| action);
    let takes = match action.as_deref() {
        Some("pay") => Duration::ZERO,
        Some("late") => merchant.behaviour.slow_payer_takes,
        Some("refuse") => return cashier::show(&trade, now, "Your account has too little money."),
        Some(_) | None => return cashier::back(&trade),
    };
    match merchant.pay(&trade.number, takes, now) {
        Ok(Pay::Taken(_) | Pay::Before) => cashier::back(&trade),
        Ok(Pay::TooLate) => cashier::show(&trade, now, "The time to pay is over."),
        Err(failed) => not_kept(&failed),
    }
}

/// A name for a notification that no other has.
pub(crate) fn notice_id() -> Result<String, Error> {
    nonce::<24>()
}
