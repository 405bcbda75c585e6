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
//! | `calls` | where the trip calls |
//! | `clocks` | its times by the clocks at its stops |
//! | `checks` | can it be sold, and can its rows be read |
//! | `same_train` | is another trip the same train |
//! | `journeys` | what is sold |
//! | `service` | days and times: does it run, and when is 25:39:00 |
//! | `fares` | what a journey costs |
//! | `classes` | what a coach has |

mod calls;
mod checks;
mod classes;
mod clocks;
mod fares;
mod feed;
#[cfg(test)]
mod field;
mod journeys;
mod same_train;
mod service;
#[cfg(test)]
mod tests;

use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::event::EventFacts;
use engine::domain::sale::{Fare, SaleFile, Stop, TierFile};
use jiff::tz::TimeZone;

use super::report::Findings;
use super::slug::slug;
use super::tables::{Lined, Unreadable, line_of};
use super::terms::{Terms, running_on};
use super::{Error, Import, Outcome, Place, Remedy, Report, SourceDefect, TierCount};

use self::calls::{Call, name_of, place_of};
use self::clocks::{Clocks, LocalTimes};
use self::fares::FareBook;
use self::feed::{RouteRow, StopTimeRow, TripRow};
use self::service::{Clock, moment, rfc3339, timestamp};

pub use self::classes::{Class, InvalidClass};
pub use self::fares::Prices;
pub use self::feed::Feed;
pub use self::service::{Day, InvalidDay};

/// The facts about a train that a feed does not have.
#[derive(Debug, Clone, Default)]
pub struct Train {
    /// Its classes, in the order of the sale's tiers.
    pub classes: Vec<Class>,
    /// The prices of its journeys.
    pub prices: Prices,
}

impl Feed {
    /// Makes a sale of one trip on one day.
    ///
    /// # Errors
    /// [`Error::Flags`] if there is no such trip, or no price can be found; [`Error::Malformed`] for a row of the
    /// trip, its stops, its route or its service that cannot be read or stands there twice, a fare or a time zone;
    /// [`Error::Rules`] if the terms break a rule. Defects of the feed are no errors: see [`Import::accept`].
    pub fn import(
        &self,
        trip: &str,
        day: Day,
        train: &Train,
        terms: &Terms,
    ) -> Result<Import, Error> {
        let (line, row) =
            self.trips.iter().find(|(_, row)| row.trip_id == trip).ok_or_else(|| {
                let is_it = |row: &&Unreadable| row.table == "trips.txt" && row.is_of(trip);
                if let Some(row) = self.unreadable.iter().find(is_it) {
                    return row.error();
                }
                let count = self.trips.len();
                let few: Vec<&str> = self.trips().take(5).collect();
                let few = few.join(", ");
                Error::Flags(format!("there is no trip {trip:?} among {count}, such as {few}"))
            })?;
        let notes = self.unread(row, train.prices)?;
        let at = Place { at: line_of("trips.txt", *line), label: format!("trip {trip}") };
        let mut reading =
            Reading { feed: self, trip: row, day, at, findings: Findings::default(), notes };
        let calls = reading.calls();
        reading.check_service();
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

impl Reading<'_> {
    fn finish(
        mut self,
        train: &Train,
        terms: &Terms,
        route: Option<&RouteRow>,
        calls: &[Call<'_>],
    ) -> Result<Import, Error> {
        let book = match train.prices {
            Prices::OfTheFeed => FareBook::from_feed(self.feed)?,
            Prices::ByDistance { .. } | Prices::Flat(_) => None,
        };
        if train.prices == Prices::OfTheFeed && book.is_none() {
            let text = "the feed has no fares; give --price-minor or --per-km";
            return Err(Error::Flags(text.to_owned()));
        }
        let currency = self.currency(terms, book.as_ref())?;
        let fares = self.fares(train.prices, calls, book.as_ref())?;
        let zone = self.zone(route)?;
        let clocks = self.clocks(calls, &zone)?;
        let closes_at = self.departure(&zone);
        self.note_span(calls, &clocks, &zone);
        let mut tiers = classes::tiers(&train.classes);
        for (tier, class) in tiers.iter_mut().zip(&train.classes) {
            let fare = |(from, to, minor): &(usize, usize, MinorUnits)| Fare {
                from: calls[*from].id.clone(),
                to: calls[*to].id.clone(),
                price_minor: class.price_minor(*minor),
            };
            tier.fares = fares.iter().map(fare).collect();
        }
        let counts: Vec<TierCount> = tiers.iter().map(TierCount::from_tier).collect();
        if counts.is_empty() {
            let at = self.at.clone();
            self.findings.add(SourceDefect::NoSeats { at, declared: 0 }, Remedy::None);
        }
        let file = if self.findings.unresolvable() {
            None
        } else {
            Some(self.sale_file(terms, route, currency, closes_at, (calls, &clocks), tiers)?)
        };
        let report = Report {
            source: format!("{} trip {} on {}", self.feed.source, self.trip.trip_id, self.day),
            sale: file.as_ref().map(|file| file.sale.clone()),
            outcome: Outcome::Refused,
            seats_read: classes::seats(&train.classes),
            seats_placed: counts.iter().map(|tier| tier.seats).sum(),
            seats_left_out: self.findings.left_out(),
            tiers: counts,
            defects_by_kind: self.findings.by_kind(),
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

    /// The moment of the departure. If the first stop has no time: the first that is known, on its day, or the
    /// beginning of that.
    fn departure(&mut self, zone: &TimeZone) -> Option<Timestamp> {
        let at = |clock: Clock| moment(self.day, clock, zone).map(|moment| timestamp(&moment));
        let times = self.feed.times(&self.trip.trip_id);
        let first = times.first()?;
        if let Some(clock) = first.1.departure_time.or(first.1.arrival_time) {
            return at(clock);
        }
        let known = times.iter().find_map(|(_, row)| row.arrival_time.or(row.departure_time));
        let (ends, why) = match known {
            None => (Clock::MIDNIGHT, "when its day begins"),
            Some(known) if known <= Clock::NEXT_MIDNIGHT => (known, "its first known time"),
            Some(_) => (Clock::NEXT_MIDNIGHT, "when its day ends"),
        };
        let closes_at = at(ends)?;
        let what = format!("unless --closes-at is given, selling ends at {closes_at}, {why}");
        let (at, stop) = (self.at.clone(), place_of(first));
        self.findings.add(SourceDefect::UntimedStart { at, stop }, Remedy::Believe { what });
        Some(closes_at)
    }

    /// The span of the trip in time, by the clocks at its ends, as a note.
    fn note_span(&mut self, calls: &[Call<'_>], clocks: &Clocks, zone: &TimeZone) {
        let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return };
        let at = |clock: Option<Clock>, local: Option<&LocalTimes>| {
            let clock = clock?;
            let there = moment(self.day, clock, zone)?.with_time_zone(local?.zone.clone());
            Some(format!("{} ({clock})", rfc3339(&there)))
        };
        let (from, to) = (&first.time.1, &last.time.1);
        let left = at(from.departure_time.or(from.arrival_time), clocks.calls.first());
        let reached = at(to.arrival_time.or(to.departure_time), clocks.calls.last());
        let (from, to) = (name_of(first.stop), name_of(last.stop));
        match (left, reached) {
            (Some(left), Some(reached)) => {
                self.notes.push(format!("leaves {from} at {left} and reaches {to} at {reached}"));
            }
            (_, None) => self.notes.push(format!("no time is known at the last stop, {to}")),
            (None, Some(_)) => {}
        }
    }

    fn sale_file(
        &mut self,
        terms: &Terms,
        route: Option<&RouteRow>,
        currency: Currency,
        closes_at: Option<Timestamp>,
        (calls, clocks): (&[Call<'_>], &Clocks),
        tiers: Vec<TierFile>,
    ) -> Result<SaleFile, Error> {
        if let (Some(departs), None) = (closes_at, terms.closes_at)
            && departs <= terms.opens_at
        {
            return Err(Error::Flags(format!(
                "the train leaves at {departs}, and selling would begin at {}; give --opens-at, or --closes-at to sell later",
                terms.opens_at
            )));
        }
        // The zone of the first stop is the event's; a stop in another one says so.
        let zone = clocks.calls.first().and_then(clocks::stop_zone);
        let stop = |(call, local): (&Call<'_>, &LocalTimes)| Stop {
            arrives: local.arrives,
            departs: local.departs,
            time_zone: clocks::stop_zone(local).filter(|own| Some(own) != zone.as_ref()),
            ..Stop::new(call.id.clone(), name_of(call.stop).to_owned())
        };
        let stops: Vec<Stop> = calls.iter().zip(&clocks.calls).map(stop).collect();
        let number = self.trip.trip_short_name.as_ref().unwrap_or(&self.trip.trip_id);
        let route = route.and_then(|route| route.route_short_name.as_deref());
        let name = [route, Some(number)].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let end = |stop: Option<&Stop>| stop.map_or_else(String::new, |stop| stop.name.clone());
        let (first, last) = (end(stops.first()), end(stops.last()));
        let title = format!("{name} {first} → {last} {}", self.day);
        let id = slug(&format!("{} {}", self.trip.trip_id, self.day));
        let file = terms.sale_file(&title, id, currency, closes_at, stops, tiers)?;
        let event = zone.map(|zone| EventFacts { time_zone: Some(zone), ..EventFacts::default() });
        let file = SaleFile { event, ..file };
        Ok(running_on(file, clocks.runs_on.to_string().parse().ok()))
    }
}
