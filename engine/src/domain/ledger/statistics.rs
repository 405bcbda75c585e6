//! The statistics of a sale: tickets and revenue of each tier, from the settled facts of its orders.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::basics::ids::{SaleId, TierId};
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::tickets::Tickets;
use crate::domain::order::Order;
use crate::domain::order::fact::Fact;

/// What the statistics say of one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TierTotals {
    /// Tickets that are sold and live.
    pub tickets: u64,
    pub revenue_minor: MinorUnits,
}

/// What some facts add to the statistics of one tier, or take from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TierChange {
    pub tickets: i64,
    pub revenue_minor: MinorUnits,
}

/// The change of the statistics, by sale and tier, from settling the unsettled facts of these orders: sold tickets are
/// added, refunded tickets are taken off.
#[must_use]
pub fn changes<'a>(
    orders: impl IntoIterator<Item = &'a Order>,
) -> BTreeMap<(SaleId, TierId), TierChange> {
    let mut sums = BTreeMap::new();
    for order in orders {
        for (_, fact) in order.facts.unsettled() {
            add_change(&mut sums, order, fact);
        }
    }
    sums
}

/// The sum of the settled facts of these orders, by sale and tier.
#[must_use]
pub fn totals<'a>(
    orders: impl IntoIterator<Item = &'a Order>,
) -> BTreeMap<(SaleId, TierId), TierTotals> {
    let mut sums = BTreeMap::new();
    for order in orders {
        for fact in order.facts.settled() {
            add_change(&mut sums, order, fact);
        }
    }
    let total = |TierChange { tickets, revenue_minor }| {
        // An order gives back no more than it has.
        TierTotals { tickets: u64::try_from(tickets).unwrap_or(0), revenue_minor }
    };
    sums.into_iter().map(|(key, sum)| (key, total(sum))).collect()
}

fn add_change(sums: &mut BTreeMap<(SaleId, TierId), TierChange>, order: &Order, fact: &Fact) {
    let (lines, is_sale) = match fact.refund_made() {
        Some(refund) => (order.lines_of(refund), false),
        None if fact.kind.sells() => (order.lines.clone(), true),
        None => return,
    };
    for line in lines {
        let tickets = Tickets::of_seats(line.tickets.len());
        let (count, price) = (i64::from(tickets), line.price_minor * tickets);
        let sum = sums.entry((order.sale.clone(), line.tier)).or_default();
        if is_sale {
            sum.tickets += count;
            sum.revenue_minor += price;
        } else {
            sum.tickets -= count;
            sum.revenue_minor = sum.revenue_minor - price;
        }
    }
}
