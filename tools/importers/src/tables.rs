//! Tables as text: CSV with a header, each row with the line it stands on.

use serde::de::DeserializeOwned;

use super::{Error, MAX_SEATS_PER_SALE, too_many, without_mark};

/// A row and the line it stands on.
pub(super) type Lined<T> = (u64, T);

/// A table and a line of it, as reports name places.
pub(super) fn line_of(table: &str, line: u64) -> String {
    format!("{table} line {line}")
}

/// Reads the rows of a table that `keep` wants. Padding is cut off, a byte order mark and any mixture
/// of line ends are accepted, and fields stay text unless the row says otherwise.
///
/// # Errors
/// [`Error::Malformed`] with table and line; [`Error::TooLarge`] if more than a million rows are kept.
pub(super) fn table<T: DeserializeOwned>(
    name: &str,
    bytes: &[u8],
    keep: impl Fn(&T) -> bool,
) -> Result<Vec<Lined<T>>, Error> {
    let bytes = without_mark(bytes);
    let mut lines = Lines { bytes, counted: 0, line: 1 };
    let malformed = |line: Option<u64>, error: csv::Error| Error::Malformed {
        what: line.map_or_else(|| name.to_owned(), |line| line_of(name, line)),
        why: why(&error),
    };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let headers = reader.headers().map_err(|error| malformed(Some(1), error))?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map(|position| lines.line_at(position.byte()));
            malformed(line, error)
        })?;
        let line = record.position().map_or(0, |position| lines.line_at(position.byte()));
        let row =
            record.deserialize(Some(&headers)).map_err(|error| malformed(Some(line), error))?;
        if !keep(&row) {
            continue;
        }
        if rows.len() == MAX_SEATS_PER_SALE {
            return Err(too_many(name, "rows"));
        }
        rows.push((line, row));
    }
    Ok(rows)
}

/// The defect of a record, without the position: csv counts lines from the wrong end of CRLF.
fn why(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("it has {len} fields, the header {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8".to_owned(),
        csv::ErrorKind::Io(_) | csv::ErrorKind::Seek | csv::ErrorKind::Serialize(_) | _ => {
            error.to_string()
        }
    }
}

/// Counts lines up to bytes of a text, each byte once.
struct Lines<'text> {
    bytes: &'text [u8],
    counted: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line on which the record stands that begins at a byte, or after the line ends there.
    fn line_at(&mut self, byte: u64) -> u64 {
        let is_end = |index: &usize| matches!(self.bytes[*index], b'\r' | b'\n');
        let byte = usize::try_from(byte).unwrap_or(usize::MAX).min(self.bytes.len());
        let start = (byte..self.bytes.len()).find(|index| !is_end(index)).unwrap_or(byte);
        let passed = self.bytes.get(self.counted..start).unwrap_or_default();
        self.line += passed.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        self.counted = self.counted.max(start);
        self.line
    }
}
