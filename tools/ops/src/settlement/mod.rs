//! What providers say they have captured, sent back, kept and paid out, held against what the engine knows.
//!
//! A report is read from the provider's own file (`stripe`, `wechat`, `alipay`) into lines that look alike,
//! and compared with the facts of the log (`known`): each line is matched, or named with what is wrong with it; so
//! is what the engine knows and the report leaves out ([`compare`]).

mod alipay;
mod amount;
mod compare;
mod known;
mod stripe;
mod table;
mod wechat;

use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::Money;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::AttemptNumber;

pub use self::compare::{Compared, Defect, Expected, FeesOf, compare};
pub use self::known::{DAY_MS, Known, KnownCapture, KnownRefund, NEIGHBOUR_MS, Period};

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

impl Named {
    /// What a merchant's number of a payment names, with the deployment's id that it carries:
    /// `<deployment>-<order>-<attempt>`, the same with `_`, without the first part, or an order alone.
    fn read(number: &str) -> (Option<Self>, Option<String>) {
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
