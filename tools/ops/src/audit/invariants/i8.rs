//! I8: money is neither made nor lost.

use std::collections::BTreeMap;

use super::super::facts::{AccountFact, EntryFact, Facts};
use super::super::violation::{Rule, Subject};
use super::{Finding, points, wallets};

/// I8: each part of an account has what the transfers of its shard of the log come to, or the postings; all accounts
/// together have nothing, in every currency; each wallet has what its entries come to, and each buyer of points what the orders have given.
#[must_use]
pub fn accounts_are_their_transfers(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I8);
    let mut booked = facts.booked.clone();
    let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
    for AccountFact { part, entry, balance } in &facts.accounts {
        finding.checked += 1;
        let (account, currency, name) = part;
        *sums.entry(currency).or_default() += balance;
        let record = format!("account {account} in {currency}, part {name},");
        let EntryFact { incoming, outgoing } = booked.remove(part).unwrap_or_default();
        let found = (entry.incoming, entry.outgoing, *balance);
        if found != (incoming, outgoing, incoming - outgoing) {
            let what = format!(
                "has {} in, {} out and {balance} left, and its transfers come to {incoming} and {outgoing}",
                entry.incoming, entry.outgoing
            );
            finding.add_stray(Subject::Record { record }, what);
        }
    }
    for ((account, currency, name), _) in booked {
        let record = format!("account {account} in {currency}, part {name},");
        finding.add_stray(Subject::Record { record }, "is missing, and has transfers");
    }
    for (currency, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
        let record = format!("the ledger in {currency}");
        finding.add_stray(Subject::Record { record }, format!("has {sum} more than nothing"));
    }
    wallets::are_their_entries(facts, &mut finding);
    wallets::are_on_the_accounts(facts, &mut finding);
    points::are_what_was_given(facts, &mut finding);
    finding
}

#[cfg(test)]
mod tests {
    use super::super::fixture::assert_each;

    #[test]
    fn i8_finds_accounts_that_are_not_their_transfers() {
        assert_each(&[
            (
                |facts| {
                    facts.accounts[0].entry.incoming += 1;
                    facts.accounts[0].balance += 1;
                },
                &[
                    "I8 account fees in EUR, part 0, has 8 in, 2 out and 6 left, and its transfers come to 7 and 2",
                    "I8 the ledger in EUR has 1 more than nothing",
                ],
            ),
            (
                |facts| facts.accounts[0].balance = 7,
                &[
                    "I8 account fees in EUR, part 0, has 7 in, 2 out and 7 left, and its transfers come to 7 and 2",
                    "I8 the ledger in EUR has 2 more than nothing",
                ],
            ),
            (
                |facts| drop(facts.accounts.remove(0)),
                &[
                    "I8 account fees in EUR, part 0, is missing, and has transfers",
                    "I8 the ledger in EUR has -5 more than nothing",
                ],
            ),
            (
                |facts| {
                    let mut strange = facts.accounts[0].clone();
                    strange.part.2 = "3".to_owned();
                    facts.accounts.push(strange);
                },
                &[
                    "I8 account fees in EUR, part 3, has 7 in, 2 out and 5 left, and its transfers come to 0 and 0",
                    "I8 the ledger in EUR has 5 more than nothing",
                ],
            ),
        ]);
    }
}
