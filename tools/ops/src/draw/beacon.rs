//! The beacon: rounds of drand's quicknet.
//!
//! Source: <https://docs.drand.love/docs/specification/>, scheme `bls-unchained-g1-rfc9380`. A round's message
//! is the SHA-256 of its number as eight bytes, big-endian; the signature is a point of G1 of BLS12-381, the key
//! a point of G2; messages are hashed to G1 as RFC 9380 says.

use blst::BLST_ERROR;
use blst::min_sig::{PublicKey, Signature as Point};
use engine::domain::room::bytes::{Hash, Signature};

/// The hash by which drand names quicknet.
pub const QUICKNET: &str = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971";

/// Quicknet's public key, compressed.
/// Source: <https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/info>
const QUICKNET_KEY: [&str; 3] = [
    "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c",
    "8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb",
    "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
];

/// The domain separation tag of the scheme.
const TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

/// Why a round is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// The chain is not one whose key is known here.
    #[error("the chain is not drand's quicknet, the only one whose key is known here")]
    UnknownChain,
    /// The signature is not that of the round.
    #[error("the signature is not that of the round")]
    Signature,
}

/// Checks the signature of a round of the chain that drand names by this hash.
///
/// # Errors
/// Says why the round is not accepted.
pub fn verify(chain: Hash, round: u64, signature: &Signature) -> Result<(), Wrong> {
    if chain.to_string() != QUICKNET {
        return Err(Wrong::UnknownChain);
    }
    let parts = QUICKNET_KEY.iter().map(|part| part.parse::<Hash>());
    let key: Vec<u8> = parts.flatten().flat_map(|part| part.0).collect();
    let key = PublicKey::from_bytes(&key).map_err(|_| Wrong::UnknownChain)?;
    let point = Point::from_bytes(&signature.0).map_err(|_| Wrong::Signature)?;
    let message = Hash::of_parts(&[&round.to_be_bytes()]);
    let found = point.verify(true, &message.0, TAG, &[], &key, true);
    if found == BLST_ERROR::BLST_SUCCESS { Ok(()) } else { Err(Wrong::Signature) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Rounds as quicknet published them, with their randomness.
    /// Source: `/public/<round>` of the chain's address above.
    pub const ROUNDS: [(u64, &str, &str); 2] = [
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

    #[test]
    fn published_rounds_are_accepted_and_no_others() {
        let chain: Hash = QUICKNET.parse().unwrap();
        for (round, signature, randomness) in ROUNDS {
            let signature: Signature = signature.parse().unwrap();
            assert_eq!(verify(chain, round, &signature), Ok(()), "{round}");
            assert_eq!(Hash::of_parts(&[&signature.0]).to_string(), randomness);
            assert_eq!(verify(chain, round + 1, &signature), Err(Wrong::Signature));
            let mut other = signature;
            other.0[47] ^= 1;
            assert_eq!(verify(chain, round, &other), Err(Wrong::Signature));
            assert_eq!(verify(Hash([0; 32]), round, &signature), Err(Wrong::UnknownChain));
        }
        assert_eq!(verify(chain, 123, &Signature([0; 48])), Err(Wrong::Signature));
        // The point at infinity, compressed.
        let mut infinity = Signature([0; 48]);
        infinity.0[0] = 0xc0;
        assert_eq!(verify(chain, 123, &infinity), Err(Wrong::Signature));
    }
}
