//! What a provider says it has captured, sent back, kept and paid out, in the layout of its own reports: everything so
//! far. `GET /settlement`, which is no route of the providers': theirs are files behind more than one request.

use crate::metadata::Metadata;
use encoding_rs::GBK;
use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;

use crate::Error;
use crate::account::{broken, stated};
use crate::bills::Bill;
use crate::clock;
use crate::merchant::Names;
use crate::trades::{Refund, Trade};

/// What Stripe keeps of a capture: this share, in basis points, and this much besides.
const STRIPE_FEE: (i64, i64) = (150, 25);
/// What WeChat Pay and Alipay keep of a trade, in basis points.
const TRADE_FEE: i64 = 60;

/// The columns of WeChat Pay's bill.
const WECHAT_HEADING: &str = "交易时间,公众账号ID,商户号,特约商户号,设备号,微信订单号,商户订单号,用户标识,\
        交易类型,交易状态,付款银行,货币种类,应结订单金额,代金券金额,微信退款单号,商户退款单号,退款金额,\
        充值券退款金额,退款类型,退款状态,商品名称,商户数据包,手续费,费率,订单金额,申请退款金额,费率备注";

/// The columns of the sums at its end.
const WECHAT_SUMS: &str =
    "总交易单数,应结订单总金额,退款总金额,充值券退款总金额,手续费总金额,订单总金额,申请退款总金额";

/// The columns of Alipay's bill.
const ALIPAY_HEADING: &str = "支付宝交易号,商户订单号,业务类型,商品名称,创建时间,完成时间,门店编号,门店名称,操作员,\
        终端号,对方账户,订单金额（元）,商家实收（元）,支付宝红包（元）,集分宝（元）,支付宝优惠（元）,商家优惠（元）,\
        券核销金额（元）,券名称,商家红包消费金额（元）,卡消费金额（元）,退款批次号/请求号,服务费（元）,分润（元）,备注";

/// A movement of Stripe's balance.
pub(crate) struct Movement {
    /// The id of what moved it.
    pub(crate) source: String,
    pub(crate) payment: PaymentId,
    pub(crate) metadata: Metadata,
    /// Below nothing for a refund.
    pub(crate) amount: Money,
    pub(crate) at_ms: i64,
    /// What it is, in the words of the report.
    pub(crate) category: &'static str,
}

impl Movement {
    /// What Stripe keeps of it, in Stripe's units.
    pub(crate) fn fee(&self) -> i64 {
        stripe_fee(stated(self.amount), self.category)
    }
}

/// An itemised balance report, and at its end a payout of all that is there.
/// Source: <https://docs.stripe.com/reports/report-types/balance>
pub(crate) fn stripe(mut movements: Vec<Movement>) -> Result<String, Error> {
    movements.sort_by_key(|moved| (moved.at_ms, moved.source.clone()));
    let heading = [
        "balance_transaction_id",
        "created_utc",
        "available_on_utc",
        "currency",
        "gross",
        "fee",
        "net",
        "reporting_category",
        "source_id",
        "payment_intent_id",
        "payment_metadata[onsale_deployment]",
        "payment_metadata[onsale_order]",
        "payment_metadata[onsale_attempt]",
        "payment_metadata[order]",
        "payment_metadata[attempt]",
    ];
    let mut rows: Vec<Vec<String>> = vec![heading.map(str::to_owned).into()];
    let mut left: Option<(Currency, i64, i64)> = None;
    for Movement { source, payment, metadata, amount, at_ms, category } in movements {
        let Money { amount_minor: MinorUnits(gross), currency } = amount;
        let fee = stripe_fee(gross, category);
        let balance = left.map_or(0, |(_, balance, _)| balance) + gross - fee;
        left = Some((currency, balance, at_ms));
        let at = utc(at_ms);
        let mut row = vec![
            format!("txn_{source}"),
            at.clone(),
            at,
            currency.to_string().to_ascii_lowercase(),
            major(gross, currency),
            major(fee, currency),
            major(gross - fee, currency),
            category.to_owned(),
            source,
            payment.to_string(),
        ];
        let carried = ["onsale_deployment", "onsale_order", "onsale_attempt", "order", "attempt"];
        row.extend(carried.map(|name| metadata.text(name).to_owned()));
        rows.push(row);
    }
    if let Some((currency, balance, at_ms)) = left.filter(|(_, balance, _)| *balance > 0) {
        let (out, at) = (major(-balance, currency), utc(at_ms));
        let row = ["txn_po_1", &at, &at, &currency.to_string().to_ascii_lowercase(), &out];
        let rest = [&major(0, currency), &out, "payout", "po_1", "", "", "", "", "", ""];
        rows.push([&row[..], &rest].concat().into_iter().map(str::to_owned).collect());
    }
    written(rows)
}

/// What Stripe keeps of a movement.
pub(crate) fn stripe_fee(gross: i64, category: &str) -> i64 {
    if category == "charge" { share(gross, STRIPE_FEE.0) + STRIPE_FEE.1 } else { 0 }
}

/// WeChat Pay's trade bill of all trades.
/// Source: <https://pay.weixin.qq.com/docs/merchant/products/bill-download/format-trade.html>
pub(crate) fn wechat(names: &Names, trades: &[Trade], which: Bill) -> String {
    let of = yuan;
    let mut bill = format!("\u{feff}{WECHAT_HEADING}\r\n");
    let (mut count, mut taken, mut back, mut kept) = (0, 0, 0, 0);
    let add = |bill: &mut String, fields: Vec<String>| {
        let marked: Vec<String> = fields.iter().map(|field| format!("`{field}")).collect();
        bill.push_str(&marked.join(","));
        bill.push_str("\r\n");
    };
    for trade in &which.sorted(trades) {
        let Some(paid_ms) = trade.paid_ms() else { continue };
        let mut row = |at_ms: i64, price: i64, refund: Option<(&str, i64)>| {
            let amount = refund.map_or(0, |(_, amount)| amount);
            count += 1;
            kept += wechat_fee(price, refund);
            taken += price;
            back += amount;
            add(&mut bill, wechat_row(names, trade, at_ms, price, refund));
        };
        let times = if which.is_doubled { 2 } else { 1 };
        for _ in 0..times {
            if which.has(paid_ms) {
                row(paid_ms, trade.terms.fen.0, None);
            }
            let made = |refund: &&Refund| refund.is_done && which.has(refund.created_ms);
            for refund in trade.refunds.iter().filter(made) {
                row(refund.created_ms, 0, Some((&refund.number, refund.fen.0)));
            }
        }
    }
    if which.is_garbled {
        count += 2;
        bill.push_str("`2026-11-25 09:30:00,`wx88\r\n");
        let huge = "9".repeat(40);
        let fields = WECHAT_HEADING.split(',').map(|_| huge.clone());
        add(&mut bill, fields.collect());
    }
    bill.push_str(WECHAT_SUMS);
    bill.push_str("\r\n");
    let fees = format!("{}000", of(kept));
    let sums =
        [count.to_string(), of(taken), of(back), "0.00".to_owned(), fees, of(taken), of(back)];
    add(&mut bill, sums.into());
    bill
}

/// What WeChat Pay keeps of a trade, or gives back of it with a refund.
fn wechat_fee(price: i64, refund: Option<(&str, i64)>) -> i64 {
    refund.map_or_else(|| share(price, TRADE_FEE), |(_, amount)| -share(amount, TRADE_FEE))
}

/// A row of WeChat Pay's bill: of a trade of this price, or of a refund of it, with its name and amount.
fn wechat_row(
    names: &Names,
    trade: &Trade,
    at_ms: i64,
    price: i64,
    refund: Option<(&str, i64)>,
) -> Vec<String> {
    let of = yuan;
    let (name, amount) = refund.unwrap_or_default();
    let id = refund.map_or_else(String::new, |(name, _)| format!("50{}{name}", trade.payment));
    let [kind, state] = if refund.is_some() { ["ORIGINAL", "SUCCESS"] } else { ["", ""] };
    let fields: [&str; 27] = [
        &clock::plain(Timestamp::from_ms(at_ms)),
        &names.app_id,
        &names.account,
        "0",
        "",
        trade.payment.as_str(),
        &trade.number,
        "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o",
        "NATIVE",
        if refund.is_some() { "REFUND" } else { "SUCCESS" },
        "OTHERS",
        "CNY",
        &of(price),
        "0.00",
        &id,
        name,
        &of(amount),
        "0.00",
        kind,
        state,
        "门票",
        "",
        &format!("{}000", of(wechat_fee(price, refund))),
        "0.60%",
        &of(price),
        &of(amount),
        "",
    ];
    fields.map(str::to_owned).into()
}

/// An amount in yuan.
fn yuan(fen: i64) -> String {
    let sign = if fen < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", fen.abs() / 100, fen.abs() % 100)
}

/// Alipay's bill of trades, line by line, in GBK.
/// Source: <https://opendocs.alipay.com/open/204/106262>
pub(crate) fn alipay(names: &Names, trades: &[Trade], which: Bill) -> Vec<u8> {
    let of = yuan;
    let mut bill = format!("#支付宝业务明细查询\r\n#账号：[{}0156]\r\n", names.account);
    bill.push_str("#-----------------------------------------业务明细列表----------------------------------------\r\n");
    bill.push_str(ALIPAY_HEADING);
    bill.push_str("\r\n");
    let mut counts = [0, 0];
    for trade in &which.sorted(trades) {
        let Some(paid_ms) = trade.paid_ms() else { continue };
        let mut row = |at_ms: i64, minor: i64, refund: &str, fee: i64| {
            let is_refund = !refund.is_empty();
            counts[usize::from(is_refund)] += 1;
            let (created, at) = (
                clock::plain(Timestamp::from_ms(trade.created_ms)),
                clock::plain(Timestamp::from_ms(at_ms)),
            );
            let (kind, amount, fee) = (if is_refund { "退款" } else { "交易" }, of(minor), of(fee));
            let none = "0.00";
            // Numbers have a tab behind them there, so that spreadsheets leave them alone.
            let fields: [&str; 25] = [
                &format!("{}\t", trade.payment),
                &format!("{}\t", trade.number),
                kind,
                "门票",
                &created,
                &at,
                "",
                "",
                "",
                "",
                "*某(buy***@example.com)",
                &amount,
                &amount,
                none,
                none,
                none,
                none,
                none,
                "",
                none,
                none,
                &format!("{refund}\t"),
                &fee,
                none,
                "",
            ];
            bill.push_str(&fields.join(","));
            bill.push_str("\r\n");
        };
        let times = if which.is_doubled { 2 } else { 1 };
        for _ in 0..times {
            if which.has(paid_ms) {
                row(paid_ms, trade.terms.fen.0, "", -share(trade.terms.fen.0, TRADE_FEE));
            }
            let made = |refund: &&Refund| refund.is_done && which.has(refund.created_ms);
            for refund in trade.refunds.iter().filter(made) {
                let (minor, fee) = (refund.fen.0, share(refund.fen.0, TRADE_FEE));
                row(refund.created_ms, -minor, &refund.number, fee);
            }
        }
    }
    if which.is_garbled {
        bill.push_str(&format!("2014\t,7\r\n{}\r\n", vec!["9".repeat(40); 25].join(",")));
    }
    let [taken, back] = counts;
    bill.push_str("#-----------------------------------------业务明细列表结束------------------------------------\r\n");
    bill.push_str(&format!("#交易合计：{taken}笔\r\n#退款合计：{back}笔\r\n"));
    GBK.encode(&bill).0.into_owned()
}

/// The file of the sums of a bill of Alipay's, which comes with its lines.
pub(crate) fn alipay_sums() -> Vec<u8> {
    let sums = "#支付宝业务汇总查询\r\n门店编号,门店名称,交易订单总笔数\r\n合计,,0\r\n";
    GBK.encode(sums).0.into_owned()
}

/// A share of an amount in basis points, rounded half up.
fn share(minor: i64, basis_points: i64) -> i64 {
    (minor * basis_points + 5_000) / 10_000
}

/// An amount in major units.
fn major(minor: i64, currency: Currency) -> String {
    let known = iso_currency::Currency::from_code(&currency.to_string());
    let digits = known.and_then(iso_currency::Currency::exponent).map_or(2, usize::from);
    let sign = if minor < 0 { "-" } else { "" };
    let all = format!("{:0width$}", minor.unsigned_abs(), width = digits + 1);
    let (whole, part) = all.split_at(all.len() - digits);
    let point = if digits > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{part}")
}

/// `2026-11-25 09:30:00`, in UTC.
fn utc(at_ms: i64) -> String {
    let text = Timestamp::from_ms(at_ms).to_string().replace('T', " ");
    text.get(..19).unwrap_or(&text).to_owned()
}

fn written(rows: Vec<Vec<String>>) -> Result<String, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).map_err(broken)?;
    }
    let bytes = writer.into_inner().map_err(|error| broken(error.to_string()))?;
    String::from_utf8(bytes).map_err(broken)
}
