//! Trains from a folder of tables as the 12306 sample has them (CSV, one train by its number).
//!
//! | table | what is read |
//! |---|---|
//! | `trains.csv` | `id`, `train_number`, `start_station`, `end_station`, `departure_time` |
//! | `train_stations.csv` | the stops: `train_id`, `sequence`, `station_id`, `departure` (a name) |
//! | `stations.csv` | `id`, `code` (the stop's id in the sale), `name` |
//! | `carriages.csv` | the coaches: `train_id`, `carriage_number`, `carriage_type` (a class), `seat_count` |
//! | `seats.csv` | `train_id`, `carriage_number`, `seat_number` (`01A`), `seat_type` (a class) |
//! | `seat_types.csv` | the classes: `code`, `name` |
//! | `prices.csv` | `train_id`, `departure`, `arrival` (names), `seat_type`, `price` in fen |
//!
//! A class is a tier, a coach a section. The key of a seat is its coach and number, which is also its
//! name in the sale (`07-12F`). Other columns and tables are not read: `relations.csv` repeats what
//! follows from the stops, and times do not matter to the engine.
//!
//! **Letters.** Since 2012-09-15 all Chinese multiple-unit trains letter their seats alike: A and F
//! are at the windows, C and D at the aisle, B between A and C, and there is no E; 3+2 coaches have
//! `A B C | D F`, 2+2 have `A C | D F`, 2+1 have `A C | F` and 1+1 have `A | F` (the Ministry of
//! Railways' rule as reported at the time). So the aisle lies before the first letter from D on,
//! and a class's columns are the letters that its seats have.
//!
//! **Standing** (无座) has fares and no seats in these tables; it is reported like any other class
//! without seats.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use engine::domain::ids::{SeatName, StopId};
use engine::domain::money::Currency;
use engine::domain::sale::{Fare, Places, Section, SectionRow, Stop, TierFile};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::report::Findings;
use super::slug::slug;
use super::tables::{Lined, line_of, table};
use super::terms::{Terms, tier_id};
use super::{Error, Import, Outcome, Place, Remedy, Report, SourceDefect, TierCount, read_bounded};

#[derive(Debug, Deserialize)]
struct TrainRow {
    id: String,
    train_number: String,
    start_station: String,
    end_station: String,
    departure_time: String,
}

#[derive(Debug, Deserialize)]
struct StationRow {
    id: String,
    code: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct StopRow {
    train_id: String,
    sequence: u32,
    station_id: String,
    departure: String,
}

#[derive(Debug, Deserialize)]
struct CoachRow {
    train_id: String,
    carriage_number: String,
    carriage_type: String,
    seat_count: u32,
}

#[derive(Debug, Deserialize)]
struct SeatRow {
    train_id: String,
    carriage_number: String,
    seat_number: String,
    seat_type: String,
}

#[derive(Debug, Deserialize)]
struct ClassRow {
    code: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct PriceRow {
    train_id: String,
    departure: String,
    arrival: String,
    seat_type: String,
    price: i64,
}

/// The tables of one folder.
#[derive(Debug)]
pub struct Tables {
    source: String,
    trains: Vec<Lined<TrainRow>>,
    stations: Vec<Lined<StationRow>>,
    stops: Vec<Lined<StopRow>>,
    coaches: Vec<Lined<CoachRow>>,
    seats: Vec<Lined<SeatRow>>,
    classes: Vec<Lined<ClassRow>>,
    prices: Vec<Lined<PriceRow>>,
}

impl Tables {
    /// Reads the tables of a folder.
    ///
    /// # Errors
    /// See [`Tables::parse`]; also [`Error::Unreadable`].
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let source = name.unwrap_or_else(|| folder.display().to_string());
        Self::parse(&source, |table| read_bounded(&folder.join(table)))
    }

    /// Reads the tables that `text` gives by file name. `source` is what reports call them.
    ///
    /// # Errors
    /// What `text` returns; [`Error::Malformed`] with file and line; [`Error::TooLarge`] for a table
    /// of more than a million rows.
    pub fn parse(
        source: &str,
        text: impl Fn(&str) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        Ok(Self {
            source: source.to_owned(),
            trains: rows("trains.csv", &text)?,
            stations: rows("stations.csv", &text)?,
            stops: rows("train_stations.csv", &text)?,
            coaches: rows("carriages.csv", &text)?,
            seats: rows("seats.csv", &text)?,
            classes: rows("seat_types.csv", &text)?,
            prices: rows("prices.csv", &text)?,
        })
    }

    /// The numbers of the trains.
    #[must_use]
    pub fn trains(&self) -> Vec<&str> {
        self.trains.iter().map(|(_, train)| train.train_number.as_str()).collect()
    }

    /// Makes a sale of one train.
    ///
    /// # Errors
    /// [`Error::Flags`] if no train, or more than one, has the number; [`Error::Rules`] if the terms
    /// break a rule. Defects of the tables are no errors: see [`Import::accept`].
    pub fn import(&self, number: &str, terms: &Terms) -> Result<Import, Error> {
        let mut bearers = self.trains.iter().filter(|(_, train)| train.train_number == number);
        let (line, train) = match (bearers.next(), bearers.next()) {
            (Some(train), None) => train,
            (Some((first, _)), Some((again, _))) => {
                return Err(Error::Flags(format!(
                    "train {number} stands twice: trains.csv lines {first} and {again}"
                )));
            }
            (None, _) => {
                let known = self.trains().join(", ");
                return Err(Error::Flags(format!("there is no train {number}; there are {known}")));
            }
        };
        let at = Place { at: line_of("trains.csv", *line), label: format!("train {number}") };
        Reading { tables: self, train, at, findings: Findings::default() }.finish(terms)
    }
}

fn rows<T: DeserializeOwned>(
    name: &str,
    text: impl Fn(&str) -> Result<Vec<u8>, Error>,
) -> Result<Vec<Lined<T>>, Error> {
    table(name, &text(name)?, |_| true)
}

/// One train while it is being read.
struct Reading<'tables> {
    tables: &'tables Tables,
    train: &'tables TrainRow,
    at: Place,
    findings: Findings,
}

/// A seat that has the only claim, or the best, to its key.
struct Claimed<'tables> {
    class: &'tables str,
    coach: &'tables str,
    row: u32,
    letter: char,
    name: SeatName,
    at: Place,
}

/// The fares of one class by the indexes of their stops.
type Fares = BTreeMap<(usize, usize), (i64, Place)>;

impl<'tables> Reading<'tables> {
    fn finish(mut self, terms: &Terms) -> Result<Import, Error> {
        let stops = self.stops();
        let listed = self.of_train(&self.tables.seats, |row| &row.train_id);
        let seats = self.seats(&listed);
        let fares = self.fares(&stops);
        let tiers = self.tiers(&stops, &seats, &fares);
        let counts: Vec<TierCount> = tiers.iter().map(TierCount::of).collect();
        let notes = notes(&tiers, stops.len());
        let file = if self.findings.hopeless() {
            None
        } else {
            let number = &self.train.train_number;
            let date = self.train.departure_time.split([' ', 'T']).next().unwrap_or_default();
            let end = |stop: Option<&Stop>| stop.map_or_else(String::new, |stop| stop.name.clone());
            let title = format!("{number} {} → {} {date}", end(stops.first()), end(stops.last()));
            let currency = Currency::new("CNY")
                .unwrap_or_else(|error| unreachable!("CNY is three letters: {error}"));
            let id = slug(&format!("{number} {date}"));
            Some(terms.sale_file(title.trim(), id, currency, None, stops, tiers)?)
        };
        let report = Report {
            source: format!("{} {}", self.tables.source, self.train.train_number),
            sale: file.as_ref().map(|file| file.sale.clone()),
            outcome: Outcome::Refused,
            seats_read: listed.len(),
            seats_placed: counts.iter().map(|tier| tier.seats).sum(),
            seats_left_out: self.findings.left_out(),
            tiers: counts,
            findings: self.findings.0,
            notes,
        };
        Import::new(file, report)
    }

    /// The rows of this train, in the order of their table.
    fn of_train<T>(
        &self,
        rows: &'tables [Lined<T>],
        train: impl Fn(&T) -> &String,
    ) -> Vec<&'tables Lined<T>> {
        rows.iter().filter(|(_, row)| *train(row) == self.train.id).collect()
    }

    /// The stops in order of their sequence, each under its station's code.
    fn stops(&mut self) -> Vec<Stop> {
        let mut listed = self.of_train(&self.tables.stops, |row| &row.train_id);
        listed.sort_by_key(|(_, row)| row.sequence);
        let mut stops = Vec::new();
        let mut kept: Vec<&Lined<StopRow>> = Vec::new();
        for stop in listed {
            let (_, row) = stop;
            let at = place_of_stop(stop);
            let repeats = |(_, other): &&&Lined<StopRow>| {
                other.sequence == row.sequence || other.departure == row.departure
            };
            if let Some(first) = kept.iter().find(repeats) {
                let what = format!("stop {} ({})", row.sequence, row.departure);
                let leave_out = Remedy::LeaveOut { what: at.clone(), seats: 0 };
                let first = place_of_stop(first);
                self.findings
                    .add(SourceDefect::DeclaredTwice { what, first, again: at }, leave_out);
            } else if let Some(station) = self.station(row, &at) {
                let same = stops.iter().position(|other: &Stop| other.stop == station.stop);
                if let Some(first) = same {
                    let what = format!("the code {}", station.stop);
                    let first = place_of_stop(kept[first]);
                    self.findings
                        .add(SourceDefect::DeclaredTwice { what, first, again: at }, Remedy::None);
                    continue;
                }
                kept.push(stop);
                stops.push(station);
            }
        }
        if stops.len() < 2 {
            let (at, stops) = (self.at.clone(), stops.len());
            self.findings.add(SourceDefect::TooFewStops { at, stops }, Remedy::None);
        }
        if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
            self.compare_end("starts", &self.train.start_station, first);
            self.compare_end("ends", &self.train.end_station, last);
        }
        stops
    }

    fn compare_end(&mut self, verb: &str, station: &str, stop: &Lined<StopRow>) {
        if stop.1.departure != *station {
            let how = format!("the train {verb} at {station}, its stops at {}", stop.1.departure);
            let (first, again) = (self.at.clone(), place_of_stop(stop));
            let what = "train_stations.csv decides".to_owned();
            self.findings
                .add(SourceDefect::Disagreement { first, again, how }, Remedy::Believe { what });
        }
    }

    /// The station that a stop names; without one the train cannot be imported.
    fn station(&mut self, stop: &StopRow, at: &Place) -> Option<Stop> {
        let mut bearers =
            self.tables.stations.iter().filter(|(_, station)| station.name == stop.departure);
        let Some(found) = bearers.next() else {
            let defect = SourceDefect::Undeclared {
                what: format!("station {:?}", stop.departure),
                at: at.clone(),
            };
            self.findings.add(defect, Remedy::None);
            return None;
        };
        let (_, station) = found;
        if let Some(again) = bearers.next() {
            let defect = SourceDefect::DeclaredTwice {
                what: format!("station {}", station.name),
                first: place_of_station(found),
                again: place_of_station(again),
            };
            let what = format!("its code is {}", station.code);
            self.findings.add(defect, Remedy::Believe { what });
        }
        if station.id != stop.station_id {
            let defect = SourceDefect::Disagreement {
                first: at.clone(),
                again: place_of_station(found),
                how: format!("the stop says station {}", stop.station_id),
            };
            let what = format!("the name {} decides, because fares go by it", station.name);
            self.findings.add(defect, Remedy::Believe { what });
        }
        match StopId::new(station.code.as_str()) {
            Ok(stop) => Some(Stop { stop, name: station.name.clone() }),
            Err(why) => {
                let (at, why) = (place_of_station(found), why.to_string());
                self.findings.add(SourceDefect::UnusableKey { at, why }, Remedy::None);
                None
            }
        }
    }

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
    fn seats(&mut self, listed: &[&'tables Lined<SeatRow>]) -> Vec<Claimed<'tables>> {
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
        let mut bearers: HashMap<(&str, &str), Vec<&Lined<SeatRow>>> = HashMap::new();
        for seat in listed {
            let key = (seat.1.carriage_number.as_str(), seat.1.seat_number.as_str());
            bearers.entry(key).or_default().push(seat);
        }
        let mut points: HashMap<(&str, u32, char), Place> = HashMap::new();
        let mut seats = Vec::new();
        for seat in listed {
            let (line, row) = seat;
            let at = place_of_seat(seat);
            let leave_out = Remedy::LeaveOut { what: at.clone(), seats: 1 };
            let rivals = &bearers[&(row.carriage_number.as_str(), row.seat_number.as_str())];
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
        let mut told = HashSet::new();
        let mut seats_of: HashMap<&str, u64> = HashMap::new();
        for seat in seats {
            *seats_of.entry(seat.coach).or_default() += 1;
            let declared = coaches.get(&Natural(seat.coach)).map_or(&[][..], Vec::as_slice);
            let agrees = declared.iter().any(|(_, coach)| coach.carriage_type == seat.class);
            if agrees || !told.insert((seat.coach, seat.class)) {
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

    /// The fares by class.
    fn fares(&mut self, stops: &[Stop]) -> BTreeMap<Natural<'tables>, Fares> {
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
    fn tiers(
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
                tier,
                name,
                price_minor: None,
                fares: fares.collect(),
                sections: sections(&of_class, &columns),
                columns: columns.iter().map(|letter| letter.map(String::from)).collect(),
                general_admission: None,
                not_for_sale: Vec::new(),
            });
        }
        tiers
    }

    fn class_name(&mut self, code: &str, at: Place) -> String {
        let mut bearers = self.tables.classes.iter().filter(|(_, class)| class.code == code);
        let Some((first_line, first)) = bearers.next() else {
            let what = format!("class {code}");
            let remedy = Remedy::Believe { what: format!("it is called {what}") };
            self.findings.add(SourceDefect::Undeclared { what: what.clone(), at }, remedy);
            return what;
        };
        if let Some((again_line, again)) = bearers.next() {
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

fn place_of_stop((line, row): &Lined<StopRow>) -> Place {
    let label = format!("stop {}, {}", row.sequence, row.departure);
    Place { at: line_of("train_stations.csv", *line), label }
}

fn place_of_station((line, row): &Lined<StationRow>) -> Place {
    let label = format!("station {}, {}", row.id, row.name);
    Place { at: line_of("stations.csv", *line), label }
}

fn place_of_coach((line, row): &Lined<CoachRow>) -> Place {
    let label = format!("coach {}, class {}", row.carriage_number, row.carriage_type);
    Place { at: line_of("carriages.csv", *line), label }
}

fn place_of_seat((line, row): &Lined<SeatRow>) -> Place {
    let SeatRow { carriage_number, seat_number, seat_type, .. } = row;
    let label = format!("coach {carriage_number}, seat {seat_number}, class {seat_type}");
    Place { at: line_of("seats.csv", *line), label }
}

/// Text that is ordered as a number where it is one: coach 9 before coach 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Natural<'text>(&'text str);

impl Ord for Natural<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |text: &str| text.parse().unwrap_or(u64::MAX);
        (key(self.0), self.0).cmp(&(key(other.0), other.0))
    }
}

impl PartialOrd for Natural<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// `12F` as row 12 and letter F.
fn row_and_letter(number: &str) -> Option<(u32, char)> {
    let letter = number.chars().last().filter(char::is_ascii_uppercase)?;
    let row = number.strip_suffix(letter)?;
    let digits = !row.is_empty() && row.bytes().all(|byte| byte.is_ascii_digit());
    Some((row.parse().ok().filter(|_| digits)?, letter))
}

/// The letters from window to window with the aisle between C and D, or where that would be.
fn columns(letters: &BTreeSet<char>) -> Vec<Option<char>> {
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
        })
        .collect()
}

/// The id that the Latin words at the end of a name make: `二等座 second` is `second`.
fn latin_tail(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().skip_while(|word| !word.is_ascii()).collect();
    slug(&words.join(" "))
}

/// Which journeys are not sold because they have no fare.
fn notes(tiers: &[TierFile], stops: usize) -> Vec<String> {
    let journeys = stops * stops.saturating_sub(1) / 2;
    tiers
        .iter()
        .filter(|tier| tier.fares.len() < journeys)
        .map(|tier| {
            let missing = journeys - tier.fares.len();
            format!(
                "tier {}: {missing} of {journeys} journeys have no fare, so are not sold",
                tier.tier
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::sale::Sale;
    use engine::domain::time::Timestamp;

    /// A train of two classes over three stops, with `changes` made: (table, what, by what).
    fn tables(changes: &[(&str, &str, &str)]) -> Result<Tables, Error> {
        Tables::parse("folder", |name| {
            let text = match name {
                "trains.csv" => {
                    "id,train_number,start_station,end_station,departure_time\n\
                     1,G1,北京,杭州,2023-06-01 09:56:00\n2,G2,北京,杭州,2023-06-01 10:56:00\n"
                }
                "stations.csv" => "id,code,name\n1,BJP,北京\n2,NJH,南京\n3,HGH,杭州\n",
                "train_stations.csv" => {
                    "train_id,sequence,station_id,departure\n\
                     1,10,3,杭州\n1,01,1,北京\n1,2,2,南京\n2,1,1,北京\n2,2,3,杭州\n"
                }
                "carriages.csv" => {
                    "train_id,carriage_number,carriage_type,seat_count\n1,10,2,3\n1,9,2,3\n1,1,0,2\n"
                }
                "seats.csv" => {
                    "train_id,carriage_number,seat_number,seat_type\n\
                     1,10,01A,2\n1,10,01D,2\n1,10,02C,2\n\
                     1,9,01A,2\n1,9,01C,2\n1,9,01B,2\n1,1,01A,0\n1,1,01F,0\n"
                }
                "seat_types.csv" => "code,name\n0,商务座 business\n2,二等座\n13,无座 no seat\n",
                _ => {
                    "train_id,departure,arrival,seat_type,price\n\
                     1,北京,南京,0,300\n1,北京,杭州,0,500\n1,南京,杭州,0,200\n1,北京,杭州,2,50\n"
                }
            };
            let mut text = text.to_owned();
            for (_, what, by) in changes.iter().filter(|(table, ..)| *table == name) {
                assert!(text.contains(what), "{name} has no {what}");
                text = text.replacen(what, by, 1);
            }
            Ok(text.into_bytes())
        })
    }

    fn read(changes: &[(&str, &str, &str)]) -> Import {
        let terms = Terms::opening(Timestamp::from_ms(0));
        tables(changes).unwrap().import("G1", &terms).unwrap()
    }

    #[test]
    fn a_train_becomes_a_sale() {
        let (file, report) = read(&[]).accept(false).unwrap();
        assert_eq!((report.seats_read, report.seats_placed, report.seats_left_out), (8, 8, 0));
        assert_eq!(report.notes, ["tier t2: 2 of 3 journeys have no fare, so are not sold"]);
        assert_eq!(file.sale.as_str(), "g1-2023-06-01");
        assert_eq!(file.title, "G1 北京 → 杭州 2023-06-01");
        let stops: Vec<&str> = file.stops.iter().map(|stop| stop.stop.as_str()).collect();
        assert_eq!(stops, ["BJP", "NJH", "HGH"], "by sequence, as numbers");
        let sale = Sale::new(file).unwrap();
        let ids: Vec<&str> = sale.tiers().iter().map(|tier| tier.tier.as_str()).collect();
        assert_eq!(ids, ["business", "t2"]);
        let second = &sale.tiers()[1];
        let columns: Vec<&str> =
            second.layout.columns().iter().map(|c| c.as_deref().unwrap_or("_")).collect();
        assert_eq!(columns, ["A", "B", "C", "_", "D"]);
        let rows: Vec<String> = second
            .layout
            .rows()
            .iter()
            .map(|row| {
                let seats = row.places.names().map(|s| s.map_or("_".to_owned(), |s| s.to_string()));
                seats.collect::<Vec<_>>().join(" ")
            })
            .collect();
        // Coach 9 stands before coach 10, and a blank row between them.
        assert_eq!(rows, ["9-01A 9-01B 9-01C _ _", "", "10-01A _ _ _ 10-01D", "_ _ 10-02C _ _"]);
    }

    #[test]
    fn the_aisle_lies_before_the_first_letter_from_d_on() {
        for (letters, expected) in [
            ("ABCDF", "ABC_DF"),
            ("ACDF", "AC_DF"),
            ("ACF", "AC_F"),
            ("AF", "A_F"),
            ("AB", "AB"),
            ("DF", "DF"),
        ] {
            let columns = columns(&letters.chars().collect());
            let text: String = columns.iter().map(|letter| letter.unwrap_or('_')).collect();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn each_defect_is_named_with_its_places_and_its_remedy() {
        type Change = (&'static str, &'static str, &'static str);
        let cases: [(&[Change], &str, &str); 17] = [
            // One seat in two classes: the one that the coach has is believed.
            (
                &[("seats.csv", "1,1,01A,0\n", "1,1,01A,2\n1,1,01A,0\n")],
                "seat 1-01A stands twice: seats.csv line 8 (coach 1, seat 01A, class 2) and seats.csv line 9 (coach 1, seat 01A, class 0)",
                "seats.csv line 8 (coach 1, seat 01A, class 2) is left out (1 seat)",
            ),
            // Otherwise the first.
            (
                &[("seats.csv", "1,1,01A,0\n", "1,1,01A,0\n1,1,01A,0\n")],
                "seats.csv line 8 (coach 1, seat 01A, class 0) and seats.csv line 9",
                "seats.csv line 9 (coach 1, seat 01A, class 0) is left out (1 seat)",
            ),
            (
                &[("seats.csv", "1,10,02C", "1,10,1D")],
                "two seats lie at one point: seats.csv line 3 (coach 10, seat 01D, class 2) and seats.csv line 4",
                "is left out (1 seat)",
            ),
            (
                &[("seats.csv", "1,10,02C", "1,10,upper berth")],
                "seats.csv line 4 (coach 10, seat upper berth, class 2) has no usable key",
                "is left out (1 seat)",
            ),
            (
                &[("seats.csv", "1,1,01F,0", "1,1,01F,2")],
                "carriages.csv line 4 (coach 1, class 0) and seats.csv line 9 (coach 1, seat 01F, class 2) disagree",
                "each seat's own class decides",
            ),
            (
                &[("carriages.csv", "1,1,0,2\n", "")],
                "seats.csv line 8 (coach 1, seat 01A, class 0) names coach 1, which is not declared",
                "the coach is real",
            ),
            (
                &[("carriages.csv", "1,1,0,2\n", "1,1,0,3\n")],
                "the coach should have 3 seats and has 2",
                "the seats that are listed are sold",
            ),
            (
                &[("carriages.csv", "1,1,0,2\n", "1,1,0,2\n1,1,0,2\n")],
                "coach 1 is declared twice: carriages.csv line 4 (coach 1, class 0) and carriages.csv line 5",
                "carriages.csv line 5 (coach 1, class 0) is left out",
            ),
            (
                &[("seat_types.csv", "2,二等座\n", "")],
                "names class 2, which is not declared",
                "it is called class 2",
            ),
            (
                &[("seat_types.csv", "2,二等座\n", "2,二等座\n2,硬座\n")],
                "class 2 is declared twice: seat_types.csv line 3 (二等座) and seat_types.csv line 4 (硬座)",
                "it is called 二等座",
            ),
            (
                &[("prices.csv", "1,北京,杭州,2", "1,北京,杭州,13")],
                "class 13 has 1 fares and no seat; the first: prices.csv line 5 (北京 to 杭州, class 13)",
                "train G1 (class 13) is left out",
            ),
            (
                &[("prices.csv", "1,北京,杭州,2", "1,北京,杭州,13")],
                "class 2 has 6 seats and no fare; the first: seats.csv line 2",
                "train G1 (class 2) is left out (6 seats)",
            ),
            (
                &[("prices.csv", "1,南京,杭州,0", "1,杭州,南京,0")],
                "prices.csv line 4 (杭州 to 南京, class 0) is no journey of this train",
                "is left out",
            ),
            (
                &[("prices.csv", "1,南京,杭州,0,200", "1,北京,杭州,0,500")],
                "prices.csv line 3 (北京 to 杭州, class 0) and prices.csv line 4",
                "is left out",
            ),
            (
                &[("train_stations.csv", "1,2,2,南京", "1,01,2,南京")],
                "train_stations.csv line 3 (stop 1, 北京) and train_stations.csv line 4 (stop 1, 南京)",
                "train_stations.csv line 4 (stop 1, 南京) is left out",
            ),
            (
                &[("train_stations.csv", "1,2,2,南京", "1,2,3,南京")],
                "train_stations.csv line 4 (stop 2, 南京) and stations.csv line 3 (station 2, 南京) disagree: the stop says station 3",
                "the name 南京 decides",
            ),
            (
                &[("trains.csv", "1,G1,北京", "1,G1,北京南")],
                "trains.csv line 2 (train G1) and train_stations.csv line 3 (stop 1, 北京) disagree: the train starts at 北京南",
                "train_stations.csv decides",
            ),
        ];
        for (changes, defect, remedy) in cases {
            let import = read(changes);
            let text = import.report().to_text();
            assert!(
                text.contains(defect) && text.contains(remedy),
                "{text}\nlacks {defect} / {remedy}"
            );
            let report = import.report().clone();
            assert_eq!(report.seats_read, report.seats_placed + report.seats_left_out, "{text}");
            assert_eq!(read(changes).accept(false).unwrap_err().outcome, Outcome::Refused);
            assert_eq!(import.accept(true).unwrap().1.outcome, Outcome::Resolved, "{text}");
        }
    }

    #[test]
    fn what_nothing_resolves_is_refused_with_consent_too() {
        let cases = [
            (("train_stations.csv", "1,10,3,杭州\n1,01,1,北京\n", ""), "1 stops"),
            (("stations.csv", "2,NJH,南京\n", ""), "names station \"南京\", which is not declared"),
            (("stations.csv", "2,NJH,南京\n", "2,,南京\n"), "has no usable key: stop id"),
            (
                ("stations.csv", "2,NJH,南京\n", "2,BJP,南京\n"),
                "the code BJP is declared twice: train_stations.csv line 3 (stop 1, 北京) and train_stations.csv line 4 (stop 2, 南京)",
            ),
        ];
        for (change, defect) in cases {
            let refused = read(&[change]).accept(true).unwrap_err();
            assert!(refused.to_text().contains(defect), "{}", refused.to_text());
        }
        let terms = Terms::opening(Timestamp::from_ms(0));
        let other = tables(&[]).unwrap().import("G2", &terms).unwrap().accept(true).unwrap_err();
        assert!(other.to_text().contains("trains.csv line 3 (train G2) has no seats"));
    }

    #[test]
    fn a_train_is_found_by_its_number_alone() {
        let terms = Terms::opening(Timestamp::from_ms(0));
        let absent = tables(&[]).unwrap().import("G3", &terms).unwrap_err().to_string();
        assert_eq!(absent, "there is no train G3; there are G1, G2");
        let twice = tables(&[("trains.csv", "2,G2", "2,G1")]).unwrap();
        let twice = twice.import("G1", &terms).unwrap_err().to_string();
        assert_eq!(twice, "train G1 stands twice: trains.csv lines 2 and 3");
    }

    #[test]
    fn padding_marks_and_line_ends_do_not_matter() {
        let padded = Tables::parse("folder", |name| {
            let text = match name {
                "stations.csv" => {
                    "\u{feff} id , code,name \r\n1 , BJP,  北京 \r\n\r\n2,NJH,南京\r\n3,HGH,杭州\r\n"
                }
                _ => return Ok(header_of(name)),
            };
            Ok(text.as_bytes().to_vec())
        });
        let stations = padded.unwrap().stations;
        assert_eq!(stations.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4, 5]);
        assert_eq!((stations[0].1.code.as_str(), stations[0].1.name.as_str()), ("BJP", "北京"));
    }

    /// The smallest text of a table that the case does not look at: its header line.
    fn header_of(name: &str) -> Vec<u8> {
        match name {
            "trains.csv" => "id,train_number,start_station,end_station,departure_time\n",
            "train_stations.csv" => "train_id,sequence,station_id,departure\n",
            "carriages.csv" => "train_id,carriage_number,carriage_type,seat_count\n",
            "seats.csv" => "train_id,carriage_number,seat_number,seat_type\n",
            "seat_types.csv" => "code,name\n",
            _ => "train_id,departure,arrival,seat_type,price\n",
        }
        .into()
    }

    #[test]
    fn what_is_no_table_is_an_error_with_its_line() {
        let cases = [
            (("carriages.csv", "1,9,2,3", "1,9,2,many"), "carriages.csv line 3 is malformed"),
            (("prices.csv", "1,北京,杭州,2,50", "1,北京,杭州,2"), "prices.csv line 5 is malformed"),
            (("train_stations.csv", "1,01,1", "1,-1,1"), "train_stations.csv line 3 is malformed"),
            (("prices.csv", "price", "cost"), "prices.csv line 2 is malformed"),
            (("seats.csv", "1,10,01A,2", "1,10,\"01A,2"), "seats.csv"),
        ];
        for (change, expected) in cases {
            let error = tables(&[change]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = Tables::parse("folder", |_| Ok(b"\xff\xfe,\x00".to_vec())).unwrap_err();
        assert!(error.to_string().contains("malformed"), "{error}");
        let absent = Tables::read(Path::new("no-such-folder")).unwrap_err();
        assert!(absent.to_string().contains("cannot read no-such-folder/trains.csv"), "{absent}");
    }
}
