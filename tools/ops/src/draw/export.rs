//! The export of a waiting room: what `onsale verify-draw` wants, from DynamoDB.
//!
//! The log and the leaves are written as they are read, a page and a chunk at a time. Admissions are kept until the
//! last is read, 24 bytes each: written in the order of their turns, they say nothing of whose they are, as they would
//! in the order in which memberships are kept, by buyer.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use engine::domain::admission::room::join::Membership;
use engine::domain::admission::room::leaves::Chunk;
use engine::domain::admission::room::visit::Admitted;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::flows::room::published;
use engine::ports::{RoomPorts, Rooms, StoreError};
use serde::Serialize;

use super::publication::{self, ADMISSIONS, Admission, LEAVES, LOG};

/// Records that are read at once.
const RECORDS: u16 = 200;

/// Why a room was not exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sale has no waiting room.
    #[error("the sale has no waiting room")]
    NoRoom,
    /// DynamoDB failed, or has what no flow writes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] publication::Error),
}

/// What was exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Records of the log.
    pub records: u64,
    /// Chunks of leaves.
    pub chunks: u64,
    /// Admissions.
    pub admissions: u64,
}

/// A file of lines that is being written.
struct Lines {
    name: &'static str,
    file: BufWriter<File>,
    count: u64,
}

impl Lines {
    fn create(folder: &Path, name: &'static str) -> Result<Self, publication::Error> {
        let file = File::create(folder.join(name));
        let file = file.map_err(|error| publication::Error::File { file: name, error })?;
        Ok(Self { name, file: BufWriter::new(file), count: 0 })
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> publication::Error + use<> {
        let file = self.name;
        move |error| publication::Error::File { file, error }
    }

    fn write(&mut self, line: &str) -> Result<(), publication::Error> {
        self.count += 1;
        let failed = self.failed();
        writeln!(self.file, "{line}").map_err(failed)
    }

    /// The number of lines, once all of them are in the file.
    fn finish(mut self) -> Result<u64, publication::Error> {
        let failed = self.failed();
        self.file.flush().map_err(failed)?;
        Ok(self.count)
    }
}

/// Writes what is published of a sale's room into a folder, which is made if it is not there. It may be done at any
/// time: what happens meanwhile is left out, or is in the log without its admission.
///
/// # Errors
/// See [`Error`].
pub async fn export(
    ports: &impl RoomPorts,
    sale: &SaleId,
    folder: &Path,
) -> Result<Exported, Error> {
    let room = published(ports, sale).await?.ok_or(Error::NoRoom)?;
    let groups: Vec<GroupId> = room.settings.groups.into_iter().map(|of| of.group).collect();
    fs::create_dir_all(folder).map_err(|error| publication::Error::File { file: LOG, error })?;
    // The log comes last: it has the turn of every admission that was read.
    let chunks = write_leaves(ports, sale, &groups, folder).await?;
    let admissions = write_admissions(ports, sale, &groups, folder).await?;
    let records = write_log(ports, sale, folder).await?;
    Ok(Exported { records, chunks, admissions })
}

async fn write_leaves(
    ports: &impl RoomPorts,
    sale: &SaleId,
    groups: &[GroupId],
    folder: &Path,
) -> Result<u64, Error> {
    let mut lines = Lines::create(folder, LEAVES)?;
    for group in groups {
        let Some(tree) = ports.rooms().tree(sale, group).await? else { continue };
        for (number, at) in (0..).zip(0..tree.chunk_roots.len()) {
            let lacking = || StoreError::Contract(format!("chunk {at} of {group} is not there"));
            let leaves = ports.rooms().chunk(sale, group, number).await?.ok_or_else(lacking)?;
            let chunk = Chunk::new(group, at, leaves, &tree.chunk_roots).ok_or_else(lacking)?;
            lines.write(&json(&chunk))?;
        }
    }
    Ok(lines.finish()?)
}

async fn write_admissions(
    ports: &impl RoomPorts,
    sale: &SaleId,
    groups: &[GroupId],
    folder: &Path,
) -> Result<u64, Error> {
    let mut admitted: Vec<(Admitted, usize)> = Vec::new();
    for bucket in 0..ports.buckets() {
        let mut after = None;
        loop {
            let page = ports.rooms().memberships(sale, bucket, after.as_ref()).await?;
            for member in &page.memberships {
                let at = position(groups, member)?;
                admitted.extend(member.admitted().into_iter().map(|visit| (visit, at)));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    admitted.sort_unstable_by_key(|(Admitted { turn, place, .. }, at)| (*turn, *at, *place));
    let mut lines = Lines::create(folder, ADMISSIONS)?;
    for (Admitted { index, place, turn }, at) in admitted {
        let group = groups.get(at).cloned().unwrap_or_else(GroupId::all);
        lines.write(&json(&Admission { group, index, place, turn }))?;
    }
    Ok(lines.finish()?)
}

/// The position of a member's group.
fn position(groups: &[GroupId], member: &Membership) -> Result<usize, StoreError> {
    let unknown = || StoreError::Contract(format!("a member of an unknown group {}", member.group));
    groups.iter().position(|group| *group == member.group).ok_or_else(unknown)
}

async fn write_log(ports: &impl RoomPorts, sale: &SaleId, folder: &Path) -> Result<u64, Error> {
    let mut lines = Lines::create(folder, LOG)?;
    loop {
        let records = ports.rooms().records(sale, lines.count, RECORDS).await?;
        for record in &records {
            lines.write(&record.line())?;
        }
        if records.len() < usize::from(RECORDS) {
            return Ok(lines.finish()?);
        }
    }
}

fn json(value: &impl Serialize) -> String {
    // Texts, whole numbers and lists: nothing that JSON cannot say.
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("it is always JSON: {error}"))
}
