//! Whether a trip can be sold: it runs on the day, as one trip, and is a train.

use std::collections::HashSet;

use jiff::tz::TimeZone;

use super::super::tables::{Unreadable, line_of, notes_of};
use super::super::{Error, Place, Remedy, SourceDefect};
use super::feed::{Feed, RouteRow, Rule, TripRow};
use super::journeys::journeys;
use super::same_train::{DAYS, Places};
use super::service;
use super::{Prices, Reading};

impl Feed {
    /// The notes about rows that cannot be read and are not needed for a trip.
    ///
    /// # Errors
    /// [`Error::Malformed`] for one that is: of the trip itself, its calls, its stops and their stations, its route
    /// and agency, its service, or the fares where they are asked for.
    pub(super) fn unread(&self, trip: &TripRow, prices: Prices) -> Result<Vec<String>, Error> {
        let mut stops: HashSet<&str> = HashSet::new();
        for (_, row) in self.times(&trip.trip_id) {
            let stop = self.stops.get(&row.stop_id);
            let station = stop.and_then(|(_, stop)| stop.parent_station.as_deref());
            stops.extend([row.stop_id.as_str()].into_iter().chain(station));
        }
        let route = self.routes.get(&trip.route_id);
        let agency = route.and_then(|(_, route)| route.agency_id.as_deref());
        let is_needed = |row: &&Unreadable| match row.table {
            "stops.txt" => stops.iter().any(|stop| row.is_of(stop)),
            "routes.txt" => row.is_of(&trip.route_id),
            "agency.txt" => agency.is_none_or(|agency| row.is_of(agency)),
            "calendar.txt" | "calendar_dates.txt" => row.is_of(&trip.service_id),
            "fare_attributes.txt" | "fare_rules.txt" => prices == Prices::OfTheFeed,
            _ => row.is_of(&trip.trip_id),
        };
        match self.unreadable.iter().find(is_needed) {
            Some(row) => Err(row.error()),
            None => Ok(notes_of(&self.unreadable)),
        }
    }

    /// True if two routes, where they are declared, are of one kind, such as two of trains.
    fn are_alike(&self, one: &str, other: &str) -> bool {
        let kind = |route: &str| self.routes.get(route).map(|(_, row)| not_a_train(row.route_type));
        kind(one).zip(kind(other)).is_none_or(|(one, other)| one == other)
    }
}

impl<'feed> Reading<'feed> {
    /// Reports a trip that does not run on the day, has no times of its own, or is one of two of a train.
    pub(super) fn check_service(&mut self) {
        let (feed, trip, day) = (self.feed, self.trip, self.day);
        let mut refuse = |why: String| {
            let (at, day) = (self.at.clone(), day.to_string());
            self.findings.add(SourceDefect::DoesNotRun { at, day, why }, Remedy::None);
        };
        if let Err(why) = feed.runs(trip, day) {
            refuse(why);
        }
        if let Some((line, _)) =
            feed.frequencies.iter().find(|(_, row)| row.trip_id == trip.trip_id)
        {
            let line = line_of("frequencies.txt", *line);
            refuse(format!("it runs at intervals, at no times of its own: {line}"));
        }
        let own = feed.times(&trip.trip_id).iter().map(|(_, row)| row).collect();
        let places = Places::new(own, &feed.stops);
        for (line, other) in &feed.trips {
            let numbers = trip.trip_short_name.as_ref().zip(other.trip_short_name.as_ref());
            let may_be_it = other.trip_id != trip.trip_id
                && numbers.is_none_or(|(ours, theirs)| ours == theirs)
                && feed.are_alike(&trip.route_id, &other.route_id);
            let theirs = feed.times(&other.trip_id);
            // A number can be used twice on a day; a train is at two places at its times only once.
            let runs_as_well = |days: i64| {
                places.shared(theirs, days) >= 2
                    && day.plus(days).is_some_and(|day| feed.runs(other, day).is_ok())
            };
            if !may_be_it || !DAYS.into_iter().any(runs_as_well) {
                continue;
            }
            let again =
                Place { at: line_of("trips.txt", *line), label: format!("trip {}", other.trip_id) };
            let how = self.compare_journeys(other, &places);
            let number = trip.trip_short_name.as_ref().or(other.trip_short_name.as_ref());
            let number = number.unwrap_or(&trip.trip_id).clone();
            let first = self.at.clone();
            let what = format!(
                "trip {} alone is sold; another sale of trip {} would sell the same seats again",
                trip.trip_id, other.trip_id
            );
            self.findings.add(
                SourceDefect::SameTrain { number, first, again, how },
                Remedy::Believe { what },
            );
        }
    }

    /// The difference of the journeys of this trip and another one of the same train.
    fn compare_journeys(&self, other: &TripRow, places: &Places<'_>) -> String {
        let sells = |trip: &str| -> HashSet<(&str, &str)> {
            let times = self.feed.times(trip);
            let stop = |index: usize| places.own_name(&times[index].1.stop_id);
            let sold = journeys(times.iter(), |rule| rule == Rule::Regular);
            sold.into_iter().map(|(from, to)| (stop(from), stop(to))).collect()
        };
        let (ours, theirs) = (sells(&self.trip.trip_id), sells(&other.trip_id));
        format!(
            "the first sells {} journeys, the second {}; {} only the first, {} only the second",
            ours.len(),
            theirs.len(),
            ours.difference(&theirs).count(),
            theirs.difference(&ours).count()
        )
    }

    /// The trip's route, which should be a railway.
    pub(super) fn route(&mut self) -> Option<&'feed RouteRow> {
        let Some((line, route)) = self.feed.routes.get(&self.trip.route_id) else {
            let what = format!("route {:?}", self.trip.route_id);
            let defect = SourceDefect::Undeclared { what, at: self.at.clone() };
            let what = "it is sold without a route's name and agency".to_owned();
            self.findings.add(defect, Remedy::Believe { what });
            return None;
        };
        if let Some(kind) = not_a_train(route.route_type) {
            let name = route.route_short_name.as_ref().or(route.route_long_name.as_ref());
            let name = name.unwrap_or(&route.route_id);
            let at = Place { at: line_of("routes.txt", *line), label: format!("route {name}") };
            let what = format!("{kind} (route_type {})", route.route_type);
            let sold = "it is sold as if it were one".to_owned();
            self.findings.add(SourceDefect::NotATrain { at, what }, Remedy::Believe { what: sold });
        }
        Some(route)
    }

    /// The time zone in which the feed's times are: that of the agency that runs the trip.
    pub(super) fn zone(&self, route: Option<&RouteRow>) -> Result<TimeZone, Error> {
        let agency = route.and_then(|route| route.agency_id.as_ref());
        let agencies = &self.feed.agencies;
        let own =
            agencies.iter().find(|(_, row)| agency.is_some() && row.agency_id.as_ref() == agency);
        let (line, row) = own.or(agencies.first()).ok_or_else(|| Error::Malformed {
            what: "agency.txt".to_owned(),
            why: "it has no agency, and so no time zone".to_owned(),
        })?;
        service::zone(&row.agency_timezone).ok_or_else(|| Error::Malformed {
            what: line_of("agency.txt", *line),
            why: format!("{:?} is no time zone", row.agency_timezone),
        })
    }
}

/// The kind of a route that is no railway, by the basic and the extended route types.
fn not_a_train(route_type: u16) -> Option<&'static str> {
    Some(match route_type {
        2 | 100..=117 => return None,
        0 | 900..=906 => "a tram",
        1 | 400..=405 => "a metro",
        3 | 700..=716 => "a bus",
        200..=209 => "a coach",
        4 | 1000 | 1200 => "a ferry",
        5 => "a cable tram",
        6 | 1300..=1307 => "an aerial lift",
        7 | 1400 => "a funicular",
        11 | 800 => "a trolleybus",
        12 => "a monorail",
        _ => "something else",
    })
}
