//! The sale's slot: in a sale with a room, the classic rule bounds the requests to the slot, and their outcomes are
//! counted for the next turn.

use std::sync::Mutex;

use crate::domain::admission::room::counts::{Entry, ReservationReport};
use crate::domain::admission::room::document::{drop_percent, retry_ms};
use crate::domain::admission::room::memory::RoomMemory;
use crate::domain::admission::room::serving::Room;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::flows::room::enter::view;
use crate::ports::{Asked, Board, BoardPorts, Stored};

/// Time within which a reservation is answered well, in milliseconds: a buyer waits for it.
pub const TARGET_MS: u64 = 2_000;

/// Whether a request may go to the sale's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayAsk {
    Yes,
    /// This second has as many requests as the rule allows.
    No {
        /// Time after which to ask again, in milliseconds.
        retry_ms: u64,
    },
}

/// Requests a second that may go to the slot whatever the rule says. The rule counts the seats that were free at the
/// last turn, but seats come back between two turns, and admitted buyers have to hear that nothing is left.
const LEAST_PER_SECOND: u64 = 10;
/// Most requests a second for one order: its buyer may have sent a request twice. A buyer who sends more takes nothing
/// from others.
const MAX_OWN_PER_SECOND: u64 = 2;
/// Time after which whoever sent more may send it again, in milliseconds.
const OWN_RETRY_MS: u64 = 1_000;

/// Decides whether one more request for an order may go to the sale's slot in this second. If Redis cannot count the
/// request, it may: the slot has a bound of its own.
///
/// # Errors
/// Fails if what a gate has to know of the room cannot be read.
pub async fn may_ask(
    ports: &impl BoardPorts,
    memory: &Mutex<RoomMemory>,
    room: &Room,
    order: OrderNumber,
    now: Timestamp,
) -> Stored<MayAsk> {
    let view = view(ports, memory, room, now).await?;
    let may = view.requests_per_second.max(LEAST_PER_SECOND);
    Ok(match ports.board().asked(&room.sale, order, now).await {
        Ok(Asked { own, .. }) if own > MAX_OWN_PER_SECOND => MayAsk::No { retry_ms: OWN_RETRY_MS },
        // The wait follows the drop percentage, as in the room document: the more requests are refused, the longer a
        // buyer waits.
        Ok(Asked { orders, .. }) if orders > may => {
            MayAsk::No { retry_ms: retry_ms(drop_percent(orders, may)) }
        }
        Ok(_) | Err(_) => MayAsk::Yes,
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
