//! A table with a heading, of which columns are found by their names.

use super::ReportError;
use engine::domain::payment::bill::{Line, Report};

/// A row: what its columns say, without blanks around it.
pub(super) struct Row<'a> {
    names: &'a [String],
    fields: &'a csv::StringRecord,
    /// Its line in the file, from 1.
    pub(super) number: u64,
}

impl Row<'_> {
    /// What a column says; nothing if there is no such column.
    pub(super) fn get(&self, name: &str) -> &str {
        let place = self.names.iter().position(|known| known == name);
        place.and_then(|place| self.fields.get(place)).map_or("", clean)
    }
}

/// Without blanks, and without the mark that keeps spreadsheets from making a number of it.
fn clean(field: &str) -> &str {
    field.trim().trim_start_matches('`').trim()
}

/// Reads the rows of a table whose first row is its heading. `offset` lines of the file come before it. What one row
/// says is for `each` to read.
pub(super) fn rows(
    text: &str,
    offset: u64,
    required: &[&'static str],
    mut each: impl FnMut(&Row<'_>) -> Result<Line, String>,
) -> Result<Report, ReportError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let heading = reader.headers().map_err(|error| ReportError::Unreadable(error.to_string()))?;
    let names: Vec<String> =
        heading.iter().map(|name| clean(name.trim_start_matches('\u{feff}')).to_owned()).collect();
    if let Some(missing) = required.iter().find(|name| !names.iter().any(|known| known == *name)) {
        return Err(ReportError::Column(missing));
    }
    let mut report = Report::default();
    let mut fields = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut fields) {
            Ok(false) => return Ok(report),
            Ok(true) => {}
            Err(error) => return Err(ReportError::Unreadable(error.to_string())),
        }
        let number = offset + fields.position().map_or(0, csv::Position::line);
        let row = Row { names: &names, fields: &fields, number };
        match each(&row) {
            Ok(line) => report.lines.push(line),
            Err(why) => report.unreadable.push((number, why)),
        }
    }
}
