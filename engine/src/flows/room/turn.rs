//! Turn: the process that makes the room document advances the serving number.
//!
//! A process answers the document in Redis for a second. After that, a process that is asked reads the last record, the
//! gates' counts and what is left, and writes the next record on condition that it does not exist. A process that loses
//! that write answers the winner's document; a process that cannot read or write serves nobody, and says so. There is
//! no scheduler and no leader, and if nobody waits, is due or is inside, nothing is written.
//!
//! Redis gives the turn to one process a second, whatever the clocks of processes say, and a turn is dated after the
//! one before. While Redis does not answer, nobody is served, and a process whose clock is behind the log waits until
//! the clock has caught up.

use std::future::Future;

use crate::domain::admission::room::counts::Tally;
use crate::domain::admission::room::document::{Document, Left};
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::serving::{
    Command, Event, FUTURE_MS, Given, Mode, Refusal, Room, State,
};
use crate::domain::admission::room::view::View;
use crate::domain::basics::time::Timestamp;
use crate::flows::room::last_record;
use crate::ports::{AppendReply, Board, BoardPorts, Rooms, Shown, StoreError, Stored};

/// Time for which what is shown is answered, and between two turns, in milliseconds.
pub const TURN_MS: i64 = 1_000;
/// Time for which one process has the turn to itself, in milliseconds: the others answer what is shown.
const TURN_TAKEN_MS: u32 = 900;
/// Most age of what is shown while another process makes the turn, in milliseconds.
const MAX_SHOWN_MS: i64 = 5_000;
/// Time in which only one process requests the draw, in seconds: each request asks for itself again until it is done.
const DRAW_REQUESTED_SECONDS: u32 = 30;
/// Most attempts to append a command: whoever makes turns appends one a second.
const MAX_ATTEMPTS: usize = 16;

/// Result of the flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// What is shown now.
    pub shown: Shown,
    /// Whether the first window is past its closing, and not drawn, and nobody has asked for the draw lately: it is to
    /// be requested.
    pub needs_draw: bool,
}

/// Answers what is shown of a room, and makes a turn if that is a second old. `left` is read only then; it is
/// `None` if what is left is unknown.
///
/// # Errors
/// Fails if the log cannot be read.
pub async fn turn(
    ports: &impl BoardPorts,
    room: &Room,
    left: impl Future<Output = Option<Left>> + Send,
    now: Timestamp,
) -> Stored<Turned> {
    // If the board cannot be read, the turn goes on as if it had forgotten everything.
    let shown = ports.board().shown(&room.sale).await.ok().flatten();
    let age_ms = |shown: &Shown| now.ms_since(shown.made_at);
    if let Some(shown) = shown.clone().filter(|shown| (0..TURN_MS).contains(&age_ms(shown))) {
        return Ok(Turned { shown, needs_draw: false });
    }
    let is_ours = ports.board().take_turn(&room.sale, TURN_TAKEN_MS).await.ok();
    // A document dated by a clock that is ahead is replaced all the same, by the process that has the turn.
    let made_at = shown.as_ref().map_or(now, |shown| now.max(shown.made_at.plus_ms(1)));
    if is_ours == Some(false)
        && let Some(shown) = shown.filter(|shown| age_ms(shown) < MAX_SHOWN_MS)
    {
        return Ok(Turned { shown, needs_draw: false });
    }
    let turn = Turn { now, is_timed: is_ours.is_some() };
    let last = last_record(ports, &room.sale).await?;
    let left = left.await;
    let (advanced, stalled) = match advance(ports, room, &last, left.as_ref(), turn).await {
        Ok(advanced) => (advanced, false),
        Err(error) => {
            tracing::warn!(sale = %room.sale, %error, "no turn could be made");
            (Advanced { record: last, drop_percent: 0 }, true)
        }
    };
    let Advanced { record, drop_percent } = advanced;
    let state = with_joined(ports, room, &record).await;
    let shown = describe_turn(room, (&record, &state), left.as_ref(), (stalled, drop_percent), now);
    let shown = Shown { made_at, ..shown };
    if let Err(error) = ports.board().show(&room.sale, &shown).await {
        tracing::warn!(sale = %room.sale, %error, "the room could not be shown");
    }
    let needs_draw = needs_draw(room, &record, now)
        && ports.board().take_draw(&room.sale, DRAW_REQUESTED_SECONDS).await == Ok(true);
    Ok(Turned { shown, needs_draw })
}

/// The state of a record as it is shown, with the indices given by now if a first window is open: no turn is made then, so
/// no record would have them.
async fn with_joined(ports: &impl BoardPorts, room: &Room, record: &Record) -> State {
    let mut shown = record.state.clone();
    for (settings, state) in room.settings.groups.iter().zip(&mut shown.groups) {
        if state.closed.is_none()
            && let Ok(joined) = ports.rooms().joined(&room.sale, &settings.group).await
        {
            state.joined = state.joined.max(joined);
        }
    }
    shown
}

/// When a turn is made.
#[derive(Debug, Clone, Copy)]
struct Turn {
    now: Timestamp,
    /// Whether Redis has given the turn.
    is_timed: bool,
}

/// Carries out an operator's command: it is a record of the log, and is shown at once.
///
/// # Errors
/// Returns the rules' refusal; fails if the log cannot be read or written, or if the command stands in the log and is
/// not shown: then the gates know of it by the next turn only, and the operator is to repeat it.
pub async fn command(
    ports: &impl BoardPorts,
    room: &Room,
    command: &Command,
    left: impl Future<Output = Option<Left>> + Send,
    now: Timestamp,
) -> Stored<Result<Shown, Refusal>> {
    let left = left.await;
    for _ in 0..MAX_ATTEMPTS {
        let last = last_record(ports, &room.sale).await?;
        // Nothing was counted for this turn, so it serves nobody.
        let joined = last.state.groups.iter().map(|group| group.joined).collect();
        let free = left.as_ref().map(|left| left.free);
        let given = Given { free, joined, ..Given::default() };
        // Commands do not depend on time, and a clock that is behind must not stop one.
        let at_ms = now.ms().max(last.at_ms);
        let events = vec![Event::Command(command.clone())];
        let next = match last.next(room, at_ms, events, given) {
            Ok(next) => next,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match ports.rooms().append(&room.sale, &next).await? {
            AppendReply::Appended => {
                let state = with_joined(ports, room, &next).await;
                let shown = describe_turn(room, (&next, &state), left.as_ref(), (false, 0), now);
                // Showing is repeated: the gates must know the command within two seconds, even if nobody requests the
                // document.
                if ports.board().show(&room.sale, &shown).await.is_err() {
                    ports.board().show(&room.sale, &shown).await?;
                }
                return Ok(Ok(shown));
            }
            AppendReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable("others append to the log all the time".to_owned()))
}

/// Result of a turn.
struct Advanced {
    record: Record,
    /// The requests of a hundred that clients are to leave out, by what was counted for it.
    drop_percent: u64,
}

/// The next record if a turn is due, else the last one.
async fn advance(
    ports: &impl BoardPorts,
    room: &Room,
    last: &Record,
    left: Option<&Left>,
    Turn { now, is_timed }: Turn,
) -> Stored<Advanced> {
    let stays = || Advanced { record: last.clone(), drop_percent: 0 };
    let state = &last.state;
    let is_running = now.ms() >= room.settings.opens_at_ms && state.mode != Mode::Closed;
    let since_ms = now.ms().saturating_sub(last.at_ms);
    // Without Redis nothing limits how often turns are made: a clock that is behind the log counts nothing.
    let is_too_early = (0..TURN_MS).contains(&since_ms) || (since_ms < 0 && !is_timed);
    if !is_running || !state.is_drawn() || is_too_early {
        return Ok(stays());
    }
    let mut joined = Vec::with_capacity(room.settings.groups.len());
    for settings in &room.settings.groups {
        joined.push(ports.rooms().joined(&room.sale, &settings.group).await?);
    }
    let mut groups = state.groups.iter().zip(&joined);
    let is_awaited = groups.any(|(group, joined)| group.passed < group.joined.max(*joined));
    if !is_awaited && state.idle_ms >= room.settings.longest_visit_ms() {
        return Ok(stays());
    }
    let oldest = Tally::oldest_mark(&room.settings, state.clock_ms);
    // If what is left is unknown, the turn serves nobody, but is made so that visits run out.
    let tally = ports.board().tally(&room.sale, oldest, now).await.ok();
    let drop_percent = tally.as_ref().map_or(0, Tally::drop_percent);
    let given = Given {
        free: left.map(Left::to_give),
        joined,
        counts: tally.as_ref().map(|tally| tally.counts(&room.settings, state.clock_ms)),
        reservations: tally.map(|tally| tally.reservations).unwrap_or_default(),
    };
    let next = last.next(room, dated(last.at_ms, now), Vec::new(), given);
    let next = next.map_err(|refusal| StoreError::Contract(refusal.to_string()))?;
    let record = match ports.rooms().append(&room.sale, &next).await? {
        AppendReply::Appended => next,
        AppendReply::Conflict => last_record(ports, &room.sale).await?,
    };
    Ok(Advanced { record, drop_percent })
}

/// The time of the record of a turn that is made at `now`, in milliseconds since the Unix epoch: after the record
/// before. If the clock is behind that record, the turn is dated after it by the second that the turn counts. If the
/// log's time went back, the next turn of the clock that is ahead would count all of the time between the two again: a
/// minute of each visit for each turn.
fn dated(last_ms: i64, now: Timestamp) -> i64 {
    let counted_ms = i64::try_from(FUTURE_MS).unwrap_or(i64::MAX);
    if now.ms() < last_ms { last_ms.saturating_add(counted_ms) } else { now.ms() }
}

/// What is shown of a record. A board that does not take it is made again by the next who asks. The pair says whether a
/// turn was due and could not be made, and the share that clients are to leave out.
fn describe_turn(
    room: &Room,
    (record, state): (&Record, &State),
    left: Option<&Left>,
    (stalled, drop_percent): (bool, u64),
    now: Timestamp,
) -> Shown {
    let nothing_left = now.ms() >= room.settings.opens_at_ms && left.is_some_and(Left::is_nothing);
    let mut document = Document::new(room, (record, state), left, stalled, now);
    document.poll.drop_percent = drop_percent;
    Shown {
        view: View::of(record, nothing_left),
        document: serde_json::to_string(&document)
            .unwrap_or_else(|error| unreachable!("a document is always JSON: {error}")),
        made_at: now,
    }
}

/// True if the first window of a group is past its closing, and not drawn.
pub(super) fn needs_draw(room: &Room, record: &Record, now: Timestamp) -> bool {
    now.ms() >= room.settings.closes_at_ms
        && record.state.groups.iter().any(|group| group.seed.is_none())
}
