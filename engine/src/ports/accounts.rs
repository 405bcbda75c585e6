//! The port to the accounts of the ledger, for postings: transfers that no order's fact moves.

use std::future::Future;

use super::Stored;
use crate::domain::basics::ids::PostingKey;
use crate::domain::basics::money::Currency;
use crate::domain::ledger::posting::Posting;
use crate::domain::ledger::{Account, Balance};

/// An account in one currency, as it was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SeenAccount {
    /// What it has, with what the facts of orders moved.
    pub has: i128,
    /// What postings have moved on it.
    pub posted: Balance,
    /// How many postings; 0 if there was none.
    pub version: u64,
}

/// The reply to a posting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PostReply {
    /// It is made.
    Made,
    /// There was one of its key before.
    Known(Posting),
    /// Another posting was on one of the accounts since they were read, or was at work on it.
    Conflict,
}

/// The accounts (DynamoDB).
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened: with the same
/// key it is safe to repeat.
pub trait Accounts: Send + Sync {
    /// An account in one currency, strongly consistent.
    fn account(
        &self,
        account: &Account,
        currency: Currency,
    ) -> impl Future<Output = Stored<SeenAccount>> + Send;
    /// The posting of a key.
    fn posting(&self, key: &PostingKey) -> impl Future<Output = Stored<Option<Posting>>> + Send;
    /// Writes a posting and both of its accounts, if there is none of its key, and if no posting was on either
    /// account since it was read: the one whose balance falls, then the other one.
    fn post(
        &self,
        posting: &Posting,
        seen: [SeenAccount; 2],
    ) -> impl Future<Output = Stored<PostReply>> + Send;
}
