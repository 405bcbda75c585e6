//! `/config.json`: what the pages have to know of the engine that they belong to.

use engine::domain::payment::start::Offer;
use fake_identity::Realm;
use serde::Serialize;

/// The settings of the pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PagesConfig {
    /// The issuer of the tokens of buyers; `None` if they cannot sign in on pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buyers: Option<Issuer>,
    /// The issuer of the tokens of operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operators: Option<Issuer>,
    /// True if issuers may be asked without TLS: on one machine only.
    pub insecure_issuers: bool,
    /// How buyers may pay, the first one first.
    pub payments: Vec<PaymentWay>,
}

/// An issuer of OpenID Connect, as a page signs in there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issuer {
    /// Its URL: the `iss` of its tokens.
    pub issuer: String,
    /// The id that the pages have there.
    pub client_id: String,
    /// The scopes that are asked for, with blanks between them.
    pub scope: String,
}

impl Issuer {
    /// The issuer of a realm on one machine, whose issuers are at `issuers`, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn local(issuers: &str, realm: Realm) -> Self {
        Self {
            issuer: format!("{issuers}/{}", realm.as_str()),
            client_id: realm.client_id().to_owned(),
            scope: realm.scope(),
        }
    }
}

/// A way to pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PaymentWay {
    pub provider: String,
    /// The method, as `POST /orders/{order}/payments` takes it.
    pub method: &'static str,
}

impl PaymentWay {
    /// One way for each provider: the first method that it offers.
    #[must_use]
    pub fn from_offers(offers: &[Offer]) -> Vec<Self> {
        let way = |offer: &Offer| {
            let (method, _) = offer.methods.first()?;
            Some(Self { provider: offer.provider.to_string(), method: method.as_str() })
        };
        offers.iter().filter_map(way).collect()
    }
}

impl PagesConfig {
    /// The settings of an engine on one machine, whose issuers are at `issuers`.
    #[must_use]
    pub fn local(issuers: &str, offers: &[Offer]) -> Self {
        Self {
            buyers: Some(Issuer::local(issuers, Realm::Buyers)),
            operators: Some(Issuer::local(issuers, Realm::Operators)),
            // The issuers speak HTTP without TLS.
            insecure_issuers: true,
            payments: PaymentWay::from_offers(offers),
        }
    }

    /// The origins of the issuers, each once: the pages ask them for tokens.
    #[must_use]
    pub fn origins(&self) -> Vec<String> {
        let issuers = [&self.buyers, &self.operators].into_iter().flatten();
        let mut origins: Vec<String> = issuers
            .filter_map(|issuer| reqwest::Url::parse(&issuer.issuer).ok())
            .map(|url| url.origin().ascii_serialization())
            .collect();
        origins.sort();
        origins.dedup();
        origins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_of_one_server_are_one_origin() {
        let issuer = |issuer: &str| {
            let (client_id, scope) = ("onsale-pages".to_owned(), "openid".to_owned());
            Some(Issuer { issuer: issuer.to_owned(), client_id, scope })
        };
        let config = |buyers, operators| PagesConfig { buyers, operators, ..Default::default() };
        let one = config(issuer("http://127.0.0.1:4100/buyers"), issuer("http://127.0.0.1:4100/o"));
        assert_eq!(one.origins(), ["http://127.0.0.1:4100"]);
        let two = config(issuer("https://b.example/x"), issuer("https://a.example:8443"));
        assert_eq!(two.origins(), ["https://a.example:8443", "https://b.example"]);
        assert!(PagesConfig::default().origins().is_empty());
        assert!(config(issuer("no address"), None).origins().is_empty());
    }

    #[test]
    fn each_issuer_is_named_with_its_client_and_scopes() {
        let config = PagesConfig::local("http://127.0.0.1:4100", &[]);
        let config = serde_json::to_value(config).unwrap();
        let buyers = serde_json::json!({
            "issuer": "http://127.0.0.1:4100/buyers", "client_id": "onsale-pages", "scope": "openid",
        });
        assert_eq!(config["buyers"], buyers);
        let operators = serde_json::json!({
            "issuer": "http://127.0.0.1:4100/operators", "client_id": "onsale-operators",
            "scope": "openid onsale/watch onsale/operate onsale/refund onsale/scan",
        });
        assert_eq!(config["operators"], operators);
    }
}
