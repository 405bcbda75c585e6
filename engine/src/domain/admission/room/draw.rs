//! The draw: its commitment, its seed, and the place that it gives to an index.
//!
//! The operator publishes a commitment to a secret and the name of a beacon together with the sale. N and a root fix
//! the members; both stand in the log before the beacon's round exists. The seed is then made from that round. It is
//! made from the secret only if the sale names no beacon, or if the round has not come in time. It is never made from
//! both: whoever holds half of a seed could compute the outcome first, and then withhold the half.
//!
//! # What is hashed, byte by byte
//!
//! Integers are big-endian. A text is its length in bytes as two bytes, then its bytes in UTF-8.
//!
//! | what | bytes |
//! |---|---|
//! | commitment | secret (32) |
//! | leaf | `00`, sale (text), group (text), index (4), buyer (text), nonce (16) |
//! | leaf of an index that nobody holds | `00` |
//! | randomness of a beacon | signature (48) |
//! | seed by beacon | `02`, randomness (32), sale (text), group (text), N (4), root (32) |
//! | seed by secret | `03`, secret (32), sale (text), group (text), N (4), root (32) |
//! | seed of a later window | `04`, hash of the record that ended it (32), group (text) |
//!
//! The randomness of a beacon is defined by drand: SHA-256 of the signature
//! (<https://docs.drand.love/docs/specification/>).

use serde::{Deserialize, Serialize};

use super::shuffle::Shuffle;
use super::tree;
use crate::domain::basics::bytes::{Hash, Nonce, Secret, Signature};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::sale::serving::BEACON_MS;

const SEED_BY_BEACON: u8 = 0x02;
const SEED_BY_SECRET: u8 = 0x03;
const SEED_OF_LATER_WINDOW: u8 = 0x04;

/// Rounds from the latest one that was out when joining closed to the one that decides: 24 s of quicknet,
/// whose rounds are three seconds apart. Nobody knows it yet, whatever our clocks say.
pub const ROUNDS_AHEAD: u64 = 8;

/// A text of at most 65,535 bytes, with its length before it. Ids are far shorter.
pub(super) fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    pub sale: &'a SaleId,
    pub group: &'a GroupId,
    /// The index that joining gave.
    pub index: u32,
    pub buyer: &'a UserId,
    /// The nonce that joining gave.
    pub nonce: Nonce,
}

impl Member<'_> {
    /// The leaf at the member's index.
    #[must_use]
    pub fn leaf(&self) -> Hash {
        let (sale, group) = (text(self.sale.as_str()), text(self.group.as_str()));
        let buyer = text(self.buyer.as_str());
        let index = self.index.to_be_bytes();
        tree::leaf(&[&sale[..], &group, &index, &buyer, &self.nonce.0].concat())
    }
}

impl Secret {
    /// What is published of the secret before it is revealed.
    #[must_use]
    pub fn commitment(&self) -> Hash {
        Hash::of_parts(&[&self.0])
    }
}

/// What a sale's draw is committed to. Neither part changes once somebody has joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commitment {
    /// The hash of the secret.
    pub commitment: Hash,
    /// The hash by which drand names the beacon's chain; none if the secret decides.
    pub beacon: Option<Hash>,
}

/// The closing of a group's first window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Indices that were given, N: from 0 to N − 1.
    pub count: u32,
    /// The root of the tree over their leaves.
    pub root: Hash,
    /// The beacon's latest round at that time; none where no beacon is named, or where none of its servers has said
    /// one by [`BEACON_MS`] after the time of the closing.
    pub latest_round: Option<u64>,
}

/// What the seed of a first window is made of: one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A round of the beacon.
    Beacon {
        round: u64,
        /// Its signature, which whoever reads this has to verify.
        signature: Signature,
    },
    Secret(Secret),
}

/// Why a source may not decide a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrongSource {
    /// The secret is not the one that was committed to.
    #[error("the secret is not the one that was committed to")]
    Secret,
    /// The draw is committed to a beacon that still had time.
    #[error("the secret was used {after_ms} ms after the closing: the beacon has {BEACON_MS} ms")]
    TooEarly {
        /// Time since the closing, in milliseconds.
        after_ms: i64,
    },
    /// The draw is committed to no beacon.
    #[error("a beacon was used, and none is named")]
    NoBeacon,
    /// It is another round than the closing fixed.
    #[error("the beacon's round {found} was used, and the closing fixed another")]
    Round {
        /// The round that was used.
        found: u64,
    },
}

impl Closing {
    /// The round that decides; none where no round was quoted.
    #[must_use]
    pub fn round(&self) -> Option<u64> {
        self.latest_round.map(|latest| latest.saturating_add(ROUNDS_AHEAD))
    }

    /// Checks that a source may decide, `after_ms` after the closing. A beacon's signature is not checked.
    ///
    /// # Errors
    /// Says what is wrong with the source.
    pub fn check(
        &self,
        terms: &Commitment,
        source: &Source,
        after_ms: i64,
    ) -> Result<(), WrongSource> {
        match source {
            Source::Beacon { .. } if terms.beacon.is_none() => Err(WrongSource::NoBeacon),
            Source::Beacon { round, .. } if self.round() != Some(*round) => {
                Err(WrongSource::Round { found: *round })
            }
            Source::Secret(secret) if secret.commitment() != terms.commitment => {
                Err(WrongSource::Secret)
            }
            Source::Secret(_) if self.latest_round.is_some() && after_ms < BEACON_MS => {
                Err(WrongSource::TooEarly { after_ms })
            }
            Source::Beacon { .. } | Source::Secret(_) => Ok(()),
        }
    }

    /// The seed of the first window.
    #[must_use]
    pub fn seed(&self, sale: &SaleId, group: &GroupId, source: &Source) -> Hash {
        let (first, source) = match source {
            Source::Beacon { signature, .. } => (SEED_BY_BEACON, Hash::of_parts(&[&signature.0]).0),
            Source::Secret(secret) => (SEED_BY_SECRET, secret.0),
        };
        let (sale, group) = (text(sale.as_str()), text(group.as_str()));
        let count = self.count.to_be_bytes();
        Hash::of_parts(&[&[first], &source, &sale, &group, &count, &self.root.0])
    }
}

/// The seed of a later window: of the record that ended it.
#[must_use]
pub fn later_seed(record: Hash, group: &GroupId) -> Hash {
    Hash::of_parts(&[&[SEED_OF_LATER_WINDOW], &record.0, &text(group.as_str())])
}

/// A window that is drawn: indices from `first` on, and as many places from `first` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    first: u32,
    shuffle: Shuffle,
}

impl Window {
    /// The window of the indices from `first` to `end`, which is not part of it.
    #[must_use]
    pub fn new(seed: Hash, first: u32, end: u32) -> Self {
        Self { first, shuffle: Shuffle::new(seed, end.saturating_sub(first)) }
    }

    /// The place of an index; `None` if the index is not in this window.
    #[must_use]
    pub fn place(&self, index: u32) -> Option<u32> {
        let place = self.shuffle.place(index.checked_sub(self.first)?)?;
        Some(self.first + place)
    }

    /// The index that has a place; `None` if the place is not in this window.
    #[must_use]
    pub fn index(&self, place: u32) -> Option<u32> {
        let index = self.shuffle.index(place.checked_sub(self.first)?)?;
        Some(self.first + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale() -> SaleId {
        SaleId::new("s").unwrap()
    }

    fn group(name: &str) -> GroupId {
        GroupId::new(name).unwrap()
    }

    fn closing() -> Closing {
        Closing { count: 5, root: Hash([7; 32]), latest_round: Some(992) }
    }

    /// The bytes of the table, written out by hand.
    #[test]
    fn what_is_hashed_is_as_the_table_says() {
        let (sale, group) = (sale(), group("all"));
        let buyer = UserId::new("张").unwrap();
        let member =
            Member { sale: &sale, group: &group, index: 258, buyer: &buyer, nonce: Nonce([9; 16]) };
        let written = b"\x00\x00\x01s\x00\x03all\x00\x00\x01\x02\x00\x03\xe5\xbc\xa0";
        assert_eq!(member.leaf(), Hash::of_parts(&[written, &[9; 16]]));

        let signature = Signature([3; 48]);
        let beacon = closing().seed(&sale, &group, &Source::Beacon { round: 1000, signature });
        let rest: &[u8] = b"\x00\x01s\x00\x03all\x00\x00\x00\x05";
        let randomness = Hash::of_parts(&[&[3; 48]]);
        assert_eq!(beacon, Hash::of_parts(&[b"\x02", &randomness.0, rest, &[7; 32]]));
        let secret = closing().seed(&sale, &group, &Source::Secret(Secret([4; 32])));
        assert_eq!(secret, Hash::of_parts(&[b"\x03", &[4; 32], rest, &[7; 32]]));
        let later = later_seed(Hash([5; 32]), &group);
        assert_eq!(later, Hash::of_parts(&[b"\x04", &[5; 32], b"\x00\x03all"]));
        assert_eq!(Secret([4; 32]).commitment(), Hash::of_parts(&[&[4; 32]]));
    }

    #[test]
    fn texts_that_run_together_are_not_the_same() {
        let buyer = UserId::new("b").unwrap();
        let leaf = |sale: &str, group: &str| {
            let (sale, group) = (SaleId::new(sale).unwrap(), GroupId::new(group).unwrap());
            let nonce = Nonce([0; 16]);
            Member { sale: &sale, group: &group, index: 0, buyer: &buyer, nonce }.leaf()
        };
        assert_ne!(leaf("ab", "c"), leaf("a", "bc"));
        assert_ne!(leaf("a", "a"), tree::empty_leaf());
    }

    #[test]
    fn one_source_may_decide() {
        let secret = Secret([4; 32]);
        let beacon = |round| Source::Beacon { round, signature: Signature([0; 48]) };
        let with = Commitment { commitment: secret.commitment(), beacon: Some(Hash([1; 32])) };
        let without = Commitment { beacon: None, ..with };
        let silent = Closing { latest_round: None, ..closing() };
        assert_eq!(silent.check(&with, &Source::Secret(secret), 0), Ok(()), "no round can come");
        let found = WrongSource::Round { found: 1000 };
        assert_eq!(silent.check(&with, &beacon(1000), 0), Err(found));
        let cases = [
            (with, beacon(1000), 0, Ok(())),
            (with, beacon(999), 0, Err(WrongSource::Round { found: 999 })),
            (
                with,
                Source::Secret(secret),
                119_999,
                Err(WrongSource::TooEarly { after_ms: 119_999 }),
            ),
            (with, Source::Secret(secret), 120_000, Ok(())),
            (with, Source::Secret(Secret([5; 32])), 120_000, Err(WrongSource::Secret)),
            (without, beacon(1000), 0, Err(WrongSource::NoBeacon)),
        ];
        for (terms, source, after_ms, expected) in cases {
            assert_eq!(closing().check(&terms, &source, after_ms), expected, "{source:?}");
        }
    }

    #[test]
    fn a_later_window_is_drawn_among_itself() {
        let window = Window::new(Hash([2; 32]), 100, 107);
        let mut places: Vec<u32> = (100..107).map(|index| window.place(index).unwrap()).collect();
        assert!((100..107).all(|index| window.index(window.place(index).unwrap()) == Some(index)));
        places.sort_unstable();
        assert!(places.into_iter().eq(100..107));
        for outside in [0, 99, 107] {
            assert_eq!((window.place(outside), window.index(outside)), (None, None));
        }
    }
}
