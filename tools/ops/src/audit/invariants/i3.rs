//! I3: a buyer's count is the sum of the live orders, and within the limit.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::ids::UserId;

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I3: what is counted for a buyer is the tickets of the buyer's live orders, and not more than the
/// sale's limit.
#[must_use]
pub fn counts_are_live_tickets(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I3);
    for sale in facts.sales.values() {
        let limit = i64::from(sale.sale.file().limit_per_buyer);
        let mut bought: BTreeMap<&UserId, i64> = BTreeMap::new();
        for order in sale.live() {
            *bought.entry(&order.user).or_default() += order.tickets();
        }
        let users: BTreeSet<&UserId> = bought.keys().copied().chain(sale.counts.keys()).collect();
        finding.checked += reporting::count(users.len());
        for user in users {
            let has = bought.get(user).copied().unwrap_or(0);
            let count = sale.counts.get(user).copied().unwrap_or(0);
            let subject = || Subject::Buyer { user: user.clone() };
            if has != count {
                let what = format!("has {has} tickets in live orders but a count of {count}");
                finding.add(sale, subject(), what);
            }
            if has > limit {
                finding.add(sale, subject(), format!("has {has} tickets; the limit is {limit}"));
            }
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use engine::domain::sale::Sale;

    use super::super::fixture::{assert_each, id, order_number, order_of, sale_of};

    #[test]
    fn i3_finds_a_count_that_is_wrong_or_too_high() {
        assert_each(&[
            (
                |facts| {
                    sale_of(facts).counts.insert(id("carol"), 1);
                    sale_of(facts).redis.bought.insert(id("carol"), 1);
                },
                &["I3 g1: buyer carol has 0 tickets in live orders but a count of 1"],
            ),
            (
                |facts| {
                    sale_of(facts).counts.remove(&id("alice"));
                    sale_of(facts).redis.bought.remove(&id("alice"));
                },
                &["I3 g1: buyer alice has 2 tickets in live orders but a count of 0"],
            ),
            (
                |facts| {
                    // The count is right, and over the limit.
                    order_of(facts, 2).user = id("alice");
                    let sale = sale_of(facts);
                    sale.redis.holds.get_mut(&order_number(2)).unwrap().user = id("alice");
                    let mut file = sale.sale.file().clone();
                    file.limit_per_buyer = 2;
                    sale.sale = Sale::new(file).unwrap();
                    sale.redis.terms.insert("limit".to_owned(), "2".to_owned());
                    sale.counts = [(id("alice"), 3)].into();
                    sale.redis.bought = [(id("alice"), 3)].into();
                },
                &["I3 g1: buyer alice has 3 tickets; the limit is 2"],
            ),
        ]);
    }
}
