//! Alipay's bill of trades, line by line (业务明细): in GBK, with comments before and behind the table. Refunds are
//! below nothing, and so is what is kept of a trade.
//!
//! Source: <https://opendocs.alipay.com/open/204/106262>

use encoding_rs::GBK;
use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};

use super::amount::amount;
use super::table::{Row, rows};
use super::{ReportError, local_time};
use engine::domain::payment::bill::{BilledRefund, Line, Moved, Named, Report};

use crate::providers::alipay;

const COLUMNS: [&str; 7] = [
    "支付宝交易号",
    "商户订单号",
    "业务类型",
    "完成时间",
    "订单金额（元）",
    "退款批次号/请求号",
    "服务费（元）",
];
const NO_NAME: &str = "the refund has no number";
/// What stands before the number of the account that the bill is of.
const ACCOUNT: &str = "#账号：[";

pub(super) fn read(file: &[u8]) -> Result<Report, ReportError> {
    let (text, _, is_wrong) = GBK.decode(file);
    if is_wrong {
        return Err(ReportError::Unreadable("it is not GBK".to_owned()));
    }
    let currency =
        Currency::new("CNY").map_err(|error| ReportError::Unreadable(error.to_string()))?;
    let before = text.lines().take_while(|line| line.starts_with('#')).count();
    let named = text.lines().find_map(|line| line.trim().strip_prefix(ACCOUNT));
    // With four digits behind it that say which of the account's books it is.
    let account = named.map(|rest| rest.trim_end_matches(']').to_owned());
    let account = account.map(|books| books.get(..16).map_or(books.clone(), str::to_owned));
    // No copy of the table is made: a bill of a day may be large.
    let table = text.split_inclusive('\n').take(before).map(str::len).sum();
    let table = text.get(table..).unwrap_or_default();
    let rest = table.find("\n#").map_or(table.len(), |end| end + 1);
    let offset = u64::try_from(before).unwrap_or(u64::MAX);
    let table = table.get(..rest).unwrap_or_default();
    rows(table, offset, &COLUMNS, |row| line(row, currency, account.clone()))
}

fn line(row: &Row<'_>, currency: Currency, merchant: Option<String>) -> Result<Line, String> {
    let said = amount(row.get("订单金额（元）"), currency)?;
    let fee = MinorUnits::ZERO - amount(row.get("服务费（元）"), currency)?;
    let payment = PaymentId::new(row.get("支付宝交易号")).map_err(|error| error.to_string())?;
    let (order, deployment) = Named::read(row.get("商户订单号"));
    let money = |amount_minor: MinorUnits| Money { amount_minor, currency };
    let kind = row.get("业务类型");
    let (id, moved) = match kind {
        "交易" => (payment.to_string(), Moved::Captured { payment, order, amount: money(said) }),
        "退款" => {
            let amount = money(MinorUnits::ZERO - said);
            let number = row.get("退款批次号/请求号");
            let refund = match alipay::refund_of(number, &payment) {
                Some(ours) => ours,
                // Unique among the refunds of its trade, of which it is read.
                None => BilledRefund::Outside(number.parse().map_err(|_| NO_NAME)?),
            };
            let refund = Some(refund);
            (format!("{payment} {number}"), Moved::SentBack { payment, order, amount, refund })
        }
        _ => (
            format!("{payment} {kind}"),
            Moved::Other { what: kind.to_owned(), amount: money(said) },
        ),
    };
    let at = local_time(row.get("完成时间"), "+08:00")?;
    Ok(Line { number: row.number, id, merchant, deployment, at, moved, fee: money(fee) })
}
