//! I9: no balance is below its limit.

use std::collections::BTreeMap;

use super::super::facts::{AccountFact, Facts, POSTED};
use super::super::violation::{Rule, Subject};
use super::{Finding, wallets};

/// What others have of ours, by which they are below nothing: not asked of the engine, which is audited.
const OF_OTHERS: [&str; 3] = ["bank", "costs", "disputed"];

/// I9: no account is below nothing but those that are what somebody else has of ours. What a merchant was paid is
/// left aside, since refunds may come after it; nothing comes back of it that was not paid.
#[must_use]
pub fn balances_are_within_limits(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I9);
    let mut balances: BTreeMap<(&str, &str), i128> = BTreeMap::new();
    let mut come_back: BTreeMap<(&str, &str), i128> = BTreeMap::new();
    for AccountFact { part: (account, currency, name), balance, .. } in &facts.accounts {
        let is_paid = name == POSTED && account.starts_with("merchant:");
        let sums = if is_paid { &mut come_back } else { &mut balances };
        *sums.entry((account, currency)).or_default() += balance;
    }
    for ((account, currency), balance) in balances {
        finding.checked += 1;
        let is_of_others = account.starts_with("provider:") || OF_OTHERS.contains(&account);
        if balance < 0 && !is_of_others {
            let record = format!("account {account} in {currency}");
            finding.add_stray(Subject::Record { record }, format!("has {balance}"));
        }
    }
    for ((account, currency), back) in come_back {
        finding.checked += 1;
        if back > 0 {
            let record = format!("account {account} in {currency}");
            let what = format!("was settled less than came back of it, by {back}");
            finding.add_stray(Subject::Record { record }, what);
        }
    }
    wallets::are_within_limits(facts, &mut finding);
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
    fn what_others_have_of_ours_may_be_below_nothing_and_a_merchant_by_what_it_was_paid() {
        for (from, to, amount) in [
            ("bank", "provider:stripe", 60),
            ("merchant:opera:g1", "bank", 96),
            // An open dispute is normal business.
            ("disputed", "provider:stripe", 380),
        ] {
            let mut facts = clean_facts();
            post(&mut facts, from, to, amount);
            assert_eq!(violations(&facts), [""; 0], "{from}");
        }
        let mut facts = clean_facts();
        post(&mut facts, "fees", "costs", 6);
        assert_eq!(violations(&facts), ["I9 account fees in EUR has -1"]);
    }

    #[test]
    fn a_merchant_that_was_paid_gives_back_no_more_of_its_sale_than_it_had() {
        let mut facts = clean_facts();
        post(&mut facts, "merchant:opera:g1", "bank", 1);
        for part in &mut facts.accounts {
            let by = match part.part.0.as_str() {
                "merchant:opera:g1" if part.part.2 == "0" => 96,
                "owed" => -96,
                _ => 0,
            };
            let entry = facts.booked.get_mut(&part.part).unwrap();
            (entry.outgoing, part.entry.outgoing) = (entry.outgoing + by, part.entry.outgoing + by);
            part.balance -= by;
        }
        assert_eq!(violations(&facts), ["I9 account merchant:opera:g1 in EUR has -1"]);
        let mut facts = clean_facts();
        post(&mut facts, "bank", "merchant:opera:g1", 2);
        let what =
            "I9 account merchant:opera:g1 in EUR was settled less than came back of it, by 2";
        assert_eq!(violations(&facts), [what]);
    }

    #[test]
    fn a_name_that_is_no_account_has_the_limit_of_all() {
        let mut facts = clean_facts();
        post(&mut facts, "somebody", "bank", 1);
        assert_eq!(violations(&facts), ["I9 account somebody in EUR has -1"]);
    }
}
