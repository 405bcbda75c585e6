//! I11: a ticket has its claims exactly while it lives, and what goes back of a payment is never more than was
//! captured, disputes included.
//!
//! Claims are held against live tickets by I2; here refunds are held against the marks of tickets, the counts
//! of orders, the payments and what was told.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::ids::TierId;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::OrderState;
use engine::domain::order::fact::FactKind;
use engine::domain::order::refund::RefundState;

use super::super::facts::{Facts, OrderFact, PaymentFact, RefundFact, SaleFacts};
use super::super::violation::{Rule, Subject};
use super::Finding;
use super::exchanges;

/// I11: the refunds of an order are numbered from 1 and counted on it, each has the tickets that bear its
/// number, goes back of the order's own payment and is told; the order is refunded when no ticket lives and all
/// of them are back; what goes back of a payment is their sum, and not more than was captured.
#[must_use]
pub fn refunds_are_of_orders(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I11);
    let mut of_order: BTreeMap<OrderNumber, BTreeMap<u8, &RefundFact>> = BTreeMap::new();
    for refund in &facts.refunds {
        finding.checked += 1;
        of_order.entry(refund.order).or_default().insert(refund.number, refund);
        let is_elsewhere = facts.elsewhere.contains(&refund.order);
        if facts.order(refund.order).is_none() && !is_elsewhere {
            let record = format!("refund {} of order {}", refund.number, refund.order);
            finding.add_stray(Subject::Record { record }, "is of an order that does not exist");
        }
    }
    let none = BTreeMap::new();
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let refunds = of_order.get(&order.number).unwrap_or(&none);
            check_order(sale, order, refunds, &mut finding);
            for refund in refunds.values() {
                check_refund(facts, sale, order, refund, &mut finding);
            }
        }
    }
    check_payments(facts, &of_order, &mut finding);
    exchanges::check(facts, &of_order, &mut finding);
    finding
}

fn check_order(
    sale: &SaleFacts,
    order: &OrderFact,
    refunds: &BTreeMap<u8, &RefundFact>,
    finding: &mut Finding,
) {
    let mut add = |what: String| finding.add(sale, Subject::Order { order: order.number }, what);
    if !refunds.keys().copied().eq(1..=order.refunds) {
        let numbers: Vec<String> = refunds.keys().map(u8::to_string).collect();
        add(format!("says it has {} refunds, and has [{}]", order.refunds, numbers.join(", ")));
    }
    let back = refunds.values().filter(|refund| refund.state.is_back()).count();
    if back != usize::from(order.refunds_back) {
        add(format!("says that {} refunds are back, and {back} are", order.refunds_back));
    }
    for number in marks(order).keys().filter(|number| !refunds.contains_key(number)) {
        add(format!("has tickets of refund {number}, which is not there"));
    }
    let is_empty = order.tickets() == 0;
    let expected = match (is_empty, back == refunds.len()) {
        (false, _) => OrderState::Paid,
        (true, false) => OrderState::RefundDue,
        (true, true) => OrderState::Refunded,
    };
    if !refunds.is_empty() && order.state != expected {
        let tickets = order.tickets();
        add(format!(
            "is {} with {tickets} live tickets and {back} of {} refunds back",
            order.state.as_str(),
            refunds.len()
        ));
    }
    let told = |kind: FactKind| -> Vec<u8> {
        let of_kind = order.told.iter().filter(|told| told.kind == kind);
        let mut told: Vec<u8> = of_kind.filter_map(|told| told.refund).collect();
        told.sort_unstable();
        told
    };
    let with_money =
        refunds.values().filter(|refund| refund.amount.amount_minor > MinorUnits::ZERO);
    let with_money = with_money.filter(|refund| refund.state.is_back());
    let with_money: Vec<u8> = with_money.map(|refund| refund.number).collect();
    let made: Vec<u8> = refunds.keys().copied().collect();
    // Money that came to us again was back once, and is back once more or not.
    let mut is_back = told(FactKind::Refunded);
    for undone in told(FactKind::RefundUndone) {
        match is_back.iter().position(|number| *number == undone) {
            Some(at) => drop(is_back.remove(at)),
            None => add(format!("tells that refund {undone} was undone, and not that it was back")),
        }
    }
    for (kind, told, expected) in [
        (FactKind::RefundMade, told(FactKind::RefundMade), made),
        (FactKind::Refunded, is_back, with_money),
    ] {
        if told != expected {
            add(format!("tells {} of refunds {told:?}, not {expected:?}", kind.as_str()));
        }
    }
}

/// The tickets of an order that bear the number of each refund.
fn marks(order: &OrderFact) -> BTreeMap<u8, BTreeSet<(TierId, String)>> {
    let mut marks: BTreeMap<u8, BTreeSet<(TierId, String)>> = BTreeMap::new();
    for line in &order.lines {
        for (name, refund) in &line.refunded {
            marks.entry(*refund).or_default().insert((line.tier.clone(), name.clone()));
        }
    }
    marks
}

fn check_refund(
    facts: &Facts,
    sale: &SaleFacts,
    order: &OrderFact,
    refund: &RefundFact,
    finding: &mut Finding,
) {
    let record = format!("refund {} of order {}", refund.number, refund.order);
    let mut add = |what: &str| {
        finding.add(sale, Subject::Record { record: record.clone() }, what);
    };
    if marks(order).remove(&refund.number).unwrap_or_default() != refund.tickets {
        add("names other tickets than those that bear its number");
    }
    if order.payment.as_ref() != Some(&refund.payment) {
        add("goes back of another payment than its order's");
    }
    let is_there = facts.payments.iter().any(|payment| payment.key == refund.payment);
    if !is_there {
        add("goes back of a payment that is not there");
    }
    if refund.is_due == matches!(refund.state, RefundState::Refunded | RefundState::Settled) {
        add("is due though its money is back, or not due though it is not");
    }
}

fn check_payments(
    facts: &Facts,
    of_order: &BTreeMap<OrderNumber, BTreeMap<u8, &RefundFact>>,
    finding: &mut Finding,
) {
    for payment in &facts.payments {
        let refunds = of_order.get(&payment.order).into_iter().flat_map(BTreeMap::values);
        let of_payment = refunds.filter(|refund| refund.payment == payment.key);
        let worth = of_payment.map(|refund| refund.amount.amount_minor + refund.kept_minor);
        let sum: MinorUnits = worth.sum();
        check_disputes(facts, payment, of_order.get(&payment.order), finding);
        let what = if sum != payment.back_minor {
            format!("says that {} goes back, its refunds come to {sum}", payment.back_minor)
        } else if sum > payment.amount.amount_minor {
            format!("of {} has refunds of {sum}", payment.amount)
        } else {
            continue;
        };
        let subject = Subject::Payment { order: payment.order, key: payment.key.clone() };
        match facts.order(payment.order).and_then(|(sale, _)| facts.sales.get(sale)) {
            Some(sale) => finding.add(sale, subject, what),
            None => finding.add_stray(subject, what),
        }
    }
}

/// The list of disputed payments, or of unmatched captures, that a payment belongs into, and its place there: by the
/// last change, or by its number.
fn place_of(payment: &PaymentFact) -> Option<(String, String)> {
    if payment.refund == Some(RefundState::Unmatched) {
        let minted_ms = payment.order.minted_at().ms();
        let at = format!("{minted_ms:015}-{:019}", payment.order.get());
        return Some(("unmatched".to_owned(), at));
    }
    let changed_ms = payment.disputes.iter().map(|it| it.changed_ms).max()?;
    let is_open = payment.disputes.iter().any(|it| it.state == "open");
    let list = if is_open { "open" } else { "over" };
    Some((list.to_owned(), format!("{changed_ms:015}-{:019}", payment.order.get())))
}

/// What is wrong with the list of disputed payments that a payment is in, or its place there.
fn misplaced(payment: &PaymentFact) -> Option<String> {
    let place = place_of(payment);
    let words = |place: &Option<(String, String)>| match place {
        Some((list, at)) => format!("{list} at {at}"),
        None => "nowhere".to_owned(),
    };
    let (is, should) = (words(&payment.listed), words(&place));
    (payment.listed != place)
        .then(|| format!("is listed with disputes as {is}, and belongs as {should}"))
}

/// The disputes of a payment are told by its order, as often as each was opened and decided, and one that is lost has its
/// refund.
fn check_disputes(
    facts: &Facts,
    payment: &PaymentFact,
    refunds: Option<&BTreeMap<u8, &RefundFact>>,
    finding: &mut Finding,
) {
    let order = facts.order(payment.order);
    let mut add = |what: String| {
        let subject = Subject::Payment { order: payment.order, key: payment.key.clone() };
        match order.and_then(|(sale, _)| facts.sales.get(sale)) {
            Some(sale) => finding.add(sale, subject, what),
            None => finding.add_stray(subject, what),
        }
    };
    let open: Vec<&str> =
        payment.disputes.iter().filter(|it| it.state == "open").map(|it| it.id.as_str()).collect();
    if open.first().copied() != payment.disputed.as_deref() {
        let disputed = payment.disputed.as_deref().unwrap_or("nothing");
        add(format!("keeps refunds away for {disputed}, and has open disputes {open:?}"));
    }
    misplaced(payment).into_iter().for_each(&mut add);
    let mut said: Vec<(FactKind, i64)> = Vec::new();
    for dispute in &payment.disputes {
        let (reopened, reinstated) = dispute.again;
        let is = |state: &str| u8::from(dispute.state == state);
        for (kind, times, amount) in [
            (FactKind::DisputeOpened, 1 + reopened, dispute.amount_minor),
            (FactKind::DisputeWon, reopened + is("won"), dispute.amount_minor),
            // What of it was to be lost: the rest stays on the account of what is disputed.
            (FactKind::DisputeLost, reinstated + is("lost"), 0),
        ] {
            said.extend((0..times).map(|_| (kind, amount)));
        }
    }
    let key = (payment.key.provider.to_string(), payment.key.payment.to_string());
    let mut told: Vec<(FactKind, i64)> = Vec::new();
    for fact in order.into_iter().flat_map(|(_, order)| &order.told) {
        let is_of_dispute = matches!(
            fact.kind,
            FactKind::DisputeOpened | FactKind::DisputeWon | FactKind::DisputeLost
        );
        if is_of_dispute && fact.payment.as_ref() == Some(&key) {
            let is_lost = fact.kind == FactKind::DisputeLost;
            told.push((fact.kind, fact.amount_minor.filter(|_| !is_lost).unwrap_or_default()));
        }
    }
    said.sort_unstable();
    told.sort_unstable();
    if said != told {
        let words = |all: &[(FactKind, i64)]| -> String {
            let word = |(kind, amount): &(FactKind, i64)| format!("{} {amount}", kind.as_str());
            all.iter().map(word).collect::<Vec<_>>().join(", ")
        };
        add(format!(
            "has disputes that are [{}], and its order tells [{}]",
            words(&said),
            words(&told)
        ));
    }
    check_taken(facts, payment, refunds, &mut add);
}

/// The refunds of a payment that disputes have made are of its disputes, one of each.
fn check_taken(
    facts: &Facts,
    payment: &PaymentFact,
    refunds: Option<&BTreeMap<u8, &RefundFact>>,
    add: &mut impl FnMut(String),
) {
    let none = BTreeMap::new();
    let mut refunded: BTreeSet<&str> = BTreeSet::new();
    for refund in refunds.unwrap_or(&none).values().filter(|of| of.payment == payment.key) {
        let Some(id) = refund.dispute.as_deref() else { continue };
        // What a wallet has paid is taken back by the dispute of what has filled it.
        if payment.key.provider.is_wallet() {
            let mut disputes = facts.payments.iter().flat_map(|payment| &payment.disputes);
            if facts.elsewhere.is_empty() && !disputes.any(|dispute| dispute.id == id) {
                add(format!(
                    "has refund {} for dispute {id}, which is of no payment",
                    refund.number
                ));
            }
            continue;
        }
        let dispute = payment.disputes.iter().find(|dispute| dispute.id == id);
        let amount = refund.amount.amount_minor.0;
        // What it took is owed again once it is won after all.
        let may_be = |state: &str| state != "won" || refund.ended > 0;
        if !dispute.is_some_and(|it| may_be(&it.state) && it.amount_minor >= amount) {
            add(format!(
                "has refund {} of {amount} for dispute {id}, which is none of it",
                refund.number
            ));
        }
        if !refunded.insert(id) {
            add(format!("has two refunds for dispute {id}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::DisputeFact;
    use super::super::fixture::{assert_each, euros, key, order_of};
    use super::*;

    #[test]
    fn i11_finds_disputes_that_nobody_tells() {
        let dispute = |state: &str| DisputeFact {
            id: "dp_1".to_owned(),
            state: state.to_owned(),
            amount_minor: 100,
            changed_ms: 1_800_000_000_000,
            again: (0, 0),
        };
        assert_each(&[
            (
                |facts| facts.payments[0].disputed = Some("dp_1".to_owned()),
                &[
                    "I11 g1: payment stripe pi_1 for order 1 keeps refunds away for dp_1, and has open disputes []",
                ],
            ),
            (
                |facts| {
                    facts.payments[0].listed = Some(("over".to_owned(), "1".to_owned()));
                },
                &[
                    "I11 g1: payment stripe pi_1 for order 1 is listed with disputes as over at 1, and belongs as nowhere",
                ],
            ),
            (
                |facts| facts.refunds[0].dispute = Some("dp_1".to_owned()),
                &[
                    "I11 g1: payment stripe pi_1 for order 1 has refund 1 of 50 for dispute dp_1, which is none of it",
                ],
            ),
        ]);
        // One that was decided otherwise is told each time.
        let mut facts = super::super::fixture::clean_facts();
        facts.payments[0].disputes = vec![DisputeFact { again: (1, 1), ..dispute("lost") }];
        let at = "001800000000000-0000000000000000001".to_owned();
        facts.payments[0].listed = Some(("over".to_owned(), at));
        assert_eq!(
            super::super::fixture::violations(&facts),
            ["I11 g1: payment stripe pi_1 for order 1 has disputes that are [dispute_opened 100, \
                 dispute_opened 100, dispute_won 100, dispute_lost 0, dispute_lost 0], and its order tells []"]
        );
        let mut facts = super::super::fixture::clean_facts();
        facts.payments[0].disputes = vec![dispute("open")];
        let found = super::super::fixture::violations(&facts);
        let of = "I11 g1: payment stripe pi_1 for order 1";
        assert_eq!(
            found,
            [
                format!("{of} has disputes that are [dispute_opened 100], and its order tells []"),
                format!(
                    "{of} is listed with disputes as nowhere, and belongs as open at \
                     001800000000000-0000000000000000001"
                ),
                format!("{of} keeps refunds away for nothing, and has open disputes [\"dp_1\"]"),
            ]
        );
    }

    #[test]
    fn i11_finds_refunds_that_are_not_their_orders() {
        assert_each(&[
            (
                |facts| facts.refunds.clear(),
                &[
                    "I11 g1: order 1 has tickets of refund 1, which is not there",
                    "I11 g1: order 1 says it has 1 refunds, and has []",
                    "I11 g1: order 1 says that 1 refunds are back, and 0 are",
                    "I11 g1: order 1 tells refund_made of refunds [1], not []",
                    "I11 g1: order 1 tells refunded of refunds [1], not []",
                    "I11 g1: payment stripe pi_1 for order 1 says that 50 goes back, its refunds come to 0",
                ],
            ),
            (
                |facts| order_of(facts, 1).lines[0].refunded.clear(),
                &[
                    "I11 g1: refund 1 of order 1 names other tickets than those that bear its number",
                ],
            ),
            (
                |facts| facts.refunds[0].amount = euros(40),
                &[
                    "I11 g1: payment stripe pi_1 for order 1 says that 50 goes back, its refunds come to 40",
                ],
            ),
            (
                |facts| {
                    facts.refunds[0].amount = euros(151);
                    facts.payments[0].back_minor = MinorUnits(151);
                },
                &["I11 g1: payment stripe pi_1 for order 1 of 150 EUR has refunds of 151"],
            ),
            (
                |facts| facts.refunds[0].payment = key("pi_9"),
                &[
                    "I11 g1: payment stripe pi_1 for order 1 says that 50 goes back, its refunds come to 0",
                    "I11 g1: refund 1 of order 1 goes back of another payment than its order's",
                ],
            ),
            (
                |facts| facts.refunds[0].is_due = true,
                &[
                    "I11 g1: refund 1 of order 1 is due though its money is back, or not due though it is not",
                ],
            ),
            (
                |facts| order_of(facts, 1).refunds_back = 0,
                &["I11 g1: order 1 says that 0 refunds are back, and 1 are"],
            ),
        ]);
    }
}
