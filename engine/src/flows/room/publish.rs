//! Publish a room: commit to a secret and a beacon, and begin the log.

use crate::domain::admission::room::draw::Commitment;
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::serving::Room;
use crate::domain::basics::bytes::{Hash, Secret};
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::serving::{InvalidSettings, Settings};
use crate::flows::room::published;
use crate::ports::{AppendReply, RoomPorts, Rooms, StoreError};

/// Why a room was not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A setting breaks its rule.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The sale has a room with other settings or another beacon: those never change.
    #[error("the sale has a room with other settings or another beacon")]
    Differs,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// True if settings may be those of a room that has the `kept` ones. Orders may become smaller: the room then
/// expects too much of each until it has observed enough of them, and never too little.
fn are_the_same(settings: &Settings, kept: &Settings) -> bool {
    let as_large = Settings { max_units: kept.max_units, ..settings.clone() };
    settings.max_units <= kept.max_units && as_large == *kept
}

/// Publishes the room of a sale, committed to `secret` unless a secret is kept already. Repeating it, with
/// any secret, finishes what a crash left. The secret must be random: who can guess it knows the draw.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn publish(
    ports: &impl RoomPorts,
    sale: &SaleId,
    settings: &Settings,
    beacon: Option<Hash>,
    secret: &Secret,
    now: Timestamp,
) -> Result<Room, Refusal> {
    settings.check()?;
    let is_same =
        |room: &Room| room.draw.beacon == beacon && are_the_same(settings, &room.settings);
    if let Some(room) = published(ports, sale).await? {
        return if is_same(&room) { Ok(room) } else { Err(Refusal::Differs) };
    }
    let kept = ports.rooms().keep_secret(sale, secret).await?;
    let draw = Commitment { commitment: kept.commitment(), beacon };
    let room = Room { sale: sale.clone(), draw, settings: settings.clone() };
    let first = Record::first(room.clone(), now.ms());
    match ports.rooms().append(sale, &first).await? {
        AppendReply::Appended => Ok(room),
        AppendReply::Conflict => match published(ports, sale).await? {
            Some(room) if is_same(&room) => Ok(room),
            Some(_) => Err(Refusal::Differs),
            None => {
                Err(StoreError::Contract(format!("the log of {sale} has lost its first record")))?
            }
        },
    }
}
