//! What of a bill differs from what is known, as it is kept for an operator: without anybody's name or account.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BillDay, Defect};
use crate::domain::basics::ids::{PaymentId, ProviderId};
use crate::domain::basics::money::Money;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;

/// The most differences of one day that are kept; more are only counted.
pub const MAX_DIFFERENCES: u16 = 200;
/// The most characters of what is said of one.
const MAX_CHARACTERS: usize = 200;

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The line cannot be read.
    Unreadable,
    /// The bill's own sums are not those of its lines.
    WrongSum,
    /// The line, or its capture, stands in the bill before.
    Twice,
    /// The line is on another account.
    OtherMerchant,
    /// The line is of another day.
    OtherPeriod,
    /// The line is in another currency than is known.
    OtherCurrency,
    /// The line is of another amount than is known.
    OtherAmount,
    /// A capture that is not known, and cannot be decided.
    UnknownCapture,
    /// Money went back, and no order has so much left.
    UnknownRefund,
    /// A refund was paid otherwise, and the provider has sent it too.
    PaidTwice,
    /// A dispute took money, or gave it back, and is not known.
    UnknownDispute,
    /// A movement of a payment of ours that is not booked here.
    NotBooked,
    /// Bills of days that were not read: the provider keeps them no longer.
    Unread,
}

impl DifferenceKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Unreadable,
        Self::WrongSum,
        Self::Twice,
        Self::OtherMerchant,
        Self::OtherPeriod,
        Self::OtherCurrency,
        Self::OtherAmount,
        Self::UnknownCapture,
        Self::UnknownRefund,
        Self::PaidTwice,
        Self::UnknownDispute,
        Self::NotBooked,
        Self::Unread,
    ];

    /// The kind as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::WrongSum => "wrong_sum",
            Self::Twice => "twice",
            Self::OtherMerchant => "other_merchant",
            Self::OtherPeriod => "other_period",
            Self::OtherCurrency => "other_currency",
            Self::OtherAmount => "other_amount",
            Self::UnknownCapture => "unknown_capture",
            Self::UnknownRefund => "unknown_refund",
            Self::PaidTwice => "paid_twice",
            Self::UnknownDispute => "unknown_dispute",
            Self::NotBooked => "not_booked",
            Self::Unread => "unread",
        }
    }

    /// The kind of what a comparison found.
    #[must_use]
    pub const fn of(defect: &Defect) -> Self {
        match defect {
            Defect::Unreadable(_) => Self::Unreadable,
            Defect::Sum(_) => Self::WrongSum,
            Defect::Twice(_) => Self::Twice,
            Defect::OtherMerchant(_) => Self::OtherMerchant,
            Defect::OtherPeriod => Self::OtherPeriod,
            Defect::OtherCurrency(..) => Self::OtherCurrency,
            Defect::OtherAmount(..) => Self::OtherAmount,
            Defect::UnknownCapture(..) | Defect::MissingCapture(..) => Self::UnknownCapture,
            Defect::UnknownRefund(..) | Defect::MissingRefund(..) => Self::UnknownRefund,
            Defect::UnknownDispute(..) => Self::UnknownDispute,
            Defect::NotBooked(..) => Self::NotBooked,
        }
    }
}

/// Something of a bill that differs from what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Whose bill.
    pub provider: ProviderId,
    /// Of which day.
    pub day: BillDay,
    /// What differs.
    pub kind: DifferenceKind,
    /// What the line has for itself in all bills of the provider; the number of a line that cannot be read.
    pub id: String,
    /// The order that the line names.
    pub order: Option<OrderNumber>,
    /// The payment.
    pub payment: Option<PaymentId>,
    /// The amount that the bill says.
    pub amount: Option<Money>,
    /// What differs, in words: no text of the bill's but numbers and amounts.
    pub what: String,
    /// When it was found.
    pub found_at: Timestamp,
    /// What an operator has said of it; `None` while it waits for that.
    pub done: Option<String>,
}

impl Difference {
    /// The name of it, unique among all of its provider: `<day>#<kind>#<id>`, of printable ASCII.
    #[must_use]
    pub fn key(&self) -> String {
        let plain = |byte: char| if byte.is_ascii_graphic() && byte != '#' { byte } else { '_' };
        let id: String = self.id.chars().map(plain).take(MAX_CHARACTERS).collect();
        format!("{}#{}#{id}", self.day, self.kind.as_str())
    }

    /// The same with these words, as far as they are kept.
    #[must_use]
    pub fn saying(self, what: &impl fmt::Display) -> Self {
        Self { what: what.to_string().chars().take(MAX_CHARACTERS).collect(), ..self }
    }

    /// True if it says that money went back of which nobody here knows (I15).
    #[must_use]
    pub const fn is_of_what_went_back(&self) -> bool {
        matches!(self.kind, DifferenceKind::UnknownRefund | DifferenceKind::PaidTwice)
            && self.done.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_whatever_the_bill_says() {
        let difference = |id: &str| Difference {
            provider: ProviderId::new("wechat").unwrap(),
            day: BillDay(20_782),
            kind: DifferenceKind::UnknownRefund,
            id: id.to_owned(),
            order: None,
            payment: None,
            amount: None,
            what: String::new(),
            found_at: Timestamp::from_ms(0),
            done: None,
        };
        assert_eq!(difference("50 4#某").key(), "2026-11-25#unknown_refund#50_4__");
        let long = difference(&"9".repeat(5_000)).saying(&"某".repeat(5_000));
        assert!(long.key().len() < 256 && long.what.chars().count() == MAX_CHARACTERS);
    }

    #[test]
    fn a_kind_is_written_as_it_is_read() {
        for kind in DifferenceKind::ALL {
            let written = serde_json::to_string(&kind).unwrap();
            assert_eq!(written, format!("\"{}\"", kind.as_str()));
            assert_eq!(serde_json::from_str::<DifferenceKind>(&written).unwrap(), kind);
        }
    }
}
