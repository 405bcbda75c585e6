//! The fares and the tiers of a train: one tier for each class with both seats and fares.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::domain::basics::ids::SeatName;
use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::{Fare, Places, Section, SectionRow, Stop, TierFile};

use super::super::slug::slug;
use super::super::tables::line_of;
use super::super::terms::tier_id;
use super::super::{Place, Remedy, SourceDefect};
use super::Reading;
use super::rows::{ClassRow, Natural};
use super::seats::Claimed;

/// The fares of one class by the indexes of their stops.
pub(super) type Fares = BTreeMap<(usize, usize), (MinorUnits, Place)>;

impl<'tables> Reading<'tables> {
    /// The fares by class.
    pub(super) fn fares(&mut self, stops: &[Stop]) -> BTreeMap<Natural<'tables>, Fares> {
        let mut classes: BTreeMap<Natural, Fares> = BTreeMap::new();
        let index = |name: &str| stops.iter().position(|stop| stop.name == name);
        for (line, row) in self.of_train(&self.tables.prices, |row| &row.train_id) {
            let at = Place {
                at: line_of("prices.csv", *line),
                label: format!("{} to {}, class {}", row.departure, row.arrival, row.seat_type),
            };
            let leave_out = Remedy::LeaveOut { what: at.clone(), seats: 0 };
            let journey = index(&row.departure).zip(index(&row.arrival));
            let Some(journey) = journey.filter(|(from, to)| from < to) else {
                self.findings.add(SourceDefect::NoJourney { at }, leave_out);
                continue;
            };
            let fares = classes.entry(Natural(&row.seat_type)).or_default();
            if let Some((_, first)) = fares.get(&journey) {
                let what = format!("the fare {}", at.label);
                let first = first.clone();
                self.findings
                    .add(SourceDefect::DeclaredTwice { what, first, again: at }, leave_out);
            } else {
                fares.insert(journey, (row.price, at));
            }
        }
        classes
    }

    /// A tier for each class that has both seats and fares, in the order of their codes.
    pub(super) fn tiers(
        &mut self,
        stops: &[Stop],
        seats: &[Claimed<'tables>],
        fares: &BTreeMap<Natural<'tables>, Fares>,
    ) -> Vec<TierFile> {
        let codes: BTreeSet<Natural> =
            seats.iter().map(|seat| Natural(seat.class)).chain(fares.keys().copied()).collect();
        let mut tiers = Vec::new();
        let mut taken = Vec::new();
        for (index, code) in codes.iter().enumerate() {
            let of_class: Vec<&Claimed> =
                seats.iter().filter(|seat| seat.class == code.0).collect();
            let no_fares = Fares::new();
            let fares = fares.get(code).unwrap_or(&no_fares);
            let fare_place = fares.values().next().map(|(_, at)| at);
            let Some(at) = of_class.first().map(|seat| &seat.at).or(fare_place).cloned() else {
                continue;
            };
            let (class, leave) = (code.0.to_owned(), |seats| Remedy::LeaveOut {
                what: Place { at: self.at.label.clone(), label: format!("class {}", code.0) },
                seats,
            });
            if of_class.is_empty() {
                let fares = fares.len();
                let leave_out = leave(0);
                self.findings.add(SourceDefect::FaresWithoutSeats { class, fares, at }, leave_out);
                continue;
            }
            if fares.is_empty() {
                let seats = of_class.len();
                let leave_out = leave(seats);
                self.findings.add(SourceDefect::SeatsWithoutFares { class, seats, at }, leave_out);
                continue;
            }
            let name = self.class_name(code.0, at);
            let number = code.0.parse().unwrap_or(index + 1);
            let tier = tier_id(latin_tail(&name), number, &taken);
            taken.push(tier.clone());
            let letters: BTreeSet<char> = of_class.iter().map(|seat| seat.letter).collect();
            let columns = columns(&letters);
            let fares = fares.iter().map(|((from, to), (price, _))| Fare {
                from: stops[*from].stop.clone(),
                to: stops[*to].stop.clone(),
                price_minor: *price,
            });
            tiers.push(TierFile {
                fares: fares.collect(),
                sections: sections(&of_class, &columns),
                columns: columns.iter().map(|letter| letter.map(String::from)).collect(),
                ..TierFile::new(tier, name)
            });
        }
        tiers
    }

    fn class_name(&mut self, code: &str, at: Place) -> String {
        let mut matching = self.tables.classes.iter().filter(|(_, class)| class.code == code);
        let Some((first_line, first)) = matching.next() else {
            let what = format!("class {code}");
            let remedy = Remedy::Believe { what: format!("it is called {what}") };
            self.findings.add(SourceDefect::Undeclared { what: what.clone(), at }, remedy);
            return what;
        };
        if let Some((again_line, again)) = matching.next() {
            let place = |line: u64, class: &ClassRow| Place {
                at: line_of("seat_types.csv", line),
                label: class.name.clone(),
            };
            let defect = SourceDefect::DeclaredTwice {
                what: format!("class {code}"),
                first: place(*first_line, first),
                again: place(*again_line, again),
            };
            let what = format!("it is called {}", first.name);
            self.findings.add(defect, Remedy::Believe { what });
        }
        first.name.clone()
    }
}

/// The letters from window to window with the aisle between C and D, or where that would be.
pub(super) fn columns(letters: &BTreeSet<char>) -> Vec<Option<char>> {
    let (left, right): (Vec<char>, Vec<char>) = letters.iter().partition(|letter| **letter < 'D');
    let aisle = (!left.is_empty() && !right.is_empty()).then_some(None);
    left.into_iter().map(Some).chain(aisle).chain(right.into_iter().map(Some)).collect()
}

/// A section for each coach, a row for each row of seats; a missing letter is a place without a seat.
fn sections(seats: &[&Claimed], columns: &[Option<char>]) -> Vec<Section> {
    let mut coaches: BTreeMap<Natural, BTreeMap<u32, HashMap<char, &SeatName>>> = BTreeMap::new();
    for seat in seats {
        let rows = coaches.entry(Natural(seat.coach)).or_default();
        rows.entry(seat.row).or_default().insert(seat.letter, &seat.name);
    }
    let in_columns = |row: &HashMap<char, &SeatName>| {
        let place = |letter: &Option<char>| row.get(&(*letter)?).map(|name| (*name).clone());
        Places::Named(columns.iter().map(place).collect())
    };
    coaches
        .iter()
        .map(|(coach, rows)| Section {
            section: coach.0.to_owned(),
            alike: Vec::new(),
            rows: rows
                .iter()
                .map(|(row, seats)| SectionRow::one(row.to_string(), in_columns(seats)))
                .collect(),
            focus: None,
        })
        .collect()
}

/// The id that the Latin words at the end of a name make: `二等座 second` is `second`.
fn latin_tail(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().skip_while(|word| !word.is_ascii()).collect();
    slug(&words.join(" "))
}
