//! The ports of a waiting room: its memberships, tree and log in DynamoDB, and the beacon.

use std::future::Future;

use super::Stored;
use crate::domain::admission::room::code::{CodeShard, CodeUses};
use crate::domain::admission::room::join::{BUCKETS, Membership, Replaced, TakenIndices, Tree};
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::visit::{Enter, EnterReply};
use crate::domain::basics::bytes::{Hash, Secret, Signature};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};

/// The reply to appending a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AppendReply {
    /// It is the record of its number, now or since an attempt whose answer was lost.
    Appended,
    /// Another record has its number: read the last one again.
    Conflict,
}

/// A page of the memberships in a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct MembershipPage {
    /// The memberships, of every group, by buyer.
    pub memberships: Vec<Membership>,
    /// The buyer after whom the next page begins; `None` at the end.
    pub next: Option<UserId>,
}

/// The rooms (DynamoDB). Every read is strongly consistent. What is written once stays as it was first
/// written: secret, records, the count of a closing, chunks, trees.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Rooms: Send + Sync {
    /// Keeps the secret of a sale if it has none. Returns the one that is kept.
    fn keep_secret(
        &self,
        sale: &SaleId,
        secret: &Secret,
    ) -> impl Future<Output = Stored<Secret>> + Send;
    /// The secret of a sale. Only publication and draw may read it.
    fn secret(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Secret>>> + Send;
    /// Appends a record to the log of a sale, if there is none with its number.
    fn append(
        &self,
        sale: &SaleId,
        record: &Record,
    ) -> impl Future<Output = Stored<AppendReply>> + Send;
    /// A record of the log, by its number.
    fn record(
        &self,
        sale: &SaleId,
        number: u64,
    ) -> impl Future<Output = Stored<Option<Record>>> + Send;
    /// Records of the log in order, from a number on: `most` of them, fewer at the end.
    fn records(
        &self,
        sale: &SaleId,
        from: u64,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Record>>> + Send;
    /// The record of the log with the highest number.
    fn last_record(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Record>>> + Send;

    /// Takes neighbouring indices, `count` of them, at the counter of a group. A lost answer leaves a gap.
    fn take_indices(
        &self,
        sale: &SaleId,
        group: &GroupId,
        count: u16,
    ) -> impl Future<Output = Stored<TakenIndices>> + Send;
    /// Closes the first window at the counter of a group, if it is open. Returns N: the number of indices
    /// that were given before.
    fn close_window(
        &self,
        sale: &SaleId,
        group: &GroupId,
    ) -> impl Future<Output = Stored<u32>> + Send;

    /// The membership of a buyer, who is in this bucket.
    fn membership(
        &self,
        sale: &SaleId,
        bucket: u16,
        buyer: &UserId,
    ) -> impl Future<Output = Stored<Option<Membership>>> + Send;
    /// Writes a membership if its buyer has none, or the one of the index that it `replaces` in its group.
    /// Returns the one that is kept.
    fn join(
        &self,
        membership: &Membership,
        bucket: u16,
        replaces: Option<Replaced>,
    ) -> impl Future<Output = Stored<Membership>> + Send;
    /// The uses of a shard of a code in a group; `None` if there is no such code.
    fn code(
        &self,
        sale: &SaleId,
        group: &GroupId,
        shard: CodeShard,
    ) -> impl Future<Output = Stored<Option<CodeUses>>> + Send;
    /// Writes a membership if its buyer has none, and uses a shard of a code once for it: both or neither.
    /// Returns the membership that is kept; one that was there before uses no code. `None`, and nothing is
    /// written, if the shard may not be used any more.
    fn join_by_code(
        &self,
        membership: &Membership,
        bucket: u16,
        shard: CodeShard,
    ) -> impl Future<Output = Stored<Option<Membership>>> + Send;
    /// Writes an admission of a member: all of it is checked in one conditional write.
    fn enter(&self, enter: &Enter) -> impl Future<Output = Stored<EnterReply>> + Send;
    /// The number of indices that were given in a group.
    fn joined(&self, sale: &SaleId, group: &GroupId) -> impl Future<Output = Stored<u32>> + Send;
    /// Writes the marker of a bucket.
    fn mark(&self, sale: &SaleId, bucket: u16) -> impl Future<Output = Stored<()>> + Send;
    /// True if a bucket has its marker.
    fn is_marked(&self, sale: &SaleId, bucket: u16) -> impl Future<Output = Stored<bool>> + Send;
    /// A page of the memberships in a bucket, by buyer, after a buyer if one is named.
    fn memberships(
        &self,
        sale: &SaleId,
        bucket: u16,
        after: Option<&UserId>,
    ) -> impl Future<Output = Stored<MembershipPage>> + Send;

    /// Keeps a chunk of the leaves of a group if there is none of its number. Returns the one that is kept.
    fn keep_chunk(
        &self,
        sale: &SaleId,
        group: &GroupId,
        chunk: u32,
        leaves: &[Hash],
    ) -> impl Future<Output = Stored<Vec<Hash>>> + Send;
    /// A chunk of the leaves of a group, by its number.
    fn chunk(
        &self,
        sale: &SaleId,
        group: &GroupId,
        chunk: u32,
    ) -> impl Future<Output = Stored<Option<Vec<Hash>>>> + Send;
    /// Keeps the tree of a group if there is none. Returns the one that is kept.
    fn keep_tree(
        &self,
        sale: &SaleId,
        group: &GroupId,
        tree: &Tree,
    ) -> impl Future<Output = Stored<Tree>> + Send;
    /// The tree of a group.
    fn tree(
        &self,
        sale: &SaleId,
        group: &GroupId,
    ) -> impl Future<Output = Stored<Option<Tree>>> + Send;
}

/// A randomness beacon. A chain is named by its hash.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError), `Unavailable` if the beacon does not answer.
pub trait Beacon: Send + Sync {
    /// The number of the latest round that is out.
    fn latest(&self, chain: Hash) -> impl Future<Output = Stored<u64>> + Send;
    /// The signature of a round, which the adapter has verified with the chain's key; `None` if the round is
    /// not out.
    fn round(
        &self,
        chain: Hash,
        round: u64,
    ) -> impl Future<Output = Stored<Option<Signature>>> + Send;
    /// True if this is the signature of a round, by the chain's key alone: nobody is asked. Fails with
    /// `Contract` if the key is not known.
    fn verify(
        &self,
        chain: Hash,
        round: u64,
        signature: Signature,
    ) -> impl Future<Output = Stored<bool>> + Send;
}

/// What the flows of a waiting room are given. They need neither Redis nor queues, so that they run where
/// those cannot be reached.
pub trait RoomPorts: Send + Sync {
    /// The rooms.
    type Rooms: Rooms;
    /// The beacon.
    type Beacon: Beacon;

    /// The rooms.
    fn rooms(&self) -> &Self::Rooms;
    /// The beacon.
    fn beacon(&self) -> &Self::Beacon;
    /// The number of buckets of a sale's memberships; smaller only where all of them are gone through step
    /// by step.
    fn buckets(&self) -> u16 {
        BUCKETS
    }
}
