//! The port to the admission gate in Redis.

use std::future::Future;

use super::Stored;
use crate::domain::admission::gate::tokens::{AddTokens, AddTokensReply, TokenCounts};
use crate::domain::admission::gate::{Admit, AdmitReply};
use crate::domain::basics::ids::SaleId;

/// The admission gate (Redis, on slots of its own). The rules are in [`crate::domain::admission::gate`].
pub trait Gate: Send + Sync {
    /// Asks one shard of a sale's gate to admit a buyer.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn admit(&self, command: &Admit) -> impl Future<Output = Stored<AdmitReply>> + Send;
    /// Adds tokens to one shard by hand. An addition with the same id is made once, however often it is sent.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn add_tokens(
        &self,
        command: &AddTokens,
    ) -> impl Future<Output = Stored<AddTokensReply>> + Send;
    /// The tokens that the shards of a sale's gate have counted: one entry for each shard that has counts.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn tokens(
        &self,
        sale: &SaleId,
        shards: u16,
    ) -> impl Future<Output = Stored<Vec<TokenCounts>>> + Send;
    /// Removes the shards of the gate of an archived sale. The locks of its buyers expire by themselves.
    ///
    /// # Errors
    /// Fails with a [`StoreError`](super::StoreError).
    fn close(&self, sale: &SaleId, shards: u16) -> impl Future<Output = Stored<()>> + Send;
}
