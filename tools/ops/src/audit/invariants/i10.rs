//! I10: the log says what the orders' facts say, and moves the money that they speak of.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;

use engine::domain::order::fact::FactKind;

use super::super::facts::{Facts, OrderFact, SaleFacts, TransferKey, WaitingFact};
use super::super::violation::{Rule, Subject};
use super::{Finding, points, wallets};

/// I10: every settled fact stands in the log once, in its order, and nothing else does; the transfers beside them
/// move what they speak of, and so do the entries of wallets and what orders give; positions are dense;
/// no fact of a resolved order is unsettled `bound_seconds` after it should be settled.
#[must_use]
pub fn log_says_what_orders_say(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Finding {
    let mut finding = Finding::new(Rule::I10);
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let subject = || Subject::Order { order: order.number };
            finding.checked += u64::from(order.settled);
            let told = sale.log.get(&order.number).map_or(&[][..], Vec::as_slice);
            let settled = usize::try_from(order.settled).unwrap_or(usize::MAX);
            let expected = order.told.get(..settled);
            let is_told = expected.is_some_and(|expected| {
                let numbered = (1..).zip(expected);
                numbered.eq(told.iter().map(|(number, told)| (*number, told)))
            });
            if !is_told {
                let said: Vec<String> = told
                    .iter()
                    .map(|(number, told)| format!("{number} {}", told.kind.as_str()))
                    .collect();
                let kinds: Vec<&str> = order.told.iter().map(|told| told.kind.as_str()).collect();
                let what = format!(
                    "has settled {} of [{}] and the log says [{}]",
                    order.settled,
                    kinds.join(", "),
                    said.join(", ")
                );
                finding.add(sale, subject(), what);
            }
            if is_late(order, now, bound_seconds) {
                finding.add(sale, subject(), "has a fact that was never settled");
            }
        }
        check_transfers(sale, &mut finding);
        for number in sale.log.keys().filter(|number| !sale.orders.contains_key(number)) {
            let what = "is in the log and does not exist";
            finding.add(sale, Subject::Order { order: *number }, what);
        }
    }
    for (shard, positions) in &facts.log_positions {
        let missing = (1..).zip(positions).find(|(expected, found)| expected != *found);
        if let Some((position, _)) = missing {
            let record = format!("position {position} of shard {shard} of the log");
            finding.add_stray(Subject::Record { record }, "is missing");
        }
    }
    check_webhooks(facts, &mut finding);
    wallets::are_what_orders_say(facts, &mut finding);
    points::are_what_orders_say(facts, now, bound_seconds, &mut finding);
    finding
}

/// Shards of the log: an order's is the counter in its number, modulo these.
const SHARDS: u64 = 4;

/// What webhooks were told is in the log, and what waits for them was settled.
fn check_webhooks(facts: &Facts, finding: &mut Finding) {
    for ((webhook, shard), position) in &facts.told_to {
        let last = facts.log_positions.get(shard).and_then(|positions| positions.last());
        if last.copied().unwrap_or(0) < *position {
            let record = format!("webhook {webhook}, shard {shard} of the log,");
            let what = format!("was told to position {position}, behind the last one");
            finding.add_stray(Subject::Record { record }, what);
        }
    }
    for WaitingFact { webhook, shard, order, facts: (from, to) } in &facts.waiting {
        if facts.elsewhere.contains(order) {
            continue;
        }
        let settled = facts.order(*order).map_or(0, |(_, order)| order.settled);
        let is_right_shard = (order.get() >> 10) % SHARDS == u64::from(*shard);
        if *from == 0 || from > to || *to > settled || !is_right_shard {
            let record = format!("webhook {webhook}, shard {shard} of the log, order {order},");
            let what = format!("waits with facts {from} to {to} of {settled} that are settled");
            finding.add_stray(Subject::Record { record }, what);
        }
    }
}

/// The transfers of a sale are what the settled facts of its orders come to.
fn check_transfers(sale: &SaleFacts, finding: &mut Finding) {
    let mut expected: BTreeMap<TransferKey, i128> = BTreeMap::new();
    for order in sale.orders.values() {
        for (key, amount) in moved_by(sale, order) {
            *expected.entry(key).or_default() += amount;
        }
    }
    expected.retain(|_, amount| *amount != 0);
    let keys = expected.keys().chain(sale.transfers.keys());
    let keys: BTreeSet<&TransferKey> = keys.collect();
    for key in keys {
        let amount = |sums: &BTreeMap<TransferKey, i128>| sums.get(key).copied().unwrap_or(0);
        let (told, booked) = (amount(&expected), amount(&sale.transfers));
        if told != booked {
            let (from, to, code, currency) = key;
            let what = format!(
                "has {booked} {currency} booked from {from} to {to} as {code}, and its orders tell {told}"
            );
            finding.add(sale, Subject::Sale, what);
        }
    }
}

/// What the settled facts of an order move. Commission is on what is left of the payment, so what was given up of
/// it is the difference between that on all and that on the rest.
fn moved_by(sale: &SaleFacts, order: &OrderFact) -> Vec<(TransferKey, i128)> {
    let (merchant, basis_points) = &order.merchant;
    let merchant = format!("merchant:{merchant}:{}", sale.sale.id());
    let [fees, owed, disputed] = ["fees", "owed", "disputed"].map(str::to_owned);
    let commission = |amount: i128| amount * i128::from(*basis_points) / 10_000;
    let mut all = Vec::new();
    let (mut paid, mut refunded, mut of_payment) = (0, 0, String::new());
    let settled = usize::try_from(order.settled).unwrap_or(usize::MAX);
    for told in order.told.iter().take(settled) {
        let (Some((provider, payment)), Some(amount)) = (&told.payment, told.amount_minor) else {
            continue;
        };
        let (amount, currency) = (i128::from(amount), told.currency.clone().unwrap_or_default());
        let provider = format!("provider:{provider}");
        let mut add = |from: &String, to: &String, code: &str, amount: i128| {
            let key = (from.clone(), to.clone(), code.to_owned(), currency.clone());
            all.push((key, amount));
        };
        match told.kind {
            FactKind::Paid | FactKind::Rescued => {
                paid = amount;
                of_payment.clone_from(&currency);
                // Money of tickets that it replaces is owed since they were given up.
                let from = if order.is_moved(payment) { &owed } else { &provider };
                add(from, &merchant, "sale", amount - commission(amount));
                add(from, &fees, "commission", commission(amount));
            }
            FactKind::RefundDue | FactKind::CaptureRefused => {
                add(&provider, &owed, "unowned", amount);
            }
            FactKind::RefundMade => refunded += amount,
            FactKind::Refunded if told.by == "operator" => {
                add(&owed, &"bank".to_owned(), "paid_otherwise", amount);
            }
            FactKind::Refunded => add(&owed, &provider, "sent_back", amount),
            // What a dispute had taken comes back out of what is in dispute.
            FactKind::RefundUndone => {
                let from = if told.is_disputed { &disputed } else { &provider };
                add(from, &owed, "sent_back_undone", amount);
            }
            FactKind::DisputeOpened => add(&disputed, &provider, "disputed", amount),
            FactKind::DisputeWon | FactKind::DisputeLost => {
                add(&provider, &disputed, "dispute_over", amount);
            }
            FactKind::Made | FactKind::Cancelled | FactKind::Expired => {}
        }
    }
    let given_up = commission(paid) - commission(paid - refunded);
    for (from, code, amount) in
        [(&merchant, "refund", refunded - given_up), (&fees, "commission_back", given_up)]
    {
        let key = (from.clone(), owed.clone(), code.to_owned(), of_payment.clone());
        all.push((key, amount));
    }
    all
}

/// True if a fact of the order should have been settled. What is told of a cancelled order is settled at its
/// deadline, and of a pending one with what decides it.
fn is_late(order: &OrderFact, now: Timestamp, bound_seconds: u32) -> bool {
    let is_settled = usize::try_from(order.settled).is_ok_and(|n| n == order.told.len());
    if order.state == OrderState::Pending || is_settled {
        return false;
    }
    is_over_since(order, now, bound_seconds)
}

/// True if what follows from the last fact of an order is overdue.
pub(super) fn is_over_since(order: &OrderFact, now: Timestamp, bound_seconds: u32) -> bool {
    let last = order.told.last().map_or(order.changed_at, |told| told.at);
    let since =
        if order.state == OrderState::Cancelled { last.max(order.payable_until()) } else { last };
    since.plus_seconds(bound_seconds.into()) < now
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_each, order_number, order_of, sale_of};
    use super::*;

    #[test]
    fn i10_finds_a_webhook_that_was_told_what_is_not_there() {
        let told = |facts: &mut Facts, position| {
            facts.told_to.insert(("erp".to_owned(), 0), position);
        };
        let waits = |facts: &mut Facts, order, from, to| {
            let (webhook, order) = ("erp".to_owned(), order_number(order));
            let shard = u8::try_from((order.get() >> 10) % SHARDS).unwrap();
            facts.waiting.push(WaitingFact { webhook, shard, order, facts: (from, to) });
        };
        let mut clean = super::super::fixture::clean_facts();
        told(&mut clean, 3);
        waits(&mut clean, 1, 2, 4);
        assert_eq!(super::super::fixture::violations(&clean), [""; 0]);
        for (break_it, what) in [
            (
                Box::new(|facts: &mut Facts| told(facts, 4)) as Box<dyn Fn(&mut Facts)>,
                "I10 webhook erp, shard 0 of the log, was told to position 4, behind the last one",
            ),
            (
                Box::new(|facts: &mut Facts| waits(facts, 1, 2, 5)),
                "waits with facts 2 to 5 of 4 that are settled",
            ),
            (
                Box::new(|facts: &mut Facts| waits(facts, 99, 1, 1)),
                "waits with facts 1 to 1 of 0 that are settled",
            ),
        ] {
            let mut facts = super::super::fixture::clean_facts();
            break_it(&mut facts);
            let found = super::super::fixture::violations(&facts);
            assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
        }
    }

    #[test]
    fn i10_finds_a_log_that_says_something_else() {
        assert_each(&[
            (
                |facts| drop(sale_of(facts).log.remove(&order_number(1))),
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says []",
                ],
            ),
            (
                |facts| {
                    let told = sale_of(facts).log.get_mut(&order_number(1)).unwrap();
                    let again = told[1].clone();
                    told.push(again);
                },
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says \
                   [1 made, 2 paid, 3 refund_made, 4 refunded, 2 paid]",
                ],
            ),
            (
                |facts| {
                    let told = sale_of(facts).log.get_mut(&order_number(1)).unwrap();
                    told[1].1.amount_minor = Some(1);
                },
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says \
                   [1 made, 2 paid, 3 refund_made, 4 refunded]",
                ],
            ),
            (
                |facts| {
                    let told = sale_of(facts).log.remove(&order_number(1)).unwrap();
                    sale_of(facts).log.insert(order_number(8), told);
                },
                &[
                    "I10 g1: order 1 has settled 4 of [made, paid, refund_made, refunded] and the log says []",
                    "I10 g1: order 8 is in the log and does not exist",
                ],
            ),
            (
                |facts| drop(sale_of(facts).transfers.pop_first()),
                &[
                    "I10 g1: the sale has 0 EUR booked from fees to owed as commission_back, and its orders tell 2",
                ],
            ),
            (
                |facts| order_of(facts, 1).merchant.1 = 0,
                &[
                    "I10 g1: the sale has 143 EUR booked from provider:stripe to merchant:opera:g1 as sale, and its orders tell 150",
                    "I10 g1: the sale has 2 EUR booked from fees to owed as commission_back, and its orders tell 0",
                    "I10 g1: the sale has 48 EUR booked from merchant:opera:g1 to owed as refund, and its orders tell 50",
                    "I10 g1: the sale has 7 EUR booked from provider:stripe to fees as commission, and its orders tell 0",
                ],
            ),
            (
                |facts| {
                    order_of(facts, 3).settled = 0;
                    drop(sale_of(facts).log.remove(&order_number(3)));
                },
                &["I10 g1: order 3 has a fact that was never settled"],
            ),
            (
                |facts| assert!(facts.log_positions.get_mut(&0).unwrap().remove(&2)),
                &["I10 position 2 of shard 0 of the log is missing"],
            ),
        ]);
    }
}
