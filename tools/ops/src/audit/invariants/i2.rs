//! I2: claims and live orders correspond one to one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::attendee::AttendeeHash;

use super::super::facts::{Facts, SaleFacts};
use super::super::violation::{Rule, Subject};
use super::{Finding, numbers};

/// I2: every claim is of a live order that has the seat-leg, and every seat-leg of a live order has
/// its claim; the same for attendees.
#[must_use]
pub fn claims_are_live_orders(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I2);
    for sale in facts.sales.values() {
        finding.checked += reporting::count(sale.claims.len() + sale.attendees.len());
        compare_claims(sale, &mut finding);
        compare_attendees(sale, &mut finding);
    }
    finding
}

fn compare_claims(sale: &SaleFacts, finding: &mut Finding) {
    let owned: HashSet<(SeatLeg, OrderNumber)> = sale
        .live()
        .flat_map(|order| order.seat_legs().into_iter().map(|at| (at, order.number)))
        .collect();
    let mut claimed: HashMap<&SeatLeg, Vec<OrderNumber>> = HashMap::new();
    for claim in &sale.claims {
        claimed.entry(&claim.at).or_default().push(claim.order);
        if !owned.contains(&(claim.at.clone(), claim.order)) {
            let why = why_dangling(sale, claim.order, "does not have it");
            let what = format!("is claimed by order {}, which {why}", claim.order);
            finding.add(sale, Subject::seat_leg(&sale.sale, &claim.at), what);
        }
        let is_sold_here = sale.sale.tier(&claim.at.tier).is_some_and(|tier| {
            tier.layout.sells(claim.at.seat) && claim.at.leg.0 < sale.sale.leg_count()
        });
        if !is_sold_here {
            let what = format!("is claimed by order {} but is not for sale", claim.order);
            finding.add(sale, Subject::seat_leg(&sale.sale, &claim.at), what);
        }
    }
    for (at, order) in &owned {
        let claimants = claimed.get(at).map_or(&[][..], Vec::as_slice);
        if claimants.contains(order) {
            continue;
        }
        let what = if claimants.is_empty() {
            format!("is in live order {order} but nobody claims it")
        } else {
            format!("is in live order {order} but is claimed by {}", numbers(claimants))
        };
        finding.add(sale, Subject::seat_leg(&sale.sale, at), what);
    }
}

fn compare_attendees(sale: &SaleFacts, finding: &mut Finding) {
    let mut named: BTreeMap<AttendeeHash, Vec<OrderNumber>> = BTreeMap::new();
    let claiming = sale.live().filter(|order| !order.replaces_in(sale.sale.id()));
    for order in claiming {
        for (_, hashes) in order.lines.iter().flat_map(|line| &line.seats) {
            for hash in hashes {
                named.entry(*hash).or_default().push(order.number);
            }
        }
    }
    let claimed: BTreeSet<(AttendeeHash, OrderNumber)> = sale.attendees.iter().copied().collect();
    for (attendee, order) in &claimed {
        if !named.get(attendee).is_some_and(|orders| orders.contains(order)) {
            let why = why_dangling(sale, *order, "does not name them");
            let subject = Subject::Attendee { attendee: *attendee };
            finding.add(sale, subject, format!("is claimed by order {order}, which {why}"));
        }
    }
    for (attendee, orders) in &named {
        let subject = || Subject::Attendee { attendee: *attendee };
        if orders.len() > 1 {
            let what = format!("has {} tickets: orders {}", orders.len(), numbers(orders));
            finding.add(sale, subject(), what);
        }
        for order in orders.iter().filter(|order| !claimed.contains(&(*attendee, **order))) {
            finding.add(sale, subject(), format!("is named by live order {order} without a claim"));
        }
    }
}

fn why_dangling(sale: &SaleFacts, order: OrderNumber, otherwise: &str) -> String {
    match sale.orders.get(&order) {
        None => "does not exist in this sale".to_owned(),
        Some(order) if order.is_live() => otherwise.to_owned(),
        Some(order) => format!("is {}", order.state.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::ClaimFact;
    use super::super::fixture::{assert_each, at, order_number, order_of, person, sale_of};

    #[test]
    fn i2_finds_claims_and_orders_that_do_not_meet() {
        assert_each(&[
            (
                |facts| sale_of(facts).claims[4].order = order_number(8),
                &[
                    "I2 g1: seat ga-1 of tier ga on leg 1 is claimed by order 8, which does not exist in this sale",
                    "I2 g1: seat ga-1 of tier ga on leg 1 is in live order 2 but is claimed by 8",
                ],
            ),
            (
                |facts| sale_of(facts).claims[4].order = order_number(1),
                &[
                    "I2 g1: seat ga-1 of tier ga on leg 1 is claimed by order 1, which does not have it",
                    "I2 g1: seat ga-1 of tier ga on leg 1 is in live order 2 but is claimed by 1",
                ],
            ),
            (
                |facts| sale_of(facts).attendees.clear(),
                &[
                    "I2 g1: attendee aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is named by live order 1 without a claim",
                ],
            ),
            (
                |facts| sale_of(facts).attendees.push((person('b'), order_number(3))),
                &[
                    "I2 g1: attendee bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb is claimed by order 3, which is cancelled",
                ],
            ),
            (
                |facts| order_of(facts, 1).lines[0].seats[1].1 = vec![person('a')],
                &["I2 g1: attendee aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa has 2 tickets: orders 1, 1"],
            ),
        ]);
    }

    #[test]
    fn i2_and_i4_find_a_claim_that_is_gone_or_too_many() {
        assert_each(&[
            (
                |facts| drop(sale_of(facts).claims.remove(4)),
                &[
                    "I2 g1: seat ga-1 of tier ga on leg 1 is in live order 2 but nobody claims it",
                    "I4 g1: seat ga-1 of tier ga on leg 1 is taken in Redis but nobody claims it",
                ],
            ),
            (
                |facts| {
                    let claim = ClaimFact { at: at("a", 0, 2), order: order_number(3) };
                    sale_of(facts).claims.push(claim);
                },
                &[
                    "I2 g1: seat A3 of tier a on leg 0 is claimed by order 3, which is cancelled",
                    "I4 g1: seat A3 of tier a on leg 0 is not taken in Redis but is claimed",
                ],
            ),
            (
                |facts| {
                    let claim = ClaimFact { at: at("a", 0, 3), order: order_number(1) };
                    sale_of(facts).claims.push(claim);
                },
                &[
                    "I2 g1: seat A4 of tier a on leg 0 is claimed by order 1 but is not for sale",
                    "I2 g1: seat A4 of tier a on leg 0 is claimed by order 1, which does not have it",
                ],
            ),
        ]);
    }
}
