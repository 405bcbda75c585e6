//! One sale on both sides: in Redis through the adapter, and in the model.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use engine::domain::admission::gate::GateShard;
use engine::domain::basics::ids::TierId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{HoldRecord, Inconsistency, Inventory};
use engine::domain::sale::SaleState;
use engine::ports::{Gate as _, InventoryCounts, Seats as _, StoreError, Stored};
use shared::redis::keys::{GateKeys, InventoryKeys};
use shared::redis::{Connection, RedisGate, RedisSeats, Scripts, hold_record};

use super::commands::{Command, SeededRng};

/// Redis and the model, which must answer alike.
pub struct Fixture {
    connection: Connection,
    seats: RedisSeats,
    gate: RedisGate,
    model: Inventory,
    /// True unless the last load itself was inconsistent, as some are on purpose.
    is_consistent: bool,
    shards: [GateShard; 2],
    rng: SeededRng,
}

/// The result of a sequence.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of commands.
    pub commands: usize,
    /// The number of times that each reply was given, by its name.
    pub replies: BTreeMap<String, usize>,
}

/// # Panics
/// If the server does not answer, say because a script never ends: that is no difference between answers, and every
/// sequence after it would meet the same.
fn same<T: Debug + PartialEq>(what: &str, redis: &Stored<T>, model: &T) -> Result<(), String> {
    match redis {
        Ok(answered) if answered == model => Ok(()),
        Err(StoreError::Unavailable(why)) => panic!("{what}: the server does not answer: {why}"),
        _ => Err(format!("{what}\n  Redis: {redis:?}\n  model: {model:?}")),
    }
}

impl Fixture {
    pub fn new(
        connection: &Connection,
        scripts: &std::sync::Arc<Scripts>,
        seed: u64,
        prefix: &str,
    ) -> Self {
        Self {
            connection: connection.clone(),
            seats: RedisSeats::with_scripts(connection.clone(), scripts.clone()),
            gate: RedisGate::with_scripts(connection.clone(), scripts.clone()),
            model: Inventory::default(),
            is_consistent: true,
            shards: Default::default(),
            rng: SeededRng::new(seed, prefix),
        }
    }

    /// Runs a whole sequence and compares every reply and the state at the end.
    pub async fn run(mut self) -> Result<Tally, String> {
        let mut tally = Tally::default();
        for step in 0..self.rng.length() {
            let command = self.rng.command(&self.model, &self.shards);
            let reply = self.step(&command).await.map_err(|difference| {
                format!("step {step}: {command:?}\nin state {:?}\n{difference}", self.model)
            })?;
            self.check_model(&command).map_err(|broken| {
                format!("step {step}: {command:?}\nin state {:?}\n{broken}", self.model)
            })?;
            tally.commands += 1;
            let name: String = match reply.as_str() {
                // Another reply of the script than the one that names an epoch.
                "Stale(None)" => "Absent".to_owned(),
                reply => reply.chars().take_while(|c| c.is_alphanumeric()).collect(),
            };
            let verb = format!("{command:?}");
            let verb = verb.split(['(', ' ']).next().unwrap_or_default();
            *tally.replies.entry(format!("{verb} {name}")).or_default() += 1;
        }
        self.compare_state().await?;
        self.clean_up().await?;
        Ok(tally)
    }

    /// Checks the invariants of the model after a command, unless it was loaded without them.
    fn check_model(&mut self, command: &Command) -> Result<(), Inconsistency> {
        if matches!(command, Command::Load(_) | Command::LoadPart(_)) {
            self.is_consistent = self.model.check().is_ok();
        }
        if self.is_consistent { self.model.check() } else { Ok(()) }
    }

    /// Gives one command to both sides; answers what both have said.
    async fn step(&mut self, command: &Command) -> Result<String, String> {
        macro_rules! both {
            ($verb:ident, $command:expr) => {{
                let model = self.model.$verb($command);
                same(stringify!($verb), &self.seats.$verb($command).await, &model)?;
                Ok(format!("{model:?}"))
            }};
        }
        match command {
            Command::Load(load) => both!(load, load),
            Command::LoadPart(part) => both!(load_part, part),
            Command::Hold(hold) => both!(hold, hold),
            Command::Sell(sell) => both!(sell, sell),
            Command::Unsell(unsell) => both!(unsell, unsell),
            Command::Release(release) => both!(release, release),
            Command::Mark(mark) => both!(mark, mark),
            Command::Restore(restore) => both!(restore, restore),
            Command::Repair(repair) => both!(repair, repair),
            Command::Recount(recount) => both!(recount, recount),
            Command::Admit(admit) => {
                let model = self.shards[usize::from(admit.shard)].admit(admit);
                same("admit", &self.gate.admit(admit).await, &model)?;
                Ok(format!("{model:?}"))
            }
            Command::AddTokens(add) => {
                let model = self.shards[usize::from(add.shard)].add_tokens(add);
                same("add_tokens", &self.gate.add_tokens(add).await, &model)?;
                Ok(format!("{model:?}"))
            }
            Command::Forget => {
                let mut flush = redis::cmd("SCRIPT");
                flush.arg("FLUSH");
                let flushed: Stored<redis::Value> = self.connection.query(&flush).await;
                flushed.map_err(|error| error.to_string())?;
                Ok("Forgotten".to_owned())
            }
        }
    }

    async fn read<T: redis::FromRedisValue>(&self, verb: &str, key: &str) -> Stored<T> {
        let mut command = redis::cmd(verb);
        command.arg(key);
        self.connection.query(&command).await
    }

    /// Reads back everything of the sale.
    async fn compare_state(&self) -> Result<(), String> {
        let inventory = self.rng.inventory();
        let keys = InventoryKeys(inventory);
        let (model, seats) = (&self.model, &self.seats);
        let epoch = model.loaded.as_ref().map(|(epoch, _)| epoch.clone());
        same("epoch", &seats.epoch(inventory).await, &epoch)?;
        let holds: Vec<_> =
            model.holds.iter().map(|(order, hold)| (*order, hold.clone())).collect();
        for (tier, grid) in &model.tiers {
            let legs = grid.taken.len() as u16;
            same("grid", &seats.grid(inventory, tier, legs).await, grid)?;
        }
        let mut read = seats.holds(inventory).await.map_err(|error| error.to_string())?;
        read.sort_by_key(|(order, _)| *order);
        same("holds", &Ok(read), &holds)?;
        for (order, _) in &holds {
            let record = model.holds.get(order).cloned();
            same("record", &seats.record(inventory, *order).await, &record)?;
        }
        same("count of holds", &seats.count_holds(inventory).await, &(holds.len() as u64))?;
        for (now, most) in [(self.rng.now(), 2), (Timestamp::from_ms(i64::MAX >> 11), 100)] {
            same("due", &seats.due(inventory, now, most).await, &model.due(now, most))?;
        }
        let tiers: Vec<TierId> = model.tiers.keys().cloned().collect();
        let bitmaps = model.tiers.values().flat_map(|grid| grid.taken.iter().flatten());
        let ones: u64 = bitmaps.map(|byte| u64::from(byte.count_ones())).sum();
        same("count of taken", &seats.count_taken(inventory, &tiers).await, &ones)?;
        let of_tier = model
            .tiers
            .values()
            .map(|grid| grid.taken.iter().flatten().map(|byte| u64::from(byte.count_ones())).sum());
        let counts = InventoryCounts { taken: of_tier.collect(), holds: holds.len() as u64 };
        same(
            "counts",
            &seats.count_left(inventory, &tiers).await,
            &epoch.as_ref().map(|_| counts),
        )?;
        let bought: BTreeMap<String, u16> =
            model.bought.iter().map(|(user, count)| (user.to_string(), count.get())).collect();
        let mut entries: BTreeMap<String, String> =
            self.read("HGETALL", &keys.sale()).await.map_err(|error| error.to_string())?;
        entries.retain(|field, _| !field.starts_with(|first: char| first.is_ascii_digit()));
        let (buyers, mut read): (BTreeMap<String, String>, BTreeMap<String, String>) =
            entries.into_iter().partition(|(field, _)| field.starts_with('@'));
        let buyers = buyers
            .into_iter()
            .map(|(field, count)| (field[1..].to_owned(), count.parse().unwrap()));
        same("bought", &Ok(buyers.collect()), &bought)?;
        if let Some((_, terms)) = &model.loaded {
            let state = if terms.state == SaleState::Open { "open" } else { "paused" };
            let (opens, closes) = (terms.opens_at.ms(), terms.closes_at.ms());
            let fields = [
                ("state", state.to_owned()),
                ("opens_ms", opens.to_string()),
                ("closes_ms", closes.to_string()),
                ("limit", terms.limit.to_string()),
                ("legs", terms.leg_count.to_string()),
            ];
            read.remove("loaded");
            read.remove("wide");
            read.remove("tiers");
            let expected = fields.map(|(field, value)| (field.to_owned(), value)).into();
            same("terms", &Ok(read), &expected)?;
        }
        self.compare_staging().await?;
        self.compare_gate().await
    }

    /// What is there of a load that is not yet published.
    async fn compare_staging(&self) -> Result<(), String> {
        let keys = InventoryKeys(self.rng.inventory());
        let read: BTreeMap<String, String> =
            self.read("HGETALL", &keys.loading()).await.map_err(|error| error.to_string())?;
        let expected: Option<BTreeMap<String, String>> =
            self.model.staging.as_ref().map(|staging| {
                let tiers: Vec<&str> = self.model.tiers.keys().map(TierId::as_str).collect();
                let mut fields = BTreeMap::from([
                    ("load".to_owned(), staging.epoch.to_string()),
                    ("next".to_owned(), staging.next.to_string()),
                    ("tiers".to_owned(), tiers.join(";")),
                ]);
                let record = |(order, record): (&OrderNumber, &HoldRecord)| {
                    (order.to_string(), hold_record::to_text(record))
                };
                fields.extend(staging.holds.iter().map(record));
                let bought = staging.bought.iter();
                fields.extend(bought.map(|(user, count)| (format!("@{user}"), count.to_string())));
                fields
            });
        same("staging", &Ok(read), &expected.unwrap_or_default())?;
        let held = self.model.staging.as_ref().map_or(0, |staging| staging.holds.len());
        same("staged deadlines", &self.read("ZCARD", &keys.loading_due()).await, &held)
    }

    async fn compare_gate(&self) -> Result<(), String> {
        let counts: Vec<_> = self.shards.iter().filter_map(GateShard::counts).collect();
        same("tokens", &self.gate.tokens(self.rng.sale(), 2).await, &counts)?;
        for (shard, model) in (0..).zip(&self.shards) {
            let keys = GateKeys { sale: self.rng.sale(), shard };
            let gate: HashMap<String, String> =
                self.read("HGETALL", &keys.gate()).await.map_err(|error| error.to_string())?;
            let field = |name: &str| gate.get(name).filter(|text| !text.is_empty());
            let number = |name: &str| field(name).map(|text| text.parse::<i64>().unwrap());
            let read = GateShard {
                budget: number("budget"),
                generation: number("generation").unwrap_or(0) as u64,
                second: number("second").unwrap_or(0),
                admitted: number("admitted").unwrap_or(0) as u32,
                exhausted_until: number("dry_until_ms").map(Timestamp::from_ms),
                holds: field("holds").is_some_and(|text| text == "held"),
                filled: number("filled").unwrap_or(0),
                left: number("left").unwrap_or(0),
                outstanding: number("outstanding").unwrap_or(0),
                topped_up_at: number("topped_up_ms").map(Timestamp::from_ms),
                locks: model.locks.clone(),
                issued: number("issued").unwrap_or(0),
                by_hand: number("by_hand").unwrap_or(0),
                since: number("since_ms").map(Timestamp::from_ms),
                additions: gate
                    .iter()
                    .filter_map(|(field, total)| {
                        Some((field.strip_prefix('+')?.parse().unwrap(), total.parse().unwrap()))
                    })
                    .collect(),
            };
            same("gate", &Ok(&read), &model)?;
            let additions = number("additions").unwrap_or(0);
            same("additions", &Ok(additions), &(model.additions.len() as i64))?;
            for user in self.rng.users() {
                let now = self.rng.now();
                let until = model.locks.get(user).filter(|until| **until > now);
                let lock: Option<i64> =
                    self.read("GET", &keys.lock(user)).await.map_err(|error| error.to_string())?;
                let lock = lock.filter(|until| *until > now.ms());
                same("lock", &Ok(lock), &until.map(|until| until.ms()))?;
            }
        }
        Ok(())
    }

    /// Removes the sale, and finds nothing that should not have been there.
    async fn clean_up(&self) -> Result<(), String> {
        let keys = InventoryKeys(self.rng.inventory());
        let mut known = vec![keys.sale(), keys.due(), keys.loading(), keys.loading_due()];
        known.extend(self.model.tiers.keys().flat_map(|tier| keys.of_tier(tier)));
        let mut delete = redis::cmd("DEL");
        delete.arg(&known);
        let _: i64 = self.connection.query(&delete).await.map_err(|error| error.to_string())?;
        let pattern = format!("{{{}}}*", self.rng.inventory());
        let left: Vec<String> =
            self.read("KEYS", &pattern).await.map_err(|error| error.to_string())?;
        same("keys left over", &Ok(left), &Vec::new())
    }
}
