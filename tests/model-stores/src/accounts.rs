//! The accounts as postings see them: both of a posting and its key change in one transaction, under what was read.

use std::collections::BTreeMap;

use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::PostingKey;
use engine::domain::basics::money::Currency;
use engine::domain::ledger::posting::Posting;
use engine::domain::ledger::{Account, Balance, Transfer};
use engine::ports::{PostReply, SeenAccount};

/// What the accounts have, and each posting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountsModel {
    /// What the facts of orders moved.
    pub moved: BTreeMap<(Account, Currency), Balance>,
    /// What postings moved, with their number: the part that they write.
    pub posted: BTreeMap<(Account, Currency), (Balance, u64)>,
    /// The postings by key.
    pub postings: BTreeMap<PostingKey, Posting>,
}

impl AccountsModel {
    /// An account in one currency.
    #[must_use]
    pub fn account(&self, account: &Account, currency: Currency) -> SeenAccount {
        let key = (account.clone(), currency);
        let (posted, version) = self.posted.get(&key).copied().unwrap_or_default();
        let moved = self.moved.get(&key).copied().unwrap_or_default();
        SeenAccount { has: moved.left() + posted.left(), posted, version }
    }

    /// The posting of a key.
    #[must_use]
    pub fn posting(&self, key: &PostingKey) -> Option<Posting> {
        self.postings.get(key).cloned()
    }

    /// Makes a posting, if there is none of its key and both accounts are as they were read.
    pub fn post(&mut self, posting: &Posting, seen: [SeenAccount; 2]) -> PostReply {
        if let Some(made) = self.posting(&posting.key)
            && stands(Guard::PostingOnce)
        {
            return PostReply::Known(made);
        }
        let Transfer { from, to, amount, .. } = &posting.transfer;
        let is_as_read = |(account, seen): (&Account, SeenAccount)| {
            let now = self.account(account, amount.currency);
            (now.version, now.posted.left()) == (seen.version, seen.posted.left())
        };
        if stands(Guard::AccountSeen) && ![from, to].into_iter().zip(seen).all(is_as_read) {
            return PostReply::Conflict;
        }
        let moved = i128::from(amount.amount_minor);
        let falls = Balance { outgoing: moved, ..Balance::default() };
        let rises = Balance { incoming: moved, ..Balance::default() };
        for ((account, more), seen) in [(from, falls), (to, rises)].into_iter().zip(seen) {
            // What is written is what was read and this: nobody adds.
            let next = (seen.posted.with(more), seen.version + 1);
            self.posted.insert((account.clone(), amount.currency), next);
        }
        self.postings.insert(posting.key.clone(), posting.clone());
        PostReply::Made
    }
}
