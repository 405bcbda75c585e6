//! Amounts as reports write them: in major units, with a point.

use engine::domain::basics::money::{Currency, MinorUnits};

/// The digits behind the point that one minor unit of a currency is (ISO 4217).
fn minor_digits(currency: Currency) -> Option<usize> {
    iso_currency::Currency::from_code(&currency.to_string())?;
    Some(currency.exponent().into())
}

/// Reads an amount of a currency: digits, perhaps with a sign and a point. More digits than the currency has are
/// noughts.
pub(super) fn amount(text: &str, currency: Currency) -> Result<MinorUnits, String> {
    let wrong = || format!("{text:?} is no amount of {currency}");
    let digits = minor_digits(currency).ok_or_else(|| format!("{currency} is no currency"))?;
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return Err(wrong());
    }
    let (minor, more) = part.split_at(part.len().min(digits));
    if more.bytes().any(|byte| byte != b'0') {
        return Err(wrong());
    }
    let all = format!("{whole}{minor:0<digits$}");
    let all: i64 = all.parse().map_err(|_| wrong())?;
    Ok(MinorUnits(sign * all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, currency: &str) -> Option<i64> {
        amount(text, Currency::new(currency).unwrap()).ok().map(|amount| amount.0)
    }

    #[test]
    fn the_exponents_of_currencies_are_those_of_a_library() {
        let letters = || 'A'..='Z';
        let mut known = 0;
        for code in
            letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| [a, b, c])))
        {
            let code: String = code.iter().collect();
            let Some(theirs) = iso_currency::Currency::from_code(&code) else { continue };
            // Metals, bonds and tests have none.
            if let Some(exponent) = theirs.exponent() {
                known += 1;
                assert_eq!(u16::from(Currency::new(&code).unwrap().exponent()), exponent, "{code}");
            }
        }
        assert!(known > 150, "{known}");
    }

    #[test]
    fn an_amount_has_the_digits_of_its_currency() {
        for (text, currency, minor) in [
            ("12.34", "EUR", 1234),
            ("12.3", "CNY", 1230),
            ("-0.60", "CNY", -60),
            ("0.60000", "CNY", 60),
            ("500", "JPY", 500),
            ("500.00", "JPY", 500),
            ("1.234", "KWD", 1234),
            ("+7", "EUR", 700),
        ] {
            assert_eq!(read(text, currency), Some(minor), "{text} {currency}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for (text, currency) in [
            ("", "EUR"),
            ("-", "EUR"),
            (".5", "EUR"),
            ("1.234", "EUR"),
            ("1.5", "JPY"),
            ("1,00", "EUR"),
            ("1e3", "EUR"),
            ("--1", "EUR"),
            ("１", "EUR"),
            ("99999999999999999999", "EUR"),
            ("1.00", "QQQ"),
        ] {
            assert_eq!(read(text, currency), None, "{text} {currency}");
        }
    }
}
