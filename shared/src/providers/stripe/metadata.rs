//! What we give a payment along at Stripe, and what payments of others have there.
//!
//! The names carry a prefix: `order` is what many shops call theirs. Payments that were started before they did, or
//! elsewhere, carry `order` and perhaps `attempt`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::COUNTING;
use crate::providers::EventDefect;
use engine::domain::basics::ids::DeploymentId;
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::attempt::{Attempt, AttemptNumber};
use engine::domain::order::{Capture, Order, PaymentKey};
use engine::domain::payment::ours::{Mark, Reported};

/// The metadata of a payment, in what we read of it. Stripe's metadata are text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "PaymentMetadata")]
#[serde(expecting = "an object")]
pub(super) struct Metadata {
    /// The deployment that started the payment.
    onsale_deployment: Option<String>,
    /// The order that it pays.
    onsale_order: Option<String>,
    /// The attempt of the order.
    onsale_attempt: Option<String>,
    /// The order, if the payment carries no deployment; what is no number of an order is another shop's word.
    order: Option<String>,
    /// The attempt likewise.
    attempt: Option<String>,
}

/// What a payment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) order: OrderNumber,
    pub(super) attempt: Option<AttemptNumber>,
    pub(super) mark: Mark,
}

impl Named {
    /// The capture by the payment that names this, of an amount in Stripe's units.
    pub(super) fn captured(
        self,
        key: PaymentKey,
        stated: MinorUnits,
        currency: Currency,
    ) -> Reported {
        let Self { order, attempt, mark } = self;
        let amount = COUNTING.read(stated, currency);
        Reported { capture: Capture { key, order, amount, attempt }, mark }
    }
}

impl Metadata {
    /// What a payment names, read by the deployment `own`; `None` if it names no order.
    ///
    /// # Errors
    /// Returns an [`EventDefect`] if it carries the deployment's id and no number of an order.
    pub(super) fn named(&self, own: Option<&DeploymentId>) -> Result<Option<Named>, EventDefect> {
        let mark = Mark::of(self.onsale_deployment.as_deref(), own);
        let (order, attempt) = match mark {
            Mark::Ours | Mark::Another => (&self.onsale_order, &self.onsale_attempt),
            Mark::None => (&self.order, &self.attempt),
        };
        let number = order.as_deref().and_then(|order| order.parse().ok());
        let Some(order) = number else {
            let is_defect = mark == Mark::Ours;
            let defect =
                || EventDefect("metadata.onsale_order must be an order's number".to_owned());
            return if is_defect { Err(defect()) } else { Ok(None) };
        };
        let attempt = attempt.as_deref().and_then(|attempt| attempt.parse().ok());
        Ok(Some(Named { order, attempt, mark }))
    }
}

/// The fields that name an attempt, each with the path of the metadata they stand in, such as `metadata`.
pub(super) fn fields(path: &str, order: &Order, attempt: &Attempt) -> Vec<(String, String)> {
    let (order, number) = (order.number.to_string(), attempt.number.to_string());
    let field = |name: &str, value: String| (format!("{path}[{name}]"), value);
    match &attempt.deployment {
        Some(deployment) => vec![
            field("onsale_deployment", deployment.to_string()),
            field("onsale_order", order),
            field("onsale_attempt", number),
        ],
        None => vec![field("order", order), field("attempt", number)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(metadata: Value) -> Result<Option<(String, Mark)>, ()> {
        let own = DeploymentId::new("prod1").unwrap();
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        let named = metadata.named(Some(&own)).map_err(|_| ())?;
        Ok(named.map(|named| {
            let attempt = named.attempt.map_or(String::new(), |attempt| format!("-{attempt}"));
            (format!("{}{attempt}", named.order), named.mark)
        }))
    }

    #[test]
    fn what_a_payment_names_is_ours_by_the_deployment_alone() {
        let ours = json!({ "onsale_deployment": "prod1", "onsale_order": "42", "onsale_attempt": "2", "order": "7" });
        assert_eq!(read(ours), Ok(Some(("42-2".to_owned(), Mark::Ours))));
        let another = json!({ "onsale_deployment": "stage", "onsale_order": "42", "order": "7" });
        assert_eq!(read(another), Ok(Some(("42".to_owned(), Mark::Another))));
        let earlier = json!({ "order": "42", "attempt": "1", "onsale_order": "7" });
        assert_eq!(read(earlier), Ok(Some(("42-1".to_owned(), Mark::None))));
        for words in [
            "#1001",
            "forty-two",
            "3f0c5f3e-2b52-4ac5",
            "-1",
            "1e3",
            "",
            "９",
            "99999999999999999999",
        ] {
            assert_eq!(read(json!({ "order": words })), Ok(None), "{words}");
            let ours = json!({ "onsale_deployment": "prod1", "onsale_order": words });
            assert_eq!(read(ours), Err(()), "{words}");
            let another = json!({ "onsale_deployment": "stage", "onsale_order": words });
            assert_eq!(read(another), Ok(None), "{words}");
        }
        assert_eq!(read(json!({ "onsale_deployment": "prod1" })), Err(()));
        assert_eq!(read(json!({})), Ok(None));
    }
}
