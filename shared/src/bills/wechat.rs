//! WeChat Pay's trade bill (`tradebill`, type `ALL`): payments and refunds of a day in Beijing, then a row with
//! their sums. Each field begins with a grave accent.
//!
//! Source: <https://pay.weixin.qq.com/docs/merchant/products/bill-download/format-trade.html>

use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};

use super::amount::amount;
use super::table::{Row, rows};
use super::{ReportError, local_time};
use engine::domain::payment::bill::{BilledRefund, Line, Moved, Named, Report};

use crate::providers::wechat;

const COLUMNS: [&str; 12] = [
    "交易时间",
    "商户号",
    "微信订单号",
    "商户订单号",
    "交易状态",
    "货币种类",
    "微信退款单号",
    "商户退款单号",
    "退款状态",
    "手续费",
    "订单金额",
    "申请退款金额",
];
const NO_NAME: &str = "the refund has no number";
/// How the heading of the sums begins.
const SUMS: &str = "总交易单数";

pub(super) fn read(file: &[u8]) -> Result<Report, ReportError> {
    let text = std::str::from_utf8(file)
        .map_err(|_| ReportError::Unreadable("it is not UTF-8".to_owned()))?;
    let is_sums = |line: &str| line.trim_start_matches(['`', '\u{feff}']).starts_with(SUMS);
    // No copy of the lines is made: a bill of a day may be large.
    let details = || text.split_inclusive('\n').take_while(|line| !is_sums(line));
    let end: usize = details().map(str::len).sum();
    let (details, rest) = text.split_at(end);
    let mut report = rows(details, 0, &COLUMNS, line)?;
    let Some(sums) = rest.lines().nth(1) else {
        report.wrong_sums.push("the report ends without its sums".to_owned());
        return Ok(report);
    };
    check_sums(&mut report, sums);
    Ok(report)
}

fn line(row: &Row<'_>) -> Result<Line, String> {
    let currency = Currency::new(row.get("货币种类")).map_err(|error| error.to_string())?;
    let of = |name: &str| {
        amount(row.get(name), currency).map(|amount_minor| Money { amount_minor, currency })
    };
    let payment = PaymentId::new(row.get("微信订单号")).map_err(|error| error.to_string())?;
    let (order, deployment) = Named::read(row.get("商户订单号"));
    let state = row.get("交易状态");
    let (id, moved) = match (state, row.get("退款状态")) {
        ("SUCCESS", _) => {
            let amount = of("订单金额")?;
            (payment.to_string(), Moved::Captured { payment, order, amount })
        }
        // A bill has refunds on the day on which they were taken, and says no more of them later.
        ("REFUND", "SUCCESS" | "PROCESSING") => {
            let amount = of("申请退款金额")?;
            let (id, number) = (row.get("微信退款单号"), row.get("商户退款单号"));
            let refund = match wechat::refund_of(number, &payment) {
                Some(ours) => ours,
                None => BilledRefund::Outside(id.parse().map_err(|_| NO_NAME)?),
            };
            let refund = Some(refund);
            (id.to_owned(), Moved::SentBack { payment, order, amount, refund })
        }
        (_, refund) => {
            let amount = of("订单金额")?;
            let what = format!("{state} {refund}").trim().to_owned();
            (format!("{payment} {what}"), Moved::Other { what, amount })
        }
    };
    Ok(Line {
        number: row.number,
        id,
        merchant: Some(row.get("商户号").to_owned()),
        deployment,
        at: local_time(row.get("交易时间"), "+08:00")?,
        moved,
        fee: of("手续费")?,
    })
}

/// Holds the sums against the lines: the number of lines, what was taken, what went back, and the fees.
fn check_sums(report: &mut Report, sums: &str) {
    let said: Vec<&str> =
        sums.trim().split(',').map(|field| field.trim().trim_start_matches('`')).collect();
    let mut found = [MinorUnits::ZERO; 3];
    for line in &report.lines {
        match &line.moved {
            Moved::Captured { amount, .. } => found[0] += amount.amount_minor,
            Moved::SentBack { amount, .. } => found[1] += amount.amount_minor,
            Moved::PaidOut { .. }
            | Moved::Kept { .. }
            | Moved::Disputed { .. }
            | Moved::Other { .. } => {}
        }
        found[2] += line.fee.amount_minor;
    }
    let lines = report.lines.len() + report.unreadable.len();
    if said.first() != Some(&lines.to_string().as_str()) {
        let said = said.first().unwrap_or(&"nothing");
        report.wrong_sums.push(format!("it says that it has {said} lines, and has {lines}"));
    }
    let Some(currency) = report.lines.first().map(|line| line.fee.currency) else { return };
    // Taken, sent back and kept stand in these places.
    for ((place, name), found) in
        [(5, "taken"), (6, "sent back"), (4, "kept")].into_iter().zip(found)
    {
        let said = said.get(place).and_then(|text| amount(text, currency).ok());
        if said != Some(found) {
            let said = said.map_or_else(|| "nothing".to_owned(), |said| said.to_string());
            report
                .wrong_sums
                .push(format!("it says that {said} was {name}, and its lines {found}"));
        }
    }
}
