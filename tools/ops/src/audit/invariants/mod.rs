//! The invariants, one file each: from facts to what breaks them. Nothing is read or written
//! here, and what time it is is an argument.

mod attempts;
mod exchanges;
mod i1;
mod i10;
mod i11;
mod i12;
mod i13;
mod i14;
mod i15;
mod i2;
mod i3;
mod i4;
mod i5;
mod i6;
mod i7;
mod i8;
mod i9;
mod ledger;
mod points;
mod records;
mod rooms;
mod tokens;
mod trains;
mod wallets;

#[cfg(test)]
mod fixture;

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use serde::Serialize;

use super::facts::{Facts, SaleFacts};
use super::violation::{Rule, Subject, Violation};

pub use self::attempts::attempts_are_closed;
pub use self::i1::one_live_order_a_seat_leg;
pub use self::i2::claims_are_live_orders;
pub use self::i3::counts_are_live_tickets;
pub use self::i4::redis_equals_dynamodb;
pub use self::i5::payments_are_decided_once;
pub use self::i6::counters_are_sums;
pub use self::i7::nothing_pends_too_long;
pub use self::i8::accounts_are_their_transfers;
pub use self::i9::balances_are_within_limits;
pub use self::i10::log_says_what_orders_say;
pub use self::i11::refunds_are_of_orders;
pub use self::i12::tickets_are_listed_and_checked_in_once;
pub use self::i13::others_are_left_alone;
pub use self::i14::nobody_pays_what_was_not_handed_out;
pub use self::i15::what_went_back_is_known;
pub use self::ledger::acknowledged_orders_exist;
pub use self::records::records_are_readable;
pub use self::rooms::rooms_follow_their_log;
pub use self::tokens::orders_were_admitted;
pub use self::trains::trains_are_found;

/// Result of checking one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that was checked.
    pub rule: Rule,
    /// Number of things that were held against it, in the rule's unit.
    pub checked: u64,
    /// Its violations.
    pub violations: Vec<Violation>,
}

impl Finding {
    fn new(rule: Rule) -> Self {
        Self { rule, checked: 0, violations: Vec::new() }
    }

    fn add(&mut self, sale: &SaleFacts, subject: Subject, what: impl Into<String>) {
        let (rule, sale) = (self.rule, Some(sale.sale.id().clone()));
        self.violations.push(Violation { rule, sale, subject, what: what.into() });
    }

    fn add_stray(&mut self, subject: Subject, what: impl Into<String>) {
        let rule = self.rule;
        self.violations.push(Violation { rule, sale: None, subject, what: what.into() });
    }
}

/// Checks everything. `bound_seconds` is how long after its deadline an order may still be pending.
#[must_use]
pub fn check(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Vec<Finding> {
    let mut findings = vec![
        one_live_order_a_seat_leg(facts),
        claims_are_live_orders(facts),
        counts_are_live_tickets(facts),
        redis_equals_dynamodb(facts),
        payments_are_decided_once(facts),
        counters_are_sums(facts),
        nothing_pends_too_long(facts, now, bound_seconds),
        accounts_are_their_transfers(facts),
        balances_are_within_limits(facts),
        log_says_what_orders_say(facts, now, bound_seconds),
        refunds_are_of_orders(facts),
        tickets_are_listed_and_checked_in_once(facts),
        others_are_left_alone(facts),
        nobody_pays_what_was_not_handed_out(facts),
        what_went_back_is_known(facts),
        attempts_are_closed(facts, now, bound_seconds),
        orders_were_admitted(facts),
        trains_are_found(facts),
        rooms_follow_their_log(facts, now),
    ];
    findings.extend(acknowledged_orders_exist(facts));
    findings.push(records_are_readable(facts));
    for finding in &mut findings {
        finding.violations.sort();
    }
    findings
}

/// Order numbers in order, so that the same facts are reported in the same words.
fn numbers(orders: &[OrderNumber]) -> String {
    let mut orders = orders.to_vec();
    orders.sort();
    let texts: Vec<String> = orders.iter().map(OrderNumber::to_string).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::check;
    use super::fixture::{NOW, clean_facts, violations};

    #[test]
    fn consistent_facts_are_clean_and_were_looked_at() {
        let findings = check(&clean_facts(), NOW, 120);
        let checked: Vec<(&str, u64)> =
            findings.iter().map(|finding| (finding.rule.name(), finding.checked)).collect();
        assert_eq!(violations(&clean_facts()), [""; 0]);
        // I4: the terms, 2 × 2 × (8 + 8) bits, a hold, a deadline, three buyers.
        assert_eq!(
            checked,
            [
                ("I1", 5),
                ("I2", 6),
                ("I3", 3),
                ("I4", 1 + 64 + 1 + 1 + 3),
                ("I5", 7),
                ("I6", 1),
                ("I7", 1),
                ("I8", 4),
                ("I9", 4),
                ("I10", 7),
                ("I11", 1),
                // A ticket that was used, one that was issued anew, one that was refunded, and a second door.
                ("I12", 4),
                ("I13", 0),
                ("I14", 3),
                ("I15", 0),
                ("attempts", 4),
                ("tokens", 4),
                ("trains", 2),
                ("rooms", 0),
                ("ledger", 4),
                ("records", 0)
            ]
        );
    }
}
