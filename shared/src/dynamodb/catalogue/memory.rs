//! The sales that a process read lately: bounded by bytes, the least used goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::domain::basics::ids::SaleId;
use engine::domain::sale::Sale;
use engine::ports::Published;

/// Bytes that a sale takes in memory for each byte of its file's JSON: names of seats lie there twice,
/// each in an allocation of its own, and in a table by name once a seat was chosen; prices and sections take
/// less. Measured with 60,000 listed seats: `engine/tests/sale_memory.rs`.
const BYTES_PER_FILE_BYTE: usize = 12;
/// Bytes of an entry besides its sale: the id three times, and the maps.
const BYTES_PER_ENTRY: usize = 512;

/// What is known of a sale that exists.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// The name of its file, which never changes under it.
    pub file: String,
    /// Length of the file's JSON, in bytes.
    pub file_bytes: usize,
    pub published: Published,
}

/// The sales that were read lately.
#[derive(Debug)]
pub(super) struct Memory {
    max_bytes: usize,
    entries: Mutex<Entries>,
    /// Held while a file is read, so that many readers at once read and check it once.
    pub reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<SaleId, Entry>,
    /// Which was used when, the longest ago first.
    by_use: BTreeMap<u64, SaleId>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    checked: Instant,
    is_doubted: bool,
    known: Option<Known>,
    used: u64,
}

/// What the memory says of a sale.
#[derive(Debug, Clone)]
pub(super) enum Recent {
    /// Known, and young enough: the sale, or that there is none.
    Young(Option<Published>),
    /// Known, but the caller is to read it again.
    Old,
    /// Known, and changed by this process since: to be read again with strong consistency.
    Doubted,
    Nothing,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.known.as_ref().map_or(0, |known| known.file_bytes * BYTES_PER_FILE_BYTE)
            + BYTES_PER_ENTRY
    }
}

impl Entries {
    /// Marks an entry as the one that was used last.
    fn touch(&mut self, id: &SaleId) -> Option<&mut Entry> {
        let entry = self.by_id.get_mut(id)?;
        self.uses += 1;
        if let Some(id) = self.by_use.remove(&entry.used) {
            self.by_use.insert(self.uses, id);
        }
        entry.used = self.uses;
        Some(entry)
    }

    fn remove(&mut self, id: &SaleId) {
        if let Some(entry) = self.by_id.remove(id) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes();
        }
    }

    fn insert(&mut self, id: &SaleId, known: Option<Known>) {
        self.remove(id);
        self.uses += 1;
        let entry = Entry { checked: Instant::now(), is_doubted: false, known, used: self.uses };
        self.bytes += entry.bytes();
        self.by_use.insert(entry.used, id.clone());
        self.by_id.insert(id.clone(), entry);
    }

    /// Forgets what was used longest ago until the rest fits, but never the newest.
    fn fit(&mut self, max_bytes: usize) {
        while self.bytes > max_bytes && self.by_id.len() > 1 {
            let Some((_, id)) = self.by_use.first_key_value() else { return };
            let id = id.clone();
            self.remove(&id);
        }
    }
}

impl Memory {
    /// An empty memory of at most `max_bytes` bytes. A sale that is larger by itself is remembered alone.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, entries: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry, if it is young enough. Of many readers that find it too old, the first is told to
    /// read it again, and the others get the old one meanwhile.
    pub(super) fn recent(&self, id: &SaleId, now: Instant, cache_for: Duration) -> Recent {
        let mut entries = self.entries();
        let Some(entry) = entries.touch(id) else { return Recent::Nothing };
        if entry.is_doubted {
            return Recent::Doubted;
        }
        if now.saturating_duration_since(entry.checked) >= cache_for {
            entry.checked = now;
            return Recent::Old;
        }
        Recent::Young(entry.known.as_ref().map(|known| known.published.clone()))
    }

    /// The sale of a file that was read before, and the length of that file: a file never changes under
    /// its name.
    pub(super) fn of_file(&self, id: &SaleId, file: &str) -> Option<(Arc<Sale>, usize)> {
        let mut entries = self.entries();
        let known = entries.touch(id)?.known.as_ref()?;
        (known.file == file).then(|| (Arc::clone(&known.published.sale), known.file_bytes))
    }

    /// The version of a sale that was read last.
    pub(super) fn version(&self, id: &SaleId) -> Option<u64> {
        let entries = self.entries();
        entries.by_id.get(id)?.known.as_ref().map(|known| known.published.version)
    }

    /// True if half of it is used: what is read before anybody asks leaves the rest to who asks.
    pub(super) fn is_half_full(&self) -> bool {
        self.entries().bytes > self.max_bytes / 2
    }

    /// Remembers what was read of a sale, unless a newer version was read meanwhile.
    pub(super) fn remember(&self, id: &SaleId, known: Option<Known>) {
        let mut entries = self.entries();
        let version = |known: &Known| known.published.version;
        let newest = entries.by_id.get(id).and_then(|entry| entry.known.as_ref()).map(version);
        if known.as_ref().map(version).is_some_and(|read| Some(read) < newest) {
            return;
        }
        entries.insert(id, known);
        entries.fit(self.max_bytes);
    }

    /// Makes the next reader read again, and keeps the file.
    pub(super) fn doubt(&self, id: &SaleId) {
        if let Some(entry) = self.entries().by_id.get_mut(id) {
            entry.is_doubted = true;
        }
    }

    /// Bytes that it is reckoned to take.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.entries().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::sale::archive::Lifecycle;
    use serde_json::json;

    const CACHE_FOR: Duration = Duration::from_secs(3600);

    fn id(text: &str) -> SaleId {
        SaleId::new(text).unwrap()
    }

    fn known(id: &str, file_bytes: usize) -> Known {
        let file = json!({
            "sale": id, "title": "T", "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900,
            "tiers": [{ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 9 }]
        });
        let sale = Arc::new(Sale::new(serde_json::from_value(file).unwrap()).unwrap());
        let lifecycle = Lifecycle::Listed;
        let published = Published { sale, map: None, epoch: None, version: 1, lifecycle };
        Known { file: "1-a".to_owned(), file_bytes, published }
    }

    fn has(memory: &Memory, id: &SaleId) -> bool {
        matches!(memory.recent(id, Instant::now(), CACHE_FOR), Recent::Young(_) | Recent::Old)
    }

    #[test]
    fn one_of_many_readers_reads_again_what_has_grown_old() {
        let memory = Memory::new(usize::MAX);
        let id = id("s");
        let start = Instant::now();
        assert!(matches!(memory.recent(&id, start, CACHE_FOR), Recent::Nothing));
        memory.remember(&id, None);
        let later = Instant::now() + 2 * CACHE_FOR;
        assert!(matches!(memory.recent(&id, start, CACHE_FOR), Recent::Young(None)));
        assert!(matches!(memory.recent(&id, later, CACHE_FOR), Recent::Old), "the first reads");
        assert!(matches!(memory.recent(&id, later, CACHE_FOR), Recent::Young(None)), "no other");
    }

    #[test]
    fn what_was_changed_is_read_again_and_its_file_is_kept() {
        let memory = Memory::new(usize::MAX);
        let (gone, kept) = (id("gone"), id("kept"));
        memory.remember(&gone, None);
        memory.remember(&kept, Some(known("kept", 100)));
        for id in [&gone, &kept] {
            memory.doubt(id);
            assert!(!has(&memory, id));
        }
        assert!(memory.of_file(&kept, "1-a").is_some() && memory.of_file(&kept, "2-b").is_none());
    }

    #[test]
    fn an_older_version_that_was_read_slowly_is_not_remembered() {
        let memory = Memory::new(usize::MAX);
        let of_version = |version: u64| {
            let known = known("s", 100);
            Known { published: Published { version, ..known.published.clone() }, ..known }
        };
        for (read, remembered) in [(2, 2), (1, 2), (2, 2), (3, 3)] {
            memory.remember(&id("s"), Some(of_version(read)));
            assert_eq!(memory.version(&id("s")), Some(remembered));
        }
    }

    #[test]
    fn the_least_used_go_first_and_what_nobody_has_pushes_no_sale_out() {
        let each = 1_000 * BYTES_PER_FILE_BYTE + BYTES_PER_ENTRY;
        let memory = Memory::new(3 * each);
        let ids: Vec<SaleId> = ["a", "b", "c"].map(id).to_vec();
        for id in &ids {
            memory.remember(id, Some(known(id.as_str(), 1_000)));
        }
        assert!(ids.iter().all(|id| has(&memory, id)));
        // `b` is used least.
        assert!(has(&memory, &ids[0]) && has(&memory, &ids[2]));
        memory.remember(&id("d"), Some(known("d", 1_000)));
        assert!(!has(&memory, &ids[1]), "b is out");
        assert!(has(&memory, &ids[2]) && has(&memory, &id("d")) && has(&memory, &ids[0]));
        // Ten thousand ids that are no sale push no sale out that is asked for in between.
        for index in 0..10_000 {
            memory.remember(&id(&format!("nobody-{index}")), None);
            assert!(has(&memory, &ids[0]), "{index}");
            assert!(memory.bytes() <= 3 * each);
        }
        // One that is larger than the bound is remembered alone.
        memory.remember(&id("huge"), Some(known("huge", 1_000_000)));
        assert!(has(&memory, &id("huge")) && !has(&memory, &ids[0]));
    }
}
