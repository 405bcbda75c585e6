//! Refunds at WeChat Pay: one refund for a whole payment, and for parts of a payment one under each refund's name.

use serde::{Deserialize, Serialize};

use super::transaction::CURRENCY;
use crate::providers::account::escaped;
use crate::providers::trade_number::is_further_try;
use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Capture, PaymentRecord};

/// Our name of the refund of a payment, which makes it one however often it is asked for: a refund is made
/// once under one number. After one that was closed it has another.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012556457>
fn number(record: &PaymentRecord) -> String {
    let payment = &record.capture.key.payment;
    match record.ended {
        0 => format!("refund-{payment}"),
        ended => format!("refund-{payment}-{}", u16::from(ended) + 1),
    }
}

/// True for the name of the refund of a whole payment: its first, or that of a further try.
pub(super) fn is_of_whole(number: &str, payment: &PaymentId) -> bool {
    let rest = number.strip_prefix("refund-").and_then(|rest| rest.strip_prefix(payment.as_str()));
    rest.is_some_and(|rest| rest.is_empty() || is_further_try(rest, '-'))
}

/// A refund as it is asked for: of which capture, under which name, of what amount.
#[derive(Debug, Clone)]
pub(super) struct Asked<'a> {
    capture: &'a Capture,
    number: String,
    amount: Money,
}

impl<'a> Asked<'a> {
    /// The refund of a whole payment.
    pub(super) fn whole(record: &'a PaymentRecord) -> Self {
        let capture = &record.capture;
        Self { capture, number: number(record), amount: capture.amount }
    }

    /// The refund of a part, under its own name.
    pub(super) fn part(record: &'a PaymentRecord, part: &OrderRefund) -> Self {
        Self { capture: &record.capture, number: part.name().to_string(), amount: part.amount }
    }

    /// The path at which it is asked about.
    pub(super) fn path(&self) -> String {
        format!("/v3/refund/domestic/refunds/{}", escaped(&self.number))
    }
}

/// The body of a request for a refund.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012556457>
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    transaction_id: &'a PaymentId,
    out_refund_no: String,
    amount: RequestAmount,
}

#[derive(Debug, Serialize)]
struct RequestAmount {
    refund: MinorUnits,
    total: MinorUnits,
    currency: &'static str,
}

impl<'a> Request<'a> {
    /// The request for a refund.
    pub(super) fn new(asked: &Asked<'a>) -> Self {
        let total = asked.capture.amount.amount_minor;
        let refund = asked.amount.amount_minor;
        Self {
            transaction_id: &asked.capture.key.payment,
            out_refund_no: asked.number.clone(),
            amount: RequestAmount { refund, total, currency: CURRENCY },
        }
    }
}

/// A refund, as a request and a query answer it.
/// Source: <https://pay.weixin.qq.com/docs/merchant/apis/native-payment/query-by-out-refund-no.html>
#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    out_refund_no: String,
    transaction_id: PaymentId,
    status: Status,
    amount: RefundAmount,
}

#[derive(Debug, Deserialize)]
struct RefundAmount {
    refund: MinorUnits,
    currency: Currency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Success,
    Closed,
    Processing,
    /// The payer's bank did not take it: the merchant must say on WeChat Pay's platform where it goes.
    Abnormal,
}

impl Refund {
    /// What it means for what was asked; an error if it is another refund or of another amount.
    pub(super) fn reply(&self, asked: &Asked<'_>) -> Result<RefundReply, &'static str> {
        let payment = &asked.capture.key.payment;
        if self.transaction_id != *payment || self.out_refund_no != asked.number {
            return Err("the refund is another payment's");
        }
        let RefundAmount { refund, currency } = self.amount;
        if (Money { amount_minor: refund, currency }) != asked.amount {
            return Err("the refund is of another amount");
        }
        let refused = |why: &str| Ok(RefundReply::Refused(why.to_owned()));
        match self.status {
            Status::Success => Ok(RefundReply::Refunded),
            Status::Processing => Ok(RefundReply::Pending),
            Status::Closed => Ok(RefundReply::Ended("CLOSED: the refund was closed".to_owned())),
            Status::Abnormal => refused("ABNORMAL: the payer's bank did not take it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::basics::time::Timestamp;
    use engine::domain::order::{PaymentKey, PaymentOutcome, RefundReason};
    use serde_json::{Value, json};

    fn record() -> PaymentRecord {
        let currency = Currency::new("CNY").unwrap();
        let capture = Capture {
            key: PaymentKey {
                provider: "wechat".parse().unwrap(),
                payment: "4200000000202701150000000001".parse().unwrap(),
            },
            order: "7".parse().unwrap(),
            attempt: None,
            amount: Money { amount_minor: MinorUnits(500), currency },
        };
        let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
        PaymentRecord::decided(&capture, outcome, Timestamp::from_ms(0))
    }

    fn reply(change: impl Fn(&mut Value)) -> Result<RefundReply, String> {
        let mut refund = json!({
            "refund_id": "50000000382019052709732678859", "status": "SUCCESS",
            "out_refund_no": "refund-4200000000202701150000000001",
            "transaction_id": "4200000000202701150000000001",
            "amount": { "total": 500, "refund": 500, "payer_refund": 400, "currency": "CNY" },
        });
        change(&mut refund);
        let refund: Refund = serde_json::from_value(refund).map_err(|error| error.to_string())?;
        refund.reply(&Asked::whole(&record())).map_err(str::to_owned)
    }

    #[test]
    fn each_status_has_its_meaning_and_an_unknown_one_none() {
        let of = |status: &str| reply(|refund| refund["status"] = json!(status));
        assert_eq!(of("SUCCESS"), Ok(RefundReply::Refunded));
        assert_eq!(of("PROCESSING"), Ok(RefundReply::Pending));
        // One that is closed came to nothing; an abnormal one waits for the merchant, under its name.
        assert!(matches!(of("CLOSED"), Ok(RefundReply::Ended(why)) if why.starts_with("CLOSED")));
        let abnormal = of("ABNORMAL");
        assert!(matches!(abnormal, Ok(RefundReply::Refused(why)) if why.starts_with("ABNORMAL")));
        assert!(of("DONE").is_err());
    }

    #[test]
    fn anothers_refund_is_not_ours() {
        assert!(reply(|refund| refund["amount"]["refund"] = json!(499)).is_err());
        assert!(reply(|refund| refund["amount"]["currency"] = json!("HKD")).is_err());
        assert!(reply(|refund| refund["transaction_id"] = json!("42")).is_err());
        assert!(reply(|refund| refund["out_refund_no"] = json!("42")).is_err());
        assert!(reply(|refund| refund["amount"] = json!(null)).is_err());
    }

    #[test]
    fn a_request_names_the_payment_and_its_refund() {
        let body = serde_json::to_value(Request::new(&Asked::whole(&record()))).unwrap();
        let whole = json!({ "refund": 500, "total": 500, "currency": "CNY" });
        assert_eq!(
            body,
            json!({
                "transaction_id": "4200000000202701150000000001",
                "out_refund_no": "refund-4200000000202701150000000001", "amount": whole,
            })
        );
        let mut odd = record();
        odd.capture.key.payment = "a/../b".parse().unwrap();
        let path = Asked::whole(&odd).path();
        assert_eq!(path, "/v3/refund/domestic/refunds/refund-a%2F..%2Fb");
        let (record, part) = (record(), crate::providers::fake::part(&odd, 120));
        let part = Asked::part(&record, &part);
        assert_eq!(part.path(), "/v3/refund/domestic/refunds/7-r2");
        let body = serde_json::to_value(Request::new(&part)).unwrap();
        assert_eq!(body["out_refund_no"], "7-r2");
        assert_eq!(body["amount"], json!({ "refund": 120, "total": 500, "currency": "CNY" }));
    }
}
