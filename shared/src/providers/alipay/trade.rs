//! A payment at Alipay: the requests for it, Alipay's answers, and the capture that an answer reports.
//!
//! Unknown fields are passed over: Alipay adds some at any time. An unknown state is not.

use serde::{Deserialize, Serialize};

use super::amount::to_fen;
use crate::providers::trade_number::is_further_try;
use crate::providers::{EventDefect, trade_number};
use engine::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::order::attempt::AttemptKey;
use engine::domain::order::order_refund::RefundName;
use engine::domain::order::{Capture, PaymentKey, PaymentRecord};
use engine::domain::payment::ours::Reported;

/// The only currency of the gateway in China.
pub(super) const CURRENCY: &str = "CNY";

/// What separates the parts of a trade number: Alipay takes letters, digits and `_`.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
pub(super) const SEPARATOR: char = '_';

/// Parameters of `alipay.trade.page.pay`, by which the buyer goes to a page.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
#[derive(Debug, Serialize)]
pub(super) struct PagePay<'a> {
    pub(super) out_trade_no: String,
    pub(super) product_code: &'static str,
    pub(super) total_amount: String,
    pub(super) subject: &'a str,
    pub(super) time_expire: String,
}

/// Parameters of `alipay.trade.precreate`, by which the buyer scans a code.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.precreate>
#[derive(Debug, Serialize)]
pub(super) struct Precreate<'a> {
    pub(super) out_trade_no: String,
    pub(super) total_amount: String,
    pub(super) subject: &'a str,
    pub(super) time_expire: String,
    /// How long the code lives, such as `14m`, from the time it is made.
    pub(super) qr_code_timeout_express: String,
}

/// The answer to [`Precreate`].
#[derive(Debug, Deserialize)]
pub(super) struct Precreated {
    pub(super) out_trade_no: String,
    pub(super) qr_code: String,
}

/// Parameters of `alipay.trade.query` and `alipay.trade.close`.
#[derive(Debug, Serialize)]
pub(super) struct ByNumber {
    pub(super) out_trade_no: String,
}

/// The answer to a close.
#[derive(Debug, Deserialize)]
pub(super) struct Closed {
    pub(super) out_trade_no: Option<String>,
}

/// The state of a trade.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.query>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum TradeStatus {
    /// It is not paid.
    WaitBuyerPay,
    /// It was not paid in time or was closed; or it was paid, and all of it went back.
    TradeClosed,
    TradeSuccess,
    /// It is paid, and can no longer go back.
    TradeFinished,
}

impl TradeStatus {
    /// True if money was captured.
    pub(super) fn is_captured(self) -> bool {
        match self {
            Self::TradeSuccess | Self::TradeFinished => true,
            Self::WaitBuyerPay | Self::TradeClosed => false,
        }
    }

    /// True if nothing can be captured any more.
    pub(super) fn is_closed(self) -> bool {
        match self {
            Self::TradeClosed => true,
            Self::WaitBuyerPay | Self::TradeSuccess | Self::TradeFinished => false,
        }
    }
}

/// A trade, as a query answers it and a notification has it.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a trade, which is an object")]
pub(super) struct Trade {
    pub(super) out_trade_no: String,
    trade_no: PaymentId,
    pub(super) trade_status: TradeStatus,
    /// What was ordered. What the buyer paid may be less by Alipay's own coupons.
    total_amount: String,
    /// The currency, if it is said.
    trans_currency: Option<String>,
}

impl Trade {
    /// The capture that it is; `None` if nothing is captured, or if its number names no attempt of ours: the
    /// merchant may sell elsewhere too.
    ///
    /// # Errors
    /// Returns an [`EventDefect`] if a capture is in no amount or another currency.
    pub(super) fn capture(
        &self,
        provider: &ProviderId,
        own: Option<&DeploymentId>,
    ) -> Result<Option<Reported>, EventDefect> {
        let defect = |text: &str| EventDefect(text.to_owned());
        let named = trade_number::read(&self.out_trade_no, SEPARATOR, own);
        let Some((AttemptKey { order, number }, mark)) =
            named.filter(|_| self.trade_status.is_captured())
        else {
            return Ok(None);
        };
        if self.trans_currency.as_deref().is_some_and(|currency| currency != CURRENCY) {
            return Err(defect("trans_currency must be CNY"));
        }
        let amount_minor = to_fen(&self.total_amount).filter(|fen| *fen > MinorUnits::ZERO);
        let amount_minor = amount_minor.ok_or_else(|| defect("total_amount must be yuan"))?;
        let currency = Currency::new(CURRENCY).map_err(|error| EventDefect(error.to_string()))?;
        let capture = Capture {
            key: PaymentKey { provider: provider.clone(), payment: self.trade_no.clone() },
            order,
            attempt: Some(number),
            amount: Money { amount_minor, currency },
        };
        Ok(Some(Reported { capture, mark }))
    }
}

/// The name of the refund of a payment, which makes it one however often it is asked for. After one that came to nothing it
/// has another.
pub(super) fn refund_number(record: &PaymentRecord) -> String {
    let payment = &record.capture.key.payment;
    match record.ended {
        0 => format!("refund_{payment}"),
        ended => format!("refund_{payment}_{}", u16::from(ended) + 1),
    }
}

/// True for the name of the refund of a whole payment: its first, or that of a further try.
pub(super) fn is_refund_of_whole(number: &str, payment: &PaymentId) -> bool {
    let rest = number.strip_prefix("refund_").and_then(|rest| rest.strip_prefix(payment.as_str()));
    rest.is_some_and(|rest| rest.is_empty() || is_further_try(rest, '_'))
}

/// The name of the refund of a part: letters, digits and underscores, as of a trade.
pub(super) fn part_number(part: RefundName) -> String {
    part.to_string().replace('-', "_")
}

/// Parameters of `alipay.trade.refund`.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.refund>
#[derive(Debug, Serialize)]
pub(super) struct Refund<'a> {
    pub(super) trade_no: &'a PaymentId,
    pub(super) refund_amount: String,
    pub(super) out_request_no: String,
}

/// The answer to [`Refund`].
#[derive(Debug, Deserialize)]
pub(super) struct Refunded {
    pub(super) trade_no: PaymentId,
    /// `Y` if this request moved money; `N` also if an earlier one did.
    pub(super) fund_change: Option<String>,
}

/// Parameters of `alipay.trade.fastpay.refund.query`.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.fastpay.refund.query>
#[derive(Debug, Serialize)]
pub(super) struct RefundQuery<'a> {
    pub(super) trade_no: &'a PaymentId,
    pub(super) out_request_no: String,
}

/// The answer to [`RefundQuery`]: a success also if there is no such refund.
#[derive(Debug, Deserialize)]
pub(super) struct RefundFound {
    pub(super) out_request_no: Option<String>,
    pub(super) refund_amount: Option<String>,
    pub(super) refund_status: Option<RefundStatus>,
}

/// The state of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum RefundStatus {
    /// It is under way.
    #[serde(rename = "REFUND_PROCESSING")]
    Processing,
    #[serde(rename = "REFUND_SUCCESS")]
    Success,
    #[serde(rename = "REFUND_FAIL")]
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{text, vectors};
    use serde_json::{Value, json};

    fn with(field: &str, value: Value) -> Result<Option<Reported>, String> {
        let mut trade: Value =
            serde_json::from_str(&text(&vectors()["alipay"]["responses"][0]["value"])).unwrap();
        trade[field] = value;
        let trade: Trade = serde_json::from_value(trade).map_err(|error| error.to_string())?;
        trade.capture(&"alipay".parse().unwrap(), None).map_err(|defect| defect.to_string())
    }

    #[test]
    fn a_paid_trade_is_a_capture_of_what_was_ordered() {
        for status in ["TRADE_SUCCESS", "TRADE_FINISHED"] {
            let Reported { capture, .. } = with("trade_status", json!(status)).unwrap().unwrap();
            assert_eq!(capture.key.payment.as_str(), "2027011522001473371000001");
            assert_eq!(capture.order.to_string(), "169218430493097984");
            assert_eq!(capture.attempt.map(|number| number.get()), Some(1));
            assert_eq!(capture.amount.to_string(), "110600 CNY");
        }
        for status in ["WAIT_BUYER_PAY", "TRADE_CLOSED"] {
            assert_eq!(with("trade_status", json!(status)), Ok(None), "{status}");
        }
        for status in ["trade_success", "PAID", ""] {
            assert!(with("trade_status", json!(status)).is_err(), "{status}");
        }
    }

    #[test]
    fn anothers_trade_is_none_and_another_amount_a_defect() {
        for foreign in ["SHOP_1", "169218430493097984-1", "169218430493097984_33", "7_01", ""] {
            assert_eq!(with("out_trade_no", json!(foreign)), Ok(None), "{foreign}");
        }
        assert!(with("trans_currency", json!("CNY")).is_ok());
        for (field, value) in [
            ("trans_currency", json!("USD")),
            ("total_amount", json!("0.00")),
            ("total_amount", json!("-1.00")),
            ("total_amount", json!("1106.001")),
            ("total_amount", json!(1106)),
            ("total_amount", Value::Null),
            ("trade_no", Value::Null),
            ("trade_no", json!("a b")),
            ("out_trade_no", Value::Null),
            ("trade_status", Value::Null),
        ] {
            assert!(with(field, value.clone()).is_err(), "{field} {value}");
        }
    }
}
