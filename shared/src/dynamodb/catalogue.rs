//! The catalogue in DynamoDB: a sale's file, its version, and the epoch of its last load.
//!
//! An item holds at most 400 KB and a hall's file can be longer, so a file lies in chunks and a
//! header names them; compressed [`copies`] of it lie elsewhere. The chunks of one publication have a name of their own that no other
//! publication shares, and the header is written last: whoever reads a header finds the chunks of
//! exactly that file, or none and reads the header again.

mod attachments;
mod copies;
mod list;
mod maps;
mod memory;
mod stops;
mod tokens;
mod trains;

use std::sync::Arc;
use std::time::Instant;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use super::dynamo::{Dynamo, random_hex};
use super::expressions::{Value, delete, keyed, update};
use super::items::{Fields, Item, item, number, text};
use super::tables::{SALE_HEADER, SALES_LIST};
use super::transaction::Transacted;
use engine::domain::admission::gate::tokens::TokenSnapshot;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::calendar::Day;
use engine::domain::basics::ids::{Epoch, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::archive::Lifecycle;
use engine::domain::sale::attachment::{Attachment, AttachmentKind};
use engine::domain::sale::timetable::{
    CallMark, StopLabel, StopMark, StopsPage, TrainCall, TrainsPage, calls, stops_by_day,
};
use engine::domain::sale::{FileMap, MapDocument, Sale, SaleFile};
use engine::ports::{
    Catalogue, ChangeReply, Freshness, ListedSale, Published, SalesPage, StoreError, Stored,
};

pub use trains::train_call_item;

use copies::{COPIES, Copies};
use maps::KeptMap;
use memory::{Known, Memory, Recent};

/// Bytes of one chunk.
const CHUNK_BYTES: usize = 256 * 1024;
/// Most chunks of one file.
const MAX_CHUNKS: usize = 64;

// A chunk fits an item with room for its key: 400 KB, names and values together.
// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html>
const _: () = assert!(CHUNK_BYTES + 1024 <= 400 * 1024);
// A file that a function can be sent fits its chunks: 6 MB.
// Source: <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const _: () = assert!(6 * 1024 * 1024 <= MAX_CHUNKS * CHUNK_BYTES);

/// Sales of a page of the list while a process starts.
const PRELOADED_PAGE: u16 = 200;
/// Most bytes of a file.
const MAX_FILE_BYTES: usize = MAX_CHUNKS * CHUNK_BYTES;

/// Most attempts to read a file that is replaced meanwhile.
const MAX_READS: usize = 5;
/// The lifecycle of a sale whose keys are being removed from Redis.
const UNLOADING: &str = "unloading";
/// The lifecycle of a sale that is archived.
const ARCHIVED: &str = "archived";
/// The condition that no later version of a sale has written the item.
const NOT_LATER: &str = "attribute_not_exists(#version) OR #version <= :version";
/// The condition of whoever has taken the lease last, on a sale that is not archived.
const HOLDS_LEASE: &str = "#lease = :epoch AND attribute_not_exists(#lifecycle)";
/// The end of a lease that never ends: the year 9999. An archived sale has it, so that a release which
/// knows of no archive does not load the sale either.
const NEVER: Timestamp = Timestamp::from_ms(253_402_300_799_000);

/// The catalogue of sales, in DynamoDB, with a small memory.
#[derive(Debug, Clone)]
pub struct DynamoCatalogue {
    db: Dynamo,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Header {
    version: u64,
    file: String,
    chunks: usize,
    /// The compressed copies; `None` if the release that published it made none.
    copies: Option<Copies>,
    /// What it says of the sale's map; `None` if there is none.
    map: Option<KeptMap>,
    epoch: Option<Epoch>,
    lifecycle: Lifecycle,
}

/// The name of a publication's chunks; text order is version order.
fn file_name(version: u64, nonce: &str) -> String {
    format!("{version:010}-{nonce}")
}

/// The sort key with which all chunks of a file begin.
fn chunks_prefix(file: &str) -> String {
    format!("file#{file}#")
}

/// True if chunks may go once `current`, of `version`, is published: those of earlier versions and
/// of rivals for the same one, whose headers can no longer be written. A later publication may be
/// under way already, so its chunks stay.
fn is_obsolete(sk: &str, current: &str, version: u64) -> bool {
    let Some(name) = sk.strip_prefix("file#") else { return false };
    let theirs = name.split('-').next().and_then(|version| version.parse::<u64>().ok());
    theirs.is_some_and(|theirs| theirs <= version) && !sk.starts_with(&chunks_prefix(current))
}

/// Where a sale is in its life: a header without the attribute is of a listed sale.
fn read_lifecycle(fields: &Fields<'_>) -> Stored<Lifecycle> {
    match fields.maybe_text::<String>("lifecycle")?.as_deref() {
        None => Ok(Lifecycle::Listed),
        Some(UNLOADING) => Ok(Lifecycle::Unloading),
        Some(ARCHIVED) => Ok(Lifecycle::Archived),
        Some(other) => Err(StoreError::Contract(format!("a sale's lifecycle is {other}"))),
    }
}

fn header_key(sale: &SaleId) -> Item {
    item([("pk", text(sale)), ("sk", text(SALE_HEADER))])
}

impl DynamoCatalogue {
    /// The catalogue behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        let memory = Arc::new(Memory::new(db.config().catalogue_bytes));
        Self { db, memory }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    async fn header(&self, id: &SaleId, is_consistent: bool) -> Stored<Option<Header>> {
        let key = header_key(id);
        let Some(item) = self.db.get_as(self.table(), key, is_consistent).await? else {
            return Ok(None);
        };
        let fields = Fields::from_item(&item);
        let file: String = fields.text("file")?;
        // A release that knows of no copies replaces the file and leaves what the header says of them.
        let copies_of: Option<String> = fields.maybe_text("copies_of")?;
        let counts = (fields.maybe_number("copies")?, fields.maybe_number("copy_chunks")?);
        let copies = match counts {
            (Some(count), Some(chunks)) if copies_of.as_ref() == Some(&file) => {
                Some(Copies { count, chunks })
            }
            _ => None,
        };
        Ok(Some(Header {
            version: fields.number("version")?,
            map: KeptMap::from_header(&fields, &file)?,
            file,
            chunks: fields.number("chunks")?,
            copies,
            epoch: fields.maybe_text("epoch")?,
            lifecycle: read_lifecycle(&fields)?,
        }))
    }

    /// The sale as it is now, or, unless it is to be consistent, as it was a moment ago: never older than
    /// what this process has seen, and never absent because a copy of the table is behind.
    async fn read(&self, id: &SaleId, mut is_consistent: bool) -> Stored<Option<Published>> {
        for _ in 0..MAX_READS {
            let header = self.header(id, is_consistent).await?;
            let seen = self.memory.version(id).unwrap_or(0);
            if !is_consistent && header.as_ref().is_none_or(|header| header.version < seen) {
                is_consistent = true;
                continue;
            }
            let Some(header) = header else {
                self.memory.remember(id, None);
                return Ok(None);
            };
            if let Some((sale, file_bytes)) = self.sale_of(id, &header).await? {
                let Header { version, file, map, epoch, lifecycle, .. } = header;
                let map = map.map(|map| map.hash);
                let published = Published { sale, map, epoch, version, lifecycle };
                let known = Known { file, file_bytes, published: published.clone() };
                self.memory.remember(id, Some(known));
                return Ok(Some(published));
            }
            // Another publication has cleaned the file away: who it was is in the header by now.
            is_consistent = true;
        }
        Err(StoreError::Unavailable(format!("the file of {id} has no rest, or is incomplete")))
    }

    /// The sale of a header, and the length of its file in bytes; `None` if its chunks are gone, as
    /// after another publication. However many ask at once, one of them reads the file.
    async fn sale_of(&self, id: &SaleId, header: &Header) -> Stored<Option<(Arc<Sale>, usize)>> {
        if let Some(known) = self.memory.of_file(id, &header.file) {
            return Ok(Some(known));
        }
        let _reading = self.memory.reading.lock().await;
        if let Some(known) = self.memory.of_file(id, &header.file) {
            return Ok(Some(known));
        }
        let json = match self.copy_of(id, header).await? {
            Some(json) => json,
            None => match self.file_of(id, header).await? {
                Some(json) => json,
                None => return Ok(None),
            },
        };
        let file: SaleFile = serde_json::from_slice(&json).map_err(|error| broken(id, error))?;
        let sale =
            Sale::from_published(file).map_err(|defects| broken(id, format!("{defects:?}")))?;
        let sale = Arc::new(sale);
        // Before the lock is given back, so that whoever waits for it finds the file.
        let Header { version, file, map, epoch, lifecycle, .. } = header;
        let (map, epoch, lifecycle) = (map.map(|map| map.hash), epoch.clone(), *lifecycle);
        let (version, of_sale) = (*version, Arc::clone(&sale));
        let published = Published { sale: of_sale, map, epoch, version, lifecycle };
        let known = Known { file: file.clone(), file_bytes: json.len(), published };
        self.memory.remember(id, Some(known));
        Ok(Some((sale, json.len())))
    }

    /// The file of a header from one of its copies; `None` if it has none, or the one that was chosen is
    /// not whole.
    async fn copy_of(&self, id: &SaleId, header: &Header) -> Stored<Option<Vec<u8>>> {
        let Some(Copies { count, chunks }) = header.copies.filter(|copies| copies.count > 0) else {
            return Ok(None);
        };
        let chosen = copies::choose(count);
        let found = self.chunks(&copies::partition(id, chosen), &header.file, false).await?;
        Ok(if found.len() == chunks { copies::file_of(&found) } else { None })
    }

    /// The file of a header itself; `None` if its chunks are gone.
    async fn file_of(&self, id: &SaleId, header: &Header) -> Stored<Option<Vec<u8>>> {
        let chunks = self.chunks(&id.to_string(), &header.file, true).await?;
        if chunks.len() != header.chunks {
            return Ok(None);
        }
        let mut json = Vec::with_capacity(chunks.len() * CHUNK_BYTES);
        for chunk in &chunks {
            let data = chunk.get("data").and_then(|data| data.as_b().ok());
            let data = data.ok_or_else(|| broken(id, "a chunk without data"))?;
            json.extend_from_slice(data.as_ref());
        }
        Ok(Some(json))
    }

    async fn chunks(&self, partition: &str, file: &str, is_consistent: bool) -> Stored<Vec<Item>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :partition AND begins_with(#sk, :chunks)",
            [("partition", text(partition)), ("chunks", text(chunks_prefix(file)))],
        );
        self.db.query(query.consistent_read(is_consistent), MAX_CHUNKS).await
    }

    async fn write_chunks(&self, partition: &str, file: &str, data: &[u8]) -> Stored<usize> {
        let chunks = data.chunks(CHUNK_BYTES);
        let count = chunks.len();
        if count > MAX_CHUNKS {
            let what = format!("{partition}: a file of {} bytes", data.len());
            return Err(StoreError::Contract(what));
        }
        for (index, chunk) in chunks.enumerate() {
            let chunk = item([
                ("pk", text(partition)),
                ("sk", text(format!("{}{index:03}", chunks_prefix(file)))),
                ("data", AttributeValue::B(Blob::new(chunk))),
            ]);
            let put = self.db.client().put_item().table_name(self.table()).set_item(Some(chunk));
            self.db.write(|| put.clone().send()).await?;
        }
        Ok(count)
    }

    /// Writes the compressed copies of a file; the number of chunks of each.
    async fn write_copies(&self, id: &SaleId, file: &str, json: &[u8]) -> Stored<usize> {
        let data = copies::compressed(json).map_err(|error| broken(id, error))?;
        let partitions: Vec<String> = (0..COPIES).map(|copy| copies::partition(id, copy)).collect();
        // Futures first and the join then: the compiler cannot follow a closure in it.
        let writes: Vec<_> =
            partitions.iter().map(|partition| self.write_chunks(partition, file, &data)).collect();
        let written = try_join_all(writes).await?;
        Ok(written.first().copied().unwrap_or(0))
    }

    /// Writes the map of a file, if it has one, beside the file of a name.
    async fn write_map(&self, file: &SaleFile, name: &str) -> Stored<Option<KeptMap>> {
        let id = &file.sale;
        let document = match &file.map {
            None => return Ok(None),
            Some(FileMap::Own(map)) => map.document(),
            Some(FileMap::Kept(_)) => return Err(broken(id, "a publication without its map")),
        };
        let data =
            copies::compressed(document.json.as_bytes()).map_err(|error| broken(id, error))?;
        let chunks = self.write_chunks(&maps::partition(id), name, &data).await?;
        Ok(Some(KeptMap { hash: document.hash, chunks }))
    }

    /// The timetable of the sale that a version replaces.
    async fn timetable_before(&self, id: &SaleId, replaces: Option<u64>) -> Stored<Timetable> {
        if replaces.is_none() {
            return Ok(Timetable::default());
        }
        let published = self.sale(id, Freshness::Cached).await?;
        Ok(published.map_or_else(Timetable::default, |sale| Timetable::new(sale.sale.file())))
    }

    /// Writes what a train is found by, of a version that is to be published.
    async fn write_timetable(&self, id: &SaleId, ours: &Timetable, version: u64) -> Stored<()> {
        trains::write(&self.db, &ours.calls, version).await?;
        stops::write(&self.db, id, &ours.stops, version).await
    }

    /// Deletes what a train was found by and is not found by in `version`.
    async fn delete_timetable(
        &self,
        id: &SaleId,
        was: &Timetable,
        is: &Timetable,
        version: u64,
    ) -> Stored<()> {
        trains::delete(&self.db, &was.calls, &is.calls, version).await?;
        stops::delete(&self.db, id, &was.stops, &is.stops, version).await
    }

    /// Deletes what a publication of `file` as `version` leaves behind: the timetable that it has replaced, or its
    /// own if another one has come before it; and chunks.
    async fn tidy_after(
        &self,
        file: &SaleFile,
        (version, name): (u64, &str),
        before: &Timetable,
        reply: &ChangeReply,
    ) -> Stored<()> {
        let (id, ours) = (&file.sale, Timetable::new(file));
        match reply {
            ChangeReply::Done => {
                self.delete_timetable(id, before, &ours, version).await?;
                self.tidy_all(id, |sk| is_obsolete(sk, name, version)).await
            }
            ChangeReply::Conflict => {
                if !ours.calls.is_empty() {
                    let current = self.sale(id, Freshness::Fresh).await?;
                    let current = current.filter(|current| !is_over(current));
                    let of = |sale: Published| Timetable::new(sale.sale.file());
                    let theirs = current.map_or_else(Timetable::default, of);
                    self.delete_timetable(id, &ours, &theirs, version).await?;
                }
                let ours = chunks_prefix(name);
                self.tidy_all(id, |sk| sk.starts_with(&ours)).await
            }
        }
    }

    /// Deletes what nobody needs any more of the file and of its copies. What stays is deleted after the
    /// next publication.
    async fn tidy_all(&self, id: &SaleId, is_obsolete: impl Fn(&str) -> bool + Sync) -> Stored<()> {
        let copies = (0..COPIES).map(|copy| copies::partition(id, copy));
        let others = [id.to_string(), maps::partition(id)];
        let partitions: Vec<String> = others.into_iter().chain(copies).collect();
        let is_obsolete = &is_obsolete;
        let tidied: Vec<_> =
            partitions.iter().map(|partition| self.tidy(partition, is_obsolete)).collect();
        try_join_all(tidied).await.map(drop)
    }

    /// Remembers the open sales before the first request: those first whose opening is nearest, until half
    /// of the memory is full. The number of sales.
    ///
    /// # Errors
    /// Fails if the list or a sale cannot be read; what was read stays.
    pub async fn preload(&self, now: Timestamp) -> Stored<usize> {
        let mut open: Vec<(i64, SaleId)> = Vec::new();
        let mut after = None;
        loop {
            let page = self.listed(after.as_ref(), PRELOADED_PAGE).await?;
            for ListedSale { sale, terms } in page.sales {
                match terms {
                    Some(terms) if terms.closes_at <= now => {}
                    Some(terms) => open.push((terms.opens_at.ms_since(now).abs(), sale)),
                    // The list does not say when it opens: last.
                    None => open.push((i64::MAX, sale)),
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        open.sort();
        let mut loaded = 0;
        for (_, sale) in open {
            if self.memory.is_half_full() {
                break;
            }
            self.read(&sale, false).await?;
            loaded += 1;
        }
        Ok(loaded)
    }

    /// Deletes the chunks of one partition that nobody needs any more.
    async fn tidy(
        &self,
        partition: &str,
        is_obsolete: &(impl Fn(&str) -> bool + Sync),
    ) -> Stored<()> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :partition AND begins_with(#sk, :chunks)",
            [("partition", text(partition)), ("chunks", text("file#"))],
        );
        let query = query.projection_expression("#sk");
        for chunk in self.db.query(query, usize::MAX).await? {
            let sk: String = Fields::from_item(&chunk).text("sk")?;
            if is_obsolete(&sk) {
                let key = item([("pk", text(partition)), ("sk", text(sk))]);
                let delete = self.db.client().delete_item();
                let delete = delete.table_name(self.table()).set_key(Some(key));
                self.db.write(|| delete.clone().send()).await?;
            }
        }
        Ok(())
    }

    async fn change_header(
        &self,
        id: &SaleId,
        expression: &str,
        condition: &str,
        with: impl IntoIterator<Item = Value>,
    ) -> Stored<ChangeReply> {
        let change = update(self.table(), header_key(id), expression, condition, with)?;
        let done = self.db.transact(1, vec![change]).await;
        self.memory.doubt(id);
        Ok(reply(done?))
    }
}

/// What a train is found by: the calls at which it is boarded, and its stops.
#[derive(Debug, Default)]
struct Timetable {
    calls: Vec<TrainCall>,
    stops: stops::StopsByDay,
}

impl Timetable {
    fn new(file: &SaleFile) -> Self {
        Self { calls: calls(file), stops: stops_by_day(file) }
    }
}

fn is_over(published: &Published) -> bool {
    published.lifecycle.is_over()
}

fn reply(done: Transacted) -> ChangeReply {
    match done {
        Transacted::Done => ChangeReply::Done,
        Transacted::Cancelled(_) => ChangeReply::Conflict,
    }
}

fn broken(id: &SaleId, what: impl std::fmt::Display) -> StoreError {
    StoreError::Contract(format!("catalogue: sale {id}: {what}"))
}

impl Catalogue for DynamoCatalogue {
    async fn sale(&self, id: &SaleId, freshness: Freshness) -> Stored<Option<Published>> {
        match freshness {
            Freshness::Cached => {
                let cache_for = self.db.config().cache_for;
                match self.memory.recent(id, Instant::now(), cache_for) {
                    Recent::Young(found) => Ok(found),
                    Recent::Old | Recent::Nothing => self.read(id, false).await,
                    Recent::Doubted => self.read(id, true).await,
                }
            }
            Freshness::Fresh => self.read(id, true).await,
        }
    }

    async fn sales(&self) -> Stored<Vec<SaleId>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :list",
            [("list", text(SALES_LIST))],
        );
        let listed = self.db.query(query.consistent_read(true), usize::MAX).await?;
        listed.iter().map(|item| Fields::from_item(item).text("sk")).collect()
    }

    async fn listed(&self, after: Option<&SaleId>, most: u16) -> Stored<SalesPage> {
        let table = self.db.client().query().table_name(self.table());
        let query = match after {
            None => keyed(table, "#pk = :list", [("list", text(SALES_LIST))]),
            Some(after) => {
                let with = [("list", text(SALES_LIST)), ("after", text(after))];
                keyed(table, "#pk = :list AND #sk > :after", with)
            }
        };
        // One more than the page, to know if another follows.
        let found = self.db.query(query.consistent_read(true), usize::from(most) + 1).await?;
        let is_more = found.len() > usize::from(most);
        let page = found.iter().take(usize::from(most));
        let sales = page.map(list::read).collect::<Stored<Vec<ListedSale>>>()?;
        let next = sales.last().filter(|_| is_more).map(|last| last.sale.clone());
        Ok(SalesPage { sales, next })
    }

    async fn trains(
        &self,
        day: Day,
        from: &StopLabel,
        to: &StopLabel,
        after: Option<&CallMark>,
        now: Timestamp,
        most: u16,
    ) -> Stored<TrainsPage> {
        trains::find(&self.db, day, from, to, after, now, most).await
    }

    async fn stops(&self, day: Day, after: Option<&StopMark>, most: u16) -> Stored<StopsPage> {
        stops::find(&self.db, day, after, most).await
    }

    async fn map(&self, id: &SaleId) -> Stored<Option<MapDocument>> {
        for is_consistent in [false, true] {
            let header = self.header(id, is_consistent).await?;
            let Some(map) = header.as_ref().and_then(|header| header.map) else {
                if is_consistent { return Ok(None) } else { continue }
            };
            let file = header.map(|header| header.file).unwrap_or_default();
            let chunks = self.chunks(&maps::partition(id), &file, is_consistent).await?;
            if let Some(document) = map.document(&chunks) {
                return Ok(Some(document));
            }
        }
        Err(StoreError::Unavailable(format!("the map of {id} is being replaced")))
    }

    async fn keep_attachment(&self, attachment: &Attachment) -> Stored<()> {
        let item = attachments::write(attachment);
        let put = self.db.client().put_item().table_name(self.table()).set_item(Some(item));
        self.db.write(|| put.clone().send()).await.map(drop)
    }

    async fn attachment(&self, hash: Hash) -> Stored<Option<Attachment>> {
        let found = self.db.get_as(self.table(), attachments::key(hash), true).await?;
        found.map(|item| attachments::read(hash, &item)).transpose()
    }

    async fn attachment_kind(&self, hash: Hash) -> Stored<Option<AttachmentKind>> {
        let get = self.db.client().get_item().table_name(self.table());
        let get = get.set_key(Some(attachments::key(hash))).consistent_read(true);
        let get = get.projection_expression("#kind").expression_attribute_names("#kind", "kind");
        let found = self.db.read(|| get.clone().send()).await?.item;
        found.map(|item| attachments::read_kind(hash, &item)).transpose()
    }

    async fn publish(&self, file: &SaleFile, replaces: Option<u64>) -> Stored<ChangeReply> {
        let id = &file.sale;
        let version = replaces.unwrap_or(0) + 1;
        let name = file_name(version, &random_hex(8)?);
        let before = self.timetable_before(id, replaces).await?;
        let json = serde_json::to_vec(&file.without_map()).map_err(|error| broken(id, error))?;
        let chunks = self.write_chunks(id.as_str(), &name, &json).await?;
        let copy_chunks = self.write_copies(id, &name, &json).await?;
        let map = self.write_map(file, &name).await?;
        self.write_timetable(id, &Timetable::new(file), version).await?;
        let condition = match replaces {
            Some(_) => "#version = :replaces AND attribute_not_exists(#lifecycle)",
            None => "attribute_not_exists(#version)",
        };
        let mut with: Vec<Value> = vec![
            ("version", number(version)),
            ("file", text(&name)),
            ("chunks", number(i128::try_from(chunks).map_err(|error| broken(id, error))?)),
            ("copies", number(COPIES)),
            (
                "copy_chunks",
                number(i128::try_from(copy_chunks).map_err(|error| broken(id, error))?),
            ),
        ];
        with.extend(replaces.map(|replaces| ("replaces", number(replaces))));
        with.extend(map.iter().flat_map(KeptMap::values));
        let expression = format!(
            "SET #version = :version, #file = :file, #chunks = :chunks, #copies = :copies, \
             #copies_of = :file, #copy_chunks = :copy_chunks{}",
            if map.is_some() { maps::SET } else { maps::REMOVE }
        );
        let header = update(self.table(), header_key(id), &expression, condition, with)?;
        let listed = list::write(self.table(), file, version)?;
        let written = self.db.transact(1, vec![header, listed]).await;
        self.memory.doubt(id);
        // An error leaves open which file is current, so that nothing may go.
        let reply = reply(written?);
        if let Err(error) = self.tidy_after(file, (version, &name), &before, &reply).await {
            tracing::warn!(sale = %id, %error, "what another publication wrote stays for now");
        }
        Ok(reply)
    }

    async fn lease(
        &self,
        id: &SaleId,
        epoch: &Epoch,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        let condition = "attribute_exists(#version) AND attribute_not_exists(#lifecycle) \
             AND (attribute_not_exists(#lease_until_ms) OR #lease_until_ms <= :now)";
        let with =
            [("epoch", text(epoch)), ("now", number(now.ms())), ("until", number(until.ms()))];
        let expression = "SET #lease = :epoch, #lease_until_ms = :until";
        self.change_header(id, expression, condition, with).await
    }

    async fn prolong(&self, id: &SaleId, epoch: &Epoch, until: Timestamp) -> Stored<ChangeReply> {
        // Not if the lease is gone: another load may have taken it and ended it since.
        let with = [("epoch", text(epoch)), ("until", number(until.ms()))];
        self.change_header(id, "SET #lease_until_ms = :until", HOLDS_LEASE, with).await
    }

    async fn loaded(&self, id: &SaleId, epoch: &Epoch) -> Stored<ChangeReply> {
        let expression = "SET #epoch = :epoch REMOVE #lease, #lease_until_ms";
        self.change_header(id, expression, HOLDS_LEASE, [("epoch", text(epoch))]).await
    }

    async fn retire(&self, id: &SaleId, epoch: &Epoch, version: u64) -> Stored<ChangeReply> {
        let expression = "SET #lifecycle = :unloading, #lease_until_ms = :never REMOVE #epoch";
        let condition = format!("{HOLDS_LEASE} AND #version = :version");
        let with = [
            ("epoch", text(epoch)),
            ("version", number(version)),
            ("unloading", text(UNLOADING)),
            ("never", number(NEVER.ms())),
        ];
        self.change_header(id, expression, &condition, with).await
    }

    async fn keep_tokens(&self, id: &SaleId, snapshot: &TokenSnapshot) -> Stored<()> {
        tokens::keep(&self.db, id, snapshot).await
    }

    async fn kept_tokens(&self, id: &SaleId, since: Timestamp) -> Stored<Vec<TokenSnapshot>> {
        tokens::kept(&self.db, id, since).await
    }

    async fn delist(&self, id: &SaleId) -> Stored<ChangeReply> {
        let archived = update(
            self.table(),
            header_key(id),
            "SET #lifecycle = :archived",
            "attribute_exists(#lifecycle)",
            [("archived", text(ARCHIVED))],
        )?;
        // Nobody publishes it any more, and who finds a call or a stop of it passes over it already.
        if let Some(sale) = self.sale(id, Freshness::Fresh).await?.filter(is_over) {
            let was = Timetable::new(sale.sale.file());
            self.delete_timetable(id, &was, &Timetable::default(), sale.version).await?;
        }
        let unlisted = delete(self.table(), list::key(id), "", [])?;
        let written = self.db.transact(1, vec![archived, unlisted]).await;
        self.memory.doubt(id);
        Ok(reply(written?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_the_past_go_and_those_of_the_future_stay() {
        let current = file_name(12, "aa");
        let chunk = |version, nonce| format!("{}000", chunks_prefix(&file_name(version, nonce)));
        let cases = [
            (chunk(12, "aa"), false),
            (chunk(12, "bb"), true),
            (chunk(9, "aa"), true),
            (chunk(13, "aa"), false),
            ("sale".to_owned(), false),
            ("file#nonsense#000".to_owned(), false),
        ];
        for (sk, expected) in cases {
            assert_eq!(is_obsolete(&sk, &current, 12), expected, "{sk}");
        }
    }
}
