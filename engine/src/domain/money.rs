//! Money: whole minor units of one currency, never a fraction and never a float.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::InvalidId;

/// An ISO 4217 code such as `EUR`, upper case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    /// Reads a code in either case; providers send `eur`, operators write `EUR`.
    ///
    /// # Errors
    /// Refuses anything but three ASCII letters.
    pub fn new(code: &str) -> Result<Self, InvalidId> {
        match code.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_alphabetic) => {
                Ok(Self([a, b, c].map(|byte| byte.to_ascii_uppercase())))
            }
            _ => Err(InvalidId { kind: "currency", rule: "three letters (ISO 4217)" }),
        }
    }
}

impl TryFrom<String> for Currency {
    type Error = InvalidId;
    fn try_from(code: String) -> Result<Self, InvalidId> {
        Self::new(&code)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> String {
        currency.to_string()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl schemars::JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let read = generator.contract().is_deserialize();
        let pattern = if read { "^[A-Za-z]{3}$" } else { "^[A-Z]{3}$" };
        schemars::json_schema!({ "type": "string", "pattern": pattern, "description": "ISO 4217 code" })
    }
}

/// An amount in minor units (cents, fen) of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Minor units; never negative in an order.
    pub amount_minor: i64,
    /// The currency they are units of.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount_minor, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currency_is_three_letters_in_upper_case() {
        assert_eq!(Currency::new("eur").map(|c| c.to_string()), Ok("EUR".to_owned()));
        for bad in ["", "EU", "EURO", "E1R", "€"] {
            assert!(Currency::new(bad).is_err(), "{bad:?} was taken as a currency");
        }
    }
}
