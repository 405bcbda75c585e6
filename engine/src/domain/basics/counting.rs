//! How payment providers count money: beside ISO 4217's minor units ([`Currency::exponent`]) the one table of what each
//! provider counts otherwise, of the parts of a unit that it cannot take, and of its smallest and largest amounts.
//!
//! Sources: <https://docs.stripe.com/currencies#special-cases>, <https://docs.stripe.com/currencies#zero-decimal>,
//! <https://docs.stripe.com/currencies#three-decimal>,
//! <https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts>

use std::fmt;
use std::ops::RangeInclusive;

use super::money::{Currency, MinorUnits, Money};

/// A provider's way of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Minor units as ISO 4217 has them, of any amount: WeChat Pay, Alipay.
    Iso,
    /// Stripe's.
    Stripe,
}

/// Where a provider's unit is not ISO 4217's.
enum Unit {
    Same,
    /// ISO 4217 has no minor unit, the provider counts hundredths, always whole ones of the currency.
    Hundredths,
    /// ISO 4217 has hundredths, the provider counts whole units.
    Wholes,
    /// Thousandths, of which the provider takes only whole tens.
    Tens,
}

/// The smallest charge at Stripe, in minor units of ISO 4217, of an account that is paid out in the same currency. Of
/// another account it is worth as much as the smallest of the currency that it is paid out in.
const SMALLEST_AT_STRIPE: [(&str, i64); 31] = [
    ("AED", 200),
    ("ARS", 50),
    ("AUD", 50),
    ("BRL", 50),
    ("CAD", 50),
    ("CHF", 50),
    ("COP", 50),
    ("CZK", 1500),
    ("DKK", 250),
    ("EUR", 50),
    ("GBP", 30),
    ("HKD", 400),
    ("HUF", 17_500),
    ("IDR", 50),
    ("ILS", 50),
    ("INR", 50),
    ("JPY", 50),
    ("KRW", 50),
    ("MXN", 1000),
    ("MYR", 200),
    ("NOK", 300),
    ("NZD", 50),
    ("PHP", 50),
    ("PLN", 200),
    ("RON", 200),
    ("RUB", 50),
    ("SEK", 300),
    ("SGD", 50),
    ("THB", 1000),
    ("USD", 50),
    ("ZAR", 50),
];
/// The largest charge of a card at Stripe, in its own units: twelve digits. Some networks take less.
const LARGEST_AT_STRIPE: i64 = 999_999_999_999;

impl Counting {
    fn unit(self, currency: Currency) -> Unit {
        match (self, currency.to_string().as_str()) {
            (Self::Stripe, "ISK" | "UGX") => Unit::Hundredths,
            (Self::Stripe, "MGA") => Unit::Wholes,
            (Self::Stripe, "BHD" | "JOD" | "KWD" | "OMR" | "TND") => Unit::Tens,
            (Self::Stripe | Self::Iso, _) => Unit::Same,
        }
    }

    /// An amount as the provider takes it; `None` for one that it cannot take, whatever its size.
    #[must_use]
    pub fn written(self, amount: Money) -> Option<i64> {
        let minor = amount.amount_minor.0;
        match self.unit(amount.currency) {
            Unit::Same => Some(minor),
            Unit::Hundredths => minor.checked_mul(100),
            Unit::Wholes => (minor % 100 == 0).then_some(minor / 100),
            Unit::Tens => (minor % 10 == 0).then_some(minor),
        }
    }

    /// An amount that the provider states. What is no minor unit of ISO 4217 rounds down: amounts are added up before
    /// they are read.
    #[must_use]
    pub fn read(self, amount: MinorUnits, currency: Currency) -> Money {
        let amount_minor = match self.unit(currency) {
            Unit::Same | Unit::Tens => amount,
            Unit::Hundredths => MinorUnits(amount.0.div_euclid(100)),
            Unit::Wholes => MinorUnits(amount.0.saturating_mul(100)),
        };
        Money { amount_minor, currency }
    }

    /// The minor units of ISO 4217 of which the provider takes only multiples.
    #[must_use]
    pub fn step(self, currency: Currency) -> MinorUnits {
        MinorUnits(match self.unit(currency) {
            Unit::Same | Unit::Hundredths => 1,
            Unit::Tens => 10,
            Unit::Wholes => 100,
        })
    }

    /// The smallest and the largest charge, in minor units of ISO 4217, that the provider publishes for a currency: of
    /// an account that is paid out in it.
    #[must_use]
    pub fn bounds(self, currency: Currency) -> RangeInclusive<MinorUnits> {
        let (smallest, largest) = match self {
            Self::Iso => (1, i64::MAX),
            Self::Stripe => {
                let code = currency.to_string();
                let published = SMALLEST_AT_STRIPE.iter().find(|(known, _)| *known == code);
                (published.map_or(1, |(_, smallest)| *smallest), LARGEST_AT_STRIPE)
            }
        };
        MinorUnits(smallest)..=self.read(MinorUnits(largest), currency).amount_minor
    }

    /// Why the provider does not take an amount; `None` if it does. `bounds` are those of the account, by default what
    /// [`bounds`](Self::bounds) says.
    #[must_use]
    pub fn refusal(self, amount: Money, bounds: &RangeInclusive<MinorUnits>) -> Option<TakesOnly> {
        let (minor, step) = (amount.amount_minor, self.step(amount.currency));
        if minor.0 % step.0 != 0 {
            return Some(TakesOnly::Multiples(step));
        }
        if minor < *bounds.start() {
            return Some(TakesOnly::AtLeast(*bounds.start()));
        }
        (minor > *bounds.end()).then_some(TakesOnly::AtMost(*bounds.end()))
    }
}

/// The provider's name, for people.
impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iso => "ISO 4217",
            Self::Stripe => "Stripe",
        })
    }
}

/// The amounts that a provider takes of a currency, in minor units of ISO 4217.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesOnly {
    /// Only multiples of this.
    Multiples(MinorUnits),
    /// Only this and more.
    AtLeast(MinorUnits),
    /// Only this and less.
    AtMost(MinorUnits),
}

/// What is taken, after `Stripe takes`.
impl fmt::Display for TakesOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiples(MinorUnits(10)) => f.write_str("whole tens"),
            Self::Multiples(MinorUnits(100)) => f.write_str("whole hundreds"),
            Self::Multiples(step) => write!(f, "multiples of {step}"),
            Self::AtLeast(least) => write!(f, "{least} at least"),
            Self::AtMost(most) => write!(f, "{most} at most"),
        }
    }
}

impl Currency {
    /// The minor units of which every provider takes only multiples, if one does: what is kept as a fee and what goes
    /// back are whole ones of them, as nobody knows which provider a buyer will choose.
    #[must_use]
    pub fn step(self) -> MinorUnits {
        [Counting::Iso, Counting::Stripe]
            .map(|each| each.step(self))
            .into_iter()
            .max()
            .unwrap_or(MinorUnits(1))
    }

    /// The part of an amount that a provider can send back: the amount, rounded down to a multiple of
    /// [`step`](Self::step).
    #[must_use]
    pub fn round_down(self, amount: MinorUnits) -> MinorUnits {
        MinorUnits(amount.0 - amount.0.rem_euclid(self.step().0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::new(code).unwrap()
    }

    fn money(code: &str, minor: i64) -> Money {
        Money { amount_minor: MinorUnits(minor), currency: currency(code) }
    }

    #[test]
    fn an_amount_is_counted_in_the_providers_units() {
        let cases = [
            ("CNY", 110_600, Some(110_600)),
            ("EUR", 1, Some(1)),
            ("JPY", 980, Some(980)),
            ("KWD", 1230, Some(1230)),
            ("KWD", 1234, None),
            ("ISK", 5000, Some(500_000)),
            ("UGX", 5000, Some(500_000)),
            ("MGA", 500_000, Some(5000)),
            ("MGA", 500_001, None),
            ("ISK", i64::MAX, None),
        ];
        for (code, minor, stripe) in cases {
            let money = money(code, minor);
            assert_eq!(Counting::Stripe.written(money), stripe, "{money}");
            assert_eq!(Counting::Iso.written(money), Some(minor), "{money}");
            if let Some(stripe) = stripe {
                assert_eq!(Counting::Stripe.read(MinorUnits(stripe), money.currency), money);
            }
            let step = Counting::Stripe.step(money.currency).0;
            assert_eq!(minor % step == 0, stripe.is_some() || minor == i64::MAX, "{money}");
        }
        // Half a króna by hand is none.
        assert_eq!(Counting::Stripe.read(MinorUnits(50), currency("ISK")), money("ISK", 0));
    }

    #[test]
    fn what_is_not_taken_is_said() {
        let why = |code: &str, minor: i64| {
            let (stripe, money) = (Counting::Stripe, money(code, minor));
            stripe.refusal(money, &stripe.bounds(money.currency)).map(|only| only.to_string())
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(why("KWD", 1234), text("whole tens"));
        assert_eq!(why("MGA", 150), text("whole hundreds"));
        assert_eq!(why("EUR", 49), text("50 at least"));
        assert_eq!(why("HUF", 17_499), text("17500 at least"));
        assert_eq!(why("EUR", 1_000_000_000_000), text("999999999999 at most"));
        assert_eq!(why("ISK", 10_000_000_000), text("9999999999 at most"));
        for (code, minor) in
            [("KWD", 10), ("EUR", 50), ("CNY", 1), ("ISK", 9_999_999_999), ("MGA", 100)]
        {
            assert_eq!(why(code, minor), None, "{code} {minor}");
        }
        // An account that is paid out in another currency has other bounds.
        let bounds = MinorUnits(60)..=MinorUnits(70);
        let of_account = |minor: i64| Counting::Stripe.refusal(money("EUR", minor), &bounds);
        assert_eq!(of_account(59), Some(TakesOnly::AtLeast(MinorUnits(60))));
        assert_eq!(of_account(71), Some(TakesOnly::AtMost(MinorUnits(70))));
        assert_eq!(of_account(60), None);
        let all = Counting::Iso.bounds(currency("CNY"));
        assert_eq!(Counting::Iso.refusal(money("CNY", 1), &all), None);
    }

    #[test]
    fn what_goes_back_is_a_whole_number_of_what_providers_take() {
        let rounded = |code: &str, minor: i64| currency(code).round_down(MinorUnits(minor)).0;
        assert_eq!(rounded("KWD", 11_979), 11_970);
        assert_eq!(rounded("KWD", 11_970), 11_970);
        assert_eq!(rounded("MGA", 199), 100);
        assert_eq!((rounded("EUR", 1), rounded("ISK", 7), rounded("JPY", 0)), (1, 7, 0));
    }
}
