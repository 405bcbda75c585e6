//! Trips of a timetable in GTFS (a folder of tables): one trip on one day becomes a sale.
//!
//! A leg lies between each two stops of the trip that follow each other by `stop_sequence`. Who may
//! board and alight where decides which journeys are sold: a journey begins where boarding is regular
//! and ends where alighting is. A timetable knows neither coaches nor seats: these are given
//! ([`Class`]). Fares are the feed's own where it has any, else by distance or flat ([`Prices`]).
//!
//! | module | |
//! |---|---|
//! | `feed` | the tables |
//! | `service` | days and times: does it run, and when is 25:39:00 |
//! | `fares` | what a journey costs |
//! | `classes` | what a coach has |

mod classes;
mod fares;
mod feed;
mod service;

use std::collections::{BTreeSet, HashSet};

use chrono_tz::Tz;
use engine::domain::ids::StopId;
use engine::domain::money::Currency;
use engine::domain::sale::{Fare, MAX_LEGS, SaleFile, Stop, TierFile};
use engine::domain::time::Timestamp;

use super::report::Findings;
use super::slug::slug;
use super::tables::{Lined, line_of};
use super::terms::Terms;
use super::{Error, Import, Outcome, Place, Remedy, Report, SourceDefect, TierCount};

use self::fares::{FareBook, by_distance, metres};
use self::feed::{RouteRow, Rule, StopRow, StopTimeRow, TripRow};
use self::service::{moment, timestamp};

pub use self::classes::{Class, InvalidClass};
pub use self::fares::Prices;
pub use self::feed::Feed;
pub use self::service::{Day, InvalidDay};

/// What a feed does not say about a train.
#[derive(Debug, Clone, Default)]
pub struct Train {
    /// Its classes, in the order of the sale's tiers.
    pub classes: Vec<Class>,
    /// What journeys cost.
    pub prices: Prices,
}

impl Feed {
    /// Makes a sale of one trip on one day.
    ///
    /// # Errors
    /// [`Error::Flags`] if there is no such trip, or no price can be found; [`Error::Malformed`] for a
    /// fare or a time zone that cannot be read; [`Error::Rules`] if the terms break a rule. Defects of the
    /// feed are no errors: see [`Import::accept`].
    pub fn import(
        &self,
        trip: &str,
        day: Day,
        train: &Train,
        terms: &Terms,
    ) -> Result<Import, Error> {
        let (line, row) =
            self.trips.iter().find(|(_, row)| row.trip_id == trip).ok_or_else(|| {
                let count = self.trips.len();
                let few: Vec<&str> = self.trips().take(5).collect();
                let few = few.join(", ");
                Error::Flags(format!("there is no trip {trip:?} among {count}, such as {few}"))
            })?;
        let at = Place { at: line_of("trips.txt", *line), label: format!("trip {trip}") };
        let mut reading = Reading {
            feed: self,
            trip: row,
            day,
            at,
            findings: Findings::default(),
            notes: Vec::new(),
        };
        let calls = reading.calls();
        reading.check_service(&calls);
        let route = reading.route();
        reading.finish(train, terms, route, &calls)
    }

    /// The calls of a trip in order; none if it has none.
    fn times(&self, trip: &str) -> &[Lined<StopTimeRow>] {
        self.stop_times.get(trip).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A trip while it is being read.
struct Reading<'feed> {
    feed: &'feed Feed,
    trip: &'feed TripRow,
    day: Day,
    at: Place,
    findings: Findings,
    notes: Vec<String>,
}

/// Where the trip calls, in order.
struct Call<'feed> {
    time: &'feed Lined<StopTimeRow>,
    stop: &'feed StopRow,
    /// The stop's id in the sale.
    id: StopId,
}

impl<'feed> Reading<'feed> {
    /// The stops of the trip, each declared and under an id of its own.
    fn calls(&mut self) -> Vec<Call<'feed>> {
        let times = self.feed.times(&self.trip.trip_id);
        if times.len() < 2 {
            let (at, stops) = (self.at.clone(), times.len());
            self.findings.add(SourceDefect::TooFewStops { at, stops }, Remedy::None);
        }
        if times.len() > MAX_LEGS + 1 {
            let (at, stops) = (self.at.clone(), times.len());
            self.findings.add(SourceDefect::TooManyStops { at, stops }, Remedy::None);
        }
        let mut calls: Vec<Call<'feed>> = Vec::new();
        for time in times {
            let at = place_of(time);
            let before = calls.last().map(|call| call.time);
            if let Some(before) = before {
                self.compare(before, time, &at);
            }
            let id = &time.1.stop_id;
            let Some((_, stop)) = self.feed.stops.get(id) else {
                let what = format!("stop {id:?}");
                self.findings.add(SourceDefect::Undeclared { what, at }, Remedy::None);
                continue;
            };
            let Some(own) = self.own_id(id, &calls, &at) else { continue };
            calls.push(Call { time, stop, id: own });
        }
        calls
    }

    /// A stop's id in the sale: its own, or a counted one where the trip calls again.
    fn own_id(&mut self, id: &str, calls: &[Call<'_>], at: &Place) -> Option<StopId> {
        let is_taken = |id: &StopId| calls.iter().any(|call| call.id == *id);
        let own = match StopId::new(id) {
            Ok(own) => own,
            Err(why) => {
                let defect = SourceDefect::UnusableKey { at: at.clone(), why: why.to_string() };
                self.findings.add(defect, Remedy::None);
                return None;
            }
        };
        if !is_taken(&own) {
            return Some(own);
        }
        let counted = |count: usize| StopId::new(format!("{id} ({count})")).ok();
        let again = (2..=calls.len() + 2).filter_map(counted).find(|id| !is_taken(id));
        let first = calls.iter().find(|call| call.id == own).map(|call| place_of(call.time));
        let defect = SourceDefect::DeclaredTwice {
            what: format!("the call at stop {id}"),
            first: first.unwrap_or_else(|| at.clone()),
            again: at.clone(),
        };
        let remedy = match &again {
            Some(again) => Remedy::Believe { what: format!("the second is stop {again}") },
            None => Remedy::None,
        };
        self.findings.add(defect, remedy);
        again
    }

    /// Two calls that follow each other must be told apart, and time must not run backwards.
    fn compare(&mut self, before: &Lined<StopTimeRow>, time: &Lined<StopTimeRow>, at: &Place) {
        let first = place_of(before);
        if before.1.stop_sequence == time.1.stop_sequence {
            let defect = SourceDefect::DeclaredTwice {
                what: format!("stop_sequence {}", time.1.stop_sequence),
                first: first.clone(),
                again: at.clone(),
            };
            let what = "they are in the order of the table".to_owned();
            self.findings.add(defect, Remedy::Believe { what });
        }
        let leaves = before.1.departure_time.or(before.1.arrival_time);
        let arrives = time.1.arrival_time.or(time.1.departure_time);
        if let (Some(leaves), Some(arrives)) = (leaves, arrives)
            && arrives < leaves
        {
            let how = format!("the train leaves at {leaves} and arrives at {arrives}");
            let defect = SourceDefect::Disagreement { first, again: at.clone(), how };
            let what = "stop_sequence decides".to_owned();
            self.findings.add(defect, Remedy::Believe { what });
        }
    }

    /// Does it run on the day, with times of its own, and as one trip?
    fn check_service(&mut self, calls: &[Call<'feed>]) {
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
            refuse(format!("it runs every so many minutes, at no time of its own: {line}"));
        }
        let runs_as_well = |(_, other): &&Lined<TripRow>| {
            other.trip_id != trip.trip_id
                && other.trip_short_name.is_some()
                && other.trip_short_name == trip.trip_short_name
                && feed.runs(other, day).is_ok()
        };
        for (line, other) in feed.trips.iter().filter(runs_as_well) {
            let theirs = feed.times(&other.trip_id);
            let is_there = |call: &&Call<'_>| {
                let time = &call.time.1;
                theirs.iter().any(|(_, row)| {
                    row.stop_id == time.stop_id && row.departure_time == time.departure_time
                })
            };
            // A number can be used twice on a day; a train is at two places at its times only once.
            if calls.iter().filter(is_there).count() < 2 {
                continue;
            }
            let again =
                Place { at: line_of("trips.txt", *line), label: format!("trip {}", other.trip_id) };
            let how = self.compare_journeys(other);
            let number = other.trip_short_name.clone().unwrap_or_default();
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

    /// How the journeys of this trip and another one of the same train differ.
    fn compare_journeys(&self, other: &TripRow) -> String {
        let sells = |trip: &str| -> HashSet<(&str, &str)> {
            let times = self.feed.times(trip);
            let stop = |index: usize| times[index].1.stop_id.as_str();
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
    fn route(&mut self) -> Option<&'feed RouteRow> {
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
    fn zone(&self, route: Option<&RouteRow>) -> Result<Tz, Error> {
        let agency = route.and_then(|route| route.agency_id.as_ref());
        let agencies = &self.feed.agencies;
        let own =
            agencies.iter().find(|(_, row)| agency.is_some() && row.agency_id.as_ref() == agency);
        let (line, row) = own.or(agencies.first()).ok_or_else(|| Error::Malformed {
            what: "agency.txt".to_owned(),
            why: "it has no agency, and so no time zone".to_owned(),
        })?;
        row.agency_timezone.parse().map_err(|_| Error::Malformed {
            what: line_of("agency.txt", *line),
            why: format!("{:?} is no time zone", row.agency_timezone),
        })
    }

    /// The journeys that are sold and what they cost at 100 per cent, by the indexes of their stops.
    fn fares(
        &mut self,
        prices: Prices,
        calls: &[Call<'_>],
        book: Option<&FareBook<'_>>,
    ) -> Result<Vec<(usize, usize, i64)>, Error> {
        let times = || calls.iter().map(|call| call.time);
        let sold = journeys(times(), |rule| rule == Rule::Regular);
        let arranged = journeys(times(), |rule| rule != Rule::Never).len() - sold.len();
        let all = calls.len() * calls.len().saturating_sub(1) / 2;
        let stops: Vec<&StopRow> = calls.iter().map(|call| call.stop).collect();
        let lengths = match prices {
            Prices::ByDistance { .. } => metres(&stops).map_err(|stop| {
                let id = &stop.stop_id;
                Error::Flags(format!(
                    "stop {id} has no usable stop_lat and stop_lon; give --price-minor"
                ))
            })?,
            Prices::OfTheFeed | Prices::Flat(_) => Vec::new(),
        };
        let price = |from: usize, to: usize| match prices {
            Prices::Flat(minor) => Some(minor),
            Prices::ByDistance { base_minor, per_km_minor } => {
                Some(by_distance(base_minor, per_km_minor, lengths[from..to].iter().sum()))
            }
            Prices::OfTheFeed => {
                let zone = |index: usize| stops[index].zone_id.as_deref();
                let passed: BTreeSet<&str> = (from..=to).filter_map(zone).collect();
                book?.price_minor(&self.trip.route_id, zone(from), zone(to), &passed)
            }
        };
        let with_price = |(from, to): &(usize, usize)| Some((*from, *to, price(*from, *to)?));
        let fares: Vec<(usize, usize, i64)> = sold.iter().filter_map(with_price).collect();
        self.notes.push(format!("{} of {all} journeys are sold", fares.len()));
        let forbidden = all - sold.len() - arranged;
        let unpriced = sold.len() - fares.len();
        for (count, why) in [
            (forbidden, "are not: nobody boards at their first stop, or alights at their last"),
            (arranged, "are not: one has to arrange boarding or alighting with the operator"),
            (unpriced, "are not: the feed has no fare for them"),
        ] {
            if count > 0 {
                self.notes.push(format!("{count} {why}"));
            }
        }
        if fares.is_empty() && calls.len() > 1 {
            let at = self.at.clone();
            self.findings.add(SourceDefect::NothingToSell { at }, Remedy::None);
        }
        Ok(fares)
    }

    fn finish(
        mut self,
        train: &Train,
        terms: &Terms,
        route: Option<&RouteRow>,
        calls: &[Call<'_>],
    ) -> Result<Import, Error> {
        let book = match train.prices {
            Prices::OfTheFeed => FareBook::of(self.feed)?,
            Prices::ByDistance { .. } | Prices::Flat(_) => None,
        };
        if train.prices == Prices::OfTheFeed && book.is_none() {
            let text = "the feed has no fares; give --price-minor or --per-km";
            return Err(Error::Flags(text.to_owned()));
        }
        let currency = self.currency(terms, book.as_ref())?;
        let fares = self.fares(train.prices, calls, book.as_ref())?;
        let zone = self.zone(route)?;
        let departs = self.span(calls, zone);
        let mut tiers = classes::tiers(&train.classes);
        for (tier, class) in tiers.iter_mut().zip(&train.classes) {
            let fare = |(from, to, minor): &(usize, usize, i64)| Fare {
                from: calls[*from].id.clone(),
                to: calls[*to].id.clone(),
                price_minor: class.price_minor(*minor),
            };
            tier.fares = fares.iter().map(fare).collect();
        }
        let counts: Vec<TierCount> = tiers.iter().map(TierCount::of).collect();
        if counts.is_empty() {
            let at = self.at.clone();
            self.findings.add(SourceDefect::NoSeats { at, declared: 0 }, Remedy::None);
        }
        let file = if self.findings.hopeless() {
            None
        } else {
            Some(self.sale_file(terms, route, currency, departs, calls, tiers)?)
        };
        let report = Report {
            source: format!("{} trip {} on {}", self.feed.source, self.trip.trip_id, self.day),
            sale: file.as_ref().map(|file| file.sale.clone()),
            outcome: Outcome::Refused,
            seats_read: classes::seats(&train.classes),
            seats_placed: counts.iter().map(|tier| tier.seats).sum(),
            seats_left_out: self.findings.left_out(),
            tiers: counts,
            findings: self.findings.0,
            notes: self.notes,
        };
        Import::new(file, report)
    }

    fn currency(&self, terms: &Terms, book: Option<&FareBook<'_>>) -> Result<Currency, Error> {
        match (book.map(|book| book.currency), terms.currency) {
            (Some(ours), Some(asked)) if ours != asked => Err(Error::Flags(format!(
                "the feed's fares are in {ours}, not in {asked}; give --price-minor or --per-km"
            ))),
            (Some(currency), _) | (None, Some(currency)) => Ok(currency),
            (None, None) => Currency::new("EUR").map_err(|error| Error::Flags(error.to_string())),
        }
    }

    /// From when to when the trip runs, as a note; and the moment of its departure.
    fn span(&mut self, calls: &[Call<'_>], zone: Tz) -> Option<Timestamp> {
        let at = |call: &Call<'_>, clock: Option<service::Clock>| {
            let clock = clock?;
            let name = name_of(call.stop).to_owned();
            moment(self.day, clock, zone).map(|moment| (name, clock, moment))
        };
        let first = calls.first()?;
        let last = calls.last()?;
        let (from, left, departs) =
            at(first, first.time.1.departure_time.or(first.time.1.arrival_time))?;
        if let Some((to, reached, arrives)) =
            at(last, last.time.1.arrival_time.or(last.time.1.departure_time))
        {
            self.notes.push(format!(
                "leaves {from} at {} ({left}) and reaches {to} at {} ({reached})",
                departs.to_rfc3339(),
                arrives.to_rfc3339()
            ));
        }
        Some(timestamp(&departs))
    }

    fn sale_file(
        &self,
        terms: &Terms,
        route: Option<&RouteRow>,
        currency: Currency,
        departs: Option<Timestamp>,
        calls: &[Call<'_>],
        tiers: Vec<TierFile>,
    ) -> Result<SaleFile, Error> {
        if let (Some(departs), None) = (departs, terms.closes_at)
            && departs <= terms.opens_at
        {
            return Err(Error::Flags(format!(
                "the train leaves at {departs}, and selling would begin at {}; give --opens-at, or --closes-at to sell later",
                terms.opens_at
            )));
        }
        let stop =
            |call: &Call<'_>| Stop { stop: call.id.clone(), name: name_of(call.stop).to_owned() };
        let stops: Vec<Stop> = calls.iter().map(stop).collect();
        let number = self.trip.trip_short_name.as_ref().unwrap_or(&self.trip.trip_id);
        let route = route.and_then(|route| route.route_short_name.as_deref());
        let name = [route, Some(number)].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let end = |stop: Option<&Stop>| stop.map_or_else(String::new, |stop| stop.name.clone());
        let (first, last) = (end(stops.first()), end(stops.last()));
        let title = format!("{name} {first} → {last} {}", self.day);
        let id = slug(&format!("{} {}", self.trip.trip_id, self.day));
        terms.sale_file(&title, id, currency, departs, stops, tiers)
    }
}

/// The journeys between stops whose rules are allowed at both ends, by their indexes in order.
fn journeys<'row>(
    calls: impl Iterator<Item = &'row Lined<StopTimeRow>>,
    is_allowed: impl Fn(Rule) -> bool,
) -> Vec<(usize, usize)> {
    let rules: Vec<(bool, bool)> = calls
        .map(|(_, row)| (is_allowed(row.pickup_type), is_allowed(row.drop_off_type)))
        .collect();
    let ends = |from: usize| (from + 1..rules.len()).map(move |to| (from, to));
    let begins = (0..rules.len()).filter(|from| rules[*from].0);
    begins.flat_map(ends).filter(|(_, to)| rules[*to].1).collect()
}

fn name_of(stop: &StopRow) -> &str {
    stop.stop_name.as_deref().unwrap_or(&stop.stop_id)
}

fn place_of((line, row): &Lined<StopTimeRow>) -> Place {
    Place {
        at: line_of("stop_times.txt", *line),
        label: format!("stop {} of trip {}", row.stop_id, row.trip_id),
    }
}

/// What a route is that is no railway, by the basic and the extended route types.
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::sale::Sale;

    /// A small feed: three trips over four stops A to D, on Mondays of 2026.
    const TABLES: [(&str, &str); 8] = [
        ("agency.txt", "agency_id,agency_timezone\nX,Europe/Madrid"),
        ("routes.txt", "route_id,agency_id,route_short_name,route_type\nr,X,IC,2\nb,X,,3"),
        (
            "stops.txt",
            "stop_id,stop_name,stop_lat,stop_lon,zone_id\n007,Ah,0,0,1\nB,Be,0,1,1\nC,Ce,0,2,2\nD,,0,3,3",
        ),
        (
            "trips.txt",
            "route_id,service_id,trip_id,trip_short_name\nr,mo,t,12\nr,mo,u,12\nb,mo,v,\nr,mo,w,12\nr,never,x,",
        ),
        (
            "stop_times.txt",
            "trip_id,arrival_time,departure_time,stop_id,stop_sequence,pickup_type,drop_off_type\n\
             t,25:10:00,25:10:00,D,10,0,0\n\
             t,8:00:00,8:00:00,007,2,0,1\n\
             t,23:59:00,24:01:00,C,9,2,0\n\
             t,,,B,3,1,\n\
             u,8:00:00,8:00:00,007,1,,\n\
             u,24:00:00,24:01:00,C,2,,\n\
             v,1:00:00,1:00:00,B,1,,\n\
             v,2:00:00,2:00:00,C,2,,\n\
             v,3:00:00,3:00:00,B,3,,\n\
             w,9:00:00,9:00:00,007,1,,\n\
             w,9:30:00,9:30:00,B,2,,\n\
             x,9:00:00,9:00:00,007,1,,",
        ),
        (
            "calendar.txt",
            "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\nmo,1,0,0,0,0,0,0,20260101,20261231",
        ),
        ("calendar_dates.txt", "service_id,date,exception_type\nmo,20260511,2\nmo,20260512,1"),
        ("fare_attributes.txt", ""),
    ];

    /// The small feed with some tables changed or added.
    fn feed(changes: &[(&str, &str)]) -> Result<Feed, Error> {
        let text = |name: &str| {
            let mut all = changes.iter().chain(&TABLES);
            Ok(all.find(|(table, _)| *table == name).map(|(_, text)| text.as_bytes().to_vec()))
        };
        Feed::parse("feed", None, text)
    }

    fn train(prices: Prices) -> Train {
        Train {
            classes: vec!["Second=2x9xAB_CD".parse().unwrap(), "Bar=5@50".parse().unwrap()],
            prices,
        }
    }

    fn import(feed: &Feed, trip: &str, day: &str, prices: Prices) -> Result<Import, Error> {
        let terms = Terms::opening(Timestamp::from_ms(0));
        feed.import(trip, day.parse().unwrap(), &train(prices), &terms)
    }

    /// The report of an import that is as defective as it is.
    fn told(feed: &Feed, trip: &str, day: &str) -> String {
        import(feed, trip, day, Prices::Flat(5)).unwrap().report().to_text()
    }

    fn sold(import: Import) -> Vec<String> {
        let (file, report) = import.accept(true).unwrap();
        assert_eq!(report.seats_read, report.seats_placed);
        let sale = Sale::new(file).unwrap();
        let text = |fare: &Fare| format!("{}-{} {}", fare.from, fare.to, fare.price_minor);
        sale.file().tiers[0].fares.iter().map(text).collect()
    }

    #[test]
    fn the_rules_of_the_stops_say_what_is_sold() {
        let feed = feed(&[]).unwrap();
        let import = import(&feed, "t", "2026-05-04", Prices::Flat(5)).unwrap();
        let text = import.report().to_text();
        // B to D is forbidden, C to D needs a call; from 007 one gets everywhere.
        for said in [
            "3 of 6 journeys are sold",
            "2 are not: nobody boards",
            "1 are not: one has to arrange",
            "leaves Ah at 2026-05-04T08:00:00+02:00 (8:00:00) and reaches D at 2026-05-05T01:10:00+02:00 (25:10:00)",
            "train 12 runs as two trips: trips.txt line 2 (trip t) and trips.txt line 3 (trip u)",
            "the first sells 3 journeys, the second 1; 2 only the first, 0 only the second",
        ] {
            assert!(text.contains(said), "{text}\nlacks {said}");
        }
        assert!(!text.contains("trip w"), "the number alone does not make it the same train");
        let (file, _) = import.accept(true).unwrap();
        assert_eq!(file.closes_at.to_string(), "2026-05-04T06:00:00.000Z", "when it leaves");
        let stops: Vec<(&str, &str)> =
            file.stops.iter().map(|stop| (stop.stop.as_str(), stop.name.as_str())).collect();
        assert_eq!(stops, [("007", "Ah"), ("B", "Be"), ("C", "Ce"), ("D", "D")]);
        assert_eq!(
            (file.sale.as_str(), file.title.as_str()),
            ("t-2026-05-04", "IC 12 Ah → D 2026-05-04")
        );
        assert_eq!(file.tiers[1].fares[0].price_minor, 3, "half of 5, rounded half up");
        let late = Terms::opening("2026-05-04T06:00:00Z".parse().unwrap());
        let sell = |terms: &Terms| {
            feed.import("t", "2026-05-04".parse().unwrap(), &train(Prices::Flat(5)), terms)
        };
        let error = sell(&late).unwrap_err().to_string();
        assert!(error.contains("leaves at 2026-05-04T06:00:00.000Z, and selling"), "{error}");
        let closes_at = "2026-05-04T07:00:00Z".parse().ok();
        assert!(sell(&Terms { closes_at, ..late }).is_ok());
    }

    #[test]
    fn journeys_cost_what_is_asked_or_what_the_feed_says() {
        let without = feed(&[]).unwrap();
        let error = import(&without, "t", "2026-05-04", Prices::OfTheFeed).unwrap_err().to_string();
        assert!(error.contains("the feed has no fares; give --price-minor or --per-km"), "{error}");
        let by_distance = Prices::ByDistance { base_minor: 100, per_km_minor: 2 };
        let import_by = |prices| import(&without, "t", "2026-05-04", prices).unwrap();
        assert_eq!(sold(import_by(by_distance)), ["007-B 322", "007-C 545", "007-D 767"]);
        let fares = [
            ("fare_attributes.txt", "fare_id,price,currency_type\na,1.50,CHF\nb,3,CHF"),
            (
                "fare_rules.txt",
                "fare_id,route_id,origin_id,destination_id\na,r,1,1\nb,r,1,2\na,b,1,2",
            ),
        ];
        let with = feed(&fares).unwrap();
        let imported = import(&with, "t", "2026-05-04", Prices::OfTheFeed).unwrap();
        assert!(imported.report().to_text().contains("1 are not: the feed has no fare for them"));
        assert_eq!(sold(imported), ["007-B 150", "007-C 300"]);
        let terms =
            Terms { currency: Currency::new("EUR").ok(), ..Terms::opening(Timestamp::from_ms(0)) };
        let asked =
            with.import("t", "2026-05-04".parse().unwrap(), &train(Prices::OfTheFeed), &terms);
        assert!(asked.unwrap_err().to_string().contains("in CHF, not in EUR"));
        for (table, expected) in [
            ("fare_id,price,currency_type\na,1.505,CHF", "\"1.505\" is no amount of CHF"),
            ("fare_id,price,currency_type\na,1,Franken", "three letters"),
            ("fare_id,price,currency_type\na,1,CHF\nb,1,EUR", "fares in CHF and in EUR"),
        ] {
            let feed = feed(&[("fare_attributes.txt", table)]).unwrap();
            let error =
                import(&feed, "t", "2026-05-04", Prices::OfTheFeed).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let nowhere =
            feed(&[("stops.txt", "stop_id,stop_name\n007,Ah\nB,Be\nC,Ce\nD,De")]).unwrap();
        let error = import(&nowhere, "t", "2026-05-04", by_distance).unwrap_err().to_string();
        assert!(error.contains("stop 007 has no usable stop_lat"), "{error}");
    }

    #[test]
    fn a_trip_runs_when_the_calendar_and_its_exceptions_say_so() {
        let feed = feed(&[("frequencies.txt", "trip_id,headway_secs\nv,600")]).unwrap();
        let runs = |day: &str| !told(&feed, "t", day).contains("does not run");
        assert!(runs("2026-05-04") && runs("2026-05-12") && runs("2026-12-28"));
        for (trip, day, why) in [
            ("t", "2026-05-11", "calendar_dates.txt line 2 takes it out"),
            ("t", "2026-05-05", "calendar.txt line 2 does not run on a Tuesday"),
            ("t", "2027-01-04", "calendar.txt line 2 is from 2026-01-01 to 2026-12-31"),
            ("x", "2026-05-04", "service never is in neither calendar.txt nor calendar_dates.txt"),
            (
                "v",
                "2026-05-04",
                "it runs every so many minutes, at no time of its own: frequencies.txt line 2",
            ),
        ] {
            let text = told(&feed, trip, day);
            assert!(text.contains(&format!("does not run on {day}: {why}")), "{text}");
            assert!(import(&feed, trip, day, Prices::Flat(5)).unwrap().accept(true).is_err());
        }
        assert_eq!(feed.first_day("t").map(|day| day.to_string()).as_deref(), Some("2026-01-05"));
        assert_eq!(feed.first_day("x"), None);
        let only_dates = [
            ("calendar.txt", ""),
            ("calendar_dates.txt", "service_id,date,exception_type\nmo,20260512,1"),
        ];
        let feed = self::feed(&only_dates).unwrap();
        assert!(told(&feed, "t", "2026-05-04").contains("does not add service mo on it"));
        assert_eq!(feed.first_day("t").map(|day| day.to_string()).as_deref(), Some("2026-05-12"));
    }

    #[test]
    fn each_defect_is_named_with_its_places_and_its_remedy() {
        let times = |rows: &str| {
            format!("trip_id,arrival_time,departure_time,stop_id,stop_sequence\n{rows}")
        };
        let cases = [
            (
                "v",
                String::new(),
                "routes.txt line 3 (route b) is a bus (route_type 3), not a train",
                "as if it were one",
            ),
            (
                "v",
                String::new(),
                "the call at stop B is declared twice: stop_times.txt line 8 (stop B of trip v) and stop_times.txt line 10",
                "the second is stop B (2)",
            ),
            (
                "t",
                times("t,1:00:00,1:00:00,007,1"),
                "(trip t) has 1 stops",
                "nothing resolves this",
            ),
            ("t", times(""), "(trip t) has 0 stops", "nothing resolves this"),
            (
                "t",
                times("t,1:00:00,1:00:00,007,1\nt,2:00:00,2:00:00,Q,2"),
                "names stop \"Q\", which is not declared",
                "nothing resolves this",
            ),
            (
                "t",
                times("t,1:00:00,1:00:00,007,1\nt,2:00:00,2:00:00,B,1"),
                "stop_sequence 1 is declared twice",
                "in the order of the table",
            ),
            (
                "t",
                times("t,1:00:00,3:00:00,007,1\nt,2:00:00,2:00:00,B,2"),
                "leaves at 3:00:00 and arrives at 2:00:00",
                "stop_sequence decides",
            ),
            (
                "t",
                "trip_id,stop_id,stop_sequence,pickup_type\nt,007,1,1\nt,B,2,0".to_owned(),
                "no journey of trips.txt line 2 (trip t) can be sold",
                "nothing resolves this",
            ),
            (
                "t",
                times(&(0..66).map(|stop| format!("t,,,B,{stop}\n")).collect::<String>()),
                "(trip t) has 66 stops; a sale has at most 65",
                "nothing resolves this",
            ),
        ];
        for (trip, table, defect, remedy) in cases {
            let changes = [("stop_times.txt", table.as_str())];
            let feed = if table.is_empty() { feed(&[]) } else { feed(&changes) }.unwrap();
            let text = told(&feed, trip, "2026-05-04");
            assert!(
                text.contains(defect) && text.contains(remedy),
                "{text}\nlacks {defect} / {remedy}"
            );
            let import = || import(&feed, trip, "2026-05-04", Prices::Flat(5)).unwrap();
            assert!(import().accept(false).is_err(), "{defect}");
            assert_eq!(
                import().accept(true).is_ok(),
                remedy != "nothing resolves this",
                "{defect}"
            );
        }
        let unrouted = feed(&[("routes.txt", "route_id,route_type\nz,2")]).unwrap();
        assert!(
            told(&unrouted, "t", "2026-05-04").contains("names route \"r\", which is not declared")
        );
    }

    #[test]
    fn what_is_no_feed_is_an_error_with_its_line() {
        for (table, text, expected) in [
            (
                "stop_times.txt",
                "trip_id,stop_id,stop_sequence\nt,B,x",
                "stop_times.txt line 2 is malformed",
            ),
            (
                "stop_times.txt",
                "trip_id,stop_id,stop_sequence,pickup_type\nt,B,1,7",
                "0 to 3, not 7",
            ),
            (
                "stop_times.txt",
                "trip_id,stop_id,stop_sequence,arrival_time\nt,B,1,24h",
                "\"24h\" is no time",
            ),
            ("calendar.txt", "service_id,monday\nmo,1", "missing field"),
            (
                "calendar_dates.txt",
                "service_id,date,exception_type\r\nmo,2026-5-1,1",
                "a day must be",
            ),
            (
                "trips.txt",
                "route_id,service_id,trip_id\nr,mo,t\nr,mo,t",
                "trips.txt line 3 is malformed: \"t\" stands on line 2",
            ),
            ("stops.txt", "stop_id,stop_name\n\nB,Be\r\nB,Be", "stops.txt line 4"),
        ] {
            let error = feed(&[(table, text)]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let feed = |changes: &[(&str, &str)]| self::feed(changes).unwrap();
        let error =
            import(&feed(&[]), "zz", "2026-05-04", Prices::Flat(5)).unwrap_err().to_string();
        assert!(error.contains("no trip \"zz\" among 5, such as t, u, v"), "{error}");
        for (agency, expected) in [
            ("agency_id,agency_timezone\nX,Mars/Olympus", "agency.txt line 2 is malformed"),
            ("agency_id,agency_timezone", "it has no agency"),
        ] {
            let error =
                import(&feed(&[("agency.txt", agency)]), "t", "2026-05-04", Prices::Flat(5));
            assert!(error.unwrap_err().to_string().contains(expected));
        }
    }

    #[test]
    fn padding_marks_and_line_ends_do_not_matter() {
        let padded = |text: &str| {
            let lines: Vec<String> = text.lines().map(|line| format!("{line:<350}")).collect();
            format!("\u{feff}{}", lines.join("\r\n"))
        };
        let tables: Vec<(&str, String)> =
            TABLES.iter().map(|(name, text)| (*name, padded(text))).collect();
        let tables: Vec<(&str, &str)> =
            tables.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let plain = import(&feed(&[]).unwrap(), "t", "2026-05-04", Prices::Flat(5)).unwrap();
        let padded = import(&feed(&tables).unwrap(), "t", "2026-05-04", Prices::Flat(5)).unwrap();
        assert_eq!(plain.report(), padded.report());
        assert_eq!(plain.accept(true).unwrap().0, padded.accept(true).unwrap().0);
    }

    #[test]
    fn one_trip_can_be_read_without_the_rest_of_the_country() {
        let text = |name: &str| {
            Ok(TABLES
                .iter()
                .find(|(table, _)| *table == name)
                .map(|(_, text)| text.as_bytes().to_vec()))
        };
        let one = Feed::parse("feed", Some("t"), text).unwrap();
        assert_eq!((one.times("t").len(), one.times("u").len(), one.times("v").len()), (4, 2, 0));
        let all = feed(&[]).unwrap();
        assert_eq!(told(&one, "t", "2026-05-04"), told(&all, "t", "2026-05-04"));
    }
}
