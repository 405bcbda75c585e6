//! The request to start a payment, and its reply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::checks::Refusal;
use crate::http::origin::Origin;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{
    AttemptNumber, PaymentChoice, PaymentMethod, PaymentStep, ReturnUrl,
};
use engine::flows::start::Started;

/// What the buyer pays with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct PaymentBody {
    /// The payment provider.
    provider: ProviderId,
    /// What is paid with there: a page of the provider's (unless another is named), a form of the
    /// seller's own, or a code to scan.
    #[serde(default = "page")]
    method: PaymentMethod,
    /// Where the provider's page sends the buyer afterwards, paid or not: on an origin that the deployment
    /// lists. The page there asks for the order, and believes nothing else. Needed for a page.
    #[serde(default)]
    #[schemars(with = "Option<String>", length(max = ReturnUrl::MAX_BYTES))]
    return_url: Option<String>,
}

const fn page() -> PaymentMethod {
    PaymentMethod::Page
}

impl PaymentBody {
    /// The choice, if its address may be returned to.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for an address elsewhere, one that is missing, or one that is not needed.
    pub fn choice(self, origins: &[Origin]) -> Result<PaymentChoice, Refusal> {
        let Self { provider, method, return_url } = self;
        let refused = |rule: &str| Refusal::invalid("return_url", rule);
        let return_url = match (method, return_url) {
            (PaymentMethod::Page, None) => return Err(refused("is needed for a page")),
            (PaymentMethod::Form | PaymentMethod::Code, Some(_)) => {
                return Err(refused("is for pages alone"));
            }
            (PaymentMethod::Form | PaymentMethod::Code, None) => None,
            (PaymentMethod::Page, Some(text)) => {
                let url = ReturnUrl::new(text).map_err(|invalid| refused(&invalid.to_string()))?;
                let is_listed = |origin: Origin| origins.contains(&origin);
                if !Origin::of_address(url.as_str()).is_some_and(is_listed) {
                    return Err(refused("must lie on an origin that this deployment lists"));
                }
                Some(url)
            }
        };
        Ok(PaymentChoice { provider, method, return_url })
    }
}

/// A payment that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StartedReply {
    /// The order.
    pub order: OrderNumber,
    /// The number of the payment among those that were started for the order.
    #[schemars(with = "u8", range(min = 1))]
    pub attempt: AttemptNumber,
    /// The payment provider.
    pub provider: ProviderId,
    /// What is paid with there.
    pub method: PaymentMethod,
    /// For `page`: the address to send the buyer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// For `form`: the secret that the provider's script takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// For `code`: the text to show as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Deadline of the order's payment. The provider's page may be open longer; it is closed by then.
    pub pay_by: Timestamp,
}

impl StartedReply {
    /// The reply of a payment that was started; `None` of one that is lost.
    #[must_use]
    pub fn new(started: Started) -> Option<Self> {
        let Started { order, number, step } = started;
        let choice = &order.attempts.get(number)?.choice;
        let (url, client_secret, code) = match step {
            PaymentStep::Page(url) => (Some(url), None, None),
            PaymentStep::Form(secret) => (None, Some(secret), None),
            PaymentStep::Code(text) => (None, None, Some(text)),
        };
        Some(Self {
            order: order.number,
            attempt: number,
            provider: choice.provider.clone(),
            method: choice.method,
            url,
            client_secret,
            code,
            pay_by: order.payable_until(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buyer_returns_only_to_where_the_deployment_is() {
        let origins = [Origin::new("https://shop.example").unwrap()];
        let choice = |body: serde_json::Value| {
            serde_json::from_value::<PaymentBody>(body).unwrap().choice(&origins)
        };
        let to = |url: &str| choice(serde_json::json!({ "provider": "stripe", "return_url": url }));
        let url = "https://shop.example/orders/7?x=1";
        assert_eq!(to(url).unwrap().return_url.unwrap().as_str(), url);
        let elsewhere = [
            "https://evil.example/",
            "https://shop.example.evil.example/",
            "https://shop.example@evil.example/",
            "http://shop.example/",
            "javascript:alert(1)//https://shop.example",
            "//shop.example/",
            "/orders/7",
            "",
            &format!("https://shop.example/{}", "x".repeat(600)),
        ];
        for url in elsewhere {
            let refused = to(url).unwrap_err();
            assert!(matches!(&refused, Refusal::Invalid { at, .. } if at == "return_url"), "{url}");
        }
        let form = serde_json::json!({ "provider": "stripe", "method": "form" });
        assert_eq!(choice(form).unwrap().return_url, None);
        assert!(choice(serde_json::json!({ "provider": "stripe" })).is_err());
        let needless = serde_json::json!({ "provider": "a", "method": "code", "return_url": url });
        assert!(choice(needless).is_err());
    }
}
