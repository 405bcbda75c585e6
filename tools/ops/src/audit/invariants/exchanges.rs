//! Exchanges: an order that replaces tickets has them exactly while it is paid, and what they were worth is what it
//! costs and what goes back.

use std::collections::BTreeMap;

use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::OrderState;

use super::super::facts::{ExchangeFact, Facts, OrderFact, PaymentFact, RefundFact, SaleFacts};
use super::super::violation::Subject;
use super::Finding;

/// The refunds of orders, by their numbers.
type Refunds<'a> = BTreeMap<OrderNumber, BTreeMap<u8, &'a RefundFact>>;

/// Part of I11. A paid order that replaces tickets has taken them back by one refund of their order; of what they
/// are worth that refund keeps what the new order costs if it was paid with their money, and nothing if not. Tickets
/// are given for an order that says so, and only one that was paid.
pub(super) fn check(facts: &Facts, refunds: &Refunds<'_>, finding: &mut Finding) {
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let Some(exchange) = &order.exchange else { continue };
            finding.checked += 1;
            let mut add = |what: String| {
                finding.add(sale, Subject::Order { order: order.number }, what);
            };
            let of_old = refunds.get(&exchange.order);
            let given: Vec<&&RefundFact> = of_old
                .into_iter()
                .flat_map(BTreeMap::values)
                .filter(|refund| refund.exchanged_for == Some(order.number))
                .collect();
            let expected = usize::from(was_paid(facts, order));
            if given.len() != expected {
                add(format!(
                    "is {} and replaces tickets of order {}, which has {} refunds for it",
                    order.state.as_str(),
                    exchange.order,
                    given.len()
                ));
            }
            for refund in given {
                check_refund(order, exchange, refund, &mut add);
            }
        }
    }
    for refund in facts.refunds.iter().filter(|refund| refund.kept_minor < MinorUnits::ZERO) {
        let record = format!("refund {} of order {}", refund.number, refund.order);
        finding.add_stray(Subject::Record { record }, "keeps less than nothing");
    }
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let of_order = refunds.get(&order.number).into_iter().flat_map(BTreeMap::values);
            for refund in of_order {
                check_target(facts, (sale, order), refund, finding);
            }
        }
    }
    for payment in &facts.payments {
        check_moved(facts, payment, refunds, finding);
    }
}

/// True if an order was paid by a payment that was accepted.
fn was_paid(facts: &Facts, order: &OrderFact) -> bool {
    let is_its = |payment: &&PaymentFact| {
        payment.accepted
            && payment.order == order.number
            && order.payment.as_ref() == Some(&payment.key)
    };
    match order.state {
        OrderState::Paid => true,
        OrderState::RefundDue | OrderState::Refunded => facts.payments.iter().any(|it| is_its(&it)),
        OrderState::Pending | OrderState::Cancelled | OrderState::Expired => false,
    }
}

fn check_refund(
    order: &OrderFact,
    exchange: &ExchangeFact,
    refund: &RefundFact,
    add: &mut impl FnMut(String),
) {
    let what = format!("refund {} of order {}", refund.number, refund.order);
    if refund.tickets != exchange.tickets {
        add(format!("replaces other tickets than {what} takes back"));
    }
    let worth = refund.amount.amount_minor + refund.kept_minor;
    if worth.0 != exchange.value_minor {
        add(format!(
            "replaces tickets worth {}, and {what} is worth {worth}",
            exchange.value_minor
        ));
    }
    let is_moved = order.payment.as_ref().is_some_and(|key| order.is_moved(key.payment.as_str()));
    let costs = if is_moved { order.total.amount_minor } else { MinorUnits::ZERO };
    if refund.kept_minor != costs {
        add(format!("costs {costs} of the money of {what}, which keeps {}", refund.kept_minor));
    }
}

/// A refund that gives tickets for an order is for one that says so; any other keeps nothing.
fn check_target(
    facts: &Facts,
    (sale, order): (&SaleFacts, &OrderFact),
    refund: &RefundFact,
    finding: &mut Finding,
) {
    let what = match refund.exchanged_for {
        None if refund.kept_minor == MinorUnits::ZERO => return,
        None => format!("keeps {} for no order", refund.kept_minor),
        Some(new) if facts.elsewhere.contains(&new) => return,
        Some(new) => match facts.order(new).map(|(_, new)| new.exchange.as_ref()) {
            Some(Some(exchange)) if exchange.order == order.number => return,
            Some(_) => format!("is for order {new}, which does not replace its tickets"),
            None => format!("is for order {new}, which does not exist"),
        },
    };
    let record = format!("refund {} of order {}", refund.number, refund.order);
    finding.add(sale, Subject::Record { record }, what);
}

/// A payment that moved money says whose: that of a capture which is there, and paid the tickets.
fn check_moved(facts: &Facts, payment: &PaymentFact, refunds: &Refunds<'_>, finding: &mut Finding) {
    let Some((sale, order)) = facts.order(payment.order) else { return };
    let Some(sale) = facts.sales.get(sale) else { return };
    let moves = order.is_moved(payment.key.payment.as_str());
    let what = match &payment.captured {
        None if !moves => return,
        None => "moved money, and does not say whose".to_owned(),
        Some(captured) if !moves => format!("has the money of order {}", captured.order),
        Some(captured) => {
            let is_it = |it: &&PaymentFact| it.key == captured.key && it.order == captured.order;
            let is_there = facts.payments.iter().any(|it| is_it(&it) && it.accepted);
            let provider = &payment.key.provider;
            // The capture is that of the tickets, or what they themselves were paid with.
            let of_old = order.exchange.as_ref().and_then(|exchange| refunds.get(&exchange.order));
            let old = of_old
                .into_iter()
                .flat_map(BTreeMap::values)
                .find(|refund| refund.exchanged_for == Some(order.number));
            let is_of_old = old.is_none_or(|refund| {
                let paid = facts
                    .payments
                    .iter()
                    .find(|it| it.order == refund.order && it.key == refund.payment);
                paid.is_some_and(|paid| {
                    let money = paid.captured.as_ref().map_or(&paid.key, |captured| &captured.key);
                    *money == captured.key
                })
            });
            if is_there && is_of_old && *provider == captured.key.provider {
                return;
            }
            format!(
                "moved money of payment {} {} for order {}, which did not pay the tickets",
                captured.key.provider, captured.key.payment, captured.order
            )
        }
    };
    let subject = Subject::Payment { order: payment.order, key: payment.key.clone() };
    finding.add(sale, subject, what);
}

#[cfg(test)]
mod tests {
    use engine::domain::basics::ids::SaleId;
    use engine::domain::order::fact::FactKind;

    use super::super::super::facts::{MovedFact, ToldFact};
    use super::super::fixture::{
        clean_facts, euros, id, key, order, order_number, order_of, payment, sale_of, told,
        violations,
    };
    use super::*;

    /// Order 1 gave its ticket A7, which was worth 50, for the spot of order 2, which costs 20: 30 go back.
    fn exchanged() -> Facts {
        let mut facts = clean_facts();
        let moved = "1-for-2";
        facts.refunds[0].exchanged_for = Some(order_number(2));
        facts.refunds[0].kept_minor = MinorUnits(20);
        facts.refunds[0].amount = euros(30);
        order_of(&mut facts, 1).told[3].amount_minor = Some(30);
        let mut new = order(2, "bob", OrderState::Paid, "ga", (1, 2), &[0]);
        new.lines[0].price_minor = MinorUnits(20);
        (new.total, new.payment, new.settled) = (euros(20), Some(key(moved)), 2);
        new.told.push(ToldFact {
            payment: Some(("stripe".to_owned(), moved.to_owned())),
            amount_minor: Some(20),
            currency: Some("EUR".to_owned()),
            ..told(FactKind::Paid)
        });
        new.exchange = Some(ExchangeFact {
            order: order_number(1),
            sale: SaleId::new("g1").unwrap(),
            tickets: facts.refunds[0].tickets.clone(),
            value_minor: 50,
        });
        let captured = MovedFact { key: key("pi_1"), order: order_number(1) };
        let paid = PaymentFact { captured: Some(captured), ..payment(2, moved, true, 20) };
        facts.payments.push(paid);
        let sale = sale_of(&mut facts);
        let numbered = |order: &OrderFact| (1..).zip(order.told.iter().cloned()).collect();
        sale.orders.insert(new.number, new);
        for (number, order) in &sale.orders {
            sale.log.insert(*number, numbered(order));
        }
        facts
    }

    /// What I11 finds.
    fn found(change: impl FnOnce(&mut Facts)) -> Vec<String> {
        let mut facts = exchanged();
        change(&mut facts);
        let found = violations(&facts);
        found.into_iter().filter(|what| what.starts_with("I11")).collect()
    }

    #[test]
    fn i11_finds_exchanges_that_do_not_add_up() {
        assert_eq!(found(|_| {}), [""; 0]);
        let of_new = "I11 g1: order 2";
        assert_eq!(
            found(|facts| facts.refunds[0].exchanged_for = None),
            [
                format!(
                    "{of_new} is paid and replaces tickets of order 1, which has 0 refunds for it"
                ),
                "I11 g1: refund 1 of order 1 keeps 20 for no order".to_owned(),
            ]
        );
        assert_eq!(
            found(|facts| order_of(facts, 2).exchange = None),
            [
                "I11 g1: payment stripe 1-for-2 for order 2 has the money of order 1",
                "I11 g1: refund 1 of order 1 is for order 2, which does not replace its tickets",
            ]
        );
        assert_eq!(
            found(|facts| order_of(facts, 2).exchange.as_mut().unwrap().value_minor = 60),
            [format!("{of_new} replaces tickets worth 60, and refund 1 of order 1 is worth 50")]
        );
        assert_eq!(
            found(|facts| {
                facts.refunds[0].kept_minor = MinorUnits(10);
                facts.refunds[0].amount = euros(40);
            }),
            [format!("{of_new} costs 20 of the money of refund 1 of order 1, which keeps 10")]
        );
        assert_eq!(
            found(|facts| {
                let tickets = [(id("a"), "A1".to_owned())].into();
                order_of(facts, 2).exchange.as_mut().unwrap().tickets = tickets;
            }),
            [format!("{of_new} replaces other tickets than refund 1 of order 1 takes back")]
        );
        assert_eq!(
            found(|facts| facts.payments[3].captured = None),
            ["I11 g1: payment stripe 1-for-2 for order 2 moved money, and does not say whose"]
        );
        assert_eq!(
            found(|facts| facts.payments[3].captured.as_mut().unwrap().key = key("pi_9")),
            [
                "I11 g1: payment stripe 1-for-2 for order 2 moved money of payment stripe pi_9 for order 1, which did not pay the tickets"
            ]
        );
        assert_eq!(
            found(|facts| order_of(facts, 2).state = OrderState::Expired)[0],
            format!(
                "{of_new} is expired and replaces tickets of order 1, which has 1 refunds for it"
            )
        );
    }

    #[test]
    fn an_exchange_that_waits_claims_nobody_and_has_room_under_the_limit() {
        let mut facts = clean_facts();
        let waiting = order_of(&mut facts, 2);
        waiting.lines[0].seats[0].1 = vec![super::super::fixture::person('a')];
        waiting.exchange = Some(ExchangeFact {
            order: order_number(1),
            sale: SaleId::new("g1").unwrap(),
            tickets: [(id("a"), "A1".to_owned())].into(),
            value_minor: 50,
        });
        let found = violations(&facts);
        assert!(!found.iter().any(|what| what.starts_with("I2")), "{found:?}");
        // The same person's ticket twice is one too many when it does not wait.
        order_of(&mut facts, 2).exchange = None;
        let found = violations(&facts);
        assert!(found.iter().any(|what| what.contains("has 2 tickets: orders 1, 2")), "{found:?}");
    }
}
