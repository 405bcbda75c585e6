//! What the accounts must say, by what the provider has.

use std::collections::BTreeMap;

use engine::domain::basics::ids::UserId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::ledger::points::Points;
use engine::domain::ledger::{Account, Balance};
use engine::domain::order::Order;
use engine::domain::order::refund::RefundState;

use crate::Stores;

/// What is wrong with the accounts when every fact is settled (I8 and I10): the sum of all is not nothing, a
/// balance is below nothing that must not be, or the providers have other money of orders than they say.
#[must_use]
pub fn accounts_at_rest(stores: &Stores) -> Option<String> {
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    let mut at_providers: BTreeMap<Currency, i128> = BTreeMap::new();
    let mut in_wallets: BTreeMap<Currency, i128> = BTreeMap::new();
    for ((account, currency), balance) in &stores.orders.accounts {
        *sums.entry(*currency).or_default() += balance.left();
        match account {
            Account::Provider(provider) if provider.is_wallet() => {
                *in_wallets.entry(*currency).or_default() += balance.left();
            }
            Account::Merchant(merchant, _) if merchant.is_wallet() => {
                *in_wallets.entry(*currency).or_default() += balance.left();
            }
            Account::Provider(_) => {
                *at_providers.entry(*currency).or_default() -= balance.left();
            }
            known if balance.left() < 0 && !known.may_be_below_nothing() => {
                return Some(format!("{account} has {balance:?}"));
            }
            Account::Merchant(..)
            | Account::Fees
            | Account::Owed
            | Account::Disputed
            | Account::Explained => {}
            // The bank has paid what an operator says that it has.
            Account::Bank if balance.left() == settled(stores, *currency) => {}
            // No order's fact moves anything on the costs.
            Account::Bank | Account::Costs => return Some(format!("{account} has {balance:?}")),
        }
    }
    if sums.values().any(|sum| *sum != 0) {
        return Some(format!("all accounts together have {sums:?}"));
    }
    for ((_, currency), wallet) in &stores.orders.wallets {
        let moved = wallet.entries.iter().map(|entry| entry.change.entry().left());
        *in_wallets.entry(*currency).or_default() -= moved.sum::<i128>();
    }
    if in_wallets.values().any(|sum| *sum != 0) {
        let wallets = &stores.orders.wallets;
        return Some(format!("the accounts of {wallets:?} have {in_wallets:?} besides"));
    }
    at_providers.retain(|_, sum| *sum != 0);
    let expected = money_at_providers(stores);
    (at_providers != expected)
        .then(|| format!("providers have {expected:?}, the accounts say {at_providers:?}"))
}

/// What operators say that they have paid otherwise.
fn settled(stores: &Stores, currency: Currency) -> i128 {
    let refunds = stores.orders.refunds.values();
    let parts = refunds.map(|refund| (refund.refund.state, refund.amount));
    let wholes = stores.orders.payments.values().filter_map(|record| {
        record.refund.as_ref().map(|refund| (refund.state, record.capture.amount))
    });
    let settled = parts
        .chain(wholes)
        .filter(|(state, amount)| *state == RefundState::Settled && amount.currency == currency);
    settled.map(|(_, amount)| i128::from(amount.amount_minor)).sum()
}

/// What providers have captured, without what they have sent back.
fn money_at_providers(stores: &Stores) -> BTreeMap<Currency, i128> {
    let provider = &stores.provider;
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    for capture in provider.captured.values() {
        let Money { amount_minor, currency } = capture.amount;
        let back = provider.refunded.contains_key(&capture.key);
        let parts = provider.back(&capture.key);
        let left = if back { MinorUnits::ZERO } else { amount_minor - parts };
        *sums.entry(currency).or_default() += i128::from(left);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// What is wrong with the wallets at any time (I8, I9), which began empty: one has something else than the facts of its buyer's orders
/// come to, or less than nothing.
#[must_use]
pub fn wallets_as_told(stores: &Stores) -> Option<String> {
    let mut expected: BTreeMap<(UserId, Currency), Balance> = BTreeMap::new();
    for order in stores.orders.orders.values() {
        for entry in order.wallet_entries() {
            let key = (order.user.clone(), order.total.currency);
            let sum = expected.entry(key).or_default();
            *sum = sum.with(entry.change.entry());
        }
    }
    let wallets = stores.orders.wallets.iter();
    let wallets: BTreeMap<_, _> =
        wallets.map(|(key, wallet)| (key.clone(), wallet.balance)).collect();
    if expected != wallets {
        return Some(format!("the orders' facts come to {expected:?}, wallets have {wallets:?}"));
    }
    // But for what lost disputes have taken.
    let gone = |(user, currency): &(UserId, Currency)| -> i128 {
        let theirs = stores.orders.wallets.get(&(user.clone(), *currency));
        let entries = theirs.into_iter().flat_map(|wallet| &wallet.entries);
        let gone = entries.filter(|entry| entry.change.is_gone);
        gone.map(|entry| -entry.change.entry().left()).sum()
    };
    let below = wallets.iter().find(|(key, balance)| balance.left() + gone(key) < 0);
    below.map(|((user, _), balance)| {
        let theirs = stores.orders.orders.values().filter(|order| order.user == *user);
        let entries: Vec<_> = theirs.flat_map(Order::wallet_entries).collect();
        format!("the wallet of {user} is below nothing, {balance:?}: {entries:?}")
    })
}

/// What is wrong with points at any time (I8): a buyer has something else than the orders have given.
#[must_use]
pub fn points_as_given(stores: &Stores) -> Option<String> {
    stores.orders.points.iter().find_map(|(user, statement)| {
        let nothing = Points::default();
        let given = statement.awards.values().map(|award| award.given);
        let given = given.fold(nothing, |sum, given| sum.replacing(nothing, given));
        (given != statement.has)
            .then(|| format!("{user} has {:?}, the orders have given {given:?}", statement.has))
    })
}

/// What is wrong with points at rest (I10): an order has given something else than its facts say.
#[must_use]
pub fn points_at_rest(stores: &Stores) -> Option<String> {
    stores.orders.orders.values().find_map(|order| {
        let given = stores.orders.awarded(&order.user, order.number).map(|award| award.given);
        let gives = order.award().map(|award| award.given);
        (given.unwrap_or_default() != gives.unwrap_or_default())
            .then(|| format!("{order:?} has given {given:?}"))
    })
}

/// What is wrong with the accounts at any time: they have something else than the settled facts of the orders
/// and the captures of no order come to.
#[must_use]
pub fn accounts_as_told(stores: &Stores) -> Option<String> {
    let expected: BTreeMap<(Account, Currency), Balance> = stores.orders.booked();
    let found = &stores.orders.accounts;
    (expected != *found)
        .then(|| format!("what was settled comes to {expected:?}, accounts have {found:?}"))
}
