//! The port to the board of a waiting room in Redis: the copy of the room's state that people are shown, and the
//! counters that its turns read. Redis may forget all of it at any time.

use std::future::Future;

use super::{RoomPorts, Stored};
use crate::domain::admission::room::counts::{Came, ReservationReport, Tally};
use crate::domain::admission::room::slot::Asked;
use crate::domain::admission::room::view::View;
use crate::domain::basics::ids::{SaleId, UserId};
use crate::domain::basics::time::Timestamp;

/// The copy of a room's state on the board.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shown {
    /// The view by which gates decide whose place is due.
    pub view: View,
    /// The room document, as JSON.
    pub document: String,
    /// The time at which the document was made.
    pub made_at: Timestamp,
}

/// The board (Redis, on a slot of the room's own). If Redis loses the counters, they begin again in another epoch,
/// whose name is the time of its beginning.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError).
pub trait Board: Send + Sync {
    /// The copy of a room's state; `None` if the board has none.
    fn shown(&self, sale: &SaleId) -> impl Future<Output = Stored<Option<Shown>>> + Send;
    /// Replaces the copy of a room's state, unless the board's copy follows from a later record of the log, or was
    /// made later from the same record.
    fn show(&self, sale: &SaleId, shown: &Shown) -> impl Future<Output = Stored<()>> + Send;
    /// True for the first caller within `ms` milliseconds: that caller makes the turn.
    fn take_turn(&self, sale: &SaleId, ms: u32) -> impl Future<Output = Stored<bool>> + Send;
    /// True for the first caller within `seconds`: that caller requests the draw.
    fn take_draw(&self, sale: &SaleId, seconds: u32) -> impl Future<Output = Stored<bool>> + Send;
    /// The counters of a room, with the reservations of the five seconds before `now`. Drops marks before
    /// `oldest_mark`.
    fn tally(
        &self,
        sale: &SaleId,
        oldest_mark: u64,
        now: Timestamp,
    ) -> impl Future<Output = Stored<Tally>> + Send;
    /// Counts a member who came to the gate.
    fn came(
        &self,
        sale: &SaleId,
        came: &Came,
        now: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// Notes that a buyer was given an admission, the one of this number in the visit: it ends those before.
    fn admitted(
        &self,
        sale: &SaleId,
        buyer: &UserId,
        attempt: u16,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// Counts a question of a buyer that is about to go to the sale's slot, and returns the counts of its second.
    fn asked(
        &self,
        sale: &SaleId,
        buyer: &UserId,
        now: Timestamp,
    ) -> impl Future<Output = Stored<Asked>> + Send;
    /// Counts the outcome of a reservation.
    fn reserved(
        &self,
        sale: &SaleId,
        report: &ReservationReport,
        now: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
}

/// What the flows of an open room get: [`RoomPorts`] and the board.
pub trait BoardPorts: RoomPorts {
    /// The boards of waiting rooms in Redis.
    type Board: Board;

    /// The boards of waiting rooms in Redis.
    fn board(&self) -> &Self::Board;
}
