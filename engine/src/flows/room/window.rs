//! The place of an index: by the seed of the first window, or by the record that ended a later one.

use std::sync::{Mutex, PoisonError};

use crate::domain::admission::room::draw::{Window, later_seed};
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::memory::{EndedWindow, RoomMemory};
use crate::domain::admission::room::serving::GroupState;
use crate::domain::admission::room::view::View;
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::{GroupId, SaleId};
use crate::ports::{RoomPorts, Rooms, StoreError, Stored};

/// A group of a room, by its position in the settings.
#[derive(Debug, Clone, Copy)]
pub struct GroupAt<'a> {
    pub sale: &'a SaleId,
    pub group: &'a GroupId,
    pub at: usize,
}

/// The place of an index; `None` while it is not drawn.
///
/// # Errors
/// Fails if the store does.
pub async fn place(
    ports: &impl RoomPorts,
    memory: &Mutex<RoomMemory>,
    view: &View,
    group: GroupAt<'_>,
    index: u32,
) -> Stored<Option<u32>> {
    let Some(of) = view.groups.get(group.at) else { return Ok(None) };
    match of.drawn {
        None => Ok(None),
        Some((seed, count)) if index < count => Ok(Window::new(seed, 0, count).place(index)),
        Some(_) => {
            let Some(window) = ended_window(ports, memory, view, group, index).await? else {
                return Ok(None);
            };
            Ok(Window::new(window.seed, window.first, window.end).place(index))
        }
    }
}

/// Finds the window in which an index was drawn, the first or a later one; `None` while the index is not drawn.
///
/// # Errors
/// Fails if the store does.
pub async fn drawn_window(
    ports: &impl RoomPorts,
    memory: &Mutex<RoomMemory>,
    view: &View,
    group: GroupAt<'_>,
    index: u32,
) -> Stored<Option<EndedWindow>> {
    match view.groups.get(group.at).and_then(|of| of.drawn) {
        Some((seed, count)) if index < count => {
            let remembered = || memory.lock().unwrap_or_else(PoisonError::into_inner);
            let known = remembered().window(group.sale, group.group, index);
            if known.is_some() {
                return Ok(known);
            }
            let record = ending_record(ports, group, index, view.number).await?.number;
            let window = EndedWindow { first: 0, end: count, seed, record };
            remembered().keep_window(group.sale, group.group, window);
            Ok(Some(window))
        }
        Some(_) => ended_window(ports, memory, view, group, index).await,
        None => Ok(None),
    }
}

/// Finds the later window in which an index was drawn; `None` while that window has not ended.
///
/// # Errors
/// Fails if the store does.
pub async fn ended_window(
    ports: &impl RoomPorts,
    memory: &Mutex<RoomMemory>,
    view: &View,
    group: GroupAt<'_>,
    index: u32,
) -> Stored<Option<EndedWindow>> {
    let is_drawn = view.groups.get(group.at).is_some_and(|of| index < of.window_end);
    if !is_drawn {
        return Ok(None);
    }
    let remembered = || memory.lock().unwrap_or_else(PoisonError::into_inner);
    let known = remembered().window(group.sale, group.group, index);
    if known.is_some() {
        return Ok(known);
    }
    let record = ending_record(ports, group, index, view.number).await?;
    let state = state_of(&record, group)?;
    let window = EndedWindow {
        first: state.window_first,
        end: state.window_end,
        seed: window_seed(&record, group.group),
        record: record.number,
    };
    remembered().keep_window(group.sale, group.group, window);
    Ok(Some(window))
}

/// The seed of the window that a record ended.
fn window_seed(record: &Record, group: &GroupId) -> Hash {
    later_seed(record.hash(), group)
}

fn state_of<'a>(record: &'a Record, group: GroupAt<'_>) -> Stored<&'a GroupState> {
    let state = record.state.groups.get(group.at);
    state.ok_or_else(|| StoreError::Contract(format!("a record of {} lacks a group", group.sale)))
}

/// Finds the first record that draws an index, up to `last`, which has it drawn: the ends of windows only grow along
/// the log.
async fn ending_record(
    ports: &impl RoomPorts,
    group: GroupAt<'_>,
    index: u32,
    last: u64,
) -> Stored<Record> {
    let read = async |number: u64| {
        let record = ports.rooms().record(group.sale, number).await?;
        record.ok_or_else(|| {
            StoreError::Contract(format!("the log of {} has no record {number}", group.sale))
        })
    };
    // The index is not drawn by `before`, and drawn by `found`.
    let (mut before, mut found) = (0, read(last).await?);
    while found.number - before > 1 {
        let middle = read(before + (found.number - before) / 2).await?;
        if index < state_of(&middle, group)?.window_end {
            found = middle;
        } else {
            before = middle.number;
        }
    }
    Ok(found)
}
