//! The port to the board of a waiting room in Redis: the copy of its state that is shown, and the counters by
//! which turns are made. Redis may forget all of it at any time.

use std::future::Future;

use super::{RoomPorts, Stored};
use crate::domain::admission::room::counts::{Entry, ReservationReport, Tally};
use crate::domain::admission::room::view::View;
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;

/// What is shown of a room.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shown {
    /// What gates go by.
    pub view: View,
    /// The room document, as JSON.
    pub document: String,
    /// The time at which it was made.
    pub made_at: Timestamp,
}

/// Somebody who came: counted by the mark by which the place was due, and by that of coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Came {
    /// The mark by which the place was due.
    pub due_mark: u64,
    /// What an order is counted by later.
    pub entry: Entry,
}

/// The requests for the sale's slot of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Asked {
    /// Those for one order, this one included.
    pub own: u64,
    /// The orders for which anybody asked.
    pub orders: u64,
}

/// The board (Redis, on a slot of the room's own). Counters that are lost begin again in another epoch, which is
/// named by its time.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError).
pub trait Board: Send + Sync {
    /// What is shown; `None` if nothing is.
    fn shown(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Shown>>> + Send;
    /// Shows a room, unless what is shown follows from a later record, or is of the same one and was made later.
    fn show(&self, sale: &SaleId, shown: &Shown) -> impl Future<Output = Stored<()>> + Send;
    /// True for the first who asks within `ms` milliseconds: it makes the turn.
    fn take_turn(&self, sale: &SaleId, ms: u32) -> impl Future<Output = Stored<bool>> + Send;
    /// True for the first who asks within `seconds`: it requests the draw.
    fn take_draw(&self, sale: &SaleId, seconds: u32) -> impl Future<Output = Stored<bool>> + Send;
    /// What was counted, with the reservations of the five seconds before `now`. Marks before `oldest_mark` are
    /// dropped.
    fn tally(
        &self,
        sale: &SaleId,
        oldest_mark: u64,
        now: Timestamp,
    ) -> impl Future<Output = Stored<Tally>> + Send;
    /// Counts somebody who came.
    fn came(
        &self,
        sale: &SaleId,
        came: &Came,
        now: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// Counts a request that is about to go to the sale's slot, for the order of a number.
    fn asked(
        &self,
        sale: &SaleId,
        order: OrderNumber,
        now: Timestamp,
    ) -> impl Future<Output = Stored<Asked>> + Send;
    /// Counts a reservation.
    fn reserved(
        &self,
        sale: &SaleId,
        report: &ReservationReport,
        now: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
}

/// What the flows of an open room are given: [`RoomPorts`] and the board.
pub trait BoardPorts: RoomPorts {
    /// The board.
    type Board: Board;

    /// The board.
    fn board(&self) -> &Self::Board;
}
