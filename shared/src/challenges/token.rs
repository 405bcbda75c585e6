//! The token of a challenge that people answer: what binds the challenge to its sale, stage and buyer,
//! and the answer to the challenge.
//!
//! A JWT like an admission, with keys and an audience of its own. Whoever has it can read it, and learns
//! nothing of the answer: of that it has a keyed hash, which nobody without the key can try guesses against.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};

use super::keys::{ChallengeKeys, Key, NoKey};
use super::{Bound, Defect, MAX_ANSWER_BYTES, Ticket};
use engine::domain::admission::challenge::normalised;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::{ChallengeKind, Stage};

const ISSUER: &str = "onsale";
const AUDIENCE: &str = "onsale-challenges";

/// The claims of a token; times are whole seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: UserId,
    sale: SaleId,
    stage: Stage,
    kind: ChallengeKind,
    jti: String,
    exp: i64,
    /// The keyed hash of the answer, of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Index of the question in the sale file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<usize>,
}

/// What a token says of the right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Right {
    /// It is this text.
    Text(String),
    /// It is one of those to the question with this index in the sale file.
    Question(usize),
    Provider,
}

/// A token that is ours, for this buyer, and in time.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    key: &'a Key,
    claims: Claims,
}

/// Signs the token of a challenge with this number.
pub(super) fn sign(
    keys: &ChallengeKeys,
    bound: Bound<'_>,
    right: &Right,
    id: &[u8; 16],
    expires_at: Timestamp,
) -> Result<String, NoKey> {
    let key = keys.signing()?;
    let jti = URL_SAFE_NO_PAD.encode(id);
    let (kind, answer, question) = match right {
        Right::Text(text) => (ChallengeKind::Image, Some(hashed(key, &jti, text)), None),
        Right::Question(index) => (ChallengeKind::Question, None, Some(*index)),
        Right::Provider => (ChallengeKind::Siteverify, None, None),
    };
    let Bound { sale, stage, user } = bound;
    let claims = Claims {
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        sub: user.clone(),
        sale: sale.clone(),
        stage,
        kind,
        jti,
        exp: expires_at.ms().div_euclid(1000),
        answer,
        question,
    };
    let header = Header::new(Algorithm::HS256);
    jsonwebtoken::encode(&header, &claims, &key.signing).map_err(|_| NoKey)
}

/// The keyed hash of an answer to the challenge `jti`.
fn hashed(key: &Key, jti: &str, answer: &str) -> String {
    let text = format!("{jti}.{}", normalised(answer));
    URL_SAFE_NO_PAD.encode(hmac::sign(&key.answer, text.as_bytes()))
}

/// Checks that a token is ours, for this buyer here, of this kind, and in time.
pub(super) fn check<'a>(
    keys: &'a ChallengeKeys,
    bound: Bound<'_>,
    kind: ChallengeKind,
    token: &str,
    now: Timestamp,
) -> Result<(Ticket, Checked<'a>), Defect> {
    if token.len() > MAX_ANSWER_BYTES {
        return Err(Defect::Malformed);
    }
    let validation = validation();
    let decoded = |key: &'a Key| {
        let decoded = jsonwebtoken::decode::<Claims>(token, &key.checking, &validation).ok()?;
        Some((key, decoded.claims))
    };
    let (key, claims) = keys.all().iter().find_map(decoded).ok_or(Defect::NotOurs)?;
    bound.check(&claims.sale, claims.stage, &claims.sub)?;
    if claims.kind != kind {
        return Err(Defect::OtherKind);
    }
    let expires_at = Timestamp::from_ms(claims.exp.saturating_mul(1000));
    if now >= expires_at {
        return Err(Defect::Expired);
    }
    let ticket = Ticket { id: claims.jti.clone(), expires_at };
    Ok((ticket, Checked { key, claims }))
}

impl Checked<'_> {
    /// True if the token is bound to this answer.
    pub(super) fn is_answered_by(&self, answer: &str) -> bool {
        let text = format!("{}.{}", self.claims.jti, normalised(answer));
        let tag = self.claims.answer.as_ref().and_then(|tag| URL_SAFE_NO_PAD.decode(tag).ok());
        tag.is_some_and(|tag| hmac::verify(&self.key.answer, text.as_bytes(), &tag).is_ok())
    }

    /// Index of its question in the sale file.
    pub(super) fn question(&self) -> Option<usize> {
        self.claims.question
    }
}

impl std::fmt::Debug for Key {
    /// Shows nothing of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Everything about a token but the time, which is an argument of ours.
fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.validate_exp = false;
    validation
}
