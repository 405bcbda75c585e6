//! A page of Stripe's list of balance transactions: the same lines as its report has, in Stripe's units, each with the object
//! that it is of and the payment of that.
//!
//! Source: <https://docs.stripe.com/api/balance_transactions/object>

use serde::Deserialize;
use serde_json::Value;

use crate::providers::stripe::COUNTING;
use engine::domain::basics::ids::{PageMark, PaymentId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::{BillPage, BilledRefund, Line, Moved, Named, Report};

#[derive(Deserialize)]
struct Page {
    data: Vec<Value>,
    has_more: bool,
}

/// What we read of an entry.
#[derive(Deserialize)]
struct Entry {
    id: String,
    amount: MinorUnits,
    currency: Currency,
    fee: MinorUnits,
    net: MinorUnits,
    created: i64,
    reporting_category: String,
    #[serde(default)]
    source: Value,
}

/// Reads a page. An entry that cannot be read is one of the report's.
pub(super) fn read(json: &[u8]) -> Result<BillPage, String> {
    let page: Page = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let mut report = Report::default();
    for (number, entry) in (1..).zip(&page.data) {
        match line(number, entry) {
            Ok(line) => report.lines.push(line),
            Err(why) => report.unreadable.push((number, why)),
        }
    }
    let next = match page.data.last() {
        Some(last) if page.has_more => {
            let id = last["id"].as_str().unwrap_or_default();
            Some(PageMark::new(id).map_err(|error| error.to_string())?)
        }
        Some(_) | None => None,
    };
    Ok(BillPage { report, next })
}

fn line(number: u64, entry: &Value) -> Result<Line, String> {
    let entry = Entry::deserialize(entry).map_err(|error| error.to_string())?;
    let Entry { id, amount, currency, fee, net, created, reporting_category, source } = entry;
    if amount - fee != net {
        return Err(format!("{amount} less a fee of {fee} is not {net}"));
    }
    let money = |stated: MinorUnits| COUNTING.read(stated, currency);
    let back = || money(MinorUnits::ZERO - amount);
    // What was paid, which may be in another currency than is settled in.
    let paid = || {
        let stated = source["amount"].as_i64().ok_or("its source has no amount")?;
        let currency = source["currency"].as_str().ok_or("its source has no currency")?;
        let currency = Currency::new(currency).map_err(|error| error.to_string())?;
        Ok::<Money, String>(COUNTING.read(MinorUnits(stated.saturating_abs()), currency))
    };
    let payment = || {
        let intent = &source["payment_intent"];
        let id = intent["id"].as_str().or_else(|| intent.as_str());
        let id = id.and_then(|id| PaymentId::new(id).ok());
        id.ok_or_else(|| "it names no payment".to_owned())
    };
    // A charge has what its payment carries; of others it is read at the payment.
    let text = |name: &str| {
        let at = [&source["payment_intent"]["metadata"], &source["metadata"]];
        at.into_iter().find_map(|metadata| metadata[name].as_str())
    };
    let either = |name: &str| text(&format!("onsale_{name}")).or_else(|| text(name));
    let order = either("order").and_then(|order| order.parse().ok());
    let attempt = either("attempt").and_then(|attempt| attempt.parse().ok());
    let order = order.map(|order| Named { order, attempt });
    let deployment = text("onsale_deployment").map(str::to_owned);
    let moved = match reporting_category.as_str() {
        "charge" => Moved::Captured { payment: payment()?, order, amount: paid()? },
        "refund" => {
            let name = source["metadata"]["refund"].as_str();
            let part = name.and_then(|name| name.parse().ok()).map(BilledRefund::Part);
            let refund = source["id"].as_str().and_then(|id| id.parse().ok());
            let refund = part.or_else(|| refund.map(BilledRefund::Outside));
            Moved::SentBack { payment: payment()?, order, amount: paid()?, refund }
        }
        "dispute" | "dispute_reversal" => {
            let is_back = amount > MinorUnits::ZERO;
            Moved::Disputed { payment: payment()?, order, is_back, amount: paid()? }
        }
        "payout" | "payout_reversal" => {
            let payout = source["id"].as_str().or_else(|| source.as_str());
            let payout = payout.ok_or("it names no payout")?.to_owned();
            let is_back = amount > MinorUnits::ZERO;
            Moved::PaidOut { payout, is_back, amount: if is_back { money(amount) } else { back() } }
        }
        "fee" => Moved::Kept { amount: back() },
        _ => Moved::Other { what: reporting_category, amount: money(amount) },
    };
    let at = Timestamp::from_ms(created.saturating_mul(1000));
    Ok(Line { number, id, merchant: None, deployment, at, moved, fee: money(fee) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(category: &str, amount: i64, source: Value) -> Value {
        json!({
            "id": format!("txn_{category}"), "object": "balance_transaction", "amount": amount,
            "currency": "eur", "fee": 0, "net": amount, "created": 1_795_599_000,
            "reporting_category": category, "type": category, "source": source,
        })
    }

    fn of(data: &Value, has_more: bool) -> Result<BillPage, String> {
        read(json!({ "object": "list", "data": data, "has_more": has_more }).to_string().as_bytes())
    }

    #[test]
    fn an_entry_is_the_line_that_the_report_has_of_it() {
        let carried = json!({
            "onsale_deployment": "prod1", "onsale_order": "77", "onsale_attempt": "1",
        });
        let charge = json!({
            "id": "ch_1", "amount": 5000, "currency": "eur", "metadata": carried,
            "payment_intent": "pi_1",
        });
        let payment = json!({ "id": "pi_1", "metadata": carried });
        let refund = |metadata: Value| {
            json!({
                "id": "re_1", "amount": 2000, "currency": "eur", "metadata": metadata,
                "payment_intent": payment,
            })
        };
        let dispute = json!({
            "id": "dp_1", "amount": 5000, "currency": "eur", "metadata": {},
            "payment_intent": payment,
        });
        let data = json!([
            entry("charge", 5000, charge),
            entry("refund", -2000, refund(json!({}))),
            entry("refund", -2000, refund(json!({ "refund": "77-r2" }))),
            entry("dispute", -5000, dispute),
            entry("payout", -2900, json!({ "id": "po_1" })),
            entry("fee", -50, Value::Null),
        ]);
        let page = of(&data, true).unwrap();
        assert_eq!(page.report.unreadable, []);
        assert_eq!(page.next.unwrap().as_str(), "txn_fee");
        let eur = |minor| Money {
            amount_minor: MinorUnits(minor),
            currency: Currency::new("EUR").unwrap(),
        };
        let payment = || PaymentId::new("pi_1").unwrap();
        let order = Some(Named { order: "77".parse().unwrap(), attempt: "1".parse().ok() });
        let sent_back = |refund| Moved::SentBack {
            payment: payment(),
            order,
            amount: eur(2000),
            refund: Some(refund),
        };
        let moved: Vec<&Moved> = page.report.lines.iter().map(|line| &line.moved).collect();
        assert_eq!(
            moved,
            [
                &Moved::Captured { payment: payment(), order, amount: eur(5000) },
                &sent_back(BilledRefund::Outside("re_1".parse().unwrap())),
                &sent_back(BilledRefund::Part("77-r2".parse().unwrap())),
                &Moved::Disputed { payment: payment(), order, is_back: false, amount: eur(5000) },
                &Moved::PaidOut { payout: "po_1".to_owned(), is_back: false, amount: eur(2900) },
                &Moved::Kept { amount: eur(50) },
            ]
        );
        let deployments = page.report.lines[..4].iter().map(|line| line.deployment.as_deref());
        assert!(deployments.into_iter().all(|deployment| deployment == Some("prod1")));
    }

    #[test]
    fn an_entry_that_is_wrong_is_told_and_the_others_are_read() {
        let mut wrong = entry("fee", -50, Value::Null);
        wrong["net"] = json!(-49);
        let huge = json!({ "id": "txn_9", "amount": 1e30, "currency": "eur" });
        let unnamed =
            entry("charge", 100, json!({ "id": "ch_2", "amount": 100, "currency": "eur" }));
        let data = json!([wrong, huge, unnamed, 7, entry("fee", -50, Value::Null)]);
        let page = of(&data, false).unwrap();
        let numbers: Vec<u64> = page.report.unreadable.iter().map(|(number, _)| *number).collect();
        assert_eq!((numbers, page.report.lines.len(), page.next), (vec![1, 2, 3, 4], 1, None));
        assert!(of(&json!([{ "id": "no mark" }]), true).is_err());
        assert!(read(b"<html>").is_err());
    }
}
