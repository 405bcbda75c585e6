//! What must hold in a room after every step, with the numbers of `docs/correctness.md`.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::domain::admission::room::draw::{Source, Terms, Window, later_seed};
use engine::domain::admission::room::join::{JoinWindow, Membership, Tree, bucket_of};
use engine::domain::admission::room::log::{Entry, NONE_BEFORE, Record};
use engine::domain::admission::room::serving::{Event, GroupState, MAX_VISIT_STEP_MS, Mode, Room};
use engine::domain::admission::room::tree;
use engine::domain::admission::room::view::View;
use engine::domain::admission::room::visit::{Enter, EnterReply, Visit};
use engine::domain::basics::bytes::{Hash, Secret};
use engine::domain::basics::ids::{GroupId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::ports::{AppendReply, Shown};
use model_stores::{BeaconModel, Call, Reply};

use super::{BUCKETS, BeaconPlan};
use crate::environment::{Environment, Pool};
use crate::plan::sale_id;

/// A place or an index of a group.
type Of = (GroupId, u32);

/// A broken rule: its number and what was found.
type Broken = (&'static str, String);

/// What was decided, told and shown in a room.
#[derive(Debug, Default)]
pub(crate) struct RoomOracle {
    /// The records of the log, each with its line.
    log: Vec<(Record, Arc<str>)>,
    /// The true time of the closing's record.
    closed_at: Option<Timestamp>,
    secret: Option<Secret>,
    /// N of each group.
    counts: BTreeMap<GroupId, u32>,
    chunks: BTreeMap<Of, Vec<Hash>>,
    trees: BTreeMap<GroupId, Tree>,
    /// When the last tree was kept.
    fixed_at: Option<Timestamp>,
    /// Every membership that somebody was answered to be certain.
    told: Vec<Membership>,
    /// Who was ever given an index.
    holders: BTreeMap<Of, UserId>,
    /// The visits, by index.
    visits: BTreeMap<Of, Visit>,
    /// The index that came with each place.
    visited: BTreeMap<Of, u32>,
    /// Number of answers that let somebody in, by index.
    let_in: BTreeMap<Of, u16>,
    /// Who was answered that the visit has begun, by index.
    looked: BTreeSet<Of>,
}

impl RoomOracle {
    /// The record of a number, the last one without one.
    pub(crate) fn record(&self, number: Option<u64>) -> Option<&Record> {
        let found = match number {
            None => self.log.last(),
            Some(number) => self.log.get(usize::try_from(number).unwrap_or(usize::MAX)),
        };
        found.map(|(record, _)| record)
    }

    pub(crate) fn room(&self) -> Option<&Room> {
        match &self.log.first()?.0.entry {
            Entry::Published(room) => Some(room),
            Entry::Turn { .. } => None,
        }
    }

    fn at(&self, group: &GroupId) -> Option<usize> {
        let groups = &self.room()?.settings.groups;
        groups.iter().position(|known| known.group == *group)
    }

    /// The place that was drawn for an index, by the log alone; `None` while it is not drawn.
    pub(crate) fn place(&self, group: &GroupId, index: u32) -> Option<u32> {
        let at = self.at(group)?;
        let of = |record: &Record| -> Option<GroupState> { record.state.groups.get(at).cloned() };
        let ends = self.log.partition_point(|(record, _)| {
            record.state.groups.get(at).is_none_or(|group| group.window_end <= index)
        });
        let (record, line) = self.log.get(ends)?;
        let state = of(record)?;
        let closing = state.closed?.closing;
        if index < closing.count {
            return Window::new(state.seed?, 0, closing.count).place(index);
        }
        let seed = later_seed(Hash::of_parts(&[line.as_bytes()]), group);
        Window::new(seed, state.window_first, state.window_end).place(index)
    }

    /// Whether every group is drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        let mut groups = self.log.last().into_iter().flat_map(|(last, _)| &last.state.groups);
        !self.log.is_empty() && groups.all(|group| group.seed.is_some())
    }

    /// The round that the draw awaits, if its window is closed.
    pub(crate) fn awaited(&self) -> Option<u64> {
        let group = self.log.last()?.0.state.groups.first()?;
        self.room()?.round(&group.closed?)
    }

    /// Whether the beacon's rounds can be asked for.
    pub(crate) fn hears(&self, beacon: BeaconPlan, now: Timestamp) -> bool {
        match (beacon, self.closed_at) {
            (BeaconPlan::Unnamed, _) => false,
            (BeaconPlan::Comes | BeaconPlan::Late(_) | BeaconPlan::Ahead(_), _) | (_, None) => true,
            (BeaconPlan::SilentFor(None), Some(_)) => false,
            (BeaconPlan::SilentFor(Some(ms)), Some(at)) => now >= at.plus_ms(ms),
        }
    }
}

fn must(holds: bool, rule: &'static str, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err((rule, what())) }
}

/// Remembers what is decided once; refuses another.
fn once<K: Ord, V: PartialEq>(
    map: &mut BTreeMap<K, V>,
    key: K,
    value: V,
    what: &str,
) -> Result<(), Broken> {
    match map.entry(key) {
        Slot::Vacant(slot) => {
            slot.insert(value);
            Ok(())
        }
        Slot::Occupied(kept) => must(*kept.get() == value, "R3", || format!("{what} changed")),
    }
}

impl Environment {
    fn member(&self, buyer: &UserId) -> Option<Membership> {
        self.stores.rooms.membership(&sale_id(), bucket_of(buyer, BUCKETS), buyer)
    }

    /// The answer from a log whose lines were read before: reading them again takes most of a run.
    pub(crate) fn read_log(&self, call: &Call) -> Option<Reply> {
        let log = &self.oracle.room;
        match call {
            Call::LastRecord { .. } => Some(Reply::LastRecord(log.record(None).cloned())),
            Call::RoomRecord { number, .. } => {
                Some(Reply::RoomRecord(log.record(Some(*number)).cloned()))
            }
            _ => None,
        }
    }

    /// Checks what a call did to a room.
    pub(crate) fn after_room(&mut self, call: &Call, reply: &Reply) {
        if let Err((rule, what)) = self.room_holds(call, reply) {
            self.broken(rule, what);
        }
    }

    fn room_holds(&mut self, call: &Call, reply: &Reply) -> Result<(), Broken> {
        match (call, reply) {
            (Call::KeepSecret { .. }, Reply::KeepSecret(kept)) => {
                let plan = self.plan.room.as_ref().map(|room| room.beacon);
                must(plan == Some(BeaconPlan::Unnamed), "R3", || "a secret is kept".to_owned())?;
                let first = *self.oracle.room.secret.get_or_insert(*kept);
                must(first == *kept, "R3", || "the secret changed".to_owned())
            }
            (Call::Append { record, .. }, Reply::Append(AppendReply::Appended)) => {
                self.appended(record)
            }
            (Call::CloseWindow { group, .. }, Reply::CloseWindow(count)) => {
                once(&mut self.oracle.room.counts, group.clone(), *count, "N")
            }
            (Call::KeepChunk { group, chunk, .. }, Reply::KeepChunk(leaves)) => {
                let key = (group.clone(), *chunk);
                once(&mut self.oracle.room.chunks, key, leaves.clone(), "a chunk of leaves")?;
                self.told_hold()
            }
            (Call::KeepTree { group, .. }, Reply::KeepTree(tree)) => self.tree_kept(group, tree),
            (Call::Join { membership, .. }, Reply::Join(_)) => self.joined(&membership.buyer),
            (Call::Enter { enter }, Reply::Enter(EnterReply::Entered(entered))) => {
                let how = if enter.admits() { "room: entered" } else { "room: looked" };
                self.tally.reach(how);
                if enter.admits() && enter.begun_only && entered.decides() {
                    self.tally.reach("room: entered, having looked until the place had run out");
                }
                self.visited(enter, &entered.visit)
            }
            (Call::Enter { .. }, Reply::Enter(reply)) => {
                let what = format!("room: {reply:?}");
                self.tally.reach(&what);
                Ok(())
            }
            (Call::ShowRoom { shown, .. }, Reply::ShowRoom(())) => self.shown(shown),
            _ => Ok(()),
        }
    }

    /// R3, R8: a record stays as it was first written, has the hash of the one before, and is what the rules
    /// make of it.
    fn appended(&mut self, record: &Record) -> Result<(), Broken> {
        let stored = self.stores.rooms.logs.get(&sale_id());
        let line = stored.and_then(|log| log.get(&record.number)).cloned();
        let Some(line) = line else { return Err(("R3", "a record is not there".to_owned())) };
        let number = usize::try_from(record.number).unwrap_or(usize::MAX);
        let log = &self.oracle.room.log;
        if let Some((_, kept)) = log.get(number) {
            return must(*kept == line, "R3", || format!("record {number} changed"));
        }
        let before = log.last().map_or(NONE_BEFORE, |(_, line)| Hash::of_parts(&[line.as_bytes()]));
        must(number == log.len() && record.before == before, "R3", || {
            format!("record {number} does not follow the {} before it", log.len())
        })?;
        let (mut has_served, mut has_ended_window) = (false, false);
        if let (Some((last, _)), Some(room), Entry::Turn { events, given }) =
            (log.last(), self.oracle.room.room(), &record.entry)
        {
            let made = last.state.turn(room, last.at_ms, record.at_ms, events, given);
            must(made.as_ref() == Ok(&record.state), "R8", || {
                format!("record {number} is not what the rules make of it")
            })?;
            let mut groups = last.state.groups.iter().zip(&record.state.groups);
            let back = groups.clone().any(|(before, after)| {
                after.serving < before.serving || after.passed < before.passed
            });
            must(!back, "R8", || format!("record {number} takes a serving number back"))?;
            has_served = groups.clone().any(|(before, after)| after.serving > before.serving);
            has_ended_window = groups.any(|(before, after)| {
                before.seed.is_some() && after.window_end > before.window_end
            });
        }
        if let Entry::Turn { events, .. } = &record.entry {
            events.iter().try_for_each(|event| self.event(record, event))?;
        }
        if has_served {
            self.tally.reach("room: served");
        }
        if has_ended_window {
            self.tally.reach("room: later window");
        }
        self.oracle.room.log.push((record.clone(), line));
        self.clock_of_visits_is_right(record)
    }

    /// R11: the clock of visits goes as time does. Each clock that is wrong may make it jump by a minute once,
    /// and while a record is ahead of the clock of who makes the next, a turn counts a second.
    fn clock_of_visits_is_right(&self, record: &Record) -> Result<(), Broken> {
        let elapsed_ms = u64::try_from(self.elapsed_ms()).unwrap_or(0);
        let most_ms = elapsed_ms * 3 / 2 + MAX_VISIT_STEP_MS * (1 + self.clocks(Pool::Room));
        let clock_ms = record.state.clock_ms;
        must(clock_ms <= most_ms, "R11", || {
            format!("after {elapsed_ms} ms the clock of visits is at {clock_ms} ms")
        })
    }

    /// R3, R4: N and root are those of the kept tree, and a closing by a right clock is not dated before they were kept; the
    /// round is the one that record 0 names, or the one that its series has after a late closing, and it is the true one; a
    /// secret is that of the commitment, and of a room without a beacon.
    fn event(&mut self, record: &Record, event: &Event) -> Result<(), Broken> {
        match event {
            Event::Closed { group, closing } => {
                self.oracle.room.closed_at.get_or_insert(self.now);
                let tree = self.oracle.room.trees.get(group);
                let is_its = tree
                    .is_some_and(|tree| (tree.count, tree.root()) == (closing.count, closing.root));
                must(is_its, "R3", || format!("{group} is closed with another N or root"))?;
                let (fixed, is_right) =
                    (self.oracle.room.fixed_at, self.clocks_are_right(Pool::Room));
                let dated = Timestamp::from_ms(record.at_ms);
                must(!is_right || fixed.is_some_and(|fixed| fixed <= dated), "R4", || {
                    format!("the closing is dated {dated}, the root was fixed at {fixed:?}")
                })
            }
            Event::Drawn { group, source: Source::Beacon { round, signature } } => {
                let room = self.oracle.room.room().map(|room| room.draw);
                let closed = self
                    .oracle
                    .room
                    .at(group)
                    .and_then(|at| record.state.groups.get(at).and_then(|group| group.closed));
                let named = closed.zip(room).and_then(|(closed, terms)| match terms {
                    Terms::Beacon(named) => Some((named, closed.at_ms)),
                    Terms::Secret(_) | Terms::Before(_) => None,
                });
                let Some((named, closed_ms)) = named else {
                    return Err(("R4", "a round decides that no record names".to_owned()));
                };
                let in_time = closed_ms < named.time_ms(named.round);
                let is_named = *round == named.round;
                let is_of_series = *round % 200 == 0
                    && named.time_ms(*round) > closed_ms
                    && named.time_ms(*round - 200) <= closed_ms;
                must(if in_time { is_named } else { is_of_series }, "R4", || {
                    format!("round {round} decides a closing at {closed_ms}, {named:?}")
                })?;
                must(named.time_ms(*round) <= record.at_ms, "R4", || {
                    format!("round {round} decides before it is out")
                })?;
                let is_true = *signature == BeaconModel::signature(*round);
                must(is_true, "R4", || format!("it is drawn by another round than {round}"))?;
                self.tally.reach(if in_time {
                    "room: drawn by the beacon"
                } else {
                    "room: drawn after a late closing"
                });
                Ok(())
            }
            Event::Drawn { source: Source::Secret(secret), .. } => {
                self.tally.reach("room: drawn by the secret");
                must(self.oracle.room.secret == Some(*secret), "R3", || {
                    "it is drawn by another secret".to_owned()
                })
            }
            Event::Command(command) => {
                let name = crate::oracle::debug_head(command);
                self.tally.reach(&format!("room: {name}"));
                Ok(())
            }
        }
    }

    /// R3: the tree is over the chunks that are kept, and over as many leaves as were given.
    fn tree_kept(&mut self, group: &GroupId, tree: &Tree) -> Result<(), Broken> {
        let room = &mut self.oracle.room;
        let is_new = !room.trees.contains_key(group);
        once(&mut room.trees, group.clone(), tree.clone(), "a tree")?;
        if !is_new {
            return Ok(());
        }
        room.fixed_at = Some(self.now);
        let of_it = room.chunks.iter().filter(|((of, _), _)| of == group);
        let roots: Vec<Hash> = of_it.map(|(_, leaves)| tree::root(leaves)).collect();
        let is_over = roots == tree.chunk_roots && room.counts.get(group) == Some(&tree.count);
        must(is_over, "R3", || format!("the tree of {group} is not over its leaves"))
    }

    /// R1: nobody has an index that somebody else has or had.
    fn joined(&mut self, buyer: &UserId) -> Result<(), Broken> {
        if let Some(member) = self.member(buyer) {
            if member.rejoined > 0 {
                self.tally.reach("room: joined again");
            }
            let key = (member.group.clone(), member.index.number);
            let holder = self.oracle.room.holders.entry(key).or_insert_with(|| buyer.clone());
            let holder = holder.clone();
            must(holder == *buyer, "R1", || {
                format!("{buyer} has index {}, which is {holder}'s", member.index.number)
            })?;
        }
        self.told_hold()
    }

    /// R2: who was answered `Certain` keeps the membership, and the tree has it.
    fn told_hold(&self) -> Result<(), Broken> {
        self.oracle.room.told.iter().try_for_each(|told| self.is_kept(told))
    }

    fn is_kept(&self, told: &Membership) -> Result<(), Broken> {
        let Membership { buyer, group, index, .. } = told;
        let kept = self.member(buyer);
        let same = |kept: &Membership| {
            let is_it = Membership { visit: None, ..kept.clone() } == *told;
            kept.rejoined > told.rejoined || kept.rejoined == told.rejoined && is_it
        };
        must(kept.as_ref().is_some_and(same), "R2", || {
            format!("{buyer} was told index {}, and has {kept:?}", index.number)
        })?;
        let count = self.oracle.room.counts.get(group);
        let is_below = count.is_none_or(|count| index.number < *count);
        must(is_below == (index.window == JoinWindow::First), "R2", || {
            format!("{buyer} was told index {} of the wrong window", index.number)
        })?;
        let (chunk, at) = told.position();
        let leaves = self.oracle.room.chunks.get(&(group.clone(), chunk));
        let is_first = index.window == JoinWindow::First;
        let is_in = leaves.is_none_or(|leaves| leaves.get(at) == Some(&told.leaf()));
        must(!is_first || is_in, "R2", || {
            format!("{buyer} was told to be in the draw with index {}, and is not", index.number)
        })
    }

    /// Somebody is answered `Certain`.
    pub(crate) fn tell(&mut self, membership: &Membership) {
        let told = Membership { visit: None, ..membership.clone() };
        if self.oracle.room.told.contains(&told) {
            return;
        }
        let held = self.joined(&told.buyer).and_then(|()| self.is_kept(&told));
        self.oracle.room.told.push(told);
        if let Err((rule, what)) = held {
            self.broken(rule, what);
        }
    }

    /// R6, R7: a visit is of the place that was drawn, which was due by the record it names; it begins once,
    /// no place has two, and its attempts are bounded.
    fn visited(&mut self, enter: &Enter, visit: &Visit) -> Result<(), Broken> {
        let room = &self.oracle.room;
        let Visit { place, turn, attempts, .. } = *visit;
        let at = room.at(&enter.group);
        let record = room.record(Some(turn));
        let serving = at.zip(record).and_then(|(at, record)| record.state.groups.get(at));
        must(serving.is_some_and(|group| place < group.serving), "R6", || {
            format!("place {place} is let in by record {turn}, and was not due")
        })?;
        let has_run_out = serving.is_some_and(|group| place < group.passed);
        let drawn = room.place(&enter.group, enter.index);
        must(drawn == Some(place), "R6", || {
            format!("index {} is let in at place {place}, and has {drawn:?}", enter.index)
        })?;
        let most = room.room().map_or(0, |room| room.settings.max_attempts);
        must(attempts <= most, "R7", || {
            format!("place {place} has {attempts} of {most} attempts")
        })?;
        let room = &mut self.oracle.room;
        let (by_index, by_place) =
            ((enter.group.clone(), enter.index), (enter.group.clone(), place));
        let index = *room.visited.entry(by_place).or_insert(enter.index);
        must(index == enter.index, "R7", || {
            format!("indices {index} and {} came with place {place}", enter.index)
        })?;
        let before = room.visits.insert(by_index, *visit);
        let added = enter.visit.attempts;
        must(before.is_some() || !has_run_out, "R6", || {
            format!("the visit of place {place} begins, which had run out by record {turn}")
        })?;
        let goes_on = before.is_none_or(|before| {
            attempts == before.attempts + added && Visit { attempts, ..before } == *visit
        });
        must(goes_on, "R7", || format!("the visit of place {place} was {before:?}, is {visit:?}"))
    }

    /// Somebody is answered that the visit has begun.
    pub(crate) fn answer_looks(&mut self, group: &GroupId, index: u32) {
        self.oracle.room.looked.insert((group.clone(), index));
    }

    /// Whether somebody was answered so before.
    pub(crate) fn has_looked(&self, group: &GroupId, index: u32) -> bool {
        self.oracle.room.looked.contains(&(group.clone(), index))
    }

    /// Somebody is answered to be let in: R6, R7.
    pub(crate) fn answer_let_in(&mut self, group: &GroupId, index: u32) {
        let room = &mut self.oracle.room;
        let key = (group.clone(), index);
        let times = room.let_in.entry(key.clone()).or_default();
        *times += 1;
        let (times, visit) = (*times, room.visits.get(&key).copied());
        if visit.is_none_or(|visit| visit.attempts < times) {
            let what = format!("index {index} was let in {times} times, and has {visit:?}");
            self.broken("R7", what);
        }
    }

    /// R8: what is shown is what its record says.
    fn shown(&self, shown: &Shown) -> Result<(), Broken> {
        let record = self.oracle.room.record(Some(shown.view.number));
        let view = record.map(|record| View::of(record, shown.view.sold_out));
        must(view.as_ref() == Some(&shown.view), "R8", || {
            format!("record {} does not say what is shown", shown.view.number)
        })
    }

    /// What of the room is not finished, by rule; `None` if nothing is, and nobody need ask for it any more.
    pub(crate) fn room_waits(&self) -> Option<Broken> {
        if self.over().is_some() || !self.stores.catalogue.sales.contains_key(&sale_id()) {
            return None;
        }
        let state = &self.oracle.room.record(None)?.state;
        if state.mode == Mode::Closed {
            return None;
        }
        if let Some(group) = state.groups.iter().position(|group| group.seed.is_none()) {
            return Some(("R5", format!("group {group} is not drawn")));
        }
        let names = self.plan.room.iter().flat_map(|room| &room.groups);
        let waiting: u32 = names
            .zip(&state.groups)
            .map(|(name, group)| {
                self.stores.rooms.joined(&sale_id(), name).saturating_sub(group.serving)
            })
            .sum();
        let (free, claimed) = self.free_seat_legs();
        let may_come_back = self
            .stores
            .orders
            .orders
            .values()
            .any(|order| order.state == engine::domain::order::OrderState::Pending);
        if waiting == 0 || free == 0 && !may_come_back {
            return None;
        }
        let of = self.oracle.room.record(None).map(|last| last.line()).unwrap_or_default();
        let what =
            format!("{waiting} places wait, {free} seat-legs are free, {claimed} claimed, by {of}");
        Some((if free > 0 { "R10" } else { "R9" }, what))
    }

    /// Seat-legs that nobody claims, and those that somebody does, by DynamoDB.
    fn free_seat_legs(&self) -> (u64, u64) {
        let sale = &self.plan.sale;
        let not_sold = sale.tiers().iter().flat_map(|tier| tier.layout.initial());
        let places: u64 = not_sold.map(|byte| u64::from(byte.count_zeros())).sum();
        let claimed = self.stores.orders.claims.len() as u64;
        ((places * u64::from(sale.leg_count())).saturating_sub(claimed), claimed)
    }
}
