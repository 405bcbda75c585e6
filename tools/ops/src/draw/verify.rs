//! The check itself.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::admission::room::draw::{Closing, Member, Source, Terms, Window, later_seed};
use engine::domain::admission::room::log::{Entry, NONE_BEFORE, Record};
use engine::domain::admission::room::serving::{Closed, Command, Event, Given, Room, State};
use engine::domain::admission::room::tree;
use engine::domain::basics::bytes::{Hash, Nonce};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use shared::beacon::Chains;

use super::publication::{Admission, OrderLine, Orders, Publication};
use super::report::{Because, DecidedBy, Group, OwnPlace, Report, Round, Stock, Verdict};
use super::violation::Violation;
use super::witness::{Sighting, Watcher};

/// Who asks after the own place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The group.
    pub group: GroupId,
    /// The index.
    pub index: u32,
    /// The buyer.
    pub buyer: UserId,
    /// The nonce.
    pub nonce: Nonce,
}

/// What was seen during the sale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Hashes that the caller saw: of a record, of a root, or the commitment.
    pub hashes: Vec<Hash>,
    /// The watchers whom the caller trusts.
    pub watchers: Vec<Watcher>,
    /// What they saw. Their signatures are verified as they are read.
    pub sightings: Vec<Sighting>,
}

/// Checks a publication against the rules, with the keys of beacons' `chains`, against what was seen during the sale, and
/// for one who joined.
#[must_use]
pub fn verify(
    publication: &Publication,
    chains: &Chains,
    seen: &Seen,
    own: Option<&Own>,
) -> Report {
    let mut check = Check { chains, violations: Vec::new(), seen: BTreeSet::new(), turns: 0 };
    let records = check.read(&publication.log);
    let room = check.first(records.first());
    let groups = match &room {
        Some(room) => {
            check.turns(room, &records);
            check.groups(room, &records, publication)
        }
        None => Vec::new(),
    };
    let admitted = check.admissions(&publication.admissions, &groups, &records);
    let stock = room.as_ref().and_then(|room| check.stock(room, publication, &admitted, &records));
    let sightings: Vec<&Sighting> = match &room {
        Some(Room { sale, .. }) => {
            let path = format!("/sales/{sale}/room");
            seen.sightings.iter().filter(|seen| seen.address.ends_with(&path)).collect()
        }
        None => Vec::new(),
    };
    let hashes = seen.hashes.iter().copied().chain(sightings.iter().map(|sighting| sighting.hash));
    for hash in hashes.filter(|hash| !check.seen.contains(hash)).collect::<BTreeSet<_>>() {
        check.violations.push(Violation::Unseen { hash });
    }
    let own = room.as_ref().zip(own).map(|(room, own)| {
        check.own(
            &room.sale,
            own,
            groups.iter().find(|drawn| drawn.group == own.group),
            &records,
            &admitted,
        )
    });
    let because = room.as_ref().and_then(|room| {
        let is_seen = || is_seen(room, &groups, &records, &seen.watchers, &sightings);
        because(room, &groups).or_else(|| (!is_seen()).then_some(Because::NotSeen))
    });
    let groups = groups.iter().map(|drawn| drawn.report(&records, &admitted)).collect();
    let verdict = match (check.violations.is_empty(), because) {
        (false, _) => Verdict::Wrong,
        (true, Some(_)) => Verdict::NotWitnessed,
        (true, None) => Verdict::Witnessed,
    };
    Report {
        verdict,
        because: because.filter(|_| verdict == Verdict::NotWitnessed),
        sale: room.map(|room| room.sale),
        records: reporting::count(publication.log.len()),
        turns: check.turns,
        groups,
        stock,
        own,
        violations: check.violations,
    }
}

/// Why no watcher can witness the draw.
fn because(room: &Room, groups: &[Drawn]) -> Option<Because> {
    let is_late = |drawn: &Drawn| drawn.round(room).is_some_and(|round| round.looks > 0);
    let is_given_up = |drawn: &Drawn| matches!(drawn.decided_by, Some(DecidedBy::GivenUp { .. }));
    match room.draw {
        Terms::Before(_) => Some(Because::RulesOfBefore),
        Terms::Secret(_) => Some(Because::Secret),
        Terms::Beacon(_) if groups.iter().any(is_given_up) => Some(Because::GivenUp),
        Terms::Beacon(_) if groups.iter().any(|drawn| drawn.decided_by.is_none()) => {
            Some(Because::NotDrawn)
        }
        Terms::Beacon(_) if groups.iter().any(is_late) => Some(Because::Late),
        Terms::Beacon(_) => None,
    }
}

/// Whether each of the watchers, of whom there is one, saw the closing of every group before the round that decides it: its
/// record, or a later one, whose hash covers it.
fn is_seen(
    room: &Room,
    groups: &[Drawn],
    records: &[Record],
    watchers: &[Watcher],
    sightings: &[&Sighting],
) -> bool {
    let numbers: BTreeMap<Hash, u64> =
        records.iter().map(|record| (record.hash(), record.number)).collect();
    let saw = |watcher: &Watcher, drawn: &Drawn| {
        let Some((number, round)) = drawn.closed.zip(drawn.round(room)) else { return false };
        let of_it = sightings.iter().filter(|sighting| sighting.key == *watcher);
        let mut in_time = of_it.filter(|sighting| sighting.at_ms < round.at_ms);
        in_time.any(|sighting| numbers.get(&sighting.hash).is_some_and(|of| *of >= number.number))
    };
    let all = |watcher: &Watcher| groups.iter().all(|drawn| saw(watcher, drawn));
    !watchers.is_empty() && watchers.iter().all(all)
}

/// A group, and what was drawn of it.
struct Drawn {
    group: GroupId,
    /// Its position in the settings.
    at: usize,
    closing: Option<Closing>,
    /// The record that closed it.
    closed: Option<ClosedBy>,
    /// The round that decides it.
    round: Option<Round>,
    leaves: Vec<Hash>,
    decided_by: Option<DecidedBy>,
    /// The windows, each with the number of the record from which on its places can be due.
    windows: Vec<(u64, Window)>,
}

/// The record of a closing.
#[derive(Debug, Clone, Copy)]
struct ClosedBy {
    number: u64,
    at_ms: i64,
}

/// The turn of each admission, by group and index.
type Admitted<'a> = BTreeMap<(&'a GroupId, u32), u64>;

struct Check<'a> {
    chains: &'a Chains,
    violations: Vec<Violation>,
    /// What somebody may have seen during the sale.
    seen: BTreeSet<Hash>,
    turns: u64,
}

impl Check<'_> {
    /// Reads the records, up to the first line that is none, and checks their numbers and the chain.
    fn read(&mut self, log: &[String]) -> Vec<Record> {
        let mut records = Vec::new();
        let mut before = NONE_BEFORE;
        for (number, line) in (0..).zip(log) {
            let record = match Record::from_line(line) {
                Ok(record) if record.number == number => record,
                Ok(record) => {
                    let reason = format!("it has the number {}", record.number);
                    self.violations.push(Violation::Record { number, reason });
                    break;
                }
                Err(error) => {
                    let reason = error.to_string();
                    self.violations.push(Violation::Record { number, reason });
                    break;
                }
            };
            if record.before != before {
                self.violations.push(Violation::Chain { number });
            }
            before = Hash::of_parts(&[line.as_bytes()]);
            self.seen.insert(before);
            records.push(record);
        }
        records
    }

    /// The room, of the first record.
    fn first(&mut self, first: Option<&Record>) -> Option<Room> {
        let wrong = |reason: String| Violation::Record { number: 0, reason };
        let Some(Record { entry: Entry::Published(room), state, .. }) = first else {
            self.violations.push(wrong("it is not the publication of a room".to_owned()));
            return None;
        };
        if let Err(error) = room.check(first.map_or(0, |first| first.at_ms)) {
            self.violations.push(wrong(error.to_string()));
            return None;
        }
        if let Terms::Beacon(named) = room.draw
            && self.chains.rounds(named.chain) != Some(named.chain())
        {
            let reason = "its chain is not known, or has another genesis or period".to_owned();
            self.violations.push(Violation::Beacon { number: 0, round: named.round, reason });
        }
        if *state != State::first(&room.settings) {
            self.violations.push(Violation::Arithmetic { number: 0 });
            return None;
        }
        self.seen.extend(room.draw.commitment());
        Some(room.clone())
    }

    /// Makes every turn again, up to the first that comes to something else: what follows from a wrong state
    /// says nothing.
    fn turns(&mut self, room: &Room, records: &[Record]) {
        for (last, record) in records.iter().zip(records.iter().skip(1)) {
            let Entry::Turn { events, given } = &record.entry else {
                let reason = "it publishes a room that is published".to_owned();
                self.violations.push(Violation::Record { number: record.number, reason });
                return;
            };
            self.beacons(room, record.number, events);
            if !self.turn(room, last, record, events, given) {
                return;
            }
            self.turns += 1;
        }
    }

    /// Checks the rounds of the beacon among the events of a record.
    fn beacons(&mut self, room: &Room, number: u64, events: &[Event]) {
        for event in events {
            let Event::Drawn { source: Source::Beacon { round, signature }, .. } = event else {
                continue;
            };
            let Some(chain) = room.draw.chain() else { continue };
            if let Err(wrong) = self.chains.verify(chain, *round, signature) {
                let reason = wrong.to_string();
                self.violations.push(Violation::Beacon { number, round: *round, reason });
            }
        }
    }

    /// Makes one turn again; whether it comes to the same state.
    fn turn(
        &mut self,
        room: &Room,
        last: &Record,
        record: &Record,
        events: &[Event],
        given: &Given,
    ) -> bool {
        let number = record.number;
        match last.state.turn(room, last.at_ms, record.at_ms, events, given) {
            Err(refusal) => {
                let reason = refusal.to_string();
                self.violations.push(Violation::Record { number, reason });
                false
            }
            Ok(state) if state == record.state => true,
            Ok(state) => {
                let groups =
                    state.groups.iter().zip(&record.state.groups).zip(&room.settings.groups);
                let other_seeds = groups.filter(|((made, found), _)| made.seed != found.seed);
                let seeds: Vec<Violation> = other_seeds
                    .map(|(_, of)| Violation::Seed { number, group: of.group.clone() })
                    .collect();
                match seeds.is_empty() {
                    true => self.violations.push(Violation::Arithmetic { number }),
                    false => self.violations.extend(seeds),
                }
                false
            }
        }
    }

    /// The groups: their leaves are checked, and their windows drawn again.
    fn groups(&mut self, room: &Room, records: &[Record], publication: &Publication) -> Vec<Drawn> {
        let mut groups = Vec::new();
        for (at, settings) in room.settings.groups.iter().enumerate() {
            let mut drawn = Drawn {
                group: settings.group.clone(),
                at,
                closing: None,
                closed: None,
                round: None,
                leaves: Vec::new(),
                decided_by: None,
                windows: Vec::new(),
            };
            drawn.read(&room.sale, records);
            drawn.round = drawn.round(room);
            if let Some(closing) = drawn.closing {
                self.seen.insert(closing.root);
                self.leaves(&mut drawn, &closing, publication);
            }
            groups.push(drawn);
        }
        groups
    }

    /// Checks the leaves of a group.
    fn leaves(&mut self, drawn: &mut Drawn, closing: &Closing, publication: &Publication) {
        let group = &drawn.group;
        let chunks: Vec<_> =
            publication.chunks.iter().filter(|chunk| chunk.group == *group).collect();
        let roots: Vec<Hash> = chunks.iter().map(|chunk| tree::root(&chunk.leaves)).collect();
        for (position, (chunk, root)) in chunks.iter().zip(&roots).enumerate() {
            let is_last = position + 1 == chunks.len();
            let by_path = tree::root_by_path(*root, position, chunks.len(), &chunk.path);
            let is_whole = chunk.leaves.len() == tree::CHUNK_LEAVES
                || (is_last && (1..tree::CHUNK_LEAVES).contains(&chunk.leaves.len()));
            if chunk.chunk != position || !is_whole || by_path != Some(closing.root) {
                let (group, chunk) = (group.clone(), chunk.chunk);
                self.violations.push(Violation::Chunk { group, chunk });
            }
        }
        drawn.leaves = chunks.iter().flat_map(|chunk| chunk.leaves.iter().copied()).collect();
        let (expected, found) = (u64::from(closing.count), reporting::count(drawn.leaves.len()));
        if expected != found {
            self.violations.push(Violation::Leaves { group: group.clone(), expected, found });
        }
        let (expected, found) = (closing.root, tree::root(&drawn.leaves));
        if expected != found {
            self.violations.push(Violation::Root { group: group.clone(), expected, found });
        }
    }

    /// Checks that everyone who was admitted was due, once, and in the tree.
    fn admissions<'a>(
        &mut self,
        admissions: &'a [Admission],
        groups: &[Drawn],
        records: &[Record],
    ) -> Admitted<'a> {
        let mut admitted = Admitted::new();
        for admission in admissions {
            let Admission { group, index, turn, .. } = admission;
            let (index, turn) = (*index, *turn);
            if admitted.insert((group, index), turn).is_some() {
                self.violations.push(Violation::Twice { group: group.clone(), index });
            }
            let drawn = groups.iter().find(|drawn| drawn.group == *group);
            let record = usize::try_from(turn).ok().and_then(|turn| records.get(turn));
            match drawn.zip(record) {
                Some((drawn, record)) => self.admission(admission, drawn, record),
                None => {
                    let group = group.clone();
                    self.violations.push(Violation::Unknown { group, index, turn });
                }
            }
        }
        admitted
    }

    /// Checks that seats are left or held by orders, each of which has its admission.
    fn stock(
        &mut self,
        room: &Room,
        publication: &Publication,
        admitted: &Admitted<'_>,
        records: &[Record],
    ) -> Option<Stock> {
        let stock = room.stock?;
        let Some(Orders { counted, orders }) = &publication.orders else {
            self.violations.push(Violation::NoOrders);
            return None;
        };
        let (mut held, mut operators) = (0_u64, 0_u64);
        for OrderLine { group, index, turn, operator, seat_legs } in orders {
            held = held.saturating_add(*seat_legs);
            let place = (group.as_ref(), *index, *turn);
            let is_admitted = match (place, operator) {
                ((None, None, None), Some(_)) => {
                    operators = operators.saturating_add(*seat_legs);
                    true
                }
                ((Some(group), Some(index), Some(turn)), None) => {
                    admitted.get(&(group, index)) == Some(&turn)
                }
                ((_, _, _), Some(_) | None) => false,
            };
            if !is_admitted {
                let (group, index, seat_legs) = (group.clone(), *index, *seat_legs);
                self.violations.push(Violation::NoAdmission { group, index, seat_legs });
            }
        }
        let left = counted.left;
        if left.checked_add(held) != Some(stock) {
            self.violations.push(Violation::Stock { stock, left, held });
        }
        let free = |record: &Record| match &record.entry {
            Entry::Turn { given, .. } => given.free,
            Entry::Published(_) => None,
        };
        Some(Stock { stock, held, operators, left, last_free: records.iter().rev().find_map(free) })
    }

    fn admission(&mut self, admission: &Admission, drawn: &Drawn, record: &Record) {
        let Admission { group, index, place: found, turn } = admission.clone();
        if drawn.is_empty(index) {
            self.violations.push(Violation::Empty { group: group.clone(), index });
        }
        let Some(place) = drawn.place(index, turn) else {
            self.violations.push(Violation::NotDrawn { group, index, turn });
            return;
        };
        if place != found {
            let group = group.clone();
            self.violations.push(Violation::Place { group, index, expected: place, found });
        }
        let state = record.state.groups.get(drawn.at);
        let (serving, passed) = state.map_or((0, 0), |state| (state.serving, state.passed));
        if place >= serving {
            self.violations.push(Violation::Early { group, index, place, turn, serving });
        } else if place < passed {
            self.violations.push(Violation::RunOut { group, index, place, turn, passed });
        }
    }

    /// What became of who asks.
    fn own(
        &mut self,
        sale: &SaleId,
        own: &Own,
        drawn: Option<&Drawn>,
        records: &[Record],
        admitted: &Admitted<'_>,
    ) -> OwnPlace {
        let Own { group, index, buyer, nonce } = own;
        let member = Member { sale, group, index: *index, buyer, nonce: *nonce };
        let leaf = usize::try_from(*index).ok().and_then(|at| drawn?.leaves.get(at));
        if leaf != Some(&member.leaf()) {
            self.violations.push(Violation::NotIncluded { group: group.clone(), index: *index });
        }
        let place = drawn.and_then(|drawn| drawn.place(*index, u64::MAX));
        let is_due = |record: &&Record| {
            let state = drawn.and_then(|drawn| record.state.groups.get(drawn.at));
            place.zip(state).is_some_and(|(place, state)| place < state.serving)
        };
        OwnPlace {
            group: group.clone(),
            index: *index,
            place,
            due_at: records.iter().find(is_due).map(|record| record.number),
            admitted_at: admitted.get(&(group, *index)).copied(),
        }
    }
}

impl Drawn {
    /// Reads closing, source and windows from the records. Seeds are made, not believed.
    fn read(&mut self, sale: &SaleId, records: &[Record]) {
        let mut end = None;
        for record in records {
            let Some(state) = record.state.groups.get(self.at) else { continue };
            if let Entry::Turn { events, .. } = &record.entry {
                for event in events {
                    self.event(sale, record, event, &mut end);
                }
            }
            if let Some(last) = end.filter(|last| state.window_end > *last) {
                let seed = later_seed(record.hash(), &self.group);
                // Its places can be due only by the next record: this one's hash is its seed.
                let from = record.number.saturating_add(1);
                self.windows.push((from, Window::new(seed, last, state.window_end)));
                end = Some(state.window_end);
            }
        }
    }

    fn event(&mut self, sale: &SaleId, record: &Record, event: &Event, end: &mut Option<u32>) {
        let (number, at_ms) = (record.number, record.at_ms);
        match event {
            Event::Closed { group, closing } if *group == self.group => {
                self.closing = Some(*closing);
                self.closed = Some(ClosedBy { number, at_ms });
            }
            Event::Drawn { group, source } if *group == self.group && end.is_none() => {
                self.decided_by = Some(match source {
                    Source::Beacon { round, .. } => DecidedBy::Beacon { round: *round },
                    Source::Secret(_) => DecidedBy::Secret,
                });
                let seed = self.closing.map(|closing| closing.seed(sale, group, source));
                self.drawn(number, seed, end);
            }
            Event::Command(Command::BeaconGivenUp { by, randomness })
                if self.closing.is_some() && end.is_none() =>
            {
                self.decided_by = Some(DecidedBy::GivenUp { by: by.clone() });
                let (closing, group) = (self.closing, &self.group);
                let seed = |of: Closing| of.seed_after_giving_up(sale, group, *randomness);
                self.drawn(number, closing.map(seed), end);
            }
            Event::Closed { .. } | Event::Drawn { .. } | Event::Command(_) => {}
        }
    }

    /// The first window is there from this record on.
    fn drawn(&mut self, number: u64, seed: Option<Hash>, end: &mut Option<u32>) {
        let Some((closing, seed)) = self.closing.zip(seed) else { return };
        self.windows.push((number, Window::new(seed, 0, closing.count)));
        *end = Some(closing.count);
    }

    /// The round that decides, if the publication names one.
    fn round(&self, room: &Room) -> Option<Round> {
        let Terms::Beacon(named) = room.draw else { return None };
        let ClosedBy { at_ms, .. } = self.closed?;
        let closed = Closed { closing: self.closing?, at_ms };
        Some(Round {
            chain: named.chain,
            round: room.round(&closed)?,
            at_ms: room.round_ms(&closed)?,
            looks: named.looks(at_ms),
        })
    }

    /// The place of an index by the windows that are drawn at a turn.
    fn place(&self, index: u32, turn: u64) -> Option<u32> {
        let mut windows = self.windows.iter().filter(|(from, _)| *from <= turn);
        windows.find_map(|(_, window)| window.place(index))
    }

    /// True if the index is one of the first window that nobody held.
    fn is_empty(&self, index: u32) -> bool {
        let leaf = usize::try_from(index).ok().and_then(|at| self.leaves.get(at));
        leaf == Some(&tree::empty_leaf())
    }

    fn report(&self, records: &[Record], admitted: &Admitted<'_>) -> Group {
        let state = records.last().and_then(|record| record.state.groups.get(self.at));
        let due = state.map_or(0, |state| state.serving);
        let count = self.closing.map_or(0, |closing| closing.count);
        let empty = tree::empty_leaf();
        let of_nobody = match self.windows.first() {
            Some((_, first)) if self.leaves.contains(&empty) => {
                let due = (0..due.min(count)).filter_map(|place| first.index(place));
                reporting::count(due.filter(|index| self.is_empty(*index)).count())
            }
            Some(_) | None => 0,
        };
        let held = self.leaves.iter().filter(|leaf| **leaf != empty).count();
        Group {
            group: self.group.clone(),
            count,
            held: reporting::count(held),
            decided_by: self.decided_by.clone(),
            round: self.round,
            later_windows: reporting::count(self.windows.len().saturating_sub(1)),
            due,
            due_of_nobody: of_nobody,
            admitted: reporting::count(
                admitted.keys().filter(|(group, _)| **group == self.group).count(),
            ),
        }
    }
}
