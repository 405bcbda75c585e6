//! The keys of challenges: what signs them, and what hashes their answers.
//!
//! Each configured secret gives four keys, one for each use, so that no signature of one use is good
//! for another. The first secret signs, every one is accepted.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use jsonwebtoken::{DecodingKey, EncodingKey};

use crate::hex::to_hex;

/// What each key of a secret is made for: the text that the secret signs.
const PROOF_OF_WORK: &str = "onsale challenge: proof of work";
const SOLUTION: &str = "onsale challenge: solution";
const TOKEN: &str = "onsale challenge: token";
const ANSWER: &str = "onsale challenge: answer";

/// The keys of one secret.
pub(super) struct Key {
    /// Signs the parameters of a proof of work.
    pub(super) proof_of_work: hmac::Key,
    pub(super) solution: hmac::Key,
    pub(super) signing: EncodingKey,
    pub(super) checking: DecodingKey,
    /// Hashes the answer that a token is bound to.
    pub(super) answer: hmac::Key,
}

/// The keys of challenges, the signing one first.
pub struct ChallengeKeys {
    keys: Vec<Key>,
}

/// There is no key to sign with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no challenge key is configured")]
pub struct NoKey;

impl ChallengeKeys {
    /// Keys from their secrets: the first signs, all are accepted.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let key = |secret: &[u8]| {
            let token = derived(secret, TOKEN);
            Key {
                proof_of_work: hmac::Key::new(
                    HMAC_SHA256,
                    derived(secret, PROOF_OF_WORK).as_bytes(),
                ),
                solution: hmac::Key::new(HMAC_SHA256, derived(secret, SOLUTION).as_bytes()),
                signing: EncodingKey::from_secret(token.as_bytes()),
                checking: DecodingKey::from_secret(token.as_bytes()),
                answer: hmac::Key::new(HMAC_SHA256, derived(secret, ANSWER).as_bytes()),
            }
        };
        Self { keys: secrets.into_iter().map(key).collect() }
    }

    /// True if there is no key: no challenge can be made, and none is ours.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key that signs.
    pub(super) fn signing(&self) -> Result<&Key, NoKey> {
        self.keys.first().ok_or(NoKey)
    }

    /// Every key, the signing one first.
    pub(super) fn all(&self) -> &[Key] {
        &self.keys
    }
}

/// The key for one use: the hexadecimal digits of an HMAC, for ALTCHA's libraries take keys as text.
fn derived(secret: &[u8], purpose: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, secret), purpose.as_bytes());
    to_hex(tag.as_ref())
}

impl std::fmt::Debug for ChallengeKeys {
    /// Shows how many there are.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChallengeKeys({})", self.keys.len())
    }
}
