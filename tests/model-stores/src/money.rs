//! What the accounts must say, by what the provider has.

use std::collections::BTreeMap;

use engine::domain::ledger::{Account, Balance};
use engine::domain::money::{Currency, MinorUnits, Money};

use crate::Stores;

/// What is wrong with the accounts when every fact is settled (I8 and I10): the sum of all is not nothing, a
/// balance is below nothing that must not be, or the providers have other money of orders than they say.
#[must_use]
pub fn accounts_at_rest(stores: &Stores) -> Option<String> {
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    let mut at_providers: BTreeMap<Currency, i128> = BTreeMap::new();
    for ((account, currency), balance) in &stores.orders.accounts {
        *sums.entry(*currency).or_default() += balance.left();
        match account {
            Account::Provider(_) => {
                *at_providers.entry(*currency).or_default() -= balance.left();
            }
            known if balance.left() < 0 && !known.may_be_below_nothing() => {
                return Some(format!("{account} has {balance:?}"));
            }
            // No order's fact moves anything on the last two.
            Account::Merchant(..) | Account::Fees | Account::Owed | Account::Disputed => {}
            Account::Bank | Account::Costs => return Some(format!("{account} was written")),
        }
    }
    if sums.values().any(|sum| *sum != 0) {
        return Some(format!("all accounts together have {sums:?}"));
    }
    at_providers.retain(|_, sum| *sum != 0);
    let expected = money_at_providers(stores);
    (at_providers != expected)
        .then(|| format!("providers have {expected:?}, the accounts say {at_providers:?}"))
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

/// What is wrong with the accounts at any time: they have something else than the settled facts of the orders
/// and the captures of no order come to.
#[must_use]
pub fn accounts_as_told(stores: &Stores) -> Option<String> {
    let expected: BTreeMap<(Account, Currency), Balance> = stores.orders.booked();
    let found = &stores.orders.accounts;
    (expected != *found)
        .then(|| format!("what was settled comes to {expected:?}, accounts have {found:?}"))
}
