//! Money: whole minor units of one currency, never a fraction and never a float.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::num::ParseIntError;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ids::InvalidId;
use super::tickets::Tickets;

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

    /// The decimal places that a minor unit is of: 100 minor units are a euro, 1 is a yen. Two where ISO 4217 does not say
    /// otherwise. What people write, which CLDR knows, may be fewer.
    #[must_use]
    pub fn exponent(self) -> u8 {
        let found =
            OTHER_EXPONENTS.iter().find(|(codes, _)| codes.contains(&self.to_string().as_str()));
        found.map_or(2, |(_, exponent)| *exponent)
    }
}

/// The currencies whose minor unit is not a hundredth, by the decimal places that it is of.
/// Source: ISO 4217, list one.
const OTHER_EXPONENTS: [(&[&str], u8); 3] = [
    (
        &[
            "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI",
            "VND", "VUV", "XAF", "XOF", "XPF",
        ],
        0,
    ),
    (&["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3),
    (&["CLF", "UYW"], 4),
];

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
        let others = OTHER_EXPONENTS.iter();
        let exponents: BTreeMap<&str, u8> = others
            .flat_map(|(codes, exponent)| codes.iter().map(|code| (*code, *exponent)))
            .collect();
        schemars::json_schema!({
            "type": "string", "pattern": pattern, "description": "ISO 4217 code",
            // The decimal places of a minor unit, where they are not two.
            "x-onsale-exponents": exponents
        })
    }
}

/// A number of minor units (cents, fen) of a currency that is known from elsewhere.
///
/// Arithmetic saturates. Prices are bounded ([`MAX_PRICE_MINOR`](crate::domain::sale::MAX_PRICE_MINOR)), so that
/// no sale comes near the ends; an amount that a provider or a file states may be any, and must
/// neither end the process nor come out small.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MinorUnits(pub i64);

impl MinorUnits {
    pub const ZERO: Self = Self(0);
}

impl Add for MinorUnits {
    type Output = Self;
    fn add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl AddAssign for MinorUnits {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

/// The difference; negative if `less` is more.
impl Sub for MinorUnits {
    type Output = Self;
    fn sub(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }
}

/// The price of so many tickets at this price each.
impl Mul<Tickets> for MinorUnits {
    type Output = Self;
    fn mul(self, tickets: Tickets) -> Self {
        Self(self.0.saturating_mul(i64::from(tickets)))
    }
}

impl Sum for MinorUnits {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}

impl From<MinorUnits> for i128 {
    fn from(amount: MinorUnits) -> Self {
        Self::from(amount.0)
    }
}

/// Decimal digits, as they stand in DynamoDB attributes and in forms of a provider.
impl fmt::Display for MinorUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MinorUnits {
    type Err = ParseIntError;
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// The schema of a bare integer, in place where it is used.
impl schemars::JsonSchema for MinorUnits {
    fn inline_schema() -> bool {
        i64::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        i64::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        i64::json_schema(generator)
    }
}

/// An amount in minor units (cents, fen) of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// Minor units; never negative in an order.
    pub amount_minor: MinorUnits,
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

    #[test]
    fn no_arithmetic_passes_the_ends() {
        let (one, all, debt) = (MinorUnits(1), MinorUnits(i64::MAX), MinorUnits(i64::MIN));
        assert_eq!(MinorUnits(250) * Tickets::new(3), MinorUnits(750));
        assert_eq!([MinorUnits(250), one].into_iter().sum::<MinorUnits>(), MinorUnits(251));
        assert_eq!(one - MinorUnits(250), MinorUnits(-249));
        assert_eq!((all + one, debt - one), (all, debt));
        assert_eq!((all * Tickets::new(2), debt * Tickets::new(2)), (all, debt));
    }

    #[test]
    fn the_dearest_sale_is_far_from_the_ends() {
        use crate::domain::sale::{MAX_PRICE_MINOR, MAX_SEATS_PER_SALE};
        let seats = i64::try_from(MAX_SEATS_PER_SALE).unwrap();
        assert!(MAX_PRICE_MINOR.0.checked_mul(seats).is_some_and(|all| all < i64::MAX / 2));
    }

    #[test]
    fn an_amount_is_a_bare_number_wherever_it_is_written() {
        assert_eq!(MinorUnits(-5).to_string(), "-5");
        assert_eq!("500".parse(), Ok(MinorUnits(500)));
        assert!("5.00".parse::<MinorUnits>().is_err());
        assert_eq!(serde_json::to_string(&MinorUnits(500)).unwrap(), "500");
        assert_eq!(serde_json::from_str::<MinorUnits>("500").unwrap(), MinorUnits(500));
        let schema = |schema: schemars::Schema| serde_json::to_value(schema).unwrap();
        assert_eq!(
            schema(schemars::schema_for!(Option<MinorUnits>)),
            schema(schemars::schema_for!(Option<i64>))
        );
    }
}
