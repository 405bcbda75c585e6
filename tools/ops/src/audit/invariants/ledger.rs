//! The ledger: every order that was acknowledged to its buyer is there.

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject};
use super::Finding;

/// With a ledger: every order that was acknowledged is there, with what it bought.
#[must_use]
pub fn acknowledged_orders_exist(facts: &Facts) -> Option<Finding> {
    let ledger = facts.ledger.as_ref()?;
    let mut finding = Finding::new(Rule::Ledger);
    for number in &ledger.acknowledged {
        finding.checked += 1;
        let subject = Subject::Order { order: *number };
        match facts.order(*number) {
            None => finding.add_stray(subject, "was acknowledged but does not exist"),
            Some((sale, order)) if order.lines.is_empty() => {
                if let Some(sale) = facts.sales.get(sale) {
                    finding.add(sale, subject, "was acknowledged but is a tombstone");
                }
            }
            Some(_) => {}
        }
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_each, clean_facts, order_number, order_of, violations};

    #[test]
    fn what_was_acknowledged_is_there() {
        assert_each(&[
            (
                |facts| facts.ledger.as_mut().unwrap().acknowledged.push(order_number(8)),
                &["ledger order 8 was acknowledged but does not exist"],
            ),
            (
                |facts| order_of(facts, 3).lines.clear(),
                &["ledger g1: order 3 was acknowledged but is a tombstone"],
            ),
        ]);
    }

    #[test]
    fn a_ledger_of_several_sales_is_held_only_to_the_one_that_is_audited() {
        let mut facts = clean_facts();
        let mut ledger = facts.ledger.take().unwrap();
        facts.elsewhere.insert(order_number(77));
        ledger.acknowledged.push(order_number(77));
        facts.add_ledger(ledger);
        assert_eq!(violations(&facts), [""; 0]);
    }
}
