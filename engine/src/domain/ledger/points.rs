//! Points and growth: what a sale gives its buyers for what they pay. Points are what a buyer may spend elsewhere,
//! growth is what a buyer's standing is reckoned by. Neither is money, and neither pays an order here.
//!
//! An award is a function of the order's facts: of the money that the order keeps. So the award is given once, replaced
//! whenever a fact changes it, and taken back by a refund, however often and in whatever order it is computed. A refund
//! that is recorded before the points were given leaves nothing to give. The store keeps the award of each order, and
//! the buyer's sum.

use std::collections::BTreeMap;

use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::number::OrderNumber;
use crate::domain::order::Order;
use crate::domain::order::fact::Fact;
use crate::domain::sale::PointsTerms;

impl PointsTerms {
    /// What is given for an amount; nothing below 0.
    #[must_use]
    pub fn of(&self, amount: MinorUnits) -> Points {
        let times = u64::try_from(amount.0).unwrap_or(0) / u64::from(self.per_minor.get());
        let given = |each: u16| times.saturating_mul(u64::from(each));
        Points { points: given(self.points), growth: given(self.growth) }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Points {
    pub points: u64,
    pub growth: u64,
}

impl Points {
    /// The sum after an order's award changes from `before` to `given`.
    #[must_use]
    pub fn replacing(self, before: Self, given: Self) -> Self {
        let sum =
            |has: u64, before: u64, given: u64| has.saturating_sub(before).saturating_add(given);
        Self {
            points: sum(self.points, before.points, given.points),
            growth: sum(self.growth, before.growth, given.growth),
        }
    }
}

/// What an order has given its buyer so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Award {
    /// Number of the order's facts, from the first, from which the award was computed.
    pub facts: u32,
    pub given: Points,
}

/// A buyer's points and growth, in total and by order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PointsStatement {
    /// The buyer's total.
    pub has: Points,
    /// The award of each order.
    pub awards: BTreeMap<OrderNumber, Award>,
}

impl Order {
    /// The money that the order keeps by its facts: the payment without its refunds.
    #[must_use]
    pub fn kept(&self) -> MinorUnits {
        self.facts.all.iter().fold(MinorUnits::ZERO, |kept, fact| fact.keeps(kept))
    }

    /// The award that all facts of the order give its buyer; `None` if the sale gives nothing, or the order was never
    /// paid. An order that fills a wallet gives nothing, because it buys nothing yet.
    #[must_use]
    pub fn award(&self) -> Option<Award> {
        let gives = !self.tops_up() && self.facts.all.iter().any(Fact::is_payment);
        let terms = self.merchant.points.filter(|_| gives)?;
        Some(Award { facts: self.facts.count(), given: terms.of(self.kept()) })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::domain::ledger::transfers::tests::order;
    use crate::domain::order::fact::FactKind;
    use crate::domain::order::fact::FactKind::{Paid, RefundDue, RefundMade, Refunded, Rescued};

    fn terms(per_minor: u32, points: u16, growth: u16) -> PointsTerms {
        PointsTerms { per_minor: NonZeroU32::new(per_minor).unwrap(), points, growth }
    }

    #[test]
    fn each_whole_amount_gives_and_nothing_gives_less_than_nothing() {
        for (amount, points, growth) in [
            (-1, 0, 0),
            (0, 0, 0),
            (99, 0, 0),
            (100, 3, 1),
            (199, 3, 1),
            (200, 6, 2),
            (
                i64::MAX,
                u64::try_from(i64::MAX).unwrap() / 100 * 3,
                u64::try_from(i64::MAX).unwrap() / 100,
            ),
        ] {
            let given = terms(100, 3, 1).of(MinorUnits(amount));
            assert_eq!(given, Points { points, growth }, "{amount}");
        }
        let most = terms(1, u16::MAX, 0).of(MinorUnits(i64::MAX));
        assert_eq!(most, Points { points: u64::MAX, growth: 0 });
    }

    #[test]
    fn an_order_gives_for_what_it_keeps() {
        let given = |told: &[(FactKind, i64)]| {
            let mut order = order(350, told);
            assert_eq!(order.award(), None);
            order.merchant.points = Some(terms(100, 1, 2));
            order.award().map(|Award { facts, given }| {
                assert_eq!(facts, order.facts.count());
                (given.points, given.growth)
            })
        };
        assert_eq!(given(&[]), None);
        assert_eq!(given(&[(Paid, 1050)]), Some((10, 20)));
        assert_eq!(given(&[(Rescued, 1050)]), Some((10, 20)));
        assert_eq!(given(&[(Paid, 1050), (RefundMade, 60)]), Some((9, 18)));
        assert_eq!(given(&[(Paid, 1050), (RefundMade, 60), (Refunded, 60)]), Some((9, 18)));
        assert_eq!(given(&[(Paid, 1050), (RefundMade, 60), (RefundMade, 990)]), Some((0, 0)));
        assert_eq!(given(&[(RefundDue, 1050), (Refunded, 1050)]), None);
    }
}
