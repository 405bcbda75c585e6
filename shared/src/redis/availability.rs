//! Availability: the seats that are left of a sale, read seldom and answered often.
//!
//! Everybody asks for availability, and the sale's slot must stay free for holding and selling. So a
//! process reads a sale at most once an interval, and what one process has read the others take from a
//! **copy** in another slot. There are [`COPIES`] of a sale; each is renewed by one process at a time, from a
//! replica if there is one. However many processes there are, the sale's slot is read [`COPIES`] times an
//! interval, which is a second, or longer for a sale so large that this would take more than
//! [`MAX_SLOT_PER_MILLE`] of the slot.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::broken;
use super::connection::Connection;
use super::keys::CopyKeys;
use super::reads;
use engine::domain::basics::ids::{InventoryId, Legs, SaleId, TierId};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::capacity::SLOT_UNITS_PER_SECOND;
use engine::domain::sale::Sale;
use engine::ports::{StoreError, Stored};

/// Copies of one sale's reading, each in a slot of its own: one slot answers some thousands of them a second.
pub const COPIES: u16 = 4;
/// The most of a slot's units that all copies together read of a sale, in thousandths.
pub const MAX_SLOT_PER_MILLE: u64 = 50;
/// Bytes that are one unit.
const UNIT_BYTES: u64 = 1_024;
/// The shortest time between two readings of a copy.
const MIN_INTERVAL_MS: u64 = 1_000;
/// Time for which a copy is kept though nobody renews it, in intervals.
const KEPT_INTERVALS: u64 = 10;
/// Times that a process without a copy checks whether the one that reads the sale has written it, and
/// the wait between two checks.
const POLLS: u32 = 60;
const POLL_PAUSE: Duration = Duration::from_millis(25);

/// What was taken of a sale at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading.
    pub as_of: Timestamp,
    /// Each tier and its bitmaps, one a leg.
    tiers: Vec<(TierId, Vec<Vec<u8>>)>,
}

impl Reading {
    /// What is taken of a tier on any leg of a journey; empty if the sale was not loaded.
    #[must_use]
    pub fn taken(&self, tier: &TierId, legs: Legs) -> Vec<u8> {
        let bitmaps = self.tiers.iter().find(|(of, _)| of == tier).map(|(_, bitmaps)| bitmaps);
        let on = usize::from(legs.from())..usize::from(legs.to());
        reads::union(bitmaps.and_then(|bitmaps| bitmaps.get(on)).unwrap_or_default())
    }

    /// True if every tier had its bitmaps.
    fn is_loaded(&self) -> bool {
        self.tiers.iter().all(|(_, legs)| legs.iter().all(|bitmap| !bitmap.is_empty()))
    }

    fn age_ms(&self, now: Timestamp) -> u64 {
        u64::try_from(now.ms_since(self.as_of)).unwrap_or(0)
    }
}

/// A reading as a copy has it.
#[derive(Serialize, Deserialize)]
struct Copy {
    as_of_ms: i64,
    tiers: Vec<(TierId, Vec<String>)>,
}

/// What is left of each sale, as this process knows it.
#[derive(Debug)]
pub struct Availability {
    copies: Connection,
    replicas: Connection,
    copy: u16,
    known: Mutex<HashMap<SaleId, Arc<Reading>>>,
}

impl Availability {
    /// Reads sales through `replicas`, and keeps copies through `copies`. `random` chooses the copy of this
    /// process.
    #[must_use]
    pub fn new(copies: Connection, replicas: Connection, random: u32) -> Self {
        let copy = u16::try_from(random % u32::from(COPIES)).unwrap_or(0);
        Self { copies, replicas, copy, known: Mutex::default() }
    }

    /// What is taken of a sale, as it was at most a few intervals ago: the reading says when.
    ///
    /// # Errors
    /// Fails if Redis does; `Unavailable` if another process reads the sale and has not written what it read.
    pub async fn reading(&self, sale: &Sale, now: Timestamp) -> Stored<Arc<Reading>> {
        let interval_ms = interval_ms(sale);
        let fresh = |reading: &Arc<Reading>| reading.age_ms(now) < interval_ms;
        if let Some(known) = self.known(sale.id()).filter(fresh) {
            return Ok(known);
        }
        let keys = CopyKeys { sale: sale.id(), copy: self.copy };
        for _ in 0..POLLS {
            let copy = self.read_copy(keys).await?.map(Arc::new);
            if let Some(copy) = copy.clone().filter(fresh) {
                return Ok(self.remember(sale.id(), copy, now, interval_ms));
            }
            if self.may_read(keys, interval_ms).await? {
                let reading = Arc::new(self.read(sale, now).await?);
                if reading.is_loaded() {
                    self.write_copy(keys, &reading, interval_ms).await?;
                    self.remember(sale.id(), reading.clone(), now, interval_ms);
                }
                return Ok(reading);
            }
            // Another process is reading. What is a little older is still an answer.
            if let Some(copy) = copy {
                return Ok(copy);
            }
            sleep(POLL_PAUSE).await;
        }
        Err(StoreError::Unavailable(format!("sale {} is being read", sale.id())))
    }

    fn known(&self, sale: &SaleId) -> Option<Arc<Reading>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(sale).cloned()
    }

    /// Keeps a reading, and drops those that are of no use any more.
    fn remember(
        &self,
        sale: &SaleId,
        reading: Arc<Reading>,
        now: Timestamp,
        interval_ms: u64,
    ) -> Arc<Reading> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, reading| reading.age_ms(now) < interval_ms);
        known.insert(sale.clone(), reading.clone());
        reading
    }

    /// True for one process an interval.
    async fn may_read(&self, keys: CopyKeys<'_>, interval_ms: u64) -> Stored<bool> {
        let mut command = redis::cmd("SET");
        command.arg(keys.lock()).arg(1).arg("NX").arg("PX").arg(interval_ms);
        let set: Option<String> = self.copies.query(&command).await?;
        Ok(set.is_some())
    }

    async fn read(&self, sale: &Sale, now: Timestamp) -> Stored<Reading> {
        let mut read = Vec::with_capacity(sale.tiers().len());
        for inventory in sale.inventories() {
            let tiers: Vec<TierId> =
                sale.tiers_in(&inventory).map(|tier| tier.tier.clone()).collect();
            let bitmaps =
                reads::bitmaps(&self.replicas, &inventory, &tiers, sale.leg_count()).await?;
            read.extend(tiers.into_iter().zip(bitmaps));
        }
        Ok(Reading { as_of: now, tiers: read })
    }

    async fn read_copy(&self, keys: CopyKeys<'_>) -> Stored<Option<Reading>> {
        let copy: Option<Vec<u8>> = self.copies.query(redis::cmd("GET").arg(keys.copy())).await?;
        copy.as_deref().map(from_bytes).transpose()
    }

    async fn write_copy(
        &self,
        keys: CopyKeys<'_>,
        reading: &Reading,
        interval_ms: u64,
    ) -> Stored<()> {
        let mut command = redis::cmd("SET");
        command
            .arg(keys.copy())
            .arg(to_bytes(reading)?)
            .arg("PX")
            .arg(KEPT_INTERVALS * interval_ms);
        self.copies.query(&command).await
    }
}

/// Milliseconds between two readings of one copy of a sale: by its largest inventory, of which each has a
/// slot of its own.
fn interval_ms(sale: &Sale) -> u64 {
    let bytes_of = |inventory: &InventoryId| -> usize {
        sale.tiers_in(inventory).map(|tier| tier.layout.initial().len()).sum()
    };
    let bytes = sale.inventories().iter().map(bytes_of).max().unwrap_or(0);
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(sale.leg_count().into());
    let units = (bytes / UNIT_BYTES + 1).saturating_mul(COPIES.into());
    let budget = u64::from(SLOT_UNITS_PER_SECOND) * MAX_SLOT_PER_MILLE / 1000;
    units.saturating_mul(1000).div_ceil(budget).max(MIN_INTERVAL_MS)
}

fn to_bytes(reading: &Reading) -> Stored<Vec<u8>> {
    let text = |bitmaps: &Vec<Vec<u8>>| bitmaps.iter().map(|bits| STANDARD.encode(bits)).collect();
    let tiers = reading.tiers.iter().map(|(tier, bitmaps)| (tier.clone(), text(bitmaps)));
    let copy = Copy { as_of_ms: reading.as_of.ms(), tiers: tiers.collect() };
    serde_json::to_vec(&copy).map_err(broken)
}

fn from_bytes(bytes: &[u8]) -> Stored<Reading> {
    let Copy { as_of_ms, tiers } = serde_json::from_slice(bytes).map_err(broken)?;
    let tier = |(tier, legs): (TierId, Vec<String>)| {
        let bitmaps: Result<_, _> = legs.iter().map(|bits| STANDARD.decode(bits)).collect();
        bitmaps.map(|bitmaps| (tier, bitmaps)).map_err(broken)
    };
    let tiers = tiers.into_iter().map(tier).collect::<Stored<_>>()?;
    Ok(Reading { as_of: Timestamp::from_ms(as_of_ms), tiers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        let tier = |name: &str, bits: [u8; 2]| {
            (TierId::new(name).unwrap(), bits.map(|byte| vec![byte]).to_vec())
        };
        Reading {
            as_of: Timestamp::from_ms(7),
            tiers: vec![tier("a", [0b1000_0000, 0b0100_0000]), tier("b", [1, 2])],
        }
    }

    #[test]
    fn a_copy_says_what_was_read() {
        let copy = to_bytes(&reading()).unwrap();
        assert_eq!(from_bytes(&copy).unwrap(), reading());
        assert!(from_bytes(b"{}").is_err());
        assert!(from_bytes(br#"{"as_of_ms":1,"tiers":[["a",["?"]]]}"#).is_err());
    }

    #[test]
    fn a_seat_is_taken_that_is_taken_on_any_leg_of_the_journey() {
        let (reading, tier) = (reading(), TierId::new("a").unwrap());
        let taken = |from, to| reading.taken(&tier, Legs::new(from, to).unwrap());
        assert_eq!(taken(0, 1), [0b1000_0000]);
        assert_eq!(taken(0, 2), [0b1100_0000]);
        assert!(taken(0, 3).is_empty(), "a leg that the sale does not have");
        assert!(reading.taken(&TierId::new("c").unwrap(), Legs::ONE).is_empty());
    }
}
