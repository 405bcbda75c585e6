//! Payments that were started: one of an order is open at most, and none long after the order has ended.

use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;
use engine::domain::order::attempt::{AttemptState, MAX_ATTEMPTS};

use super::super::facts::{Facts, OrderFact};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// The attempts of an order are numbered from 1, at most one of them is open and not absent, and none `bound_seconds` after an
/// order has been paid or has ended that could no longer be paid: money might come by it of which nobody thinks.
/// The attempt that an order was paid by is one of its own, and counts as open no more.
#[must_use]
pub fn attempts_are_closed(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Finding {
    let mut finding = Finding::new(Rule::Attempts);
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            finding.checked += 1;
            for what in wrong(order, now, bound_seconds) {
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
    }
    finding
}

fn wrong(order: &OrderFact, now: Timestamp, bound_seconds: u32) -> Vec<String> {
    let mut wrong = Vec::new();
    let numbers: Vec<u8> = order.attempts.iter().map(|(number, _)| *number).collect();
    if numbers.len() > usize::from(MAX_ATTEMPTS) || !(1..).zip(&numbers).all(|(n, at)| n == *at) {
        wrong.push(format!("has started payments {numbers:?}"));
    }
    // The one that paid the order has done what it could: no money comes by it again.
    let is_open = |(number, state): &&(u8, AttemptState)| {
        *state == AttemptState::Open && Some(*number) != order.paid_attempt
    };
    let open: Vec<u8> = order.attempts.iter().filter(is_open).map(|(number, _)| *number).collect();
    let absent_until = |number: u8| {
        order.absent.iter().find(|(absent, _)| *absent == number).map(|(_, until)| *until)
    };
    let current: Vec<u8> =
        open.iter().copied().filter(|number| absent_until(*number).is_none()).collect();
    if current.len() > 1 {
        wrong.push(format!("has payments {current:?} open at once"));
    }
    // What is pending ends, and has them closed first (I7); a page that was not opened is closed at its expiry.
    let over_at = order.changed_at.max(order.payable_until());
    let is_late = |number: &u8| {
        let since = absent_until(*number).map_or(over_at, |until| until.max(over_at));
        since.plus_seconds(i64::from(bound_seconds)) < now
    };
    if order.state != OrderState::Pending && open.iter().any(is_late) {
        wrong.push(format!("is {} and has payment {open:?} open", order.state.as_str()));
    }
    if let Some(paid) = order.paid_attempt {
        if !numbers.contains(&paid) {
            wrong.push(format!("was paid by payment {paid}, which was never started"));
        }
        if order.payment.is_none() {
            wrong.push(format!("was paid by payment {paid} and names no payment"));
        }
    }
    // Whoever waits for a start waits no more.
    if order.state != OrderState::Pending && !order.places.is_empty() {
        let state = order.state.as_str();
        wrong.push(format!("is {state} and keeps its places at {:?}", order.places));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, clean_facts, order_of};
    use super::*;

    #[test]
    fn payments_that_stay_open_and_those_that_nobody_started_are_found() {
        let found = |change: &dyn Fn(&mut OrderFact), later: i64| {
            let mut facts = clean_facts();
            change(order_of(&mut facts, 1));
            let finding = attempts_are_closed(&facts, NOW.plus_seconds(later), 120);
            finding.violations.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let open = |numbers: &'static [u8]| {
            move |order: &mut OrderFact| {
                let all = numbers.iter().map(|number| (*number, AttemptState::Open));
                order.attempts = all.collect();
            }
        };
        // The order may be paid for another minute.
        assert_eq!(found(&open(&[1]), 180), [""; 0]);
        assert_eq!(
            found(&open(&[1]), 181),
            ["attempts g1: order 1 is paid and has payment [1] open"]
        );
        assert_eq!(
            found(&open(&[1, 2]), 0),
            ["attempts g1: order 1 has payments [1, 2] open at once"]
        );
        assert_eq!(found(&open(&[2]), 0), ["attempts g1: order 1 has started payments [2]"]);
        // A page that was not opened may be open beside another one, and is until its expiry.
        let absent = |order: &mut OrderFact| {
            open(&[1, 2])(order);
            order.paid_attempt = Some(2);
            order.absent = vec![(1, NOW.plus_seconds(500))];
        };
        assert_eq!(found(&absent, 620), [""; 0]);
        assert_eq!(found(&absent, 621), ["attempts g1: order 1 is paid and has payment [1] open"]);
        // What paid the order is not waited for; another one is.
        let paid_by = |paid: u8, numbers: &'static [u8]| {
            move |order: &mut OrderFact| {
                open(numbers)(order);
                order.paid_attempt = Some(paid);
            }
        };
        assert_eq!(found(&paid_by(1, &[1]), 9_999), [""; 0]);
        assert_eq!(found(&paid_by(2, &[1, 2]), 0), [""; 0]);
        assert_eq!(
            found(&paid_by(2, &[1, 2]), 9_999),
            ["attempts g1: order 1 is paid and has payment [1] open"]
        );
        let closed = |order: &mut OrderFact| {
            order.attempts = vec![(1, AttemptState::Closed), (2, AttemptState::GivenUp)];
            order.paid_attempt = Some(3);
        };
        assert_eq!(
            found(&closed, 9_999),
            ["attempts g1: order 1 was paid by payment 3, which was never started"]
        );
        let unpaid = |order: &mut OrderFact| {
            order.attempts = vec![(1, AttemptState::Closed)];
            (order.paid_attempt, order.payment) = (Some(1), None);
        };
        assert_eq!(
            found(&unpaid, 0),
            ["attempts g1: order 1 was paid by payment 1 and names no payment"]
        );
        let waits = |order: &mut OrderFact| order.places = vec!["stripe".to_owned()];
        assert_eq!(
            found(&waits, 0),
            [r#"attempts g1: order 1 is paid and keeps its places at ["stripe"]"#]
        );
    }
}
