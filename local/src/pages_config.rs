//! `/config.json`: what the pages know of the deployment that serves them.

use fake_identity::Realm;
use serde_json::{Value, json};

/// The document of an engine on one machine whose issuers are at `issuers`, `http://127.0.0.1:PORT`.
#[must_use]
pub fn pages_config(issuers: &str) -> Value {
    let realm = |realm: Realm| {
        json!({
            "issuer": format!("{issuers}/{}", realm.as_str()),
            "client_id": realm.client_id(),
            "scope": realm.scope(),
        })
    };
    json!({
        "buyers": realm(Realm::Buyers),
        "operators": realm(Realm::Operators),
        // The issuers speak HTTP without TLS.
        "insecure_issuers": true,
        "payments": [
            { "provider": "stripe", "method": "page" },
            { "provider": "alipay", "method": "page" },
            { "provider": "wechat", "method": "code" },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_issuer_is_named_with_its_client_and_scopes() {
        let config = pages_config("http://127.0.0.1:4100");
        let buyers = json!({
            "issuer": "http://127.0.0.1:4100/buyers", "client_id": "onsale-pages", "scope": "openid",
        });
        assert_eq!(config["buyers"], buyers);
        let operators = json!({
            "issuer": "http://127.0.0.1:4100/operators", "client_id": "onsale-operators",
            "scope": "openid onsale/watch onsale/operate onsale/refund onsale/scan",
        });
        assert_eq!(config["operators"], operators);
    }
}
