//! `onsale bench room`: what the rules of serving do to a sale, in a simulation with fixed seeds.
//!
//! Three ways of serving the same people, who ask for an admission as they come: as many as the maximum allows whatever
//! is left (loop off), the stock rule with one class of people in flight, and the rules as they are (each class apart).
//! Two ways of serving people who look first, both by the rules as they are: their visit begins when they ask for an
//! admission, or when they begin to look. What people do is assumed, and stands in the report: [`ASSUMED`]. Time goes in
//! steps of a second; nothing fails, so that the capacity stays at its maximum.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use engine::domain::admission::room::counts::{Came, Coming, Entry, Tally};
use engine::domain::admission::room::draw::{Closing, Member, Source, Terms, Window};
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::serving::{Counts, Event, Given, Room};
use engine::domain::admission::room::stock::{Expected, InFlight, MILLION, Prior, Smoothed};
use engine::domain::admission::room::tree;
use engine::domain::admission::room::view::View;
use engine::domain::basics::bytes::{Hash, Nonce, Secret};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::sale::serving::{MARK_MS, Settings};
use ops::draw::publication::{Admission, Chunk, Counted, OrderLine, Orders, Publication};
use reporting::grouped;
use serde::Serialize;

use super::selling::Failure;

/// What people do, in words.
pub const ASSUMED: &str = "\
Of those whose turn it is 70 % come: nine in ten within 60 s, the others within 170 s. Of those who come 85 % want to order: after
20 to 180 s one to four seats (30, 45, 10 and 15 %); who finds fewer left goes away with nothing. 15 % go away by themselves after
20 to 300 s. Where people look first, a quarter of those who come look for four minutes and never order, the others choose for
20 to 180 s, one in ten of them for 181 to 290 s. Of the orders 88 % are paid within 30 to 240 s, the others give their seats back after 600 s.";

/// Length of a simulated sale, in seconds.
const SECONDS: usize = 7_200;
/// Most seats of an order.
const MAX_UNITS: u32 = 4;
/// Places that may be served a second.
const MAX_PER_SECOND: u32 = 1_000;

/// A way of serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// As many as the maximum allows.
    LoopOff,
    /// The stock rule, all who are undecided taken together.
    OneClass,
    /// The rules as they are.
    TwoClasses,
    /// The rules as they are, for people who look first, whose client begins the visit with the admission.
    LooksUnseen,
    /// The rules as they are, for people who look first, whose client begins the visit then.
    Looks,
}

impl Policy {
    pub const ALL: [Self; 5] =
        [Self::LoopOff, Self::OneClass, Self::TwoClasses, Self::LooksUnseen, Self::Looks];

    fn name(self) -> &'static str {
        match self {
            Self::LoopOff => "loop off",
            Self::OneClass => "one class",
            Self::TwoClasses => "two classes",
            Self::LooksUnseen => "looks, visit from the order on",
            Self::Looks => "looks, visit from the look on",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Seats of each sale.
    pub seats: Vec<u32>,
    /// People in the room for each seat.
    pub people_per_seat: u32,
    pub seed: u64,
    /// The folder that gets what a room publishes of the first sale, served by the rules as they are. One index in
    /// fifty is nobody's; the buyer of index 5 is `buyer-5`, with a nonce of all zeros.
    pub publish: Option<PathBuf>,
}

/// What became of one sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The way of serving.
    pub policy: Policy,
    pub seats: u32,
    /// People in the room.
    pub people: u32,
    /// Places that were served.
    pub served: u32,
    pub came: u64,
    /// People who came, wanted to order and found too few seats.
    pub admitted_to_nothing: u64,
    /// People who lost their place while they chose.
    pub lost_while_choosing: u64,
    /// Seats that were not sold after two hours.
    pub stranded: u64,
    /// Seconds until 90 % of the seats were paid; none if they never were.
    pub sold_90_percent_s: Option<usize>,
    /// Seconds until 99.5 % of the seats were paid; none if they never were.
    pub sold_99_5_percent_s: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub assumed: &'static str,
    pub seed: u64,
    pub rows: Vec<Row>,
}

/// Simulates each sale under each policy.
///
/// # Errors
/// The files cannot be written; or the rules refuse a turn, which would be a defect of the simulation.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let mut rows = Vec::new();
    for &seats in &options.seats {
        let people = seats.saturating_mul(options.people_per_seat);
        for policy in Policy::ALL {
            rows.push(Sale::new(policy, seats, people, options.seed, false)?.run()?.0);
        }
    }
    if let (Some(folder), Some(&seats)) = (&options.publish, options.seats.first()) {
        let people = seats.saturating_mul(options.people_per_seat);
        let sale = Sale::new(Policy::TwoClasses, seats, people, options.seed, true)?;
        if let Some(publication) = sale.run()?.1 {
            publication.write(folder)?;
        }
    }
    Ok(Report { assumed: ASSUMED, seed: options.seed, rows })
}

/// Random numbers that are the same everywhere: SplitMix64.
/// Source: <https://prng.di.unimi.it/splitmix64.c>
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Seats that somebody orders.
    fn seats(&mut self) -> u32 {
        match self.between(0, 99) {
            0..30 => 1,
            30..75 => 2,
            75..85 => 3,
            _ => 4,
        }
    }

    /// A number from `least` to `most`.
    fn between(&mut self, least: u64, most: u64) -> usize {
        usize::try_from(least + self.next() % (most - least + 1)).unwrap_or(usize::MAX)
    }

    fn is_one_of(&mut self, in_a_hundred: u64) -> bool {
        self.next() % 100 < in_a_hundred
    }
}

/// What happens in a second of the sale.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// The holder of a place comes.
    Comes(u32),
    /// One inside, of this place, orders seats.
    Orders(u32, u32),
    /// One inside goes away.
    Leaves,
    Paid(u32),
    /// Of this place, so many seats.
    GivenBack(u32, u32),
    /// One who never came counts as decided.
    NeverCame,
    /// The holder of a place has chosen seats; the entry of the visit, if it has begun.
    Chose(u32, u32, Option<Entry>),
}

/// A sale that goes on.
struct Sale {
    policy: Policy,
    room: Room,
    /// The last record of the log.
    last: Record,
    seats: u32,
    people: u32,
    free: u64,
    sold: u64,
    came_total: u64,
    nothing: u64,
    lost: u64,
    /// Whether the holder of a place has come.
    came: Vec<bool>,
    /// The seats that orders hold, by place.
    holding: BTreeMap<u32, u32>,
    counts: Counts,
    /// The counters where people look first.
    tally: Tally,
    /// Of all who were served: how many are undecided, and what the decided ones hold.
    undecided: u64,
    decided: Smoothed,
    served: u32,
    happenings: Vec<Vec<Happening>>,
    numbers: Numbers,
    published: Option<Published>,
}

/// What is published of a sale.
struct Published {
    group: GroupId,
    window: Window,
    leaves: Vec<Hash>,
    log: Vec<String>,
    admissions: Vec<Admission>,
}

impl Published {
    /// The leaves of everybody in the room.
    fn leaves(sale: &SaleId, group: &GroupId, people: u32) -> Result<Vec<Hash>, Failure> {
        let leaf = |index: u32| {
            if index % 50 == 49 {
                return Ok(tree::empty_leaf());
            }
            let buyer = &UserId::new(format!("buyer-{index}"))?;
            Ok(Member { sale, group, index, buyer, nonce: Nonce([0; 16]) }.leaf())
        };
        (0..people).map(leaf).collect()
    }

    /// The index that has a place, if somebody holds it.
    fn holder(&self, place: u32) -> Option<u32> {
        let index = self.window.index(place)?;
        let leaf = usize::try_from(index).ok().and_then(|at| self.leaves.get(at))?;
        (*leaf != tree::empty_leaf()).then_some(index)
    }
}

impl Sale {
    fn new(
        policy: Policy,
        seats: u32,
        people: u32,
        seed: u64,
        is_published: bool,
    ) -> Result<Self, Failure> {
        let group = GroupId::new("all")?;
        let mut settings = Settings::new(group.clone(), 0, MAX_UNITS);
        settings.max_per_second = MAX_PER_SECOND;
        let secret = Secret([0; 32]);
        let draw = Terms::Secret(secret.commitment());
        let room = Room::new(SaleId::new("simulated")?, draw, u64::from(seats), settings);
        // Nobody reads the tree of a sale that is not published.
        let people_s = if is_published { people } else { 0 };
        let leaves = Published::leaves(&room.sale, &group, people_s)?;
        let closing = Closing { count: people, root: tree::root(&leaves), latest_round: None };
        let source = Source::Secret(secret);
        let window_seed = closing.seed(&room.sale, &group, &source);
        let events = vec![
            Event::Closed { group: group.clone(), closing },
            Event::Drawn { group: group.clone(), source },
        ];
        let given = Given { joined: vec![people], ..Given::default() };
        let first = Record::first(room.clone(), -2_000);
        let last = first.next(&room, -1_000, events, given)?;
        let published = is_published.then(|| Published {
            group,
            window: Window::new(window_seed, 0, people),
            leaves,
            log: vec![first.line(), last.line()],
            admissions: Vec::new(),
        });
        Ok(Self {
            policy,
            room,
            last,
            seats,
            people,
            free: u64::from(seats),
            sold: 0,
            came_total: 0,
            nothing: 0,
            lost: 0,
            came: vec![false; usize::try_from(people).unwrap_or(0)],
            holding: BTreeMap::new(),
            counts: Counts::default(),
            tally: Tally::default(),
            undecided: 0,
            decided: Smoothed::default(),
            served: 0,
            happenings: (0..SECONDS).map(|_| Vec::new()).collect(),
            numbers: Numbers(seed),
            published,
        })
    }

    fn run(mut self) -> Result<(Row, Option<Publication>), Failure> {
        let (mut sold_90_percent_s, mut sold_99_5_percent_s) = (None, None);
        for second in 0..SECONDS {
            let happenings =
                self.happenings.get_mut(second).map(std::mem::take).unwrap_or_default();
            for happening in happenings {
                self.happens(second, happening);
            }
            for place in self.serve(second)? {
                self.is_due(second, place);
            }
            let is_sold =
                |thousandths: u64| self.sold * 1_000 >= u64::from(self.seats) * thousandths;
            sold_90_percent_s = sold_90_percent_s.or(is_sold(900).then_some(second));
            sold_99_5_percent_s = sold_99_5_percent_s.or(is_sold(995).then_some(second));
        }
        let holding = self.holding;
        let counted = Counted { at_ms: self.last.at_ms, left: self.free };
        let publication = self.published.map(|all| {
            let held = |admission: &Admission| {
                let seat_legs = u64::from(*holding.get(&admission.place)?);
                Some(OrderLine {
                    group: Some(admission.group.clone()),
                    index: Some(admission.index),
                    turn: Some(admission.turn),
                    operator: None,
                    seat_legs,
                })
            };
            let orders = all.admissions.iter().filter_map(held).collect();
            Publication {
                log: all.log,
                chunks: Chunk::all(&all.group, &all.leaves),
                admissions: all.admissions,
                orders: Some(Orders { counted, orders }),
            }
        });
        let row = Row {
            policy: self.policy,
            seats: self.seats,
            people: self.people,
            served: self.served,
            came: self.came_total,
            admitted_to_nothing: self.nothing,
            lost_while_choosing: self.lost,
            stranded: u64::from(self.seats) - self.sold,
            sold_90_percent_s,
            sold_99_5_percent_s,
        };
        Ok((row, publication))
    }

    /// Serves: the places that are due now.
    fn serve(&mut self, second: usize) -> Result<std::ops::Range<u32>, Failure> {
        let before = self.served;
        let left = u64::from(self.people - before);
        let more = match self.policy {
            Policy::LoopOff => u64::from(MAX_PER_SECOND).min(left),
            Policy::OneClass => {
                // What it believes at first is the same as with two classes.
                let (comes, holds) = (Expected::COMES, Expected::holds_prior(MAX_UNITS));
                let prior = Prior { mean: comes.mean * holds.mean / MILLION, ..holds };
                let holds = self.decided.mean(prior);
                let (comes, asks, asks_late) = (MILLION, MILLION, MILLION);
                let expected = Expected { comes, asks, asks_late, holds, max_units: MAX_UNITS };
                let flight = InFlight { waiting: self.undecided, ..InFlight::default() };
                expected.most(self.free, flight, left.min(MAX_PER_SECOND.into()))
            }
            Policy::TwoClasses | Policy::LooksUnseen | Policy::Looks => {
                let passed = self.passed();
                let counts = match self.looks_first() {
                    true => self.tally.counts(&self.room.settings, self.last.state.clock_ms),
                    false => self.counts,
                };
                let given = Given {
                    free: Some(self.free),
                    joined: vec![self.people],
                    counts: Some(counts),
                    ..Given::default()
                };
                let now_ms = i64::try_from(second).unwrap_or(i64::MAX) * 1_000;
                self.last = self.last.next(&self.room, now_ms, Vec::new(), given)?;
                if let Some(published) = &mut self.published {
                    published.log.push(self.last.line());
                }
                if !self.looks_first() {
                    self.run_out(passed);
                }
                self.last.state.gave.served
            }
        };
        self.served += u32::try_from(more).unwrap_or(0);
        Ok(before..self.served)
    }

    /// Whether people look at the seats before they ask for an admission.
    fn looks_first(&self) -> bool {
        match self.policy {
            Policy::LooksUnseen | Policy::Looks => true,
            Policy::LoopOff | Policy::OneClass | Policy::TwoClasses => false,
        }
    }

    /// The mark of a visit that begins now.
    fn entry(&self) -> Entry {
        Entry { mark: self.view().mark() }
    }

    fn view(&self) -> View {
        View::of(&self.last, false)
    }

    /// Somebody begins to look.
    fn looks(&mut self, second: usize, place: u32) {
        self.came_total += 1;
        let due_mark = self.view().due_mark(0, place);
        let entry = (self.policy == Policy::Looks).then(|| self.entry());
        if let Some(entry) = entry {
            self.tally.count(&Came { entry, how: Coming::Looks { due_mark } });
        }
        if self.numbers.is_one_of(25) {
            return;
        }
        let after = match self.numbers.is_one_of(90) {
            true => self.numbers.between(20, 180),
            false => self.numbers.between(181, 290),
        };
        let seats = self.numbers.seats();
        self.in_seconds(second + after, Happening::Chose(place, seats, entry));
    }

    /// Somebody who has looked asks for an admission, and orders.
    fn chose(&mut self, second: usize, place: u32, seats: u32, entry: Option<Entry>) {
        let view = self.view();
        let how = match entry {
            Some(Entry { mark }) => {
                let age_ms = (view.mark() - mark) * MARK_MS;
                Coming::Decides { is_late: age_ms >= self.room.settings.show_up_ms }
            }
            None if place < self.passed() => {
                self.lost += 1;
                return;
            }
            None => Coming::Asks { due_mark: view.due_mark(0, place) },
        };
        let entry = entry.unwrap_or_else(|| self.entry());
        self.tally.count(&Came { entry, how });
        let Some(free) = self.free.checked_sub(u64::from(seats)) else {
            self.nothing += 1;
            return;
        };
        self.free = free;
        self.tally.held += u64::from(seats);
        self.tally.marks.entry(entry.mark).or_default().ordered += 1;
        self.pays_or_not(second, place, seats);
    }

    fn passed(&self) -> u32 {
        self.last.state.groups.first().map_or(0, |group| group.passed)
    }

    /// Counts places that have run out as such.
    fn run_out(&mut self, before: u32) {
        for place in before..self.passed() {
            if self.has_come(place) {
                self.counts.came -= 1;
                self.counts.passed_came += 1;
            }
        }
    }

    fn has_come(&self, place: u32) -> bool {
        usize::try_from(place).ok().and_then(|at| self.came.get(at)).copied().unwrap_or(false)
    }

    fn in_seconds(&mut self, second: usize, happening: Happening) {
        if let Some(then) = self.happenings.get_mut(second) {
            then.push(happening);
        }
    }

    fn is_due(&mut self, second: usize, place: u32) {
        self.undecided += 1;
        let is_held = self.published.as_ref().is_none_or(|all| all.holder(place).is_some());
        let numbers = &mut self.numbers;
        let (after, happening) = match numbers.is_one_of(70) && is_held {
            false => (180, Happening::NeverCame),
            true if numbers.is_one_of(90) => (numbers.between(1, 60), Happening::Comes(place)),
            true => (numbers.between(61, 170), Happening::Comes(place)),
        };
        self.in_seconds(second + after, happening);
    }

    fn happens(&mut self, second: usize, happening: Happening) {
        match happening {
            Happening::Comes(place) => self.comes(second, place),
            Happening::Orders(place, seats) => self.orders(second, place, seats),
            Happening::Leaves => self.ends_visit(0),
            Happening::Paid(seats) => self.sold += u64::from(seats),
            Happening::GivenBack(place, seats) => {
                self.free += u64::from(seats);
                self.holding.remove(&place);
            }
            Happening::NeverCame => self.decides(0),
            Happening::Chose(place, seats, entry) => self.chose(second, place, seats, entry),
        }
    }

    fn comes(&mut self, second: usize, place: u32) {
        if self.looks_first() {
            return self.looks(second, place);
        }
        if let Some(came) = usize::try_from(place).ok().and_then(|at| self.came.get_mut(at)) {
            *came = true;
        }
        if let Some(all) = &mut self.published {
            let (group, turn) = (all.group.clone(), self.last.number);
            let admission = |index| Admission { group, index, place, turn };
            all.admissions.extend(all.holder(place).map(admission));
        }
        self.came_total += 1;
        self.counts.came += 1;
        self.counts.inside += 1;
        let numbers = &mut self.numbers;
        if !numbers.is_one_of(85) {
            let after = numbers.between(20, 300);
            return self.in_seconds(second + after, Happening::Leaves);
        }
        let seats = numbers.seats();
        let after = numbers.between(20, 180);
        self.in_seconds(second + after, Happening::Orders(place, seats));
    }

    fn orders(&mut self, second: usize, place: u32, seats: u32) {
        let Some(free) = self.free.checked_sub(u64::from(seats)) else {
            self.nothing += 1;
            return self.ends_visit(0);
        };
        self.free = free;
        self.ends_visit(seats);
        self.pays_or_not(second, place, seats);
    }

    fn pays_or_not(&mut self, second: usize, place: u32, seats: u32) {
        self.holding.insert(place, seats);
        let (after, happening) = match self.numbers.is_one_of(88) {
            true => (self.numbers.between(30, 240), Happening::Paid(seats)),
            false => (600, Happening::GivenBack(place, seats)),
        };
        self.in_seconds(second + after, happening);
    }

    fn ends_visit(&mut self, seats: u32) {
        self.counts.inside -= 1;
        self.counts.visits += 1;
        self.counts.held += u64::from(seats);
        self.decides(seats);
    }

    fn decides(&mut self, seats: u32) {
        self.undecided -= 1;
        self.decided.add(u64::from(seats), 1);
    }
}

impl Report {
    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "seats",
            "people",
            "serving",
            "places served",
            "came",
            "admitted to nothing",
            "lost while choosing",
            "seats stranded",
            "90 % sold",
            "99.5 % sold",
        ];
        let mut table = reporting::table(header);
        let seconds = |at: Option<usize>| at.map_or("never".to_owned(), |at| format!("{at} s"));
        for row in &self.rows {
            table.add_row([
                grouped(row.seats.into()),
                grouped(row.people.into()),
                row.policy.name().to_owned(),
                grouped(row.served.into()),
                grouped(row.came),
                grouped(row.admitted_to_nothing),
                grouped(row.lost_while_choosing),
                grouped(row.stranded),
                seconds(row.sold_90_percent_s),
                seconds(row.sold_99_5_percent_s),
            ]);
        }
        write!(f, "{}\n\n{table}", self.assumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_classes_strand_nothing_and_admit_few_to_nothing() {
        let options = Options { seats: vec![2_000], people_per_seat: 40, seed: 7, publish: None };
        let report = run(&options).unwrap();
        assert_eq!(report, run(&options).unwrap(), "the same seed makes the same sale");
        let [off, one, two, unseen, looks] = &report.rows[..] else { panic!() };
        // Without the loop everybody is let in at once, and what comes back finds nobody.
        assert_eq!(off.served, 80_000);
        assert!(off.stranded > 0 && off.admitted_to_nothing > 40_000, "{off:?}");
        assert_eq!((one.stranded, two.stranded), (0, 0), "{one:?} {two:?}");
        assert!(two.admitted_to_nothing < one.admitted_to_nothing, "{one:?} {two:?}");
        assert!(two.admitted_to_nothing * 10 < two.came, "{two:?}");
        assert!(two.sold_99_5_percent_s.is_some(), "{two:?}");
        // The visit of who looks begins then: nobody loses the place, and it costs the others nothing.
        assert!(unseen.lost_while_choosing > 30 && looks.lost_while_choosing == 0, "{unseen:?}");
        assert_eq!((unseen.stranded, looks.stranded), (0, 0), "{unseen:?} {looks:?}");
        assert!(looks.admitted_to_nothing * 100 <= looks.came, "{looks:?}");
    }
}
