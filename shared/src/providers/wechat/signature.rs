//! Signatures of WeChat Pay v3: ours on requests, theirs on answers and notifications.
//!
//! Both are RSA signatures of lines of text, each ended by a line feed: method, path with query, time,
//! nonce and body of a request; time, nonce and body of what WeChat Pay sends.
//! (<https://pay.weixin.qq.com/docs/merchant/development/interface-rules/signature-verification.html>)

use std::collections::BTreeMap;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use http::{HeaderMap, HeaderValue};

use crate::hex::to_hex;
use crate::providers::SignatureDefect;
use crate::providers::rsa::{SigningKey, Unsigned, VerifyingKey};
use engine::domain::basics::time::Timestamp;

/// The name of the algorithm, in requests and in what WeChat Pay sends.
const ALGORITHM: &str = "WECHATPAY2-SHA256-RSA2048";
/// How the id of a public key begins; others are serial numbers of certificates.
const KEY_ID: &str = "PUB_KEY_ID_";
/// Most seconds by which the time of a signature may differ from ours: WeChat Pay asks that what is older
/// than five minutes be refused.
/// Source: <https://pay.weixin.qq.com/wiki/doc/api_external/en/wechatpay/wechatpay4_1.shtml>
pub(super) const MAX_SKEW_SECONDS: u32 = 300;
/// Most bytes of a header of a signature.
const MAX_HEADER_BYTES: usize = 2048;
/// Random bytes of a nonce: 32 characters, the most that WeChat Pay takes.
const NONCE_BYTES: usize = 16;

/// What signs our requests.
#[derive(Debug)]
pub(super) struct Signer {
    pub(super) merchant_id: String,
    /// Serial number of the merchant's certificate.
    pub(super) serial: String,
    /// The private key of that certificate.
    pub(super) key: SigningKey,
}

impl Signer {
    /// The header `Authorization` of a request; `target` is its path and query.
    ///
    /// # Errors
    /// [`Unsigned`], also if a part cannot be a header.
    pub(super) fn authorization(
        &self,
        method: &str,
        target: &str,
        nonce: &str,
        now: Timestamp,
        body: &str,
    ) -> Result<HeaderValue, Unsigned> {
        let seconds = now.ms().div_euclid(1000);
        let seconds = seconds.to_string();
        let message = lines(&[method, target, &seconds, nonce, body].map(str::as_bytes));
        let signature = self.key.sign(&message)?;
        let Self { merchant_id, serial, .. } = self;
        let header = format!(
            "{ALGORITHM} mchid=\"{merchant_id}\",nonce_str=\"{nonce}\",signature=\"{signature}\",\
             timestamp=\"{seconds}\",serial_no=\"{serial}\""
        );
        HeaderValue::from_str(&header).map_err(|_| Unsigned)
    }
}

/// A nonce that no other request has.
///
/// # Errors
/// [`Unsigned`] if the system gives no random number.
pub(super) fn nonce() -> Result<String, Unsigned> {
    let mut bytes = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Unsigned)?;
    Ok(to_hex(&bytes).to_ascii_uppercase())
}

/// WeChat Pay's public keys, by the serial number of their certificate or by their id. There are two or
/// more while one replaces another.
#[derive(Debug)]
pub(in crate::providers) struct PlatformKeys {
    by_serial: BTreeMap<String, VerifyingKey>,
    max_skew_seconds: u64,
}

impl PlatformKeys {
    /// The keys; `tolerance_seconds` counts if it is less than [`MAX_SKEW_SECONDS`].
    pub(in crate::providers) fn new(
        by_serial: BTreeMap<String, VerifyingKey>,
        tolerance_seconds: u32,
    ) -> Self {
        Self { by_serial, max_skew_seconds: tolerance_seconds.min(MAX_SKEW_SECONDS).into() }
    }

    /// The id of the public key with which answers shall be signed: requests name it, or they are answered with
    /// a certificate while that one lives. `None` if there are certificates only.
    /// Source: <https://pay.weixin.qq.com/docs/partner/products/platform-certificate/update-pub-key.html>
    pub(super) fn id_for_answers(&self) -> Option<&str> {
        let mut ids = self.by_serial.keys().map(String::as_str);
        ids.rfind(|id| id.starts_with(KEY_ID))
    }

    /// Checks the signature of an answer or a notification. WeChat Pay also sends notifications whose signature
    /// is wrong on purpose (`WECHATPAY/SIGNTEST/…`), to see whether anybody looks: they are refused like
    /// any other that does not fit.
    /// Source: <https://pay.weixin.qq.com/docs/merchant/development/interface-rules/signature-verification.html>
    ///
    /// # Errors
    /// Returns the first [`SignatureDefect`].
    pub(super) fn verify(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), SignatureDefect> {
        let signature = required(headers, "wechatpay-signature")?;
        let seconds_text = required(headers, "wechatpay-timestamp")?;
        let nonce = required(headers, "wechatpay-nonce")?;
        let serial = required(headers, "wechatpay-serial")?;
        if one(headers, "wechatpay-signature-type")?.is_some_and(|name| name != ALGORITHM) {
            return Err(SignatureDefect::Malformed);
        }
        let seconds: i64 = seconds_text.parse().map_err(|_| SignatureDefect::Malformed)?;
        if now.ms().div_euclid(1000).abs_diff(seconds) > self.max_skew_seconds {
            return Err(SignatureDefect::OutsideTolerance);
        }
        let key = self.by_serial.get(serial).ok_or(SignatureDefect::Mismatch)?;
        let message = lines(&[seconds_text.as_bytes(), nonce.as_bytes(), body]);
        let fits = key.verify(&message, signature);
        if fits { Ok(()) } else { Err(SignatureDefect::Mismatch) }
    }
}

/// What is signed: the parts, each ended by a line feed.
fn lines(parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| [part, b"\n".as_slice()]).collect::<Vec<_>>().concat()
}

/// The value of a header that must be there.
fn required<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str, SignatureDefect> {
    one(headers, name)?.filter(|value| !value.is_empty()).ok_or(SignatureDefect::Missing)
}

/// The value of a header that is there once at most.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, SignatureDefect> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let value = value.to_str().ok().filter(|value| value.len() <= MAX_HEADER_BYTES);
    match (value, values.next()) {
        (Some(value), None) => Ok(Some(value)),
        (_, _) => Err(SignatureDefect::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{NOW, headers, key, platform_keys, text, vectors};

    fn signer() -> Signer {
        let wechat = &vectors()["wechat"];
        Signer {
            merchant_id: text(&wechat["merchant_id"]),
            serial: text(&wechat["serial"]),
            key: SigningKey::read(&key("merchant", "pkcs8_pem")).unwrap(),
        }
    }

    #[test]
    fn a_request_is_signed_as_others_sign_it() {
        for request in vectors()["wechat"]["requests"].as_array().unwrap() {
            let part = |name: &str| text(&request[name]);
            let (method, path, nonce) = (part("method"), part("path"), part("nonce"));
            let ours = signer().authorization(&method, &path, &nonce, NOW, &part("body")).unwrap();
            assert_eq!(ours.to_str().unwrap(), part("authorization"));
        }
        let nonces = [nonce().unwrap(), nonce().unwrap()];
        assert!(nonces[0] != nonces[1] && nonces.iter().all(|nonce| nonce.len() == 32));
        let odd = Signer { serial: "a\nb".to_owned(), ..signer() };
        assert_eq!(odd.authorization("GET", "/", "n", NOW, ""), Err(Unsigned));
    }

    /// Source: <https://pay.weixin.qq.com/docs/merchant/development/interface-rules/signature-verification.html>,
    /// <https://pay.weixin.qq.com/wiki/doc/apiv3/wechatpay/wechatpay4_0.shtml>
    #[test]
    fn the_lines_are_those_of_the_documentation() {
        let body = br#"{"code_url":"weixin://wxpay/bizpayurl?pr=JyC91EIz1"}"#.as_slice();
        let answer = lines(&[b"1722850421", b"d824f2e086d3c1df967785d13fcd22ef", body]);
        let documented = "1722850421\nd824f2e086d3c1df967785d13fcd22ef\n{\"code_url\":\"weixin://wxpay/bizpayurl?pr=JyC91EIz1\"}\n";
        assert_eq!(answer, documented.as_bytes());
        let request: [&[u8]; 5] =
            [b"GET", b"/v3/certificates", b"1554208460", b"593BEC0C930BF1AFEB40B4A08C8FB242", b""];
        let documented = "GET\n/v3/certificates\n1554208460\n593BEC0C930BF1AFEB40B4A08C8FB242\n\n";
        assert_eq!(lines(&request), documented.as_bytes());
    }

    #[test]
    fn what_others_sign_is_verified_and_nothing_else() {
        let keys = platform_keys(300);
        for answer in vectors()["wechat"]["answers"].as_array().unwrap() {
            let (good, body) = (headers(&answer["headers"]), text(&answer["body"]));
            assert_eq!(keys.verify(&good, body.as_bytes(), NOW), Ok(()));
            let refused = |name: &'static str, value: &str, defect: SignatureDefect| {
                let mut changed = good.clone();
                changed.insert(name, value.parse().unwrap());
                assert_eq!(keys.verify(&changed, body.as_bytes(), NOW), Err(defect), "{name}");
            };
            const PROBE: &str = "WECHATPAY/SIGNTEST/";
            let signature = good["wechatpay-signature"].to_str().unwrap();
            refused(
                "wechatpay-signature",
                &format!("{PROBE}{signature}"),
                SignatureDefect::Mismatch,
            );
            refused("wechatpay-signature", &signature[4..], SignatureDefect::Mismatch);
            refused("wechatpay-signature", "", SignatureDefect::Missing);
            refused("wechatpay-signature", &"A".repeat(4096), SignatureDefect::Malformed);
            refused("wechatpay-serial", "PUB_KEY_ID_1", SignatureDefect::Mismatch);
            refused("wechatpay-nonce", "other", SignatureDefect::Mismatch);
            refused("wechatpay-timestamp", "1800000001", SignatureDefect::Mismatch);
            refused("wechatpay-timestamp", "+1800000000", SignatureDefect::Mismatch);
            refused("wechatpay-timestamp", "now", SignatureDefect::Malformed);
            refused(
                "wechatpay-signature-type",
                "WECHATPAY2-SM2-WITH-SM3",
                SignatureDefect::Malformed,
            );
            let mut twice = good.clone();
            twice.append("wechatpay-nonce", good["wechatpay-nonce"].clone());
            assert_eq!(keys.verify(&twice, body.as_bytes(), NOW), Err(SignatureDefect::Malformed));
            let other = format!("{body} ");
            assert_eq!(keys.verify(&good, other.as_bytes(), NOW), Err(SignatureDefect::Mismatch));
        }
    }

    #[test]
    fn each_header_is_needed_and_the_type_is_not() {
        let answer = &vectors()["wechat"]["answers"][0];
        let (good, body) = (headers(&answer["headers"]), text(&answer["body"]));
        for name in ["signature", "timestamp", "nonce", "serial", "signature-type"] {
            let name = format!("wechatpay-{name}");
            let mut lacking = good.clone();
            lacking.remove(name.as_str());
            let verified = platform_keys(300).verify(&lacking, body.as_bytes(), NOW);
            let needed = name != "wechatpay-signature-type";
            assert_eq!(verified.err(), needed.then_some(SignatureDefect::Missing), "{name}");
        }
    }

    #[test]
    fn the_time_may_differ_by_five_minutes_and_no_more_whatever_is_configured() {
        let answer = &vectors()["wechat"]["answers"][0];
        let (good, body) = (headers(&answer["headers"]), text(&answer["body"]));
        let at = |seconds: i64, tolerance: u32| {
            let verified =
                platform_keys(tolerance).verify(&good, body.as_bytes(), NOW.plus_seconds(seconds));
            verified.err()
        };
        let late = Some(SignatureDefect::OutsideTolerance);
        assert_eq!([at(300, 3600), at(-300, 3600), at(10, 10)], [None, None, None]);
        assert_eq!([at(301, 3600), at(-301, 3600), at(11, 10)], [late, late, late]);
    }

    #[test]
    fn answers_are_asked_for_with_a_public_key_if_there_is_one() {
        let id = text(&vectors()["wechat"]["key_id"]);
        assert_eq!(platform_keys(300).id_for_answers(), Some(id.as_str()));
        let certificate = VerifyingKey::read(&key("platform", "public_pem")).unwrap();
        let certificates = PlatformKeys::new([("1DDE55AD".to_owned(), certificate)].into(), 300);
        assert_eq!(certificates.id_for_answers(), None);
    }

    #[test]
    fn another_key_under_the_same_serial_does_not_fit() {
        let answer = &vectors()["wechat"]["answers"][0];
        let (good, body) = (headers(&answer["headers"]), text(&answer["body"]));
        let key = VerifyingKey::read(&key("merchant", "public_pem")).unwrap();
        let serial = text(&vectors()["wechat"]["key_id"]);
        let wrong = PlatformKeys::new([(serial, key)].into(), 300);
        let verified = wrong.verify(&good, body.as_bytes(), NOW);
        assert_eq!(verified, Err(SignatureDefect::Mismatch));
        let none = PlatformKeys::new(BTreeMap::new(), 300);
        assert_eq!(none.verify(&good, body.as_bytes(), NOW), Err(SignatureDefect::Mismatch));
    }
}
