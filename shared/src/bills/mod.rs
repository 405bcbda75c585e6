//! Providers' reports of what they captured, sent back, kept and paid out, in the provider's own layout, read into the lines of
//! [`bill`](engine::domain::payment::bill).
//!
//! [`Layout`] reads a report that is there as a file, for `onsale money reconcile`. [`LiveBills`] has the bills of each day
//! fetched and unpacks them, for the function `read-bills`. Nothing else links this: what other functions have of bills is
//! the requests for them ([`crate::providers`]).

mod alipay;
mod amount;
mod balance;
mod live;
mod stripe;
mod table;
mod unpack;
mod wechat;

use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::Report;

pub use self::live::{LiveBills, unpacked};

/// Whose report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Stripe's itemised balance reports, as CSV.
    Stripe,
    /// WeChat Pay's trade bill of all trades.
    Wechat,
    /// Alipay's bill of trades, line by line.
    Alipay,
}

/// Why a file is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It has not the columns of its layout.
    #[error("the report has no column {0}")]
    Column(&'static str),
    /// It is not text of the layout's encoding, or no table.
    #[error("the report cannot be read: {0}")]
    Unreadable(String),
}

impl Layout {
    /// The layout that a provider's reports have, by the provider's id.
    #[must_use]
    pub fn of(provider: &str) -> Option<Self> {
        match provider {
            "stripe" => Some(Self::Stripe),
            "wechat" => Some(Self::Wechat),
            "alipay" => Some(Self::Alipay),
            _ => None,
        }
    }

    /// How far the days of its reports begin before those of UTC, in milliseconds: in Beijing eight hours.
    #[must_use]
    pub const fn day_ahead_ms(self) -> i64 {
        match self {
            Self::Stripe => 0,
            Self::Wechat | Self::Alipay => 8 * 60 * 60 * 1000,
        }
    }

    /// Reads a report.
    ///
    /// # Errors
    /// [`ReportError`] if it is none of this layout; a line that cannot be read is an entry of the report.
    pub fn read(self, file: &[u8]) -> Result<Report, ReportError> {
        match self {
            Self::Stripe => stripe::read(file),
            Self::Wechat => wechat::read(file),
            Self::Alipay => alipay::read(file),
        }
    }
}

/// A time such as `2026-11-25 09:30:00` at this offset from UTC.
fn local_time(text: &str, offset: &str) -> Result<Timestamp, String> {
    let written = format!("{}{offset}", text.replacen(' ', "T", 1));
    written.parse().map_err(|_| format!("{text:?} is no time"))
}

#[cfg(test)]
mod tests {
    use engine::domain::payment::bill::{BilledRefund, Moved};

    use super::*;

    /// The refunds that a report tells of, as it names them.
    fn refunds(layout: Layout, report: &str) -> Vec<BilledRefund> {
        let bytes = match layout {
            Layout::Alipay => encoding_rs::GBK.encode(report).0.into_owned(),
            Layout::Stripe | Layout::Wechat => report.as_bytes().to_vec(),
        };
        let report = layout.read(&bytes).unwrap();
        assert_eq!(report.unreadable, []);
        let of_line = |moved: &Moved| match moved {
            Moved::SentBack { refund, .. } => refund.clone(),
            Moved::Captured { .. }
            | Moved::PaidOut { .. }
            | Moved::Kept { .. }
            | Moved::Disputed { .. }
            | Moved::Other { .. } => None,
        };
        report.lines.iter().filter_map(|line| of_line(&line.moved)).collect()
    }

    #[test]
    fn a_refund_has_our_name_or_is_made_outside() {
        let expected = |outside: &str| {
            [
                BilledRefund::Part("77-r1".parse().unwrap()),
                BilledRefund::Part("77-r2-2".parse().unwrap()),
                BilledRefund::Whole,
                BilledRefund::Outside(outside.parse().unwrap()),
            ]
        };
        let wechat = |id: &str, number: &str| {
            format!(
                "`2026-11-25 09:30:00,`1900000001,`420001,`own-77-1,`REFUND,`CNY,`{id},`{number},\
                 `SUCCESS,`-0.01000,`0.00,`1.00\n"
            )
        };
        let rows: String = [("501", "77-r1"), ("502", "77-r2-2"), ("503", "refund-420001")]
            .into_iter()
            .chain([("504", "RMA 5")])
            .map(|(id, number)| wechat(id, number))
            .collect();
        let heading = "交易时间,商户号,微信订单号,商户订单号,交易状态,货币种类,微信退款单号,商户退款单号,退款状态,\
                       手续费,订单金额,申请退款金额\n";
        let report = format!("{heading}{rows}总交易单数\n`4\n");
        assert_eq!(refunds(Layout::Wechat, &report), expected("504"));

        let alipay = |number: &str| {
            format!("208801,own_77_1,退款,2026-11-25 09:30:00,-1.00,{number},0.01\n")
        };
        let rows: String =
            ["77_r1", "77_r2_2", "refund_208801", "RMA5"].map(alipay).into_iter().collect();
        let heading = "#账号：[20881021462251350156]\n支付宝交易号,商户订单号,业务类型,完成时间,订单金额（元）,\
                       退款批次号/请求号,服务费（元）\n";
        let report = format!("{heading}{rows}#业务明细列表结束\n");
        assert_eq!(refunds(Layout::Alipay, &report), expected("RMA5"));
    }
}
