//! I1: every seat-leg has at most one live order.

use std::collections::{HashMap, HashSet};

use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::SeatLeg;

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject};
use super::{Finding, numbers};

/// I1: every seat-leg has at most one live order, by the lines of the orders and by the claims.
#[must_use]
pub fn one_live_order_a_seat_leg(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I1);
    for sale in facts.sales.values() {
        let mut owners: HashMap<SeatLeg, Vec<OrderNumber>> = HashMap::new();
        for order in sale.live() {
            for at in order.seat_legs() {
                owners.entry(at).or_default().push(order.number);
            }
        }
        let mut claimants: HashMap<SeatLeg, Vec<OrderNumber>> = HashMap::new();
        for claim in &sale.claims {
            claimants.entry(claim.at.clone()).or_default().push(claim.order);
        }
        let seat_legs: HashSet<&SeatLeg> = owners.keys().chain(claimants.keys()).collect();
        finding.checked += reporting::count(seat_legs.len());
        for (at, orders) in owners.iter().filter(|(_, orders)| orders.len() > 1) {
            let what = format!("is in live orders {}", numbers(orders));
            finding.add(sale, Subject::seat_leg(&sale.sale, at), what);
        }
        for (at, orders) in claimants.iter().filter(|(_, orders)| orders.len() > 1) {
            let what = format!("is claimed by orders {}", numbers(orders));
            finding.add(sale, Subject::seat_leg(&sale.sale, at), what);
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use engine::domain::basics::ids::{Legs, Seat};
    use engine::domain::order::OrderState;

    use super::super::super::facts::{ClaimFact, HeldFact, HoldFact, OrderFact};
    use super::super::fixture::{assert_each, at, clean_facts, id, order, order_number, sale_of};

    #[test]
    fn i1_finds_a_seat_leg_that_two_have() {
        assert_each(&[
            (
                |facts| {
                    // As if a second order had been let through, claims and counts and all.
                    let second = order(5, "dora", OrderState::Pending, "a", (1, 2), &[1]);
                    let sale = sale_of(facts);
                    sale.claims.push(ClaimFact { at: at("a", 1, 1), order: second.number });
                    sale.counts.insert(id("dora"), 1);
                    sale.redis.bought.insert(id("dora"), 1);
                    let hold = HoldFact {
                        user: second.user.clone(),
                        lines: vec![HeldFact {
                            tier: id("a"),
                            legs: Legs::new(1, 2).unwrap(),
                            seats: vec![Seat(1)],
                        }],
                        ..sale.redis.holds[&order_number(2)].clone()
                    };
                    sale.redis.due_ms.insert(second.number, second.pay_by.ms());
                    sale.redis.holds.insert(second.number, hold);
                    let due_ms = Some(second.pay_by.ms());
                    sale.orders.insert(second.number, OrderFact { due_ms, ..second });
                },
                &[
                    "I1 g1: seat A2 of tier a on leg 1 is claimed by orders 1, 5",
                    "I1 g1: seat A2 of tier a on leg 1 is in live orders 1, 5",
                ],
            ),
            (
                |facts| {
                    sale_of(facts).claims.push(clean_facts().sales[&id("g1")].claims[0].clone())
                },
                &["I1 g1: seat A1 of tier a on leg 0 is claimed by orders 1, 1"],
            ),
        ]);
    }
}
