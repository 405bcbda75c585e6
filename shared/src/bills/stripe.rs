//! Stripe's itemised balance reports (`balance_change_from_activity.itemized`, or another list of balance transactions
//! that has payouts too), as CSV with any choice of columns that has those needed here.
//!
//! `payment_metadata[order]` is a column that is chosen when the report is run; without it a payment that the engine
//! does not know cannot be decided. `gross`, `fee` and `net` are in the currency that is settled in;
//! `customer_facing_amount` says what the buyer paid, where that is another one.
//!
//! Source: <https://docs.stripe.com/reports/report-types/balance>

use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;

use super::ReportError;
use super::amount::amount;
use super::table::{Row, rows};
use engine::domain::payment::bill::{Line, Moved, Named, Report};

const COLUMNS: [&str; 7] = [
    "balance_transaction_id",
    "created_utc",
    "currency",
    "gross",
    "fee",
    "net",
    "reporting_category",
];

pub(super) fn read(file: &[u8]) -> Result<Report, ReportError> {
    let text = std::str::from_utf8(file)
        .map_err(|_| ReportError::Unreadable("it is not UTF-8".to_owned()))?;
    rows(text, 0, &COLUMNS, line)
}

fn line(row: &Row<'_>) -> Result<Line, String> {
    let currency = Currency::new(row.get("currency")).map_err(|error| error.to_string())?;
    let of = |name: &str| amount(row.get(name), currency);
    let (gross, fee, net) = (of("gross")?, of("fee")?, of("net")?);
    if gross - fee != net {
        return Err(format!("{gross} less a fee of {fee} is not {net}"));
    }
    let money = |amount_minor: MinorUnits| Money { amount_minor, currency };
    let back = MinorUnits::ZERO - gross;
    let payment = || {
        let id = row.get("payment_intent_id");
        PaymentId::new(id).map_err(|_| "it names no payment_intent_id".to_owned())
    };
    // What was paid, where it was settled in another currency.
    let paid = |settled: MinorUnits| match row.get("customer_facing_currency") {
        "" => Ok::<_, String>(money(settled)),
        facing => {
            let currency = Currency::new(facing).map_err(|error| error.to_string())?;
            let said = amount(row.get("customer_facing_amount"), currency)?;
            let amount_minor = MinorUnits(said.0.saturating_abs());
            Ok(Money { amount_minor, currency })
        }
    };
    let column = |name: &str| row.get(&format!("payment_metadata[{name}]"));
    let either = |name: &str| match column(&format!("onsale_{name}")) {
        "" => column(name),
        carried => carried,
    };
    let order = either("order").parse().ok();
    let attempt = either("attempt").parse().ok();
    let order = order.map(|order| Named { order, attempt });
    let deployment = Some(column("onsale_deployment")).filter(|id| !id.is_empty());
    let deployment = deployment.map(str::to_owned);
    let what = row.get("reporting_category");
    let moved = match what {
        "charge" => Moved::Captured { payment: payment()?, order, amount: paid(gross)? },
        "refund" => {
            // The report says nothing of what the refund was called.
            let (payment, amount) = (payment()?, paid(back)?);
            Moved::SentBack { payment, order, amount, refund: None }
        }
        "dispute" | "dispute_reversal" => {
            let is_back = gross > MinorUnits::ZERO;
            let amount = paid(if is_back { gross } else { back })?;
            Moved::Disputed { payment: payment()?, order, is_back, amount }
        }
        "payout" | "payout_reversal" => {
            let payout = row.get("source_id").to_owned();
            if payout.is_empty() {
                return Err("it names no source_id".to_owned());
            }
            let is_back = gross > MinorUnits::ZERO;
            let amount = money(if is_back { gross } else { back });
            Moved::PaidOut { payout, is_back, amount }
        }
        "fee" => Moved::Kept { amount: money(back) },
        _ => Moved::Other { what: what.to_owned(), amount: money(gross) },
    };
    let id = row.get("balance_transaction_id");
    if id.is_empty() {
        return Err("it has no balance_transaction_id".to_owned());
    }
    let accounts = ["connected_account", "connected_account_id"].map(|name| row.get(name));
    let merchant = accounts.into_iter().find(|account| !account.is_empty());
    Ok(Line {
        number: row.number,
        id: id.to_owned(),
        merchant: merchant.map(str::to_owned),
        deployment,
        at: time(row.get("created_utc"))?,
        moved,
        fee: money(fee),
    })
}

/// `2026-11-25 09:30:00`, in UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    super::local_time(text, "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "balance_transaction_id,created_utc,currency,gross,fee,net,\
                           reporting_category,source_id,payment_intent_id,payment_metadata[order]";

    fn of(rows: &[&str]) -> Report {
        read([&[HEADING], rows].concat().join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn each_category_is_what_it_moves() {
        let report = of(&[
            "txn_1,2026-11-25 09:30:00,eur,50.00,1.00,49.00,charge,ch_1,pi_1,77",
            "txn_2,2026-11-25 09:31:00,eur,-20.00,0.00,-20.00,refund,re_1,pi_1,77",
            "txn_3,2026-11-26 00:00:00,eur,-29.00,0.00,-29.00,payout,po_1,,",
            "txn_4,2026-11-26 00:00:00,eur,-0.50,0.00,-0.50,fee,,,",
            "txn_5,2026-11-26 00:00:00,eur,-50.00,15.00,-65.00,dispute,dp_1,pi_1,77",
        ]);
        assert_eq!(report.unreadable, []);
        let eur = |minor| Money {
            amount_minor: MinorUnits(minor),
            currency: Currency::new("EUR").unwrap(),
        };
        let payment = || PaymentId::new("pi_1").unwrap();
        let order = Some(Named { order: "77".parse().unwrap(), attempt: None });
        let moved: Vec<Moved> = report.lines.iter().map(|line| line.moved.clone()).collect();
        assert_eq!(
            moved,
            [
                Moved::Captured { payment: payment(), order, amount: eur(5000) },
                Moved::SentBack { payment: payment(), order, amount: eur(2000), refund: None },
                Moved::PaidOut { payout: "po_1".to_owned(), is_back: false, amount: eur(2900) },
                Moved::Kept { amount: eur(50) },
                Moved::Disputed {
                    payment: PaymentId::new("pi_1").unwrap(),
                    order: Some(Named { order: "77".parse().unwrap(), attempt: None }),
                    is_back: false,
                    amount: eur(5000),
                },
            ]
        );
        assert_eq!(report.lines[0].fee, eur(100));
        assert_eq!(report.lines[0].at.ms(), 1_795_599_000_000);
        assert_eq!(report.lines[1].number, 3);
    }

    #[test]
    fn what_the_buyer_paid_counts_where_it_is_settled_otherwise() {
        let heading = format!("{HEADING},customer_facing_amount,customer_facing_currency");
        let line = "txn_1,2026-11-25 09:30:00,eur,6.00,0.20,5.80,charge,ch_1,pi_1,77,50.00,cny";
        let report = read(format!("{heading}\n{line}\n").as_bytes()).unwrap();
        let Moved::Captured { amount, .. } = &report.lines[0].moved else { panic!("{report:?}") };
        assert_eq!(amount.to_string(), "5000 CNY");
        assert_eq!(report.lines[0].fee.to_string(), "20 EUR");
    }

    #[test]
    fn a_line_that_is_wrong_is_told_and_the_others_are_read() {
        let report = of(&[
            "txn_1,2026-11-25 09:30:00,eur,50.00,1.00,50.00,charge,ch_1,pi_1,77",
            "txn_2,yesterday,eur,50.00,1.00,49.00,charge,ch_1,pi_1,77",
            "txn_3,2026-11-25 09:30:00,euro,50.00,1.00,49.00,charge,ch_1,pi_1,77",
            "txn_4,2026-11-25 09:30:00,eur,50.00,1.00,49.00,charge,ch_1,,77",
            ",2026-11-25 09:30:00,eur,50.00,1.00,49.00,charge,ch_1,pi_1,77",
            "txn_6",
            "txn_7,2026-11-25 09:30:00,eur,50.00,1.00,49.00,charge,ch_1,pi_1,",
        ]);
        let numbers: Vec<u64> = report.unreadable.iter().map(|(number, _)| *number).collect();
        assert_eq!((numbers, report.lines.len()), (vec![2, 3, 4, 5, 6, 7], 1));
        assert!(matches!(read(b"a,b\n1,2\n"), Err(ReportError::Column("balance_transaction_id"))));
        assert!(matches!(read(&[0xff, 0xfe]), Err(ReportError::Unreadable(_))));
    }
}
