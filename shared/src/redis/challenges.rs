//! Challenges in Redis: the number of buyers who ask for one, and the challenges that were answered.
//!
//! Plain commands on slots of their own, as many as the gate has shards. Every key has a time to live,
//! and may be lost: a challenge that was answered is then good once more, for its buyer.

use super::Connection;
use super::keys::ChallengeKeys;
use crate::hex::to_hex;
use engine::domain::admission::gate::shard_of;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::Stage;
use engine::ports::Stored;

/// Seconds over which those who ask are counted together.
const WINDOW_SECONDS: i64 = 10;
/// Time for which a count is kept, in milliseconds: it is read until the next one is full, by clocks that
/// may differ.
const COUNT_MS: i64 = 300_000;
/// Time by which the clocks of two functions may differ, in milliseconds: an answer is remembered that
/// much longer than its challenge is good.
const CLOCK_MS: i64 = 60_000;

/// Where the challenges of a buyer are counted and remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengePlace {
    sale: SaleId,
    shard: u16,
    shards: u16,
}

impl ChallengePlace {
    /// The place of a buyer in a sale whose gate has so many shards.
    #[must_use]
    pub fn new(sale: &SaleId, user: &UserId, shards: u16) -> Self {
        Self { sale: sale.clone(), shard: shard_of(user, shards), shards }
    }

    fn keys(&self) -> ChallengeKeys<'_> {
        ChallengeKeys { sale: &self.sale, shard: self.shard }
    }
}

#[derive(Debug, Clone)]
pub struct RedisChallenges {
    connection: Connection,
}

impl RedisChallenges {
    /// Challenges behind a connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Counts a buyer who is asked, and says how many are asked a second in the whole sale: the mean
    /// over ten seconds, of these or those before, whichever is more.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub async fn count(&self, place: &ChallengePlace, stage: Stage, now: Timestamp) -> Stored<u64> {
        let window = now.ms().div_euclid(WINDOW_SECONDS * 1000);
        let (key, before) =
            (place.keys().asked(stage, window), place.keys().asked(stage, window - 1));
        let mut pipeline = redis::pipe();
        pipeline.cmd("INCR").arg(&key);
        pipeline.cmd("PEXPIRE").arg(&key).arg(COUNT_MS).ignore();
        pipeline.cmd("GET").arg(&before);
        let (these, before): (u64, Option<u64>) = self.connection.pipeline(&pipeline).await?;
        let asked = these.max(before.unwrap_or(0)).saturating_mul(u64::from(place.shards));
        Ok(asked / WINDOW_SECONDS.unsigned_abs())
    }

    /// Uses a challenge up that is good for `left_ms` more; true for the first who does. `attempt` tells
    /// this attempt from every other, so that one whose reply was lost and that is sent again is still
    /// the first.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub async fn use_up(
        &self,
        place: &ChallengePlace,
        id: &str,
        left_ms: i64,
        attempt: &[u8; 8],
    ) -> Stored<bool> {
        let attempt = to_hex(attempt);
        let mut command = redis::cmd("SET");
        command.arg(place.keys().used(id)).arg(&attempt).arg("NX").arg("GET");
        command.arg("PX").arg(left_ms.max(0).saturating_add(CLOCK_MS));
        let found: Option<String> = self.connection.query(&command).await?;
        Ok(found.is_none_or(|found| found == attempt))
    }

    /// Makes a challenge good again that this buyer has used up.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub async fn give_back(&self, place: &ChallengePlace, id: &str) -> Stored<()> {
        let mut command = redis::cmd("UNLINK");
        command.arg(place.keys().used(id));
        let _removed: u64 = self.connection.query(&command).await?;
        Ok(())
    }
}
