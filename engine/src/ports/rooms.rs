//! The ports of a waiting room: its secret, memberships, trees and log in DynamoDB, and the randomness beacon.

use std::future::Future;

use super::Stored;
use crate::domain::admission::room::code::{CodeShard, CodeUses};
use crate::domain::admission::room::join::{BUCKETS, Membership, Replaced, TakenIndices, Tree};
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::visit::{Enter, EnterReply};
use crate::domain::basics::bytes::{Hash, Secret, Signature};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};

/// The reply to [`Rooms::append`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AppendReply {
    /// The log has the record under its number: from this call, or from an earlier one whose answer was lost.
    Appended,
    /// The log has another record under the number. The caller reads the last record again.
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

/// The rooms (DynamoDB). Every read is strongly consistent. The first write of a secret, a record, the count of a
/// closed window, a chunk or a tree stays for good.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); `Unknown` if a write may have happened.
pub trait Rooms: Send + Sync {
    /// Keeps the secret of a sale if the sale has none. Returns the secret that the sale has now.
    fn keep_secret(
        &self,
        sale: &SaleId,
        secret: &Secret,
    ) -> impl Future<Output = Stored<Secret>> + Send;
    /// The secret of a sale; `None` if it has none. Only publication and draw may read it.
    fn secret(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Secret>>> + Send;
    /// Appends a record to the log of a sale, if the log has no record with its number.
    fn append(
        &self,
        sale: &SaleId,
        record: &Record,
    ) -> impl Future<Output = Stored<AppendReply>> + Send;
    /// The record of the log with a number; `None` if there is none.
    fn record(
        &self,
        sale: &SaleId,
        number: u64,
    ) -> impl Future<Output = Stored<Option<Record>>> + Send;
    /// The records of the log from number `from` on, in order: `most` of them, fewer at the end of the log.
    fn records(
        &self,
        sale: &SaleId,
        from: u64,
        most: u16,
    ) -> impl Future<Output = Stored<Vec<Record>>> + Send;
    /// The record of the log with the highest number; `None` if the log is empty.
    fn last_record(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Record>>> + Send;

    /// Takes the next `count` indices from the counter of a group. If the answer is lost, nobody gets those indices.
    fn take_indices(
        &self,
        sale: &SaleId,
        group: &GroupId,
        count: u16,
    ) -> impl Future<Output = Stored<TakenIndices>> + Send;
    /// Closes the first window at the counter of a group, if the window is open. Returns N: the number of indices
    /// that the counter gave before the closing.
    fn close_window(
        &self,
        sale: &SaleId,
        group: &GroupId,
    ) -> impl Future<Output = Stored<u32>> + Send;

    /// The membership of a buyer, whose bucket is `bucket`; `None` if the buyer has none.
    fn membership(
        &self,
        sale: &SaleId,
        bucket: u16,
        buyer: &UserId,
    ) -> impl Future<Output = Stored<Option<Membership>>> + Send;
    /// Writes a membership if its buyer has none, or if it `replaces` the buyer's index in its group.
    /// Returns the membership that the buyer has now.
    fn join(
        &self,
        membership: &Membership,
        bucket: u16,
        replaces: Option<Replaced>,
    ) -> impl Future<Output = Stored<Membership>> + Send;
    /// The uses of one shard of a code in a group; `None` if there is no such code.
    fn code(
        &self,
        sale: &SaleId,
        group: &GroupId,
        shard: CodeShard,
    ) -> impl Future<Output = Stored<Option<CodeUses>>> + Send;
    /// Writes a membership if its buyer has none, and counts one use of a shard of a code for it: both or neither.
    /// Returns the membership that the buyer has now; an earlier membership uses no code. Returns `None` and writes
    /// nothing if the shard has no use left.
    fn join_by_code(
        &self,
        membership: &Membership,
        bucket: u16,
        shard: CodeShard,
    ) -> impl Future<Output = Stored<Option<Membership>>> + Send;
    /// Writes an admission of a member. One conditional write checks every condition of it.
    fn enter(&self, enter: &Enter) -> impl Future<Output = Stored<EnterReply>> + Send;
    /// The number of indices that the counter of a group has given.
    fn joined(&self, sale: &SaleId, group: &GroupId) -> impl Future<Output = Stored<u32>> + Send;
    /// Writes the marker of a bucket: the draw is about to read the bucket's memberships.
    fn mark(&self, sale: &SaleId, bucket: u16) -> impl Future<Output = Stored<()>> + Send;
    /// True if a bucket has its marker.
    fn is_marked(&self, sale: &SaleId, bucket: u16) -> impl Future<Output = Stored<bool>> + Send;
    /// A page of the memberships in a bucket, by buyer; those behind the buyer `after`, if it is given.
    fn memberships(
        &self,
        sale: &SaleId,
        bucket: u16,
        after: Option<&UserId>,
    ) -> impl Future<Output = Stored<MembershipPage>> + Send;

    /// Keeps a chunk of the leaves of a group if there is none with its number. Returns the chunk that is kept under
    /// the number.
    fn keep_chunk(
        &self,
        sale: &SaleId,
        group: &GroupId,
        chunk: u32,
        leaves: &[Hash],
    ) -> impl Future<Output = Stored<Vec<Hash>>> + Send;
    /// The chunk of the leaves of a group with a number, from 0; `None` if it is not kept.
    fn chunk(
        &self,
        sale: &SaleId,
        group: &GroupId,
        chunk: u32,
    ) -> impl Future<Output = Stored<Option<Vec<Hash>>>> + Send;
    /// Keeps the tree of a group if the group has none. Returns the tree that the group has now.
    fn keep_tree(
        &self,
        sale: &SaleId,
        group: &GroupId,
        tree: &Tree,
    ) -> impl Future<Output = Stored<Tree>> + Send;
    /// The tree of a group; `None` if none is kept.
    fn tree(
        &self,
        sale: &SaleId,
        group: &GroupId,
    ) -> impl Future<Output = Stored<Option<Tree>>> + Send;
}

/// A randomness beacon: drand, whose chains are named by their hashes. A chain publishes one signature for each
/// round.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError), `Unavailable` if the beacon does not answer.
pub trait Beacon: Send + Sync {
    /// The signature of a round, which the adapter has verified with the chain's key; `None` if the chain has not
    /// published the round.
    fn round(
        &self,
        chain: Hash,
        round: u64,
    ) -> impl Future<Output = Stored<Option<Signature>>> + Send;
    /// True if `signature` is that of a round, by the chain's key alone: the method asks no beacon. Fails with
    /// `Contract` if the adapter does not know the chain's key.
    fn verify(
        &self,
        chain: Hash,
        round: u64,
        signature: Signature,
    ) -> impl Future<Output = Stored<bool>> + Send;
}

/// What the flows of a waiting room get. These flows need neither Redis nor queues, so they run where Redis and the
/// queues cannot be reached.
pub trait RoomPorts: Send + Sync {
    /// The waiting rooms in DynamoDB.
    type Rooms: Rooms;
    /// The randomness beacon.
    type Beacon: Beacon;

    /// The waiting rooms in DynamoDB.
    fn rooms(&self) -> &Self::Rooms;
    /// The randomness beacon.
    fn beacon(&self) -> &Self::Beacon;
    /// The number of buckets of a sale's memberships. Only tests that go through every bucket step by step choose
    /// fewer than [`BUCKETS`].
    fn buckets(&self) -> u16 {
        BUCKETS
    }
}
