//! Reads Redis: plain reads of a sale's keys, every value decoded here.
//!
//! The headers of the scripts in `lua/` are the format; the engine's own readers are deliberately
//! not used. A value that is not what the scripts write is noted, and the rest is read on.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use engine::domain::basics::ids::{SaleId, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Tier;
use engine::domain::sale::archive::Lifecycle;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncCommands as _, RedisResult, ScanOptions};

use super::decode;
use super::facts::{
    Facts, HeadFact, HoldFact, RedisFacts, SaleFacts, ShardFact, TierBits, Unreadable,
};
use super::target::RedisConnection;

/// Keys that one step of a scan looks at.
const SCANNED: usize = 1000;

/// Most shards of a gate. All are read, also those that a gate with fewer shards now has had before.
const MAX_SHARDS: u16 = 64;

/// Reads what Redis has of every sale in the facts and, if those are `all_sales` of the catalogue, which
/// others it has. In a cluster the others are not looked for.
///
/// # Errors
/// Fails if Redis does, also if a key is of another type than the scripts make it.
pub(super) async fn read(
    connection: RedisConnection,
    facts: &mut Facts,
    all_sales: bool,
) -> RedisResult<()> {
    match connection {
        RedisConnection::Single(mut connection) => {
            read_sales(&mut connection, facts).await?;
            if all_sales {
                let keys = sale_keys(&mut connection).await?;
                facts.unreadable.extend(strays(keys, facts));
            }
            Ok(())
        }
        RedisConnection::Cluster(mut connection) => read_sales(&mut connection, facts).await,
    }
}

/// The keys of the sales that Redis has.
async fn sale_keys(connection: &mut MultiplexedConnection) -> RedisResult<BTreeSet<String>> {
    let options = ScanOptions::default().with_pattern("{*}:sale").with_count(SCANNED);
    let mut found = connection.scan_options(options).await?;
    let mut all = BTreeSet::new();
    while let Some(key) = found.next_item().await {
        all.insert(key?);
    }
    Ok(all)
}

/// The sales among these keys that the catalogue does not have: it was lost, or another one is audited. And
/// the loads of sales that it has that nobody reads: of all tiers where they are kept apart, of one where
/// they are together.
fn strays(keys: BTreeSet<String>, facts: &Facts) -> Vec<Unreadable> {
    let stray = |key: String| {
        let tag = key.strip_prefix('{')?.strip_suffix("}:sale")?;
        let (id, tier) = match tag.split_once('/') {
            None => (tag, None),
            Some((id, tier)) => (id, Some(tier.parse().ok()?)),
        };
        let id: SaleId = id.parse().ok()?;
        let record = format!("Redis key {key}");
        let sale = facts.sales.get(&id);
        let what = match sale.map(|sale| (sale.lifecycle, sale.loads().contains(&tier))) {
            None => "is of a sale that the catalogue does not have",
            Some((Lifecycle::Archived, _)) => "is of a sale that is archived: archive it again",
            // Of a sale that is being archived the keys are being removed.
            Some((Lifecycle::Unloading, _) | (Lifecycle::Listed, true)) => return None,
            Some((Lifecycle::Listed, false)) => "is of tiers that the sale does not keep so",
        };
        Some(Unreadable { sale: Some(id), record, what: what.to_owned() })
    };
    keys.into_iter().filter_map(stray).collect()
}

async fn read_sales(connection: &mut impl ConnectionLike, facts: &mut Facts) -> RedisResult<()> {
    for (id, sale) in &mut facts.sales {
        // Of an archived sale Redis has nothing; whatever it has is found among the strays.
        if sale.lifecycle.is_over() {
            continue;
        }
        let mut notes = Notes { sale: id.clone(), records: 0, unreadable: Vec::new() };
        let mut redis = RedisFacts::default();
        for load in sale.loads() {
            read_load(connection, sale, load, &mut redis, &mut notes).await?;
        }
        read_gate(connection, &mut redis, &mut notes).await?;
        sale.redis = redis;
        facts.records += notes.records;
        facts.unreadable.append(&mut notes.unreadable);
    }
    Ok(())
}

/// Reads the tokens of each shard of a sale's gate that counts them.
async fn read_gate(
    connection: &mut impl ConnectionLike,
    redis: &mut RedisFacts,
    notes: &mut Notes,
) -> RedisResult<()> {
    for shard in 0..MAX_SHARDS {
        let key = format!("{{{}/gate/{shard}}}:gate", notes.sale);
        let mut fields = redis::cmd("HMGET");
        fields.arg(&key).arg(&["issued", "budget", "since_ms"]);
        let fields: Vec<Option<String>> = fields.query_async(connection).await?;
        let [Some(issued), budget, since_ms] = fields.as_slice() else { continue };
        notes.records += 1;
        let number = |text: &Option<String>| text.as_ref()?.parse::<i64>().ok();
        let counts = (issued.parse::<i64>().ok(), number(budget), number(since_ms));
        if let (Some(issued), Some(remaining), Some(since_ms)) = counts {
            let since = Timestamp::from_ms(since_ms);
            redis.gate.insert(shard, ShardFact { issued, remaining, since });
        } else {
            notes.add(format!("Redis key {key}"), "has tokens that cannot be read");
        }
    }
    Ok(())
}

/// Parts of one sale that could not be read.
struct Notes {
    sale: SaleId,
    records: u64,
    unreadable: Vec<Unreadable>,
}

impl Notes {
    /// Reads each entry of a hash or a sorted set.
    fn entries<K: FromStr + Ord, V>(
        &mut self,
        key: &str,
        entries: Vec<(String, String)>,
        value: impl Fn(&str) -> Option<V>,
    ) -> BTreeMap<K, V> {
        let mut read = BTreeMap::new();
        for (field, text) in entries {
            self.records += 1;
            match field.parse().ok().zip(value(&text)) {
                Some((field, value)) => {
                    read.insert(field, value);
                }
                None => {
                    let record = format!("entry {field:?} of Redis key {key}");
                    self.add(record, &format!("is {text:?}"));
                }
            }
        }
        read
    }

    fn add(&mut self, record: String, what: &str) {
        let (sale, what) = (Some(self.sale.clone()), what.to_owned());
        self.unreadable.push(Unreadable { sale, record, what });
    }
}

/// Reads one load of a sale: of all of its tiers, or of one. Buyers' counts are added up over the loads.
async fn read_load(
    connection: &mut impl ConnectionLike,
    sale: &SaleFacts,
    load: Option<TierId>,
    redis: &mut RedisFacts,
    notes: &mut Notes,
) -> RedisResult<()> {
    let id = &notes.sale;
    let tag = load.as_ref().map_or_else(|| id.to_string(), |tier| format!("{id}/{tier}"));
    let key = |name: &str| format!("{{{tag}}}:{name}");
    // One hash has the terms, the buyers (@user) and the holds (a number).
    let (mut terms, mut holds, mut bought) = (BTreeMap::new(), Vec::new(), Vec::new());
    let entries: Vec<(String, String)> = hash(connection, &key("sale")).await?;
    for (field, value) in entries {
        if let Some(user) = field.strip_prefix('@') {
            bought.push((user.to_owned(), value));
        } else if field.starts_with(|first: char| first.is_ascii_digit()) {
            holds.push((field, value));
        } else {
            terms.insert(field, value);
        }
    }
    let mut deadlines = redis::cmd("ZRANGE");
    deadlines.arg(key("due")).arg(0).arg(-1).arg("WITHSCORES");
    let deadlines: Vec<(String, String)> = deadlines.query_async(connection).await?;
    let of_load = |tier: &&Tier| load.as_ref().is_none_or(|one| *one == tier.tier);
    for tier in sale.sale.tiers().iter().filter(of_load) {
        let mut shape: BTreeMap<String, String> =
            hash(connection, &key(&format!("tier:{}", tier.tier))).await?;
        // Where searches left off has a colon in its name, and binds nobody.
        shape.retain(|field, _| !field.contains(':'));
        let taken = get(connection, &key(&format!("taken:{}", tier.tier))).await?;
        let sold = get(connection, &key(&format!("sold:{}", tier.tier))).await?;
        let legs = usize::from(sale.sale.leg_count());
        let bits = TierBits { shape, taken: by_leg(&taken, legs), sold: by_leg(&sold, legs) };
        notes.records += 3;
        redis.tiers.insert(tier.tier.clone(), bits);
    }
    notes.records += 1;
    let of_load = |hold: &HoldFact| {
        hold.lines.iter().all(|line| load.as_ref().is_none_or(|one| *one == line.tier))
    };
    let (sale_key, due_key) = (key("sale"), key("due"));
    let holds: BTreeMap<OrderNumber, HoldFact> = notes.entries(&sale_key, holds, decode::hold);
    for (number, hold) in holds {
        // A hold of another tier's seats is where nobody looks for it, and so is a second one.
        let what = match of_load(&hold) {
            true if !redis.holds.contains_key(&number) => None,
            true => Some("is held in another tier too"),
            false => Some("is a hold of another tier's seats"),
        };
        match what {
            None => drop(redis.holds.insert(number, hold)),
            Some(what) => notes.add(format!("entry \"{number}\" of Redis key {sale_key}"), what),
        }
    }
    let due_ms: BTreeMap<OrderNumber, i64> = notes.entries(&due_key, deadlines, decode::score);
    redis.due_ms.extend(due_ms);
    let bought: BTreeMap<UserId, i64> = notes.entries(&sale_key, bought, |text| text.parse().ok());
    for (user, tickets) in bought {
        *redis.bought.entry(user).or_default() += tickets;
    }
    redis.heads.insert(load, HeadFact { epoch: terms.remove("loaded"), terms });
    Ok(())
}

async fn hash<T: redis::FromRedisValue>(
    connection: &mut impl ConnectionLike,
    key: &str,
) -> RedisResult<T> {
    redis::cmd("HGETALL").arg(key).query_async(connection).await
}

/// The bitmap of each leg, of bytes of which that many lie beside each other, one for each leg.
fn by_leg(bytes: &[u8], legs: usize) -> Vec<Vec<u8>> {
    let of = |leg: usize| bytes.chunks(legs).filter_map(|each| each.get(leg).copied()).collect();
    (0..legs).map(of).collect()
}

/// A bitmap; Redis has none where no bit was ever set.
async fn get(connection: &mut impl ConnectionLike, key: &str) -> RedisResult<Vec<u8>> {
    let bitmap: Option<Vec<u8>> = redis::cmd("GET").arg(key).query_async(connection).await?;
    Ok(bitmap.unwrap_or_default())
}
