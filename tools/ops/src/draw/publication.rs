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

/// The file of the orders: an [`OrdersLine`] a line.
pub const ORDERS: &str = "orders.jsonl";

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

/// A line of the orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrdersLine {
    /// The first line.
    Counted(Counted),
    /// Each other line.
    Order(OrderLine),
}

/// When the orders were read, and what none of them holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// When they were read, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Seat-legs that no order holds.
    pub left: u64,
}

/// An order that holds seats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderLine {
    /// The group of the member; none if it is nobody's who was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
    /// The index of the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The number of the record by which the place was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// What the operator holds the seats for, if they are the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorsSeats>,
    /// Seat-legs that it holds.
    pub seat_legs: u64,
}

/// What an operator holds seats for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorsSeats {
    /// Sold at the operator's desk.
    Desk,
    /// Kept for the house.
    House,
}

/// The orders that hold seats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// The first line.
    pub counted: Counted,
    /// The others.
    pub orders: Vec<OrderLine>,
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
    /// The orders; none of a room that was published before.
    pub orders: Option<Orders>,
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
    /// The orders do not begin with what is left, or say it twice.
    #[error("{ORDERS}: its first line, and no other, says when orders were read and what is left")]
    Counted,
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
    /// Writes the files into a folder, which is made if it is not there.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(|error| Error::File { file: LOG, error })?;
        write(folder, LOG, &self.log)?;
        write(folder, LEAVES, &json(&self.chunks))?;
        write(folder, ADMISSIONS, &json(&self.admissions))?;
        let Some(Orders { counted, orders }) = &self.orders else { return Ok(()) };
        let lines = [json(&[counted]), json(orders)].concat();
        write(folder, ORDERS, &lines)
    }

    /// Reads the files of a folder; there need be none of orders.
    ///
    /// # Errors
    /// A file is not there, or a line of leaves or admissions is not what it should be. The records of the log
    /// are read by the check.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            log: lines(folder, LOG)?,
            chunks: values(folder, LEAVES)?,
            admissions: values(folder, ADMISSIONS)?,
            orders: Self::orders(folder)?,
        })
    }

    fn orders(folder: &Path) -> Result<Option<Orders>, Error> {
        if !folder.join(ORDERS).exists() {
            return Ok(None);
        }
        let mut lines = values(folder, ORDERS)?.into_iter();
        let Some(OrdersLine::Counted(counted)) = lines.next() else { return Err(Error::Counted) };
        let order = |line| match line {
            OrdersLine::Order(order) => Ok(order),
            OrdersLine::Counted(_) => Err(Error::Counted),
        };
        let orders = lines.map(order).collect::<Result<_, _>>()?;
        Ok(Some(Orders { counted, orders }))
    }
}
