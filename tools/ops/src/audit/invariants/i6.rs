//! I6: the statistics are the sums of the paid orders.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::ids::TierId;
use engine::domain::order::OrderState;

use super::super::facts::{CounterFact, Facts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I6: every paid order is counted, and each tier's counter is the sum of their tickets, without those of
/// refunds that are settled.
#[must_use]
pub fn counters_are_sums(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I6);
    for sale in facts.sales.values() {
        let mut sums: BTreeMap<&TierId, CounterFact> = BTreeMap::new();
        for order in sale.orders.values() {
            let is_paid = order.state == OrderState::Paid;
            if !is_paid && (order.refunds == 0 || !order.is_counted()) {
                continue;
            }
            finding.checked += u64::from(is_paid);
            if !order.is_counted() {
                let subject = Subject::Order { order: order.number };
                finding.add(sale, subject, "is paid but not counted");
            }
            let taken_off = order.settled_refunds();
            for line in &order.lines {
                let still = line.refunded.iter().filter(|(_, refund)| !taken_off.contains(refund));
                let sum = sums.entry(&line.tier).or_default();
                sum.tickets += line.tickets();
                sum.revenue_minor += line.total_minor();
                for _ in still {
                    sum.tickets += 1;
                    sum.revenue_minor += line.price_minor;
                }
            }
        }
        for order in sale.orders.values().filter(|order| order.is_counted()) {
            if matches!(
                order.state,
                OrderState::Pending | OrderState::Cancelled | OrderState::Expired
            ) {
                let what = format!("is counted but {}", order.state.as_str());
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
        let tiers: BTreeSet<&TierId> = sums.keys().copied().chain(sale.counters.keys()).collect();
        for tier in tiers {
            let sum = sums.get(tier).copied().unwrap_or_default();
            let counter = sale.counters.get(tier).copied().unwrap_or_default();
            if sum != counter {
                let what = format!(
                    "counts {} tickets for {} but its paid orders are {} for {}",
                    counter.tickets, counter.revenue_minor, sum.tickets, sum.revenue_minor
                );
                finding.add(sale, Subject::Tier { tier: tier.clone() }, what);
            }
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use engine::domain::basics::money::MinorUnits;

    use engine::domain::order::fact::FactKind;

    use super::super::fixture::{assert_each, id, order_number, order_of, sale_of};
    use super::*;

    #[test]
    fn i6_finds_sums_that_are_wrong() {
        assert_each(&[
            (
                |facts| {
                    order_of(facts, 1).settled = 1;
                    sale_of(facts).log.get_mut(&order_number(1)).unwrap().truncate(1);
                },
                &[
                    "I6 g1: order 1 is paid but not counted",
                    "I6 g1: tier a counts 2 tickets for 100 but its paid orders are 3 for 150",
                    "I10 g1: order 1 has a fact that was never settled",
                    "I10 g1: the sale has 143 EUR booked from provider:stripe to merchant:opera:g1 as sale, and its orders tell 0",
                    "I10 g1: the sale has 2 EUR booked from fees to owed as commission_back, and its orders tell 0",
                    "I10 g1: the sale has 48 EUR booked from merchant:opera:g1 to owed as refund, and its orders tell 0",
                    "I10 g1: the sale has 50 EUR booked from owed to provider:stripe as sent_back, and its orders tell 0",
                    "I10 g1: the sale has 7 EUR booked from provider:stripe to fees as commission, and its orders tell 0",
                ],
            ),
            (
                |facts| {
                    order_of(facts, 3).told[0].kind = FactKind::Paid;
                    let told = sale_of(facts).log.get_mut(&order_number(3)).unwrap();
                    told[0].1.kind = FactKind::Paid;
                },
                &["I6 g1: order 3 is counted but cancelled"],
            ),
            (
                |facts| sale_of(facts).counters.clear(),
                &["I6 g1: tier a counts 0 tickets for 0 but its paid orders are 2 for 100"],
            ),
            (
                |facts| {
                    sale_of(facts).counters.get_mut(&id("a")).unwrap().revenue_minor +=
                        MinorUnits(1);
                    let counter = CounterFact { tickets: 1, revenue_minor: MinorUnits::ZERO };
                    sale_of(facts).counters.insert(id("ga"), counter);
                },
                &[
                    "I6 g1: tier a counts 2 tickets for 101 but its paid orders are 2 for 100",
                    "I6 g1: tier ga counts 1 tickets for 0 but its paid orders are 0 for 0",
                ],
            ),
        ]);
    }
}
