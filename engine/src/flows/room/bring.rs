//! Bring the round: anybody may submit a round of the beacon, from any source; its signature decides.
//!
//! So a draw does not wait for an operator whose servers cannot reach the beacon, or whose operator does not want them
//! to: the round is public, and nobody can forge one.

use crate::domain::admission::room::draw::Source;
use crate::domain::admission::room::serving::{Event, GroupState, Room, State};
use crate::domain::basics::bytes::Signature;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{GroupId, SaleId};
use crate::domain::basics::time::Timestamp;
use crate::flows::room::draw::record;
use crate::flows::room::{last_record, published};
use crate::ports::{Beacon, RoomPorts, StoreError};

/// A round of a beacon, as somebody says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Round {
    pub number: u64,
    pub signature: Signature,
}

/// What became of a round that was brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Brought {
    /// The groups that awaited it are drawn by it.
    Drawn,
    /// The groups that awaited it were drawn before.
    Before,
}

/// Why a round is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sale has no room.
    #[error("the sale has no waiting room")]
    NoRoom,
    /// No draw of the room is by this round.
    #[error("no draw of the waiting room awaits this round of the beacon")]
    NotAwaited,
    /// The signature is not that of the round.
    #[error("the signature is not that of the beacon's round")]
    Forged,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Draws each group that awaits this round by it. Repeating it changes nothing.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn bring(
    ports: &impl RoomPorts,
    sale: &SaleId,
    round: Round,
    now: Timestamp,
) -> Result<Brought, Refusal> {
    let room = published(ports, sale).await?.ok_or(Refusal::NoRoom)?;
    let chain = room.draw.chain().ok_or(Refusal::NotAwaited)?;
    let state = last_record(ports, sale).await?.state;
    if !state.groups.iter().any(|group| is_by(&room, group, round)) {
        return Err(Refusal::NotAwaited);
    }
    // Comparing with known rounds costs nothing, so the signature, which costs time, is verified last.
    if awaiting(&room, &state, round).is_empty() {
        return Ok(Brought::Before);
    }
    let Round { number, signature } = round;
    let is_its = ports.beacon().verify(chain, number, signature).await?;
    if stands(Guard::RoundVerified) && !is_its {
        return Err(Refusal::Forged);
    }
    let source = Source::Beacon { round: number, signature };
    let out_ms =
        state.groups.iter().filter_map(|group| room.round_ms(group.closed.as_ref()?)).max();
    let least = out_ms.map_or(now, Timestamp::from_ms);
    record(ports, &room, &now, least, |state| {
        let drawn = awaiting(&room, state, round).into_iter();
        drawn.map(|group| Event::Drawn { group, source }).collect()
    })
    .await?;
    Ok(Brought::Drawn)
}

/// True if a group was closed, and is drawn by this round unless the beacon was given up.
fn is_by(room: &Room, group: &GroupState, round: Round) -> bool {
    group.closed.as_ref().is_some_and(|closed| room.round(closed) == Some(round.number))
}

/// The groups that await a round.
fn awaiting(room: &Room, state: &State, round: Round) -> Vec<GroupId> {
    let groups = room.settings.groups.iter().zip(&state.groups);
    let awaits = groups.filter(|(_, state)| state.seed.is_none() && is_by(room, state, round));
    awaits.map(|(settings, _)| settings.group.clone()).collect()
}
