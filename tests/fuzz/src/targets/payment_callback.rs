//! Payment callbacks: trusted only if the provider signed the very bytes of their body.

use engine::domain::basics::money::MinorUnits;
use engine::domain::order::Capture;
use serde_json::json;
use shared::providers::VerifiedCallback;
use shared::providers::stripe::event::capture;
use shared::providers::stripe::signature::{PaymentSecrets, sign};

use super::admission_token::split;
use crate::sample::{NOW, provider};
use crate::{Outcome, Target, must, signed};

pub(crate) const PAYMENT_CALLBACK: Target = Target {
    name: "payment-callback",
    about: "The input as a signature header and, from the second line on, its body; as a body that \
            the provider signed; and as edits of a good callback. Trusted only if a secret of ours \
            gives the signature; the capture that a body reports is the same once written by others.",
    run,
};

const SECRETS: [&[u8]; 2] = [b"whsec_new", b"whsec_old"];
const TOLERANCE_SECONDS: u32 = 300;
const GOOD: &str = r#"{"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount_received":110600,"currency":"cny","metadata":{"order":"4611686018427387905"}}}}"#;

fn run(input: &[u8]) -> Outcome {
    let secrets = PaymentSecrets::new(provider(), SECRETS, TOLERANCE_SECONDS);
    let (header, body) = split(input);
    let from_anyone =
        std::str::from_utf8(header).is_ok_and(|header| trusted(&secrets, header, body).is_some());

    let header = sign(SECRETS[1], input, NOW);
    let Some(payment) = trusted(&secrets, &header, input) else {
        panic!("a body that the provider signed is refused: {header}");
    };
    let reported = capture(&payment, None).map(|reported| reported.map(|one| one.capture));
    if let Ok(Some(capture)) = &reported {
        check(&secrets, capture);
    }

    forged(&secrets, input);
    Outcome::from_accepted(from_anyone || reported.is_ok())
}

/// A callback that the engine trusts, which our own check must find signed.
fn trusted<'a>(
    secrets: &'a PaymentSecrets,
    header: &str,
    body: &'a [u8],
) -> Option<VerifiedCallback<'a>> {
    let payment = secrets.verify(Some(header), body, NOW).ok()?;
    let values = |requested: &str| -> Vec<&str> {
        let items = header.split(',').filter_map(|item| item.trim().split_once('='));
        items.filter(|(name, _)| *name == requested).map(|(_, value)| value).collect()
    };
    let [time] = values("t")[..] else { panic!("{header} is trusted without its one time") };
    let seconds: i64 = must(time.parse(), "the time of a trusted signature");
    let age_seconds = (NOW.ms() / 1000).abs_diff(seconds);
    assert!(age_seconds <= u64::from(TOLERANCE_SECONDS), "{header} is trusted at another time");
    let text = [time.as_bytes(), b".", body].concat();
    let fits = |value: &str| {
        let of = |secret: &[u8]| {
            signed::tag(secret, &text).iter().map(|b| format!("{b:02x}")).collect::<String>()
        };
        SECRETS.iter().any(|secret| value.eq_ignore_ascii_case(&of(secret)))
    };
    assert!(values("v1").into_iter().any(fits), "{header} is trusted, and is not our provider's");
    assert_eq!(payment.body(), body);
    Some(payment)
}

/// A capture is read the same from another event that says no more than it.
fn check(secrets: &PaymentSecrets, read: &Capture) {
    assert!(read.amount.amount_minor >= MinorUnits::ZERO && read.key.provider == provider());
    let event = json!({ "type": "payment_intent.succeeded", "data": { "object": {
        "id": read.key.payment, "amount_received": read.amount.amount_minor,
        "currency": read.amount.currency, "metadata": { "order": read.order },
    } } });
    let body = event.to_string();
    let header = sign(SECRETS[0], body.as_bytes(), NOW);
    let payment = must(secrets.verify(Some(&header), body.as_bytes(), NOW), "it is signed");
    let reported = must(capture(&payment, None), "it is a capture");
    assert_eq!(reported.map(|one| one.capture).as_ref(), Some(read));
}

/// A signed body that was edited is not trusted.
fn forged(secrets: &PaymentSecrets, edits: &[u8]) {
    let header = sign(SECRETS[0], GOOD.as_bytes(), NOW);
    let body = signed::edited(GOOD, edits);
    let is_trusted = trusted(secrets, &header, body.as_bytes()).is_some();
    assert_eq!(is_trusted, body == GOOD, "{body}");
    // Of the header only what is signed matters, so an edited one may be trusted: of this body.
    trusted(secrets, &signed::edited(&header, edits), GOOD.as_bytes());
}
