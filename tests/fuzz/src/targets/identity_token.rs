//! Identity tokens as the local gateway checks them, in the place of API Gateway's authorizer.

use fake_identity::{AUDIENCE, ISSUER, Identity, Role};
use serde_json::Value;

use super::admission_token::split;
use crate::sample::NOW;
use crate::{Outcome, Target, must, signed};

pub(crate) const IDENTITY_TOKEN: Target = Target {
    name: "identity-token",
    about: "The input as a token, as the header and claims of a signed token, and as edits of a good \
            token: accepted only if our secret signed it, and then for its own subject and role.",
    run,
};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn run(input: &[u8]) -> Outcome {
    let identity = Identity::new(SECRET);
    let as_token = std::str::from_utf8(input).is_ok_and(|token| check(&identity, token));

    let (header, claims) = split(input);
    let of_ours = check(&identity, &signed::token(SECRET, header, claims));

    let good = must(identity.token("alice", Role::Buyer, NOW, 60), "a token is signed");
    assert!(check(&identity, &good), "our own token is refused");
    let edited = signed::edited(&good, input);
    assert!(edited == good || !check(&identity, &edited), "{edited} is not what we signed: {good}");

    Outcome::from_accepted(as_token || of_ours)
}

fn check(identity: &Identity, token: &str) -> bool {
    let Ok(accepted) = identity.verify(token, NOW) else { return false };
    let Some(claims) = signed::claims(token, &[SECRET]) else {
        panic!("{token} is accepted and our secret did not sign it");
    };
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let has = |name: &str, value: &str| match claims.get(name) {
        Some(Value::Array(values)) => values.iter().any(|one| one == value),
        one => one.and_then(Value::as_str) == Some(value),
    };
    assert!(has("iss", ISSUER) && has("aud", AUDIENCE), "{claims} is of another issuer");
    let ends = claims.get("exp").and_then(Value::as_i64);
    assert!(ends.is_some_and(|ends| ends > NOW.ms() / 1000), "{claims} has expired");
    assert_eq!(accepted.role() == Role::Operator, text("role") == Some("operator"), "{claims}");
    if let Some(subject) = text("sub") {
        assert_eq!(accepted.subject(), subject);
    }
    true
}
