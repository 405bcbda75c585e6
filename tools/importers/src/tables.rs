//! Tables as text: CSV with a header, each row with the line it stands on.
//!
//! A row that cannot be read says nothing of the others. It is kept by its line, with what it belongs to: whoever needs
//! that thing is refused, all others get a note.

use csv::{ByteRecord, StringRecord};
use serde::de::DeserializeOwned;

use super::{Error, MAX_SEATS_PER_SALE, too_many, without_mark};

/// A row and the line it stands on.
pub(super) type Lined<T> = (u64, T);

/// Most lines of unreadable rows that a note lists.
const MAX_LISTED: usize = 10;

/// Separators of fields that tables have in place of commas, and how a message calls them.
const OTHER_SEPARATORS: [(char, &str); 3] = [(';', ";"), ('\t', "tabs"), ('|', "|")];

/// A table and a line of it, as reports name places.
pub(super) fn line_of(table: &str, line: u64) -> String {
    format!("{table} line {line}")
}

/// A row of a table with a header.
pub(super) trait Row: DeserializeOwned {
    /// The columns that the table must have.
    const COLUMNS: &'static [&'static str];
    /// The column that names the thing to which a row belongs: `trip_id`.
    const OF: &'static str;
}

/// Says of each kind of row what its table must have.
macro_rules! table_rows {
    ($($row:ident of $of:literal: $($column:literal)*;)*) => {$(
        impl $crate::tables::Row for $row {
            const COLUMNS: &'static [&'static str] = &[$($column),*];
            const OF: &'static str = $of;
        }
    )*};
}
pub(super) use table_rows;

/// A row that cannot be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// The table.
    pub(super) table: &'static str,
    /// Its line.
    line: u64,
    /// The reason, in words.
    why: String,
    /// The things to which it may belong: several if its fields are shifted, or an open quote has swallowed rows.
    of: Vec<String>,
}

impl Unreadable {
    /// A row of one thing.
    pub(super) fn of_one(table: &'static str, line: u64, why: String, of: String) -> Self {
        Self { table, line, why, of: vec![of] }
    }

    /// True if the row may belong to the thing of this name.
    pub(super) fn is_of(&self, name: &str) -> bool {
        self.of.iter().any(|of| of == name)
    }

    /// The error of a source in which this row is needed.
    pub(super) fn error(&self) -> Error {
        Error::Malformed { what: line_of(self.table, self.line), why: self.why.clone() }
    }
}

/// A note for each table with unreadable rows, none of which is needed.
pub(super) fn notes_of(unreadable: &[Unreadable]) -> Vec<String> {
    let mut tables: Vec<&str> = unreadable.iter().map(|row| row.table).collect();
    tables.dedup();
    let note = |table: &&str| {
        let rows: Vec<&Unreadable> = unreadable.iter().filter(|row| row.table == *table).collect();
        let first = rows.first()?;
        let listed: Vec<String> =
            rows[1..].iter().take(MAX_LISTED - 1).map(|row| row.line.to_string()).collect();
        let further = match listed.len() {
            0 => String::new(),
            1 => format!(", line {}", listed[0]),
            _ => format!(", lines {}", listed.join(", ")),
        };
        let more = match rows.len() - 1 - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let rows = if rows.len() == 1 {
            "1 row that is not needed".to_owned()
        } else {
            format!("{} rows that are not needed", rows.len())
        };
        let Unreadable { line, why, .. } = first;
        Some(format!("{table}: {rows} cannot be read: line {line} ({why}){further}{more}"))
    };
    tables.iter().filter_map(note).collect()
}

/// Reads the rows of a table that `keep` wants. Padding is cut off, a byte order mark and any mixture
/// of line ends are accepted, fields that are missing at a row's end are blank, and fields stay text unless the row
/// says otherwise. A row that cannot be read is added to `unreadable`. A text without any line is a table without rows.
///
/// # Errors
/// [`Error::NoColumn`] without a column that the rows must have; [`Error::Malformed`] for a header that is no UTF-8;
/// [`Error::TooLarge`] if more than a million rows are kept, or cannot be read.
pub(super) fn table<T: Row>(
    name: &'static str,
    bytes: &[u8],
    keep: impl FnMut(&T) -> bool,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<Lined<T>>, Error> {
    table_where(name, bytes, (T::OF, |_: &str| true), keep, unreadable)
}

/// Reads a table as [`table`] does, and of it only rows that have one of some texts in a column: much faster, if that
/// is in few.
pub(super) fn table_where<T: Row>(
    name: &'static str,
    bytes: &[u8],
    (column, is_wanted): (&str, impl Fn(&str) -> bool),
    mut keep: impl FnMut(&T) -> bool,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<Lined<T>>, Error> {
    let bytes = without_mark(bytes);
    let mut lines = Lines { bytes, counted: 0, line: 1 };
    let malformed = |line: Option<u64>, error: csv::Error| Error::Malformed {
        what: line.map_or_else(|| name.to_owned(), |line| line_of(name, line)),
        why: why(&error),
    };
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let headers = reader.headers().map_err(|error| malformed(Some(1), error))?.clone();
    if !headers.is_empty() {
        check_columns::<T>(name, &headers)?;
    }
    let of = headers.iter().position(|header| header == T::OF);
    let column = headers.iter().position(|header| header == column);
    let is_wanted = |record: &ByteRecord| {
        let text = column.and_then(|column| record.get(column));
        is_wanted(text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default())
    };
    let (mut rows, mut unread) = (Vec::new(), 0);
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| malformed(None, error))? {
        if !is_wanted(&record) {
            continue;
        }
        let line = record.position().map_or(0, |position| lines.line_at(position.byte()));
        let row = fitted(&mut record, headers.len()).and_then(|()| read(&mut record, &headers));
        let row = match row {
            Ok(row) => row,
            Err(why) => {
                unread += 1;
                if unread > MAX_SEATS_PER_SALE {
                    return Err(too_many(name, "unreadable rows"));
                }
                let of = of.map(|of| owners(&record, of, headers.len())).unwrap_or_default();
                unreadable.push(Unreadable { table: name, line, why, of });
                continue;
            }
        };
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

/// Checks that a header has the columns that rows must have.
fn check_columns<T: Row>(name: &'static str, headers: &StringRecord) -> Result<(), Error> {
    let is_there = |column: &&&str| headers.iter().any(|header| header == **column);
    let Some(column) = T::COLUMNS.iter().find(|column| !is_there(column)) else { return Ok(()) };
    let header = headers.iter().collect::<Vec<_>>().join(",");
    let separates = |(separator, _): &&(char, &str)| {
        let mut names = header.split(*separator).map(|name| name.trim().trim_matches('"'));
        names.any(|name| name == *column)
    };
    let separator = OTHER_SEPARATORS.iter().find(separates).map(|(_, name)| *name);
    Err(Error::NoColumn { table: name, column, separator })
}

/// Gives a record as many fields as the header has, if it only lacks blanks or has them in addition.
fn fitted(record: &mut ByteRecord, expected: usize) -> Result<(), String> {
    if record.iter().all(<[u8]>::is_empty) {
        return Err("it is blank".to_owned());
    }
    let len = record.len();
    let has_more = record.iter().skip(expected).any(|field| !field.is_empty());
    let is_short = len < expected;
    if has_more || (is_short && record.iter().any(has_lines)) {
        return Err(format!("it has {len} fields, the header {expected}"));
    }
    if record.iter().any(|field| has_rows(field, expected)) {
        return Err("a quote in it is not closed".to_owned());
    }
    for _ in len..expected {
        record.push_field(b"");
    }
    record.truncate(expected);
    Ok(())
}

/// True if a field has more than one line.
fn has_lines(field: &[u8]) -> bool {
    field.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
}

/// True if lines of a field look like rows: an open quote has swallowed them.
fn has_rows(field: &[u8], expected: usize) -> bool {
    let fields = |line: &[u8]| line.split(|byte| *byte == b',').count();
    let mut swallowed = field.split(|byte| matches!(byte, b'\r' | b'\n')).skip(1);
    expected > 1 && swallowed.any(|line| fields(line) >= expected)
}

fn read<T: Row>(record: &mut ByteRecord, headers: &StringRecord) -> Result<T, String> {
    match StringRecord::from_byte_record(std::mem::take(record)) {
        Ok(text) => {
            let row = text.deserialize(Some(headers)).map_err(|error| why(&error));
            *record = text.into_byte_record();
            row
        }
        Err(error) => {
            *record = error.into_byte_record();
            Err("it is not UTF-8".to_owned())
        }
    }
}

/// The things to which an unreadable row may belong. Fields in excess may have shifted the one that names it, and after
/// a quote that nobody closed each line of a field was a row.
fn owners(record: &ByteRecord, of: usize, expected: usize) -> Vec<String> {
    let text: Vec<_> = record.iter().map(String::from_utf8_lossy).collect();
    let text = text.join(",");
    // Nothing stands before the first column that could shift it.
    let excess = if of == 0 { 0 } else { record.len().saturating_sub(expected) };
    let first = text.split(',').skip(of).take(excess + 1);
    let swallowed = text.split(['\r', '\n']).skip(1).filter_map(|line| line.split(',').nth(of));
    let names = first.chain(swallowed).map(|name| name.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The defect of a record, without the position: csv counts lines from the wrong end of CRLF.
fn why(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8".to_owned(),
        csv::ErrorKind::UnequalLengths { .. }
        | csv::ErrorKind::Io(_)
        | csv::ErrorKind::Seek
        | csv::ErrorKind::Serialize(_)
        | _ => error.to_string(),
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
