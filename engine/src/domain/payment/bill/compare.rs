//! A report against what is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::domain::basics::ids::{DeploymentId, PaymentId};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::RefundKey;
use crate::domain::payment::ours::Mark;

use super::known::{DAY_MS, Known, KnownRefund, NEIGHBOUR_MS, Period};
use super::{Line, Moved, Named, Report};

/// What a report should be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its period.
    pub period: Period,
    /// The account at the provider, if that is to be checked.
    pub merchant: Option<String>,
    /// How far its days begin before those of UTC, in milliseconds.
    pub day_ahead_ms: i64,
    /// The deployment's id, if it has one.
    pub own: Option<DeploymentId>,
}

/// What a provider kept of one day, on one account of its merchant if its report names that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeesOf {
    /// The account.
    pub merchant: Option<String>,
    /// The currency.
    pub currency: Currency,
    /// The day, counted from 1970-01-01 where the report's days begin.
    pub day: i64,
}

/// What is wrong, by line of the report or by what the engine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// The line cannot be read.
    Unreadable(String),
    /// The report's own sums are not those of its lines.
    Sum(String),
    /// A line, or a capture, that stands in the report before: there.
    Twice(u64),
    /// It is on the account of somebody else.
    OtherMerchant(String),
    /// It is not of the report's period.
    OtherPeriod,
    /// It is in another currency than the engine knows.
    OtherCurrency(Money, Money),
    /// It is of another amount than the engine knows.
    OtherAmount(Money, Money),
    /// A capture that nobody has told the engine of.
    UnknownCapture(PaymentId, Option<Named>, Mark, Money),
    /// Money that went back and that the engine does not send back.
    UnknownRefund(PaymentId, Money),
    /// A capture that the report does not have.
    MissingCapture(PaymentId, OrderNumber, Money),
    /// Money that the engine takes to be back, and the report does not have.
    MissingRefund(PaymentId, Money),
    /// Money that a dispute took away, or gave back (true), and of which no dispute that is known here tells.
    UnknownDispute(PaymentId, bool, Money),
    /// Something that is not booked here.
    NotBooked(String, Money),
}

impl Defect {
    /// Its kind, as it is written in JSON.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Sum(_) => "wrong_sum",
            Self::Twice(_) => "twice",
            Self::OtherMerchant(_) => "other_merchant",
            Self::OtherPeriod => "other_period",
            Self::OtherCurrency(..) => "other_currency",
            Self::OtherAmount(..) => "other_amount",
            Self::UnknownCapture(..) => "unknown_capture",
            Self::UnknownRefund(..) => "unknown_refund",
            Self::MissingCapture(..) => "missing_capture",
            Self::MissingRefund(..) => "missing_refund",
            Self::UnknownDispute(..) => "unknown_dispute",
            Self::NotBooked(..) => "not_booked",
        }
    }

    /// True if the report itself is wrong, or not the one that was meant.
    fn is_of_the_report(&self) -> bool {
        match self {
            Self::Unreadable(_)
            | Self::Sum(_)
            | Self::Twice(_)
            | Self::OtherMerchant(_)
            | Self::OtherPeriod => true,
            Self::OtherCurrency(..)
            | Self::OtherAmount(..)
            | Self::UnknownCapture(..)
            | Self::UnknownRefund(..)
            | Self::MissingCapture(..)
            | Self::MissingRefund(..)
            | Self::UnknownDispute(..)
            | Self::NotBooked(..) => false,
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::Sum(what) => f.write_str(what),
            Self::Twice(first) => write!(f, "stands in line {first} already"),
            Self::OtherMerchant(merchant) => write!(f, "is on the account {merchant}"),
            Self::OtherPeriod => f.write_str("is not of the report's period"),
            Self::OtherCurrency(said, known) | Self::OtherAmount(said, known) => {
                write!(f, "is of {said}, and of {known} here")
            }
            Self::UnknownCapture(payment, None, _, amount) => {
                write!(f, "payment {payment} of {amount} is unknown here and names no order")
            }
            Self::UnknownCapture(payment, Some(Named { order, .. }), _, amount) => {
                write!(f, "payment {payment} of {amount} for order {order} is unknown here")
            }
            Self::UnknownRefund(payment, amount) => {
                write!(f, "{amount} of payment {payment} went back, and not by a refund known here")
            }
            Self::MissingCapture(payment, order, amount) => {
                write!(f, "payment {payment} of {amount} for order {order} is not in the report")
            }
            Self::MissingRefund(payment, amount) => {
                write!(f, "{amount} of payment {payment} is back, and not in the report")
            }
            Self::UnknownDispute(payment, false, amount) => {
                write!(f, "{amount} of payment {payment} is disputed, and not here")
            }
            Self::UnknownDispute(payment, true, amount) => {
                write!(f, "{amount} of payment {payment} came back from a dispute, and not here")
            }
            Self::NotBooked(what, amount) => write!(f, "{what} of {amount} is not booked here"),
        }
    }
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Captures and refunds that the report and the engine agree on.
    pub matched: usize,
    /// What is wrong, each with the line that says it.
    pub defects: Vec<(Option<u64>, Defect)>,
    /// What the provider kept.
    pub fees: BTreeMap<FeesOf, MinorUnits>,
    /// Lines of other deployments on the same account, by the deployment's id: they are not booked here.
    pub others: BTreeMap<String, usize>,
    /// What it paid out, and what of that came back (true), by its names of that.
    pub payouts: BTreeMap<(String, bool), Money>,
}

impl Compared {
    /// True if nothing is wrong with what the report says of fees and payouts. What it leaves out, or has besides,
    /// changes nothing of them.
    #[must_use]
    pub fn can_be_booked(&self) -> bool {
        !self.defects.iter().any(|(_, defect)| defect.is_of_the_report())
    }
}

/// Holds a report against what is known, and what is known against the report.
#[must_use]
pub fn compare(report: &Report, known: &Known, expected: &Expected) -> Compared {
    let mut run = run(report, known, expected);
    run.rest();
    run.found
}

/// Holds the lines of a report against what is known of them.
#[must_use]
pub fn compare_lines(report: &Report, known: &Known, expected: &Expected) -> Compared {
    run(report, known, expected).found
}

fn run<'a>(report: &'a Report, known: &'a Known, expected: &'a Expected) -> Run<'a> {
    let mut found = Compared::default();
    for (line, why) in &report.unreadable {
        found.defects.push((Some(*line), Defect::Unreadable(why.clone())));
    }
    for sum in &report.wrong_sums {
        found.defects.push((None, Defect::Sum(sum.clone())));
    }
    let mut run = Run { found, ..Run::new(known, expected) };
    for line in &report.lines {
        match run.line(line) {
            Ok(()) => {}
            Err(defect) => run.found.defects.push((Some(line.number), defect)),
        }
    }
    run
}

struct Run<'a> {
    known: &'a Known,
    expected: &'a Expected,
    found: Compared,
    /// The line of each id.
    lines: BTreeMap<&'a str, u64>,
    /// The line of each capture.
    captured: BTreeMap<&'a PaymentId, u64>,
    /// The line of each payout.
    paid_out: BTreeMap<(String, bool), u64>,
    /// The refunds that were matched.
    sent_back: BTreeSet<(&'a PaymentId, Option<RefundKey>)>,
    /// The disputes that were matched, by their places among those of their payment.
    disputed: BTreeSet<(&'a PaymentId, bool, usize)>,
}

impl<'a> Run<'a> {
    fn new(known: &'a Known, expected: &'a Expected) -> Self {
        Self {
            known,
            expected,
            found: Compared::default(),
            lines: BTreeMap::new(),
            captured: BTreeMap::new(),
            paid_out: BTreeMap::new(),
            sent_back: BTreeSet::new(),
            disputed: BTreeSet::new(),
        }
    }

    fn line(&mut self, line: &'a Line) -> Result<(), Defect> {
        if let Some(first) = self.lines.get(line.id.as_str()) {
            return Err(Defect::Twice(*first));
        }
        self.lines.insert(&line.id, line.number);
        if let (Some(wanted), Some(merchant)) = (&self.expected.merchant, &line.merchant)
            && wanted != merchant
        {
            return Err(Defect::OtherMerchant(merchant.clone()));
        }
        if !self.expected.period.has(line.at) {
            return Err(Defect::OtherPeriod);
        }
        if let (Mark::Another, Some(deployment)) = (self.mark(line), &line.deployment) {
            *self.found.others.entry(deployment.clone()).or_default() += 1;
            return Ok(());
        }
        self.keep(line, line.fee);
        match &line.moved {
            Moved::Captured { payment, order, amount } => {
                self.capture(line, payment, *order, *amount)
            }
            Moved::SentBack { payment, amount, .. } => self.refund(line, payment, *amount),
            Moved::Disputed { payment, is_back, amount, .. } => {
                self.dispute(payment, *is_back, *amount)
            }
            Moved::PaidOut { payout, is_back, amount } => {
                let name = (payout.clone(), *is_back);
                if let Some(first) = self.paid_out.get(&name) {
                    return Err(Defect::Twice(*first));
                }
                self.paid_out.insert(name.clone(), line.number);
                self.found.payouts.insert(name, *amount);
                Ok(())
            }
            Moved::Kept { amount } => {
                self.keep(line, *amount);
                Ok(())
            }
            Moved::Other { what, amount } => Err(Defect::NotBooked(what.clone(), *amount)),
        }
    }

    /// What the payment of a line says of who started it.
    fn mark(&self, line: &Line) -> Mark {
        Mark::of(line.deployment.as_deref(), self.expected.own.as_ref())
    }

    /// Adds to what the provider kept on the day of a line.
    fn keep(&mut self, line: &Line, fee: Money) {
        if fee.amount_minor == MinorUnits::ZERO {
            return;
        }
        let day = line.at.ms().saturating_add(self.expected.day_ahead_ms).div_euclid(DAY_MS);
        let of = FeesOf { merchant: line.merchant.clone(), currency: fee.currency, day };
        *self.found.fees.entry(of).or_default() += fee.amount_minor;
    }

    fn capture(
        &mut self,
        line: &Line,
        payment: &'a PaymentId,
        order: Option<Named>,
        amount: Money,
    ) -> Result<(), Defect> {
        if let Some(first) = self.captured.get(payment) {
            return Err(Defect::Twice(*first));
        }
        self.captured.insert(payment, line.number);
        let known = self.known.captured.get(payment);
        let known = known.ok_or_else(|| {
            Defect::UnknownCapture(payment.clone(), order, self.mark(line), amount)
        })?;
        agree(amount, known.amount)?;
        self.found.matched += 1;
        Ok(())
    }

    /// A refund is one of its payment's that is of the same amount and was not matched yet. One that was back long
    /// before the line stood in an earlier report.
    fn refund(&mut self, line: &Line, payment: &'a PaymentId, amount: Money) -> Result<(), Defect> {
        let is_later = |known: &KnownRefund| {
            let back_ms = known.back_at.map_or(i64::MAX, Timestamp::ms);
            line.at.ms().saturating_sub(NEIGHBOUR_MS) <= back_ms
        };
        let first = (payment.clone(), None);
        let of_payment =
            self.known.sent_back.range(first..).take_while(|((of, _), _)| of == payment);
        let mut left = of_payment.filter(|((of, number), known)| {
            is_later(known) && !self.sent_back.contains(&(of, *number))
        });
        let same = left.clone().filter(|(_, known)| known.amount == amount);
        // What an exchange keeps is never back.
        let likeliest = same.min_by_key(|(_, known)| known.back_at.is_none());
        let Some(((of, number), _)) = likeliest else {
            // If there is one other, that is what it should be.
            return match (left.next(), left.next()) {
                (Some(((of, number), known)), None) => {
                    let differs = agree(amount, known.amount);
                    self.sent_back.insert((of, *number));
                    differs
                }
                _ => Err(Defect::UnknownRefund(payment.clone(), amount)),
            };
        };
        self.sent_back.insert((of, *number));
        self.found.matched += 1;
        Ok(())
    }

    /// A dispute is one of its payment's that is of the same amount and was not matched yet. It is heard of within an
    /// hour, so that one may stand in a report and be known only after its period: nothing is missed.
    fn dispute(
        &mut self,
        payment: &'a PaymentId,
        is_back: bool,
        amount: Money,
    ) -> Result<(), Defect> {
        let known = self.known.disputed.get(&(payment.clone(), is_back));
        let mut of_payment = known.into_iter().flatten().enumerate();
        let is_it = |(place, (known, _)): &(usize, &(Money, Timestamp))| {
            *known == amount && !self.disputed.contains(&(payment, is_back, *place))
        };
        let Some((place, _)) = of_payment.find(is_it) else {
            return Err(Defect::UnknownDispute(payment.clone(), is_back, amount));
        };
        self.disputed.insert((payment, is_back, place));
        self.found.matched += 1;
        Ok(())
    }

    /// What is known and not in the report.
    fn rest(&mut self) {
        let period = self.expected.period;
        for (payment, known) in &self.known.captured {
            if period.has_inside(known.at) && !self.captured.contains_key(payment) {
                let missing = Defect::MissingCapture(payment.clone(), known.order, known.amount);
                self.found.defects.push((None, missing));
            }
        }
        for ((payment, number), known) in &self.known.sent_back {
            // A report has a refund on the day on which it was taken, or on that on which it was back.
            let times = [Some(known.asked_at), known.back_at];
            let is_inside = times.iter().all(|at| at.is_some_and(|at| period.has_inside(at)));
            if is_inside && !self.sent_back.contains(&(payment, *number)) {
                let missing = Defect::MissingRefund(payment.clone(), known.amount);
                self.found.defects.push((None, missing));
            }
        }
    }
}

fn agree(said: Money, known: Money) -> Result<(), Defect> {
    if said.currency != known.currency {
        Err(Defect::OtherCurrency(said, known))
    } else if said.amount_minor != known.amount_minor {
        Err(Defect::OtherAmount(said, known))
    } else {
        Ok(())
    }
}
