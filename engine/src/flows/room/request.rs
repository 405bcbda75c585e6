//! Request draws: sends a message for each room whose draw is due, repeatedly until the room is drawn. The same check
//! of every room finds the age of its last turn, and a record that was dated by a clock that is ahead.

use futures_util::future::join_all;

use super::draw::{Drawing, draw};
use super::turn::needs_draw;
use super::{last_record, published};
use crate::domain::admission::room::log::{Entry, Record};
use crate::domain::admission::room::serving::{Mode, Room};
use crate::domain::basics::ids::SaleId;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::ports::{Catalogue, Freshness, Ports, Queue, RoomPorts, Stored, delay_seconds};

/// Seconds until a draw whose round is out asks the beacon again: those between two rounds of quicknet.
const AGAIN_SECONDS: i32 = 3;
/// Milliseconds after its time for which a round is asked for so often. A beacon that is silent for longer is asked once a
/// minute, by the messages of [`request_due`]: each of them, and each copy, would else go on by itself for as long.
const EAGER_MS: i64 = 60_000;
/// Seconds before a closing from which on its draw is requested, by a message that comes with the closing: more than the
/// time between two checks, so that no draw begins later than its closing.
const AHEAD_SECONDS: i64 = 90;
/// Rooms checked concurrently.
const TOGETHER: usize = 16;
/// Milliseconds by which a record may be dated after the time of the check: synchronised clocks differ by less.
const MAX_AHEAD_MS: i64 = 60_000;

/// Runs [`draw`], and sends a delayed message for another run if it is not time yet, if the beacon's round is to come, or if
/// its time has come within a minute. If the secret is missing, no message is sent, because no repetition brings it; if the
/// draw fails, its own message comes again.
///
/// # Errors
/// As [`draw`], and if the queue fails.
pub async fn draw_or_requeue(
    ports: &(impl Ports + RoomPorts),
    sale: &SaleId,
    clock: impl Clock,
) -> Stored<Drawing> {
    // Boxed because the future is large: the caller reserves room for it once.
    let drawing = Box::pin(draw(ports, sale, || clock.time())).await?;
    let now = clock.time();
    let delay = match drawing {
        Drawing::AwaitsBeacon { out_at, .. } if now < out_at => Some(delay_seconds(now, out_at)),
        Drawing::AwaitsBeacon { out_at, .. } if now.ms_since(out_at) < EAGER_MS => {
            Some(AGAIN_SECONDS)
        }
        Drawing::AwaitsBeacon { .. } => None,
        Drawing::NotDue(at) => Some(delay_seconds(now, at)),
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
    /// Rooms whose draw is due and not finished, or due within a minute and a half: a message was sent for each.
    pub requested: u32,
    /// Those of them whose sale has opened: serving waits for the draw.
    pub late: u32,
    /// Rooms that could not be looked at, or whose message was not sent.
    pub failed: u32,
    /// Rooms whose last record is dated more than a minute from now. A clock is wrong: this one, or that of the process
    /// which has closed, opened or drawn by it before the time.
    pub ahead: u32,
    /// Age of the oldest last turn of a room that is open, and in which somebody waits and seats were free, in
    /// milliseconds; 0 if there is none.
    pub oldest_turn_ms: u64,
}

/// Requests the draw of each sale that has a room, whose closing time is past, and that is not drawn. So a draw that
/// nobody else has requested, or that was cut off, continues.
///
/// # Errors
/// Fails only if the sales cannot be listed; a room that fails is counted.
pub async fn request_due(ports: &(impl Ports + RoomPorts), now: Timestamp) -> Stored<Requested> {
    let sales = ports.catalogue().sales().await?;
    let mut requested = Requested::default();
    for some in sales.chunks(TOGETHER) {
        let each = some.iter().map(|sale| Box::pin(request_one(ports, sale, now)));
        for (sale, found) in some.iter().zip(join_all(each).await) {
            let found = found.map(|(found, is_ahead)| {
                requested.ahead += u32::from(is_ahead);
                found
            });
            match found {
                Ok(Found::Nothing) => {}
                Ok(Found::Requested { is_late }) => {
                    requested.requested += 1;
                    requested.late += u32::from(is_late);
                }
                Ok(Found::Waits { turn_ms }) => {
                    requested.oldest_turn_ms = requested.oldest_turn_ms.max(turn_ms);
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

/// What one sale needs.
enum Found {
    /// Nothing: it has no room, or nobody waits in it now.
    Nothing,
    /// Its draw was requested.
    Requested {
        /// Whether the sale has opened.
        is_late: bool,
    },
    /// Somebody waits in its room for a turn.
    Waits {
        /// Age of the last one, in milliseconds.
        turn_ms: u64,
    },
}

/// Requests the draw of one sale, if it is due. Says too whether its log is ahead.
async fn request_one(
    ports: &(impl Ports + RoomPorts),
    sale: &SaleId,
    now: Timestamp,
) -> Stored<(Found, bool)> {
    let Some(room) = published(ports, sale).await? else { return Ok((Found::Nothing, false)) };
    let last = last_record(ports, sale).await?;
    let ahead_ms = last.at_ms.saturating_sub(now.ms());
    let is_ahead = ahead_ms > MAX_AHEAD_MS;
    if is_ahead {
        let record = last.number;
        tracing::error!(%sale, record, ahead_ms, "the room's log is ahead: a clock is wrong");
    }
    Ok((request_if_due(ports, &room, &last, now).await?, is_ahead))
}

/// Requests the draw of one room if its last record says that the draw is due.
async fn request_if_due(
    ports: &(impl Ports + RoomPorts),
    room: &Room,
    last: &Record,
    now: Timestamp,
) -> Stored<Found> {
    let sale = &room.sale;
    let has_opened = now.ms() >= room.settings.opens_at_ms;
    if needs_draw(room, last, now) {
        ports.queue().draw(sale, None).await?;
        return Ok(Found::Requested { is_late: has_opened });
    }
    let closes_at = Timestamp::from_ms(room.settings.closes_at_ms);
    if needs_draw(room, last, now.plus_seconds(AHEAD_SECONDS)) {
        ports.queue().draw(sale, Some(delay_seconds(now, closes_at))).await?;
        return Ok(Found::Requested { is_late: false });
    }
    if !has_opened || !awaits_turn(last) {
        return Ok(Found::Nothing);
    }
    let published = ports.catalogue().sale(sale, Freshness::Cached).await?;
    let is_open = published.is_some_and(|published| {
        !published.lifecycle.is_over() && now < published.sale.sells_until()
    });
    let turn_ms = u64::try_from(now.ms().saturating_sub(last.at_ms)).unwrap_or(0);
    Ok(if is_open { Found::Waits { turn_ms } } else { Found::Nothing })
}

/// True if somebody waits by the last record, and it does not say that nothing was free.
fn awaits_turn(last: &Record) -> bool {
    let was_free = match &last.entry {
        Entry::Turn { given, .. } => given.free != Some(0),
        Entry::Published(_) => true,
    };
    let mut groups = last.state.groups.iter();
    was_free && last.state.mode != Mode::Closed && groups.any(|group| group.serving < group.joined)
}
