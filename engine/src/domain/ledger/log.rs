//! The log: the facts of all orders, in the order in which they were settled.
//!
//! The whole deployment has a few shards. An order is always in the same shard, so its facts stand in their order. The
//! positions in a shard are consecutive, so a reader who has read to a position has missed no record. A record has the
//! facts of one sale that one transaction settled.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::{Transfer, transfers};
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::money::Money;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::HeldLine;
use crate::domain::order::Order;
use crate::domain::order::fact::Fact;
use crate::domain::order::order_refund::RefundNumber;

/// Number of shards: as many transactions can append to the log concurrently.
pub const LOG_SHARDS: u8 = 4;

/// A shard of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogShard(u8);

impl LogShard {
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LOG_SHARDS).map(Self)
    }

    /// The shard of an order: the low bits of its number's counter, so that the orders of one moment spread
    /// over all.
    #[must_use]
    pub fn of(order: OrderNumber) -> Self {
        Self(u8::try_from((order.get() >> 10) % u64::from(LOG_SHARDS)).unwrap_or(0))
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A place in the log: the records of a shard have the positions 1, 2, 3, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    pub shard: LogShard,
    /// The position in it.
    pub number: u64,
}

/// The facts of one order that were settled together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Told {
    pub order: OrderNumber,
    pub total: Money,
    /// The seats with which the order was made.
    pub lines: Vec<HeldLine>,
    /// For each refund that the facts speak of, the seats of its tickets.
    pub returned: BTreeMap<RefundNumber, Vec<HeldLine>>,
    /// The facts, each with its number within the order.
    pub facts: Vec<(NonZeroU32, Fact)>,
}

impl Told {
    /// The unsettled facts of an order, with the seats that they speak of.
    #[must_use]
    pub fn of(order: &Order) -> Self {
        Self::with(
            order,
            order.facts.unsettled().map(|(number, fact)| (number, fact.clone())).collect(),
        )
    }

    /// Settled facts of an order, as the log had them when they were settled.
    #[must_use]
    pub fn again(order: &Order, from: NonZeroU32, to: NonZeroU32) -> Self {
        let numbers = (1..=u32::MAX).filter_map(NonZeroU32::new);
        let numbered = numbers.zip(order.facts.settled());
        let facts = numbered.filter(|(number, _)| (from..=to).contains(number));
        Self::with(order, facts.map(|(number, fact)| (number, fact.clone())).collect())
    }

    fn with(order: &Order, facts: Vec<(NonZeroU32, Fact)>) -> Self {
        let refunds = facts.iter().filter_map(|(_, fact)| fact.refund());
        Self {
            order: order.number,
            total: order.total,
            lines: order.all_lines(),
            returned: refunds.map(|refund| (refund, order.seats_of(refund))).collect(),
            facts,
        }
    }

    /// The seats that a fact speaks of: those of its refund, or else all of the order's.
    #[must_use]
    pub fn lines_of(&self, fact: &Fact) -> &[HeldLine] {
        match fact.refund() {
            Some(refund) => self.returned.get(&refund).map_or(&[], Vec::as_slice),
            None => &self.lines,
        }
    }
}

/// The facts of one sale that one transaction settled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogRecord {
    pub sale: SaleId,
    /// When it was settled.
    pub at: Timestamp,
    /// The orders and their facts.
    pub told: Vec<Told>,
    /// The transfers of those facts, booked in the same transaction.
    pub transfers: Vec<Transfer>,
}

/// A record and its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedRecord {
    pub place: LogPosition,
    pub record: LogRecord,
}

/// The records that settling the rest of these orders' facts makes: one for each sale.
#[must_use]
pub fn records<'a>(orders: impl IntoIterator<Item = &'a Order>, now: Timestamp) -> Vec<LogRecord> {
    let mut by_sale: BTreeMap<&SaleId, Vec<&Order>> = BTreeMap::new();
    for order in orders {
        by_sale.entry(&order.sale).or_default().push(order);
    }
    let record = |(sale, orders): (&SaleId, Vec<&Order>)| LogRecord {
        sale: sale.clone(),
        at: now,
        told: orders.iter().map(|order| Told::of(order)).collect(),
        transfers: transfers(orders),
    };
    by_sale.into_iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::basics::ids::UserId;

    #[test]
    fn orders_of_one_moment_spread_over_every_shard() {
        let user = UserId::new("7").unwrap();
        let mint = crate::domain::basics::number::Mint::new(0);
        let now = Timestamp::from_ms(1_800_000_000_000);
        let shards: BTreeSet<LogShard> =
            (0..16).map(|_| LogShard::of(mint.mint(now, &user))).collect();
        assert_eq!(shards, LogShard::all().collect());
    }
}
