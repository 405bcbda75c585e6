//! Authorization codes: each is good once, for a minute.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::domain::basics::time::Timestamp;

use crate::Realm;

/// How long a code is good, in seconds.
pub const CODE_SECONDS: i64 = 60;
/// Most codes at once; the oldest goes.
const MAX_CODES: usize = 1000;

/// What a code stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) realm: Realm,
    pub(crate) subject: String,
    pub(crate) scope: String,
    pub(crate) nonce: String,
    pub(crate) redirect_uri: String,
    /// The hash of the verifier, in base64url (RFC 7636, `S256`).
    pub(crate) challenge: String,
}

/// The codes that were given out and not used.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<VecDeque<(String, Timestamp, Grant)>>);

impl Codes {
    /// A new code; `None` if the system gives no entropy.
    pub(crate) fn issue(&self, grant: Grant, now: Timestamp) -> Option<String> {
        let mut random = [0_u8; 32];
        rand::fill(&mut random).ok()?;
        let code = URL_SAFE_NO_PAD.encode(random);
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() >= MAX_CODES {
            codes.pop_front();
        }
        codes.push_back((code.clone(), now.plus_seconds(CODE_SECONDS), grant));
        Some(code)
    }

    /// Uses a code up, whatever comes of it: what it stands for, if it was good at `now` and whoever has it
    /// knows the verifier.
    pub(crate) fn redeem(&self, code: &str, verifier: &str, now: Timestamp) -> Option<Grant> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = codes.iter().position(|(known, ..)| known == code)?;
        let (_, until, grant) = codes.remove(at)?;
        (now < until && challenge(verifier) == grant.challenge).then_some(grant)
    }
}

/// The challenge of a verifier (RFC 7636, `S256`).
#[must_use]
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn grant(subject: &str) -> Grant {
        Grant {
            realm: Realm::Buyers,
            subject: subject.to_owned(),
            scope: "openid".to_owned(),
            nonce: "n".to_owned(),
            redirect_uri: "http://127.0.0.1:8080/signed-in".to_owned(),
            challenge: challenge("the verifier"),
        }
    }

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_code_is_good_once_for_a_minute_for_whoever_knows_the_verifier() {
        let codes = Codes::default();
        let issue = || codes.issue(grant("alice"), NOW).unwrap();
        let code = issue();
        assert_eq!(codes.redeem(&code, "the verifier", NOW), Some(grant("alice")));
        assert_eq!(codes.redeem(&code, "the verifier", NOW), None);
        let code = issue();
        assert_eq!(codes.redeem(&code, "another", NOW), None);
        assert_eq!(codes.redeem(&code, "the verifier", NOW), None, "a wrong guess uses it up");
        let code = issue();
        assert_eq!(codes.redeem(&code, "the verifier", NOW.plus_seconds(CODE_SECONDS)), None);
        assert_eq!(codes.redeem("guessed", "the verifier", NOW), None);
    }

    #[test]
    fn there_are_never_more_codes_than_the_most() {
        let codes = Codes::default();
        let first = codes.issue(grant("first"), NOW).unwrap();
        for _ in 0..MAX_CODES {
            codes.issue(grant("alice"), NOW).unwrap();
        }
        assert_eq!(codes.0.lock().unwrap().len(), MAX_CODES);
        assert_eq!(codes.redeem(&first, "the verifier", NOW), None);
    }
}
