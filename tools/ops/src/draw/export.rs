//! The export of a waiting room: what `onsale verify-draw` wants, from DynamoDB.
//!
//! The log and the leaves are written as they are read, a page and a chunk at a time. Admissions are kept until the
//! last is read, 24 bytes each: written in the order of their turns, they say nothing of whose they are, as they would
//! in the order in which memberships are kept, by buyer.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use engine::domain::admission::room::join::{Membership, bucket_of};
use engine::domain::admission::room::leaves::Chunk;
use engine::domain::admission::room::visit::Admitted;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use engine::flows::room::published;
use engine::ports::{
    Catalogue, Freshness, Orders, Ports, RoomPorts, Rooms, SEATS_PER_BLOCK, StoreError,
};
use futures_util::future::try_join_all;
use serde::Serialize;

use super::publication::{self, ADMISSIONS, Admission, Counted, LEAVES, LOG, ORDERS, OrderLine};

/// Records that are read at once.
const RECORDS: u16 = 200;
/// Orders and memberships that are read at once.
const TOGETHER: usize = 64;

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
    /// Orders that hold seats; none of a room that was published before.
    pub orders: u64,
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
    ports: &(impl Ports + RoomPorts),
    sale: &SaleId,
    folder: &Path,
    now: Timestamp,
) -> Result<Exported, Error> {
    let room = published(ports, sale).await?.ok_or(Error::NoRoom)?;
    let stock = room.stock;
    let groups: Vec<GroupId> = room.settings.groups.into_iter().map(|of| of.group).collect();
    fs::create_dir_all(folder).map_err(|error| publication::Error::File { file: LOG, error })?;
    // The log comes last: it has the turn of every admission that was read, and admissions after orders.
    let chunks = write_leaves(ports, sale, &groups, folder).await?;
    let orders = match stock {
        Some(stock) => write_orders(ports, sale, stock, folder, now).await?,
        None => 0,
    };
    let admissions = write_admissions(ports, sale, &groups, folder).await?;
    let records = write_log(ports, sale, folder).await?;
    Ok(Exported { records, chunks, admissions, orders })
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

/// Writes the orders that hold seats, by the turns of their admissions: so they say nothing of whose they are.
async fn write_orders(
    ports: &(impl Ports + RoomPorts),
    id: &SaleId,
    stock: u64,
    folder: &Path,
    now: Timestamp,
) -> Result<u64, Error> {
    let sale = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let sale = sale.ok_or_else(|| StoreError::Contract(format!("there is no sale {id}")))?.sale;
    let held: Vec<(OrderNumber, u64)> = held(ports, &sale).await?.into_iter().collect();
    let mut orders = Vec::with_capacity(held.len());
    for some in held.chunks(TOGETHER) {
        orders.extend(try_join_all(some.iter().map(|held| order(ports, id, *held))).await?);
    }
    orders.sort_unstable_by_key(|order| (order.turn, order.group.clone(), order.index));
    let sum: u64 = held.iter().map(|(_, seat_legs)| seat_legs).sum();
    let mut lines = Lines::create(folder, ORDERS)?;
    lines.write(&json(&Counted { at_ms: now.ms(), left: stock.saturating_sub(sum) }))?;
    for order in orders {
        lines.write(&json(&order))?;
    }
    Ok(lines.finish()?.saturating_sub(1))
}

/// The seat-legs that each order holds.
async fn held(ports: &impl Ports, sale: &Sale) -> Result<BTreeMap<OrderNumber, u64>, StoreError> {
    let mut held = BTreeMap::new();
    for tier in sale.tiers() {
        let blocks: Vec<u32> = (0..tier.layout.places().div_ceil(SEATS_PER_BLOCK)).collect();
        for some in blocks.chunks(TOGETHER) {
            let read =
                some.iter().map(|block| ports.orders().claims(sale.id(), &tier.tier, *block));
            for claim in try_join_all(read).await?.into_iter().flatten() {
                *held.entry(claim.order).or_insert(0) += 1;
            }
        }
    }
    Ok(held)
}

/// An order, with the admission of its buyer.
async fn order(
    ports: &(impl Ports + RoomPorts),
    sale: &SaleId,
    (number, seat_legs): (OrderNumber, u64),
) -> Result<OrderLine, StoreError> {
    let order = ports.orders().get(number).await?;
    let lacking = || StoreError::Contract(format!("order {number} has seats, and is not there"));
    let buyer = order.ok_or_else(lacking)?.user;
    let bucket = bucket_of(&buyer, ports.buckets());
    let member = ports.rooms().membership(sale, bucket, &buyer).await?;
    let admitted = member.and_then(|member| {
        let last = member.admitted().pop()?;
        Some((member.group, last))
    });
    let (group, last) = admitted.unzip();
    let (index, turn) = (last.map(|last| last.index), last.map(|last| last.turn));
    Ok(OrderLine { group, index, turn, operator: None, seat_legs })
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
