//! The signature of a round: who has the chain's public key can tell a round of the beacon from anything else.
//!
//! Source: <https://docs.drand.love/docs/specification/>, scheme `bls-unchained-g1-rfc9380`. A round's message
//! is the SHA-256 of its number as eight bytes, big-endian; the signature is a point of G1 of BLS12-381, the key
//! a point of G2; messages are hashed to G1 as RFC 9380 says.

use std::fmt;
use std::str::FromStr;

use blst::BLST_ERROR;
use blst::min_sig::{PublicKey as Key, Signature as Point};
use engine::domain::admission::room::draw::BeaconChain;
use engine::domain::basics::bytes::{Hash, InvalidHex, PublicKey, Signature};

/// The hash by which drand names quicknet.
pub const QUICKNET: Hash = Hash([
    0x52, 0xdb, 0x9b, 0xa7, 0x0e, 0x0c, 0xc0, 0xf6, 0xea, 0xf7, 0x80, 0x3d, 0xd0, 0x74, 0x47, 0xa1,
    0xf5, 0x47, 0x77, 0x35, 0xfd, 0x3f, 0x66, 0x17, 0x92, 0xba, 0x94, 0x60, 0x0c, 0x84, 0xe9, 0x71,
]);

/// Quicknet's public key.
/// Source: <https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/info>
const QUICKNET_KEY: PublicKey = PublicKey([
    0x83, 0xcf, 0x0f, 0x28, 0x96, 0xad, 0xee, 0x7e, 0xb8, 0xb5, 0xf0, 0x1f, 0xca, 0xd3, 0x91, 0x22,
    0x12, 0xc4, 0x37, 0xe0, 0x07, 0x3e, 0x91, 0x1f, 0xb9, 0x00, 0x22, 0xd3, 0xe7, 0x60, 0x18, 0x3c,
    0x8c, 0x4b, 0x45, 0x0b, 0x6a, 0x0a, 0x6c, 0x3a, 0xc6, 0xa5, 0x77, 0x6a, 0x2d, 0x10, 0x64, 0x51,
    0x0d, 0x1f, 0xec, 0x75, 0x8c, 0x92, 0x1c, 0xc2, 0x2b, 0x0e, 0x17, 0xe6, 0x3a, 0xaf, 0x4b, 0xcb,
    0x5e, 0xd6, 0x63, 0x04, 0xde, 0x9c, 0xf8, 0x09, 0xbd, 0x27, 0x4c, 0xa7, 0x3b, 0xab, 0x4a, 0xf5,
    0xa6, 0xe9, 0xc7, 0x6a, 0x4b, 0xc0, 0x9e, 0x76, 0xea, 0xe8, 0x99, 0x1e, 0xf5, 0xec, 0xe4, 0x5a,
]);

/// Quicknet, with the times of its rounds. Source: as of the key.
const QUICKNET_CHAIN: Chain = Chain {
    rounds: BeaconChain { chain: QUICKNET, genesis: 1_692_803_367, period: 3 },
    key: QUICKNET_KEY,
};

/// The domain separation tag of the scheme.
const TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

/// Why a round is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// No key of the chain is known.
    #[error("the key of the chain is not known here")]
    UnknownChain,
    /// What is known as the chain's key is none.
    #[error("the key of the chain is no public key")]
    Key,
    /// The signature is not that of the round.
    #[error("the signature is not that of the round")]
    Signature,
}

/// A chain of a beacon, as text `hash:key:genesis:period`, both times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// The hash that names it, and when its rounds are out.
    pub rounds: BeaconChain,
    pub key: PublicKey,
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BeaconChain { chain, genesis, period } = self.rounds;
        write!(f, "{chain}:{}:{genesis}:{period}", self.key)
    }
}

/// The text is no chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChain {
    /// It has not four parts, or no times.
    #[error(
        "a chain must be its hash, its public key, and genesis and period in seconds, hash:key:genesis:period"
    )]
    Form,
    /// One part is not what it should be.
    #[error(transparent)]
    Hex(#[from] InvalidHex),
}

impl FromStr for Chain {
    type Err = InvalidChain;
    fn from_str(text: &str) -> Result<Self, InvalidChain> {
        let parts: Vec<&str> = text.split(':').collect();
        let [hash, key, genesis, period] = parts[..] else { return Err(InvalidChain::Form) };
        let genesis = genesis.parse().map_err(|_| InvalidChain::Form)?;
        let period = period.parse().ok().filter(|period| *period > 0).ok_or(InvalidChain::Form)?;
        let rounds = BeaconChain { chain: hash.parse()?, genesis, period };
        Ok(Self { rounds, key: key.parse()? })
    }
}

/// The chains whose public keys are known: drand's quicknet, and others that are named with theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chains {
    others: Vec<Chain>,
    /// The one that decides where a sale file names none.
    default: Hash,
}

impl Default for Chains {
    fn default() -> Self {
        Self::with([])
    }
}

impl Chains {
    /// Quicknet, which decides where nothing is said, and these. Quicknet's key is never another one.
    #[must_use]
    pub fn with(others: impl IntoIterator<Item = Chain>) -> Self {
        Self { others: others.into_iter().collect(), default: QUICKNET }
    }

    /// The same chains, where this one decides if nothing is said; `None` if it is not among them.
    #[must_use]
    pub fn by_default(self, chain: Hash) -> Option<Self> {
        self.rounds(chain)?;
        Some(Self { default: chain, ..self })
    }

    /// Those beside quicknet, as they were given.
    #[must_use]
    pub fn others(&self) -> &[Chain] {
        &self.others
    }

    /// The chain that decides where a sale file names none.
    #[must_use]
    pub fn default_chain(&self) -> BeaconChain {
        self.rounds(self.default).unwrap_or(QUICKNET_CHAIN.rounds)
    }

    /// When the rounds of this chain are out; none if it is not known.
    #[must_use]
    pub fn rounds(&self, chain: Hash) -> Option<BeaconChain> {
        self.chain(chain).map(|known| known.rounds)
    }

    fn chain(&self, chain: Hash) -> Option<Chain> {
        if chain == QUICKNET {
            return Some(QUICKNET_CHAIN);
        }
        self.others.iter().find(|other| other.rounds.chain == chain).copied()
    }

    /// Checks the signature of a round of the chain that drand names by this hash. It is deterministic, so
    /// that a round has one signature.
    ///
    /// # Errors
    /// Says why the round is not accepted.
    pub fn verify(&self, chain: Hash, round: u64, signature: &Signature) -> Result<(), Wrong> {
        let Chain { key, .. } = self.chain(chain).ok_or(Wrong::UnknownChain)?;
        // The key is checked too: one outside of the group, or at infinity, would accept forgeries.
        let key = Key::key_validate(&key.0).map_err(|_| Wrong::Key)?;
        let point = Point::sig_validate(&signature.0, true).map_err(|_| Wrong::Signature)?;
        let message = Hash::of_parts(&[&round.to_be_bytes()]);
        let found = point.verify(false, &message.0, TAG, &[], &key, false);
        if found == BLST_ERROR::BLST_SUCCESS { Ok(()) } else { Err(Wrong::Signature) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds as quicknet published them, with their randomness.
    /// Source: `/public/<round>` of the chain's address above.
    const ROUNDS: [(u64, &str, &str); 2] = [
        (
            123,
            "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482e26cd02df835d3546d23c4b13e0dfc92",
            "fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc",
        ),
        (
            1000,
            "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
            "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd",
        ),
    ];

    /// A chain of this name and key.
    fn named(chain: Hash, key: PublicKey) -> Chain {
        Chain { rounds: BeaconChain { chain, genesis: 7, period: 1 }, key }
    }

    /// The point at infinity of either group, compressed.
    fn infinity<const N: usize>() -> [u8; N] {
        let mut bytes = [0; N];
        bytes[0] = 0xc0;
        bytes
    }

    #[test]
    fn published_rounds_are_accepted_and_no_others() {
        let chains = Chains::default();
        let verify = |round, signature: &Signature| chains.verify(QUICKNET, round, signature);
        for (round, signature, randomness) in ROUNDS {
            let signature: Signature = signature.parse().unwrap();
            assert_eq!(verify(round, &signature), Ok(()), "{round}");
            assert_eq!(Hash::of_parts(&[&signature.0]).to_string(), randomness);
            for other in [round + 1, round + 8, u64::MAX, 0] {
                assert_eq!(verify(other, &signature), Err(Wrong::Signature), "{other}");
            }
            let mut other = signature;
            other.0[47] ^= 1;
            assert_eq!(verify(round, &other), Err(Wrong::Signature), "no point");
            // The sign of the point: on the curve and in the group, and of nobody.
            let mut other = signature;
            other.0[0] ^= 0x20;
            assert_eq!(verify(round, &other), Err(Wrong::Signature), "another point");
        }
        let of_another: Signature = ROUNDS[0].1.parse().unwrap();
        assert_eq!(verify(ROUNDS[1].0, &of_another), Err(Wrong::Signature));
        for bad in [[0; 48], [0xff; 48], infinity()] {
            assert_eq!(verify(123, &Signature(bad)), Err(Wrong::Signature), "{bad:?}");
        }
    }

    /// drand names a chain by the SHA-256 of period, time of its genesis, key, genesis seed and name.
    /// Source: `Hash` of `chain/info.go` of <https://github.com/drand/drand>; the values are those of `/info`.
    #[test]
    fn quicknets_hash_is_that_of_its_key() {
        let seed: Hash =
            "f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e".parse().unwrap();
        let BeaconChain { genesis, period, .. } = QUICKNET_CHAIN.rounds;
        let (period, genesis) = (period.to_be_bytes(), genesis.to_be_bytes());
        let parts = [&period[..], &genesis, &QUICKNET_KEY.0, &seed.0, &b"quicknet"[..]];
        assert_eq!(Hash::of_parts(&parts), QUICKNET);
    }

    #[test]
    fn another_chain_is_accepted_by_its_own_key() {
        let (round, signature, _) = ROUNDS[0];
        let signature: Signature = signature.parse().unwrap();
        let other = Hash([7; 32]);
        let verify = |chains: &Chains, chain| chains.verify(chain, round, &signature);
        assert_eq!(verify(&Chains::default(), other), Err(Wrong::UnknownChain));
        // Under another name with the same key its rounds are the same.
        let chains = Chains::with([named(other, QUICKNET_KEY)]);
        assert_eq!(verify(&chains, other), Ok(()));
        assert_eq!(verify(&chains, QUICKNET), Ok(()));
        assert_eq!(verify(&chains, Hash([8; 32])), Err(Wrong::UnknownChain));
        // No configuration gives quicknet another key.
        let secret = blst::min_sig::SecretKey::key_gen(&[1; 32], &[]).unwrap();
        let forger = PublicKey(secret.sk_to_pk().to_bytes());
        let forged = secret.sign(&Hash::of_parts(&[&round.to_be_bytes()]).0, TAG, &[]);
        let forged = Signature(forged.to_bytes());
        let chains = Chains::with([QUICKNET, other].map(|hash| named(hash, forger)));
        assert_eq!(chains.verify(other, round, &forged), Ok(()), "the control");
        assert_eq!(chains.verify(QUICKNET, round, &forged), Err(Wrong::Signature));
    }

    #[test]
    fn a_chain_has_one_text() {
        let text = format!("{QUICKNET}:{QUICKNET_KEY}:1692803367:3");
        let chain: Chain = text.parse().unwrap();
        assert_eq!(chain, QUICKNET_CHAIN);
        assert_eq!(chain.to_string(), text);
        let (short, none) = (&text[..text.len() - 2], &text[..text.len() - 1]);
        let zero = format!("{short}:0");
        for bad in ["", ":", &text[1..], short, none, &zero, &text.replace(':', "=")] {
            assert!(bad.parse::<Chain>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chain_that_is_known_may_decide_by_default() {
        let other = named(Hash([7; 32]), QUICKNET_KEY);
        let chains = Chains::with([other]);
        assert_eq!(chains.default_chain(), QUICKNET_CHAIN.rounds);
        let chains = chains.by_default(Hash([7; 32])).unwrap();
        assert_eq!(chains.default_chain(), other.rounds);
        assert_eq!(chains.rounds(QUICKNET), Some(QUICKNET_CHAIN.rounds));
        assert_eq!(chains.by_default(Hash([8; 32])), None);
    }

    /// At infinity, with a signature at infinity, everything would be signed.
    #[test]
    fn what_is_no_key_accepts_nothing() {
        for bad in [infinity(), [0; 96], [0xff; 96]] {
            let chains = Chains::with([named(Hash([7; 32]), PublicKey(bad))]);
            for signature in [ROUNDS[0].1.parse().unwrap(), Signature(infinity())] {
                let found = chains.verify(Hash([7; 32]), 123, &signature);
                assert_eq!(found, Err(Wrong::Key), "{bad:?}");
            }
        }
    }
}
