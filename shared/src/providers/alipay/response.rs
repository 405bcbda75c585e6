//! An answer of Alipay's gateway: a JSON object with the value of the interface and a signature over the
//! bytes of that value, as they were sent.
//! (<https://opendocs.alipay.com/common/02mse7>)

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::providers::rsa::VerifyingKey;

/// The code of success.
/// Source: <https://opendocs.alipay.com/common/02km9f>
const DONE: &str = "10000";
/// The code of a gateway that does not know what became of the request.
const UNAVAILABLE: &str = "20000";
/// The codes of an app that is not let in.
const NOT_LET_IN: [&str; 2] = ["20001", "40006"];

/// Why an answer is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unbelieved {
    /// It is no JSON object of this interface.
    #[error("the answer has no value of the interface")]
    Malformed,
    /// It has no signature: it is an error of the gateway, or of somebody else.
    #[error("the answer is not signed")]
    Unsigned,
    /// No key of Alipay's gives the signature.
    #[error("the answer's signature does not fit")]
    Mismatch,
}

/// The bytes of the value that an interface answers, whose signature was verified.
pub(super) fn verified<'a>(
    body: &'a [u8],
    method: &str,
    keys: &[VerifyingKey],
) -> Result<&'a str, Unbelieved> {
    let parts: BTreeMap<String, &RawValue> =
        serde_json::from_slice(body).map_err(|_| Unbelieved::Malformed)?;
    let name = format!("{}_response", method.replace('.', "_"));
    let sign = parts.get("sign").ok_or(Unbelieved::Unsigned)?;
    let sign: String = serde_json::from_str(sign.get()).map_err(|_| Unbelieved::Malformed)?;
    let value = parts.get(&name).ok_or(Unbelieved::Malformed)?.get();
    let fits = keys.iter().any(|key| key.verify(value.as_bytes(), &sign));
    if fits { Ok(value) } else { Err(Unbelieved::Mismatch) }
}

/// What every value has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object")]
struct Head {
    code: String,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    sub_code: String,
    #[serde(default)]
    sub_msg: String,
}

/// A value that is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure(Head);

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It may have happened, or not.
    Unknown,
    /// It did not happen: our key or app is not let in.
    NotLetIn,
    /// Alipay will not do it, and says why.
    Refused,
}

impl Failure {
    /// The code of the interface, such as `ACQ.TRADE_NOT_EXIST`; empty if there is none.
    pub(super) fn sub_code(&self) -> &str {
        &self.0.sub_code
    }

    /// What it means. A system error says nothing of what happened, in either spelling.
    /// Source: <https://opendocs.alipay.com/common/02km9f>
    pub(super) fn meaning(&self) -> Meaning {
        let Head { code, sub_code, .. } = &self.0;
        let is_system = ["ACQ.SYSTEM_ERROR", "AQC.SYSTEM_ERROR"].contains(&sub_code.as_str())
            || ["isp.", "aop."].iter().any(|prefix| sub_code.starts_with(prefix));
        let is_key = ["isv.invalid-signature", "isv.invalid-app-id"].contains(&sub_code.as_str());
        if code == UNAVAILABLE || is_system {
            Meaning::Unknown
        } else if NOT_LET_IN.contains(&code.as_str()) || is_key {
            Meaning::NotLetIn
        } else {
            Meaning::Refused
        }
    }

    /// It in words, without the text that the gateway signed: that repeats the request.
    pub(super) fn text(&self) -> String {
        let Head { code, msg, sub_code, sub_msg } = &self.0;
        match self.meaning() {
            Meaning::NotLetIn => format!("{code} {sub_code}"),
            Meaning::Unknown | Meaning::Refused if sub_code.is_empty() => format!("{code}: {msg}"),
            Meaning::Unknown | Meaning::Refused => format!("{sub_code}: {sub_msg}"),
        }
    }
}

/// A value as what it is if it is a success.
///
/// # Errors
/// That of the parser.
pub(super) fn read<T: DeserializeOwned>(
    value: &str,
) -> Result<Result<T, Failure>, serde_json::Error> {
    let head: Head = serde_json::from_str(value)?;
    if head.code == DONE { serde_json::from_str(value).map(Ok) } else { Ok(Err(Failure(head))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{key, text, vectors};
    use serde_json::{Value, json};

    fn keys(names: &[&str]) -> Vec<VerifyingKey> {
        names.iter().map(|name| VerifyingKey::read(&key(name, "public_base64")).unwrap()).collect()
    }

    #[test]
    fn the_bytes_are_verified_as_they_were_sent() {
        for response in vectors()["alipay"]["responses"].as_array().unwrap() {
            let part = |name: &str| text(&response[name]);
            let (body, kind) = (part("body"), part("kind"));
            let method = kind.trim_end_matches("_response").replace('_', ".");
            let open = |body: &str, names: &[&str]| {
                verified(body.as_bytes(), &method, &keys(names)).map(str::to_owned)
            };
            assert_eq!(open(&body, &["platform"]), Ok(part("value")));
            assert_eq!(open(&body, &["merchant", "platform"]), Ok(part("value")));
            assert_eq!(open(&body, &["merchant"]), Err(Unbelieved::Mismatch));
            assert_eq!(open(&body, &[]), Err(Unbelieved::Mismatch));
            // The same value in other bytes is not what was signed; blanks around it are not of it.
            let changed = body.replacen("\"10000\"", "\"10001\"", 1);
            assert_eq!(open(&changed, &["platform"]), Err(Unbelieved::Mismatch));
            let spaced = body.replacen("\"code\":", "\"code\": ", 1);
            assert_eq!(open(&spaced, &["platform"]), Err(Unbelieved::Mismatch));
            let around = body.replacen(&format!("\"{kind}\":"), &format!("\"{kind}\" : \n"), 1);
            assert_eq!(open(&around, &["platform"]), Ok(part("value")));
            let other = body.replacen(&kind, "alipay_trade_close_response", 1);
            assert_eq!(open(&other, &["platform"]), Err(Unbelieved::Malformed));
        }
    }

    #[test]
    fn what_is_not_signed_is_not_believed() {
        let open = |body: &str| {
            verified(body.as_bytes(), "alipay.trade.query", &keys(&["platform"])).map(str::to_owned)
        };
        let gateway = r#"{"error_response":{"code":"40002","msg":"Invalid Arguments"}}"#;
        assert_eq!(open(gateway), Err(Unbelieved::Unsigned));
        for wrong in ["", "[]", "<html>", r#"{"sign":7}"#, r#"{"sign":"AAAA"}"#] {
            assert_eq!(open(wrong), Err(Unbelieved::Malformed), "{wrong}");
        }
        let bare = r#"{"alipay_trade_query_response":{"code":"10000"},"sign":"AAAA"}"#;
        assert_eq!(open(bare), Err(Unbelieved::Mismatch));
    }

    #[test]
    fn every_failure_has_a_meaning() {
        let failure = |code: &str, sub_code: &str| {
            let value = json!({ "code": code, "msg": "M", "sub_code": sub_code, "sub_msg": "S" });
            read::<Value>(&value.to_string()).unwrap().unwrap_err()
        };
        for (code, sub_code, meaning) in [
            ("20000", "", Meaning::Unknown),
            ("20000", "isp.unknow-error", Meaning::Unknown),
            ("40004", "ACQ.SYSTEM_ERROR", Meaning::Unknown),
            ("40004", "AQC.SYSTEM_ERROR", Meaning::Unknown),
            ("40004", "aop.ACQ.SYSTEM_ERROR", Meaning::Unknown),
            ("20001", "aop.invalid-auth-token", Meaning::Unknown),
            ("20001", "", Meaning::NotLetIn),
            ("40006", "isv.insufficient-isv-permissions", Meaning::NotLetIn),
            ("40002", "isv.invalid-signature", Meaning::NotLetIn),
            ("40002", "isv.invalid-app-id", Meaning::NotLetIn),
            ("40002", "isv.invalid-parameter", Meaning::Refused),
            ("40004", "ACQ.TRADE_NOT_EXIST", Meaning::Refused),
            ("99999", "", Meaning::Refused),
        ] {
            assert_eq!(failure(code, sub_code).meaning(), meaning, "{code} {sub_code}");
        }
        assert_eq!(failure("40004", "ACQ.X").text(), "ACQ.X: S");
        assert_eq!(failure("40003", "").text(), "40003: M");
        assert_eq!(failure("40002", "isv.invalid-signature").text(), "40002 isv.invalid-signature");
        assert!(read::<Value>("{}").is_err() && read::<Value>(r#"{"code":10000}"#).is_err());
        assert_eq!(read::<Value>(r#"{"code":"10000"}"#).unwrap(), Ok(json!({ "code": "10000" })));
    }
}
