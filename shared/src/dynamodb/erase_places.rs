//! Erasing: removes the memberships and the codes of a waiting room from its table. Log, leaves and trees stay:
//! without the nonces, nobody can find out whose leaf is whose.

use futures_util::future::try_join_all;

use super::expressions::keyed;
use super::items::{Item, text};
use super::rooms::DynamoRooms;
use super::tables::{CODE_BUCKETS, MEMBER_PREFIX, codes_key, members_key};
use engine::domain::admission::room::join::BUCKETS;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::ports::Stored;

/// Items that are deleted together.
const TOGETHER: usize = 25;

/// Number of what was erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErasedPlaces {
    pub places: u64,
    pub codes: u64,
}

impl DynamoRooms {
    /// Erases the memberships and the codes of a sale's waiting room. A run that was cut off is finished by another.
    ///
    /// # Errors
    /// As any read and write; what was erased by then stays so.
    pub async fn erase_places(&self, sale: &SaleId, groups: &[GroupId]) -> Stored<ErasedPlaces> {
        let mut erased = ErasedPlaces::default();
        for bucket in 0..BUCKETS {
            erased.places += self.erase(members_key(sale, bucket), MEMBER_PREFIX).await?;
        }
        for group in groups {
            for bucket in 0..CODE_BUCKETS {
                erased.codes += self.erase(codes_key(sale, group, bucket), "").await?;
            }
        }
        Ok(erased)
    }

    /// Deletes the items of a partition whose sort keys begin so, page by page; their number.
    async fn erase(&self, pk: String, prefix: &str) -> Stored<u64> {
        let query = self.db().client().query().table_name(self.table()).consistent_read(true);
        let mut values = vec![("pk", text(pk))];
        let mut condition = "#pk = :pk".to_owned();
        if !prefix.is_empty() {
            condition += " AND begins_with(#sk, :prefix)";
            values.push(("prefix", text(prefix)));
        }
        let query = keyed(query, &condition, values);
        let mut count = 0;
        let mut after: Option<Item> = None;
        loop {
            let page = query.clone().set_exclusive_start_key(after);
            let mut page = self.db().read(|| page.clone().send()).await?;
            let items = page.items.take().unwrap_or_default();
            for some in items.chunks(TOGETHER) {
                try_join_all(some.iter().map(|item| self.delete(item))).await?;
            }
            count += u64::try_from(items.len()).unwrap_or(u64::MAX);
            after = page.last_evaluated_key.take();
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    async fn delete(&self, item: &Item) -> Stored<()> {
        let of = |name: &str| Some((name.to_owned(), item.get(name)?.clone()));
        let key: Item = ["pk", "sk"].into_iter().filter_map(of).collect();
        let delete = self.db().client().delete_item().table_name(self.table()).set_key(Some(key));
        self.db().write(|| delete.clone().send()).await.map(drop)
    }
}
