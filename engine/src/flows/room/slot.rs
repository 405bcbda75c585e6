//! The sale's slot: with a room, requests to it are bounded by the classic rule, and what becomes of them is
//! counted for the next turn.

use std::sync::Mutex;

use crate::domain::room::counts::{Entry, ReservationReport};
use crate::domain::room::document::{drop_percent, retry_ms};
use crate::domain::room::memory::RoomMemory;
use crate::domain::room::serving::Room;
use crate::domain::time::Timestamp;
use crate::flows::room::enter::view;
use crate::ports::{Board, BoardPorts, Stored};

/// Time within which a reservation is answered well, in milliseconds: a buyer waits for it.
const TARGET_MS: u64 = 2_000;

/// Whether a request may go to the sale's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayAsk {
    /// It may.
    Yes,
    /// There are as many in this second as there may be.
    No {
        /// Time after which to ask again, in milliseconds.
        retry_ms: u64,
    },
}

/// Whether one more request may go to the sale's slot in this second. What cannot be counted may: the slot has
/// a bound of its own.
///
/// # Errors
/// Fails if what a gate has to know of the room cannot be read.
pub async fn may_ask(
    ports: &impl BoardPorts,
    memory: &Mutex<RoomMemory>,
    room: &Room,
    now: Timestamp,
) -> Stored<MayAsk> {
    let view = view(ports, memory, room, now).await?;
    let asked = ports.board().asked(&room.sale, now).await;
    let may = view.requests_per_second;
    Ok(match asked {
        // As the room document says of the last seconds: whoever is refused more often waits longer.
        Ok(asked) if asked > may => MayAsk::No { retry_ms: retry_ms(drop_percent(asked, may)) },
        Ok(_) | Err(_) => MayAsk::Yes,
    })
}

/// What became of a request to the sale's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// An order, now: this number of seat-legs.
    Order {
        /// Seat-legs.
        held: u64,
    },
    /// An answer without a new order: a refusal, or an order that was there.
    Answer,
    /// No answer, because a store failed.
    Failure,
}

/// Counts what became of a request of somebody who was let in, and how long it took. What is not counted costs
/// its time and nothing else.
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
