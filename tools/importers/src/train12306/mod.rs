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

mod rows;
mod seats;
mod stops;
#[cfg(test)]
mod tests;
mod tiers;

use std::path::Path;

use engine::domain::basics::money::Currency;
use engine::domain::sale::{Stop, TierFile};

use super::report::Findings;
use super::slug::slug;
use super::tables::{Lined, Row, Unreadable, line_of, notes_of, table};
use super::terms::{Terms, running_on};
use super::{Error, Import, Outcome, Place, Report, TierCount, read_bounded};

use self::rows::{ClassRow, CoachRow, PriceRow, SeatRow, StationRow, StopRow, TrainRow};

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
    /// The rows that cannot be read.
    unreadable: Vec<Unreadable>,
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

    /// Reads the tables that `text` gives by file name. `source` is what reports call them. Rows that cannot be read
    /// are no errors before [`Tables::import`] needs them.
    ///
    /// # Errors
    /// What `text` returns; [`Error::NoColumn`] for a table without a column that is read; [`Error::Malformed`] for a
    /// header that is no text; [`Error::TooLarge`] for a table of more than a million rows.
    pub fn parse(
        source: &str,
        text: impl Fn(&str) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let mut unreadable = Vec::new();
        let bad = &mut unreadable;
        Ok(Self {
            source: source.to_owned(),
            trains: rows("trains.csv", &text, bad)?,
            stations: rows("stations.csv", &text, bad)?,
            stops: rows("train_stations.csv", &text, bad)?,
            coaches: rows("carriages.csv", &text, bad)?,
            seats: rows("seats.csv", &text, bad)?,
            classes: rows("seat_types.csv", &text, bad)?,
            prices: rows("prices.csv", &text, bad)?,
            unreadable,
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
    /// [`Error::Flags`] if no train, or more than one, has the number; [`Error::Malformed`] for a row of the train, its
    /// stations or its classes that cannot be read; [`Error::Rules`] if the terms break a rule. Defects of the tables are no errors: see [`Import::accept`].
    pub fn import(&self, number: &str, terms: &Terms) -> Result<Import, Error> {
        let is_it = |row: &&Unreadable| row.table == "trains.csv" && row.is_of(number);
        if let Some(row) = self.unreadable.iter().find(is_it) {
            return Err(row.error());
        }
        let mut matching = self.trains.iter().filter(|(_, train)| train.train_number == number);
        let (line, train) = match (matching.next(), matching.next()) {
            (Some(train), None) => train,
            (Some((first, _)), Some((again, _))) => {
                return Err(Error::Flags(format!(
                    "train {number} is duplicated: trains.csv lines {first} and {again}"
                )));
            }
            (None, _) => {
                let known = self.trains().join(", ");
                return Err(Error::Flags(format!("there is no train {number}; there are {known}")));
            }
        };
        let unread = self.unread(train)?;
        let at = Place { at: line_of("trains.csv", *line), label: format!("train {number}") };
        Reading { tables: self, train, at, findings: Findings::default() }.finish(terms, unread)
    }

    /// The notes about rows that cannot be read and are not needed for a train.
    fn unread(&self, train: &TrainRow) -> Result<Vec<String>, Error> {
        let stations = || {
            let stops = self.stops.iter().filter(|(_, row)| row.train_id == train.id);
            stops.map(|(_, row)| row.departure.as_str())
        };
        let classes = || {
            let seats = self.seats.iter().filter(|(_, row)| row.train_id == train.id);
            let prices = self.prices.iter().filter(|(_, row)| row.train_id == train.id);
            let seats = seats.map(|(_, row)| row.seat_type.as_str());
            seats.chain(prices.map(|(_, row)| row.seat_type.as_str()))
        };
        let is_needed = |row: &&Unreadable| match row.table {
            "stations.csv" => stations().any(|name| row.is_of(name)),
            "seat_types.csv" => classes().any(|code| row.is_of(code)),
            "trains.csv" => row.is_of(&train.train_number),
            _ => row.is_of(&train.id),
        };
        match self.unreadable.iter().find(is_needed) {
            Some(row) => Err(row.error()),
            None => Ok(notes_of(&self.unreadable)),
        }
    }
}

fn rows<T: Row>(
    name: &'static str,
    text: impl Fn(&str) -> Result<Vec<u8>, Error>,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<Lined<T>>, Error> {
    table(name, &text(name)?, |_| true, unreadable)
}

/// One train while it is being read.
struct Reading<'tables> {
    tables: &'tables Tables,
    train: &'tables TrainRow,
    at: Place,
    findings: Findings,
}

impl<'tables> Reading<'tables> {
    fn finish(mut self, terms: &Terms, unread: Vec<String>) -> Result<Import, Error> {
        let stops = self.stops();
        let listed = self.of_train(&self.tables.seats, |row| &row.train_id);
        let seats = self.seats(&listed);
        let fares = self.fares(&stops);
        let tiers = self.tiers(&stops, &seats, &fares);
        let counts: Vec<TierCount> = tiers.iter().map(TierCount::from_tier).collect();
        let notes = [unread, notes(&tiers, stops.len())].concat();
        let file = if self.findings.unresolvable() {
            None
        } else {
            let number = &self.train.train_number;
            let date = self.train.departure_time.split([' ', 'T']).next().unwrap_or_default();
            let end = |stop: Option<&Stop>| stop.map_or_else(String::new, |stop| stop.name.clone());
            let title = format!("{number} {} → {} {date}", end(stops.first()), end(stops.last()));
            let currency = Currency::new("CNY")
                .unwrap_or_else(|error| unreachable!("CNY is three letters: {error}"));
            let id = slug(&format!("{number} {date}"));
            let runs_on = stops::moment(&self.train.departure_time).map(|(day, _)| day);
            let file = terms.sale_file(title.trim(), id, currency, None, stops, tiers)?;
            Some(running_on(file, runs_on))
        };
        let report = Report {
            source: format!("{} {}", self.tables.source, self.train.train_number),
            sale: file.as_ref().map(|file| file.sale.clone()),
            outcome: Outcome::Refused,
            seats_read: listed.len(),
            seats_placed: counts.iter().map(|tier| tier.seats).sum(),
            seats_left_out: self.findings.left_out(),
            tiers: counts,
            defects_by_kind: self.findings.by_kind(),
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
}

/// A note for each tier with journeys that are not sold because they have no fare.
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
