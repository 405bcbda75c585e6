//! Our payment signatures against Stripe's own Python package, in both directions.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};
use shared::providers::SignatureDefect;
use shared::providers::stripe::event;
use shared::providers::stripe::signature::{PaymentSecrets, sign};

const SECRET: &str = "whsec_new";
/// Not ASCII only: what is signed are the bytes, not the characters.
const BODY: &str = r#"{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","object":"payment_intent","amount_received":12000,"currency":"cny","description":"G35 二等座","metadata":{"order":"4611686018427387905"}}}}"#;

/// Runs a script in the Python environment that `make setup` makes; it reads its arguments as JSON
/// from standard input and prints its answer.
fn python(script: &str, arguments: &Value) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut child = Command::new(root.join(".venv/bin/python"))
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python environment is missing: run `make setup`");
    child.stdin.take().unwrap().write_all(arguments.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the script failed");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn signed_by_stripe(secret: &str, now: Timestamp) -> String {
    const SCRIPT: &str = "
import json, sys, stripe
asked = json.load(sys.stdin)
print(stripe.WebhookSignature.generate_signature_header(**asked))";
    let seconds = now.ms() / 1000;
    python(SCRIPT, &json!({ "payload": BODY, "secret": secret, "timestamp": seconds }))
}

/// `accepted` with the payment's id, or the name of what Stripe's package raised.
fn verified_by_stripe(secret: &str, header: &str) -> String {
    const SCRIPT: &str = "
import json, sys, stripe
asked = json.load(sys.stdin)
try:
    event = stripe.Webhook.construct_event(asked['payload'], asked['header'], asked['secret'])
    print('accepted', event.data.object.id)
except stripe.SignatureVerificationError as error:
    print(type(error).__name__)";
    python(SCRIPT, &json!({ "payload": BODY, "secret": secret, "header": header }))
}

fn ours() -> PaymentSecrets {
    let secrets = [SECRET.as_bytes(), b"whsec_old".as_slice()];
    PaymentSecrets::new(ProviderId::new("stripe").unwrap(), secrets, 300)
}

#[test]
fn we_accept_what_stripe_signs() {
    let now = Timestamp::now();
    let header = signed_by_stripe(SECRET, now);
    let secrets = ours();
    let payment = secrets.verify(Some(&header), BODY.as_bytes(), now).unwrap();
    let capture = event::capture(&payment, None).unwrap().unwrap().capture;
    assert_eq!(capture.key.payment.as_str(), "pi_1");
    assert_eq!(capture.amount.to_string(), "12000 CNY");
    assert_eq!(capture.order.to_string(), "4611686018427387905");

    let altered = BODY.replace("12000", "12");
    let refused = secrets.verify(Some(&header), altered.as_bytes(), now);
    assert_eq!(refused, Err(SignatureDefect::Mismatch));
}

#[test]
fn we_accept_either_secret_while_stripe_rotates() {
    let now = Timestamp::now();
    let by_old = signed_by_stripe("whsec_old", now);
    assert!(ours().verify(Some(&by_old), BODY.as_bytes(), now).is_ok());
    // During a rotation Stripe signs with both secrets; here the first is one that we don't have.
    let by_other = signed_by_stripe("whsec_other", now);
    let (_, signature) = by_old.split_once(',').unwrap();
    let both = format!("{by_other},{signature}");
    assert!(ours().verify(Some(&both), BODY.as_bytes(), now).is_ok());
    assert_eq!(
        ours().verify(Some(&by_other), BODY.as_bytes(), now).err(),
        Some(SignatureDefect::Mismatch)
    );
}

#[test]
fn stripe_accepts_what_we_sign() {
    let header = sign(SECRET.as_bytes(), BODY.as_bytes(), Timestamp::now());
    assert_eq!(verified_by_stripe(SECRET, &header), "accepted pi_1");
    assert_eq!(verified_by_stripe("whsec_other", &header), "SignatureVerificationError");
}
