//! I9: no balance is below its limit.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::ledger::Account;

use super::super::facts::{AccountFact, Facts, POSTED};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I9: no account is below nothing but those that are what somebody else has of ours, and that of a merchant who
/// was paid out before refunds.
#[must_use]
pub fn balances_are_within_limits(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I9);
    let mut balances: BTreeMap<(&str, &str), i128> = BTreeMap::new();
    let mut settled: BTreeSet<(&str, &str)> = BTreeSet::new();
    for AccountFact { part: (account, currency, name), entry, balance } in &facts.accounts {
        *balances.entry((account, currency)).or_default() += balance;
        if name == POSTED && entry.outgoing > 0 {
            settled.insert((account, currency));
        }
    }
    for ((account, currency), balance) in balances {
        finding.checked += 1;
        let may_be_below = match account.parse() {
            Ok(Account::Merchant(..)) => settled.contains(&(account, currency)),
            Ok(known) => known.may_be_below_nothing(),
            Err(_) => false,
        };
        if balance < 0 && !may_be_below {
            let record = format!("account {account} in {currency}");
            finding.add_stray(Subject::Record { record }, format!("has {balance}"));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::EntryFact;
    use super::super::fixture::{assert_each, clean_facts, violations};
    use super::*;

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

    /// Moves an amount by a posting.
    fn post(facts: &mut Facts, from: &str, to: &str, amount: i128) {
        for (account, incoming, outgoing) in [(from, 0, amount), (to, amount, 0)] {
            let part = (account.to_owned(), "EUR".to_owned(), POSTED.to_owned());
            let entry = EntryFact { incoming, outgoing };
            facts.booked.insert(part.clone(), entry);
            facts.accounts.push(AccountFact { part, entry, balance: incoming - outgoing });
        }
    }

    #[test]
    fn what_others_have_of_ours_and_a_merchant_that_was_paid_may_be_below_nothing() {
        let mut facts = clean_facts();
        post(&mut facts, "bank", "provider:stripe", 60);
        post(&mut facts, "merchant:opera:g1", "bank", 96);
        assert_eq!(violations(&facts), [""; 0]);
        post(&mut facts, "fees", "costs", 6);
        assert_eq!(violations(&facts), ["I9 account fees in EUR has -1"]);
    }

    #[test]
    fn a_name_that_is_no_account_has_the_limit_of_all() {
        let mut facts = clean_facts();
        post(&mut facts, "somebody", "bank", 1);
        assert_eq!(violations(&facts), ["I9 account somebody in EUR has -1"]);
    }
}
