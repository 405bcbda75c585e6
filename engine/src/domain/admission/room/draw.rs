//! The draw: the round that decides it, its seed, and the place that it gives to an index.
//!
//! Record 0 names the round of a beacon that decides, before anybody has joined. N and a root fix the members; both stand
//! in the log before that round is out. The seed is then made from the round, so whoever runs the sale has nothing to
//! choose: neither a round, nor a secret, nor a moment at which to look. A closing that comes too late takes the next
//! round of a fixed series ([`NamedRound::decides`]). A secret decides only where the sale file asks for one by name.
//!
//! Rooms that were published before have [`Terms::Before`]: their closing quotes the beacon's latest round, and a secret
//! decides where none is quoted or comes. They end by those rules, and their logs are checked by them.
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
//! | seed after a beacon that was given up | `06`, randomness (32), sale (text), group (text), N (4), root (32) |
//!
//! The randomness of a beacon is defined by drand: SHA-256 of the signature
//! (<https://docs.drand.love/docs/specification/>).

use serde::{Deserialize, Deserializer, Serialize};

use super::shuffle::Shuffle;
use super::tree;
use crate::domain::basics::bytes::{Hash, Nonce, Secret, Signature};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::sale::serving::BEACON_MS;

const SEED_BY_BEACON: u8 = 0x02;
const SEED_BY_SECRET: u8 = 0x03;
const SEED_OF_LATER_WINDOW: u8 = 0x04;
const SEED_AFTER_GIVING_UP: u8 = 0x06;

/// Rounds from the latest one that a closing of the rules before quotes to the one that decides.
pub const ROUNDS_AHEAD: u64 = 8;

/// A late closing is decided by a round whose number is a multiple of this: ten minutes of quicknet apart, so that each
/// try costs that time in everybody's sight.
pub const LATE_ROUNDS: u64 = 200;

/// The most time between the round that is named and the opening, in milliseconds: what a draw needs after its round.
const MARGIN_MS: i64 = 60_000;
/// The part of the lead that this time is at most.
const MARGIN_PART: i64 = 4;

/// The least time between closing and opening with a beacon of others, in milliseconds.
pub const MIN_LEAD_MS: i64 = 240_000;
/// The least time between the publication and the round that it names with a beacon of others, in milliseconds.
pub const MIN_AHEAD_MS: i64 = 3_600_000;
/// The time after its round for which a silent beacon is waited for, in milliseconds: then an operator may give it up.
pub const GIVE_UP_MS: i64 = 3_600_000;

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

/// A chain of a beacon, by drand's terms: when its rounds are out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BeaconChain {
    /// The hash by which drand names it.
    pub chain: Hash,
    /// Time of its first round, in seconds since the Unix epoch.
    pub genesis: i64,
    /// Seconds between two rounds, from 1.
    pub period: u32,
}

impl BeaconChain {
    /// True if it is the chain of an engine on one machine: one round a second, whose key everybody knows.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.period <= 1
    }

    /// The time of a round, in milliseconds since the Unix epoch: round 1 is out at the genesis.
    #[must_use]
    pub fn time_ms(&self, round: u64) -> i64 {
        let since = i64::try_from(round.saturating_sub(1)).unwrap_or(i64::MAX);
        let seconds = since.saturating_mul(i64::from(self.period)).saturating_add(self.genesis);
        seconds.saturating_mul(1_000)
    }

    /// The last round that is out at a time; 0 if none is.
    #[must_use]
    pub fn last_by(&self, at_ms: i64) -> u64 {
        let since_ms = at_ms.saturating_sub(self.genesis.saturating_mul(1_000));
        let rounds = since_ms.div_euclid(i64::from(self.period.max(1)).saturating_mul(1_000));
        u64::try_from(rounds.saturating_add(1)).unwrap_or(0)
    }

    /// The round that a room is to name whose first window closes and whose sale opens at these times.
    ///
    /// # Errors
    /// Says why a room with these times must not be published at `now_ms`.
    pub fn name(&self, closes_ms: i64, opens_ms: i64, now_ms: i64) -> Result<NamedRound, NoRound> {
        let lead_ms = opens_ms.saturating_sub(closes_ms);
        let margin_ms = MARGIN_MS.min(lead_ms / MARGIN_PART);
        let round = self.last_by(opens_ms.saturating_sub(margin_ms));
        let Self { chain, genesis, period } = *self;
        let at_ms = self.time_ms(round);
        let (least_lead_ms, least_ahead_ms) =
            if self.is_local() { (0, 1) } else { (MIN_LEAD_MS, MIN_AHEAD_MS) };
        if lead_ms < least_lead_ms || round == 0 || at_ms <= closes_ms {
            Err(NoRound::Lead)
        } else if at_ms.saturating_sub(now_ms) < least_ahead_ms {
            Err(NoRound::Soon)
        } else {
            Ok(NamedRound { chain, genesis, period, round })
        }
    }
}

/// Why no round can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoRound {
    /// The time between closing and opening is too short.
    #[error("too little time between the draw and the opening for a round of the beacon")]
    Lead,
    /// The round is too soon.
    #[error("the round of the beacon that decides must be an hour ahead")]
    Soon,
}

/// The round of a beacon that decides, as record 0 names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRound {
    /// The hash by which drand names the chain.
    pub chain: Hash,
    /// Time of the chain's first round, in seconds since the Unix epoch.
    pub genesis: i64,
    /// Seconds between two rounds.
    pub period: u32,
    pub round: u64,
}

impl NamedRound {
    #[must_use]
    pub const fn chain(&self) -> BeaconChain {
        BeaconChain { chain: self.chain, genesis: self.genesis, period: self.period }
    }

    /// The time of a round, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn time_ms(&self, round: u64) -> i64 {
        self.chain().time_ms(round)
    }

    /// The round that decides where the record of the closing is of this time: the one that is named if that is still to
    /// come, else the first later one of a fixed series.
    #[must_use]
    pub fn decides(&self, closed_ms: i64) -> u64 {
        if closed_ms < self.time_ms(self.round) {
            return self.round;
        }
        let last = self.chain().last_by(closed_ms);
        (last / LATE_ROUNDS).saturating_add(1).saturating_mul(LATE_ROUNDS)
    }

    /// The number of draws that may have been looked at before a closing of this time; 0 if it was in time.
    #[must_use]
    pub fn looks(&self, closed_ms: i64) -> u64 {
        let round = self.decides(closed_ms);
        if round == self.round { 0 } else { round / LATE_ROUNDS - self.round / LATE_ROUNDS }
    }
}

/// What decides the draw of a room, as its publication says. It never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Terms {
    /// A round of a beacon.
    Beacon(NamedRound),
    /// The operator's secret, by its hash.
    Secret(Hash),
    /// The terms of rooms that were published before.
    #[serde(untagged)]
    Before(Commitment),
}

impl Terms {
    /// The chain of the beacon that decides; none if a secret does.
    #[must_use]
    pub const fn chain(&self) -> Option<Hash> {
        match self {
            Self::Beacon(named) => Some(named.chain),
            Self::Secret(_) => None,
            Self::Before(before) => before.beacon,
        }
    }

    /// The hash of the secret that decides, or may; none if there is no secret.
    #[must_use]
    pub const fn commitment(&self) -> Option<Hash> {
        match self {
            Self::Beacon(_) => None,
            Self::Secret(commitment) => Some(*commitment),
            Self::Before(before) => Some(before.commitment),
        }
    }

    /// The round that decides a closing whose record is of this time, in milliseconds since the Unix epoch; none if no
    /// round does.
    #[must_use]
    pub fn round(&self, closing: &Closing, closed_ms: i64) -> Option<u64> {
        match self {
            Self::Beacon(named) => Some(named.decides(closed_ms)),
            Self::Secret(_) => None,
            Self::Before(_) => {
                let latest = closing.latest_round.and_then(|Latest(latest)| latest);
                latest.map(|latest| latest.saturating_add(ROUNDS_AHEAD))
            }
        }
    }

    /// Checks that a source may decide at `now_ms` where the record of the closing is of `closed_ms`. A beacon's
    /// signature is not checked.
    ///
    /// # Errors
    /// Says what is wrong with the source.
    pub fn check(
        &self,
        closing: &Closing,
        source: &Source,
        closed_ms: i64,
        now_ms: i64,
    ) -> Result<(), WrongSource> {
        let round = self.round(closing, closed_ms);
        match (source, self) {
            (Source::Beacon { .. }, _) if self.chain().is_none() => Err(WrongSource::NoBeacon),
            (Source::Beacon { round: found, .. }, _) if round != Some(*found) => {
                Err(WrongSource::Round { found: *found })
            }
            (Source::Beacon { round, .. }, Self::Beacon(named))
                if now_ms < named.time_ms(*round) =>
            {
                Err(WrongSource::BeforeRound { round: *round })
            }
            (Source::Secret(_), Self::Beacon(_)) => Err(WrongSource::NoSecret),
            (Source::Secret(secret), _) if Some(secret.commitment()) != self.commitment() => {
                Err(WrongSource::Secret)
            }
            (Source::Secret(_), Self::Before(_))
                if round.is_some() && now_ms.saturating_sub(closed_ms) < BEACON_MS =>
            {
                Err(WrongSource::TooEarly { after_ms: now_ms.saturating_sub(closed_ms) })
            }
            (Source::Beacon { .. } | Source::Secret(_), _) => Ok(()),
        }
    }
}

/// What the draw of a room that was published before is committed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commitment {
    /// The hash of the secret.
    pub commitment: Hash,
    /// The hash by which drand names the beacon's chain; none if the secret decides.
    pub beacon: Option<Hash>,
}

/// The beacon's latest round at a closing, as rooms that were published before quote it; none where none is named, or
/// where none was said by [`BEACON_MS`] after the time of the closing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latest(pub Option<u64>);

impl Latest {
    /// A field that is there, be it `null`.
    fn given<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(field).map(Some)
    }
}

/// The closing of a group's first window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Indices that were given, N: from 0 to N − 1.
    pub count: u32,
    /// The root of the tree over their leaves.
    pub root: Hash,
    /// What rooms that were published before quote; other closings quote nothing.
    #[serde(default, deserialize_with = "Latest::given", skip_serializing_if = "Option::is_none")]
    pub latest_round: Option<Latest>,
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
    /// The draw is committed to a beacon alone.
    #[error("a secret was used, and a beacon is named")]
    NoSecret,
    /// The record is of a time before the round's.
    #[error("the beacon's round {round} was used before it was out")]
    BeforeRound { round: u64 },
    /// It is another round than the one that decides.
    #[error("the beacon's round {found} was used, and another decides")]
    Round {
        /// The round that was used.
        found: u64,
    },
}

impl Closing {
    /// The seed of the first window.
    #[must_use]
    pub fn seed(&self, sale: &SaleId, group: &GroupId, source: &Source) -> Hash {
        match source {
            Source::Beacon { signature, .. } => {
                self.seed_of(SEED_BY_BEACON, Hash::of_parts(&[&signature.0]).0, sale, group)
            }
            Source::Secret(secret) => self.seed_of(SEED_BY_SECRET, secret.0, sale, group),
        }
    }

    /// The seed of the first window where the beacon was given up: of fresh randomness, which is the operator's word.
    #[must_use]
    pub fn seed_after_giving_up(&self, sale: &SaleId, group: &GroupId, randomness: Hash) -> Hash {
        self.seed_of(SEED_AFTER_GIVING_UP, randomness.0, sale, group)
    }

    fn seed_of(&self, first: u8, source: [u8; 32], sale: &SaleId, group: &GroupId) -> Hash {
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
        Closing { count: 5, root: Hash([7; 32]), latest_round: None }
    }

    /// drand's quicknet.
    const QUICKNET: BeaconChain =
        BeaconChain { chain: Hash([1; 32]), genesis: 1_692_803_367, period: 3 };

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
        let given_up = closing().seed_after_giving_up(&sale, &group, Hash([4; 32]));
        assert_eq!(given_up, Hash::of_parts(&[b"\x06", &[4; 32], rest, &[7; 32]]));
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

    /// Worked out by hand: round 1000 of quicknet is out 2,997 s after its genesis.
    #[test]
    fn rounds_have_their_times() {
        let genesis_ms = 1_692_803_367_000;
        assert_eq!((QUICKNET.time_ms(1), QUICKNET.last_by(genesis_ms)), (genesis_ms, 1));
        assert_eq!(QUICKNET.time_ms(1_000), genesis_ms + 2_997_000);
        for (at_ms, last) in [(-1, 0), (0, 1), (2_999, 1), (3_000, 2), (2_996_999, 999)] {
            assert_eq!(QUICKNET.last_by(genesis_ms + at_ms), last, "{at_ms}");
        }
        assert_eq!((QUICKNET.last_by(i64::MIN), QUICKNET.time_ms(u64::MAX) > 0), (0, true));
    }

    #[test]
    fn a_room_names_the_last_round_a_minute_before_it_opens() {
        let genesis_ms = 1_692_803_367_000;
        let opens_ms = genesis_ms + 10_000_000;
        let early = opens_ms - 10_000_000;
        let named = |lead_ms, now_ms| QUICKNET.name(opens_ms - lead_ms, opens_ms, now_ms);
        // 9,940 s after the genesis: round 3,314 is out at 9,939 s.
        let named_round = named(300_000, early).unwrap();
        assert_eq!(named_round.round, 3_314);
        assert_eq!(named_round.time_ms(3_314), opens_ms - 61_000);
        assert_eq!(named(240_000, early).map(|named| named.round), Ok(3_314));
        assert_eq!(named(239_999, early), Err(NoRound::Lead));
        let last = opens_ms - 61_000 - MIN_AHEAD_MS;
        assert!(named(300_000, last).is_ok());
        assert_eq!(named(300_000, last + 1), Err(NoRound::Soon));
        // A chain of one machine: a quarter of the lead, and no hour.
        let local = BeaconChain { period: 1, ..QUICKNET };
        let named = |lead_ms, now_ms| local.name(opens_ms - lead_ms, opens_ms, now_ms);
        assert_eq!(named(10_000, opens_ms - 4_001).map(|named| named.round), Ok(9_998));
        assert_eq!(named(2_000, early).map(|named| named.round), Ok(10_000));
        assert_eq!(named(1_000, early), Err(NoRound::Lead), "no round is between the two");
        assert_eq!(named(10_000, opens_ms - 3_000), Err(NoRound::Soon), "it is out");
    }

    #[test]
    fn a_late_closing_takes_the_next_round_of_the_series() {
        let named = NamedRound { chain: Hash([1; 32]), genesis: 0, period: 3, round: 350 };
        let at = |round: u64| named.time_ms(round);
        for (closed_ms, round, looks) in [
            (0, 350, 0),
            (at(350) - 1, 350, 0),
            (at(350), 400, 1),
            (at(400) - 1, 400, 1),
            (at(400), 600, 2),
            (at(1_001), 1_200, 5),
        ] {
            let found = (named.decides(closed_ms), named.looks(closed_ms));
            assert_eq!(found, (round, looks), "{closed_ms}");
        }
    }

    #[test]
    fn one_source_may_decide() {
        let secret = Secret([4; 32]);
        let named = NamedRound { chain: Hash([1; 32]), genesis: 0, period: 3, round: 1_000 };
        let out = named.time_ms(1_000);
        let beacon = |round| Source::Beacon { round, signature: Signature([0; 48]) };
        let (by_beacon, by_secret) = (Terms::Beacon(named), Terms::Secret(secret.commitment()));
        let other = Err(WrongSource::Round { found: 999 });
        let early = Err(WrongSource::BeforeRound { round: 1_000 });
        let cases = [
            (by_beacon, beacon(1_000), 0, out, Ok(())),
            (by_beacon, beacon(1_000), 0, out - 1, early),
            (by_beacon, beacon(999), 0, out, other),
            (by_beacon, beacon(1_000), out, out, Err(WrongSource::Round { found: 1_000 })),
            (by_beacon, beacon(1_200), out, named.time_ms(1_200), Ok(())),
            (by_beacon, Source::Secret(secret), 0, i64::MAX, Err(WrongSource::NoSecret)),
            (by_secret, Source::Secret(secret), 0, 0, Ok(())),
            (by_secret, Source::Secret(Secret([5; 32])), 0, 0, Err(WrongSource::Secret)),
            (by_secret, beacon(1_000), 0, out, Err(WrongSource::NoBeacon)),
        ];
        for (terms, source, closed_ms, now_ms, expected) in cases {
            let found = terms.check(&closing(), &source, closed_ms, now_ms);
            assert_eq!(found, expected, "{terms:?} {source:?}");
        }
    }

    /// The rules of rooms that were published before.
    #[test]
    fn one_source_may_decide_in_rooms_of_before() {
        let secret = Secret([4; 32]);
        let closing = |latest| Closing { latest_round: Some(Latest(latest)), ..closing() };
        let beacon = |round| Source::Beacon { round, signature: Signature([0; 48]) };
        let with = Commitment { commitment: secret.commitment(), beacon: Some(Hash([1; 32])) };
        let without = Terms::Before(Commitment { beacon: None, ..with });
        let with = Terms::Before(with);
        let by_secret = Source::Secret(secret);
        let early = Err(WrongSource::TooEarly { after_ms: 119_999 });
        let cases = [
            (with, None, by_secret, 0, Ok(())),
            (with, None, beacon(1_000), 0, Err(WrongSource::Round { found: 1_000 })),
            (with, Some(992), beacon(1_000), 0, Ok(())),
            (with, Some(992), beacon(999), 0, Err(WrongSource::Round { found: 999 })),
            (with, Some(992), by_secret, 119_999, early),
            (with, Some(992), by_secret, 120_000, Ok(())),
            (with, Some(992), Source::Secret(Secret([5; 32])), 120_000, Err(WrongSource::Secret)),
            (without, None, beacon(1_000), 0, Err(WrongSource::NoBeacon)),
        ];
        for (terms, latest, source, after_ms, expected) in cases {
            let found = terms.check(&closing(latest), &source, 7, 7 + after_ms);
            assert_eq!(found, expected, "{latest:?} {source:?}");
        }
    }

    /// Both forms are interfaces: others hash them.
    #[test]
    fn terms_and_closings_of_both_rules_are_read_as_they_were_written() {
        let hash = "07".repeat(32);
        for text in [
            format!(r#"{{"beacon":{{"chain":"{hash}","genesis":5,"period":3,"round":9}}}}"#),
            format!(r#"{{"secret":"{hash}"}}"#),
            format!(r#"{{"commitment":"{hash}","beacon":null}}"#),
            format!(r#"{{"commitment":"{hash}","beacon":"{hash}"}}"#),
        ] {
            let terms: Terms = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&terms).unwrap(), text);
        }
        for quoted in ["", r#","latest_round":null"#, r#","latest_round":8"#] {
            let text = format!(r#"{{"count":5,"root":"{hash}"{quoted}}}"#);
            let closing: Closing = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&closing).unwrap(), text);
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
