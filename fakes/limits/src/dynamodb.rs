//! The throughput of DynamoDB's tables on demand: by partition, by table and by index.
//!
//! Before it is carried out, a request is admitted by what it costs at least ([`Meter::admit`]); what it
//! cost more is charged afterwards ([`Meter::charge`]) and may leave a bucket in debt. Reads and
//! writes are throttled apart.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::bucket::Bucket;
use crate::table::{
    BURST_SECONDS, COLLECTION_GB, INDEX_LAG_MS, PARTITION_READS, PARTITION_WRITES, READ_UNIT_BYTES,
    TABLE_GROWTH, TABLE_GROWTH_SECONDS, TABLE_QUOTA, TRANSACTION_MS, WRITE_UNIT_BYTES,
};
use crate::{Now, Quotas};

/// Partitions whose buckets are kept before those that are full are forgotten.
const MAX_PARTITIONS: usize = 20_000;

/// Whether capacity is for reading or for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    Read,
    Write,
}

/// A table, or one of its global indexes, whose capacity is its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    pub table: String,
    pub index: Option<String>,
}

impl Resource {
    /// Its ARN in a region and an account.
    #[must_use]
    pub fn arn(&self, region: &str, account: &str) -> String {
        let index = self.index.as_ref().map_or_else(String::new, |index| format!("/index/{index}"));
        format!("arn:aws:dynamodb:{region}:{account}:table/{}{index}", self.table)
    }
}

/// What a request needs of one partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The table or index.
    pub resource: Resource,
    /// The value of the partition key, as text; `None` if only the table or index is charged.
    pub key: Option<String>,
    /// The least number of units that it costs.
    pub units: f64,
    /// True if the table has a local index: its item collections are never split.
    pub is_collection: bool,
}

/// How tables behave beyond the quotas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether unused capacity of the last five minutes can be used, which is not guaranteed.
    pub burst: bool,
    /// How long a partition has to be throttled until it is split, after which it carries twice as
    /// much; never if `None`.
    pub split_after: Option<Duration>,
}

/// The limit that a request has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Partition,
    /// The table, which has not grown so far.
    Growth,
    /// The quota of a table.
    Quota,
}

/// Why a part was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub access: Access,
    pub bound: Bound,
    /// The table or index.
    pub resource: Resource,
}

impl Refusal {
    /// The reason as DynamoDB names it. A table that has not grown yet has as few partitions, so that
    /// the two are one reason.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        let is_index = self.resource.index.is_some();
        match (is_index, self.access, self.bound) {
            (false, Access::Read, Bound::Quota) => "TableReadAccountLimitExceeded",
            (false, Access::Write, Bound::Quota) => "TableWriteAccountLimitExceeded",
            (true, Access::Read, Bound::Quota) => "IndexReadAccountLimitExceeded",
            (true, Access::Write, Bound::Quota) => "IndexWriteAccountLimitExceeded",
            (false, Access::Read, _) => "TableReadKeyRangeThroughputExceeded",
            (false, Access::Write, _) => "TableWriteKeyRangeThroughputExceeded",
            (true, Access::Read, _) => "IndexReadKeyRangeThroughputExceeded",
            (true, Access::Write, _) => "IndexWriteKeyRangeThroughputExceeded",
        }
    }

    /// The reason for a report: which table, and which limit of it.
    #[must_use]
    pub fn shown(&self) -> String {
        let bound = match self.bound {
            Bound::Partition => "one partition",
            Bound::Growth => "the table has not grown so far",
            Bound::Quota => "the quota of a table",
        };
        let Resource { table, index } = &self.resource;
        let index = index.as_ref().map_or_else(String::new, |index| format!(", index {index}"));
        format!("{} ({table}{index}: {bound})", self.reason())
    }
}

/// Write units of an item.
#[must_use]
pub fn write_units(bytes: usize) -> f64 {
    units(bytes, WRITE_UNIT_BYTES.size())
}

/// Read units of an item that is read strongly consistent.
#[must_use]
pub fn read_units(bytes: usize) -> f64 {
    units(bytes, READ_UNIT_BYTES.size())
}

fn units(bytes: usize, of: usize) -> f64 {
    u32::try_from(bytes.div_ceil(of).max(1)).map_or(f64::INFINITY, f64::from)
}

/// The items that transactions are at work on. The emulator carries a transaction out in an instant;
/// here its items stay occupied for as long as one takes, and whoever writes to one meanwhile fails at
/// once.
#[derive(Debug, Default)]
pub struct Conflicts(HashMap<String, Now>);

/// Items that are remembered before those are forgotten that are free again.
const MAX_OCCUPIED: usize = 10_000;

impl Conflicts {
    /// Which of these items another transaction is at work on. If there is none and this is a
    /// transaction, it is at work on them from now on.
    pub fn met(&mut self, items: &[String], is_transaction: bool, now: Now) -> Vec<bool> {
        let met: Vec<bool> =
            items.iter().map(|item| self.0.get(item).is_some_and(|until| *until > now)).collect();
        if is_transaction && !met.contains(&true) {
            if self.0.len() >= MAX_OCCUPIED {
                self.0.retain(|_, until| *until > now);
            }
            let until = now + Duration::from_millis(TRANSACTION_MS.count());
            self.0.extend(items.iter().map(|item| (item.clone(), until)));
        }
        met
    }
}

/// What was written so lately that global indexes do not have it.
#[derive(Debug, Default)]
pub struct IndexLag {
    /// When an index has the last write of each of these items. A query asks for each item that it has found,
    /// while thousands were written lately.
    shown_at: HashMap<String, Now>,
    /// The writes in their order, to forget them by.
    writes: VecDeque<(Now, String)>,
}

impl IndexLag {
    /// Remembers that items are written now.
    pub fn written(&mut self, items: &[String], now: Now) {
        while self.writes.front().is_some_and(|(shown_at, _)| *shown_at <= now) {
            let Some((_, item)) = self.writes.pop_front() else { break };
            // Unless it was written again meanwhile.
            if self.shown_at.get(&item).is_some_and(|shown_at| *shown_at <= now) {
                self.shown_at.remove(&item);
            }
        }
        let shown_at = now + Duration::from_millis(INDEX_LAG_MS.count());
        for item in items {
            self.shown_at.insert(item.clone(), shown_at);
            self.writes.push_back((shown_at, item.clone()));
        }
    }

    /// True if an index has the last write of an item by now.
    #[must_use]
    pub fn is_shown(&self, item: &str, now: Now) -> bool {
        self.shown_at.get(item).is_none_or(|shown_at| *shown_at <= now)
    }
}

/// The sizes of the item collections of tables with a local index: what was written to them. What is
/// written in place of something else counts again, so that a size is an upper bound.
#[derive(Debug, Default)]
pub struct Collections(HashMap<String, u64>);

impl Collections {
    /// Counts a write; false, and nothing is counted, if the collection would be too large.
    pub fn add(&mut self, collection: &str, bytes: u64) -> bool {
        let size = self.0.entry(collection.to_owned()).or_default();
        let fits = *size + bytes <= COLLECTION_GB.count() << 30;
        if fits {
            *size += bytes;
        }
        fits
    }
}

/// A partition: its bucket, and since when it has been throttled.
#[derive(Debug)]
struct Partition {
    bucket: Bucket,
    per_second: f64,
    hot_since: Option<Now>,
}

/// The capacity of a table or an index, for one access.
#[derive(Debug)]
struct Capacity {
    /// What it carries in a second by now.
    ceiling: f64,
    bucket: Bucket,
    partitions: HashMap<String, Partition>,
    second: u64,
    in_second: f64,
    /// The busiest second since it has last grown.
    peak: f64,
    grown_at: Now,
}

/// The meter of all tables.
#[derive(Debug)]
pub struct Meter {
    quotas: Quotas,
    settings: Settings,
    capacities: HashMap<(Resource, Access), Capacity>,
}

impl Meter {
    /// A meter of new tables, warmed as the quotas say.
    #[must_use]
    pub fn new(quotas: Quotas, settings: Settings) -> Self {
        Self { quotas, settings, capacities: HashMap::new() }
    }

    /// Forgets a table that was deleted, with its indexes.
    pub fn forget(&mut self, table: &str) {
        self.capacities.retain(|(resource, _), _| resource.table != table);
    }

    /// Whether a request may be carried out: for each part why not, if one may not. If all may, their
    /// units are taken.
    pub fn admit(&mut self, access: Access, parts: &[Part], now: Now) -> Vec<Option<Refusal>> {
        let mut refused = Vec::with_capacity(parts.len());
        for part in parts {
            let bound = self.bound(access, part, now);
            refused.push(bound.map(|bound| {
                let resource = part.resource.clone();
                Refusal { access, bound, resource }
            }));
            // Taken at once, so that parts of one partition are counted together.
            self.take(access, part, part.units, now);
        }
        let is_refused = refused.iter().any(Option::is_some);
        for part in parts {
            if is_refused {
                self.take(access, part, -part.units, now);
            } else {
                self.capacity(access, part, now).count(part.units, now);
            }
        }
        refused
    }

    /// Charges units of a partition and of its table, whether they are there or not.
    pub fn charge(&mut self, access: Access, part: &Part, units: f64, now: Now) {
        self.take(access, part, units, now);
        self.capacity(access, part, now).count(units, now);
    }

    fn take(&mut self, access: Access, part: &Part, units: f64, now: Now) {
        let settings = self.settings;
        let capacity = self.capacity(access, part, now);
        capacity.bucket.take(units, now);
        if let Some(key) = &part.key {
            capacity.partition(key, access, settings, now).bucket.take(units, now);
        }
    }

    /// The limit that a part would go beyond.
    fn bound(&mut self, access: Access, part: &Part, now: Now) -> Option<Bound> {
        let settings = self.settings;
        let capacity = self.capacity(access, part, now);
        if !capacity.bucket.has(part.units, now) {
            let is_quota = capacity.ceiling >= TABLE_QUOTA.rate();
            return Some(if is_quota { Bound::Quota } else { Bound::Growth });
        }
        let key = part.key.as_ref()?;
        let partition = capacity.partition(key, access, settings, now);
        if partition.bucket.has(part.units, now) {
            partition.hot_since = None;
            return None;
        }
        let since = *partition.hot_since.get_or_insert(now);
        let may_split = !part.is_collection;
        if let Some(after) = settings.split_after.filter(|_| may_split)
            && now.saturating_sub(since) >= after
        {
            partition.split(now);
        }
        Some(Bound::Partition)
    }

    fn capacity(&mut self, access: Access, part: &Part, now: Now) -> &mut Capacity {
        let warm = match access {
            Access::Read => self.quotas.warm_reads,
            Access::Write => self.quotas.warm_writes,
        };
        let burst = self.settings.burst;
        let key = (part.resource.clone(), access);
        let capacity = self.capacities.entry(key).or_insert_with(|| {
            let ceiling = f64::from(warm).min(TABLE_QUOTA.rate());
            Capacity::new(ceiling, burst, now)
        });
        capacity.grow(burst, now);
        capacity
    }
}

/// The capacity of a bucket: that of a second, or of five minutes.
fn depth(per_second: f64, burst: bool) -> f64 {
    if burst { per_second * BURST_SECONDS.rate() } else { per_second }
}

impl Capacity {
    fn new(ceiling: f64, burst: bool, now: Now) -> Self {
        Self {
            ceiling,
            bucket: Bucket::full(ceiling, depth(ceiling, burst), now),
            partitions: HashMap::new(),
            second: now.as_secs(),
            in_second: 0.0,
            peak: 0.0,
            grown_at: now,
        }
    }

    /// Counts units of the current second, of which the busiest is the peak.
    fn count(&mut self, units: f64, now: Now) {
        if now.as_secs() != self.second {
            self.second = now.as_secs();
            self.in_second = 0.0;
        }
        self.in_second += units;
        self.peak = self.peak.max(self.in_second);
    }

    /// Grows to twice the former peak, if the time for it has passed.
    fn grow(&mut self, burst: bool, now: Now) {
        if now.saturating_sub(self.grown_at) < TABLE_GROWTH_SECONDS.seconds() {
            return;
        }
        let grown = (self.peak * TABLE_GROWTH.rate()).min(TABLE_QUOTA.rate());
        if grown > self.ceiling {
            self.ceiling = grown;
            self.bucket.set(grown, depth(grown, burst), now);
        }
        self.peak = 0.0;
        self.grown_at = now;
    }

    fn partition(
        &mut self,
        key: &str,
        access: Access,
        settings: Settings,
        now: Now,
    ) -> &mut Partition {
        if self.partitions.len() >= MAX_PARTITIONS && !self.partitions.contains_key(key) {
            // A full bucket is as good as none.
            self.partitions.retain(|_, partition| !partition.bucket.is_full(now));
        }
        self.partitions.entry(key.to_owned()).or_insert_with(|| {
            let per_second = match access {
                Access::Read => PARTITION_READS.rate(),
                Access::Write => PARTITION_WRITES.rate(),
            };
            let bucket = Bucket::full(per_second, depth(per_second, settings.burst), now);
            Partition { bucket, per_second, hot_since: None }
        })
    }
}

impl Partition {
    /// Splits it for heat: two partitions carry twice as much.
    fn split(&mut self, now: Now) {
        self.per_second *= 2.0;
        self.bucket.set(self.per_second, self.per_second, now);
        self.hot_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_HOUR: u64 = 1800;

    fn at(seconds: u64) -> Now {
        Now::from_secs(seconds)
    }

    fn part(key: &str, units: f64) -> Part {
        let resource = Resource { table: "orders".to_owned(), index: None };
        Part { resource, key: Some(key.to_owned()), units, is_collection: false }
    }

    #[test]
    fn an_index_has_a_write_after_its_lag() {
        let mut lag = IndexLag::default();
        lag.written(&["a".to_owned()], at(1));
        assert!(!lag.is_shown("a", at(1)) && lag.is_shown("b", at(1)));
        lag.written(&["b".to_owned()], at(1) + Duration::from_millis(400));
        let later = at(1) + Duration::from_millis(500);
        assert!(lag.is_shown("a", later) && !lag.is_shown("b", later));
        lag.written(&["a".to_owned()], later);
        lag.written(&["a".to_owned()], later + Duration::from_millis(300));
        let first_is_over = later + Duration::from_millis(500);
        lag.written(&[], first_is_over);
        assert!(!lag.is_shown("a", first_is_over), "it was written again");
        assert!(lag.is_shown("a", first_is_over + Duration::from_millis(300)));
        lag.written(&[], at(9));
        assert!(lag.writes.is_empty() && lag.shown_at.is_empty());
    }

    #[test]
    fn a_collection_holds_ten_gigabytes() {
        let mut collections = Collections::default();
        assert!(collections.add("orders 7", 10 << 30));
        assert!(!collections.add("orders 7", 1));
        assert!(collections.add("orders 8", 1));
    }

    fn meter(settings: Settings) -> Meter {
        Meter::new(Quotas::default(), settings)
    }

    /// The units that one second gives, in requests of one unit spread over `partitions` partitions.
    fn given(meter: &mut Meter, access: Access, partitions: u32, now: Now) -> usize {
        let asked = |index: u32| part(&(index % partitions).to_string(), 1.0);
        let mut admitted = |index| meter.admit(access, &[asked(index)], now)[0].is_none();
        (0..60_000).filter(|index| admitted(*index)).count()
    }

    #[test]
    fn a_partition_carries_a_thousand_writes_and_three_thousand_reads() {
        let mut meter = meter(Settings::default());
        for second in 1..4 {
            assert_eq!(given(&mut meter, Access::Write, 1, at(second)), 1000);
            assert_eq!(given(&mut meter, Access::Read, 1, at(second)), 3000, "apart from writes");
        }
        let refused = meter.admit(Access::Write, &[part("0", 1.0)], at(3));
        let refusal = refused[0].as_ref().unwrap();
        assert_eq!(refusal.bound, Bound::Partition);
        assert_eq!(refusal.reason(), "TableWriteKeyRangeThroughputExceeded");
    }

    #[test]
    fn a_new_table_carries_four_thousand_writes_and_grows_to_twice_its_peak_in_half_an_hour() {
        let mut meter = meter(Settings::default());
        assert_eq!(given(&mut meter, Access::Write, 100, at(0)), 4000);
        assert_eq!(given(&mut meter, Access::Write, 100, at(60)), 4000, "not within minutes");
        assert_eq!(given(&mut meter, Access::Read, 100, at(60)), 12_000);
        let growth = [4000, 8000, 16_000, 32_000, 40_000, 40_000];
        for (step, ceiling) in growth.into_iter().enumerate().skip(1) {
            let now = at(HALF_HOUR * u64::try_from(step).unwrap() + 100);
            meter.admit(Access::Write, &[part("0", 0.0)], now);
            let later = now + Duration::from_secs(1);
            assert_eq!(given(&mut meter, Access::Write, 100, later), ceiling, "step {step}");
        }
        let full = meter.admit(Access::Write, &[part("1", 1.0)], at(HALF_HOUR * 5 + 101));
        assert_eq!(full[0].as_ref().unwrap().reason(), "TableWriteAccountLimitExceeded");
    }

    #[test]
    fn an_idle_half_hour_does_not_make_a_table_smaller() {
        let mut meter = meter(Settings::default());
        given(&mut meter, Access::Write, 100, at(0));
        meter.admit(Access::Write, &[part("0", 0.0)], at(HALF_HOUR));
        meter.admit(Access::Write, &[part("0", 0.0)], at(HALF_HOUR * 9));
        assert_eq!(given(&mut meter, Access::Write, 100, at(HALF_HOUR * 9 + 1)), 8000);
    }

    #[test]
    fn a_warm_table_carries_what_it_was_warmed_for_but_not_its_partitions() {
        let mut meter = Meter::new(Quotas::default().warmed(20_000), Settings::default());
        assert_eq!(given(&mut meter, Access::Write, 100, at(0)), 20_000);
        assert_eq!(given(&mut meter, Access::Write, 1, at(2)), 1000);
        let mut beyond = Meter::new(Quotas::default().warmed(90_000), Settings::default());
        assert_eq!(given(&mut beyond, Access::Write, 100, at(0)), 40_000, "the quota");
    }

    #[test]
    fn a_request_is_admitted_whole_or_not_at_all_and_pays_nothing_then() {
        let mut meter = meter(Settings::default());
        meter.charge(Access::Write, &part("hot", 0.0), 1000.0, at(0));
        let refused = meter.admit(Access::Write, &[part("cold", 600.0), part("hot", 2.0)], at(0));
        assert!(refused[0].is_none() && refused[1].is_some());
        let alone = meter.admit(Access::Write, &[part("cold", 1000.0)], at(0));
        assert!(alone[0].is_none(), "nothing was taken of it");
        let same = meter.admit(Access::Write, &[part("x", 600.0), part("x", 600.0)], at(0));
        assert!(same[0].is_none() && same[1].is_some(), "parts of a partition count together");
    }

    #[test]
    fn what_a_request_cost_more_is_a_debt() {
        let mut meter = meter(Settings::default());
        assert!(meter.admit(Access::Write, &[part("a", 1.0)], at(0))[0].is_none());
        meter.charge(Access::Write, &part("a", 1.0), 2999.0, at(0));
        for second in [1, 2] {
            assert!(meter.admit(Access::Write, &[part("a", 1.0)], at(second))[0].is_some());
        }
        assert!(meter.admit(Access::Write, &[part("a", 1.0)], at(3))[0].is_none());
    }

    #[test]
    fn heat_splits_a_partition_where_asked_and_never_an_item_collection() {
        let hot = |is_collection| {
            let split_after = Some(Duration::from_secs(60));
            let settings = Settings { split_after, ..Settings::default() };
            let mut meter = Meter::new(Quotas::default().warmed(40_000), settings);
            let one = Part { is_collection, ..part("0", 1.0) };
            meter.charge(Access::Write, &one, 1e6, at(0));
            for second in [100, 161] {
                let refused = meter.admit(Access::Write, std::slice::from_ref(&one), at(second));
                assert_eq!(refused[0].as_ref().unwrap().bound, Bound::Partition);
            }
            given(&mut meter, Access::Write, 1, at(2000))
        };
        assert_eq!(hot(false), 2000);
        assert_eq!(hot(true), 1000);
    }

    #[test]
    fn unused_capacity_is_kept_for_five_minutes_where_asked() {
        let mut meter = meter(Settings { burst: true, ..Settings::default() });
        assert_eq!(given(&mut meter, Access::Write, 1, at(0)), 60_000);
        assert!(meter.admit(Access::Write, &[part("0", 240_000.0)], at(0))[0].is_none());
        assert!(meter.admit(Access::Write, &[part("0", 1.0)], at(0))[0].is_some());
    }

    #[test]
    fn an_index_has_partitions_and_a_name_of_its_own() {
        let mut meter = meter(Settings::default());
        let resource = Resource { table: "orders".to_owned(), index: Some("due".to_owned()) };
        let of_index = Part { resource: resource.clone(), ..part("0", 1000.0) };
        assert!(meter.admit(Access::Write, std::slice::from_ref(&of_index), at(0))[0].is_none());
        let refused = meter.admit(Access::Write, &[part("0", 1.0), of_index], at(0));
        let refusal = refused[1].as_ref().unwrap();
        assert_eq!(refusal.reason(), "IndexWriteKeyRangeThroughputExceeded");
        assert_eq!(resource.arn("eu", "1"), "arn:aws:dynamodb:eu:1:table/orders/index/due");
        assert!(refusal.shown().contains("orders, index due: one partition"));
        meter.forget("orders");
        assert!(meter.capacities.is_empty());
    }

    #[test]
    fn a_transaction_keeps_others_from_its_items_for_as_long_as_it_takes() {
        let mut conflicts = Conflicts::default();
        let items =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let ms = Now::from_millis;
        assert_eq!(conflicts.met(&items(&["a", "b"]), true, ms(100)), [false, false]);
        assert_eq!(conflicts.met(&items(&["c", "b"]), true, ms(101)), [false, true]);
        assert_eq!(conflicts.met(&items(&["c"]), false, ms(101)), [false], "it was given up");
        assert_eq!(conflicts.met(&items(&["a"]), false, ms(104)), [true], "a single write");
        assert_eq!(conflicts.met(&items(&["a"]), false, ms(105)), [false]);
        assert_eq!(conflicts.met(&items(&["a"]), true, ms(105)), [false], "writes occupy nothing");
    }

    #[test]
    fn the_buckets_of_idle_partitions_are_forgotten() {
        let mut meter = Meter::new(Quotas::default().warmed(40_000), Settings::default());
        for second in 0..4 {
            for index in 0..15_000 {
                let key = format!("{second}-{index}");
                meter.charge(Access::Write, &part(&key, 0.0), 1.0, at(second * 10));
            }
        }
        let kept: usize = meter.capacities.values().map(|of| of.partitions.len()).sum();
        assert!(kept <= MAX_PARTITIONS + 15_000, "{kept}");
        assert_eq!([write_units(0), write_units(1025), read_units(4096)], [1.0, 2.0, 1.0]);
    }
}
