//! The tables of a GTFS feed, as far as they are needed to sell a trip.
//!
//! The format: <https://gtfs.org/documentation/schedule/reference/>. Ids are text, whatever they look
//! like. A column that is absent and a field that is blank are the same.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use chrono::Weekday;
use serde::{Deserialize, Deserializer};

use super::super::tables::{Lined, line_of, table};
use super::super::{Error, read_bounded};
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
            Weekday::Mon => self.monday,
            Weekday::Tue => self.tuesday,
            Weekday::Wed => self.wednesday,
            Weekday::Thu => self.thursday,
            Weekday::Fri => self.friday,
            Weekday::Sat => self.saturday,
            Weekday::Sun => self.sunday,
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
}

impl Feed {
    /// Reads the tables of a folder; with `only`, nothing of `stop_times.txt` but what that trip and
    /// others with its number need, so that a whole country's feed fits.
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

    /// Reads the tables that `text` gives by file name, `None` for one that the feed has not.
    ///
    /// # Errors
    /// What `text` returns; [`Error::Malformed`] with file and line, also for a stop, route or trip that
    /// is declared twice; [`Error::TooLarge`] for a table of more than a million rows.
    pub fn parse(
        source: &str,
        only: Option<&str>,
        text: impl Fn(&str) -> Result<Option<Vec<u8>>, Error>,
    ) -> Result<Self, Error> {
        let text = |name: &str| Ok::<_, Error>(text(name)?.unwrap_or_default());
        let trips: Vec<Lined<TripRow>> = table("trips.txt", &text("trips.txt")?, |_| true)?;
        keyed("trips.txt", trips.iter().map(|(line, row)| (*line, row.trip_id.as_str())))?;
        let number = |id: &str| {
            let trip = trips.iter().find(|(_, trip)| trip.trip_id == id);
            trip.and_then(|(_, trip)| trip.trip_short_name.clone())
        };
        let only_number = only.and_then(number);
        let requested: Option<HashSet<&str>> = only.map(|only| {
            let is_requested = |trip: &&Lined<TripRow>| {
                let same = only_number.is_some() && trip.1.trip_short_name == only_number;
                trip.1.trip_id == only || same
            };
            trips.iter().filter(is_requested).map(|(_, trip)| trip.trip_id.as_str()).collect()
        });
        let times: Vec<Lined<StopTimeRow>> =
            table("stop_times.txt", &text("stop_times.txt")?, |row: &StopTimeRow| {
                requested.as_ref().is_none_or(|trips| trips.contains(row.trip_id.as_str()))
            })?;
        let mut stop_times: HashMap<String, Vec<Lined<StopTimeRow>>> = HashMap::new();
        for row in times {
            stop_times.entry(row.1.trip_id.clone()).or_default().push(row);
        }
        for times in stop_times.values_mut() {
            times.sort_by_key(|(_, row)| row.stop_sequence);
        }
        let stops: Vec<Lined<StopRow>> = table("stops.txt", &text("stops.txt")?, |_| true)?;
        keyed("stops.txt", stops.iter().map(|(line, row)| (*line, row.stop_id.as_str())))?;
        let routes: Vec<Lined<RouteRow>> = table("routes.txt", &text("routes.txt")?, |_| true)?;
        keyed("routes.txt", routes.iter().map(|(line, row)| (*line, row.route_id.as_str())))?;
        Ok(Self {
            source: source.to_owned(),
            agencies: table("agency.txt", &text("agency.txt")?, |_| true)?,
            stops: stops.into_iter().map(|row| (row.1.stop_id.clone(), row)).collect(),
            routes: routes.into_iter().map(|row| (row.1.route_id.clone(), row)).collect(),
            stop_times,
            calendar: table("calendar.txt", &text("calendar.txt")?, |_| true)?,
            dates: table("calendar_dates.txt", &text("calendar_dates.txt")?, |_| true)?,
            fares: table("fare_attributes.txt", &text("fare_attributes.txt")?, |_| true)?,
            fare_rules: table("fare_rules.txt", &text("fare_rules.txt")?, |_| true)?,
            frequencies: table("frequencies.txt", &text("frequencies.txt")?, |_| true)?,
            trips,
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

/// Refuses a table in which two rows have one key: nobody could tell which is meant.
fn keyed<'rows>(name: &str, keys: impl Iterator<Item = (u64, &'rows str)>) -> Result<(), Error> {
    let mut first_of: HashMap<&str, u64> = HashMap::new();
    for (line, key) in keys {
        if let Some(first) = first_of.insert(key, line) {
            let why = format!("{key:?} stands on line {first} already");
            return Err(Error::Malformed { what: line_of(name, line), why });
        }
    }
    Ok(())
}
