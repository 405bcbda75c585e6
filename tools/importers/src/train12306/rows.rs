//! The rows of the tables, as far as they are read, and how reports name their places.

use std::cmp::Ordering;

use engine::domain::basics::money::MinorUnits;
use serde::Deserialize;

use super::super::Place;
use super::super::tables::{Lined, line_of, table_rows};

#[derive(Debug, Deserialize)]
pub(super) struct TrainRow {
    pub(super) id: String,
    pub(super) train_number: String,
    pub(super) start_station: String,
    pub(super) end_station: String,
    pub(super) departure_time: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct StationRow {
    pub(super) id: String,
    pub(super) code: String,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct StopRow {
    pub(super) train_id: String,
    pub(super) sequence: u32,
    pub(super) station_id: String,
    pub(super) departure: String,
    /// Day and time, `2023-06-01 09:56:00`; empty where it is not known.
    #[serde(default)]
    pub(super) arrival_time: String,
    #[serde(default)]
    pub(super) departure_time: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct CoachRow {
    pub(super) train_id: String,
    pub(super) carriage_number: String,
    pub(super) carriage_type: String,
    pub(super) seat_count: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct SeatRow {
    pub(super) train_id: String,
    pub(super) carriage_number: String,
    pub(super) seat_number: String,
    pub(super) seat_type: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClassRow {
    pub(super) code: String,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct PriceRow {
    pub(super) train_id: String,
    pub(super) departure: String,
    pub(super) arrival: String,
    pub(super) seat_type: String,
    pub(super) price: MinorUnits,
}

table_rows! {
    TrainRow of "train_number": "id" "train_number" "start_station" "end_station" "departure_time";
    StationRow of "name": "id" "code" "name";
    StopRow of "train_id": "train_id" "sequence" "station_id" "departure";
    CoachRow of "train_id": "train_id" "carriage_number" "carriage_type" "seat_count";
    SeatRow of "train_id": "train_id" "carriage_number" "seat_number" "seat_type";
    ClassRow of "code": "code" "name";
    PriceRow of "train_id": "train_id" "departure" "arrival" "seat_type" "price";
}

pub(super) fn place_of_stop((line, row): &Lined<StopRow>) -> Place {
    let label = format!("stop {}, {}", row.sequence, row.departure);
    Place { at: line_of("train_stations.csv", *line), label }
}

pub(super) fn place_of_station((line, row): &Lined<StationRow>) -> Place {
    let label = format!("station {}, {}", row.id, row.name);
    Place { at: line_of("stations.csv", *line), label }
}

pub(super) fn place_of_coach((line, row): &Lined<CoachRow>) -> Place {
    let label = format!("coach {}, class {}", row.carriage_number, row.carriage_type);
    Place { at: line_of("carriages.csv", *line), label }
}

pub(super) fn place_of_seat((line, row): &Lined<SeatRow>) -> Place {
    let SeatRow { carriage_number, seat_number, seat_type, .. } = row;
    let label = format!("coach {carriage_number}, seat {seat_number}, class {seat_type}");
    Place { at: line_of("seats.csv", *line), label }
}

/// Text that is ordered as a number where it is one: coach 9 before coach 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Natural<'text>(pub(super) &'text str);

impl Ord for Natural<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |text: &str| text.parse().unwrap_or(u64::MAX);
        (key(self.0), self.0).cmp(&(key(other.0), other.0))
    }
}

impl PartialOrd for Natural<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
