//! I3: a buyer's count is the sum of the live orders, and within the limit; so are the people whom a
//! buyer has named.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::ids::UserId;
use engine::domain::order::attendee::AttendeeHash;

use super::super::facts::{Facts, SaleFacts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// People whom a buyer may name for each ticket that the limit allows.
const MAX_NAMED_PER_TICKET: usize = 3;

/// I3: what is counted for a buyer is the tickets of the buyer's live orders, and not more than the
/// sale's limit. Of the people whom a buyer has named, those of the live orders are some, and all are
/// three times the limit at most.
#[must_use]
pub fn counts_are_live_tickets(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I3);
    for sale in facts.sales.values() {
        let limit = i64::from(sale.sale.file().limit_per_buyer);
        let mut bought: BTreeMap<&UserId, i64> = BTreeMap::new();
        // For tickets that replace others, one for one, the limit makes room until they are paid.
        let mut replaced: BTreeMap<&UserId, i64> = BTreeMap::new();
        for order in sale.live() {
            *bought.entry(&order.user).or_default() += order.tickets();
            if order.replaces_in(sale.sale.id()) {
                *replaced.entry(&order.user).or_default() += order.tickets();
            }
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
            let limit = limit + replaced.get(user).copied().unwrap_or(0);
            if has > limit {
                finding.add(sale, subject(), format!("has {has} tickets; the limit is {limit}"));
            }
        }
        check_named(sale, &mut finding);
    }
    finding
}

fn check_named(sale: &SaleFacts, finding: &mut Finding) {
    let most = MAX_NAMED_PER_TICKET * usize::from(sale.sale.file().limit_per_buyer);
    for (user, named) in sale.named.iter().filter(|(_, named)| named.len() > most) {
        let what = format!("has named {} people; {most} may be", named.len());
        finding.add(sale, Subject::Buyer { user: user.clone() }, what);
    }
    for order in sale.live() {
        let counted = sale.named.get(&order.user);
        let people = order.lines.iter().flat_map(|line| &line.seats);
        let people = people.filter_map(|(_, hashes)| hashes.last());
        let is_missing =
            |hash: &&AttendeeHash| !counted.is_some_and(|counted| counted.contains(*hash));
        let missing = people.filter(is_missing).count();
        if missing > 0 {
            let what = format!("names {missing} people who are not counted for its buyer");
            finding.add(sale, Subject::Order { order: order.number }, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::sale::Sale;

    use super::super::fixture::{assert_each, id, order_number, order_of, person, sale_of};

    #[test]
    fn i3_finds_a_buyer_who_has_named_too_many_or_is_not_counted() {
        assert_each(&[
            (
                |facts| {
                    let named = "0123456789".chars().map(person).collect();
                    sale_of(facts).named.insert(id("bob"), named);
                },
                &["I3 g1: buyer bob has named 10 people; 9 may be"],
            ),
            (
                |facts| sale_of(facts).named.clear(),
                &["I3 g1: order 1 names 1 people who are not counted for its buyer"],
            ),
        ]);
    }

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
                    sale.redis
                        .heads
                        .get_mut(&None)
                        .unwrap()
                        .terms
                        .insert("limit".to_owned(), "2".to_owned());
                    sale.counts = [(id("alice"), 3)].into();
                    sale.redis.bought = [(id("alice"), 3)].into();
                },
                &["I3 g1: buyer alice has 3 tickets; the limit is 2"],
            ),
        ]);
    }
}
