//! Amounts as Alipay writes them: yuan with a point and two digits behind it.

use engine::domain::basics::money::MinorUnits;

/// The most that Alipay takes at once, in fen: 100,000,000 yuan.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
pub(super) const MAX_FEN: MinorUnits = MinorUnits(10_000_000_000);
/// Most digits before the point: more would not be an amount of anybody's.
const MAX_YUAN_DIGITS: usize = 15;

/// Fen as yuan, such as `88.80`; `None` for what Alipay does not take.
pub(super) fn to_yuan(fen: MinorUnits) -> Option<String> {
    let is_taken = fen > MinorUnits::ZERO && fen <= MAX_FEN;
    is_taken.then(|| format!("{}.{:02}", fen.0 / 100, fen.0 % 100))
}

/// Yuan as fen: digits, and a point with one or two more at most. `None` for anything else, as a sign, a
/// blank, an exponent or a third digit.
pub(super) fn to_fen(yuan: &str) -> Option<MinorUnits> {
    let (whole, part) = yuan.split_once('.').unwrap_or((yuan, "0"));
    let is_digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_digits(whole, MAX_YUAN_DIGITS) || !is_digits(part, 2) {
        return None;
    }
    let scale = if part.len() == 1 { 10 } else { 1 };
    let (whole, part): (i64, i64) = (whole.parse().ok()?, part.parse().ok()?);
    Some(MinorUnits(whole * 100 + part * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fen_are_written_with_a_point_and_two_digits() {
        for (fen, yuan) in
            [(1, "0.01"), (10, "0.10"), (8_880, "88.80"), (10_000_000_000, "100000000.00")]
        {
            assert_eq!(to_yuan(MinorUnits(fen)).as_deref(), Some(yuan));
            assert_eq!(to_fen(yuan), Some(MinorUnits(fen)));
        }
        for fen in [0, -1, 10_000_000_001, i64::MAX, i64::MIN] {
            assert_eq!(to_yuan(MinorUnits(fen)), None, "{fen}");
        }
    }

    #[test]
    fn yuan_are_read_however_many_digits_they_have() {
        for (yuan, fen) in [("20", 2_000), ("20.5", 2_050), ("0", 0), ("0.00", 0), ("007.1", 710)] {
            assert_eq!(to_fen(yuan), Some(MinorUnits(fen)), "{yuan}");
        }
        for wrong in [
            "",
            ".",
            "1.",
            ".5",
            "1.234",
            "-1",
            "+1",
            "1e3",
            "1,000.00",
            " 1",
            "1.0.0",
            "１",
            "1234567890123456",
        ] {
            assert_eq!(to_fen(wrong), None, "{wrong}");
        }
    }
}
