//! Wallets in I8, I9 and I10: each has what its entries come to, no less than nothing, and an entry for each fact
//! of an order that moves it.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::number::OrderNumber;
use engine::domain::order::OrderState;
use engine::domain::order::fact::FactKind;
use engine::domain::sale::LostDispute;

use super::super::facts::{
    AccountFact, EntryFact, Facts, OrderFact, PaymentFact, SaleFacts, TicketFact, ToldFact,
    WalletEntryFact, WalletFact, WalletKey,
};
use super::super::violation::Subject;
use super::Finding;

/// Who sells and who pays with wallets: not asked of the engine, which is audited.
const WALLET: &str = "wallet";

fn subject((user, currency): &WalletKey) -> Subject {
    Subject::Record { record: format!("the wallet of {user} in {currency}") }
}

/// I8: a wallet has what its entries come to.
pub(super) fn are_their_entries(facts: &Facts, finding: &mut Finding) {
    let mut sums: BTreeMap<&WalletKey, EntryFact> = BTreeMap::new();
    for entry in &facts.wallet_entries {
        let sum = sums.entry(&entry.wallet).or_default();
        let amount = i128::from(entry.amount_minor);
        sum.incoming += amount.max(0);
        sum.outgoing += (-amount).max(0);
    }
    let keys: BTreeSet<&WalletKey> = facts.wallets.keys().chain(sums.keys().copied()).collect();
    for key in keys {
        finding.checked += 1;
        let expected = sums.get(key).copied().unwrap_or_default();
        let EntryFact { incoming, outgoing } = expected;
        let found = facts.wallets.get(key).copied().unwrap_or_default();
        if found != (WalletFact { entry: expected, balance: incoming - outgoing }) {
            let what = format!(
                "has {} in, {} out and {} left, and its entries come to {incoming} and {outgoing}",
                found.entry.incoming, found.entry.outgoing, found.balance
            );
            finding.add_stray(subject(key), what);
        }
    }
}

/// I8: the accounts of wallets have what the settled facts move of them, if every order is audited. The accounts follow
/// the rules of the ledger and the wallets their own: this is where they meet.
pub(super) fn are_on_the_accounts(facts: &Facts, finding: &mut Finding) {
    if !facts.elsewhere.is_empty() {
        return;
    }
    let mut sums: BTreeMap<String, i128> = BTreeMap::new();
    for AccountFact { part: (account, currency, _), balance, .. } in &facts.accounts {
        let is_of_wallets = account.starts_with("merchant:wallet:") || account == "provider:wallet";
        if is_of_wallets {
            *sums.entry(currency.clone()).or_default() += balance;
        }
    }
    for order in facts.sales.values().flat_map(|sale| sale.orders.values()) {
        let settled = usize::try_from(order.settled).unwrap_or(usize::MAX);
        let told: Vec<ToldFact> = order.told.iter().take(settled).cloned().collect();
        for (_, amount, _) in moved_by(&OrderFact { told, ..order.clone() }) {
            *sums.entry(order.total.currency.to_string()).or_default() -= i128::from(amount);
        }
    }
    for (currency, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
        let record = format!("the accounts of wallets in {currency}");
        let what = format!("have {sum} more than the settled facts moved of the wallets");
        finding.add_stray(Subject::Record { record }, what);
    }
}

/// I9: a wallet has no less than nothing, but for what lost disputes have taken.
pub(super) fn are_within_limits(facts: &Facts, finding: &mut Finding) {
    let mut gone: BTreeMap<&WalletKey, i128> = BTreeMap::new();
    for entry in facts.wallet_entries.iter().filter(|entry| entry.is_gone) {
        *gone.entry(&entry.wallet).or_default() -= i128::from(entry.amount_minor);
    }
    for (key, WalletFact { balance, .. }) in &facts.wallets {
        finding.checked += 1;
        if balance + gone.get(key).copied().unwrap_or(0) < 0 {
            finding.add_stray(subject(key), format!("has {balance}"));
        }
        if *balance < 0
            && facts.elsewhere.is_empty()
            && let Some(order) = unused_of(facts, key)
        {
            let what =
                format!("owes {}, and order {order} that it paid has an unused ticket", -balance);
            finding.add_stray(subject(key), what);
        }
    }
}

/// An order that a wallet has paid and that has a ticket which nobody has used and which is worth something: a debt takes it.
fn unused_of(facts: &Facts, (user, currency): &WalletKey) -> Option<OrderNumber> {
    let takes = |sale: &&SaleFacts| sale.sale.file().lost_dispute != LostDispute::Keeps;
    let orders = facts.sales.values().filter(takes).flat_map(|sale| sale.orders.values());
    let mut theirs = orders.filter(|order| {
        let is_paid = order.user.as_str() == user && order.state == OrderState::Paid;
        let by = order.payment.as_ref().filter(|payment| payment.provider.as_str() == WALLET);
        let is_worth = |payment: &PaymentFact| {
            Some(&payment.key) == by && payment.amount.amount_minor > payment.back_minor
        };
        let is_unused = |ticket: &TicketFact| ticket.refund.is_none() && ticket.check_in.is_none();
        is_paid
            && order.total.currency.to_string() == *currency
            && facts.payments.iter().any(is_worth)
            && order.tickets.iter().any(is_unused)
    });
    theirs.next().map(|order| order.number)
}

/// What the facts of an order move of its buyer's wallet: the name of the entry, the amount, and if it is taken
/// whatever the wallet has.
fn moved_by(order: &OrderFact) -> Vec<(String, i64, bool)> {
    let fills = order.merchant.0 == WALLET;
    let mut moved = Vec::new();
    for told in &order.told {
        let (Some((provider, payment)), Some(amount)) = (&told.payment, told.amount_minor) else {
            continue;
        };
        let pays = provider == WALLET;
        let is_paid = matches!(told.kind, FactKind::Paid | FactKind::Rescued);
        let amount = if is_paid && fills || told.kind == FactKind::Refunded && pays {
            amount
        } else if is_paid && pays && !order.is_moved(payment)
            || told.kind == FactKind::RefundMade && fills
        {
            -amount
        } else {
            0
        };
        let refund = told.refund.map(|refund| format!("r{refund}-")).unwrap_or_default();
        let name = format!("{}-{refund}{}", order.number, told.kind.as_str());
        let is_gone = told.kind == FactKind::RefundMade && told.by == "provider";
        if amount != 0 {
            moved.push((name, amount, is_gone));
        }
    }
    moved
}

/// I10: an entry for each fact that moves a wallet, and for nothing else.
pub(super) fn are_what_orders_say(facts: &Facts, finding: &mut Finding) {
    let mut entries: BTreeMap<&str, &WalletEntryFact> = BTreeMap::new();
    for entry in &facts.wallet_entries {
        if facts.elsewhere.contains(&entry.order) {
            continue;
        }
        if entries.insert(&entry.name, entry).is_some() {
            let what = format!("has entry {}, which another has too", entry.name);
            finding.add_stray(subject(&entry.wallet), what);
        }
    }
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let wallet = (order.user.to_string(), order.total.currency.to_string());
            for (name, amount, is_gone) in moved_by(order) {
                finding.checked += 1;
                let found = entries.remove(name.as_str());
                let is_it = |entry: &&WalletEntryFact| {
                    entry.wallet == wallet
                        && entry.order == order.number
                        && (entry.amount_minor, entry.is_gone) == (amount, is_gone)
                };
                if found.filter(is_it).is_none() {
                    let found = found.map(|entry| entry.amount_minor);
                    let what = format!("tells of {amount} as {name}, and its entry is {found:?}");
                    finding.add(sale, Subject::Order { order: order.number }, what);
                }
            }
        }
    }
    for (name, entry) in entries {
        let what = format!("has entry {name} of {}, which no order tells", entry.amount_minor);
        finding.add_stray(subject(&entry.wallet), what);
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::order::PaymentKey;

    use super::super::fixture::{clean_facts, euros, order_number, order_of, told, violations};
    use super::*;

    fn change(facts: &mut Facts, entry: (u64, &str), amount: i64, is_gone: bool) {
        let (order, kind) = entry;
        let order = super::super::fixture::order_number(order);
        let wallet = ("bob".to_owned(), "EUR".to_owned());
        let found = facts.wallets.entry(wallet.clone()).or_default();
        found.balance += i128::from(amount);
        found.entry.incoming += i128::from(amount.max(0));
        found.entry.outgoing += i128::from((-amount).max(0));
        let name = format!("{order}-{kind}");
        let entry = WalletEntryFact { wallet, name, order, amount_minor: amount, is_gone };
        facts.wallet_entries.push(entry);
    }

    /// Bob's wallet was filled with 80 by order 2, which is not settled; a dispute has taken 90 of another one.
    fn filled() -> Facts {
        let mut facts = clean_facts();
        let order = order_of(&mut facts, 2);
        order.merchant.0 = WALLET.to_owned();
        let paid = ToldFact {
            payment: Some(("stripe".to_owned(), "pi_2".to_owned())),
            amount_minor: Some(80),
            ..told(FactKind::Paid)
        };
        order.told.push(paid);
        change(&mut facts, (2, "paid"), 80, false);
        facts.elsewhere.insert(super::super::fixture::order_number(77));
        change(&mut facts, (77, "r1-refund_made"), -90, true);
        facts
    }

    #[test]
    fn a_wallet_that_is_in_order_breaks_no_rule() {
        assert_eq!(violations(&filled()), [""; 0]);
    }

    #[test]
    fn the_accounts_of_wallets_have_what_the_settled_facts_moved() {
        let filled = |settled: u32| {
            let mut facts = filled();
            facts.elsewhere.clear();
            facts.wallets.clear();
            facts.wallet_entries.clear();
            order_of(&mut facts, 2).settled = settled;
            let mut finding = Finding::new(super::super::super::violation::Rule::I8);
            are_on_the_accounts(&facts, &mut finding);
            finding.violations.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(filled(1), [""; 0]);
        let what = "I8 the accounts of wallets in EUR have -80 more than the settled facts moved of the wallets";
        assert_eq!(filled(2), [what]);
    }

    #[test]
    fn what_a_wallet_lacks_or_has_too_much_is_named() {
        type Change = fn(&mut Facts);
        let cases: [(Change, &[&str]); 6] = [
            (
                |facts| facts.wallets.values_mut().next().unwrap().balance += 1,
                &[
                    "I8 the wallet of bob in EUR has 80 in, 90 out and -9 left, and its entries come to 80 and 90",
                ],
            ),
            (
                |facts| facts.wallets.clear(),
                &[
                    "I8 the wallet of bob in EUR has 0 in, 0 out and 0 left, and its entries come to 80 and 90",
                ],
            ),
            (
                |facts| facts.wallet_entries[1].is_gone = false,
                &["I9 the wallet of bob in EUR has -10"],
            ),
            (
                |facts| {
                    change(facts, (2, "paid"), 80, false);
                    facts.wallet_entries[2].name = "2-rescued".to_owned();
                },
                &["I10 the wallet of bob in EUR has entry 2-rescued of 80, which no order tells"],
            ),
            (
                |facts| {
                    facts.wallets.values_mut().next().unwrap().entry.incoming = 70;
                    facts.wallets.values_mut().next().unwrap().balance = -20;
                    facts.wallet_entries[0].amount_minor = 70;
                },
                &["I10 g1: order 2 tells of 80 as 2-paid, and its entry is Some(70)"],
            ),
            (
                |facts| {
                    facts.wallets.clear();
                    facts.wallet_entries.clear();
                },
                &["I10 g1: order 2 tells of 80 as 2-paid, and its entry is None"],
            ),
        ];
        for (break_it, expected) in cases {
            let mut facts = filled();
            break_it(&mut facts);
            assert_eq!(violations(&facts), expected);
        }
    }

    #[test]
    fn i9_finds_a_wallet_with_a_debt_whose_buyer_has_an_unused_ticket() {
        let owes = |facts: &Facts| -> Vec<String> {
            let found = violations(facts).into_iter();
            found.filter(|what| what.contains("owes")).collect()
        };
        let mut facts = filled();
        facts.elsewhere.clear();
        let (user, key) = {
            let order = order_of(&mut facts, 1);
            let key = PaymentKey {
                provider: WALLET.parse().unwrap(),
                payment: order.number.to_string().parse().unwrap(),
            };
            order.payment = Some(key.clone());
            order.total = euros(150);
            (order.user.to_string(), key)
        };
        facts.payments[0].key = key;
        let wallet = (user.clone(), "EUR".to_owned());
        assert_eq!(owes(&facts), [""; 0], "it owes nothing");
        facts.wallets.entry(wallet).or_default().balance = -10;
        let what = format!(
            "I9 the wallet of {user} in EUR owes 10, and order {} that it paid has an unused ticket",
            order_number(1)
        );
        assert_eq!(owes(&facts), [what]);
        for ticket in &mut order_of(&mut facts, 1).tickets {
            ticket.check_in = Some((0, "north".to_owned()));
        }
        assert_eq!(owes(&facts), [""; 0], "they have let somebody in");
    }
}
