//! The counters of the gate's limits: plain numbers that expire by themselves, on slots of the gate's own.
//!
//! Addresses and device hints are here only as keyed hashes, of which each window has another: nobody without
//! the key can try addresses against them, or follow one from a window to the next.

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use futures_util::future::try_join_all;
use redis::Pipeline;

use super::Connection;
use super::keys::CounterKeys;
use crate::hex::to_hex;
use engine::domain::admission::room::code::CodeHash;
use engine::domain::admission::rules::{Check, Counter};
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::ports::{StoreError, Stored};

/// Time for which the attempts of a buyer are kept after the last, in milliseconds: a day.
const SALE_MS: i64 = 86_400_000;
/// Time for which the counts of refusals are kept after the last, in milliseconds: 30 days.
const REFUSED_MS: i64 = 30 * SALE_MS;
/// Bytes of a hash: no two of the addresses in a window have the same.
const HASH_BYTES: usize = 16;

/// The counters behind a connection.
#[derive(Clone)]
pub struct Counters {
    connection: Connection,
    key: Option<hmac::Key>,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

/// The number of 16 bits that decides the slot of a text.
fn number_of(text: &str) -> u16 {
    Gene::from_text(text).get()
}

/// The requests to one slot, and which of the replies are the counts of which checks.
#[derive(Default)]
struct Slot {
    pipeline: Pipeline,
    replies: usize,
    wanted: Vec<(usize, usize)>,
}

impl Slot {
    /// Adds a command whose reply is the count of a check.
    fn count(&mut self, check: usize, command: &str, key: &str) {
        self.wanted.push((check, self.replies));
        self.pipeline.cmd(command).arg(key);
        self.replies += 1;
    }

    fn expire(&mut self, key: &str, ms: i64) {
        self.pipeline.cmd("PEXPIRE").arg(key).arg(ms);
        self.replies += 1;
    }
}

impl Counters {
    /// The counters behind a connection. The secret keys the hashes; without one nothing that must be
    /// hashed can be counted.
    #[must_use]
    pub fn new(connection: Connection, secret: Option<&[u8]>) -> Self {
        // A key of its own: the secret signs other things.
        let key = secret.map(|secret| {
            let secret = hmac::Key::new(HMAC_SHA256, secret);
            let derived = hmac::sign(&secret, b"onsale counters of addresses and devices");
            hmac::Key::new(HMAC_SHA256, derived.as_ref())
        });
        Self { connection, key }
    }

    /// Counts a request, in one round trip to as many slots as there are subjects: the count of each
    /// check, the request included.
    ///
    /// # Errors
    /// As [`Connection::pipeline`]; `Contract` without a secret.
    pub async fn count(
        &self,
        sale: &SaleId,
        buyer: &UserId,
        checks: &[Check],
        now: Timestamp,
    ) -> Stored<Vec<u64>> {
        let of_buyer = CounterKeys::new(sale, number_of(buyer.as_str()));
        let mut slots: BTreeMap<CounterKeys<'_>, Slot> = BTreeMap::new();
        for (index, check) in checks.iter().enumerate() {
            let window = check.window(now);
            let (keys, key, command) = match &check.counter {
                Counter::Buyer => (of_buyer, of_buyer.buyer(buyer, window), "INCR"),
                Counter::Asks => (of_buyer, of_buyer.asks(buyer), "INCR"),
                Counter::GivenUp => (of_buyer, of_buyer.given_up(buyer), "SCARD"),
                Counter::Device(hint) => self.hashed(sale, "device", hint.as_str(), window)?,
                Counter::Address(from) => {
                    self.hashed(sale, "address", &from.to_string(), window)?
                }
                Counter::Rule(rule) => {
                    let keys = CounterKeys::new(sale, number_of(rule.as_str()));
                    (keys, keys.rule(rule, window), "INCR")
                }
            };
            let slot = slots.entry(keys).or_default();
            slot.count(index, command, &key);
            if command == "INCR" {
                // Each time: a key whose time to live was lost gets it again.
                slot.expire(&key, check.left_ms(now).unwrap_or(SALE_MS));
            }
        }
        let asked = slots.values().map(|slot| async {
            let replies: Vec<u64> = self.connection.pipeline(&slot.pipeline).await?;
            let count = |(check, reply): &(usize, usize)| Some((*check, *replies.get(*reply)?));
            let counts: Option<Vec<(usize, u64)>> = slot.wanted.iter().map(count).collect();
            counts.ok_or_else(|| StoreError::Contract("a pipeline lacks replies".to_owned()))
        });
        let mut counts: Vec<(usize, u64)> = try_join_all(asked).await?.concat();
        counts.sort_unstable();
        Ok(counts.into_iter().map(|(_, count)| count).collect())
    }

    /// The slot, the key and the command of what is only kept as a hash.
    fn hashed<'s>(
        &self,
        sale: &'s SaleId,
        kind: &str,
        subject: &str,
        window: i64,
    ) -> Stored<(CounterKeys<'s>, String, &'static str)> {
        let no_key = || StoreError::Contract("no key to hash addresses with".to_owned());
        let key = self.key.as_ref().ok_or_else(no_key)?;
        let text = format!("{sale}#{kind}#{window}#{subject}");
        let tag = hmac::sign(key, text.as_bytes());
        let hash = to_hex(&tag.as_ref()[..HASH_BYTES]);
        let keys = CounterKeys::new(sale, number_of(&hash));
        Ok((keys, keys.hashed(&hash), "INCR"))
    }

    /// Counts an order that its buyer began and did not pay. However often it is reported, it counts once.
    ///
    /// # Errors
    /// As [`Connection::pipeline`].
    pub async fn given_up(&self, sale: &SaleId, user: &UserId, order: OrderNumber) -> Stored<()> {
        let key = CounterKeys::new(sale, number_of(user.as_str())).given_up(user);
        let mut pipeline = redis::pipe();
        pipeline.cmd("SADD").arg(&key).arg(order.to_string());
        pipeline.cmd("PEXPIRE").arg(&key).arg(SALE_MS);
        let _counted: Vec<u64> = self.connection.pipeline(&pipeline).await?;
        Ok(())
    }

    /// Counts a code that a buyer tries. The same code counts once: the number of different ones within a day of the first,
    /// and the milliseconds that are left of that day.
    ///
    /// # Errors
    /// As [`Connection::pipeline`].
    pub async fn code_tried(
        &self,
        sale: &SaleId,
        user: &UserId,
        code: CodeHash,
    ) -> Stored<(u64, i64)> {
        let key = CounterKeys::new(sale, number_of(user.as_str())).codes(user);
        let mut pipeline = redis::pipe();
        pipeline.cmd("SADD").arg(&key).arg(code.0.to_string()).ignore();
        // The day begins with the first: no further guess makes it longer.
        pipeline.cmd("PEXPIRE").arg(&key).arg(SALE_MS).arg("NX").ignore();
        pipeline.cmd("SCARD").arg(&key);
        pipeline.cmd("PTTL").arg(&key);
        self.connection.pipeline(&pipeline).await
    }

    /// Counts a refusal of a rule or a limit.
    ///
    /// # Errors
    /// As [`Connection::pipeline`].
    pub async fn refused(&self, sale: &SaleId, by: &str) -> Stored<()> {
        let key = CounterKeys::refused(sale);
        let mut pipeline = redis::pipe();
        pipeline.cmd("HINCRBY").arg(&key).arg(by).arg(1);
        pipeline.cmd("PEXPIRE").arg(&key).arg(REFUSED_MS);
        let _counted: Vec<u64> = self.connection.pipeline(&pipeline).await?;
        Ok(())
    }

    /// How many requests each rule and limit of a sale has refused, as far as Redis remembers.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub async fn refusals(&self, sale: &SaleId) -> Stored<BTreeMap<String, u64>> {
        let mut command = redis::cmd("HGETALL");
        command.arg(CounterKeys::refused(sale));
        self.connection.query(&command).await
    }
}
