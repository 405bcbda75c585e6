//! The times of a trip by the clocks at its stops. A feed's are all by the clock of the agency; people read them by
//! that of the place.

use std::collections::BTreeSet;

use engine::domain::basics::calendar::ClockTime;
use engine::domain::basics::time_zone;
use jiff::tz::TimeZone;

use super::super::Error;
use super::super::tables::line_of;
use super::Reading;
use super::calls::Call;
use super::feed::{Feed, StopRow};
use super::service::{self, Clock, Day, minutes_since, moment};

/// The times of a trip by the clocks at its stops.
pub(super) struct Clocks {
    /// The day at whose midnight the train's clock begins: the day of service, or one before if some stop's clock
    /// shows that.
    pub(super) runs_on: Day,
    /// The times of its calls, in order.
    pub(super) calls: Vec<LocalTimes>,
}

/// The times of a call. Where a clock further west stands at the next stop, they may be later than those there.
#[derive(Debug)]
pub(super) struct LocalTimes {
    /// The time zone by whose clock they are.
    pub(super) zone: TimeZone,
    pub(super) arrives: Option<ClockTime>,
    pub(super) departs: Option<ClockTime>,
}

/// The time zone by whose clock the times of a call are; `None` if it has no name.
pub(super) fn stop_zone(times: &LocalTimes) -> Option<time_zone::TimeZone> {
    time_zone::TimeZone::new(times.zone.iana_name()?).ok()
}

impl Feed {
    /// The time zone of a stop: its station's first, then its own; `None` if neither has one.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a name that is no time zone, with its line.
    fn zone_of(&self, stop: &StopRow) -> Result<Option<TimeZone>, Error> {
        let station = stop.parent_station.as_ref().unwrap_or(&stop.stop_id);
        let rows = [station, &stop.stop_id].into_iter().filter_map(|id| self.stops.get(id));
        let named = rows.filter_map(|(line, row)| Some((*line, row.stop_timezone.as_deref()?)));
        let Some((line, name)) = named.into_iter().next() else { return Ok(None) };
        service::zone(name).map(Some).ok_or_else(|| Error::Malformed {
            what: line_of("stops.txt", line),
            why: format!("{name:?} is no time zone"),
        })
    }
}

impl Reading<'_> {
    /// The times of the calls by the clocks there. Those that a sale cannot have are left out, with a note.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a stop's zone that is none.
    pub(super) fn clocks(
        &mut self,
        calls: &[Call<'_>],
        agency: &TimeZone,
    ) -> Result<Clocks, Error> {
        let own =
            |call: &Call<'_>| Ok(self.feed.zone_of(call.stop)?.unwrap_or_else(|| agency.clone()));
        let zones: Vec<TimeZone> = calls.iter().map(own).collect::<Result<_, Error>>()?;
        let times = calls.iter().flat_map(|call| {
            let (_, row) = call.time;
            [row.arrival_time, row.departure_time]
        });
        let times: Vec<Option<Clock>> = times.collect();
        let ordered = in_order(&times);
        let there = |(index, time): (usize, &Option<Clock>)| {
            let moment = moment(self.day, (*time)?, agency)?;
            let there = moment.with_time_zone(zones[index / 2].clone());
            Some(minutes_since(self.day, &there))
        };
        let minutes: Vec<Option<i64>> = ordered.iter().enumerate().map(there).collect();
        let first = minutes.iter().flatten().min().copied().unwrap_or(0);
        // A day is gone back for each that the first time is before the day of service.
        let days = first.div_euclid(DAY).min(0);
        let runs_on = self.day.plus(days).unwrap_or(self.day);
        let clock = |minutes: &Option<i64>| {
            let minutes = (*minutes)?.checked_sub(days * DAY)?;
            ClockTime::from_minutes(minutes.try_into().ok()?).ok()
        };
        let clocks: Vec<Option<ClockTime>> = minutes.iter().map(clock).collect();
        let (known, kept) = (times.iter().flatten().count(), ordered.iter().flatten().count());
        self.note_left_out(known - kept, "before the one that precedes it");
        let late = kept - clocks.iter().flatten().count();
        self.note_left_out(late, "past 99:59 of the train's first day");
        let local = |(pair, zone): (&[Option<ClockTime>], TimeZone)| LocalTimes {
            zone,
            arrives: pair[0],
            departs: pair[1],
        };
        let calls: Vec<LocalTimes> = clocks.chunks_exact(2).zip(zones).map(local).collect();
        self.note_zones(&calls, agency);
        Ok(Clocks { runs_on, calls })
    }

    /// Says that stops have other clocks than the feed's times.
    fn note_zones(&mut self, calls: &[LocalTimes], agency: &TimeZone) {
        let others = calls.iter().filter(|times| times.zone != *agency);
        let others = others.filter_map(|times| times.zone.iana_name());
        let others: BTreeSet<&str> = others.collect();
        if !others.is_empty() {
            let others = others.into_iter().collect::<Vec<_>>().join(", ");
            self.notes.push(format!(
                "stops lie in other time zones than {}, in which the feed's times are: {others}; each stop's times \
                 are by its own clock",
                agency.iana_name().unwrap_or("UTC")
            ));
        }
    }

    /// Says that times are left out of the sale.
    pub(super) fn note_left_out(&mut self, times: usize, why: &str) {
        match times {
            0 => {}
            1 => self.notes.push(format!("1 time is left out, as it is {why}")),
            times => self.notes.push(format!("{times} times are left out, as they are {why}")),
        }
    }
}

/// Minutes of a day.
const DAY: i64 = 24 * 60;

/// The times without those before one that precedes them: `stop_sequence` decides.
fn in_order(times: &[Option<Clock>]) -> Vec<Option<Clock>> {
    let mut last = None;
    let kept = |time: &Option<Clock>| {
        let time = time.filter(|time| last.is_none_or(|last| *time >= last));
        last = time.or(last);
        time
    };
    times.iter().map(kept).collect()
}
