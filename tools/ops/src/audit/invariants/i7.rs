//! I7: nothing stays pending for too long.

use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I7: no order is pending longer than `bound_seconds` after its deadline, and each that is pending
/// will be found when its time comes.
#[must_use]
pub fn nothing_pends_too_long(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Finding {
    let mut finding = Finding::new(Rule::I7);
    for sale in facts.sales.values() {
        for order in sale.in_state(OrderState::Pending) {
            finding.checked += 1;
            if order.pay_by.plus_seconds(i64::from(bound_seconds)) < now {
                let late = now.ms_since(order.pay_by) / 1000;
                let what = format!("is pending {late} s after its deadline of {}", order.pay_by);
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
            if order.due_ms != Some(order.pay_by.ms()) {
                let what = "is pending but the index of due work does not have its deadline";
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{clean_facts, id, order_number, order_of, violations};
    use super::*;

    #[test]
    fn i7_finds_what_pends_too_long_or_would_never_be_found() {
        let mut facts = clean_facts();
        order_of(&mut facts, 2).due_ms = None;
        assert_eq!(
            violations(&facts),
            ["I7 g1: order 2 is pending but the index of due work does not have its deadline"]
        );
        let facts = clean_facts();
        let deadline = facts.sales[&id("g1")].orders[&order_number(2)].pay_by;
        let late = |seconds: i64| {
            nothing_pends_too_long(&facts, deadline.plus_seconds(seconds), 120).violations.len()
        };
        assert_eq!((late(120), late(121)), (0, 1));
    }
}
