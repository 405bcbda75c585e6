//! Draw: close the first window of a room, fix who is in it, and make the seed.
//!
//! 1. The counter of each group is closed, which fixes N.
//! 2. Each bucket gets its marker, and is read after that.
//! 3. The leaves are kept in chunks, and the first draw that writes a chunk decides its content: two concurrent draws
//!    may have read different latecomers, but the chunks of both have every buyer who was answered `Certain`.
//! 4. The tree over the kept chunks is kept. Only then the clock is read and the closing goes into the log: it quotes
//!    nothing, as record 0 names the round that decides.
//! 5. That round makes the seed once it is out, or the secret of a room that has one, by a record of the log.
//!
//! A beacon that does not answer is waited for. Nothing that is kept is written twice, so any number of draws may run
//! concurrently, sleep between any two steps or die, and the next draw continues. A clock decides when the window closes,
//! never who is in the draw.
//!
//! Rooms that were published before and name a beacon close without quoting a round, as their rules have it for a beacon
//! that is silent, and their secret decides.

use futures_util::future::join_all;

use crate::domain::admission::room::draw::{Closing, Commitment, Latest, Source, Terms};
use crate::domain::admission::room::join::{JoinWindow, MAX_INDICES, Membership, Tree};
use crate::domain::admission::room::log::Record;
use crate::domain::admission::room::serving::{Closed, Event, Given, GroupState, Room, State};
use crate::domain::admission::room::tree::{self, CHUNK_LEAVES};
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::{GroupId, SaleId};
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::sale::serving::BEACON_MS;
use crate::flows::room::{last_record, published};
use crate::ports::{AppendReply, Beacon, RoomPorts, Rooms, StoreError, Stored};

/// Buckets that are read, and chunks that are written, at once.
const TOGETHER: u16 = 16;
/// Most attempts to append a record: whoever makes turns appends one a second.
const MAX_ATTEMPTS: usize = 16;

/// How far a draw is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Drawing {
    /// The sale has no room.
    NoRoom,
    /// The window closes at this time.
    NotDue(Timestamp),
    /// N and root stand in the log. The beacon's round is not out, or its servers do not return it.
    AwaitsBeacon {
        round: u64,
        /// When the round is out.
        out_at: Timestamp,
    },
    /// The secret has to decide, and is missing or not the one that was committed to: an operator must act.
    NoSecret,
    /// Every group has its seed.
    Drawn,
}

/// Draws the first window of a sale's room, as far as that is possible now. Repeating it goes on.
///
/// # Errors
/// Fails if the store does.
pub async fn draw(ports: &impl RoomPorts, sale: &SaleId, clock: impl Clock) -> Stored<Drawing> {
    let Some(room) = published(ports, sale).await? else { return Ok(Drawing::NoRoom) };
    let closes_at = closes_at(&room);
    if clock.time() < closes_at {
        return Ok(Drawing::NotDue(closes_at));
    }
    let draw = Draw { ports, room: &room, clock: &clock };
    let last = draw.last_record().await?;
    if last.state.groups.iter().any(|group| group.closed.is_none()) {
        draw.close(closes_at).await?;
    }
    draw.seed().await
}

/// When the first window of a room may be closed: of one that was published before and names a beacon, once its rules
/// allow that no round is quoted.
fn closes_at(room: &Room) -> Timestamp {
    Timestamp::from_ms(match room.draw {
        Terms::Before(Commitment { beacon: Some(_), .. }) => {
            room.settings.closes_without_round_ms()
        }
        Terms::Before(_) | Terms::Beacon(_) | Terms::Secret(_) => room.settings.closes_at_ms,
    })
}

/// Appends a record with the events that the state still lacks; none if it lacks none. It is of the time of the clock,
/// but neither before the last record nor before `least`.
pub(super) async fn record(
    ports: &impl RoomPorts,
    room: &Room,
    clock: &impl Clock,
    least: Timestamp,
    lacking: impl Fn(&State) -> Vec<Event> + Send + Sync,
) -> Stored<()> {
    for _ in 0..MAX_ATTEMPTS {
        let last = last_record(ports, &room.sale).await?;
        let events = lacking(&last.state);
        if events.is_empty() {
            return Ok(());
        }
        // Nothing was counted for this turn, so it serves nobody.
        let joined = last.state.groups.iter().map(|group| group.joined).collect();
        let given = Given { joined, ..Given::default() };
        let at_ms = clock.time().max(least).ms().max(last.at_ms);
        let next = last.next(room, at_ms, events, given);
        let next = next.map_err(|refusal| StoreError::Contract(refusal.to_string()))?;
        match ports.rooms().append(&room.sale, &next).await? {
            AppendReply::Appended => return Ok(()),
            AppendReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable("others append to the log all the time".to_owned()))
}

/// State of a group's source of randomness.
enum Decision {
    Source(Source),
    /// The beacon's round is still to come.
    Awaits {
        round: u64,
    },
    /// The secret should decide, and is missing.
    NoSecret,
}

struct Draw<'a, P, C> {
    ports: &'a P,
    room: &'a Room,
    clock: &'a C,
}

impl<P: RoomPorts, C: Clock> Draw<'_, P, C> {
    fn groups(&self) -> impl Iterator<Item = &GroupId> {
        self.room.settings.groups.iter().map(|settings| &settings.group)
    }

    async fn last_record(&self) -> Stored<Record> {
        last_record(self.ports, &self.room.sale).await
    }

    async fn record(
        &self,
        least: Timestamp,
        lacking: impl Fn(&State) -> Vec<Event> + Send + Sync,
    ) -> Stored<()> {
        record(self.ports, self.room, self.clock, least, lacking).await
    }

    /// Fixes N and root of every group, and records them.
    async fn close(&self, closes_at: Timestamp) -> Stored<()> {
        let mut trees = Vec::new();
        for group in self.groups() {
            trees.push(self.ports.rooms().tree(&self.room.sale, group).await?);
        }
        let trees = match trees.into_iter().collect::<Option<Vec<Tree>>>() {
            Some(trees) => trees,
            None => self.trees().await?,
        };
        let latest_round = self.room.is_of_before().then_some(Latest(None));
        let closings: Vec<(GroupId, Closing)> = self
            .groups()
            .zip(&trees)
            .map(|(group, tree)| {
                let (count, root) = (tree.count, tree.root());
                (group.clone(), Closing { count, root, latest_round })
            })
            .collect();
        self.record(closes_at, |state| {
            let open = closings.iter().zip(&state.groups);
            let open = open.filter(|(_, state)| state.closed.is_none());
            open.map(|((group, closing), _)| Event::Closed {
                group: group.clone(),
                closing: *closing,
            })
            .collect()
        })
        .await
    }

    /// Closes the counters and makes the trees that are not kept yet, chunk by chunk.
    async fn trees(&self) -> Stored<Vec<Tree>> {
        let (rooms, sale) = (self.ports.rooms(), &self.room.sale);
        let mut windows = Vec::new();
        for group in self.groups() {
            // Buyers who got an index above the maximum were refused.
            let count = rooms.close_window(sale, group).await?.min(MAX_INDICES);
            windows.push(Window { group, count, roots: self.kept_roots(group, count).await? });
        }
        if windows.iter().any(|window| window.roots.contains(&None)) {
            let leaves = self.leaves(&windows).await?;
            for (window, leaves) in windows.iter_mut().zip(&leaves) {
                self.keep_chunks(window, leaves).await?;
            }
        }
        let mut trees = Vec::new();
        for Window { group, count, roots } in windows {
            let chunk_roots = roots.into_iter().flatten().collect();
            trees.push(rooms.keep_tree(sale, group, &Tree { count, chunk_roots }).await?);
        }
        Ok(trees)
    }

    /// The roots of a group's chunks, as far as those are kept.
    async fn kept_roots(&self, group: &GroupId, count: u32) -> Stored<Vec<Option<Hash>>> {
        let chunks: Vec<u32> = (0..chunk_count(count)).collect();
        let mut roots = Vec::with_capacity(chunks.len());
        for some in chunks.chunks(TOGETHER.into()) {
            let read =
                some.iter().map(|chunk| self.ports.rooms().chunk(&self.room.sale, group, *chunk));
            for leaves in join_all(read).await {
                roots.push(leaves?.map(|leaves| tree::root(&leaves)));
            }
        }
        Ok(roots)
    }

    /// Keeps the chunks of a group that are missing, and remembers the roots of those that are kept.
    async fn keep_chunks(&self, window: &mut Window<'_>, leaves: &[Hash]) -> Stored<()> {
        let group = window.group;
        let chunks = (0..).zip(leaves.chunks(CHUNK_LEAVES)).zip(&mut window.roots);
        let mut missing: Vec<_> = chunks.filter(|(_, root)| root.is_none()).collect();
        for some in missing.chunks_mut(TOGETHER.into()) {
            let kept = some.iter().map(|((chunk, leaves), _)| {
                self.ports.rooms().keep_chunk(&self.room.sale, group, *chunk, leaves)
            });
            let kept = join_all(kept).await;
            for ((_, root), leaves) in some.iter_mut().zip(kept) {
                **root = Some(tree::root(&leaves?));
            }
        }
        Ok(())
    }

    /// The leaves of every group, from all buckets.
    async fn leaves(&self, windows: &[Window<'_>]) -> Stored<Vec<Vec<Hash>>> {
        let empty = tree::empty_leaf();
        let count = |window: &Window<'_>| usize::try_from(window.count).unwrap_or(usize::MAX);
        let mut leaves: Vec<Vec<Hash>> =
            windows.iter().map(|window| vec![empty; count(window)]).collect();
        let buckets: Vec<u16> = (0..self.ports.buckets()).collect();
        for some in buckets.chunks(TOGETHER.into()) {
            let read = some.iter().map(|bucket| self.bucket(windows, *bucket));
            for members in join_all(read).await {
                for (group, index, leaf) in members? {
                    let slot = leaves.get_mut(group).and_then(|leaves| leaves.get_mut(index));
                    match slot {
                        Some(slot) if *slot == empty => *slot = leaf,
                        Some(_) => {
                            Err(StoreError::Contract(format!("index {index} is held twice")))?
                        }
                        None => Err(StoreError::Contract(format!("index {index} is not below N")))?,
                    }
                }
            }
        }
        Ok(leaves)
    }

    /// Marks a bucket, and then reads it: the group, index and leaf of each member of a first window.
    async fn bucket(
        &self,
        windows: &[Window<'_>],
        bucket: u16,
    ) -> Stored<Vec<(usize, usize, Hash)>> {
        let (rooms, sale) = (self.ports.rooms(), &self.room.sale);
        rooms.mark(sale, bucket).await?;
        let mut members = Vec::new();
        let mut after = None;
        loop {
            let page = rooms.memberships(sale, bucket, after.as_ref()).await?;
            let first = |member: &&Membership| member.index.window == JoinWindow::First;
            for member in page.memberships.iter().filter(first) {
                let group = windows.iter().position(|window| *window.group == member.group);
                let group = group.ok_or_else(|| {
                    StoreError::Contract(format!("a member of an unknown group {}", member.group))
                })?;
                let index = usize::try_from(member.index.number).unwrap_or(usize::MAX);
                members.push((group, index, member.leaf()));
            }
            after = page.next;
            if after.is_none() {
                return Ok(members);
            }
        }
    }

    /// Records the seed of each group whose source is there.
    async fn seed(&self) -> Stored<Drawing> {
        let now = self.clock.time();
        let last = self.last_record().await?;
        let mut sources = Vec::new();
        let mut drawing = Drawing::Drawn;
        let mut least = now;
        for (group, state) in self.groups().zip(&last.state.groups) {
            let GroupState { closed: Some(closed), seed: None, .. } = state else { continue };
            match self.decide(closed, now).await? {
                Decision::Source(source) => {
                    least = least.max(self.out_at(closed));
                    sources.push((group.clone(), source));
                }
                Decision::Awaits { round } => {
                    drawing = Drawing::AwaitsBeacon { round, out_at: self.out_at(closed) };
                }
                Decision::NoSecret => drawing = Drawing::NoSecret,
            }
        }
        self.record(least, |state| {
            let groups = self.groups().zip(&state.groups);
            let undrawn = groups.filter(|(_, state)| state.seed.is_none());
            let source = |group: &GroupId| sources.iter().find(|(of, _)| of == group);
            let drawn = undrawn.filter_map(|(group, _)| source(group));
            drawn
                .map(|(group, source)| Event::Drawn { group: group.clone(), source: *source })
                .collect()
        })
        .await?;
        Ok(drawing)
    }

    /// When the round is out that decides a group. A record is of no earlier time, also by a clock that is behind.
    fn out_at(&self, closed: &Closed) -> Timestamp {
        let round_ms = self.room.round_ms(closed);
        round_ms.map_or(Timestamp::from_ms(closed.at_ms), Timestamp::from_ms)
    }

    /// The source that decides a closed group: the round of the beacon; or the secret of a room that has one, unless the
    /// room was published before and its round may still come.
    async fn decide(&self, closed: &Closed, now: Timestamp) -> Stored<Decision> {
        if let (Some(chain), Some(round)) = (self.room.draw.chain(), self.room.round(closed)) {
            let found = self.ports.beacon().round(chain, round).await;
            if let Ok(Some(signature)) = found {
                return Ok(Decision::Source(Source::Beacon { round, signature }));
            }
            if let Err(error) = found {
                tracing::warn!(sale = %self.room.sale, round, %error, "the beacon says no round");
            }
            let has_time = now.ms().saturating_sub(closed.at_ms) < BEACON_MS;
            if has_time || !self.room.is_of_before() {
                return Ok(Decision::Awaits { round });
            }
        }
        let secret = self.ports.rooms().secret(&self.room.sale).await?;
        let commitment = self.room.draw.commitment();
        let committed = secret.filter(|kept| Some(kept.commitment()) == commitment);
        Ok(committed.map_or(Decision::NoSecret, |secret| Decision::Source(Source::Secret(secret))))
    }
}

/// The first window of a group that is being closed.
struct Window<'a> {
    group: &'a GroupId,
    count: u32,
    /// The roots of the chunks that are kept.
    roots: Vec<Option<Hash>>,
}

/// Chunks of a number of leaves.
fn chunk_count(leaves: u32) -> u32 {
    leaves.div_ceil(u32::try_from(CHUNK_LEAVES).unwrap_or(u32::MAX))
}
