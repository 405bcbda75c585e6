//! A request to Alipay's gateway: parameters with a signature over them, sorted by name.
//! (<https://opendocs.alipay.com/common/02kf5q>)

use std::collections::BTreeMap;

use serde::Serialize;

use crate::providers::account::escaped;
use crate::providers::beijing;
use crate::providers::rsa::{SigningKey, Unsigned};
use engine::domain::basics::time::Timestamp;

/// The name of the signature: RSA with SHA-256.
pub(super) const SIGN_TYPE: &str = "RSA2";

/// Joins parameters as they are signed: `name=value&name=value`, sorted by name, not escaped.
pub(super) fn signed_text(parameters: &BTreeMap<&str, &str>) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// The parameters of a request, without its signature.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) app_id: &'a str,
    /// Name of the interface, such as `alipay.trade.query`.
    pub(super) method: &'a str,
    pub(super) at: Timestamp,
    pub(super) notify_url: Option<&'a str>,
    pub(super) return_url: Option<&'a str>,
    /// The parameters of the interface, in JSON.
    pub(super) business: &'a str,
}

impl Request<'_> {
    /// The request signed, as a form or a query.
    ///
    /// # Errors
    /// [`Unsigned`].
    pub(super) fn signed(&self, key: &SigningKey) -> Result<String, Unsigned> {
        let at = beijing::plain(self.at);
        let parameters = [
            ("app_id", self.app_id),
            ("biz_content", self.business),
            ("charset", "utf-8"),
            ("format", "JSON"),
            ("method", self.method),
            ("notify_url", self.notify_url.unwrap_or_default()),
            ("return_url", self.return_url.unwrap_or_default()),
            ("sign_type", SIGN_TYPE),
            ("timestamp", &at),
            ("version", "1.0"),
        ];
        // What is empty is not signed, and so not sent.
        let parameters: BTreeMap<&str, &str> =
            parameters.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let signature = key.sign(signed_text(&parameters).as_bytes())?;
        let signed = parameters.into_iter().chain([("sign", signature.as_str())]);
        let pairs: Vec<String> =
            signed.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        Ok(pairs.join("&"))
    }
}

/// Parameters of an interface as JSON.
///
/// # Errors
/// That of the serialiser, which the types here do not give.
pub(super) fn business<T: Serialize>(parameters: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{NOW, key, text, vectors};
    use serde_json::Value;

    fn pairs(query: &str) -> BTreeMap<String, String> {
        form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }

    #[test]
    fn a_request_is_signed_as_others_sign_it() {
        let private = SigningKey::read(&key("merchant", "pkcs1_base64")).unwrap();
        for request in vectors()["alipay"]["requests"].as_array().unwrap() {
            let parameter = |name: &str| request["params"].get(name).map(text);
            let (notify_url, return_url) = (parameter("notify_url"), parameter("return_url"));
            let ours = Request {
                app_id: &parameter("app_id").unwrap(),
                method: &parameter("method").unwrap(),
                at: NOW,
                notify_url: notify_url.as_deref(),
                return_url: return_url.as_deref(),
                business: &parameter("biz_content").unwrap(),
            };
            let signed = ours.signed(&private).unwrap();
            assert_eq!(pairs(&signed), pairs(&text(&request["query"])));
            assert!(!signed.contains('+') && !signed.contains(' '), "{signed}");
        }
    }

    #[test]
    fn nothing_is_signed_that_is_empty() {
        let private = SigningKey::read(&key("merchant", "pkcs8_pem")).unwrap();
        let (app_id, method) = ("1", "alipay.trade.query");
        let request =
            Request { app_id, method, at: NOW, notify_url: None, return_url: None, business: "{}" };
        let sent = pairs(&request.signed(&private).unwrap());
        assert!(!sent.contains_key("notify_url") && !sent.contains_key("return_url"));
        assert_eq!(sent["timestamp"], "2027-01-15 16:00:00");
        let object: Value = serde_json::from_str(&business(&[1]).unwrap()).unwrap();
        assert_eq!(object, serde_json::json!([1]));
    }
}
