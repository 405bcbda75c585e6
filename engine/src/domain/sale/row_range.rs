//! Ranges of rows as an operator writes them: from one label to another.

use crate::domain::basics::bitmap;

/// The rows from one label to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// No range: the row itself.
    One,
    /// Numbers, written with at least `digits` digits.
    Numbers { first: u32, last: u32, digits: usize },
    /// Letters, counted A to Z, AA, AB and so on; A is 1.
    Letters { first: u32, last: u32 },
}

impl Range {
    pub(super) fn between(first: &str, last: &str) -> Option<Self> {
        if let (Some(first), Some(last)) = (letters(first), letters(last)) {
            return Some(Self::Letters { first, last });
        }
        let number = |text: &str| {
            let is_number =
                (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        // `01` to `18` keeps its zeros; `1` to `18` has none.
        let padded = |text: &str| text.len() > 1 && text.starts_with('0');
        let digits = if padded(first) || padded(last) {
            (first.len() == last.len()).then_some(first.len())?
        } else {
            1
        };
        Some(Self::Numbers { first: number(first)?, last: number(last)?, digits })
    }

    pub(super) fn rows(self) -> usize {
        match self {
            Self::One => 1,
            Self::Numbers { first, last, .. } | Self::Letters { first, last } => {
                bitmap::index(first.abs_diff(last)) + 1
            }
        }
    }

    /// The label of a row, counted from 0; up or down.
    pub(super) fn label(self, own: &str, at: usize) -> String {
        let step = |first: u32, last: u32| {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            if first <= last { first.saturating_add(at) } else { first.saturating_sub(at) }
        };
        match self {
            Self::One => own.to_owned(),
            Self::Numbers { first, last, digits } => {
                format!("{:0digits$}", step(first, last))
            }
            Self::Letters { first, last } => letters_of(step(first, last)),
        }
    }
}

/// One or two capital letters as a number: A is 1, Z 26, AA 27.
pub(super) fn letters(text: &str) -> Option<u32> {
    let is_letters = matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_uppercase());
    is_letters.then(|| text.bytes().fold(0, |sum, b| sum * 26 + u32::from(b - b'A') + 1))
}

pub(super) fn letters_of(number: u32) -> String {
    let letter = |number: u32| char::from_u32(u32::from(b'A') + number % 26).unwrap_or('?');
    match number - 1 {
        one @ 0..26 => letter(one).to_string(),
        two => [letter(two / 26 - 1), letter(two)].iter().collect(),
    }
}
