//! Publish a room: name the round of the beacon that decides its draw, or commit to a secret, and begin the log.

use crate::domain::admission::room::draw::{BeaconChain, NoRound, Terms};
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::serving::Room;
use crate::domain::basics::bytes::Secret;
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::serving::{InvalidSettings, Settings};
use crate::flows::room::published;
use crate::ports::{AppendReply, RoomPorts, Rooms, StoreError};

/// What is to decide the draw of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrawBy {
    /// A round of this chain. No secret is made or kept.
    Beacon(BeaconChain),
    /// This secret, unless one is kept already. It must be random: who can guess it knows the draw.
    Secret(Secret),
}

/// Why a room was not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A setting breaks its rule.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// No round of the beacon can be named.
    #[error(transparent)]
    Round(#[from] NoRound),
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

/// True if what decides a room may be said of it again. A room that was published before without a beacon is drawn by
/// its secret, whatever the deployment's beacon is now.
fn is_decided_by(room: &Room, draw_by: &DrawBy) -> bool {
    match (&room.draw, draw_by) {
        (Terms::Beacon(named), DrawBy::Beacon(chain)) => named.chain == chain.chain,
        (Terms::Secret(_), DrawBy::Secret(_)) => true,
        (Terms::Before(before), DrawBy::Beacon(chain)) => {
            before.beacon.is_none_or(|beacon| beacon == chain.chain)
        }
        (Terms::Before(before), DrawBy::Secret(_)) => before.beacon.is_none(),
        (Terms::Beacon(_), DrawBy::Secret(_)) | (Terms::Secret(_), DrawBy::Beacon(_)) => false,
    }
}

/// Publishes the room of a sale with `stock` seat-legs for sale. Repeating it finishes what a crash left.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn publish(
    ports: &impl RoomPorts,
    sale: &SaleId,
    settings: &Settings,
    stock: u64,
    draw_by: &DrawBy,
    now: Timestamp,
) -> Result<Room, Refusal> {
    settings.check()?;
    let is_same =
        |room: &Room| is_decided_by(room, draw_by) && are_the_same(settings, &room.settings);
    if let Some(room) = published(ports, sale).await? {
        return if is_same(&room) { Ok(room) } else { Err(Refusal::Differs) };
    }
    let draw = match draw_by {
        DrawBy::Beacon(chain) => {
            Terms::Beacon(chain.name(settings.closes_at_ms, settings.opens_at_ms, now.ms())?)
        }
        DrawBy::Secret(secret) => {
            Terms::Secret(ports.rooms().keep_secret(sale, secret).await?.commitment())
        }
    };
    let room = Room::new(sale.clone(), draw, stock, settings.clone());
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
