//! The webhook endpoints of an account at Stripe, as `stripe webhook_endpoints list` prints them, and what of them would leave
//! payments to the reader of the provider's list.

use serde::Deserialize;
use shared::providers::stripe::{API_VERSION, events};

/// The type that stands for every type.
const EVERY: &str = "*";

/// A webhook endpoint. Its address may have the key of its path, so no finding repeats it.
/// Source: <https://docs.stripe.com/api/webhook_endpoints/object>
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    /// Where it sends.
    pub url: String,
    /// `enabled` or `disabled`.
    pub status: String,
    /// The version of its events; none for the account's.
    pub api_version: Option<String>,
    /// The types of events that it sends.
    pub enabled_events: Vec<String>,
}

/// What `stripe webhook_endpoints list` prints, as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Endpoints {
    pub data: Vec<Endpoint>,
}

/// What is found of an account's endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// One sends all that is read, in the version that is asked for.
    Good,
    /// It will do: what is said is read again, or read later.
    Odd(String),
    /// No callback comes.
    Bad(String),
}

impl Endpoints {
    /// Looks at the endpoints that send to an engine: those whose address is that of its callbacks.
    #[must_use]
    pub fn look(&self) -> Found {
        let of_engine: Vec<&Endpoint> = self.data.iter().filter(|one| one.is_of_engine()).collect();
        let enabled: Vec<&&Endpoint> =
            of_engine.iter().filter(|one| one.status == "enabled").collect();
        if enabled.is_empty() {
            let count = of_engine.len();
            let what = if count == 0 {
                "no endpoint sends to /callbacks/KEY/stripe".to_owned()
            } else {
                format!("{count} to /callbacks/KEY/stripe, and none is enabled")
            };
            return Found::Bad(what);
        }
        let each: Vec<Option<String>> = enabled.iter().map(|one| one.lacks()).collect();
        match each.into_iter().collect::<Option<Vec<String>>>() {
            Some(all) => Found::Odd(all.join("; ")),
            None => Found::Good,
        }
    }
}

impl Endpoint {
    /// True for the address of the callbacks: of the entry, or of the API (`docs/api.md`).
    fn is_of_engine(&self) -> bool {
        let path = self.url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let mut parts = path.rsplit('/');
        matches!(
            [parts.next(), parts.next(), parts.next()],
            [Some("callback"), Some(_), Some("payments")] | [Some(_), Some(_), Some("callbacks")]
        )
    }

    /// What it lacks, if it lacks anything.
    fn lacks(&self) -> Option<String> {
        let sends = |kind: &&str| {
            self.enabled_events.iter().any(|sent| sent == EVERY || sent.as_str() == *kind)
        };
        let missing: Vec<&str> = events().filter(|kind| !sends(kind)).collect();
        let of_version = match self.api_version.as_deref() {
            Some(API_VERSION) => None,
            Some(other) => Some(format!("sends version {other}, and {API_VERSION} is asked for")),
            None => Some(format!("sends the account's version; {API_VERSION} is asked for")),
        };
        let of_events = (!missing.is_empty()).then(|| format!("sends no {}", missing.join(", ")));
        let both: Vec<String> = of_version.into_iter().chain(of_events).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn endpoint(with: Value) -> Value {
        let mut endpoint = json!({
            "url": "https://entry.example/callbacks/0123456789abcdef/stripe",
            "status": "enabled",
            "api_version": API_VERSION,
            "enabled_events": events().collect::<Vec<_>>(),
        });
        for (name, value) in with.as_object().unwrap() {
            endpoint[name] = value.clone();
        }
        endpoint
    }

    fn look(endpoints: Vec<Value>) -> Found {
        serde_json::from_value::<Endpoints>(json!({ "data": endpoints })).unwrap().look()
    }

    #[test]
    fn what_an_endpoint_lacks_is_said_without_its_address() {
        assert_eq!(look(vec![endpoint(json!({}))]), Found::Good);
        assert_eq!(look(vec![endpoint(json!({ "enabled_events": ["*"] }))]), Found::Good);
        let old = json!({ "url": "https://api.example/payments/stripe/callback?x=1" });
        assert_eq!(look(vec![endpoint(old)]), Found::Good);
        let found = [
            look(Vec::new()),
            look(vec![endpoint(json!({ "url": "https://shop.example/stripe" }))]),
            look(vec![endpoint(json!({ "status": "disabled" }))]),
            look(vec![endpoint(json!({ "api_version": "2020-08-27" }))]),
            look(vec![endpoint(json!({ "api_version": null }))]),
            look(vec![endpoint(json!({ "enabled_events": ["payment_intent.succeeded"] }))]),
        ];
        let text = found.map(|found| match found {
            Found::Good => "good".to_owned(),
            Found::Odd(what) => format!("odd: {what}"),
            Found::Bad(what) => format!("bad: {what}"),
        });
        assert!(text.iter().all(|text| !text.contains("0123456789")), "{text:?}");
        let said = |at: usize, what: &str| assert!(text[at].contains(what), "{}", text[at]);
        said(0, "bad: no endpoint");
        said(1, "bad: no endpoint");
        said(2, "bad: 1 to /callbacks/KEY/stripe, and none is enabled");
        said(3, "odd: sends version 2020-08-27");
        said(4, "odd: sends the account's version");
        said(5, "refund.failed");
        // While an endpoint is replaced there are two.
        let two = vec![endpoint(json!({ "api_version": "2020-08-27" })), endpoint(json!({}))];
        assert_eq!(look(two), Found::Good);
    }
}
