//! What providers say they have captured, sent back, kept and paid out, held against what the engine knows.
//!
//! A provider's report of a day, its **bill**, is read into lines that look alike, whatever its layout. Two programs hold
//! them against the facts of orders ([`compare`]): the function `read-bills`, line by line, and `onsale money reconcile`,
//! which also names what the engine knows and the report leaves out.

mod compare;
mod difference;
mod known;

use std::collections::BTreeMap;
use std::fmt;

use crate::domain::basics::ids::{DeploymentId, PageMark, PaymentId, ProviderId, ProviderRefundId};
use crate::domain::basics::money::Money;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::AttemptNumber;
use crate::domain::order::order_refund::RefundName;

pub use self::compare::{Compared, Defect, Expected, FeesOf, compare, compare_lines};
pub use self::difference::{Difference, DifferenceKind, MAX_DIFFERENCES};
pub use self::known::{DAY_MS, Known, KnownCapture, KnownRefund, NEIGHBOUR_MS, Period};

/// A day of a provider's bills, counted from 1970-01-01 where the provider's days begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BillDay(pub i64);

impl BillDay {
    /// The day of a time, where days begin `ahead_ms` milliseconds before those of UTC.
    #[must_use]
    pub const fn of(at: Timestamp, ahead_ms: i64) -> Self {
        Self(at.ms().saturating_add(ahead_ms).div_euclid(DAY_MS))
    }

    /// The day that is so many days later.
    #[must_use]
    pub const fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// From its first moment to the first of the next day, where days begin `ahead_ms` before those of UTC.
    #[must_use]
    pub fn period(self, ahead_ms: i64) -> Period {
        let begins = |day: Self| Timestamp::from_ms(day.0.saturating_mul(DAY_MS) - ahead_ms);
        Period { from: begins(self), to: begins(self.plus(1)) }
    }

    /// Reads a date as it is displayed.
    #[must_use]
    pub fn read(date: &str) -> Option<Self> {
        let midnight: Timestamp = format!("{date}T00:00:00Z").parse().ok()?;
        let day = Self::of(midnight, 0);
        (day.to_string() == date).then_some(day)
    }
}

impl fmt::Display for BillDay {
    /// The date: `2026-11-25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let midnight = self.period(0).from.to_string();
        f.write_str(midnight.split('T').next().unwrap_or_default())
    }
}

/// An account whose bills are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Billed {
    /// The account.
    pub provider: ProviderId,
    /// How far its days begin before those of UTC, in milliseconds.
    pub day_ahead_ms: i64,
    /// Seconds from the end of a day until its bill can be there.
    pub ready_after_seconds: i64,
    /// The provider's name of the account, where bills say it.
    pub merchant: Option<String>,
    /// True if the provider lists the refunds of a payment; of others the bill is all that is known.
    pub lists_refunds: bool,
    /// The deployment's id, if it has one.
    pub own: Option<DeploymentId>,
}

impl Billed {
    /// True if a day that has no bill now has none because there was no trade: a whole day has passed since its bill could
    /// first be there.
    #[must_use]
    pub fn is_without(&self, day: BillDay, now: Timestamp) -> bool {
        day < self.last_day(now)
    }

    /// The last day whose bill can be there.
    #[must_use]
    pub const fn last_day(&self, now: Timestamp) -> BillDay {
        BillDay::of(now.plus_seconds(-self.ready_after_seconds), self.day_ahead_ms).plus(-1)
    }
}

/// How far the bills of an account are read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BillCursor {
    /// The first day that is not read to its end.
    pub day: BillDay,
    /// The page of its bill that is read next; `None` for the first.
    pub after: Option<PageMark>,
    /// The last line of that page that is done; 0 if none is.
    pub line: u64,
    /// Differences of that day that were kept.
    pub kept: u16,
}

impl BillCursor {
    /// A day of which nothing is read.
    #[must_use]
    pub const fn at(day: BillDay) -> Self {
        Self { day, after: None, line: 0, kept: 0 }
    }
}

/// What a provider answers that is asked for a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BillReply {
    /// It has not made the bill yet.
    NotYet,
    /// It has no bill: it has not made it yet, or there was no trade that day.
    Absent,
    /// The bill, or a page of it.
    Page(BillPage),
}

/// A bill, or a page of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BillPage {
    /// What it says.
    pub report: Report,
    /// The mark of the page behind it, if there is one.
    pub next: Option<PageMark>,
}

/// Which refund a line tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BilledRefund {
    /// A refund of an order, by the name under which it was asked for here.
    Part(RefundName),
    /// The refund of a whole payment, under its name here.
    Whole,
    /// One that was not asked for here, by the provider's name of it.
    Outside(ProviderRefundId),
}

/// A report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Lines that cannot be read, with their numbers in the file and why.
    pub unreadable: Vec<(u64, String)>,
    /// What the report itself says its lines come to, where that is something else.
    pub wrong_sums: Vec<String>,
}

/// A line of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: u64,
    /// What makes it one of a kind in all reports of its provider.
    pub id: String,
    /// Whose account it is on, if the report says that line by line.
    pub merchant: Option<String>,
    /// The deployment's id that the payment carries.
    pub deployment: Option<String>,
    /// When it happened.
    pub at: Timestamp,
    /// What moved.
    pub moved: Moved,
    /// What the provider kept for it, in the currency that it settles in; below nothing if it gave something back.
    pub fee: Money,
}

/// The order that a line names, with the attempt by which it was paid if the line says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The order.
    pub order: OrderNumber,
    /// The attempt.
    pub attempt: Option<AttemptNumber>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// Money was taken.
    Captured {
        /// The provider's name of it.
        payment: PaymentId,
        /// The order that it names.
        order: Option<Named>,
        /// How much.
        amount: Money,
    },
    /// Money of a payment went back.
    SentBack {
        /// The provider's name of the payment.
        payment: PaymentId,
        /// The order that it names.
        order: Option<Named>,
        /// How much, above nothing.
        amount: Money,
        /// Which refund it is, if the line says it.
        refund: Option<BilledRefund>,
    },
    /// Money went to the bank.
    PaidOut {
        /// The provider's name of it.
        payout: String,
        /// True if it came back.
        is_back: bool,
        /// How much, above nothing.
        amount: Money,
    },
    /// The provider kept this for something that is no payment of a buyer; below nothing if it gave it back.
    Kept {
        /// How much.
        amount: Money,
    },
    /// Money of a payment was taken away by a dispute.
    Disputed {
        /// The provider's name of the payment.
        payment: PaymentId,
        /// The order that it names.
        order: Option<Named>,
        /// True if it came back.
        is_back: bool,
        /// How much, above nothing.
        amount: Money,
    },
    /// Something that is not booked here, in the provider's words.
    Other {
        /// What.
        what: String,
        /// How much.
        amount: Money,
    },
}

impl Moved {
    /// How much moved.
    #[must_use]
    pub const fn amount(&self) -> Money {
        match self {
            Self::Captured { amount, .. }
            | Self::SentBack { amount, .. }
            | Self::Disputed { amount, .. }
            | Self::PaidOut { amount, .. }
            | Self::Kept { amount }
            | Self::Other { amount, .. } => *amount,
        }
    }

    /// The payment that it speaks of, and the order that it names with it.
    #[must_use]
    pub const fn payment(&self) -> Option<(&PaymentId, Option<Named>)> {
        match self {
            Self::Captured { payment, order, .. }
            | Self::SentBack { payment, order, .. }
            | Self::Disputed { payment, order, .. } => Some((payment, *order)),
            Self::PaidOut { .. } | Self::Kept { .. } | Self::Other { .. } => None,
        }
    }
}

impl Report {
    /// Takes out the lines that stand in the report before: their numbers, each with that of the first.
    pub fn take_doubled(&mut self) -> Vec<(u64, u64)> {
        let mut first: BTreeMap<String, u64> = BTreeMap::new();
        let mut doubled = Vec::new();
        self.lines.retain(|line| match first.get(&line.id) {
            Some(earlier) => {
                doubled.push((line.number, *earlier));
                false
            }
            None => {
                first.insert(line.id.clone(), line.number);
                true
            }
        });
        doubled
    }
}

impl Named {
    /// What a merchant's number of a payment names, with the deployment's id that it carries:
    /// `<deployment>-<order>-<attempt>`, the same with `_`, without the first part, or an order alone.
    #[must_use]
    pub fn read(number: &str) -> (Option<Self>, Option<String>) {
        let parts: Vec<&str> = number.split(['-', '_']).collect();
        let (deployment, order, attempt) = match parts[..] {
            [deployment, order, attempt] => (Some(deployment.to_owned()), order, attempt),
            [order, attempt] => (None, order, attempt),
            _ => (None, number, ""),
        };
        let named = order.parse().ok().map(|order| Self { order, attempt: attempt.parse().ok() });
        (named, deployment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_the_providers_own() {
        const BEIJING: i64 = 8 * 60 * 60 * 1000;
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let day = BillDay::of(at("2026-11-25T16:00:00Z"), BEIJING);
        assert_eq!(day.to_string(), "2026-11-26");
        assert_eq!(BillDay::of(at("2026-11-25T15:59:59Z"), BEIJING), day.plus(-1));
        let Period { from, to } = day.period(BEIJING);
        assert_eq!((from, to), (at("2026-11-25T16:00:00Z"), at("2026-11-26T16:00:00Z")));
        assert_eq!(BillDay::read("2026-11-26"), Some(day));
        for odd in ["2026-11-31", "26-11-26", "2026-11-26T00:00:00Z", ""] {
            assert_eq!(BillDay::read(odd), None, "{odd}");
        }
        let billed = Billed {
            provider: ProviderId::new("wechat").unwrap(),
            day_ahead_ms: BEIJING,
            ready_after_seconds: 10 * 60 * 60,
            merchant: None,
            lists_refunds: false,
            own: None,
        };
        assert_eq!(billed.last_day(at("2026-11-27T01:59:59Z")), day.plus(-1));
        assert_eq!(billed.last_day(at("2026-11-27T02:00:00Z")), day);
    }
}
