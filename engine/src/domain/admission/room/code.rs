//! Codes: a buyer needs one to join a group that asks for codes.
//!
//! Stores have a code as a hash only: SHA-256 over the sale, the group and the code's text. The hash has no key,
//! because the keys of a deployment are replaced while codes stay good for weeks. A code that is made here has 80
//! random bits, too many to try out; a code that an operator brings is as hard to guess as its text.
//!
//! A code that many buyers share is one text in several *shards*. Each shard is an item with a part of the code's uses,
//! so that no item is written more often than DynamoDB takes. A buyer begins at the buyer's own shard, and goes on to
//! the next ones while those are used up.
//!
//! | what | SHA-256 of |
//! |---|---|
//! | hash of a code | `05`, sale (text), group (text), code (text) |

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::draw::text;
use super::join::bucket_of;
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};

/// What is hashed begins with it, so that no other hash of a room is one of a code.
const CODE: u8 = 0x05;
/// Fewest letters and digits of a code.
pub const MIN_CODE_CHARS: usize = 8;
/// Most letters and digits of a code.
pub const MAX_CODE_CHARS: usize = 64;
/// Most bytes of a code as somebody writes it, blanks and hyphens included.
const MAX_WRITTEN_BYTES: usize = 2 * MAX_CODE_CHARS;
/// Random bytes of a code that is made.
pub const MADE_CODE_BYTES: usize = 10;
/// The letters and digits of a code that is made: Crockford's, none of which looks like another.
/// Source: <https://www.crockford.com/base32.html>
const ALPHABET: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J',
    'K', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
];
/// Letters and digits between two hyphens of a code that is made.
const CODE_PART_CHARS: usize = 4;
/// Most shards of a code. Each takes part in 500 joins a second at most: two write units each of the 1,000 that an
/// item takes a second. Joins are throttled at 2,500 a second.
pub const MAX_CODE_SHARDS: u8 = 16;
/// Uses of a code from which it has one more shard.
const USES_PER_SHARD: u32 = 64;
/// Most uses of a code.
pub const MAX_CODE_USES: u32 = 1_000_000;
/// Most different codes that a buyer tries in a sale within a day.
pub const MAX_CODES_TRIED: u64 = 10;

/// A code, in the form in which it is hashed: letters in upper case, no blanks and hyphens, and what is easily
/// mistaken for each other the same (`O` is `0`, `I` and `L` are `1`). It is a secret of whoever has it: it is shown
/// nowhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Code(String);

/// The text is no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a code must be 8 to 64 letters and digits; blanks and hyphens between them mean nothing")]
pub struct InvalidCode;

impl Code {
    /// Reads a code as somebody has written it.
    ///
    /// # Errors
    /// It has too few or too many letters and digits, or something else in it.
    pub fn new(written: &str) -> Result<Self, InvalidCode> {
        if written.len() > MAX_WRITTEN_BYTES {
            return Err(InvalidCode);
        }
        let meant = written.chars().filter(|char| !matches!(char, ' ' | '-'));
        let read = |char: char| match char.to_ascii_uppercase() {
            'O' => Some('0'),
            'I' | 'L' => Some('1'),
            other if other.is_ascii_alphanumeric() => Some(other),
            _ => None,
        };
        let code = meant.map(read).collect::<Option<String>>().ok_or(InvalidCode)?;
        if (MIN_CODE_CHARS..=MAX_CODE_CHARS).contains(&code.len()) {
            Ok(Self(code))
        } else {
            Err(InvalidCode)
        }
    }

    /// Its hash in a group.
    #[must_use]
    pub fn hash(&self, sale: &SaleId, group: &GroupId) -> CodeHash {
        let parts = [sale.as_str(), group.as_str(), &self.0].map(text);
        let [sale, group, code] = &parts;
        CodeHash(Hash::of_parts(&[&[CODE], sale, group, code]))
    }
}

impl fmt::Debug for Code {
    /// Shows nothing of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        Self::new(&written).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": MIN_CODE_CHARS,
            "maxLength": MAX_WRITTEN_BYTES,
            "pattern": "^[A-Za-z0-9 -]*$",
            "description": "A code, of 8 to 64 letters and digits. Case, blanks and hyphens mean nothing."
        })
    }
}

/// A new code of random bytes, as it is handed out: `7K2M-Q9XD-0ABC-5TWV`.
#[must_use]
pub fn made_code(random: [u8; MADE_CODE_BYTES]) -> String {
    let number = random.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let chars = MADE_CODE_BYTES * 8 / 5;
    let mut code = String::with_capacity(chars + chars / CODE_PART_CHARS);
    for position in 0..chars {
        if position > 0 && position % CODE_PART_CHARS == 0 {
            code.push('-');
        }
        let index = usize::try_from(number >> (5 * (chars - 1 - position)) & 31).unwrap_or(0);
        code.extend(ALPHABET.get(index));
    }
    code
}

/// The hash of a code in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeHash(pub Hash);

/// A shard of a code in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeShard {
    pub code: CodeHash,
    /// The shard, from 0.
    pub shard: u8,
}

impl CodeShard {
    /// The shards of a code of so many, in the order in which a buyer tries them.
    pub fn tried_by(
        code: CodeHash,
        buyer: &UserId,
        shards: u8,
    ) -> impl Iterator<Item = CodeShard> + Clone {
        let shards = shards.max(1);
        let first = u8::try_from(bucket_of(buyer, shards.into())).unwrap_or(0);
        (0..shards).map(move |offset| {
            let shard = (u16::from(first) + u16::from(offset)) % u16::from(shards);
            Self { code, shard: u8::try_from(shard).unwrap_or(0) }
        })
    }
}

/// The uses of a shard of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeUses {
    /// Number of shards of the code.
    pub shards: u8,
    /// How often this shard may be used.
    pub uses: u32,
    /// How often it was used.
    pub used: u32,
}

impl CodeUses {
    /// True if the shard may be used once more.
    #[must_use]
    pub const fn has_left(&self) -> bool {
        self.used < self.uses
    }

    /// The shard after one more use; `None` if it may not be used any more.
    #[must_use]
    pub fn used_once_more(self) -> Option<Self> {
        let may = !stands(Guard::CodeUses) || self.has_left();
        may.then(|| Self { used: self.used.saturating_add(1), ..self })
    }

    /// The shards of a new code that may be used so often, the first of them first: their uses add up to its.
    pub fn shared(uses: u32) -> impl Iterator<Item = CodeUses> {
        let shards = u8::try_from(uses / USES_PER_SHARD).unwrap_or(MAX_CODE_SHARDS);
        let shards = shards.clamp(1, MAX_CODE_SHARDS);
        let (each, more) = (uses / u32::from(shards), uses % u32::from(shards));
        (0..shards).map(move |shard| Self {
            shards,
            uses: each + u32::from(u32::from(shard) < more),
            used: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hash(written: &str) -> CodeHash {
        let (sale, group) = (SaleId::new("s").unwrap(), GroupId::new("club").unwrap());
        Code::new(written).unwrap().hash(&sale, &group)
    }

    #[test]
    fn a_code_is_the_same_however_it_is_written() {
        let code = hash("7K2M-Q9XD-0ABC-1TWV");
        for written in ["7k2mq9xd0abc1twv", "7K2M Q9XD OABC ITWV", " 7k2m--q9xd oabc ltwv "] {
            assert_eq!(hash(written), code, "{written}");
        }
        for other in ["7K2M-Q9XD-0ABC-1TWW", "7K2M-Q9XD-0ABC-1TWVV"] {
            assert_ne!(hash(other), code, "{other}");
        }
        let (sale, group) = (SaleId::new("s").unwrap(), GroupId::new("clu").unwrap());
        let other = Code::new("b7K2MQ9XD0ABC1TWV").unwrap().hash(&sale, &group);
        let same = Code::new("7K2MQ9XD0ABC1TWV").unwrap();
        assert_ne!(other, code, "texts that run together");
        assert_ne!(same.hash(&sale, &group), code, "of another group");
        assert_eq!(format!("{same:?}"), "Code", "it is shown nowhere");
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let long = "A".repeat(MAX_CODE_CHARS);
        for good in ["12345678", "a-b-c-d-e-f-g-h", &long] {
            assert!(Code::new(good).is_ok(), "{good}");
        }
        let spaced = format!("{}{long}", " ".repeat(MAX_CODE_CHARS + 1));
        for bad in ["", "1234567", "1234-567", "12345678!", "12345678\n", "ÄBCDEFGHI", &spaced] {
            assert_eq!(Code::new(bad), Err(InvalidCode), "{bad}");
        }
        assert_eq!(Code::new(&format!("{long}A")), Err(InvalidCode));
        let read: Result<Code, _> = serde_json::from_str(r#""short""#);
        assert!(read.unwrap_err().to_string().starts_with("a code must be"));
    }

    #[test]
    fn a_made_code_has_all_of_its_random_bits() {
        assert_eq!(made_code([0; 10]), "0000-0000-0000-0000");
        assert_eq!(made_code([0xff; 10]), "ZZZZ-ZZZZ-ZZZZ-ZZZZ");
        let mut codes = BTreeSet::new();
        for bit in 0..80_u8 {
            let mut random = [0; 10];
            random[usize::from(bit / 8)] = 1 << (bit % 8);
            let code = made_code(random);
            assert_eq!((code.len(), Code::new(&code).is_ok()), (19, true), "{code}");
            codes.insert(Code::new(&code).unwrap().0);
        }
        assert_eq!(codes.len(), 80);
        let alphabet: BTreeSet<char> = ALPHABET.into_iter().collect();
        assert_eq!(alphabet.len(), 32);
        assert!(!alphabet.iter().any(|char| "OILU".contains(*char)));
    }

    #[test]
    fn the_uses_of_the_shards_add_up() {
        for (uses, shards) in [
            (1, 1),
            (127, 1),
            (128, 2),
            (1_000, 15),
            (10_000, 16),
            (10_001, 16),
            (MAX_CODE_USES, 16),
        ] {
            let shared: Vec<CodeUses> = CodeUses::shared(uses).collect();
            assert_eq!(shared.len(), shards, "{uses}");
            assert_eq!(shared.iter().map(|shard| shard.uses).sum::<u32>(), uses);
            let (least, most) = (shared[shards - 1].uses, shared[0].uses);
            assert!(most - least <= 1 && least > 0);
            assert!(shared.iter().all(|shard| usize::from(shard.shards) == shards));
        }
    }

    #[test]
    fn a_buyer_tries_every_shard_once_beginning_at_the_own() {
        let code = hash("12345678");
        let mut firsts = BTreeSet::new();
        for buyer in 0..200 {
            let buyer = UserId::new(buyer.to_string()).unwrap();
            let tried: Vec<u8> =
                CodeShard::tried_by(code, &buyer, 16).map(|shard| shard.shard).collect();
            firsts.insert(tried[0]);
            assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), 16);
            assert_eq!(CodeShard::tried_by(code, &buyer, 1).count(), 1);
        }
        assert_eq!(firsts.len(), 16);
    }

    #[test]
    fn a_shard_is_used_as_often_as_it_may() {
        let mut shard = CodeUses { shards: 1, uses: 2, used: 0 };
        for used in 1..=2 {
            shard = shard.used_once_more().unwrap();
            assert_eq!(shard.used, used);
        }
        assert_eq!((shard.has_left(), shard.used_once_more()), (false, None));
    }
}
