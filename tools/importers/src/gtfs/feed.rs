//! The tables of a GTFS feed, as far as they are needed to sell a trip.
//!
//! The format: <https://gtfs.org/documentation/schedule/reference/>. Ids are text, whatever they look
//! like. A column that is absent and a field that is blank are the same.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::civil::Weekday;
use serde::{Deserialize, Deserializer};

use super::super::tables::{Lined, Row, Unreadable, table, table_rows, table_where};
use super::super::{Error, read_bounded};
use super::same_train::Places;
use super::service::{Clock, Day};

#[derive(Debug, Deserialize)]
pub(super) struct AgencyRow {
    pub(super) agency_id: Option<String>,
    pub(super) agency_timezone: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct StopRow {
    pub(super) stop_id: String,
    pub(super) stop_name: Option<String>,
    #[serde(default)]
    pub(super) stop_lat: Option<f64>,
    #[serde(default)]
    pub(super) stop_lon: Option<f64>,
    #[serde(default)]
    pub(super) zone_id: Option<String>,
    /// The time zone by whose clock people read the times here, unless its station has one.
    #[serde(default)]
    pub(super) stop_timezone: Option<String>,
    /// The station of a platform.
    #[serde(default)]
    pub(super) parent_station: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RouteRow {
    pub(super) route_id: String,
    #[serde(default)]
    pub(super) agency_id: Option<String>,
    #[serde(default)]
    pub(super) route_short_name: Option<String>,
    #[serde(default)]
    pub(super) route_long_name: Option<String>,
    pub(super) route_type: u16,
}

#[derive(Debug, Deserialize)]
pub(super) struct TripRow {
    pub(super) route_id: String,
    pub(super) service_id: String,
    pub(super) trip_id: String,
    #[serde(default)]
    pub(super) trip_short_name: Option<String>,
}

/// The rule for boarding, or for alighting, at a stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// As a matter of course: 0, or nothing at all.
    #[default]
    Regular,
    /// Not at all: 1.
    Never,
    /// After a call to the operator or the driver: 2 and 3.
    Arranged,
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<u8>::deserialize(deserializer)? {
            None | Some(0) => Ok(Self::Regular),
            Some(1) => Ok(Self::Never),
            Some(2 | 3) => Ok(Self::Arranged),
            Some(other) => Err(serde::de::Error::custom(format!(
                "pickup and drop-off types are 0 to 3, not {other}"
            ))),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct StopTimeRow {
    pub(super) trip_id: String,
    #[serde(default)]
    pub(super) arrival_time: Option<Clock>,
    #[serde(default)]
    pub(super) departure_time: Option<Clock>,
    pub(super) stop_id: String,
    pub(super) stop_sequence: u32,
    #[serde(default)]
    pub(super) pickup_type: Rule,
    #[serde(default)]
    pub(super) drop_off_type: Rule,
}

#[derive(Debug, Deserialize)]
pub(super) struct CalendarRow {
    pub(super) service_id: String,
    monday: u8,
    tuesday: u8,
    wednesday: u8,
    thursday: u8,
    friday: u8,
    saturday: u8,
    sunday: u8,
    pub(super) start_date: Day,
    pub(super) end_date: Day,
}

impl CalendarRow {
    /// True if it runs on this day of the week.
    pub(super) fn runs_on(&self, day: Weekday) -> bool {
        let runs = match day {
            Weekday::Monday => self.monday,
            Weekday::Tuesday => self.tuesday,
            Weekday::Wednesday => self.wednesday,
            Weekday::Thursday => self.thursday,
            Weekday::Friday => self.friday,
            Weekday::Saturday => self.saturday,
            Weekday::Sunday => self.sunday,
        };
        runs == 1
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct DateRow {
    pub(super) service_id: String,
    pub(super) date: Day,
    pub(super) exception_type: u8,
}

#[derive(Debug, Deserialize)]
pub(super) struct FareRow {
    pub(super) fare_id: String,
    pub(super) price: String,
    pub(super) currency_type: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct FareRuleRow {
    pub(super) fare_id: String,
    #[serde(default)]
    pub(super) route_id: Option<String>,
    #[serde(default)]
    pub(super) origin_id: Option<String>,
    #[serde(default)]
    pub(super) destination_id: Option<String>,
    #[serde(default)]
    pub(super) contains_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FrequencyRow {
    pub(super) trip_id: String,
}

table_rows! {
    AgencyRow of "agency_id": "agency_timezone";
    StopRow of "stop_id": "stop_id";
    RouteRow of "route_id": "route_id" "route_type";
    TripRow of "trip_id": "route_id" "service_id" "trip_id";
    StopTimeRow of "trip_id": "trip_id" "stop_id" "stop_sequence";
    CalendarRow of "service_id": "service_id" "monday" "tuesday" "wednesday" "thursday" "friday" "saturday" "sunday"
        "start_date" "end_date";
    DateRow of "service_id": "service_id" "date" "exception_type";
    FareRow of "fare_id": "fare_id" "price" "currency_type";
    FareRuleRow of "fare_id": "fare_id";
    FrequencyRow of "trip_id": "trip_id";
}

/// A feed, or as much of it as one trip needs.
#[derive(Debug)]
pub struct Feed {
    pub(super) source: String,
    pub(super) agencies: Vec<Lined<AgencyRow>>,
    pub(super) stops: HashMap<String, Lined<StopRow>>,
    pub(super) routes: HashMap<String, Lined<RouteRow>>,
    pub(super) trips: Vec<Lined<TripRow>>,
    /// By trip, in order of their sequence.
    pub(super) stop_times: HashMap<String, Vec<Lined<StopTimeRow>>>,
    pub(super) calendar: Vec<Lined<CalendarRow>>,
    pub(super) dates: Vec<Lined<DateRow>>,
    pub(super) fares: Vec<Lined<FareRow>>,
    pub(super) fare_rules: Vec<Lined<FareRuleRow>>,
    pub(super) frequencies: Vec<Lined<FrequencyRow>>,
    /// The rows that cannot be read, and those that stand for a stop, route or trip again.
    pub(super) unreadable: Vec<Unreadable>,
}

impl Feed {
    /// Reads the tables of a folder; with `only`, nothing of `stop_times.txt` but what that trip and
    /// others that may be the same train need, so that a whole country's feed fits.
    ///
    /// # Errors
    /// See [`Feed::parse`]; also [`Error::Unreadable`].
    pub fn read(folder: &Path, only: Option<&str>) -> Result<Self, Error> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let source = name.unwrap_or_else(|| folder.display().to_string());
        let text = |table: &str| match read_bounded(&folder.join(table)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::Unreadable { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound && !REQUIRED.contains(&table) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        };
        Self::parse(&source, only, text)
    }

    /// Reads the tables that `text` gives by file name, `None` for one that the feed has not. Rows that cannot be
    /// read are no errors before [`Feed::import`] needs them.
    ///
    /// # Errors
    /// What `text` returns; [`Error::NoColumn`] for a table without a column that it must have;
    /// [`Error::Malformed`] for a header that is no text; [`Error::TooLarge`] for a table of more than a million rows.
    pub fn parse(
        source: &str,
        only: Option<&str>,
        text: impl Fn(&str) -> Result<Option<Vec<u8>>, Error>,
    ) -> Result<Self, Error> {
        let text = &|name: &str| Ok::<_, Error>(text(name)?.unwrap_or_default());
        let mut unreadable = Vec::new();
        let bad = &mut unreadable;
        let trips: Vec<Lined<TripRow>> = all("trips.txt", text, bad)?;
        let trips = keyed("trips.txt", trips, |row| &row.trip_id, bad);
        let stops: Vec<Lined<StopRow>> = all("stops.txt", text, bad)?;
        let stops = keyed("stops.txt", stops, |row| &row.stop_id, bad);
        let stops = stops.into_iter().map(|row| (row.1.stop_id.clone(), row)).collect();
        let routes: Vec<Lined<RouteRow>> = all("routes.txt", text, bad)?;
        let routes = keyed("routes.txt", routes, |row| &row.route_id, bad);
        let times = stop_times(&text("stop_times.txt")?, only, &trips, &stops, bad)?;
        let mut stop_times: HashMap<String, Vec<Lined<StopTimeRow>>> = HashMap::new();
        for row in times {
            stop_times.entry(row.1.trip_id.clone()).or_default().push(row);
        }
        for times in stop_times.values_mut() {
            times.sort_by_key(|(line, row)| (row.stop_sequence, *line));
        }
        Ok(Self {
            source: source.to_owned(),
            agencies: all("agency.txt", text, bad)?,
            stops,
            routes: routes.into_iter().map(|row| (row.1.route_id.clone(), row)).collect(),
            stop_times,
            calendar: all("calendar.txt", text, bad)?,
            dates: all("calendar_dates.txt", text, bad)?,
            fares: all("fare_attributes.txt", text, bad)?,
            fare_rules: all("fare_rules.txt", text, bad)?,
            frequencies: all("frequencies.txt", text, bad)?,
            trips,
            unreadable,
        })
    }

    /// The ids of the trips, in the order of the feed.
    pub fn trips(&self) -> impl Iterator<Item = &str> {
        self.trips.iter().map(|(_, trip)| trip.trip_id.as_str())
    }
}

/// Tables without which there is no feed.
const REQUIRED: [&str; 5] =
    ["agency.txt", "stops.txt", "routes.txt", "trips.txt", "stop_times.txt"];

/// All rows of a table.
fn all<T: Row>(
    name: &'static str,
    text: impl Fn(&str) -> Result<Vec<u8>, Error>,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<Lined<T>>, Error> {
    table(name, &text(name)?, |_| true, unreadable)
}

/// The rows that are the first of their key. Of two, nobody could tell which is meant: whoever needs one is refused.
fn keyed<T>(
    table: &'static str,
    rows: Vec<Lined<T>>,
    key: impl Fn(&T) -> &String,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<Lined<T>> {
    let mut first_of: HashMap<String, u64> = HashMap::new();
    let is_first = |(line, row): &Lined<T>| {
        let key = key(row);
        let Some(first) = first_of.get(key) else {
            first_of.insert(key.clone(), *line);
            return true;
        };
        let why = format!("{key:?} stands on line {first} already");
        unreadable.push(Unreadable::of_one(table, *line, why, key.clone()));
        false
    };
    let mut rows = rows;
    rows.retain(is_first);
    rows
}

/// The rows of `stop_times.txt`: all; or those of one trip, of others with its number, and of others that are at two
/// of its places at its times.
fn stop_times(
    bytes: &[u8],
    only: Option<&str>,
    trips: &[Lined<TripRow>],
    stops: &HashMap<String, Lined<StopRow>>,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Vec<Lined<StopTimeRow>>, Error> {
    const NAME: &str = "stop_times.txt";
    let Some(only) = only else { return table(NAME, bytes, |_| true, unreadable) };
    let number = trips.iter().find(|(_, trip)| trip.trip_id == only);
    let number = number.and_then(|(_, trip)| trip.trip_short_name.as_ref());
    let is_numbered =
        |trip: &&Lined<TripRow>| number.is_some() && trip.1.trip_short_name.as_ref() == number;
    let numbered = trips.iter().filter(is_numbered).map(|(_, trip)| trip.trip_id.as_str());
    let needed: HashSet<&str> = numbered.chain([only]).collect();
    let mut times: Vec<Lined<StopTimeRow>> =
        table(NAME, bytes, |row: &StopTimeRow| needed.contains(row.trip_id.as_str()), unreadable)?;
    let own: Vec<&StopTimeRow> =
        times.iter().map(|(_, row)| row).filter(|row| row.trip_id == only).collect();
    let places = Places::new(own, stops);
    let mut met: HashMap<String, usize> = HashMap::new();
    let count = |row: &StopTimeRow| {
        if !needed.contains(row.trip_id.as_str()) && places.meets(row) {
            *met.entry(row.trip_id.clone()).or_default() += 1;
        }
        false
    };
    // What cannot be read is known by now.
    let mut known = Vec::new();
    let at_its_stops = ("stop_id", |stop: &str| places.has(stop));
    table_where(NAME, bytes, at_its_stops, count, &mut known)?;
    met.retain(|_, calls| *calls >= 2);
    if !met.is_empty() {
        let of_those = ("trip_id", |trip: &str| met.contains_key(trip));
        known.clear();
        times.extend(table_where(NAME, bytes, of_those, |_: &StopTimeRow| true, &mut known)?);
    }
    Ok(times)
}
