//! Proof of work: ALTCHA, version 2, in its deterministic mode.
//!
//! We draw a counter, derive its key and publish half of it; the browser tries counters from zero until
//! it finds that half, and sends the whole key. The other half is what it cannot send without the
//! work, and its signature stands in the challenge: so an answer is checked with two HMACs, and nothing is kept
//! of a challenge that was made. Of the counter nothing depends: only the key is checked.
//! Source: <https://altcha.org/docs/v2/proof-of-work-captcha>, and `altcha-lib`, whose signatures these are.

use std::num::NonZeroU32;

use aws_lc_rs::{hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys::{ChallengeKeys, NoKey};
use super::{Bound, Defect, MAX_ANSWER_BYTES, Ticket};
use crate::hex::{from_hex, to_hex};
use engine::domain::admission::challenge::{Attempts, ITERATIONS_PER_ATTEMPT};
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::Stage;

const ALGORITHM: &str = "PBKDF2/SHA-256";
/// Bytes of a derived key, of which the first half is published.
const KEY_BYTES: usize = 32;
const ITERATIONS: NonZeroU32 = NonZeroU32::new(ITERATIONS_PER_ATTEMPT).unwrap();

/// What a proof of work is, as the ALTCHA widget takes it. The fields stand in the order in which they
/// are signed: by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// The key derivation: `PBKDF2/SHA-256`.
    algorithm: String,
    /// Iterations of one attempt.
    cost: u32,
    /// Whom the challenge is for.
    data: Data,
    /// End of its validity, in seconds since 1970.
    expires_at: i64,
    /// Bytes of a derived key.
    key_length: usize,
    /// What the derived key begins with, in hexadecimal digits.
    key_prefix: String,
    /// HMAC-SHA256 of the derived key, in hexadecimal digits.
    key_signature: String,
    /// What each password begins with, in hexadecimal digits; the counter follows, in four bytes.
    nonce: String,
    /// The salt, in hexadecimal digits.
    salt: String,
}

/// Whom a challenge is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Data {
    buyer: UserId,
    sale: SaleId,
    stage: Stage,
}

/// A proof of work, as the ALTCHA widget takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofOfWork {
    parameters: Parameters,
    /// HMAC-SHA256 of the parameters, in hexadecimal digits.
    signature: String,
}

/// What the widget sends, in base64.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    challenge: ProofOfWork,
    solution: Solution,
}

#[derive(Debug, Serialize, Deserialize)]
struct Solution {
    #[serde(rename = "derivedKey")]
    derived_key: String,
}

/// What is random of a challenge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chance {
    pub(super) nonce: [u8; 16],
    pub(super) salt: [u8; 16],
    pub(super) counter: [u8; 8],
}

/// The password of a counter.
fn password(nonce: &[u8], counter: u32) -> Vec<u8> {
    [nonce, &counter.to_be_bytes()].concat()
}

fn derive(nonce: &[u8], salt: &[u8], counter: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, ITERATIONS, salt, &password(nonce, counter), &mut key);
    key
}

/// Makes a challenge that takes some of these attempts, by chance.
pub(super) fn make(
    keys: &ChallengeKeys,
    bound: Bound<'_>,
    attempts: Attempts,
    expires_at: Timestamp,
    chance: Chance,
) -> Result<ProofOfWork, NoKey> {
    let key = keys.signing()?;
    let Chance { nonce, salt, counter } = chance;
    // The first counter is 0: n attempts end with n - 1.
    let span = u64::from(attempts.max - attempts.min) + 1;
    let above = u32::try_from(u64::from_be_bytes(counter) % span).unwrap_or(0);
    let derived = derive(&nonce, &salt, attempts.min - 1 + above);
    let Bound { sale, stage, user } = bound;
    let parameters = Parameters {
        algorithm: ALGORITHM.to_owned(),
        cost: ITERATIONS_PER_ATTEMPT,
        data: Data { buyer: user.clone(), sale: sale.clone(), stage },
        expires_at: expires_at.ms().div_euclid(1000),
        key_length: KEY_BYTES,
        key_prefix: to_hex(&derived[..KEY_BYTES / 2]),
        key_signature: to_hex(hmac::sign(&key.solution, &derived).as_ref()),
        nonce: to_hex(&nonce),
        salt: to_hex(&salt),
    };
    let signature =
        to_hex(hmac::sign(&key.proof_of_work, canonical(&parameters).as_bytes()).as_ref());
    Ok(ProofOfWork { parameters, signature })
}

/// The text that is signed: JSON without blanks, names in order.
fn canonical(parameters: &Parameters) -> String {
    // Text and numbers can always be written.
    serde_json::to_string(parameters).unwrap_or_default()
}

/// Checks what a widget sent: our own challenge, for this buyer, in time, and solved.
pub(super) fn check(
    keys: &ChallengeKeys,
    bound: Bound<'_>,
    payload: &str,
    now: Timestamp,
) -> Result<Ticket, Defect> {
    if payload.len() > MAX_ANSWER_BYTES {
        return Err(Defect::Malformed);
    }
    let payload = STANDARD.decode(payload).map_err(|_| Defect::Malformed)?;
    let payload: Payload = serde_json::from_slice(&payload).map_err(|_| Defect::Malformed)?;
    let Payload { challenge: ProofOfWork { parameters, signature }, solution } = payload;
    let signature = from_hex(&signature).ok_or(Defect::Malformed)?;
    let text = canonical(&parameters);
    let is_signed = |key: &hmac::Key| hmac::verify(key, text.as_bytes(), &signature).is_ok();
    let key = keys.all().iter().find(|key| is_signed(&key.proof_of_work)).ok_or(Defect::NotOurs)?;
    let Data { buyer, sale, stage } = &parameters.data;
    bound.check(sale, *stage, buyer)?;
    let expires_at = Timestamp::from_ms(parameters.expires_at.saturating_mul(1000));
    if now >= expires_at {
        return Err(Defect::Expired);
    }
    let derived = from_hex(&solution.derived_key).ok_or(Defect::Malformed)?;
    let signed = from_hex(&parameters.key_signature).ok_or(Defect::Malformed)?;
    hmac::verify(&key.solution, &derived, &signed).map_err(|_| Defect::Wrong)?;
    Ok(Ticket { id: to_hex(&signature), expires_at })
}

/// Solves a challenge as the widget does: what a buyer's side needs, so that tests can be one.
///
/// # Errors
/// Returns [`Defect::Malformed`] if it is none of ours, or asks for more than `max_attempts`.
pub fn solve(challenge: &ProofOfWork, max_attempts: u32) -> Result<String, Defect> {
    let Parameters { nonce, salt, key_prefix, .. } = &challenge.parameters;
    let part = |text: &str| from_hex(text).ok_or(Defect::Malformed);
    let (nonce, salt, prefix) = (part(nonce)?, part(salt)?, part(key_prefix)?);
    let derived = (0..max_attempts)
        .map(|counter| derive(&nonce, &salt, counter))
        .find(|derived| derived.starts_with(&prefix))
        .ok_or(Defect::Malformed)?;
    let solution = Solution { derived_key: to_hex(&derived) };
    let payload = Payload { challenge: challenge.clone(), solution };
    serde_json::to_vec(&payload).map(|text| STANDARD.encode(text)).map_err(|_| Defect::Malformed)
}
