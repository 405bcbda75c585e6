//! I9: no balance is below its limit.

use std::collections::BTreeMap;

use super::super::facts::{AccountFact, Facts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I9: no account but that of a provider, which is what the provider has of others, is below nothing.
#[must_use]
pub fn balances_are_within_limits(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I9);
    let mut balances: BTreeMap<(&str, &str), i128> = BTreeMap::new();
    for AccountFact { part: (account, currency, _), balance, .. } in &facts.accounts {
        *balances.entry((account, currency)).or_default() += balance;
    }
    for ((account, currency), balance) in balances {
        finding.checked += 1;
        if balance < 0 && !account.starts_with("provider:") {
            let record = format!("account {account} in {currency}");
            finding.add_stray(Subject::Record { record }, format!("has {balance}"));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::fixture::assert_each;

    #[test]
    fn i9_finds_a_balance_below_its_limit() {
        assert_each(&[(
            |facts| {
                for part in &mut facts.accounts {
                    let is_taken = part.part.0 == "owed";
                    let is_given = part.part.0 == "fees";
                    let by = i128::from(is_given) - i128::from(is_taken);
                    let entry = facts.booked.get_mut(&part.part).unwrap();
                    entry.incoming += by;
                    part.entry.incoming += by;
                    part.balance += by;
                }
            },
            &["I9 account owed in EUR has -1"],
        )]);
    }
}
