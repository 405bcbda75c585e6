//! Codes for the groups of waiting rooms, in DynamoDB: an item for each shard of a code, by its hash, in the
//! buckets of its group, so that no partition has all of them.

use futures_util::future::try_join_all;

use super::dynamo::Dynamo;
use super::expressions::{keyed, put_new, update};
use super::items::{Fields, Item, number, text};
use super::rooms::{DynamoRooms, key, membership_item, read_membership};
use super::tables::{CODE_BUCKETS, FIRST_SHARD, code_shard_key, codes_key};
use super::transaction::{Reason, Transacted};
use engine::domain::admission::room::code::{CodeHash, CodeShard, CodeUses, MAX_CODE_SHARDS};
use engine::domain::admission::room::join::Membership;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::ports::Stored;

/// Buckets that are read together.
const TOGETHER: usize = 16;

const _: () = assert!(CODE_BUCKETS == 256, "the bucket of a code is a byte");

/// The codes of a group, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeCounts {
    pub codes: u64,
    /// How often they may be used, together.
    pub uses: u64,
    /// How often they were used.
    pub used: u64,
}

/// The bucket of a shard: by the first byte of the hash, the shards of a code evenly apart.
fn bucket(shard: CodeShard) -> u8 {
    let CodeShard { code, shard } = shard;
    let apart = CODE_BUCKETS / u16::from(MAX_CODE_SHARDS);
    let [first, ..] = code.0.0;
    let bucket = (u16::from(first) + u16::from(shard) * apart) % CODE_BUCKETS;
    u8::try_from(bucket).unwrap_or(0)
}

fn shard_key(sale: &SaleId, group: &GroupId, shard: CodeShard) -> Item {
    key(codes_key(sale, group, bucket(shard).into()), code_shard_key(shard))
}

fn read_uses(item: &Item) -> Stored<CodeUses> {
    let fields = Fields::from_item(item);
    Ok(CodeUses {
        shards: fields.number("shards")?,
        uses: fields.number("uses")?,
        used: fields.maybe_number("used")?.unwrap_or(0),
    })
}

/// See [`engine::ports::Rooms::code`].
pub(super) async fn code(
    db: &Dynamo,
    sale: &SaleId,
    group: &GroupId,
    shard: CodeShard,
) -> Stored<Option<CodeUses>> {
    let kept = db.get(&db.tables().rooms, shard_key(sale, group, shard)).await?;
    kept.as_ref().map(read_uses).transpose()
}

/// See [`engine::ports::Rooms::join_by_code`].
pub(super) async fn join_by_code(
    db: &Dynamo,
    membership: &Membership,
    bucket: u16,
    shard: CodeShard,
) -> Stored<Option<Membership>> {
    let Membership { sale, group, .. } = membership;
    let table = &db.tables().rooms;
    let put = put_new(table, membership_item(membership, bucket))?;
    let using = update(
        table,
        shard_key(sale, group, shard),
        "ADD #used :one",
        "attribute_exists(#uses) AND (attribute_not_exists(#used) OR #used < #uses)",
        [("one", number(1))],
    )?;
    // Whether the buyer is a member goes before what is left of the code.
    match db.transact(1, vec![put, using]).await? {
        Transacted::Done => Ok(Some(membership.clone())),
        Transacted::Cancelled(reasons) => match reasons.first() {
            Some(Reason::ConditionalCheckFailed(kept)) => read_membership(sale, kept).map(Some),
            Some(Reason::None | Reason::TransactionConflict) | None => Ok(None),
        },
    }
}

impl DynamoRooms {
    /// Adds a code to a group that may be used so often; false if the group has it, and then it stays as it is.
    /// The first shard is written last: nobody joins with a code that is half written, and repeating it finishes
    /// it.
    ///
    /// # Errors
    /// Fails if DynamoDB does.
    pub async fn add_code(
        &self,
        sale: &SaleId,
        group: &GroupId,
        code: CodeHash,
        uses: u32,
    ) -> Stored<bool> {
        let shards: Vec<(u8, CodeUses)> = (0..).zip(CodeUses::shared(uses)).collect();
        let mut is_new = false;
        for (shard, CodeUses { shards, uses, .. }) in shards.into_iter().rev() {
            let mut item = shard_key(sale, group, CodeShard { code, shard });
            item.insert("shards".to_owned(), number(shards));
            item.insert("uses".to_owned(), number(uses));
            is_new = self.put(item, "attribute_not_exists(#sk)", []).await?;
        }
        Ok(is_new)
    }

    /// Counts the codes of a group.
    ///
    /// # Errors
    /// Fails if DynamoDB does.
    pub async fn count_codes(&self, sale: &SaleId, group: &GroupId) -> Stored<CodeCounts> {
        let mut counts = CodeCounts::default();
        let buckets: Vec<u16> = (0..CODE_BUCKETS).collect();
        for some in buckets.chunks(TOGETHER) {
            let read = some.iter().map(|bucket| self.count_bucket(sale, group, *bucket));
            for of_bucket in try_join_all(read).await? {
                counts.codes += of_bucket.codes;
                counts.uses += of_bucket.uses;
                counts.used += of_bucket.used;
            }
        }
        Ok(counts)
    }

    async fn count_bucket(
        &self,
        sale: &SaleId,
        group: &GroupId,
        bucket: u16,
    ) -> Stored<CodeCounts> {
        let query = self.db().client().query().table_name(self.table()).consistent_read(true);
        let query = keyed(query, "#pk = :codes", [("codes", text(codes_key(sale, group, bucket)))]);
        let mut counts = CodeCounts::default();
        for item in self.db().query(query, usize::MAX).await? {
            let (uses, sk) = (read_uses(&item)?, Fields::from_item(&item).text::<String>("sk")?);
            counts.codes += u64::from(sk.ends_with(FIRST_SHARD));
            counts.uses += u64::from(uses.uses);
            counts.used += u64::from(uses.used);
        }
        Ok(counts)
    }
}
