//! The port to the accounts of the ledger in DynamoDB, for postings: transfers between two accounts that do not
//! follow from a fact of an order.

use std::future::Future;

use super::Stored;
use crate::domain::basics::ids::PostingKey;
use crate::domain::basics::money::Currency;
use crate::domain::ledger::posting::Posting;
use crate::domain::ledger::{Account, Balance};

/// What an account had in one currency when it was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SeenAccount {
    /// The balance in minor units, from postings and from the facts of orders together.
    pub has: i128,
    /// The part of the balance that postings have moved.
    pub posted: Balance,
    /// The number of postings on the account; 0 if there was none.
    pub version: u64,
}

/// The reply to a posting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PostReply {
    /// The posting and both accounts are written.
    Made,
    /// An earlier posting has this key: this one.
    Known(Posting),
    /// Another posting has changed one of the accounts since they were read, or is changing it now. Nothing is
    /// written.
    Conflict,
}

/// The accounts (DynamoDB).
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened. Repeating the
/// call with the same key is safe.
pub trait Accounts: Send + Sync {
    /// An account in one currency, strongly consistent.
    fn account(
        &self,
        account: &Account,
        currency: Currency,
    ) -> impl Future<Output = Stored<SeenAccount>> + Send;
    /// The posting with a key; `None` if there is none.
    fn posting(&self, key: &PostingKey) -> impl Future<Output = Stored<Option<Posting>>> + Send;
    /// Writes a posting and both of its accounts, if no posting has its key and neither account has changed since
    /// it was read. `seen` has first the account whose balance falls, then the account whose balance rises.
    fn post(
        &self,
        posting: &Posting,
        seen: [SeenAccount; 2],
    ) -> impl Future<Output = Stored<PostReply>> + Send;
}
