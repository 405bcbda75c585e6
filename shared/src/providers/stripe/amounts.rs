//! Amounts as Stripe counts them: minor units as ISO 4217 has them, but for some currencies.
//!
//! Source of the exceptions: <https://docs.stripe.com/currencies#special-cases>,
//! <https://docs.stripe.com/currencies#zero-decimal>, <https://docs.stripe.com/currencies#three-decimal>

use engine::domain::basics::money::{Currency, MinorUnits, Money};

/// Where Stripe's unit is not ISO 4217's.
enum Unit {
    Same,
    /// ISO 4217 has no minor unit, Stripe counts hundredths.
    Hundredths,
    /// ISO 4217 has hundredths, Stripe counts whole units.
    Wholes,
    /// Thousandths, of which Stripe takes only whole tens.
    Tens,
}

fn unit(currency: Currency) -> Unit {
    match currency.to_string().as_str() {
        "ISK" | "UGX" => Unit::Hundredths,
        "MGA" => Unit::Wholes,
        "BHD" | "JOD" | "KWD" | "OMR" | "TND" => Unit::Tens,
        _ => Unit::Same,
    }
}

/// An amount as Stripe takes it; `None` for one that it cannot take.
pub(super) fn written(amount: Money) -> Option<i64> {
    let minor = amount.amount_minor.0;
    match unit(amount.currency) {
        Unit::Same => Some(minor),
        Unit::Hundredths => minor.checked_mul(100),
        Unit::Wholes => (minor % 100 == 0).then_some(minor / 100),
        Unit::Tens => (minor % 10 == 0).then_some(minor),
    }
}

/// An amount that Stripe states.
pub(super) fn read(amount: MinorUnits, currency: Currency) -> Money {
    let amount_minor = match unit(currency) {
        Unit::Same | Unit::Tens => amount,
        // What is no whole unit is no price of ours: it rounds down to an amount that fits no order.
        Unit::Hundredths => MinorUnits(amount.0.div_euclid(100)),
        Unit::Wholes => MinorUnits(amount.0.saturating_mul(100)),
    };
    Money { amount_minor, currency }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_counted_in_stripes_units() {
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
        for (currency, minor, stripe) in cases {
            let currency = Currency::new(currency).unwrap();
            let money = Money { amount_minor: MinorUnits(minor), currency };
            assert_eq!(written(money), stripe, "{money}");
            if let Some(stripe) = stripe {
                assert_eq!(read(MinorUnits(stripe), currency), money);
            }
        }
    }
}
