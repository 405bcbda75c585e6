//! I5: every captured payment is decided exactly once.

use std::collections::HashMap;

use engine::domain::basics::number::OrderNumber;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{OrderState, PaymentKey};
use engine::domain::payment::ours::Mark;

use super::super::facts::{BookFact, CaptureFact, Facts, OrderFact, PaymentFact, SaleFacts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I5: an accepted payment is the one that paid its order, and does not go back; any other has its
/// refund request; the order that waits for the money is refunded exactly when it is back; a paid
/// order has exactly one accepted payment; what was captured is known.
#[must_use]
pub fn payments_are_decided_once(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I5);
    let mut of_order: HashMap<OrderNumber, Vec<&PaymentFact>> = HashMap::new();
    for payment in &facts.payments {
        finding.checked += 1;
        of_order.entry(payment.order).or_default().push(payment);
        check_payment(facts, payment, &mut finding);
    }
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let payments = of_order.get(&order.number).map_or(&[][..], Vec::as_slice);
            check_money_of(sale, order, payments, &mut finding);
        }
    }
    let ledger = facts.ledger.iter().flat_map(|ledger| &ledger.captured);
    for capture in ledger {
        finding.checked += 1;
        let payments = of_order.get(&capture.order).map_or(&[][..], Vec::as_slice);
        check_capture(facts, capture, payments, &mut finding);
    }
    for BookFact { capture, deployment, .. } in &facts.book.captured {
        // Captures of others are checked by I13.
        if Mark::of(deployment.as_deref(), facts.book.own.as_ref()) != Mark::Ours {
            continue;
        }
        finding.checked += 1;
        let payments = of_order.get(&capture.order).map_or(&[][..], Vec::as_slice);
        let is_decided = payments.iter().any(|payment| payment.key == capture.key);
        // One whose order is there may be on its way: expiry asks the provider for it.
        let has_order =
            facts.order(capture.order).is_some() || facts.elsewhere.contains(&capture.order);
        if !is_decided && !has_order {
            let what = format!(
                "of {} stands in the provider's book, and neither its order nor a decision is there",
                capture.amount
            );
            finding.add_stray(payment_subject(capture.order, &capture.key), what);
        }
    }
    finding
}

fn payment_subject(order: OrderNumber, key: &PaymentKey) -> Subject {
    Subject::Payment { order, key: key.clone() }
}

/// True if the refund of a payment is under way, or over, or an operator's.
fn is_requested(payment: &PaymentFact) -> bool {
    match payment.refund {
        None | Some(RefundState::Due) => false,
        Some(
            RefundState::Requested
            | RefundState::Pending
            | RefundState::Failed
            | RefundState::Refunded
            | RefundState::Unmatched
            | RefundState::Explained
            | RefundState::Outside
            | RefundState::FailedLater
            | RefundState::Settled,
        ) => true,
    }
}

fn check_payment(facts: &Facts, payment: &PaymentFact, finding: &mut Finding) {
    let subject = || payment_subject(payment.order, &payment.key);
    let Some((sale, order)) = facts.order(payment.order) else {
        if payment.accepted {
            finding.add_stray(subject(), "was accepted but its order does not exist");
        } else if !is_requested(payment) {
            finding.add_stray(subject(), "is to be refunded but no refund was requested");
        }
        return;
    };
    let Some(sale) = facts.sales.get(sale) else { return };
    let decides = order.payment.as_ref() == Some(&payment.key);
    if payment.accepted {
        match order.state {
            OrderState::Paid | OrderState::RefundDue | OrderState::Refunded if decides => {}
            OrderState::Paid | OrderState::RefundDue | OrderState::Refunded => {
                finding.add(sale, subject(), "was accepted but did not pay its order");
            }
            OrderState::Pending | OrderState::Cancelled | OrderState::Expired => {
                let what = format!("was accepted but its order is {}", order.state.as_str());
                finding.add(sale, subject(), what);
            }
        }
        if payment.amount != order.total {
            let what = format!("of {} was accepted for {}", payment.amount, order.total);
            finding.add(sale, subject(), what);
        }
        if payment.refund.is_some() {
            finding.add(sale, subject(), "was accepted and yet goes back");
        }
    } else {
        if !is_requested(payment) {
            finding.add(sale, subject(), "is to be refunded but no refund was requested");
        }
        if decides && order.state == OrderState::Paid {
            finding.add(sale, subject(), "is refunded and yet paid its order");
        }
        // The order that waits for this money is refunded with it, in one transaction.
        let is_back = matches!(payment.refund, Some(RefundState::Refunded | RefundState::Settled));
        let waits = order.state == OrderState::RefundDue;
        let has_it = order.state == OrderState::Refunded;
        if decides && ((is_back && waits) || (!is_back && has_it)) {
            let refund = payment.refund.map_or("not due", RefundState::as_str);
            let what = format!("is {refund} but its order is {}", order.state.as_str());
            finding.add(sale, subject(), what);
        }
    }
}

fn check_money_of(
    sale: &SaleFacts,
    order: &OrderFact,
    payments: &[&PaymentFact],
    finding: &mut Finding,
) {
    let subject = || Subject::Order { order: order.number };
    match order.state {
        OrderState::Paid => {
            finding.checked += 1;
            let accepted = payments.iter().filter(|payment| payment.accepted).count();
            if accepted != 1 {
                let what = format!("is paid but has {accepted} accepted payments");
                finding.add(sale, subject(), what);
            }
        }
        OrderState::RefundDue | OrderState::Refunded => {
            finding.checked += 1;
            let has = |key: &PaymentKey| payments.iter().any(|payment| payment.key == *key);
            if !order.payment.as_ref().is_some_and(has) {
                let what = format!("is {} but its payment is not there", order.state.as_str());
                finding.add(sale, subject(), what);
            }
        }
        OrderState::Pending | OrderState::Cancelled | OrderState::Expired => {
            if let Some(key) = &order.payment {
                let what = format!(
                    "is {} but names payment {} {}",
                    order.state.as_str(),
                    key.provider,
                    key.payment
                );
                finding.add(sale, subject(), what);
            }
        }
    }
}

fn check_capture(
    facts: &Facts,
    capture: &CaptureFact,
    payments: &[&PaymentFact],
    finding: &mut Finding,
) {
    let subject = payment_subject(capture.order, &capture.key);
    let what = match payments.iter().find(|payment| payment.key == capture.key) {
        None => format!("of {} was captured but is not known", capture.amount),
        Some(payment) if payment.amount != capture.amount => {
            format!("of {} was captured but {} is recorded", capture.amount, payment.amount)
        }
        Some(_) => return,
    };
    match facts.order(capture.order).and_then(|(sale, _)| facts.sales.get(sale)) {
        Some(sale) => finding.add(sale, subject, what),
        None => finding.add_stray(subject, what),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_each, euros, key, order_number, order_of, payment};
    use super::*;
    use engine::domain::basics::money::MinorUnits;

    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    #[test]
    fn i5_finds_money_that_is_undecided_or_decided_twice() {
        assert_each(&[
            (
                |facts| drop(facts.payments.remove(0)),
                &[
                    "I5 g1: order 1 is paid but has 0 accepted payments",
                    "I5 g1: payment stripe pi_1 for order 1 of 150 EUR was captured but is not known",
                    "I11 g1: refund 1 of order 1 goes back of a payment that is not there",
                ],
            ),
            (
                |facts| facts.payments.push(payment(1, "pi_2", true, 150)),
                &[
                    "I5 g1: order 1 is paid but has 2 accepted payments",
                    "I5 g1: payment stripe pi_2 for order 1 was accepted but did not pay its order",
                ],
            ),
            (
                |facts| facts.payments.push(payment(3, "pi_3", true, 50)),
                &["I5 g1: payment stripe pi_3 for order 3 was accepted but its order is cancelled"],
            ),
            (
                |facts| facts.payments.push(payment(8, "pi_8", true, 50)),
                &["I5 payment stripe pi_8 for order 8 was accepted but its order does not exist"],
            ),
            (
                |facts| {
                    facts.payments[0].accepted = false;
                    facts.payments[0].refund = Some(RefundState::Requested);
                },
                &[
                    "I5 g1: order 1 is paid but has 0 accepted payments",
                    "I5 g1: payment stripe pi_1 for order 1 is refunded and yet paid its order",
                ],
            ),
            (
                |facts| facts.payments[1].refund = Some(RefundState::Due),
                &[
                    "I5 g1: payment stripe pi_4 for order 4 is to be refunded but no refund was requested",
                ],
            ),
            (
                |facts| facts.payments[0].refund = Some(RefundState::Requested),
                &["I5 g1: payment stripe pi_1 for order 1 was accepted and yet goes back"],
            ),
            (
                |facts| facts.payments[1].refund = Some(RefundState::Refunded),
                &["I5 g1: payment stripe pi_4 for order 4 is refunded but its order is refund_due"],
            ),
            (
                |facts| facts.payments[2].refund = None,
                &[
                    "I5 payment stripe pi_9 for order 9 is to be refunded but no refund was requested",
                ],
            ),
            (
                |facts| facts.payments[0].amount = euros(99),
                &[
                    "I5 g1: payment stripe pi_1 for order 1 of 150 EUR was captured but 99 EUR is recorded",
                    "I5 g1: payment stripe pi_1 for order 1 of 99 EUR was accepted for 150 EUR",
                ],
            ),
            (
                |facts| drop(facts.payments.remove(1)),
                &["I5 g1: order 4 is refund_due but its payment is not there"],
            ),
            (
                |facts| drop(facts.payments.remove(2)),
                &["I5 payment stripe pi_9 for order 9 of 7 EUR was captured but is not known"],
            ),
            (
                |facts| {
                    let capture = |order, payment| CaptureFact {
                        key: key(payment),
                        order: order_number(order),
                        amount: euros(70),
                    };
                    let ours = |order, payment| BookFact {
                        capture: capture(order, payment),
                        deployment: Some("prod1".to_owned()),
                        back_minor: None,
                        pending_minor: MinorUnits::ZERO,
                    };
                    let others = |order, payment, deployment: Option<&str>| BookFact {
                        capture: capture(order, payment),
                        deployment: deployment.map(str::to_owned),
                        back_minor: None,
                        pending_minor: MinorUnits::ZERO,
                    };
                    facts.book.own = "prod1".parse().ok();
                    // Decided, not decided yet, and for an order that nobody knows; then those of others.
                    facts.book.captured = vec![
                        ours(1, "pi_1"),
                        ours(2, "pi_2"),
                        ours(8, "pi_8"),
                        others(48151, "pi_shop", None),
                        others(8, "pi_stage", Some("stage")),
                    ];
                },
                &[
                    "I5 payment stripe pi_8 for order 8 of 70 EUR stands in the provider's book, and \
                     neither its order nor a decision is there",
                ],
            ),
            (
                |facts| order_of(facts, 3).payment = Some(key("pi_3")),
                &["I5 g1: order 3 is cancelled but names payment stripe pi_3"],
            ),
        ]);
    }
}
