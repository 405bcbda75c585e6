//! Records: every record is one that the engine writes, where the engine looks for it.

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject, Violation};
use super::Finding;

/// Every record is one that the engine writes, and is where the engine looks for it.
#[must_use]
pub fn records_are_readable(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::Records);
    finding.checked = facts.records;
    for unreadable in &facts.unreadable {
        finding.violations.push(Violation {
            rule: Rule::Records,
            sale: unreadable.sale.clone(),
            subject: Subject::Record { record: unreadable.record.clone() },
            what: unreadable.what.clone(),
        });
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::Unreadable;
    use super::super::fixture::{assert_each, id};

    #[test]
    fn a_record_that_cannot_be_read_is_named() {
        assert_each(&[(
            |facts| {
                facts.unreadable.push(Unreadable {
                    sale: Some(id("g1")),
                    record: "item 7/order#x of table orders".to_owned(),
                    what: "has state lost".to_owned(),
                })
            },
            &["records g1: item 7/order#x of table orders has state lost"],
        )]);
    }
}
