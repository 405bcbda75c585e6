//! What a payment at Stripe carries: text by name, as the system gave it that made the payment.

use std::collections::BTreeMap;

use engine::domain::basics::number::OrderNumber;
use engine::domain::order::attempt::AttemptNumber;
use serde::{Deserialize, Serialize};

/// The metadata of a payment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// What a payment has that was started for an order before payments carried a deployment's id, or elsewhere.
    #[must_use]
    pub fn of_order(order: OrderNumber) -> Self {
        Self::new([("order", order.to_string())])
    }

    /// These names and texts.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        Self(pairs.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    /// What a form has of it under `path`, such as `metadata`: `metadata[order]=42`.
    pub(crate) fn read(form: &BTreeMap<String, String>, path: &str) -> Self {
        let of_path = |(name, text): (&String, &String)| {
            let name = name.strip_prefix(path)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((name.to_owned(), text.clone()))
        };
        Self(form.iter().filter_map(of_path).collect())
    }

    /// These, or what a record has that was written before payments kept their metadata.
    pub(crate) fn or_earlier(&mut self, earlier: &Earlier) {
        let Some(order) = earlier.order.filter(|_| self.0.is_empty()) else { return };
        *self = Self::of_order(order);
        let attempt = earlier.attempt.map(|attempt| ("attempt".to_owned(), attempt.to_string()));
        self.0.extend(attempt);
    }

    fn first(&self, names: [&str; 2]) -> Option<&str> {
        names.iter().find_map(|name| self.0.get(*name)).map(String::as_str)
    }

    /// The number of an order that it names, by the name with a prefix or by the one without.
    pub(crate) fn order(&self) -> Option<OrderNumber> {
        self.first(["onsale_order", "order"])?.parse().ok()
    }

    pub(crate) fn attempt(&self) -> Option<AttemptNumber> {
        self.first(["onsale_attempt", "attempt"])?.parse().ok()
    }

    /// The deployment whose id it carries.
    pub(crate) fn deployment(&self) -> Option<&str> {
        self.0.get("onsale_deployment").map(String::as_str)
    }

    /// The text under a name, or nothing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// What a record of a payment had in place of its metadata.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Earlier {
    order: Option<OrderNumber>,
    attempt: Option<AttemptNumber>,
}
