//! Request draws: a message for each room that is to be drawn, and again until it is.

use futures_util::future::join_all;

use super::draw::{Drawing, draw};
use super::turn::needs_draw;
use super::{last_record, published};
use crate::domain::ids::SaleId;
use crate::domain::time::{Clock, Timestamp};
use crate::ports::{Catalogue, Ports, Queue, RoomPorts, Stored, delay_seconds};

/// Seconds until a draw that awaits the beacon asks again: those between two rounds of quicknet.
const AGAIN_SECONDS: i32 = 3;
/// Rooms that are looked at together.
const TOGETHER: usize = 16;

/// [`draw`], which asks for itself again by a delayed message: while the beacon's round is to come, and if it
/// is not time yet. Not so without a secret, which no repetition brings, nor if it fails: then its message
/// comes again.
///
/// # Errors
/// As [`draw`], and if the queue fails.
pub async fn draw_or_requeue(
    ports: &(impl Ports + RoomPorts),
    sale: &SaleId,
    clock: impl Clock,
) -> Stored<Drawing> {
    // Boxed, as it is large: whoever waits for this has room for it once.
    let drawing = Box::pin(draw(ports, sale, || clock.time())).await?;
    let delay = match drawing {
        Drawing::BeaconSilent | Drawing::AwaitsBeacon { .. } => Some(AGAIN_SECONDS),
        Drawing::NotDue(at) => Some(delay_seconds(clock.time(), at)),
        Drawing::NoRoom | Drawing::NoSecret | Drawing::Drawn => None,
    };
    if delay.is_some() {
        ports.queue().draw(sale, delay).await?;
    }
    Ok(drawing)
}

/// What [`request_due`] found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requested {
    /// Rooms whose draw is due and not finished: a message was sent for each.
    pub requested: u32,
    /// Those of them whose sale has opened: serving waits for the draw.
    pub late: u32,
    /// Rooms that could not be looked at, or whose message was not sent.
    pub failed: u32,
}

/// Requests the draw of each sale that has a room, whose closing time is past, and that is not drawn. What
/// nobody else has asked for, or what was cut off, so goes on.
///
/// # Errors
/// Fails only if the sales cannot be listed; a room that fails is counted.
pub async fn request_due(ports: &(impl Ports + RoomPorts), now: Timestamp) -> Stored<Requested> {
    let sales = ports.catalogue().sales().await?;
    let mut requested = Requested::default();
    for some in sales.chunks(TOGETHER) {
        let each = some.iter().map(|sale| Box::pin(request_one(ports, sale, now)));
        for (sale, found) in some.iter().zip(join_all(each).await) {
            match found {
                Ok(None) => {}
                Ok(Some(is_late)) => {
                    requested.requested += 1;
                    requested.late += u32::from(is_late);
                }
                Err(error) => {
                    tracing::warn!(%sale, %error, "whether its draw is due is not known");
                    requested.failed += 1;
                }
            }
        }
    }
    Ok(requested)
}

/// Requests the draw of one sale, if it is due; whether it is late.
async fn request_one(
    ports: &(impl Ports + RoomPorts),
    sale: &SaleId,
    now: Timestamp,
) -> Stored<Option<bool>> {
    let Some(room) = published(ports, sale).await? else { return Ok(None) };
    if !needs_draw(&room, &last_record(ports, sale).await?, now) {
        return Ok(None);
    }
    ports.queue().draw(sale, None).await?;
    Ok(Some(now.ms() >= room.settings.opens_at_ms))
}
