//! The look at a database file before it is used.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::super::Error;

/// What is named of a damaged file at most.
const DEFECTS_MAX: usize = 3;

/// Reads every page of the database and compares each with the structure around it. Without it a
/// damaged page is met by the first request that needs it, in the middle of a sale. A file that is
/// absent or empty has none.
///
/// # Errors
/// [`Error::Damaged`].
pub(super) fn pages(path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
        let defects = defects(path).unwrap_or_else(|error| vec![error.to_string()]);
        if !defects.is_empty() {
            return Err(Error::Damaged { path: path.to_owned(), defects: defects.join("; ") });
        }
    }
    Ok(())
}

fn defects(path: &Path) -> rusqlite::Result<Vec<String>> {
    // Read only: what is damaged is not written to, and the log beside it not folded into it.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let mut check = connection.prepare("PRAGMA quick_check")?;
    let found = check.query_map([], |row| row.get::<_, String>(0))?.take(DEFECTS_MAX);
    let found = found.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_pages_are_found_and_the_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dynamodb.sqlite");
        pages(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        pages(&path).unwrap();

        let connection = Connection::open(&path).unwrap();
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
            INSERT INTO item SELECT i, hex(zeroblob(400)) FROM n";
        let table =
            "PRAGMA journal_mode = WAL; CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT)";
        connection.execute_batch(&format!("{table}; {rows};")).unwrap();
        // While its log is not folded into it.
        pages(&path).unwrap();
        drop(connection);
        pages(&path).unwrap();

        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        assert!(middle > 8192, "it has several pages");
        bytes[middle..middle + 4096].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        let why = pages(&path).unwrap_err().to_string();
        let says = |part: &str| assert!(why.contains(part), "{why}");
        says(path.to_str().unwrap());
        says("--accept-lost-orders");

        bytes[..100].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(pages(&path), Err(Error::Damaged { .. })));
    }
}
