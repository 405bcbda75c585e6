//! The flows of a waiting room: publish it, join it, draw it and see to it that it is drawn, make its turns, let
//! in who is due.
//!
//! They are given [`RoomPorts`] alone, or with the board in Redis
//! [`BoardPorts`](crate::ports::BoardPorts); [`request`] also sends messages. Each may be cut off after any step and
//! run twice at once.

pub mod awaited;
pub mod bring;
pub mod draw;
pub mod enter;
pub mod join;
pub mod left;
pub mod publish;
pub mod request;
pub mod slot;
pub mod turn;
pub mod window;

use crate::domain::admission::room::log::{Entry, Record};
use crate::domain::admission::room::serving::Room;
use crate::domain::basics::ids::SaleId;
use crate::ports::{RoomPorts, Rooms, StoreError, Stored};

/// The room of a sale as it was published; `None` if it has none. It never changes: whoever asks often may
/// remember it.
///
/// # Errors
/// Fails if the store does.
pub async fn published(ports: &impl RoomPorts, sale: &SaleId) -> Stored<Option<Room>> {
    match ports.rooms().record(sale, 0).await?.map(|first| first.entry) {
        None => Ok(None),
        Some(Entry::Published(room)) => Ok(Some(room)),
        Some(Entry::Turn { .. }) => {
            Err(StoreError::Contract(format!("the log of {sale} begins with a turn")))
        }
    }
}

/// The last record of a room's log.
///
/// # Errors
/// Fails if the store does; `Contract` if there is none.
async fn last_record(ports: &impl RoomPorts, sale: &SaleId) -> Stored<Record> {
    let last = ports.rooms().last_record(sale).await?;
    last.ok_or_else(|| StoreError::Contract(format!("the room of {sale} has no log")))
}
