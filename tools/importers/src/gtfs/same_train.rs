//! Whether another trip is the same train: it is at the same places at the same times.

use std::collections::{HashMap, HashSet};

use super::super::tables::Lined;
use super::feed::{StopRow, StopTimeRow};
use super::service::Clock;

/// The days by which the same train may be listed earlier or later: of the night before by a clock past midnight.
pub(super) const DAYS: std::ops::RangeInclusive<i64> = -1..=1;
/// What stands between a stop's id and that of a platform, or of a copy: `8000105_2`.
const BEFORE_SUFFIX: [char; 7] = ['_', ':', '-', '.', '#', '/', ' '];

/// The calls of a trip, by the stops of the feed at which they are.
pub(super) struct Places<'feed> {
    calls: Vec<&'feed StopTimeRow>,
    /// Indexes of the calls at the place of a stop.
    at: HashMap<&'feed str, Vec<usize>>,
}

impl<'feed> Places<'feed> {
    /// The places of a trip's calls.
    pub(super) fn new(
        calls: Vec<&'feed StopTimeRow>,
        stops: &'feed HashMap<String, Lined<StopRow>>,
    ) -> Self {
        let mut at: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, call) in calls.iter().enumerate() {
            at.entry(&call.stop_id).or_default().push(index);
        }
        let own: Vec<(&str, Vec<usize>, Option<Place<'_>>)> =
            at.iter().map(|(id, calls)| (*id, calls.clone(), Place::new(id, stops))).collect();
        for id in stops.keys() {
            if at.contains_key(id.as_str()) {
                continue;
            }
            let Some(place) = Place::new(id, stops) else { continue };
            let is_there = |own: &&(&str, Vec<usize>, Option<Place<'_>>)| match &own.2 {
                Some(own) => own.is_same(&place),
                None => is_suffixed(id, own.0) || is_suffixed(own.0, id),
            };
            let calls: Vec<usize> =
                own.iter().filter(is_there).flat_map(|(_, calls, _)| calls.clone()).collect();
            if !calls.is_empty() {
                at.insert(id, calls);
            }
        }
        Self { calls, at }
    }

    /// True if a stop is at one of the places.
    pub(super) fn has(&self, stop: &str) -> bool {
        self.at.contains_key(stop)
    }

    /// True if another trip's call is at a place of this one at its time, on some day.
    pub(super) fn meets(&self, row: &StopTimeRow) -> bool {
        DAYS.into_iter().any(|days| self.met(row, days).next().is_some())
    }

    /// The number of this trip's calls at which another is at the same time, if its day is so many days later.
    pub(super) fn shared(&self, theirs: &[Lined<StopTimeRow>], days: i64) -> usize {
        let met = theirs.iter().flat_map(|(_, row)| self.met(row, days));
        met.collect::<HashSet<usize>>().len()
    }

    /// A stop as this trip calls it, if it is at its place.
    pub(super) fn own_name<'row>(&self, stop: &'row str) -> &'row str
    where
        'feed: 'row,
    {
        let calls = self.at.get(stop);
        calls.and_then(|calls| calls.first()).map_or(stop, |call| &self.calls[*call].stop_id)
    }

    /// Indexes of the calls that another trip's is at, if its day is so many days later.
    fn met(&self, row: &StopTimeRow, days: i64) -> impl Iterator<Item = usize> {
        let times = |row: &StopTimeRow, days: i64| {
            let shifted = |time: Option<Clock>| time?.plus_days(days).map(Clock::minutes);
            let (arrives, departs) = (shifted(row.arrival_time), shifted(row.departure_time));
            (arrives.or(departs), departs.or(arrives))
        };
        let theirs = times(row, days);
        let at = self.at.get(row.stop_id.as_str()).into_iter().flatten().copied();
        at.filter(move |call| {
            let ours = times(self.calls[*call], 0);
            (ours.0.is_some() && ours.0 == theirs.0) || (ours.1.is_some() && ours.1 == theirs.1)
        })
    }
}

/// What a stop is known by.
struct Place<'feed> {
    id: &'feed str,
    station: &'feed str,
    /// The name of the station, or of the stop if it has none; in lower case, with single blanks.
    name: String,
}

impl<'feed> Place<'feed> {
    /// The place of a stop; `None` if it is not declared.
    fn new(id: &str, stops: &'feed HashMap<String, Lined<StopRow>>) -> Option<Self> {
        let (_, stop) = stops.get(id)?;
        let station = stop.parent_station.as_deref();
        let named = station.and_then(|station| stops.get(station)).map_or(stop, |(_, row)| row);
        let name = named.stop_name.as_deref().unwrap_or_default().to_lowercase();
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Self { id: &stop.stop_id, station: station.unwrap_or(&stop.stop_id), name })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.station == other.station
            || (!self.name.is_empty() && self.name == other.name)
            || is_suffixed(self.id, other.id)
            || is_suffixed(other.id, self.id)
    }
}

/// True if an id is another one with a suffix.
fn is_suffixed(id: &str, plain: &str) -> bool {
    let suffix = id.strip_prefix(plain);
    !plain.is_empty() && suffix.is_some_and(|suffix| suffix.starts_with(BEFORE_SUFFIX))
}
