//! The check of a waiting room, of its table as it is read: a million places are not kept to be looked at
//! afterwards. Of each record two numbers a group stay, of each place a bit and the leaf that was drawn.
//!
//! Records are read and turns made again by the engine's own code, as `onsale verify-draw` does it: what others
//! hash is an interface. Memberships, counters and trees are decoded by the audit itself.

use std::collections::HashSet;

use engine::domain::admission::room::draw::{Closing, Member, Window, later_seed};
use engine::domain::admission::room::log::{Entry, NONE_BEFORE, Record};
use engine::domain::admission::room::serving::{Event, Room, State};
use engine::domain::admission::room::tree::{self, CHUNK_LEAVES};
use engine::domain::basics::bytes::{Hash, Nonce};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;

use super::decode;
use super::facts::{AdmissionsFact, RoomFacts};
use super::violation::Subject;

/// Most defects of one room that are named; the others are counted.
const MAX_NAMED: usize = 1_000;

/// A membership, as its item says.
#[derive(Debug, Clone)]
pub(super) struct MemberFact {
    /// The bucket that it is in.
    pub(super) bucket: u16,
    /// The buyer.
    pub(super) buyer: UserId,
    /// The group.
    pub(super) group: GroupId,
    /// The index.
    pub(super) index: u32,
    /// True if the index is of the first window.
    pub(super) is_first: bool,
    /// The nonce of its leaf.
    pub(super) nonce: Nonce,
    /// The number of times that the buyer had joined before.
    pub(super) rejoined: u32,
    /// The visit, if it has begun.
    pub(super) visit: Option<VisitFact>,
}

/// A visit.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitFact {
    /// The place.
    pub(super) place: u32,
    /// The record by which it was due.
    pub(super) turn: u64,
    /// Number of admissions.
    pub(super) attempts: u32,
}

/// A group.
#[derive(Debug)]
struct Group {
    group: GroupId,
    /// S and E after each record.
    turns: Vec<(u32, u32)>,
    /// The windows that are drawn: one past the last index of each, with its draw.
    windows: Vec<(u32, Window)>,
    closing: Option<Closing>,
    /// Number of indices that its counter gave.
    given: u32,
    /// The roots of the chunks of its tree.
    chunk_roots: Vec<Hash>,
    /// The leaves of its tree.
    leaves: Vec<Hash>,
    /// A bit for each index that somebody has.
    held: Vec<u64>,
    /// Leaves that somebody has who has not joined again.
    owned: u64,
}

impl Group {
    fn new(group: GroupId) -> Self {
        Self {
            group,
            turns: Vec::new(),
            windows: Vec::new(),
            closing: None,
            given: 0,
            chunk_roots: Vec::new(),
            leaves: Vec::new(),
            held: Vec::new(),
            owned: 0,
        }
    }

    /// Takes an index; false if it was taken.
    fn hold(&mut self, index: u32) -> bool {
        let (at, bit) = (usize::try_from(index / 64).unwrap_or(usize::MAX), 1 << (index % 64));
        if self.held.len() <= at {
            self.held.resize(at + 1, 0);
        }
        let Some(word) = self.held.get_mut(at) else { return false };
        let is_free = *word & bit == 0;
        *word |= bit;
        is_free
    }

    /// The place that was drawn for an index; `None` if it is not drawn.
    fn place(&self, index: u32) -> Option<u32> {
        let at = self.windows.partition_point(|(end, _)| *end <= index);
        self.windows.get(at)?.1.place(index)
    }

    fn subject(&self) -> Subject {
        Subject::Group { group: self.group.clone() }
    }

    fn of_index(&self, index: u32) -> Subject {
        Subject::Index { group: self.group.clone(), index }
    }
}

/// The check of one room. What is read is given to it in this order: records, counters, trees, chunks of leaves,
/// memberships.
#[derive(Debug)]
pub(super) struct RoomCheck<'a> {
    sale: &'a SaleId,
    /// The buyers who have orders: their admissions are kept.
    buyers: HashSet<&'a UserId>,
    room: Option<Room>,
    last: Option<(Record, Hash)>,
    /// True once a record is wrong: what follows from it says nothing.
    is_broken: bool,
    groups: Vec<Group>,
    /// Memberships of those who have joined again, and left a leaf behind if they were in the tree.
    rejoined: u64,
    /// Number of places that were read.
    places: u64,
    facts: RoomFacts,
}

impl<'a> RoomCheck<'a> {
    /// Nothing was read yet of the room of a sale with orders of some buyers.
    pub(super) fn new(sale: &'a SaleId, buyers: HashSet<&'a UserId>) -> Self {
        Self {
            sale,
            buyers,
            room: None,
            last: None,
            is_broken: false,
            groups: Vec::new(),
            rejoined: 0,
            places: 0,
            facts: RoomFacts::default(),
        }
    }

    /// The groups of the room.
    pub(super) fn groups(&self) -> Vec<GroupId> {
        self.groups.iter().map(|group| group.group.clone()).collect()
    }

    /// The number of chunks that the tree of a group has.
    pub(super) fn chunks(&self, group: &GroupId) -> usize {
        self.groups.iter().find(|of| of.group == *group).map_or(0, |of| of.chunk_roots.len())
    }

    /// Remembers a defect.
    pub(super) fn add(&mut self, subject: Subject, what: impl Into<String>) {
        if self.facts.defects.len() < MAX_NAMED {
            self.facts.defects.push((subject, what.into()));
        } else {
            self.facts.more += 1;
        }
    }

    /// Checks the next record of the log.
    pub(super) fn record(&mut self, line: &str) {
        self.facts.read += 1;
        if self.is_broken {
            return;
        }
        let expected = self.last.as_ref().map_or(0, |(last, _)| last.number.saturating_add(1));
        if let Err(what) = self.next_record(expected, line) {
            self.is_broken = true;
            self.add(Subject::Turn { record: expected }, what);
        }
    }

    fn next_record(&mut self, expected: u64, line: &str) -> Result<(), String> {
        let record = Record::from_line(line).map_err(|error| format!("is none: {error}"))?;
        if record.number != expected {
            return Err(format!("is missing: the next one is {}", record.number));
        }
        let before = self.last.as_ref().map_or(NONE_BEFORE, |(_, hash)| *hash);
        if record.before != before {
            return Err("does not have the hash of the one before".to_owned());
        }
        match (&record.entry, &self.last, &self.room) {
            (Entry::Published(room), None, _) => {
                if room.sale != *self.sale || record.state != State::first(&room.settings) {
                    return Err("is not the publication of the sale's room".to_owned());
                }
                if let Err(invalid) = room.check(record.at_ms) {
                    return Err(format!("publishes what cannot be: {invalid}"));
                }
                let groups = room.settings.groups.iter();
                self.groups = groups.map(|of| Group::new(of.group.clone())).collect();
                self.room = Some(room.clone());
            }
            (Entry::Turn { events, given }, Some((last, _)), Some(room)) => {
                let made = last.state.turn(room, last.at_ms, record.at_ms, events, given);
                if made.as_ref() != Ok(&record.state) {
                    return Err("is not what the rules make of the one before".to_owned());
                }
                self.events(events);
            }
            (Entry::Published(_), Some(_), _) | (Entry::Turn { .. }, _, _) => {
                return Err("publishes a room, or is a turn of none".to_owned());
            }
        }
        let hash = Hash::of_parts(&[line.as_bytes()]);
        let back = self.drawn(&record, hash);
        self.facts.last = Some((record.number, Timestamp::from_ms(record.at_ms)));
        self.last = Some((record, hash));
        if back { Err("takes a serving number back".to_owned()) } else { Ok(()) }
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            let Event::Closed { group, closing } = event else { continue };
            if let Some(of) = self.groups.iter_mut().find(|of| of.group == *group) {
                of.closing = Some(*closing);
            }
        }
    }

    /// Remembers serving numbers and windows after a record; true if a serving number went back.
    fn drawn(&mut self, record: &Record, hash: Hash) -> bool {
        let mut back = false;
        for (of, state) in self.groups.iter_mut().zip(&record.state.groups) {
            let (serving, passed) = of.turns.last().copied().unwrap_or((0, 0));
            back |= state.serving < serving || state.passed < passed;
            of.turns.push((state.serving, state.passed));
            let end = of.windows.last().map_or(0, |(end, _)| *end);
            let window = match (state.seed, state.closed) {
                (Some(seed), Some(closed)) if of.windows.is_empty() => {
                    Window::new(seed, 0, closed.closing.count)
                }
                (Some(_), Some(_)) if state.window_end > end => {
                    Window::new(later_seed(hash, &of.group), state.window_first, state.window_end)
                }
                (Some(_) | None, Some(_) | None) => continue,
            };
            of.windows.push((state.window_end, window));
        }
        back
    }

    /// True if nothing is known of the room: its publication cannot be read, which is said once.
    fn is_unknown(&self) -> bool {
        self.groups.is_empty()
    }

    fn group(&mut self, group: &GroupId) -> Result<&mut Group, String> {
        let of = self.groups.iter_mut().find(|of| of.group == *group);
        of.ok_or_else(|| format!("is of group {group}, which the room does not have"))
    }

    /// Checks the counter of a group.
    pub(super) fn counter(
        &mut self,
        group: &GroupId,
        next: u32,
        closed: Option<u32>,
    ) -> Result<(), String> {
        if self.is_unknown() {
            return Ok(());
        }
        let of = self.group(group)?;
        of.given = next;
        let (subject, count) = (of.subject(), of.closing.map(|closing| closing.count));
        // Between the counter's closing and its record a draw is under way.
        if count.is_some() && count != closed {
            let what =
                format!("was closed at {count:?} by its log, and at {closed:?} by its counter");
            self.add(subject, what);
        }
        Ok(())
    }

    /// Checks the tree of a group.
    pub(super) fn tree(
        &mut self,
        group: &GroupId,
        count: u32,
        chunk_roots: Vec<Hash>,
    ) -> Result<(), String> {
        if self.is_unknown() {
            return Ok(());
        }
        let of = self.group(group)?;
        let root = tree::root(&chunk_roots);
        let (subject, closing) = (of.subject(), of.closing);
        of.chunk_roots = chunk_roots;
        if closing.is_some_and(|closing| (closing.count, closing.root) != (count, root)) {
            self.add(subject, "has another N or root in its log than in its tree");
        }
        Ok(())
    }

    /// Checks the next chunk of a group's leaves; none if it is not there.
    pub(super) fn chunk(
        &mut self,
        group: &GroupId,
        leaves: Option<Vec<Hash>>,
    ) -> Result<(), String> {
        if self.is_unknown() {
            return Ok(());
        }
        let of = self.group(group)?;
        let chunk = of.leaves.len() / CHUNK_LEAVES;
        let (subject, expected) = (of.subject(), of.chunk_roots.get(chunk).copied());
        let is_its = leaves.as_ref().map(|leaves| tree::root(leaves)) == expected;
        // So that the next chunk begins where it should.
        let mut leaves = leaves.unwrap_or_default();
        let is_last = chunk + 1 == of.chunk_roots.len();
        if !is_last {
            leaves.resize(CHUNK_LEAVES, tree::empty_leaf());
        }
        of.leaves.extend(leaves);
        if !is_its {
            self.add(subject, format!("has other leaves in chunk {chunk} than its tree is over"));
        }
        Ok(())
    }

    /// Checks a membership.
    pub(super) fn member(&mut self, member: &MemberFact) -> Result<(), String> {
        self.facts.read += 1;
        self.places += 1;
        if self.is_unknown() {
            return Ok(());
        }
        let MemberFact { buyer, group, index, .. } = member;
        let mut defects = Vec::new();
        let expected = decode::bucket_of(buyer.as_str());
        if member.bucket != expected {
            defects.push(format!("is {buyer}'s, who belongs in bucket {expected}"));
        }
        let member_leaf =
            Member { sale: self.sale, group, index: *index, buyer, nonce: member.nonce };
        let leaf = member_leaf.leaf();
        let most = self.room.as_ref().map_or(0, |room| u32::from(room.settings.max_attempts));
        // What follows from a log that is wrong says nothing of visits.
        let visit = member.visit.as_ref().filter(|_| !self.is_broken);
        let of = self.group(group)?;
        if *index >= of.given {
            defects.push(format!("is {buyer}'s, and the counter has given {}", of.given));
        } else if !of.hold(*index) {
            defects.push(format!("is {buyer}'s and somebody else's"));
        }
        if of.closing.is_some_and(|closing| (*index < closing.count) != member.is_first) {
            defects.push(format!("is {buyer}'s, of the wrong window"));
        }
        let at = usize::try_from(*index).ok().filter(|_| member.is_first);
        let found = at.and_then(|at| of.leaves.get(at)).copied();
        of.owned += u64::from(found == Some(leaf));
        // Who came too late for the tree joins again with the next request, if there is one.
        let is_empty = found == Some(tree::empty_leaf());
        if found.is_some_and(|found| found != leaf) && !(is_empty && member.visit.is_none()) {
            defects.push(format!("is {buyer}'s, and the tree has another leaf there"));
        }
        if let Some(visit) = visit {
            defects.extend(of.visit(*index, visit, most));
        }
        let subject = of.of_index(*index);
        self.rejoined += u64::from(member.rejoined > 0);
        for what in defects {
            self.add(subject.clone(), what);
        }
        if self.buyers.contains(buyer) {
            let attempts = member.visit.map_or(0, |visit| visit.attempts);
            // Of the visits of earlier places nothing is kept but their number.
            let before = member.rejoined.saturating_mul(most);
            let admissions = AdmissionsFact { attempts, before };
            self.facts.admissions.insert(buyer.clone(), admissions);
        }
        Ok(())
    }

    /// What was found, once everything was read. The places of a sale that is archived may be erased.
    pub(super) fn finish(mut self, is_archived: bool) -> RoomFacts {
        if self.room.is_none() && !self.is_broken {
            self.add(Subject::Sale, "has a waiting room, and no log of it");
        }
        self.facts.is_erased = is_archived && self.places == 0;
        if self.facts.is_erased {
            return self.facts;
        }
        let empty = tree::empty_leaf();
        let is_held = |leaf: &&Hash| **leaf != empty;
        let of_group = |of: &Group| of.leaves.iter().filter(is_held).count();
        let leaves: u64 = self.groups.iter().map(|of| reporting::count(of_group(of))).sum();
        let owned: u64 = self.groups.iter().map(|of| of.owned).sum();
        if leaves.saturating_sub(owned) > self.rejoined {
            let what = format!(
                "has {leaves} leaves, of which {owned} are of places that are there, and {} have joined again",
                self.rejoined
            );
            self.add(Subject::Sale, what);
        }
        self.facts
    }
}

impl Group {
    /// What is wrong with the visit of an index.
    fn visit(&self, index: u32, visit: &VisitFact, most: u32) -> Vec<String> {
        let VisitFact { place, turn, attempts } = *visit;
        let mut defects = Vec::new();
        match self.place(index) {
            Some(drawn) if drawn == place => {}
            Some(drawn) => {
                defects.push(format!("was let in at place {place}, and the draw gave it {drawn}"));
            }
            None => defects.push(format!("was let in at place {place}, and is not drawn")),
        }
        match usize::try_from(turn).ok().and_then(|turn| self.turns.get(turn)) {
            None => defects.push(format!("was let in by record {turn}, which is not there")),
            Some((serving, _)) if place >= *serving => defects.push(format!(
                "was let in at place {place} by record {turn}, when those below {serving} were due"
            )),
            Some((_, passed)) if place < *passed => defects.push(format!(
                "was let in at place {place} by record {turn}, when those below {passed} had run out"
            )),
            Some(_) => {}
        }
        // Whoever only looked has 0; another rule finds more orders than admissions.
        if attempts > most {
            defects.push(format!("was let in {attempts} times, of {most}"));
        }
        defects
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::admission::room::draw::Source;

    use super::*;
    use crate::draw::fixture::{
        JOINED, LATER, admission, buyer, group, is_held, leaves, log, nonce, rechain, records,
        secret, windows,
    };

    /// Everything of a room, as its table has it.
    struct Parts {
        records: Vec<Record>,
        lines: Vec<String>,
        counter: (u32, Option<u32>),
        count: u32,
        chunks: Vec<Option<Vec<Hash>>>,
        members: Vec<MemberFact>,
        is_archived: bool,
    }

    impl Parts {
        /// A room in which nothing is wrong: of those who joined every third was let in, of the later ones all.
        fn new() -> Self {
            let source = Source::Secret(secret());
            let records = records(false, source);
            let windows = windows(&records, &source);
            let member = |index: u32| {
                let of = buyer(index);
                let is_in = index >= JOINED || index.is_multiple_of(3);
                let visit = is_in.then(|| {
                    let let_in = admission(index, &windows, &records);
                    VisitFact { place: let_in.place, turn: let_in.turn, attempts: 1 }
                });
                MemberFact {
                    bucket: decode::bucket_of(of.as_str()),
                    buyer: of,
                    group: group(),
                    index,
                    is_first: index < JOINED,
                    nonce: nonce(index),
                    rejoined: 0,
                    visit,
                }
            };
            let held = (0..JOINED + LATER).filter(|index| *index >= JOINED || is_held(*index));
            let members = held.map(member).collect();
            Self {
                lines: log(&records),
                records,
                counter: (JOINED + LATER, Some(JOINED)),
                count: JOINED,
                chunks: leaves().chunks(CHUNK_LEAVES).map(|chunk| Some(chunk.to_vec())).collect(),
                members,
                is_archived: false,
            }
        }

        fn at(&mut self, index: u32) -> &mut MemberFact {
            self.members.iter_mut().find(|member| member.index == index).unwrap()
        }

        fn visit(&mut self, index: u32) -> &mut VisitFact {
            self.at(index).visit.as_mut().unwrap()
        }

        fn check(self) -> RoomFacts {
            let sale = SaleId::new("fixture").unwrap();
            let (first, other) = (buyer(0), buyer(1));
            let mut check = RoomCheck::new(&sale, [&first, &other].into());
            let roots = leaves().chunks(CHUNK_LEAVES).map(tree::root).collect();
            self.lines.iter().for_each(|line| check.record(line));
            check.counter(&group(), self.counter.0, self.counter.1).unwrap();
            check.tree(&group(), self.count, roots).unwrap();
            for chunk in self.chunks {
                check.chunk(&group(), chunk).unwrap();
            }
            self.members.iter().for_each(|member| check.member(member).unwrap());
            check.finish(self.is_archived)
        }
    }

    fn defects(change: impl FnOnce(&mut Parts)) -> Vec<String> {
        let mut parts = Parts::new();
        change(&mut parts);
        let found = parts.check();
        found.defects.iter().map(|(subject, what)| format!("{subject} {what}")).collect()
    }

    #[test]
    fn a_room_in_which_nothing_is_wrong_is_clean_and_was_looked_at() {
        let facts = Parts::new().check();
        assert_eq!(facts.defects, []);
        assert_eq!(facts.read, 204 + u64::from(JOINED - JOINED / 100 + LATER));
        let of = |index| facts.admissions.get(&buyer(index)).map(AdmissionsFact::most);
        assert_eq!([of(0), of(1), of(3)], [Some(1), Some(0), None]);
    }

    #[test]
    fn what_is_wrong_with_a_log_is_named_once() {
        let made = ["record 20 of the log is not what the rules make of the one before"];
        let other_state = defects(|parts| {
            parts.records[20].state.groups[0].serving += 1;
            rechain(&mut parts.records);
            parts.lines = log(&parts.records);
        });
        assert_eq!(other_state[..1], made);
        let changed = defects(|parts| {
            parts.records[20].at_ms += 1;
            parts.lines = log(&parts.records);
        });
        assert_eq!(changed[..1], made);
        let link = ["record 21 of the log does not have the hash of the one before"];
        let broken = defects(|parts| {
            parts.records[20].state.notice = Some("no".to_owned());
            parts.records[20].before = parts.records[19].hash();
            parts.lines.swap_remove(20);
            parts.lines.insert(20, parts.records[20].line());
        });
        assert!(broken[0] == made[0] || broken[0] == link[0], "{broken:?}");
        let gone = defects(|parts| drop(parts.lines.remove(20)));
        assert_eq!(gone[..1], ["record 20 of the log is missing: the next one is 21"]);
        let text = defects(|parts| parts.lines[20].push(' '));
        assert_eq!(text[..1], ["record 20 of the log is none: it is not written as records are"]);
        let none = defects(|parts| {
            parts.lines.clear();
            parts.members.clear();
        });
        assert!(
            none.contains(&"the sale has a waiting room, and no log of it".to_owned()),
            "{none:?}"
        );
    }

    /// A corruption, and how what names it begins.
    type Case = (fn(&mut Parts), &'static str);

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn each_defect_of_places_is_named() {
        let cases: [Case; 15] = [
            (
                |parts| parts.visit(0).place += 1,
                "index 0 of group all was let in at place PLACE+1, and the draw gave it PLACE",
            ),
            (
                |parts| parts.visit(0).turn = 3,
                "index 0 of group all was let in at place PLACE by record 3, when those below 0 were due",
            ),
            (
                |parts| parts.visit(0).turn = 999,
                "index 0 of group all was let in by record 999, which is not there",
            ),
            (
                |parts| parts.visit(0).attempts = 11,
                "index 0 of group all was let in 11 times, of 10",
            ),
            (
                |parts| parts.at(1).index = 0,
                "index 0 of group all is buyer-1's and somebody else's",
            ),
            (
                |parts| parts.at(1).bucket ^= 1,
                "index 1 of group all is buyer-1's, who belongs in bucket",
            ),
            (
                |parts| parts.at(2_501).is_first = true,
                "index 2501 of group all is buyer-2501's, of the wrong window",
            ),
            (
                |parts| parts.at(2).is_first = false,
                "index 2 of group all is buyer-2's, of the wrong window",
            ),
            (
                |parts| parts.at(0).nonce.0[9] ^= 1,
                "index 0 of group all is buyer-0's, and the tree has another leaf there",
            ),
            (
                // Index 107 was held by nobody when the tree was made.
                |parts| {
                    let late = MemberFact { index: 107, ..parts.at(0).clone() };
                    parts.members.push(late);
                },
                "index 107 of group all is buyer-0's, and the tree has another leaf there",
            ),
            (
                |parts| parts.counter.0 = JOINED + LATER - 1,
                "index 2519 of group all is buyer-2519's, and the counter has given 2519",
            ),
            (
                |parts| parts.counter.1 = Some(JOINED - 1),
                "group all was closed at Some(2500) by its log, and at Some(2499) by its counter",
            ),
            (
                |parts| parts.count = JOINED + 1,
                "group all has another N or root in its log than in its tree",
            ),
            (
                |parts| parts.chunks[1].as_mut().unwrap().swap(3, 4),
                "group all has other leaves in chunk 1 than its tree is over",
            ),
            (
                |parts| drop(parts.members.remove(1)),
                "the sale has 2475 leaves, of which 2474 are of places that are there, and 0 have joined again",
            ),
        ];
        let place = Parts::new().visit(0).place;
        for (change, expected) in cases {
            let expected = expected.replace("PLACE+1", &(place + 1).to_string());
            let expected = expected.replace("PLACE", &place.to_string());
            let found = defects(change);
            assert!(
                found.iter().any(|defect| defect.starts_with(&expected)),
                "{expected}: {found:?}"
            );
        }
    }

    #[test]
    fn a_place_that_had_run_out_lets_nobody_in() {
        // The last record has what was due in its first seconds behind it.
        let found = defects(|parts| {
            let last = parts.records.last().unwrap().number;
            let passed = parts.records.last().unwrap().state.groups[0].passed;
            assert!(passed > 0);
            let member = parts
                .members
                .iter_mut()
                .find(|member| member.visit.is_some_and(|visit| visit.place < passed));
            member.unwrap().visit.as_mut().unwrap().turn = last;
        });
        assert!(found.len() == 1 && found[0].ends_with("had run out"), "{found:?}");
    }

    /// Who came too late for the tree, and who has joined again, is as the engine leaves it.
    #[test]
    fn latecomers_and_those_who_joined_again_are_let_pass() {
        let found = defects(|parts| {
            let late = buyer(9_999);
            let bucket = decode::bucket_of(late.as_str());
            let member =
                MemberFact { bucket, buyer: late, index: 107, visit: None, ..parts.at(1).clone() };
            parts.members.push(member);
            // The leaf stays, and the place is another one.
            let again = parts.at(2);
            again.rejoined = 1;
            again.is_first = false;
            again.index = JOINED + LATER;
            parts.counter.0 += 1;
        });
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn the_places_of_an_archived_sale_may_be_erased() {
        let erased = |is_archived| {
            let parts = Parts { is_archived, members: Vec::new(), ..Parts::new() };
            let facts = parts.check();
            (facts.is_erased, facts.defects.len())
        };
        assert_eq!((erased(true), erased(false)), ((true, 0), (false, 1)));
    }

    #[test]
    fn many_defects_are_counted() {
        let mut parts = Parts::new();
        parts.members.iter_mut().for_each(|member| member.bucket ^= 1);
        let all = reporting::count(parts.members.len());
        let facts = parts.check();
        assert_eq!(facts.defects.len(), MAX_NAMED);
        assert_eq!(facts.more, all - reporting::count(MAX_NAMED));
    }
}
