//! What the crowd was promised: every order that was acknowledged to it and every payment that its
//! provider captured. The audit holds the stores to it.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::Mutex;

use engine::domain::basics::money::MinorUnits;
use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    /// The engine answered that the order exists.
    Acknowledged { order: String },
    /// The provider captured money for the order.
    Captured {
        order: String,
        provider: String,
        /// The provider's name for the payment.
        payment: String,
        amount_minor: MinorUnits,
        /// ISO 4217 code of its currency.
        currency: String,
    },
}

/// The ledger, in memory and, if one was named, in a file of JSON lines.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: Mutex<(Vec<Entry>, Option<BufWriter<File>>)>,
}

impl Ledger {
    /// A ledger that also appends to a file.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    pub fn in_file(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { entries: Mutex::new((Vec::new(), Some(BufWriter::new(file)))) })
    }

    /// Writes one line.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, entry: Entry) -> io::Result<()> {
        let mut guard = self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (entries, file) = &mut *guard;
        if let Some(file) = file {
            serde_json::to_writer(&mut *file, &entry)?;
            file.write_all(b"\n")?;
            file.flush()?;
        }
        entries.push(entry);
        Ok(())
    }

    /// Every line so far.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0.clone()
    }
}
