//! I15: what a provider has sent back is what the refunds say.

use std::collections::HashMap;

use engine::domain::basics::money::MinorUnits;
use engine::domain::order::PaymentKey;
use engine::domain::order::refund::RefundState;

use super::super::facts::{BilledFact, Facts, PaymentFact, RefundFact};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// What the refunds of a captured payment say: what is back by its provider, and what may be.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    back: MinorUnits,
    under_way: MinorUnits,
}

/// I15: what the provider's own book says went back of a captured payment is what the refunds of it say, of the order that
/// it paid and of those that have its money by an exchange; and no less than that, and no more than that and what is under
/// way. Checked only where the book was read. Where it cannot be, the providers' bills were: what they say went back, and
/// `read-bills` found no refund for, is one that nobody has explained.
#[must_use]
pub fn what_went_back_is_known(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I15);
    let mut said: HashMap<&PaymentKey, Said> = HashMap::new();
    let payments: HashMap<&PaymentKey, &PaymentFact> =
        facts.payments.iter().map(|payment| (&payment.key, payment)).collect();
    for payment in &facts.payments {
        let whole = payment.refund.map(|state| of_state(state, payment.amount.amount_minor));
        let root = said.entry(root_of(payment)).or_default();
        add(root, whole.unwrap_or_default());
    }
    for refund in facts.refunds.iter().filter(|refund| !is_by_dispute(refund)) {
        if let Some(payment) = payments.get(&refund.payment) {
            let root = said.entry(root_of(payment)).or_default();
            add(root, of_state(refund.state, refund.amount.amount_minor));
        }
    }
    for book in &facts.book.captured {
        let (Some(sent), Some(said)) = (book.back_minor, said.get(&book.capture.key)) else {
            continue;
        };
        finding.checked += 1;
        let most = said.back + said.under_way;
        if sent + book.pending_minor < said.back || sent > most {
            let (order, key) = (book.capture.order, book.capture.key.clone());
            let what = format!(
                "of {} went back by {sent}, and its refunds say {} and {} under way",
                book.capture.amount, said.back, said.under_way
            );
            finding.add_stray(Subject::Payment { order, key }, what);
        }
    }
    for billed in &facts.billed {
        finding.checked += 1;
        let BilledFact { payment, name, amount } = billed;
        let subject = match payment {
            Some((key, order)) => Subject::Payment { order: *order, key: key.clone() },
            None => Subject::Record { record: format!("difference {name}") },
        };
        let what = format!("went back by {amount}, says a bill ({name}), and no refund says so");
        finding.add_stray(subject, what);
    }
    finding
}

fn add(to: &mut Said, more: Said) {
    to.back += more.back;
    to.under_way += more.under_way;
}

fn is_by_dispute(refund: &RefundFact) -> bool {
    refund.is_by_dispute || refund.dispute.is_some() && refund.ended == 0
}

/// The captured payment whose money a payment is.
fn root_of(payment: &PaymentFact) -> &PaymentKey {
    payment.captured.as_ref().map_or(&payment.key, |captured| &captured.key)
}

/// What a refund of an amount in a state says. One that has failed may have been sent after all: an answer was lost.
fn of_state(state: RefundState, amount: MinorUnits) -> Said {
    match state {
        RefundState::Refunded | RefundState::Outside => {
            Said { back: amount, under_way: MinorUnits::ZERO }
        }
        RefundState::Due | RefundState::Requested | RefundState::Pending | RefundState::Failed => {
            Said { back: MinorUnits::ZERO, under_way: amount }
        }
        RefundState::FailedLater
        | RefundState::Settled
        | RefundState::Unmatched
        | RefundState::Explained => Said::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::{BookFact, CaptureFact};
    use super::super::fixture::{assert_each, euros, key, order_number};
    use super::*;

    fn book(order: u64, payment: &str, amount: i64, back: Option<i64>, pending: i64) -> BookFact {
        BookFact {
            capture: CaptureFact {
                key: key(payment),
                order: order_number(order),
                amount: euros(amount),
            },
            deployment: None,
            back_minor: back.map(MinorUnits),
            pending_minor: MinorUnits(pending),
        }
    }

    #[test]
    fn i15_finds_what_went_back_and_nobody_knows_and_what_did_not_and_somebody_says() {
        assert_each(&[
            (
                |facts| {
                    facts.book.captured = vec![
                        book(1, "pi_1", 150, Some(50), 0),
                        // The answer is on its way, and another's is not ours to compare.
                        book(1, "pi_1", 150, Some(0), 50),
                        book(1, "pi_1", 150, None, 0),
                        book(7, "pi_shop", 70, Some(70), 0),
                    ];
                },
                &[],
            ),
            (
                |facts| {
                    facts.book.captured =
                        vec![book(1, "pi_1", 150, Some(100), 0), book(1, "pi_1", 150, Some(0), 0)];
                },
                &[
                    "I15 payment stripe pi_1 for order 1 of 150 EUR went back by 0, and its refunds say 50 and 0 under way",
                    "I15 payment stripe pi_1 for order 1 of 150 EUR went back by 100, and its refunds say 50 and 0 under way",
                ],
            ),
        ]);
    }
}
