//! Enter: a buyer whose place is due begins a visit, and is admitted while it lasts.
//!
//! The claim is checked first, before anything is verified: a false claim costs only the buyer who makes it. Then the
//! place is computed from the index, and the visit is written on the membership before the request is answered. So a
//! visit is used once and nobody's place is lost, whatever Redis forgets.
//!
//! A visit begins with the buyer's first use of the page on which tickets are chosen ([`begin`]), so that choosing does
//! not eat the time in which a place waits for its buyer; or with the first admission ([`enter`]), for a client that has
//! no such page.

use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::admission::room::counts::{Came, Coming, Entry};
use crate::domain::admission::room::join::bucket_of;
use crate::domain::admission::room::memory::RoomMemory;
use crate::domain::admission::room::serving::{Mode, Room};
use crate::domain::admission::room::view::{Turn, View, mark_after};
use crate::domain::admission::room::visit::{Enter, EnterReply, Entered, Visit};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::basics::time::Timestamp;
use crate::flows::room::window::{GroupAt, place};
use crate::flows::room::{last_record, published};
use crate::ports::{Board, BoardPorts, RoomPorts, Rooms, StoreError, Stored};

/// A place that a buyer claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claimed<'a> {
    pub group: &'a GroupId,
    pub place: u32,
}

/// Why a place does not let its buyer in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No place is claimed.
    #[error("the sale has a waiting room: a place that is due is needed")]
    Missing,
    /// The operator has paused the room.
    #[error("the waiting room is paused")]
    Paused,
    /// The operator has closed the room.
    #[error("the waiting room is closed")]
    Closed,
    /// Nothing is left, or the operator says so.
    #[error("the sale is sold out")]
    SoldOut,
    /// The room has no such group.
    #[error("the waiting room has no such group")]
    UnknownGroup,
    /// The place is not due, or its window is not drawn.
    #[error("the place is not due: {ahead} are served before it")]
    NotDue {
        /// Places that are served before it.
        ahead: u32,
    },
    /// The index has another place.
    #[error("the index has another place")]
    OtherPlace,
    /// The buyer's membership is not the one of the place: the buyer has joined again since.
    #[error("the place is not the buyer's any more")]
    NotMember,
    /// The place has run out.
    #[error("the place was due, and has run out")]
    RunOut,
    /// The visit is over.
    #[error("the visit is over")]
    Over,
    /// The visit has no attempt left.
    #[error("the visit has no attempt left")]
    TooManyAttempts,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The room of a sale as it was published, from a gate's memory or from the log: without a copy of it for every
/// buyer. `None` if the sale has none.
///
/// # Errors
/// As [`published`].
pub async fn room(
    ports: &impl RoomPorts,
    memory: &Mutex<RoomMemory>,
    sale: &SaleId,
) -> Stored<Option<Arc<Room>>> {
    let remembered = || memory.lock().unwrap_or_else(PoisonError::into_inner);
    let known = remembered().room(sale);
    if known.is_some() {
        return Ok(known);
    }
    let room = published(ports, sale).await?;
    Ok(room.map(|room| remembered().keep_room(room)))
}

/// What a gate knows of a room now, at most a second old: from its memory, from Redis, or from the log if
/// Redis has nothing.
///
/// # Errors
/// Fails if neither Redis nor the log can be read.
pub async fn view(
    ports: &impl BoardPorts,
    memory: &Mutex<RoomMemory>,
    room: &Room,
    now: Timestamp,
) -> Stored<Arc<View>> {
    let known = memory.lock().unwrap_or_else(PoisonError::into_inner).view(&room.sale, now);
    if let Some(view) = known {
        return Ok(view);
    }
    let view = match ports.board().shown(&room.sale).await {
        Ok(Some(shown)) => shown.view,
        Ok(None) | Err(_) => View::of(&last_record(ports, &room.sale).await?, false),
    };
    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(memory.keep_view(&room.sale, view, now))
}

/// Refuses what a buyer claims, before anything of it is verified.
///
/// # Errors
/// Returns a [`Refusal`].
pub fn check_claim(room: &Room, view: &View, claimed: Claimed<'_>) -> Result<usize, Refusal> {
    match view.mode {
        Mode::Paused => return Err(Refusal::Paused),
        Mode::Closed => return Err(Refusal::Closed),
        Mode::Open => {}
    }
    if view.sold_out {
        return Err(Refusal::SoldOut);
    }
    let mut groups = room.settings.groups.iter();
    let at = groups.position(|known| known.group == *claimed.group);
    let (at, group) =
        at.and_then(|at| Some((at, view.groups.get(at)?))).ok_or(Refusal::UnknownGroup)?;
    match group.turn(claimed.place) {
        Turn::NotDue { ahead } if stands(Guard::PlaceDue) => Err(Refusal::NotDue { ahead }),
        Turn::NotDue { .. } | Turn::Due | Turn::RunOut => Ok(at),
    }
}

/// Computes the place of a buyer's index, and refuses another claim.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn check_place(
    ports: &impl BoardPorts,
    memory: &Mutex<RoomMemory>,
    room: &Room,
    view: &View,
    claimed: Claimed<'_>,
    index: u32,
) -> Result<(), Refusal> {
    let at = check_claim(room, view, claimed)?;
    let group = GroupAt { sale: &room.sale, group: claimed.group, at };
    match place(ports, memory, view, group, index).await? {
        Some(place) if place == claimed.place || !stands(Guard::PlaceComputed) => Ok(()),
        Some(_) => Err(Refusal::OtherPlace),
        None => Err(Refusal::NotDue { ahead: index }),
    }
}

/// An admission that a visit has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entrance {
    /// The entry by which an order is counted.
    pub entry: Entry,
    /// The number of the admission in the visit, from 1.
    pub attempt: u16,
}

/// Admits a buyer whose place was checked by this view: begins the visit, or counts one more attempt. The admission before
/// ends with it.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn enter(
    ports: &impl BoardPorts,
    room: &Room,
    view: &View,
    claimed: Claimed<'_>,
    buyer: &UserId,
    index: u32,
    now: Timestamp,
) -> Result<Entrance, Refusal> {
    let Entered { visit, .. } =
        entrance(ports, room, view, claimed, buyer, (index, 1), now).await?;
    // An earlier admission that goes on counts as a question of the same buyer.
    if visit.attempts > 1
        && let Err(error) = ports.board().admitted(&room.sale, buyer, visit.attempts).await
    {
        tracing::warn!(sale = %room.sale, %error, "an admission does not end the one before");
    }
    Ok(Entrance { entry: entry(&visit), attempt: visit.attempts })
}

/// Begins the visit of a buyer whose place was checked by this view, unless it has begun: the buyer looks at what there
/// is. Uses up no attempt, however often it is called. Returns what is left of the visit, in milliseconds of the clock of
/// visits.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn begin(
    ports: &impl BoardPorts,
    room: &Room,
    view: &View,
    claimed: Claimed<'_>,
    buyer: &UserId,
    index: u32,
    now: Timestamp,
) -> Result<u64, Refusal> {
    if !stands(Guard::VisitWritten) {
        return Ok(room.settings.visit_ms);
    }
    let Entered { visit, more_time, .. } =
        entrance(ports, room, view, claimed, buyer, (index, 0), now).await?;
    Ok(visit.left_ms(more_time, room.settings.visit_ms, view.clock_ms))
}

/// The entry of a visit: the mark in which it began.
fn entry(visit: &Visit) -> Entry {
    Entry { mark: mark_after(visit.began_clock_ms) }
}

/// Begins the visit of an index, or goes on with it, and adds `attempts` to it; counts who came by that.
async fn entrance(
    ports: &impl BoardPorts,
    room: &Room,
    view: &View,
    claimed: Claimed<'_>,
    buyer: &UserId,
    (index, attempts): (u32, u16),
    now: Timestamp,
) -> Result<Entered, Refusal> {
    let at = check_claim(room, view, claimed)?;
    let group = view.groups.get(at).ok_or(Refusal::UnknownGroup)?;
    let begins =
        Visit { place: claimed.place, turn: view.number, began_clock_ms: view.clock_ms, attempts };
    let enter = Enter {
        sale: room.sale.clone(),
        bucket: bucket_of(buyer, ports.buckets()),
        buyer: buyer.clone(),
        group: claimed.group.clone(),
        index,
        visit: begins,
        begun_only: group.turn(claimed.place) == Turn::RunOut,
        visit_ms: room.settings.visit_ms,
        max_attempts: room.settings.max_attempts,
    };
    let entered = match ports.rooms().enter(&enter).await? {
        EnterReply::Entered(entered) => entered,
        EnterReply::NotMember => return Err(Refusal::NotMember),
        EnterReply::RunOut => return Err(Refusal::RunOut),
        EnterReply::Over => return Err(Refusal::Over),
        EnterReply::TooManyAttempts => return Err(Refusal::TooManyAttempts),
    };
    let due_mark = || view.due_mark(at, claimed.place);
    let age_ms = view.clock_ms.saturating_sub(entered.visit.began_clock_ms);
    let how = match (entered.begins, enter.admits()) {
        (true, true) => Some(Coming::Asks { due_mark: due_mark() }),
        (true, false) => Some(Coming::Looks { due_mark: due_mark() }),
        (false, true) if entered.decides() => {
            Some(Coming::Decides { is_late: age_ms >= room.settings.show_up_ms })
        }
        (false, _) => None,
    };
    if let Some(how) = how {
        let came = Came { entry: entry(&entered.visit), how };
        // A buyer who is not counted is taken for one who did not come: that costs time and nothing else.
        if let Err(error) = ports.board().came(&room.sale, &came, now).await {
            tracing::warn!(sale = %room.sale, %error, "somebody who came was not counted");
        }
    }
    Ok(entered)
}
