//! Reads a ledger: JSON lines in which a load generator records what it was answered.
//!
//! `{"event": "acknowledged", "order": "…"}` is an order that the engine said exists;
//! `{"event": "captured", "order": "…", "provider": "…", "payment": "…", "amount_minor": 100,
//! "currency": "EUR"}` is money that the provider took. A line without `event` is a capture.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::PaymentKey;
use serde::Deserialize;

use super::AuditError;
use super::facts::{CaptureFact, LedgerFacts};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Acknowledged,
    #[default]
    Captured,
}

#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default)]
    event: Event,
    order: OrderNumber,
    #[serde(flatten)]
    capture: Option<Capture>,
}

#[derive(Debug, Deserialize)]
struct Capture {
    provider: ProviderId,
    payment: PaymentId,
    amount_minor: MinorUnits,
    currency: Currency,
}

impl LedgerFacts {
    /// Reads a ledger from a file.
    ///
    /// # Errors
    /// [`AuditError::NoLedger`], or [`AuditError::Ledger`] with the number of the first line that cannot be read.
    pub fn read(path: &Path) -> Result<Self, AuditError> {
        let refused =
            |line: usize, what: String| AuditError::Ledger { path: path.to_owned(), line, what };
        let file = std::fs::File::open(path)
            .map_err(|source| AuditError::NoLedger { path: path.to_owned(), source })?;
        let mut ledger = Self::default();
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(|error| refused(index + 1, error.to_string()))?;
            ledger.add(&line).map_err(|what| refused(index + 1, what))?;
        }
        Ok(ledger)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match (line.event, line.capture) {
            (Event::Acknowledged, _) => self.acknowledged.push(line.order),
            (Event::Captured, Some(Capture { provider, payment, amount_minor, currency })) => {
                self.captured.push(CaptureFact {
                    key: PaymentKey { provider, payment },
                    order: line.order,
                    amount: Money { amount_minor, currency },
                });
            }
            (Event::Captured, None) => return Err("is no capture of a payment".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_is_not_there_is_named() {
        let gone = std::path::Path::new("no-such-ledger");
        let error = LedgerFacts::read(gone).unwrap_err().to_string();
        assert!(error.starts_with("cannot read no-such-ledger: "), "{error}");
    }

    #[test]
    fn each_kind_of_line_is_read_and_any_other_refused() {
        let mut ledger = LedgerFacts::default();
        let capture = r#""order": "7", "provider": "stripe", "payment": "pi_7", "amount_minor": 5, "currency": "eur""#;
        ledger.add(r#"{"event": "acknowledged", "order": "7"}"#).unwrap();
        ledger.add(&format!(r#"{{"event": "captured", {capture}}}"#)).unwrap();
        ledger.add(&format!("{{{capture}}}")).unwrap();
        ledger.add("").unwrap();
        assert_eq!((ledger.acknowledged.len(), ledger.captured.len()), (1, 2));
        assert_eq!(ledger.captured[0], ledger.captured[1]);
        for bad in ["7", "{}", r#"{"order": "7"}"#, r#"{"event": "lost", "order": "7"}"#] {
            assert!(ledger.add(bad).is_err(), "{bad}");
        }
    }
}
