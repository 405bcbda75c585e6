//! The catalogue in DynamoDB: a sale's file, its version, the epoch it was loaded under.
//!
//! An item holds at most 400 KB and a hall's file can be longer, so a file lies in chunks and a
//! header names them. The chunks of one publication have a name of their own that no other
//! publication shares, and the header is written last: whoever reads a header finds the chunks of
//! exactly that file, or none and reads the header again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use super::dynamo::{Dynamo, random_hex};
use super::expressions::{Value, keyed, update};
use super::items::{Fields, Item, item, number, text};
use super::tables::{SALE_HEADER, SALES_LIST};
use super::transaction::Transacted;
use engine::domain::ids::{Epoch, SaleId};
use engine::domain::sale::{Sale, SaleFile};
use engine::domain::time::Timestamp;
use engine::ports::{Catalogue, ChangeReply, Freshness, Published, StoreError, Stored};

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

/// Most attempts to read a file that is replaced meanwhile.
const MAX_READS: usize = 5;
/// Most sales that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// The catalogue of sales, in DynamoDB, with a small memory.
#[derive(Debug, Clone)]
pub struct DynamoCatalogue {
    db: Dynamo,
    memory: Arc<Memory>,
}

/// The sales that were read lately.
#[derive(Debug, Default)]
struct Memory {
    entries: Mutex<HashMap<SaleId, Entry>>,
    /// Held while a file is read, so that many readers at once read and check it once.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Entry {
    checked: Instant,
    found: Option<(String, Published)>,
}

impl Memory {
    /// The entry, if it is young enough. Of many readers that find it too old, the first gets none and
    /// reads it again, and the others get the old one meanwhile.
    fn recent(&self, id: &SaleId, now: Instant, cache_for: Duration) -> Option<Option<Published>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get_mut(id)?;
        if now.saturating_duration_since(entry.checked) >= cache_for {
            entry.checked = now;
            return None;
        }
        Some(entry.found.as_ref().map(|(_, published)| published.clone()))
    }

    /// The sale of a file that was read before: a file never changes under its name.
    fn of_file(&self, id: &SaleId, file: &str) -> Option<Arc<Sale>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, published) = entries.get(id)?.found.as_ref()?;
        (known == file).then(|| Arc::clone(&published.sale))
    }

    fn remember(&self, id: &SaleId, found: Option<(String, Published)>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_REMEMBERED && !entries.contains_key(id) {
            entries.clear();
        }
        entries.insert(id.clone(), Entry { checked: Instant::now(), found });
    }

    /// Makes the next reader read again, and keeps the file.
    fn doubt(&self, id: &SaleId) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Entry { found: None, .. }) = entries.get(id) {
            entries.remove(id);
        }
        if let Some(entry) = entries.get_mut(id) {
            // An entry whose age cannot be told is as good as none.
            match entry.checked.checked_sub(Duration::from_secs(86_400)) {
                Some(long_ago) => entry.checked = long_ago,
                None => {
                    entries.remove(id);
                }
            }
        }
    }
}

/// A sale's header.
#[derive(Debug)]
struct Header {
    version: u64,
    file: String,
    chunks: usize,
    epoch: Option<Epoch>,
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

fn header_key(sale: &SaleId) -> Item {
    item([("pk", text(sale)), ("sk", text(SALE_HEADER))])
}

impl DynamoCatalogue {
    /// The catalogue behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db, memory: Arc::default() }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    async fn header(&self, id: &SaleId) -> Stored<Option<Header>> {
        let Some(item) = self.db.get(self.table(), header_key(id)).await? else { return Ok(None) };
        let fields = Fields::from_item(&item);
        Ok(Some(Header {
            version: fields.number("version")?,
            file: fields.text("file")?,
            chunks: fields.number("chunks")?,
            epoch: fields.maybe_text("epoch")?,
        }))
    }

    /// The sale as it is now.
    async fn read(&self, id: &SaleId) -> Stored<Option<Published>> {
        for _ in 0..MAX_READS {
            let Some(header) = self.header(id).await? else {
                self.memory.remember(id, None);
                return Ok(None);
            };
            if let Some(sale) = self.sale_of(id, &header).await? {
                let Header { version, file, epoch, .. } = header;
                let published = Published { sale, epoch, version };
                self.memory.remember(id, Some((file, published.clone())));
                return Ok(Some(published));
            }
        }
        Err(StoreError::Unavailable(format!("the file of {id} has no rest, or is incomplete")))
    }

    /// The sale of a header; `None` if its chunks are gone, as after another publication.
    async fn sale_of(&self, id: &SaleId, header: &Header) -> Stored<Option<Arc<Sale>>> {
        if let Some(sale) = self.memory.of_file(id, &header.file) {
            return Ok(Some(sale));
        }
        let _reading = self.memory.reading.lock().await;
        if let Some(sale) = self.memory.of_file(id, &header.file) {
            return Ok(Some(sale));
        }
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :sale AND begins_with(#sk, :chunks)",
            [("sale", text(id)), ("chunks", text(chunks_prefix(&header.file)))],
        );
        let chunks = self.db.query(query.consistent_read(true), MAX_CHUNKS).await?;
        if chunks.len() != header.chunks {
            return Ok(None);
        }
        let mut json = Vec::with_capacity(chunks.len() * CHUNK_BYTES);
        for chunk in &chunks {
            let data = chunk.get("data").and_then(|data| data.as_b().ok());
            let data = data.ok_or_else(|| broken(id, "a chunk without data"))?;
            json.extend_from_slice(data.as_ref());
        }
        let file: SaleFile = serde_json::from_slice(&json).map_err(|error| broken(id, error))?;
        let sale =
            Sale::from_published(file).map_err(|defects| broken(id, format!("{defects:?}")))?;
        let sale = Arc::new(sale);
        let Header { version, file, epoch, .. } = header;
        let published =
            Published { sale: Arc::clone(&sale), epoch: epoch.clone(), version: *version };
        self.memory.remember(id, Some((file.clone(), published)));
        Ok(Some(sale))
    }

    async fn write_chunks(&self, id: &SaleId, file: &str, json: &[u8]) -> Stored<usize> {
        let chunks = json.chunks(CHUNK_BYTES);
        let count = chunks.len();
        if count > MAX_CHUNKS {
            return Err(broken(id, format!("a file of {} bytes", json.len())));
        }
        for (index, chunk) in chunks.enumerate() {
            let chunk = item([
                ("pk", text(id)),
                ("sk", text(format!("{}{index:03}", chunks_prefix(file)))),
                ("data", AttributeValue::B(Blob::new(chunk))),
            ]);
            let put = self.db.client().put_item().table_name(self.table()).set_item(Some(chunk));
            self.db.write(|| put.clone().send()).await?;
        }
        Ok(count)
    }

    /// Deletes the chunks that nobody needs any more. One that stays is deleted after the next
    /// publication.
    async fn tidy(&self, id: &SaleId, is_obsolete: impl Fn(&str) -> bool) -> Stored<()> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :sale AND begins_with(#sk, :chunks)",
            [("sale", text(id)), ("chunks", text("file#"))],
        );
        let query = query.projection_expression("#sk");
        for chunk in self.db.query(query, usize::MAX).await? {
            let sk: String = Fields::from_item(&chunk).text("sk")?;
            if is_obsolete(&sk) {
                let key = item([("pk", text(id)), ("sk", text(sk))]);
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
                    Some(found) => Ok(found),
                    None => self.read(id).await,
                }
            }
            Freshness::Fresh => self.read(id).await,
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

    async fn publish(&self, file: &SaleFile, replaces: Option<u64>) -> Stored<ChangeReply> {
        let id = &file.sale;
        let version = replaces.unwrap_or(0) + 1;
        let name = file_name(version, &random_hex(8)?);
        let json = serde_json::to_vec(file).map_err(|error| broken(id, error))?;
        let chunks = self.write_chunks(id, &name, &json).await?;
        let condition = match replaces {
            Some(_) => "#version = :replaces",
            None => "attribute_not_exists(#version)",
        };
        let mut with: Vec<Value> = vec![
            ("version", number(version)),
            ("file", text(&name)),
            ("chunks", number(i128::try_from(chunks).map_err(|error| broken(id, error))?)),
        ];
        with.extend(replaces.map(|replaces| ("replaces", number(replaces))));
        let header = update(
            self.table(),
            header_key(id),
            "SET #version = :version, #file = :file, #chunks = :chunks",
            condition,
            with,
        )?;
        let entry = item([("pk", text(SALES_LIST)), ("sk", text(id))]);
        let listed = update(
            self.table(),
            entry,
            "SET #version = :version",
            "",
            [("version", number(version))],
        )?;
        let written = self.db.transact(1, vec![header, listed]).await;
        self.memory.doubt(id);
        // An error leaves open which file is current, so that nothing may go.
        let reply = reply(written?);
        let tidied = match reply {
            ChangeReply::Done => self.tidy(id, |sk| is_obsolete(sk, &name, version)).await,
            ChangeReply::Conflict => {
                let ours = chunks_prefix(&name);
                self.tidy(id, |sk| sk.starts_with(&ours)).await
            }
        };
        if let Err(error) = tidied {
            tracing::warn!(sale = %id, %error, "chunks of another publication stay for now");
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
        let condition = "attribute_exists(#version) \
             AND (attribute_not_exists(#lease_until_ms) OR #lease_until_ms <= :now)";
        let with =
            [("epoch", text(epoch)), ("now", number(now.ms())), ("until", number(until.ms()))];
        let expression = "SET #lease = :epoch, #lease_until_ms = :until";
        self.change_header(id, expression, condition, with).await
    }

    async fn prolong(&self, id: &SaleId, epoch: &Epoch, until: Timestamp) -> Stored<ChangeReply> {
        // Not if the lease is gone: another load may have taken it and ended it since.
        let with = [("epoch", text(epoch)), ("until", number(until.ms()))];
        self.change_header(id, "SET #lease_until_ms = :until", "#lease = :epoch", with).await
    }

    async fn loaded(&self, id: &SaleId, epoch: &Epoch) -> Stored<ChangeReply> {
        let expression = "SET #epoch = :epoch REMOVE #lease, #lease_until_ms";
        self.change_header(id, expression, "#lease = :epoch", [("epoch", text(epoch))]).await
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

    #[test]
    fn one_of_many_readers_reads_again_what_has_grown_old() {
        let memory = Memory::default();
        let id = SaleId::new("s").unwrap();
        let cache_for = Duration::from_secs(2);
        let start = Instant::now();
        assert!(memory.recent(&id, start, cache_for).is_none());
        memory.remember(&id, None);
        let later = Instant::now() + Duration::from_secs(3);
        assert!(memory.recent(&id, start, cache_for).is_some());
        assert!(memory.recent(&id, later, cache_for).is_none(), "the first reads again");
        assert!(memory.recent(&id, later, cache_for).is_some(), "the second does not");
    }

    #[test]
    fn what_was_changed_is_read_again() {
        let memory = Memory::default();
        let id = SaleId::new("s").unwrap();
        memory.remember(&id, None);
        memory.doubt(&id);
        assert!(memory.recent(&id, Instant::now(), Duration::from_secs(2)).is_none());
    }
}
