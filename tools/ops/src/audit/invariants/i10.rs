//! I10: the log says what the orders' facts say.

use engine::domain::order::OrderState;
use engine::domain::time::Timestamp;

use super::super::facts::{Facts, OrderFact};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I10: every settled fact stands in the log once, in its order, and nothing else does; positions are dense;
/// no fact of a resolved order is unsettled `bound_seconds` after it should be settled.
#[must_use]
pub fn log_says_what_orders_say(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Finding {
    let mut finding = Finding::new(Rule::I10);
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let subject = || Subject::Order { order: order.number };
            finding.checked += u64::from(order.settled);
            let told = sale.log.get(&order.number).map_or(&[][..], Vec::as_slice);
            let settled = usize::try_from(order.settled).unwrap_or(usize::MAX);
            let expected = order.told.get(..settled);
            let is_told = expected.is_some_and(|expected| {
                let numbered = (1..).zip(expected);
                numbered.eq(told.iter().map(|(number, told)| (*number, told)))
            });
            if !is_told {
                let said: Vec<String> = told
                    .iter()
                    .map(|(number, told)| format!("{number} {}", told.kind.as_str()))
                    .collect();
                let kinds: Vec<&str> = order.told.iter().map(|told| told.kind.as_str()).collect();
                let what = format!(
                    "has settled {} of [{}] and the log says [{}]",
                    order.settled,
                    kinds.join(", "),
                    said.join(", ")
                );
                finding.add(sale, subject(), what);
            }
            if is_late(order, now, bound_seconds) {
                finding.add(sale, subject(), "has a fact that was never settled");
            }
        }
        for number in sale.log.keys().filter(|number| !sale.orders.contains_key(number)) {
            let what = "is in the log and does not exist";
            finding.add(sale, Subject::Order { order: *number }, what);
        }
    }
    for (shard, positions) in &facts.log_positions {
        let missing = (1..).zip(positions).find(|(expected, found)| expected != *found);
        if let Some((position, _)) = missing {
            let record = format!("position {position} of shard {shard} of the log");
            finding.add_stray(Subject::Record { record }, "is missing");
        }
    }
    finding
}

/// True if a fact of the order should have been settled. What is told of a cancelled order is settled at its
/// deadline, and of a pending one with what decides it.
fn is_late(order: &OrderFact, now: Timestamp, bound_seconds: u32) -> bool {
    let is_settled = usize::try_from(order.settled).is_ok_and(|n| n == order.told.len());
    if order.state == OrderState::Pending || is_settled {
        return false;
    }
    let last = order.told.last().map_or(order.changed_at, |told| told.at);
    let since = if order.state == OrderState::Cancelled { last.max(order.pay_by) } else { last };
    since.plus_seconds(bound_seconds.into()) < now
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_each, order_number, order_of, sale_of};

    #[test]
    fn i10_finds_a_log_that_says_something_else() {
        assert_each(&[
            (
                |facts| drop(sale_of(facts).log.remove(&order_number(1))),
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says []",
                ],
            ),
            (
                |facts| {
                    let told = sale_of(facts).log.get_mut(&order_number(1)).unwrap();
                    let again = told[1].clone();
                    told.push(again);
                },
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says \
                   [1 made, 2 paid, 3 refund_made, 4 refunded, 2 paid]",
                ],
            ),
            (
                |facts| {
                    let told = sale_of(facts).log.get_mut(&order_number(1)).unwrap();
                    told[1].1.amount_minor = Some(1);
                },
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says \
                   [1 made, 2 paid, 3 refund_made, 4 refunded]",
                ],
            ),
            (
                |facts| {
                    let told = sale_of(facts).log.remove(&order_number(1)).unwrap();
                    sale_of(facts).log.insert(order_number(8), told);
                },
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says []",
                    "I10 g1: order 8 is in the log and does not exist",
                ],
            ),
            (
                |facts| {
                    order_of(facts, 3).settled = 0;
                    drop(sale_of(facts).log.remove(&order_number(3)));
                },
                &["I10 g1: order 3 has a fact that was never settled"],
            ),
            (
                |facts| assert!(facts.log_positions.get_mut(&0).unwrap().remove(&2)),
                &["I10 position 2 of shard 0 of the log is missing"],
            ),
        ]);
    }
}
