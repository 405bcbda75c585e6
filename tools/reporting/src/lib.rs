//! How reports are written: as JSON, as tables, and their numbers.

use comfy_table::{Row, Table, presets};
use serde::Serialize;

/// A report as one JSON document, for people to read too.
#[must_use]
pub fn json(report: &impl Serialize) -> String {
    // Text keys, numbers and lists: nothing that JSON cannot say.
    serde_json::to_string_pretty(report)
        .unwrap_or_else(|error| unreachable!("a report is always JSON: {error}"))
}

/// A table with these columns and no rows yet.
#[must_use]
pub fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(header);
    table
}

/// A number with a comma between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The length of something as a number of a report.
#[must_use]
pub fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, expected) in cases {
            assert_eq!(grouped(number), expected);
        }
    }
}
