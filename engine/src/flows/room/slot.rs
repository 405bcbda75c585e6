//! The sale's slot: in a sale with a room, [its rule](crate::domain::admission::room::slot) bounds the questions to the
//! slot, and their outcomes are counted for the next turn.

use std::sync::Mutex;

use crate::domain::admission::room::counts::{Entry, ReservationReport};
use crate::domain::admission::room::memory::RoomMemory;
use crate::domain::admission::room::serving::Room;
use crate::domain::admission::room::slot::{Asking, MayAsk};
use crate::domain::basics::ids::UserId;
use crate::domain::basics::time::Timestamp;
use crate::flows::room::enter::view;
use crate::ports::{Board, BoardPorts, Stored};

/// Time within which a reservation is answered well, in milliseconds: a buyer waits for it.
pub const TARGET_MS: u64 = 2_000;

/// Decides whether one more question of a buyer may go to the sale's slot in this second. If Redis cannot count it, it may:
/// the slot has a bound of its own.
///
/// # Errors
/// Fails if what a gate has to know of the room cannot be read.
pub async fn may_ask(
    ports: &impl BoardPorts,
    memory: &Mutex<RoomMemory>,
    room: &Room,
    (buyer, asking): (&UserId, Asking),
    now: Timestamp,
) -> Stored<MayAsk> {
    let view = view(ports, memory, room, now).await?;
    Ok(match ports.board().asked(&room.sale, buyer, now).await {
        Ok(asked) => asked.decide(asking, view.requests_per_second),
        Err(_) => MayAsk::Yes,
    })
}

/// What became of a request to the sale's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// An order, now: this number of seat-legs.
    Order { held: u64 },
    /// An answer without a new order: a refusal, or an order that was there.
    Answer,
    /// No answer, because a store failed.
    Failure,
}

/// Counts the outcome of an admitted buyer's request, and how long it took. An outcome that is not counted costs its
/// time and nothing else.
pub async fn report(
    ports: &impl BoardPorts,
    room: &Room,
    entry: Option<Entry>,
    became: Became,
    took_ms: u64,
    now: Timestamp,
) {
    let is_bad = became == Became::Failure || took_ms > TARGET_MS;
    let held = match became {
        Became::Order { held } => held,
        Became::Answer | Became::Failure => 0,
    };
    let report = ReservationReport { entry: entry.filter(|_| held > 0), held, is_bad };
    if let Err(error) = ports.board().reserved(&room.sale, &report, now).await {
        tracing::warn!(sale = %room.sale, %error, "a reservation was not counted");
    }
}
