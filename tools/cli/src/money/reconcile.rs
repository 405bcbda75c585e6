//! `onsale money reconcile`: what a provider's own report says, held against what the engine knows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::ids::{PaymentId, PostingKey, ProviderId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::Account;
use engine::domain::ledger::posting::PostingKind;
use engine::domain::order::{Capture, PaymentKey, PaymentOutcome};
use engine::domain::payment::bill::{
    Compared, DAY_MS, Defect, Expected, FeesOf, Known, Named, Period, Report, compare,
};
use engine::domain::payment::ours::Reported;
use engine::flows::pay::{is_ours, pay_from_afar};
use engine::ports::{Orders as _, Ports as _};
use ops::settlement::read_known;
use serde_json::{Value, json};
use shared::bills::Layout;
use shared::runtime::app::LivePorts;

use super::{Outcome, post_one};
use crate::engine::EngineArgs;
use crate::{DECLINED, Failure, out};

/// Hold a provider's own report against what the engine knows: each line is matched, or named with what is wrong with
/// it, and so is what the report leaves out.
///
/// Reports are Stripe's itemised balance reports (CSV, with the columns payment_intent_id and, to decide what is unknown,
/// payment_metadata[order] and payment_metadata[attempt]), WeChat Pay's trade bill of all trades and Alipay's bill of
/// trades, line by line. Exits with 1 if anything is named.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money reconcile balance.csv --provider stripe --from 2026-11-25T00:00:00Z --to 2026-11-26T00:00:00Z
  onsale money reconcile bill.csv --provider wechat --from 2026-11-25T00:00:00+08:00 --to 2026-11-26T00:00:00+08:00 \\
    --merchant 1900000109 --book --decide")]
pub struct Reconcile {
    /// The report.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Whose report it is: stripe, wechat or alipay.
    #[arg(long, value_name = "PROVIDER")]
    provider: ProviderId,
    /// Where its period begins, as RFC 3339.
    #[arg(long, value_name = "TIME")]
    from: Timestamp,
    /// Where its period ends; not part of it.
    #[arg(long, value_name = "TIME")]
    to: Timestamp,
    /// The account at the provider: a line on another one is named.
    #[arg(long, value_name = "ACCOUNT")]
    merchant: Option<String>,
    /// Book what the provider kept and paid out in the ledger, once however often it is read: a posting for each day
    /// and each payout. The period is whole days of the provider's, and nothing is wrong with the report itself.
    #[arg(long)]
    book: bool,
    /// Decide captures that nobody has told the engine of, as if their callback had come.
    #[arg(long)]
    decide: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

impl Reconcile {
    /// Prints what does not agree, and what was matched, booked and decided.
    ///
    /// # Errors
    /// The file is no report, the engine cannot be reached, or a store fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { file, provider, from, to, merchant, book, decide, engine } = self;
        let layout = Layout::of(provider.as_str());
        let layout = layout.ok_or_else(|| format!("{provider} has no layout that is known"))?;
        if from >= to {
            return Err("--from must be before --to".to_owned().into());
        }
        let is_midnight = |at: Timestamp| (at.ms() + layout.day_ahead_ms()).rem_euclid(DAY_MS) == 0;
        if book && !(is_midnight(from) && is_midnight(to)) {
            let ahead = layout.day_ahead_ms() / 3_600_000;
            let what = "to book, --from and --to must be midnights where its days begin";
            return Err(format!("{what} (UTC+{ahead})").into());
        }
        let bytes = std::fs::read(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let report = layout.read(&bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        if merchant.is_some() && report.lines.iter().any(|line| line.merchant.is_none()) {
            let what = "the report does not say on whose account its lines are";
            return Err(format!("{}: {what}: leave --merchant out", file.display()).into());
        }
        let reached = engine.reach(data_dir).await?;
        let ports = &reached.app.ports;
        let period = Period { from, to };
        let mut known = read_known(&ports.orders().orders.0.log(), &provider, period).await?;
        look_up(ports, &provider, &report, &mut known).await?;
        name_moved(ports, &provider, &mut known).await?;
        let day_ahead_ms = layout.day_ahead_ms();
        let own = ports.provider().deployment().cloned();
        let expected = Expected { period, merchant, day_ahead_ms, own };
        let compared = compare(&report, &known, &expected);

        let mut said = Said { json, ..Said::default() };
        said.compared(&compared)?;
        if decide {
            for (_, defect) in &compared.defects {
                decide_one(ports, &provider, defect, &mut said).await?;
            }
        }
        let mut is_booked = !book || compared.can_be_booked();
        if book && is_booked {
            for (kind, amount, key) in postings(&provider, &compared)? {
                let account = Account::Provider(provider.clone());
                let transfer = kind.transfer(account, amount).map_err(|fault| fault.to_string())?;
                let posted = post_one(&reached, transfer, key.clone()).await?;
                is_booked &= !matches!(posted, Outcome::Refused(_));
                said.line(format!("{kind} of {amount} as {key}: {}", posted.as_str()))?;
                said.booked.push(json!({
                    "key": key, "kind": kind, "amount_minor": amount.amount_minor,
                    "currency": amount.currency, "posted": posted.as_str(),
                }));
            }
        } else if book {
            said.line("nothing was booked: the report itself is wrong".to_owned())?;
        }
        said.end(&compared)?;
        let is_good = compared.defects.is_empty() && is_booked;
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

/// What is printed: lines as they come, or one document.
#[derive(Default)]
struct Said {
    json: bool,
    defects: Vec<Value>,
    decided: Vec<Value>,
    booked: Vec<Value>,
}

impl Said {
    fn line(&self, text: String) -> Result<(), Failure> {
        if !self.json {
            out(&text)?;
        }
        Ok(())
    }

    fn compared(&mut self, compared: &Compared) -> Result<(), Failure> {
        for (line, defect) in &compared.defects {
            let what = defect.to_string();
            let at = line.map_or_else(String::new, |line| format!("line {line}: "));
            self.line(format!("{at}{what}"))?;
            self.defects.push(json!({ "line": line, "kind": defect.kind(), "what": what }));
        }
        Ok(())
    }

    fn end(self, compared: &Compared) -> Result<(), Failure> {
        if self.json {
            let kept = compared.fees.iter().map(|(of, amount)| {
                json!({
                    "day": day(of), "merchant": of.merchant,
                    "amount_minor": amount, "currency": of.currency,
                })
            });
            let paid_out = compared.payouts.iter().map(|((payout, is_back), amount)| {
                json!({
                    "payout": payout, "is_back": is_back,
                    "amount_minor": amount.amount_minor, "currency": amount.currency,
                })
            });
            out(&json!({
                "matched": compared.matched,
                "defects": self.defects,
                "others": compared.others,
                "kept": kept.collect::<Vec<_>>(),
                "paid_out": paid_out.collect::<Vec<_>>(),
                "decided": self.decided,
                "booked": self.booked,
            }))?;
            return Ok(());
        }
        for (of, amount) in &compared.fees {
            self.line(format!("kept on {}: {amount} {}", day(of), of.currency))?;
        }
        for ((payout, is_back), amount) in &compared.payouts {
            let what = if *is_back { "paid out and come back" } else { "paid out" };
            self.line(format!("{what}: {amount} ({payout})"))?;
        }
        for (deployment, lines) in &compared.others {
            self.line(format!("{lines} lines are of the deployment {deployment}: left alone"))?;
        }
        self.line(format!(
            "{} lines matched, {} things do not agree",
            compared.matched,
            compared.defects.len()
        ))
    }
}

/// Reads the orders, and payments without one, that lines name and the log of the period does not tell of.
async fn look_up(
    ports: &LivePorts,
    provider: &ProviderId,
    report: &Report,
    known: &mut Known,
) -> Result<(), Failure> {
    let mut wanted: BTreeSet<(OrderNumber, PaymentId)> = BTreeSet::new();
    for line in &report.lines {
        let Some((payment, Some(Named { order, .. }))) = line.moved.payment() else { continue };
        if !known.captured.contains_key(payment) {
            wanted.insert((order, payment.clone()));
        }
    }
    for (order, payment) in wanted {
        if let Some(order) = ports.orders().get(order).await? {
            known.add_order(provider, &order);
        }
        if known.captured.contains_key(&payment) {
            continue;
        }
        let key = PaymentKey { provider: provider.clone(), payment };
        if let Some(payment) = ports.orders().payment(order, &key).await? {
            known.add_payment(&payment);
        }
    }
    Ok(())
}

/// Puts refunds of money that was moved under the provider's names of its captures.
async fn name_moved(
    ports: &LivePorts,
    provider: &ProviderId,
    known: &mut Known,
) -> Result<(), Failure> {
    for (payment, refund) in known.moved() {
        let key = PaymentKey { provider: provider.clone(), payment: payment.clone() };
        if let Some(record) = ports.orders().payment(refund.order, &key).await? {
            known.rename((payment, refund), record.at_provider().capture.key.payment);
        }
    }
    Ok(())
}

/// Decides a capture that nobody spoke of.
async fn decide_one(
    ports: &LivePorts,
    provider: &ProviderId,
    defect: &Defect,
    said: &mut Said,
) -> Result<(), Failure> {
    let Defect::UnknownCapture(payment, Some(named), mark, amount) = defect else {
        return Ok(());
    };
    let key = PaymentKey { provider: provider.clone(), payment: payment.clone() };
    let Named { order, attempt } = *named;
    let capture = Capture { key, order, amount: *amount, attempt };
    let reported = Reported { capture, mark: *mark };
    if !is_ours(ports, &reported).await? {
        said.line(format!("payment {payment} for order {order}: it is not this deployment's"))?;
        return Ok(());
    }
    let record = pay_from_afar(ports, &reported.capture, Timestamp::now()).await?;
    let outcome = match record.outcome {
        PaymentOutcome::Refund(_) if record.is_unmatched() => "unmatched",
        PaymentOutcome::Accepted => "accepted",
        PaymentOutcome::Refund(reason) => reason.as_str(),
    };
    said.line(format!("payment {payment} for order {order}: {outcome}"))?;
    said.decided.push(json!({ "payment": payment, "order": order, "outcome": outcome }));
    Ok(())
}

/// The day of fees as a date.
fn day(of: &FeesOf) -> String {
    let midnight = Timestamp::from_ms(of.day.saturating_mul(DAY_MS)).to_string();
    midnight.split('T').next().unwrap_or_default().to_owned()
}

/// What is booked of a report: the fees of each day, and each payout.
fn postings(
    provider: &ProviderId,
    compared: &Compared,
) -> Result<Vec<(PostingKind, Money, PostingKey)>, Failure> {
    let mut postings = Vec::new();
    for (of, amount) in &compared.fees {
        let merchant = of.merchant.as_deref().unwrap_or("-");
        let key = format!("{provider}:{merchant}:fees:{}:{}", of.currency, day(of));
        let (kind, amount_minor) = match *amount < MinorUnits::ZERO {
            false => (PostingKind::ProviderFee, *amount),
            true => (PostingKind::ProviderFeeBack, MinorUnits::ZERO - *amount),
        };
        postings.push((kind, Money { amount_minor, currency: of.currency }, key));
    }
    for ((payout, is_back), amount) in &compared.payouts {
        postings.push(match is_back {
            false => (PostingKind::Payout, *amount, format!("{provider}:{payout}")),
            true => (PostingKind::PayoutBack, *amount, format!("{provider}:{payout}:back")),
        });
    }
    postings.retain(|(_, amount, _)| amount.amount_minor > MinorUnits::ZERO);
    let keyed = postings.into_iter().map(|(kind, amount, key)| {
        let key = PostingKey::new(key).map_err(|error| error.to_string())?;
        Ok((kind, amount, key))
    });
    keyed.collect()
}
