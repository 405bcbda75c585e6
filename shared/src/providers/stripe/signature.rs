//! The signature of a callback: the header `t=<seconds>,v1=<hex>` with the
//! HMAC-SHA256 of `<seconds>.<body>`, over the bytes of the body as they were sent.
//!
//! Several secrets are accepted at once, and several `v1` values in one header, so that either side
//! can rotate. (<https://docs.stripe.com/webhooks/signature>)

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use http::HeaderMap;

use crate::hex::{from_hex, to_hex};
use crate::providers::{SignatureDefect, VerifiedCallback};
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;

/// The header's names, the first that is there counts.
const HEADERS: [&str; 2] = ["stripe-signature", "payment-signature"];
/// Most bytes of the header.
const MAX_HEADER_BYTES: usize = 4096;
/// Most signatures of one header that are tried.
const MAX_SIGNATURES: usize = 16;

/// The secrets of one provider.
pub struct PaymentSecrets {
    provider: ProviderId,
    keys: Vec<hmac::Key>,
    tolerance_seconds: i64,
}

impl PaymentSecrets {
    /// The secrets of a provider, any of which may have signed; a signature's time may differ from
    /// ours by `tolerance_seconds` in either direction.
    #[must_use]
    pub fn new<'a>(
        provider: ProviderId,
        secrets: impl IntoIterator<Item = &'a [u8]>,
        tolerance_seconds: u32,
    ) -> Self {
        let keys = secrets.into_iter().map(|secret| hmac::Key::new(HMAC_SHA256, secret)).collect();
        Self { provider, keys, tolerance_seconds: i64::from(tolerance_seconds) }
    }

    /// Checks a signature header against a body.
    ///
    /// # Errors
    /// Returns the first [`SignatureDefect`].
    pub fn verify<'a>(
        &'a self,
        header: Option<&str>,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<VerifiedCallback<'a>, SignatureDefect> {
        let header = Signatures::read(header.ok_or(SignatureDefect::Missing)?)?;
        let now_seconds = now.ms().div_euclid(1000);
        if now_seconds.abs_diff(header.seconds) > self.tolerance_seconds.unsigned_abs() {
            return Err(SignatureDefect::OutsideTolerance);
        }
        let signed = signed_bytes(header.seconds_text, body);
        // The comparison takes the same time wherever the first difference is.
        let fits = |key: &hmac::Key| {
            header.signatures.iter().any(|tag| hmac::verify(key, &signed, tag).is_ok())
        };
        if self.keys.iter().any(fits) {
            Ok(VerifiedCallback::new(&self.provider, body))
        } else {
            Err(SignatureDefect::Mismatch)
        }
    }
}

/// The signature among the headers of a request: Stripe's, or the same under a neutral name.
#[must_use]
pub fn header(headers: &HeaderMap) -> Option<&str> {
    let value = HEADERS.iter().find_map(|name| headers.get(*name));
    value.and_then(|value| value.to_str().ok())
}

/// The header that a provider with this secret would send: for tests and the local payment
/// provider.
#[must_use]
pub fn sign(secret: &[u8], body: &[u8], now: Timestamp) -> String {
    let seconds = now.ms().div_euclid(1000);
    let key = hmac::Key::new(HMAC_SHA256, secret);
    let tag = hmac::sign(&key, &signed_bytes(&seconds.to_string(), body));
    format!("t={seconds},v1={}", to_hex(tag.as_ref()))
}

fn signed_bytes(seconds: &str, body: &[u8]) -> Vec<u8> {
    [seconds.as_bytes(), b".", body].concat()
}

/// A signature header in its parts.
struct Signatures<'a> {
    seconds: i64,
    seconds_text: &'a str,
    signatures: Vec<Vec<u8>>,
}

impl<'a> Signatures<'a> {
    /// Reads a header. Schemes other than `v1` are passed over, as Stripe asks.
    fn read(header: &'a str) -> Result<Self, SignatureDefect> {
        if header.len() > MAX_HEADER_BYTES {
            return Err(SignatureDefect::Malformed);
        }
        let items = || header.split(',').filter_map(|item| item.trim().split_once('='));
        let mut times = items().filter(|(name, _)| *name == "t").map(|(_, value)| value);
        let (Some(seconds_text), None) = (times.next(), times.next()) else {
            return Err(SignatureDefect::Malformed);
        };
        let seconds = seconds_text.parse().map_err(|_| SignatureDefect::Malformed)?;
        let versions = items().filter(|(name, _)| *name == "v1");
        let signatures: Vec<Vec<u8>> =
            versions.take(MAX_SIGNATURES).filter_map(|(_, value)| from_hex(value)).collect();
        if signatures.is_empty() {
            return Err(SignatureDefect::Malformed);
        }
        Ok(Self { seconds, seconds_text, signatures })
    }
}

impl std::fmt::Debug for PaymentSecrets {
    /// Counts the secrets and shows none of them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PaymentSecrets({}, {} secrets)", self.provider, self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_500);
    const BODY: &[u8] = b"{\"id\":\"evt_1\"}";

    fn secrets(secrets: &[&[u8]]) -> PaymentSecrets {
        PaymentSecrets::new(ProviderId::new("stripe").unwrap(), secrets.iter().copied(), 300)
    }

    fn verify(header: &str) -> Result<(), SignatureDefect> {
        let ours = secrets(&[b"new", b"old"]);
        let verified = ours.verify(Some(header), BODY, NOW)?;
        assert_eq!((verified.provider().as_str(), verified.body()), ("stripe", BODY));
        Ok(())
    }

    #[test]
    fn either_of_two_secrets_signs() {
        assert_eq!(verify(&sign(b"new", BODY, NOW)), Ok(()));
        assert_eq!(verify(&sign(b"old", BODY, NOW)), Ok(()));
        assert_eq!(verify(&sign(b"older", BODY, NOW)), Err(SignatureDefect::Mismatch));
    }

    #[test]
    fn any_of_several_signatures_suffices() {
        let ours = sign(b"old", BODY, NOW);
        let (time, signature) = ours.split_once(',').unwrap();
        let foreign = format!("v1={}", "00".repeat(32));
        assert_eq!(verify(&format!("{time},{foreign},{signature}")), Ok(()));
        assert_eq!(verify(&format!("{time}, v0=zz, {signature}")), Ok(()));
        assert_eq!(verify(&format!("{time},{foreign}")), Err(SignatureDefect::Mismatch));
    }

    #[test]
    fn the_time_may_differ_by_the_tolerance_in_either_direction() {
        let at = |seconds| verify(&sign(b"new", BODY, NOW.plus_seconds(seconds)));
        assert_eq!((at(-300), at(300)), (Ok(()), Ok(())));
        assert_eq!(at(-301), Err(SignatureDefect::OutsideTolerance));
        assert_eq!(at(301), Err(SignatureDefect::OutsideTolerance));
    }

    #[test]
    fn another_body_or_time_does_not_fit() {
        let ours = secrets(&[b"new"]);
        let header = sign(b"new", BODY, NOW);
        assert_eq!(ours.verify(Some(&header), b"{}", NOW), Err(SignatureDefect::Mismatch));
        let later = header.replace("t=1800000000", "t=1800000001");
        assert_eq!(ours.verify(Some(&later), BODY, NOW), Err(SignatureDefect::Mismatch));
        assert_eq!(ours.verify(None, BODY, NOW), Err(SignatureDefect::Missing));
        let short = &header[..header.len() - 2];
        assert_eq!(ours.verify(Some(short), BODY, NOW), Err(SignatureDefect::Mismatch));
        assert!(secrets(&[]).verify(Some(&header), BODY, NOW).is_err());
    }

    #[test]
    fn a_header_that_cannot_be_read_is_refused() {
        let signature = "00".repeat(32);
        let headers = [
            String::new(),
            "t=1800000000".to_owned(),
            format!("v1={signature}"),
            format!("t=now,v1={signature}"),
            format!("t=1,t=1800000000,v1={signature}"),
            "t=1800000000,v1=".to_owned() + "xy",
            "t=1800000000,v1=abc".to_owned(),
            "t=1800000000,".to_owned() + &"v1=00,".repeat(2000),
        ];
        for header in headers {
            assert_eq!(verify(&header), Err(SignatureDefect::Malformed), "{header:.40}");
        }
    }
}
