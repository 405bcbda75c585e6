//! I7: nothing stays pending for too long.

use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject};
use super::Finding;

/// Most seconds past the end of its payment window to which an order is extended: a place is given out at most 120 s ahead,
/// to an order that may still be paid, and leaves its buyer 120 s more.
const MAX_EXTENSION_SECONDS: i64 = 240;

/// I7: no order is pending longer than `bound_seconds` after its deadline, which lies at most `MAX_EXTENSION_SECONDS` past
/// its payment window, and each that is pending will be found when its time comes.
#[must_use]
pub fn nothing_pends_too_long(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Finding {
    let mut finding = Finding::new(Rule::I7);
    for sale in facts.sales.values() {
        for order in sale.in_state(OrderState::Pending) {
            finding.checked += 1;
            let deadline = order.payable_until();
            if deadline.plus_seconds(i64::from(bound_seconds)) < now {
                let late = now.ms_since(deadline) / 1000;
                let what = format!("is pending {late} s after its deadline of {deadline}");
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
            if order.due_ms != Some(deadline.ms()) {
                let what = "is pending but the index of due work does not have its deadline";
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
        for order in sale.orders.values() {
            let Some(extended_to) = order.extended_to else { continue };
            let by = extended_to.ms_since(order.pay_by);
            if by > MAX_EXTENSION_SECONDS * 1000 {
                let what = format!("is extended {} s past its payment window", by / 1000);
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

    #[test]
    fn i7_counts_from_the_later_deadline_and_bounds_how_much_later_it_is() {
        let mut facts = clean_facts();
        let extended = |facts: &mut Facts, seconds: i64| {
            let order = order_of(facts, 2);
            let extended_to = order.pay_by.plus_seconds(seconds);
            (order.extended_to, order.due_ms) = (Some(extended_to), Some(extended_to.ms()));
            extended_to
        };
        let deadline = extended(&mut facts, 240);
        let late = |facts: &Facts, seconds: i64| {
            nothing_pends_too_long(facts, deadline.plus_seconds(seconds), 120).violations.len()
        };
        assert_eq!((late(&facts, 120), late(&facts, 121)), (0, 1));
        extended(&mut facts, 241);
        assert_eq!(
            violations(&facts),
            ["I7 g1: order 2 is extended 241 s past its payment window"]
        );
        let order = order_of(&mut facts, 2);
        (order.extended_to, order.due_ms) = (Some(deadline), Some(order.pay_by.ms()));
        assert_eq!(
            violations(&facts),
            ["I7 g1: order 2 is pending but the index of due work does not have its deadline"]
        );
    }
}
