//! What is published of a room, as files of JSON lines (docs/draw.md).

use std::path::Path;
use std::{fs, io};

pub use engine::domain::admission::room::leaves::Chunk;
use engine::domain::basics::ids::GroupId;
use serde::{Deserialize, Serialize};

/// The file of the log: a record a line.
pub const LOG: &str = "log.jsonl";
/// The file of the leaves: a [`Chunk`] a line.
pub const LEAVES: &str = "leaves.jsonl";
/// The file of the admissions: an [`Admission`] a line.
pub const ADMISSIONS: &str = "admissions.jsonl";

/// The first admission of a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// The group.
    pub group: GroupId,
    /// The index of who was admitted.
    pub index: u32,
    /// The place that it had.
    pub place: u32,
    /// The number of the record by which the place was due.
    pub turn: u64,
}

/// Everything that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The lines of the log.
    pub log: Vec<String>,
    /// The leaves.
    pub chunks: Vec<Chunk>,
    /// The admissions.
    pub admissions: Vec<Admission>,
}

/// Why a publication cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    File {
        /// Its name.
        file: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A line is not what it should be.
    #[error("{file}, line {line}: {error}")]
    Line {
        /// The name of the file.
        file: &'static str,
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

/// The lines of a file.
fn lines(folder: &Path, file: &'static str) -> Result<Vec<String>, Error> {
    let text =
        fs::read_to_string(folder.join(file)).map_err(|error| Error::File { file, error })?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The values of a file.
fn values<T: for<'de> Deserialize<'de>>(
    folder: &Path,
    file: &'static str,
) -> Result<Vec<T>, Error> {
    let parse = |(index, line): (usize, String)| {
        serde_json::from_str(&line).map_err(|error| Error::Line { file, line: index + 1, error })
    };
    lines(folder, file)?.into_iter().enumerate().map(parse).collect()
}

/// Writes values as lines of a file.
fn write(folder: &Path, file: &'static str, lines: &[String]) -> Result<(), Error> {
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    fs::write(folder.join(file), text).map_err(|error| Error::File { file, error })
}

/// The lines of JSON of values.
fn json(values: &[impl Serialize]) -> Vec<String> {
    // Texts, whole numbers and lists: nothing that JSON cannot say.
    let line = |value| {
        serde_json::to_string(value)
            .unwrap_or_else(|error| unreachable!("it is always JSON: {error}"))
    };
    values.iter().map(line).collect()
}

impl Publication {
    /// Writes the three files into a folder, which is made if it is not there.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(|error| Error::File { file: LOG, error })?;
        write(folder, LOG, &self.log)?;
        write(folder, LEAVES, &json(&self.chunks))?;
        write(folder, ADMISSIONS, &json(&self.admissions))
    }

    /// Reads the three files of a folder.
    ///
    /// # Errors
    /// A file is not there, or a line of leaves or admissions is not what it should be. The records of the log
    /// are read by the check.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            log: lines(folder, LOG)?,
            chunks: values(folder, LEAVES)?,
            admissions: values(folder, ADMISSIONS)?,
        })
    }
}
