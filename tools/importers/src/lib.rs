//! Sale files from what venues and railways already have.
//!
//! Every importer works by the same rules (`docs/importers.md`): it picks one unique key for a seat,
//! it names every defect of its source with each place that is part of it, and it says beforehand
//! what resolving the defect would do. Nothing is merged or dropped in silence: the seats that were
//! read are the seats that were placed plus the seats that the report lists as left out.

pub mod gtfs;
pub mod pictures;
pub mod pretix;
pub mod report;
mod slug;
pub mod stadium;
mod tables;
mod terms;
pub mod train12306;
mod written;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use engine::domain::sale::{Defect, Sale, SaleFile};

pub use report::{Finding, Outcome, Place, Remedy, Report, SourceDefect, TierCount};
pub use terms::Terms;
pub use written::written;

/// Most bytes of one source file. A plan of a million seats has about 150 bytes a seat.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Most seats of one source: as many as a sale may have.
pub const MAX_SEATS_PER_SALE: usize = engine::domain::sale::MAX_SEATS_PER_SALE;

/// Why a source cannot be read at all. Defects inside a readable source are findings instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file or a list is longer than an importer accepts.
    #[error("{what} has more than {most} {unit}")]
    TooLarge {
        /// The file or list.
        what: String,
        /// The limit that it exceeds.
        most: u64,
        /// Unit of the limit: `bytes`, `rows`, `seats`.
        unit: &'static str,
    },
    /// The text is not what the format says.
    #[error("{what} is malformed: {why}")]
    Malformed {
        /// The file, and the line where it is known.
        what: String,
        why: String,
    },
    /// A table has not a column that it must have.
    #[error("{table} has no column {column}{}", separator_note(*separator))]
    NoColumn {
        /// Its file name.
        table: &'static str,
        /// The missing column.
        column: &'static str,
        /// What its fields seem to be separated by, if not by commas: `;`, `tabs`.
        separator: Option<&'static str>,
    },
    /// The flags leave something open or name something that is not there.
    #[error("{0}")]
    Flags(String),
    /// The sale that came out breaks rules of sale files.
    #[error("the sale breaks {} rules of sale files; the first: {first}", rules.len())]
    Rules {
        /// The first of them, for the message.
        first: Defect,
        rules: Vec<Defect>,
    },
}

fn separator_note(separator: Option<&str>) -> String {
    separator.map(|by| format!("; it seems to be separated by {by}")).unwrap_or_default()
}

/// A source as an importer has read it, before anyone has agreed to the remedies.
#[derive(Debug)]
pub struct Import {
    file: Option<SaleFile>,
    report: Report,
}

impl Import {
    /// Checks the resulting file by the rules of sale files.
    ///
    /// `file` is absent if a finding has no remedy.
    ///
    /// # Errors
    /// [`Error::Rules`] if the file breaks any; the terms come from flags, so that it may.
    ///
    /// # Panics
    /// If the report does not account for every seat that was read: then an importer has lost some.
    fn new(file: Option<SaleFile>, report: Report) -> Result<Self, Error> {
        assert_eq!(
            report.seats_read,
            report.seats_placed + report.seats_left_out,
            "{}: every seat that was read is placed or left out",
            report.source
        );
        if let Some(file) = &file
            && let Err(rules) = Sale::new(file.clone())
            && let Some(first) = rules.first().cloned()
        {
            return Err(Error::Rules { first, rules });
        }
        Ok(Self { file, report })
    }

    /// The findings, and the account of the seats.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the file: freely if the source has no defect, and only by consent (`resolve`) if the
    /// remedies that the report lists were applied to make it.
    ///
    /// # Errors
    /// The report, if the source has defects and there is no consent or no remedy.
    pub fn accept(self, resolve: bool) -> Result<(SaleFile, Report), Box<Report>> {
        let Self { file, mut report } = self;
        let clean = report.findings.is_empty();
        match file {
            Some(file) if clean || resolve => {
                report.outcome = if clean { Outcome::Clean } else { Outcome::Resolved };
                Ok((file, report))
            }
            Some(_) | None => {
                report.outcome = Outcome::Refused;
                Err(Box::new(report))
            }
        }
    }
}

/// Reads a whole file of at most [`MAX_BYTES`], without the byte order mark that some tools write.
///
/// # Errors
/// [`Error::Unreadable`] and [`Error::TooLarge`].
pub fn read_bounded(path: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_BYTES) {
        let what = path.display().to_string();
        return Err(Error::TooLarge { what, most: MAX_BYTES, unit: "bytes" });
    }
    Ok(bytes)
}

/// The error of a source with more seats, or rows, than a sale may have seats.
fn too_many(what: &str, unit: &'static str) -> Error {
    let most = u64::try_from(MAX_SEATS_PER_SALE).unwrap_or(u64::MAX);
    Error::TooLarge { what: what.to_owned(), most, unit }
}

/// The text after its byte order mark, if it has one.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}
