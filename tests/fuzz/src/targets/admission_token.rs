//! Admission tokens: the right to make an order, which nobody but us can write.

use engine::domain::admission::room::slot::Asking;
use engine::domain::basics::ids::UserId;
use engine::domain::basics::number::Mint;
use serde_json::Value;
use shared::http::identity::Buyer;
use shared::http::tokens::{AdmissionKeys, Grant};

use crate::request::{Sender, request};
use crate::sample::{NOW, sale};
use crate::{Outcome, Target, must, signed};

pub(crate) const ADMISSION_TOKEN: Target = Target {
    name: "admission-token",
    about: "The input as a token; as the header and claims, a line each, of a token that our key \
            signs; and as edits of a good token. A token is accepted only if one of our keys signed \
            it for this sale and buyer, and then it means what its claims say.",
    run,
};

const KEYS: [(&str, &[u8]); 2] = [
    ("2026-02", b"fedcba9876543210fedcba9876543210"),
    ("2026-01", b"0123456789abcdef0123456789abcdef"),
];
const BUYER: &str = "alice";

fn run(input: &[u8]) -> Outcome {
    let keys = AdmissionKeys::new(KEYS);
    let as_token = std::str::from_utf8(input).is_ok_and(|token| check(&keys, token));

    let (header, claims) = split(input);
    let of_ours = check(&keys, &signed::token(KEYS[0].1, header, claims));

    let user = must(UserId::new(BUYER), "the buyer");
    let order = Mint::new(u32::from(input.len() as u16)).mint(NOW, &user);
    let sale = sale("").id().clone();
    let grant = Grant {
        sale,
        user,
        order,
        tickets: 2,
        expires_at: NOW.plus_seconds(60),
        entry: None,
        asking: Asking::default(),
    };
    let good = must(keys.sign(&grant, NOW), "a grant is signed");
    assert!(check(&keys, &good), "our own token is refused");
    let edited = signed::edited(&good, input);
    assert!(edited == good || !check(&keys, &edited), "{edited} is not what we signed: {good}");

    Outcome::from_accepted(as_token || of_ours)
}

/// The first line, and what comes after it.
pub(super) fn split(input: &[u8]) -> (&[u8], &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    (&input[..end], input.get(end + 1..).unwrap_or_default())
}

/// Checks a token as a function does, and what is accepted by ourselves.
fn check(keys: &AdmissionKeys, token: &str) -> bool {
    let buyer =
        must(Buyer::from_request(&request("GET", "/", Sender::Buyer(BUYER))), "the buyer is known");
    let sale = sale("").id();
    let Ok(admission) = keys.check(token, sale, &buyer, NOW) else { return false };
    let ours: Vec<&[u8]> = KEYS.iter().map(|(_, key)| *key).collect();
    let Some(claims) = signed::claims(token, &ours) else {
        panic!("{token} is accepted and none of our keys signed it");
    };
    let says = |name: &str, text: &str| claims.get(name).and_then(Value::as_str) == Some(text);
    assert!(
        says("sale", sale.as_str()) && says("sub", BUYER),
        "{claims} is of another sale or buyer"
    );
    assert!(says("iss", "onsale") && says("aud", "onsale-orders"), "{claims} is not for orders");
    assert!(says("jti", &admission.order().to_string()), "{claims} is of another order");
    let begins = claims.get("nbf").and_then(Value::as_i64);
    assert!(begins.is_none_or(|begins| begins <= NOW.ms() / 1000), "{claims} is not valid yet");
    let ends = claims.get("exp").and_then(Value::as_i64);
    let is_current = ends.is_some_and(|ends| NOW.ms() < ends.saturating_mul(1000));
    assert_eq!(admission.is_current(NOW), is_current, "{claims} ends at another time");
    true
}
