//! I13: what is not this deployment's is never acted on.

use std::collections::HashSet;

use engine::domain::payment::ours::Mark;

use super::super::facts::{BookFact, Facts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I13: of a capture that carries another deployment's id, or none and the number of no order of ours, nothing is
/// recorded here, and so nothing is sent about it. Checked only where the provider's own book was read.
#[must_use]
pub fn others_are_left_alone(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I13);
    let recorded: HashSet<_> = facts.payments.iter().map(|payment| &payment.key).collect();
    for BookFact { capture, deployment, .. } in &facts.book.captured {
        let order = capture.order;
        let is_ours = match Mark::of(deployment.as_deref(), facts.book.own.as_ref()) {
            Mark::Ours => true,
            Mark::Another => false,
            Mark::None => facts.order(order).is_some() || facts.elsewhere.contains(&order),
        };
        finding.checked += 1;
        if !is_ours && recorded.contains(&capture.key) {
            let carries = deployment.as_deref().unwrap_or("no deployment's id");
            let subject = Subject::Payment { order, key: capture.key.clone() };
            let what =
                format!("of {} is another system's ({carries}) and is recorded", capture.amount);
            finding.add_stray(subject, what);
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::CaptureFact;
    use super::super::fixture::{assert_each, euros, key, order_number};
    use super::*;
    use engine::domain::basics::money::MinorUnits;

    fn capture(order: u64, payment: &str, deployment: Option<&str>) -> BookFact {
        let capture =
            CaptureFact { key: key(payment), order: order_number(order), amount: euros(70) };
        let deployment = deployment.map(str::to_owned);
        BookFact { capture, deployment, back_minor: None, pending_minor: MinorUnits::ZERO }
    }

    #[test]
    fn i13_finds_what_is_anothers_and_is_recorded() {
        assert_each(&[
            (
                |facts| {
                    facts.book.own = "prod1".parse().ok();
                    facts.book.captured = vec![
                        capture(1, "pi_1", Some("prod1")),
                        capture(4, "pi_4", None),
                        capture(48151, "pi_shop", None),
                        capture(1, "pi_stage", Some("stage")),
                    ];
                },
                &[],
            ),
            (
                |facts| {
                    facts.book.own = "prod1".parse().ok();
                    facts.book.captured =
                        vec![capture(1, "pi_1", Some("stage")), capture(9, "pi_9", None)];
                },
                &[
                    "I13 payment stripe pi_1 for order 1 of 70 EUR is another system's (stage) and is recorded",
                    "I13 payment stripe pi_9 for order 9 of 70 EUR is another system's (no deployment's id) and is recorded",
                ],
            ),
        ]);
    }
}
