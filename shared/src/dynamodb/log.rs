//! The log in DynamoDB: [settling](super::DynamoOrders) appends to it, and the senders of events read it.
//!
//! A record is put at the position behind the last one, under the condition that there is none yet: a second writer
//! fails, and reads the last position again. So positions are dense, and a reader who has come to one of them has
//! seen all before it. Nothing changes a record, and nothing deletes one.

use std::collections::BTreeMap;
use std::ops::Range;

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::dynamo::Dynamo;
use super::expressions::{keyed, put_under};
use super::items::{Fields, Item, item, number, text};
use super::tables::{BY_SALE, Tables};
use super::told::{read_told, read_transfers, told_value, transfers_value};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::{LogPosition, LogRecord, LogShard, PlacedRecord};
use engine::ports::{Log, StoreError, Stored};

/// All the time that a log can tell of.
pub const ALL_TIME: Range<Timestamp> = Timestamp::from_ms(0)..Timestamp::from_ms(i64::MAX);
/// Most records of one read.
const MAX_READ: usize = 100;

/// The log, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoLog {
    db: Dynamo,
}

impl DynamoLog {
    /// The log behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    fn table(&self) -> &str {
        let Tables { log, .. } = self.db.tables();
        log
    }

    /// What puts records behind the last one of a shard, each under the condition that its position is free.
    pub(super) async fn append(
        &self,
        shard: LogShard,
        records: &[LogRecord],
    ) -> Stored<Vec<TransactWriteItem>> {
        let last = self.last(shard).await?;
        let places = (last + 1..).map(|number| LogPosition { shard, number });
        let puts = places.zip(records).map(|(place, record)| {
            put_under(self.table(), record_item(place, record), "attribute_not_exists(#position)")
        });
        puts.collect()
    }

    /// The records of a sale that were settled in some time, in its order, eventually consistent: one that was
    /// settled a moment ago may be missing. `each` is given at most 100 at once.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn of_sale(
        &self,
        sale: &SaleId,
        during: Range<Timestamp>,
        mut each: impl FnMut(Vec<PlacedRecord>),
    ) -> Stored<()> {
        let query = keyed(
            self.db.client().query().table_name(self.table()).index_name(BY_SALE),
            "#sale = :sale AND #at_ms BETWEEN :from AND :last",
            [
                ("sale", text(sale)),
                ("from", number(during.start.ms())),
                ("last", number(during.end.ms().saturating_sub(1))),
            ],
        );
        let keys = self.db.query(query, usize::MAX).await?;
        for some in keys.chunks(MAX_READ) {
            let key = |found: &Item| -> Option<Item> {
                let part = |name: &str| Some((name.to_owned(), found.get(name)?.clone()));
                Some([part("shard")?, part("position")?].into())
            };
            let items =
                self.db.get_many(self.table(), some.iter().filter_map(key).collect()).await?;
            let records = items.iter().map(read_record).collect::<Stored<Vec<_>>>()?;
            // A batch is answered in no order.
            let by_time: BTreeMap<(Timestamp, LogPosition), PlacedRecord> =
                records.into_iter().map(|found| ((found.record.at, found.place), found)).collect();
            each(by_time.into_values().collect());
        }
        Ok(())
    }
}

impl Log for DynamoLog {
    async fn last(&self, shard: LogShard) -> Stored<u64> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#shard = :shard",
            [("shard", number(shard.get()))],
        );
        let query = query.consistent_read(true).scan_index_forward(false);
        let query = query.projection_expression("#position");
        let query = query.expression_attribute_names("#position", "position");
        let last = self.db.query(query, 1).await?;
        match last.first() {
            Some(item) => Fields::from_item(item).number("position"),
            None => Ok(0),
        }
    }

    async fn before(&self, shard: LogShard, time: Timestamp) -> Stored<u64> {
        // All up to `low` are older, all behind `high` are not.
        let (mut low, mut high) = (0, self.last(shard).await?);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let key = item([("shard", number(shard.get())), ("position", number(middle))]);
            let record = self.db.get(self.table(), key).await?;
            let record = record.ok_or_else(|| {
                StoreError::Contract(format!("log {} has no position {middle}", shard.get()))
            })?;
            if Fields::from_item(&record).time("at_ms")? < time {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(low)
    }

    async fn after(&self, place: LogPosition) -> Stored<Vec<PlacedRecord>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#shard = :shard AND #position > :position",
            [("shard", number(place.shard.get())), ("position", number(place.number))],
        );
        let items = self.db.query(query.consistent_read(true), MAX_READ).await?;
        items.iter().map(read_record).collect()
    }
}

fn record_item(place: LogPosition, record: &LogRecord) -> Item {
    let LogRecord { sale, at, told, transfers } = record;
    let mut item = item([
        ("shard", number(place.shard.get())),
        ("position", number(place.number)),
        ("sale", text(sale)),
        ("at_ms", number(at.ms())),
        ("orders", told_value(told)),
    ]);
    if !transfers.is_empty() {
        item.insert("transfers".to_owned(), transfers_value(transfers));
    }
    item
}

fn read_record(item: &Item) -> Stored<PlacedRecord> {
    let fields = Fields::from_item(item);
    let shard: u8 = fields.number("shard")?;
    let shard = LogShard::all().find(|known| known.get() == shard);
    let shard = shard.ok_or_else(|| fields.broken("shard", "is no shard"))?;
    let told = read_told(&fields.text::<String>("orders")?);
    let transfers: Option<String> = fields.maybe_text("transfers")?;
    let transfers = transfers.as_deref().map(read_transfers).transpose();
    let record = LogRecord {
        sale: fields.text("sale")?,
        at: fields.time("at_ms")?,
        told: told.map_err(|error| fields.broken("orders", &format!("tells nothing: {error}")))?,
        transfers: transfers
            .map_err(|error| fields.broken("transfers", &format!("moves nothing: {error}")))?
            .unwrap_or_default(),
    };
    Ok(PlacedRecord { place: LogPosition { shard, number: fields.number("position")? }, record })
}
