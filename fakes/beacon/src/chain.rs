//! The chain of the fake: a key that everybody knows, and its hash.

use std::sync::LazyLock;

use blst::min_sig::SecretKey;
use engine::domain::admission::room::draw::BeaconChain;
use engine::domain::basics::bytes::{Hash, PublicKey, Signature};

/// Seconds between two rounds, by what the chain says of itself: few, so that a draw on one machine takes seconds.
pub const PERIOD_SECONDS: u64 = 1;
/// Time of the first round, in seconds since the Unix epoch: the first of January 2026.
pub const GENESIS_SECONDS: u64 = 1_767_225_600;
/// What the key is made of. Published: nothing but an engine on one machine may believe it.
const KEY_MATERIAL: &[u8; 32] = b"published: only for one machine.";
/// What the key of false signatures is made of.
const OTHER_MATERIAL: &[u8; 32] = b"published: the key of a forger..";
pub(crate) const SCHEME: &str = "bls-unchained-g1-rfc9380";
pub(crate) const NAME: &str = "onsale-local";
/// The domain separation tag of the scheme.
const TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

fn made_of(material: &[u8; 32]) -> SecretKey {
    SecretKey::key_gen(material, &[])
        .unwrap_or_else(|error| unreachable!("32 bytes suffice: {error:?}"))
}

static KEY: LazyLock<SecretKey> = LazyLock::new(|| made_of(KEY_MATERIAL));
static OTHER_KEY: LazyLock<SecretKey> = LazyLock::new(|| made_of(OTHER_MATERIAL));

fn signed(key: &SecretKey, round: u64) -> Signature {
    let message = Hash::of_parts(&[&round.to_be_bytes()]);
    Signature(key.sign(&message.0, TAG, &[]).to_bytes())
}

/// The signature of a round.
#[must_use]
pub fn sign(round: u64) -> Signature {
    signed(&KEY, round)
}

/// The signature that another key makes of a round.
pub(crate) fn forged(round: u64) -> Signature {
    signed(&OTHER_KEY, round)
}

/// The public key of the chain.
#[must_use]
pub fn key() -> PublicKey {
    PublicKey(KEY.sk_to_pk().to_bytes())
}

/// What the chain says that it grew from.
pub(crate) fn genesis_seed() -> Hash {
    Hash::of_parts(&[NAME.as_bytes()])
}

/// When its rounds are out.
#[must_use]
pub fn rounds() -> BeaconChain {
    let genesis = i64::try_from(GENESIS_SECONDS).unwrap_or(i64::MAX);
    let period = u32::try_from(PERIOD_SECONDS).unwrap_or(u32::MAX);
    BeaconChain { chain: hash(), genesis, period }
}

/// The hash that names the chain: the SHA-256 of period, time of its genesis, key, genesis seed, name.
/// Source: `Hash` of `chain/info.go` of <https://github.com/drand/drand>.
#[must_use]
pub fn hash() -> Hash {
    // The form has four bytes for the period: the last of eight.
    let period = PERIOD_SECONDS.to_be_bytes();
    let genesis = GENESIS_SECONDS.to_be_bytes();
    Hash::of_parts(&[&period[4..], &genesis, &key().0, &genesis_seed().0, NAME.as_bytes()])
}
