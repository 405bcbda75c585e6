//! What must hold in a room, named as in `docs/correctness.md`.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::admission::room::draw::Source;
use engine::domain::admission::room::join::{JoinWindow, Membership, bucket_of};
use engine::domain::admission::room::log::{Entry, NONE_BEFORE, Record};
use engine::domain::admission::room::serving::Event;
use engine::domain::admission::room::tree;
use engine::domain::admission::room::view::View;
use engine::domain::admission::room::visit::Visit;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::Drawing;
use engine::flows::room::join::{Joined, Refusal, Standing};
use model_stores::{BeaconModel, BoardModel, RoomsModel, Stores};

use super::steps::State;
use super::{Flow, Outcome, Scenario, group, sale};
use crate::check::Checked;
use crate::direct;

/// Time after the last moment of a scenario at which the draw is run for the last time, in seconds: when
/// the beacon's time is over.
const AT_THE_END_SECONDS: i64 = 600;
/// Turns by which everybody was served: none of a scenario has so many places, and what is in flight when the
/// last one was made runs out meanwhile.
const MAX_TURNS: i64 = 1_000;

fn must(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

/// True if everything of one map is in the other.
fn stays<K: Ord, V: PartialEq>(before: &BTreeMap<K, V>, after: &BTreeMap<K, V>) -> bool {
    before.iter().all(|(key, value)| after.get(key) == Some(value))
}

/// R3: what is decided once stays as it is: secret, records, N, leaves, root.
///
/// # Errors
/// Says what changed.
pub fn permanent(before: &RoomsModel, after: &RoomsModel) -> Checked {
    must(stays(&before.secrets, &after.secrets), || "R3: the secret changed".to_owned())?;
    must(stays(&before.chunks, &after.chunks), || "R3: leaves changed".to_owned())?;
    must(stays(&before.trees, &after.trees), || "R3: N or root changed".to_owned())?;
    for (sale, log) in &before.logs {
        let same = after.logs.get(sale).is_some_and(|after| stays(log, after));
        must(same, || "R3: a record of the log changed".to_owned())?;
    }
    for (key, before) in &before.counters {
        let after = after.counters.get(key);
        let same = after.is_some_and(|after| {
            let is_same_closing = before.closed.is_none() || after.closed == before.closed;
            is_same_closing && after.next >= before.next
        });
        must(same, || "R3: the closing of the first window changed".to_owned())?;
    }
    Ok(())
}

/// The events of a room's log, whose records are chained.
fn events(rooms: &RoomsModel) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    let mut before = NONE_BEFORE;
    for (expected, (number, line)) in (0..).zip(rooms.logs.values().flatten()) {
        let record = Record::from_line(line).map_err(|error| error.to_string())?;
        must(*number == expected && record.number == expected && record.before == before, || {
            format!("R3: record {number} does not follow the one before it")
        })?;
        before = Hash::of_parts(&[line.as_bytes()]);
        match record.entry {
            Entry::Published(_) => {}
            Entry::Turn { events: more, .. } => events.extend(more),
        }
    }
    Ok(events)
}

/// R1: nobody has an index that somebody else has or was told.
fn indices(state: &State) -> Checked {
    let members = state.stores.rooms.members.values().flat_map(BTreeMap::values);
    let told = state.told.iter().flatten();
    let mut holders = BTreeMap::new();
    for member in members.chain(told) {
        let other = holders.insert(member.index.number, &member.buyer);
        must(other.is_none_or(|other| *other == member.buyer), || {
            format!("R1: index {} is held twice", member.index.number)
        })?;
    }
    Ok(())
}

/// The leaf that the kept chunks have at the index of a member; `None` before the chunk is kept.
fn kept_leaf(rooms: &RoomsModel, member: &Membership) -> Option<Option<Hash>> {
    let (chunk, at) = member.position();
    let leaves = rooms.chunks.get(&(sale(), group(), chunk))?;
    Some(leaves.get(at).copied())
}

/// R2: who was told to take part in the draw of the first window stands in the tree, and stays a member.
fn told(scenario: &Scenario, state: &State) -> Checked {
    let rooms = &state.stores.rooms;
    for member in state.told.iter().flatten() {
        let Membership { buyer, index, .. } = member;
        let bucket = bucket_of(buyer, scenario.buckets);
        let kept = rooms.membership(&sale(), bucket, buyer);
        must(kept.as_ref().is_some_and(|kept| is_same(member, kept)), || {
            format!("R2: {buyer} was told index {}, and has {kept:?}", index.number)
        })?;
        let closed = rooms.counters.get(&(sale(), group())).and_then(|counter| counter.closed);
        let is_below = closed.is_none_or(|count| index.number < count);
        must(is_below == (index.window == JoinWindow::First), || {
            format!("R2: {buyer} has index {} of the wrong window", index.number)
        })?;
        if index.window == JoinWindow::First
            && let Some(leaf) = kept_leaf(rooms, member)
        {
            must(leaf == Some(member.leaf()), || {
                format!("R2: {buyer} was told to be in the draw, and is not in the tree")
            })?;
        }
    }
    Ok(())
}

/// R3, R4: the log says N and root once, as the tree has them over the kept chunks; each seed is drawn once, by the round
/// that record 0 names or, after a late closing, by the next one of its series, with its true signature.
fn log(state: &State) -> Checked {
    let rooms = &state.stores.rooms;
    let tree = rooms.trees.get(&(sale(), group()));
    if let Some(tree) = tree {
        let roots: Vec<Hash> = rooms.chunks.values().map(|leaves| tree::root(leaves)).collect();
        let closed = rooms.counters.values().find_map(|counter| counter.closed);
        must(roots == tree.chunk_roots && closed == Some(tree.count), || {
            "R3: the tree is not over the leaves that are kept".to_owned()
        })?;
    }
    let mut seen = BTreeSet::new();
    for event in events(rooms)? {
        match event {
            Event::Closed { closing, .. } => {
                must(seen.insert("closed"), || "R3: closed twice".to_owned())?;
                let same = tree
                    .is_some_and(|tree| (tree.count, tree.root()) == (closing.count, closing.root));
                must(same, || "R3: the log has another N or root than the tree".to_owned())?;
                must(closing.latest_round.is_none(), || "R4: a round is quoted".to_owned())?;
            }
            Event::Drawn { source, .. } => {
                must(seen.insert("drawn"), || "R3: drawn twice".to_owned())?;
                if let Source::Beacon { round, signature } = source {
                    let is_out = Some(round) <= state.stores.beacon.latest;
                    let is_its = signature == BeaconModel::signature(round);
                    let is_awaited = Some(round) == Scenario::awaited(&state.stores);
                    must(is_out && is_its && is_awaited, || {
                        format!("R4: it is drawn by another round than {round}")
                    })?;
                }
            }
            Event::Command(command) => Err(format!("nobody commands {command:?}"))?,
        }
    }
    Ok(())
}

/// R6, R7: who is let in has the place that the draw gave, and it was due by the record that the visit names;
/// nobody is let in more often than the visit counts, and whoever joins again keeps what was admitted before.
fn visits(scenario: &Scenario, state: &State) -> Checked {
    let rooms = &state.stores.rooms;
    for joiner in 0..scenario.joiners.len() {
        let Some(member) = scenario.member(rooms, joiner) else { continue };
        let (visit, index) = (member.visit, member.index.number);
        let indices = state.entered.keys().filter(|(who, _)| *who == joiner);
        for (_, entered) in indices {
            let is_kept = member.admitted().iter().any(|admitted| admitted.index == *entered);
            must(is_kept, || format!("R7: the visit of index {entered} is lost: {member:?}"))?;
        }
        let entered = state.entered.get(&(joiner, index)).copied().unwrap_or(0);
        must(entered <= visit.map_or(0, |visit| visit.attempts), || {
            format!("R7: joiner {} was let in {entered} times, and has {visit:?}", joiner + 1)
        })?;
        let Some(visit) = visit else { continue };
        let record = rooms.record(&sale(), visit.turn).map_err(|error| error.to_string())?;
        let serving = record.and_then(|record| Some(record.state.groups.first()?.serving));
        must(serving.is_some_and(|serving| visit.place < serving), || {
            format!("R6: place {} was let in by turn {}", visit.place, visit.turn)
        })?;
        must(Scenario::place(rooms, index) == Some(visit.place), || {
            format!("R6: joiner {} was let in at place {}", joiner + 1, visit.place)
        })?;
    }
    Ok(())
}

/// R8: S and E never go back along the log, and what is shown is what a record says.
fn serving(rooms: &RoomsModel, board: Option<&BoardModel>) -> Checked {
    let mut before = (0, 0);
    for line in rooms.logs.values().flat_map(BTreeMap::values) {
        let record = Record::from_line(line).map_err(|error| error.to_string())?;
        let group = record.state.groups.first().ok_or("R8: no group")?;
        must(before.0 <= group.serving && before.1 <= group.passed, || {
            format!("R8: the serving number went back in record {}", record.number)
        })?;
        before = (group.serving, group.passed);
    }
    if let Some(shown) = board.and_then(|board| board.shown.as_ref()) {
        let record = rooms.record(&sale(), shown.view.number).map_err(|error| error.to_string())?;
        let view = record.map(|record| View::of(&record, shown.view.sold_out));
        must(view.as_ref() == Some(&shown.view), || {
            format!("R8: record {} does not say what is shown", shown.view.number)
        })?;
    }
    Ok(())
}

/// R7: a visit that has begun stays the same but for its attempts, which only grow.
///
/// # Errors
/// Says what changed.
pub fn visits_stay(before: &RoomsModel, after: &RoomsModel) -> Checked {
    let members = |rooms: &RoomsModel| -> Vec<Membership> {
        rooms.members.values().flat_map(BTreeMap::values).cloned().collect()
    };
    for member in members(before) {
        let Some(visit) = member.visit else { continue };
        let mut after = members(after).into_iter();
        let now = after.find(|other| other.buyer == member.buyer);
        if now.as_ref().is_some_and(|now| now.rejoined > member.rejoined) {
            continue;
        }
        let same = now.and_then(|now| now.visit).is_some_and(|now| {
            now.attempts >= visit.attempts && Visit { attempts: visit.attempts, ..now } == visit
        });
        must(same, || format!("R7: the visit of place {} changed", visit.place))?;
    }
    Ok(())
}

/// Whether a membership is the one that was told, or of somebody who joined again since or before.
#[must_use]
pub fn is_same(told: &Membership, membership: &Membership) -> bool {
    let without_visit = |member: &Membership| Membership { visit: None, ..member.clone() };
    told.rejoined != membership.rejoined || without_visit(told) == without_visit(membership)
}

/// R9: whoever has joined is served in the end, once turns are made again. There is enough for everybody.
///
/// # Errors
/// Says how far it came.
pub fn served(scenario: &Scenario, state: &State, now: Timestamp) -> Checked {
    let mut stores = Stores::clone(&state.stores);
    let draw_at = now.plus_seconds(AT_THE_END_SECONDS);
    stores.beacon.latest = Some(u64::MAX);
    for now in [now, draw_at] {
        direct::run(scenario, &mut stores, now, &Flow::Draw { now });
    }
    for second in 0..MAX_TURNS {
        let now = draw_at.plus_seconds(second);
        direct::run(scenario, &mut stores, now, &Flow::Turn { now });
    }
    let last = stores.rooms.last_record(&sale()).map_err(|error| error.to_string())?;
    let of_group = last.as_ref().and_then(|last| last.state.groups.first());
    let joined = stores.rooms.joined(&sale(), &group());
    must(of_group.as_ref().is_some_and(|of| of.serving == joined), || {
        format!("R9: {joined} have joined, and after {MAX_TURNS} turns it is {last:?}")
    })
}

/// R12: a code is used once for each who has joined with it, and no more often than it may be.
fn codes(scenario: &Scenario, rooms: &RoomsModel) -> Checked {
    let Some(most) = scenario.code_uses else { return Ok(()) };
    let joined: usize = rooms.members.values().map(BTreeMap::len).sum();
    let used: u32 = rooms.codes.values().map(|uses| uses.used).sum();
    must(u32::try_from(joined) == Ok(used) && used <= most, || {
        format!("R12: {joined} have joined by a code for {most}, which was used {used} times")
    })
}

/// R1 to R4, R6 to R8 and R12 in a state.
///
/// # Errors
/// Says what is broken.
pub fn state(scenario: &Scenario, state: &State) -> Checked {
    indices(state)?;
    told(scenario, state)?;
    log(state)?;
    visits(scenario, state)?;
    codes(scenario, &state.stores.rooms)?;
    serving(&state.stores.rooms, state.stores.boards.get(&sale()))
}

/// R5: once every process has died, the draw that is run again comes to its end, and then everybody who
/// asks is told.
///
/// # Errors
/// Says what is broken.
pub fn rest(scenario: &Scenario, before: &State, now: Timestamp) -> Checked {
    let mut end = before.clone();
    end.tasks.clear();
    let mut stores = Stores::clone(&before.stores);
    let later = now.plus_seconds(AT_THE_END_SECONDS);
    for now in [now, later] {
        // A beacon is waited for until its round comes.
        if now == later {
            stores.beacon.latest = Some(u64::MAX);
        }
        let outcome = direct::run(scenario, &mut stores, now, &Flow::Draw { now });
        let is_done = outcome == Outcome::Drew(Drawing::Drawn);
        let may_wait =
            now < later && matches!(outcome, Outcome::Drew(Drawing::AwaitsBeacon { .. }));
        must(is_done || may_wait, || format!("R5: the draw came to {outcome:?}"))?;
    }
    for joiner in 0..scenario.joiners.len() {
        let join = Flow::Join { joiner, attempt: u8::MAX, now: later };
        let outcome = direct::run(scenario, &mut stores, later, &join);
        // Who was never told may find the code used up.
        let is_used_up = outcome == Outcome::Refused(Refusal::CodeRefused);
        if is_used_up && end.told[joiner].is_none() {
            continue;
        }
        let Outcome::Joined(Joined { membership, standing: Standing::Certain }) = outcome else {
            return Err(format!("R5: joiner {} got {outcome:?}", joiner + 1));
        };
        let told = &mut end.told[joiner];
        let same = told.as_ref().is_none_or(|told| is_same(told, &membership));
        must(same, || format!("R2: another membership than before: {membership:?}"))?;
        *told = Some(membership);
    }
    permanent(&before.stores.rooms, &stores.rooms)?;
    end.stores = stores.into();
    state(scenario, &end)
}
