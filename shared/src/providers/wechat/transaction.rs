//! A payment at WeChat Pay: the requests for it, WeChat Pay's answers, and the capture that an answer reports.
//!
//! Unknown fields are passed over: WeChat Pay adds some at any time. An unknown state is not.

use serde::{Deserialize, Serialize};

use crate::providers::{EventDefect, beijing, trade_number};
use engine::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::order::attempt::{Attempt, AttemptKey};
use engine::domain::order::{Capture, Order, PaymentKey};
use engine::domain::payment::ours::Reported;

/// The only currency of merchants in China.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
pub(super) const CURRENCY: &str = "CNY";

/// The account that an order is placed for, and that a payment must name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payee<'a> {
    pub(super) provider: &'a ProviderId,
    pub(super) merchant_id: &'a str,
    pub(super) app_id: &'a str,
    /// The deployment's id, which its payments carry.
    pub(super) own: Option<&'a DeploymentId>,
}

/// What separates the parts of a trade number: WeChat Pay takes letters, digits and `_-|*`.
pub(super) const SEPARATOR: char = '-';

/// The body of an order that is paid by QR code.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
#[derive(Debug, Serialize)]
pub(super) struct NativeOrder<'a> {
    appid: &'a str,
    mchid: &'a str,
    description: &'a str,
    pub(super) out_trade_no: String,
    time_expire: String,
    notify_url: &'a str,
    amount: OrderAmount,
}

#[derive(Debug, Serialize)]
struct OrderAmount {
    total: MinorUnits,
    currency: &'static str,
}

impl<'a> NativeOrder<'a> {
    /// The order of an attempt: the same one however often it is asked for.
    pub(super) fn new(
        payee: Payee<'a>,
        description: &'a str,
        notify_url: &'a str,
        order: &Order,
        attempt: &Attempt,
    ) -> Self {
        Self {
            appid: payee.app_id,
            mchid: payee.merchant_id,
            description,
            out_trade_no: trade_number::of_attempt(order.number, attempt, SEPARATOR),
            time_expire: beijing::rfc3339(attempt.expires_at),
            notify_url,
            amount: OrderAmount { total: order.total.amount_minor, currency: CURRENCY },
        }
    }
}

/// The answer to [`NativeOrder`].
#[derive(Debug, Deserialize)]
pub(super) struct NativeReply {
    /// The text of the QR code, which lives for two hours.
    pub(super) code_url: String,
}

/// Body of a request to close.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4013070360>
#[derive(Debug, Serialize)]
pub(super) struct Close<'a> {
    pub(super) mchid: &'a str,
}

/// A payment, as a query answers it and a notification has it.
/// Source: <https://pay.weixin.qq.com/docs/merchant/apis/native-payment/query-by-out-trade-no.html>
#[derive(Debug, Deserialize)]
#[serde(expecting = "a transaction, which is an object")]
pub(super) struct Transaction {
    appid: String,
    mchid: String,
    pub(super) out_trade_no: String,
    transaction_id: Option<PaymentId>,
    pub(super) trade_state: TradeState,
    amount: Option<Amount>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct Amount {
    /// What was ordered. What the payer paid may be less by WeChat Pay's own coupons.
    total: MinorUnits,
    currency: Currency,
}

/// The state of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum TradeState {
    Success,
    /// It was paid, and some or all of it goes back.
    Refund,
    /// It is not paid.
    NotPay,
    Closed,
    /// It was revoked (payments by the payer's code).
    Revoked,
    /// The payer is at it.
    UserPaying,
    /// It failed, and the payer may try again.
    PayError,
    /// It is accepted and waits to be charged.
    Accept,
}

impl TradeState {
    /// True if money was captured.
    pub(super) fn is_captured(self) -> bool {
        match self {
            Self::Success | Self::Refund => true,
            Self::NotPay
            | Self::Closed
            | Self::Revoked
            | Self::UserPaying
            | Self::PayError
            | Self::Accept => false,
        }
    }

    /// True if no money was captured and none can be.
    pub(super) fn is_closed(self) -> bool {
        match self {
            Self::Closed | Self::Revoked => true,
            Self::Success
            | Self::Refund
            | Self::NotPay
            | Self::UserPaying
            | Self::PayError
            | Self::Accept => false,
        }
    }
}

impl Transaction {
    /// The capture that it is; `None` if nothing is captured, or if its number names no attempt of ours: the
    /// merchant may sell elsewhere too.
    ///
    /// # Errors
    /// Returns an [`EventDefect`] if it is another merchant's or app's, or a capture that does not say enough.
    pub(super) fn capture(&self, payee: Payee<'_>) -> Result<Option<Reported>, EventDefect> {
        let defect = |text: &str| EventDefect(text.to_owned());
        if self.mchid != payee.merchant_id {
            return Err(defect("mchid is another merchant's"));
        }
        if self.appid != payee.app_id {
            return Err(defect("appid is another app's"));
        }
        if !self.trade_state.is_captured() {
            return Ok(None);
        }
        let named = trade_number::read(&self.out_trade_no, SEPARATOR, payee.own);
        let Some((AttemptKey { order, number }, mark)) = named else { return Ok(None) };
        let payment = self.transaction_id.clone();
        let payment = payment.ok_or_else(|| defect("a paid transaction needs transaction_id"))?;
        let amount = self.amount.as_ref().ok_or_else(|| defect("it needs amount"))?;
        if amount.currency.to_string() != CURRENCY {
            return Err(defect("amount.currency must be CNY"));
        }
        if amount.total <= MinorUnits::ZERO {
            return Err(defect("amount.total must be positive"));
        }
        let capture = Capture {
            key: PaymentKey { provider: payee.provider.clone(), payment },
            order,
            attempt: Some(number),
            amount: Money { amount_minor: amount.total, currency: amount.currency },
        };
        Ok(Some(Reported { capture, mark }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{text, vectors};
    use engine::domain::payment::ours::Mark;
    use serde_json::{Value, json};

    fn paid() -> Value {
        let plain = text(&vectors()["wechat"]["notifications"][0]["plaintext"]);
        serde_json::from_str(&plain).unwrap()
    }

    fn read(transaction: Value) -> Result<Option<Reported>, String> {
        let wechat = &vectors()["wechat"];
        let (merchant_id, app_id) = (text(&wechat["merchant_id"]), text(&wechat["app_id"]));
        let provider = "wechat".parse().unwrap();
        let payee =
            Payee { provider: &provider, merchant_id: &merchant_id, app_id: &app_id, own: None };
        let transaction: Transaction =
            serde_json::from_value(transaction).map_err(|error| error.to_string())?;
        transaction.capture(payee).map_err(|defect| defect.to_string())
    }

    fn with(path: &str, value: Value) -> Result<Option<Reported>, String> {
        let mut transaction = paid();
        *transaction.pointer_mut(path).unwrap() = value;
        read(transaction)
    }

    #[test]
    fn a_paid_transaction_is_a_capture_of_what_was_ordered() {
        let Reported { capture, mark } = read(paid()).unwrap().unwrap();
        assert_eq!(mark, Mark::None);
        assert_eq!(capture.key.payment.as_str(), "4200000000202701150000000001");
        assert_eq!(capture.order.to_string(), "169218430493097984");
        assert_eq!(capture.attempt.map(|number| number.get()), Some(1));
        assert_eq!(capture.amount.to_string(), "110600 CNY", "not what the payer paid");
        assert_eq!(with("/trade_state", json!("REFUND")), Ok(Some(Reported { capture, mark })));
    }

    #[test]
    fn every_state_is_known_and_two_of_them_are_captures() {
        for state in ["NOTPAY", "CLOSED", "REVOKED", "USERPAYING", "PAYERROR", "ACCEPT"] {
            assert_eq!(with("/trade_state", json!(state)), Ok(None), "{state}");
        }
        for state in ["success", "PAID", ""] {
            assert!(with("/trade_state", json!(state)).is_err(), "{state}");
        }
        let closed = [TradeState::Closed, TradeState::Revoked].map(TradeState::is_closed);
        assert_eq!(closed, [true; 2]);
        assert!(!TradeState::NotPay.is_closed() && !TradeState::Success.is_closed());
    }

    #[test]
    fn anothers_payment_is_none_or_a_defect() {
        for foreign in ["SHOP-20270115", "169218430493097984", "169218430493097984-33", ""] {
            assert_eq!(with("/out_trade_no", json!(foreign)), Ok(None), "{foreign}");
        }
        for (path, value) in [
            ("/mchid", json!("1900000002")),
            ("/appid", json!("wx1")),
            ("/amount/currency", json!("HKD")),
            ("/amount/total", json!(0)),
            ("/amount/total", json!(-1)),
            ("/amount/total", json!("110600")),
            ("/amount/total", json!(1106.5)),
            ("/amount", json!(null)),
            ("/transaction_id", json!(null)),
            ("/transaction_id", json!("a b")),
        ] {
            assert!(with(path, value.clone()).is_err(), "{path} {value}");
        }
    }

    #[test]
    fn a_field_that_is_missing_is_a_defect() {
        for field in ["mchid", "appid", "out_trade_no", "trade_state", "transaction_id", "amount"] {
            let mut transaction = paid();
            transaction.as_object_mut().unwrap().remove(field);
            assert!(read(transaction).is_err(), "{field}");
        }
        for field in ["total", "currency"] {
            let mut transaction = paid();
            transaction["amount"].as_object_mut().unwrap().remove(field);
            assert!(read(transaction).is_err(), "amount.{field}");
        }
        assert!(read(json!([])).unwrap_err().contains("a transaction, which is an object"));
    }
}
