//! Refunds of paid orders, as the order has them: money of a payment that goes back in parts, and the tickets that go
//! with it.
//!
//! A refund is an item of its own. Its name, `<order>-r<number>`, is the idempotency key and stands in the provider's
//! metadata: amounts alone do not identify the parts of a payment that went back. The caller numbers refunds from 1
//! without a gap, so that a repeated request finds the refund that it made. The order counts its refunds, and the
//! payment sums the refunded amounts, never more than was captured.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::refund::{Refund, RefundReply, RefundState};
use super::{PaymentKey, RefundReason, TicketName};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::basics::within_order::numbered_within_order;

/// Most refunds of one order: WeChat Pay takes so many of a payment.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791883>
pub const MAX_REFUNDS: u8 = 50;

numbered_within_order!(
    /// The number of a refund within its order, from 1 to [`MAX_REFUNDS`].
    RefundNumber, MAX_REFUNDS,
    /// A number that no refund has.
    InvalidRefund, "a refund's number is from 1 to {MAX_REFUNDS}"
);

/// The name of a refund among all orders, as providers know it: `<order>-r<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefundKey {
    pub order: OrderNumber,
    /// The refund's number within it.
    pub number: RefundNumber,
}

impl fmt::Display for RefundKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-r{}", self.order, self.number)
    }
}

impl FromStr for RefundKey {
    type Err = InvalidRefund;
    fn from_str(text: &str) -> Result<Self, InvalidRefund> {
        let (order, digits) = text.split_once("-r").ok_or(InvalidRefund)?;
        let order = order.parse().map_err(|_| InvalidRefund)?;
        let number: u8 = digits.parse().map_err(|_| InvalidRefund)?;
        let key = Self { order, number: RefundNumber::try_from(number)? };
        // One text for each key: `+1` and `01` are none.
        (key.to_string() == text).then_some(key).ok_or(InvalidRefund)
    }
}

/// How many refunds an order has, and of how many the money is back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefundCounts {
    /// Refunds that were made: the highest number.
    pub made: u8,
    /// Those of which the money is back.
    pub back: u8,
}

/// Who asked for a refund.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AskedBy {
    /// The order's buyer, under the terms of the sale.
    Buyer,
    /// An operator.
    Operator,
    /// The cancellation of the whole sale.
    SaleCancelled,
    /// A dispute that was lost: its money is back already, whether anybody likes it or not. The reason is its name.
    Dispute,
    /// Another order of the buyer, which replaces the tickets. The reason is its number.
    Exchange,
    /// Nobody here: somebody has sent the money back at the provider, by hand. The reason is the provider's name of that
    /// refund.
    Outside,
}

impl AskedBy {
    /// Everybody, for tables and tests.
    pub const ALL: [Self; 6] = [
        Self::Buyer,
        Self::Operator,
        Self::SaleCancelled,
        Self::Dispute,
        Self::Exchange,
        Self::Outside,
    ];

    /// True if the money is back before the refund is made here: its provider is not asked for it.
    #[must_use]
    pub const fn is_back_before(self) -> bool {
        matches!(self, Self::Dispute | Self::Outside)
    }

    /// The text in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer",
            Self::Operator => "operator",
            Self::SaleCancelled => "sale_cancelled",
            Self::Dispute => "dispute",
            Self::Exchange => "exchange",
            Self::Outside => "outside",
        }
    }
}

/// A refund of a paid order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderRefund {
    pub key: RefundKey,
    /// The payment that it goes back of.
    pub payment: PaymentKey,
    /// The tickets that were taken back with it.
    pub tickets: Vec<TicketName>,
    pub amount: Money,
    /// What of its tickets' worth does not go back, but pays the order that they were exchanged for.
    pub kept_minor: MinorUnits,
    /// Who asked for it.
    pub asked_by: AskedBy,
    /// Why, on one line; `None` if nobody said.
    pub reason: Option<String>,
    /// Time of its making.
    pub made_at: Timestamp,
    /// How far it is.
    pub refund: Refund,
    /// How many of its names at the provider came to nothing; see [`Self::name`].
    pub ended: u8,
}

/// The name of a refund at its provider: of the refund as `<order>-r<number>`, and where that came to nothing as
/// `<order>-r<number>-<2, 3 and so on>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefundName {
    pub key: RefundKey,
    /// How many names before it came to nothing.
    pub ended: u8,
}

impl fmt::Display for RefundName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ended {
            0 => self.key.fmt(f),
            ended => write!(f, "{}-{}", self.key, u16::from(ended) + 1),
        }
    }
}

impl FromStr for RefundName {
    type Err = InvalidRefund;
    fn from_str(text: &str) -> Result<Self, InvalidRefund> {
        if let Ok(key) = text.parse() {
            return Ok(Self { key, ended: 0 });
        }
        let (key, digits) = text.rsplit_once('-').ok_or(InvalidRefund)?;
        let number: u8 = digits.parse().map_err(|_| InvalidRefund)?;
        let name = Self { key: key.parse()?, ended: number.saturating_sub(1) };
        (name.to_string() == text).then_some(name).ok_or(InvalidRefund)
    }
}

impl OrderRefund {
    /// Why its money goes back.
    #[must_use]
    pub const fn why(&self) -> RefundReason {
        match self.asked_by {
            AskedBy::Buyer
            | AskedBy::Operator
            | AskedBy::SaleCancelled
            | AskedBy::Exchange
            | AskedBy::Outside => RefundReason::Returned,
            // The money of a dispute that was won after all is sent as any other.
            AskedBy::Dispute if self.ended > 0 => RefundReason::Returned,
            AskedBy::Dispute => RefundReason::Disputed,
        }
    }

    /// The refund with its request put into the queue (again) now; what the provider has said of it stays.
    /// `None` if the money is back.
    #[must_use]
    pub fn requested(&self, now: Timestamp) -> Option<Self> {
        Some(Self { refund: self.refund.requested(now)?, ..self.clone() })
    }

    /// The refund after what the provider said of it; `None` if the money is back.
    #[must_use]
    pub fn after_reply(&self, reply: &RefundReply, now: Timestamp) -> Option<Self> {
        let refund = self.refund.after_reply(reply, now)?;
        let ended = self.ended.saturating_add(u8::from(matches!(reply, RefundReply::Ended(_))));
        Some(Self { refund, ended, ..self.clone() })
    }

    /// The refund after its provider says that its money, which was back, is not; `None` if it was not.
    #[must_use]
    pub fn undone(&self, why: &str, now: Timestamp) -> Option<Self> {
        let refund = self.refund.undone(why, now)?;
        Some(Self { refund, ended: self.ended.saturating_add(1), ..self.clone() })
    }

    /// The refund after an operator has paid it otherwise, as `how` tells; `None` if it has not failed.
    #[must_use]
    pub fn settled(&self, how: &str, now: Timestamp) -> Option<Self> {
        Some(Self { refund: self.refund.settled(how, now)?, ..self.clone() })
    }
}

impl OrderRefund {
    /// Its name at the provider, now.
    #[must_use]
    pub const fn name(&self) -> RefundName {
        RefundName { key: self.key, ended: self.ended }
    }

    /// By what its money went back that its own request did not bring: the mark of a dispute that was lost, or of a refund
    /// that somebody made by hand, which it has in place of a refusal.
    #[must_use]
    pub fn paid_otherwise(&self) -> Option<&str> {
        self.refund.refusal.as_deref().filter(|_| self.refund.state == RefundState::Refunded)
    }

    /// True if a dispute that was lost took its money, and nobody is asked for it.
    #[must_use]
    pub const fn is_taken_by_dispute(&self) -> bool {
        matches!(self.asked_by, AskedBy::Dispute) && self.ended == 0
    }

    /// The reply to a request that is not sent: what the provider has said, if it has refused this refund and no operator
    /// has it sent again since.
    #[must_use]
    pub fn held(&self) -> Option<RefundReply> {
        let refused = (self.refund.state == RefundState::Failed).then_some(&self.refund.refusal)?;
        Some(RefundReply::Refused(refused.clone().unwrap_or_default()))
    }

    /// The order for which its tickets were exchanged.
    #[must_use]
    pub fn exchanged_for(&self) -> Option<OrderNumber> {
        let reason = self.reason.as_deref().filter(|_| self.asked_by == AskedBy::Exchange);
        reason.and_then(|number| number.parse().ok())
    }

    /// What its tickets are worth: what goes back, and what the order keeps that they were exchanged for.
    #[must_use]
    pub fn worth(&self) -> Money {
        Money { amount_minor: self.amount.amount_minor + self.kept_minor, ..self.amount }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_came_to_nothing_is_followed_by_another() {
        let key: RefundKey = "7-r2".parse().unwrap();
        for (ended, text) in [(0, "7-r2"), (1, "7-r2-2"), (254, "7-r2-255")] {
            let name = RefundName { key, ended };
            assert_eq!((name.to_string(), text.parse()), (text.to_owned(), Ok(name)));
        }
        for odd in ["7-r2-1", "7-r2-0", "7-r2-02", "7-r2-256", "7-2", "7-r2-", "RMA-r2-2"] {
            assert_eq!(odd.parse::<RefundName>(), Err(InvalidRefund), "{odd}");
        }
    }
}
