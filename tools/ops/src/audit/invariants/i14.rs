//! I14: without a reference no money.

use super::super::facts::Facts;
use super::super::violation::{Rule, Subject};
use super::Finding;
use engine::domain::order::OrderState;

/// I14: no payment comes by an attempt whose step nobody can have, because its provider's name was to be written first and
/// is not there; and no order keeps what its buyer does next once nobody may pay it.
#[must_use]
pub fn nobody_pays_what_was_not_handed_out(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I14);
    for payment in &facts.payments {
        finding.checked += 1;
        let Some(attempt) = payment.attempt else { continue };
        let order = facts.order(payment.order);
        if order.is_some_and(|(_, order)| order.unhanded.contains(&attempt)) {
            let subject = Subject::Payment { order: payment.order, key: payment.key.clone() };
            let what = format!("of {} came by payment {attempt}, which nobody has", payment.amount);
            finding.add_stray(subject, what);
        }
    }
    for sale in facts.sales.values() {
        for order in sale.orders.values().filter(|order| !order.steps.is_empty()) {
            finding.checked += 1;
            if order.state != OrderState::Pending {
                let state = order.state.as_str();
                let what = format!("is {state} and keeps the steps of payments {:?}", order.steps);
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_each, order_of};

    #[test]
    fn i14_finds_money_by_what_nobody_has_and_steps_that_stay() {
        assert_each(&[
            (
                |facts| {
                    order_of(facts, 1).unhanded = vec![1];
                    facts.payments[0].attempt = Some(2);
                },
                &[],
            ),
            (
                |facts| {
                    order_of(facts, 1).unhanded = vec![2];
                    facts.payments[0].attempt = Some(2);
                    order_of(facts, 1).steps = vec![2];
                },
                &[
                    "I14 payment stripe pi_1 for order 1 of 150 EUR came by payment 2, which nobody has",
                    "I14 g1: order 1 is paid and keeps the steps of payments [2]",
                ],
            ),
        ]);
    }
}
