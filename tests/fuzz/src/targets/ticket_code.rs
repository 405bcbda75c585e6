//! The codes of tickets and the lists of what was revoked, as doors check them.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use shared::tickets::{PublicKeys, TicketCode, TicketKeys, TicketSecrets};

use super::admission_token::split;
use crate::{Outcome, Target, must, signed};

pub(crate) const TICKET_CODE: Target = Target {
    name: "ticket-code",
    about: "The input as a code, a list and a document of keys, as the header and payload of a signed code and list, and as \
            edits of a good code: taken only if our key signed it, and read as its payload says.",
    run,
};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const DEPLOYMENT: &str = "fuzz";
const GOOD: &str =
    r#"{"d":"fuzz","s":"g1","t":"second","p":"01-1A","l":["VNP","NGH"],"o":"42","n":1,"i":1}"#;

/// The keys of the codes.
pub(super) fn keys() -> TicketKeys {
    let secrets = TicketSecrets::new(vec![SECRET.to_owned()]);
    TicketKeys::new(DEPLOYMENT, &secrets.unwrap_or_default())
}

fn pair() -> Ed25519KeyPair {
    let seed = digest(&SHA256, SECRET.as_bytes());
    must(Ed25519KeyPair::from_seed_unchecked(seed.as_ref()), "32 bytes are a seed")
}

fn jws(header: &[u8], payload: &[u8]) -> String {
    let said = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = pair().sign(said.as_bytes());
    format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn run(input: &[u8]) -> Outcome {
    let keys = keys();
    let public = keys.public();
    let text = std::str::from_utf8(input).unwrap_or_default();
    let as_code = check(public, text);
    let as_list = public.check_list(text).is_ok();
    let as_keys = PublicKeys::read(text);
    if let Ok(read) = &as_keys {
        let again = must(serde_json::to_string(read), "keys are written");
        assert_eq!(
            PublicKeys::read(&again).as_ref(),
            Ok(read),
            "keys are read as they are written"
        );
    }

    let (header, payload) = split(input);
    let of_ours = check(public, &jws(header, payload));
    let kid = public.keys.first().map(|key| key.kid.clone()).unwrap_or_default();
    let header = |kind: &str| format!(r#"{{"typ":"{kind}","alg":"EdDSA","kid":"{kid}"}}"#);
    let payload_of_ours = check(public, &jws(header("ticket").as_bytes(), input));
    let list_of_ours = public.check_list(&jws(header("revoked").as_bytes(), input)).is_ok();

    let good = jws(header("ticket").as_bytes(), GOOD.as_bytes());
    assert!(check(public, &good), "our own code is refused");
    let edited = signed::edited(&good, input);
    assert!(edited == good || !check(public, &edited), "{edited} is not what we signed: {good}");

    let accepted = [as_code, as_list, as_keys.is_ok(), of_ours, payload_of_ours, list_of_ours];
    Outcome::from_accepted(accepted.contains(&true))
}

/// Checks a code as a door does, and what is taken by ourselves.
fn check(keys: &PublicKeys, code: &str) -> bool {
    let Ok(read) = keys.check_code(code) else { return false };
    let (said, signature) = must(code.rsplit_once('.').ok_or("no dot"), "a code has parts");
    let signature = must(URL_SAFE_NO_PAD.decode(signature), "a signature is base64url");
    let pair = pair();
    let key = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref());
    assert!(key.verify(said.as_bytes(), &signature).is_ok(), "{code}: our key did not sign it");
    let (_, payload) = must(said.split_once('.').ok_or("no dot"), "a code has a payload");
    let payload = must(URL_SAFE_NO_PAD.decode(payload), "a payload is base64url");
    let says: Value = must(serde_json::from_slice(&payload), "a payload is JSON");
    assert_eq!(says.get("d").and_then(Value::as_str), Some(DEPLOYMENT), "{says}");
    let again = must(serde_json::to_value(&read), "a code is written");
    for (name, value) in again.as_object().into_iter().flatten() {
        assert_eq!(says.get(name), Some(value), "{name} of {says}");
    }
    assert_eq!(serde_json::from_value::<TicketCode>(again).ok(), Some(read));
    true
}
