//! The order number, by the gene method: 63 bits that carry the time, entropy and the buyer's
//! shard gene, so that an order can be found in its buyer's partition from its number alone.
//!
//! ```text
//!  62            31 30         19 18       10 9          0
//! | seconds since  | entropy of  | counter   | gene of    |
//! | 2024-01-01 UTC | the process |           | the buyer  |
//! |    32 bits     |   12 bits   |  9 bits   |  10 bits   |
//! ```
//!
//! For every power of two *n* ≤ 1024, `number % n == gene(user) % n`: a database sharded *n* ways by
//! user is sharded the same way by order number. The bits alone do not make a number unique: the conditional put of
//! the order does.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ids::{InvalidId, UserId};
use super::time::Timestamp;

/// 2024-01-01T00:00:00Z in milliseconds since the Unix epoch: second zero of order numbers.
pub const NUMBER_EPOCH_MS: i64 = 1_704_067_200_000;

const GENE_BITS: u32 = 10;
const COUNTER_BITS: u32 = 9;
const PROCESS_BITS: u32 = 12;
const SECOND_BITS: u32 = 32;

/// The low ten bits of a buyer's numbers: which partition everything of the buyer lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gene(u16);

impl Gene {
    pub const COUNT: u16 = 1 << GENE_BITS;

    /// The gene of a text id: a decimal integer below 2^63 without leading zeros is its own gene
    /// (modulo 1024); any other text is hashed, the first eight bytes of its SHA-256 as a big-endian
    /// integer.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let canonical = |number: &u64| *number < 1 << 63 && number.to_string() == text;
        let whole = text.parse::<u64>().ok().filter(canonical).unwrap_or_else(|| {
            let digest = Sha256::digest(text.as_bytes());
            digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        });
        Self(u16::try_from(whole % u64::from(Self::COUNT)).unwrap_or(0))
    }

    /// The gene as a number below [`Gene::COUNT`].
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

/// The number of an order: below 2^63, text in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderNumber(u64);

impl OrderNumber {
    /// Puts a number together. Parts beyond their bits are cut off; a moment outside the 136 years
    /// from 2024 wraps, which costs order in time and nothing else.
    #[must_use]
    pub fn compose(now: Timestamp, process: u16, counter: u16, gene: Gene) -> Self {
        let part = |value: u64, bits: u32| value & ((1 << bits) - 1);
        let seconds = now.ms().saturating_sub(NUMBER_EPOCH_MS).max(0).cast_unsigned() / 1000;
        let high = part(seconds, SECOND_BITS) << PROCESS_BITS | part(process.into(), PROCESS_BITS);
        let low = part(counter.into(), COUNTER_BITS) << GENE_BITS | u64::from(gene.get());
        Self(high << (COUNTER_BITS + GENE_BITS) | low)
    }

    /// The partition of the order and of its buyer.
    #[must_use]
    pub fn gene(self) -> Gene {
        Gene(u16::try_from(self.0 % u64::from(Gene::COUNT)).unwrap_or(0))
    }

    /// When the number was minted, to the second.
    #[must_use]
    pub fn minted_at(self) -> Timestamp {
        let seconds = self.0 >> (PROCESS_BITS + COUNTER_BITS + GENE_BITS);
        Timestamp::from_ms(NUMBER_EPOCH_MS + seconds.cast_signed() * 1000)
    }

    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number in 19 digits with leading zeros, so that text order is number order.
    #[must_use]
    pub fn sortable(self) -> String {
        format!("{:019}", self.0)
    }
}

impl fmt::Display for OrderNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::str::FromStr for OrderNumber {
    type Err = InvalidId;
    /// Reads a decimal number below 2^63 without leading zeros, so that one order has one text.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        text.parse::<u64>()
            .ok()
            .filter(|number| *number < 1 << 63 && number.to_string() == text)
            .map(Self)
            .ok_or(InvalidId { kind: "order number", rule: "a decimal number below 2^63" })
    }
}

impl schemars::JsonSchema for OrderNumber {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OrderNumber".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(0|[1-9][0-9]{0,18})$",
            "description": "order number: a decimal number below 2^63, as text"
        })
    }
}

impl TryFrom<String> for OrderNumber {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<OrderNumber> for String {
    fn from(number: OrderNumber) -> String {
        number.to_string()
    }
}

/// Mints numbers for one process: 12 bits of its own entropy and a counter. No registry of worker
/// ids could survive a thousand environments starting in ten seconds; a clash between two of them is
/// met by the conditional put instead. One process never repeats a number: when it mints more than
/// its counter holds in a second, it goes on in the next.
#[derive(Debug)]
pub struct Mint {
    process: u16,
    first_count: u64,
    /// The second and, in the low bits, how many were minted in it.
    last: AtomicU64,
}

impl Mint {
    /// A mint with the process's share of entropy: the low 12 bits name the process, the next 9 are
    /// where its counter begins.
    #[must_use]
    pub fn new(entropy: u32) -> Self {
        let process = u16::try_from(entropy & 0xfff).unwrap_or(0);
        Self { process, first_count: u64::from(entropy >> PROCESS_BITS), last: AtomicU64::new(0) }
    }

    /// The next number for a buyer.
    #[must_use]
    pub fn mint(&self, now: Timestamp, user: &UserId) -> OrderNumber {
        let second = now.ms().saturating_sub(NUMBER_EPOCH_MS).max(0).cast_unsigned() / 1000;
        let after = |last: u64| (last + 1).max(second << COUNTER_BITS);
        let last =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        let turn = after(last.unwrap_or_else(|last| last));
        let seconds = (turn >> COUNTER_BITS).cast_signed();
        let at = Timestamp::from_ms(NUMBER_EPOCH_MS.saturating_add(seconds.saturating_mul(1000)));
        let count = u16::try_from(turn.wrapping_add(self.first_count) & 0x1ff).unwrap_or(0);
        OrderNumber::compose(at, self.process, count, Gene::from_text(user.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_carries_its_buyers_gene_for_every_power_of_two() {
        let mint = Mint::new(0xdead_beef);
        let now = Timestamp::from_ms(1_795_000_000_123);
        for user in ["0", "7", "1023", "1024", "9223372036854775807", "alice", "007", "张三"] {
            let user = UserId::new(user).unwrap();
            let number = mint.mint(now, &user);
            for shift in 0..=10 {
                let shards = 1u64 << shift;
                let gene = u64::from(Gene::from_text(user.as_str()).get());
                assert_eq!(number.get() % shards, gene % shards);
            }
            assert_eq!(number.minted_at().ms(), now.ms() / 1000 * 1000);
            assert_eq!(number.to_string().parse(), Ok(number));
        }
    }

    #[test]
    fn the_gene_of_a_text_is_stable() {
        // First eight bytes of SHA-256("alice"): 2bd806c97f0e00af, whose low ten bits are 0x0af.
        assert_eq!(Gene::from_text("alice").get(), 0x0af);
        assert_eq!(Gene::from_text("1025").get(), 1);
        assert_ne!(Gene::from_text("01").get(), 1, "a text with a leading zero is not a number");
    }

    #[test]
    fn one_process_repeats_no_number_however_quick_it_is() {
        let mint = Mint::new(0x00ff_f001);
        let user = UserId::new("alice").unwrap();
        let now = Timestamp::from_ms(NUMBER_EPOCH_MS + 5_000);
        let mut seen = std::collections::HashSet::new();
        assert!((0..5000).all(|_| seen.insert(mint.mint(now, &user))));
        let later = mint.mint(now.plus_seconds(60), &user);
        assert_eq!(later.minted_at(), now.plus_seconds(60), "it is back at the clock's second");
        assert!(seen.insert(later));
    }

    #[test]
    fn one_order_has_one_text() {
        for bad in ["", "01", "+1", "-1", "1.0", "9223372036854775808", "1e3", " 1"] {
            assert!(bad.parse::<OrderNumber>().is_err(), "{bad:?} was taken as an order number");
        }
    }
}
