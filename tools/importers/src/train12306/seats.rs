//! The seats of a train, held against what is declared of its coaches.

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::domain::basics::ids::SeatName;

use super::super::tables::Lined;
use super::super::{Place, Remedy, SourceDefect};
use super::Reading;
use super::rows::{CoachRow, Natural, SeatRow, place_of_coach, place_of_seat};

/// A seat that has the only claim, or the best, to its key.
pub(super) struct Claimed<'tables> {
    pub(super) class: &'tables str,
    pub(super) coach: &'tables str,
    pub(super) row: u32,
    pub(super) letter: char,
    pub(super) name: SeatName,
    pub(super) at: Place,
}

impl<'tables> Reading<'tables> {
    /// The coaches by number, each with the classes that are declared for it.
    fn coaches(&mut self) -> BTreeMap<Natural<'tables>, Vec<&'tables Lined<CoachRow>>> {
        let mut coaches: BTreeMap<Natural, Vec<&Lined<CoachRow>>> = BTreeMap::new();
        for coach in self.of_train(&self.tables.coaches, |row| &row.train_id) {
            let (_, row) = coach;
            let declared = coaches.entry(Natural(&row.carriage_number)).or_default();
            let repeats = |(_, other): &&&Lined<CoachRow>| other.carriage_type == row.carriage_type;
            match declared.iter().find(repeats) {
                None => declared.push(coach),
                Some(first) => {
                    let again = place_of_coach(coach);
                    let leave_out = Remedy::LeaveOut { what: again.clone(), seats: 0 };
                    let what = format!("coach {}", row.carriage_number);
                    let first = place_of_coach(first);
                    self.findings
                        .add(SourceDefect::DeclaredTwice { what, first, again }, leave_out);
                }
            }
        }
        coaches
    }

    /// The seats, each once, in the order of their table.
    pub(super) fn seats(&mut self, listed: &[&'tables Lined<SeatRow>]) -> Vec<Claimed<'tables>> {
        let coaches = self.coaches();
        if listed.is_empty() {
            let rows = coaches.values().flatten();
            let declared = rows.map(|(_, row)| u64::from(row.seat_count)).sum();
            let at = self.at.clone();
            self.findings.add(SourceDefect::NoSeats { at, declared }, Remedy::None);
            return Vec::new();
        }
        let declares = |row: &SeatRow| {
            let coach = coaches.get(&Natural(&row.carriage_number));
            coach.is_some_and(|coach| coach.iter().any(|(_, c)| c.carriage_type == row.seat_type))
        };
        let mut holders: HashMap<(&str, &str), Vec<&Lined<SeatRow>>> = HashMap::new();
        for seat in listed {
            let key = (seat.1.carriage_number.as_str(), seat.1.seat_number.as_str());
            holders.entry(key).or_default().push(seat);
        }
        let mut points: HashMap<(&str, u32, char), Place> = HashMap::new();
        let mut seats = Vec::new();
        for seat in listed {
            let (line, row) = seat;
            let at = place_of_seat(seat);
            let leave_out = Remedy::LeaveOut { what: at.clone(), seats: 1 };
            let rivals = &holders[&(row.carriage_number.as_str(), row.seat_number.as_str())];
            // Of several rows for one seat the first whose class the coach has is believed.
            let best = rivals.iter().find(|(_, rival)| declares(rival)).or(rivals.first());
            if let Some(best) = best.filter(|(best_line, _)| best_line != line) {
                let other = place_of_seat(best);
                let (first, again) = if best.0 < *line { (other, at) } else { (at, other) };
                let key = format!("{}-{}", row.carriage_number, row.seat_number);
                self.findings.add(SourceDefect::DuplicateSeat { key, first, again }, leave_out);
                continue;
            }
            let named = SeatName::new(format!("{}-{}", row.carriage_number, row.seat_number));
            let (Ok(name), Some((number, letter))) = (named, row_and_letter(&row.seat_number))
            else {
                let why = "a seat has a coach, a row number and a letter from A to Z".to_owned();
                self.findings.add(SourceDefect::UnusableKey { at, why }, leave_out);
                continue;
            };
            let point = (row.carriage_number.as_str(), number, letter);
            if let Some(first) = points.get(&point) {
                let defect = SourceDefect::SamePoint { first: first.clone(), again: at };
                self.findings.add(defect, leave_out);
                continue;
            }
            points.insert(point, at.clone());
            let (class, coach) = (row.seat_type.as_str(), row.carriage_number.as_str());
            seats.push(Claimed { class, coach, row: number, letter, name, at });
        }
        self.compare_coaches(&coaches, &seats);
        seats
    }

    /// Holds the seats against what `carriages.csv` says of their coaches.
    fn compare_coaches(
        &mut self,
        coaches: &BTreeMap<Natural<'tables>, Vec<&'tables Lined<CoachRow>>>,
        seats: &[Claimed<'tables>],
    ) {
        let mut reported = HashSet::new();
        let mut seats_of: HashMap<&str, u64> = HashMap::new();
        for seat in seats {
            *seats_of.entry(seat.coach).or_default() += 1;
            let declared = coaches.get(&Natural(seat.coach)).map_or(&[][..], Vec::as_slice);
            let agrees = declared.iter().any(|(_, coach)| coach.carriage_type == seat.class);
            if agrees || !reported.insert((seat.coach, seat.class)) {
                continue;
            }
            let (defect, what) = match declared.first() {
                None => {
                    let what = format!("coach {}", seat.coach);
                    (SourceDefect::Undeclared { what, at: seat.at.clone() }, "the coach is real")
                }
                Some(coach) => {
                    let how = format!(
                        "the coach is of class {}, seats in it of class {}",
                        coach.1.carriage_type, seat.class
                    );
                    let (first, again) = (place_of_coach(coach), seat.at.clone());
                    let defect = SourceDefect::Disagreement { first, again, how };
                    (defect, "each seat's own class decides")
                }
            };
            self.findings.add(defect, Remedy::Believe { what: what.to_owned() });
        }
        for (Natural(number), rows) in coaches {
            let declared: u64 = rows.iter().map(|(_, row)| u64::from(row.seat_count)).sum();
            let found = seats_of.get(number).copied().unwrap_or_default();
            if let Some(coach) = rows.first().filter(|_| declared != found) {
                let again = Place {
                    at: "seats.csv".to_owned(),
                    label: format!("coach {number}, {found} seats"),
                };
                let how = format!("the coach should have {declared} seats and has {found}");
                let first = place_of_coach(coach);
                let what = "the seats that are listed are sold".to_owned();
                self.findings.add(
                    SourceDefect::Disagreement { first, again, how },
                    Remedy::Believe { what },
                );
            }
        }
    }
}

/// `12F` as row 12 and letter F.
fn row_and_letter(number: &str) -> Option<(u32, char)> {
    let letter = number.chars().last().filter(char::is_ascii_uppercase)?;
    let row = number.strip_suffix(letter)?;
    let digits = !row.is_empty() && row.bytes().all(|byte| byte.is_ascii_digit());
    Some((row.parse().ok().filter(|_| digits)?, letter))
}
