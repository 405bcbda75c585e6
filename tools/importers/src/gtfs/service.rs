//! Days and times of a feed: which days a service runs, and when a time of such a day is.

use std::fmt;
use std::str::FromStr;

use engine::domain::basics::time::Timestamp;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Zoned};
use serde::{Deserialize, Deserializer};

use super::super::tables::line_of;
use super::feed::{Feed, TripRow};

/// A day of the calendar, `20160406` in a feed and `2016-04-06` for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

/// The text is no day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a day must be YYYY-MM-DD or YYYYMMDD, such as 2016-04-06")]
pub struct InvalidDay;

impl FromStr for Day {
    type Err = InvalidDay;
    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        let digits: String = match text.as_bytes() {
            [_, _, _, _, b'-', _, _, b'-', _, _] => text.replace('-', ""),
            _ => text.to_owned(),
        };
        if digits.len() != 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(InvalidDay);
        }
        let part = |range: std::ops::Range<usize>| digits[range].parse().unwrap_or(0);
        let year = digits[..4].parse().unwrap_or(0);
        Date::new(year, part(4..6), part(6..8)).map(Self).map_err(|_| InvalidDay)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Day {
    /// The day so many days later, or earlier if that is negative; `None` beyond the calendar.
    pub(super) fn plus(self, days: i64) -> Option<Self> {
        let days = SignedDuration::from_hours(days.checked_mul(24)?);
        self.0.checked_add(days).ok().map(Self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A time of a day of service, in seconds; beyond 24:00 it is on a later day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Clock(u32);

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let invalid =
            || serde::de::Error::custom(format!("{text:?} is no time of the form H:MM:SS"));
        let mut parts = text.split(':').map(|part| {
            let digits = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse::<u32>().ok()).flatten()
        });
        let mut part = || parts.next().flatten();
        match (part(), part(), part(), parts.next()) {
            (Some(hours), Some(minutes @ 0..60), Some(seconds @ 0..60), None) => {
                Ok(Self(hours * 3600 + minutes * 60 + seconds))
            }
            (_, _, _, _) => Err(invalid()),
        }
    }
}

impl Clock {
    /// When a day of service begins.
    pub(super) const MIDNIGHT: Self = Self(0);
    /// When it ends.
    pub(super) const NEXT_MIDNIGHT: Self = Self(86_400);

    /// Whole minutes since the day of service began.
    pub(super) fn minutes(self) -> u32 {
        self.0 / 60
    }

    /// The time by the clock of a day of service that is so many days earlier.
    pub(super) fn plus_days(self, days: i64) -> Option<Self> {
        u32::try_from(i64::from(self.0).checked_add(days.checked_mul(86_400)?)?).ok().map(Self)
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60, self.0 % 60)
    }
}

/// The time zone of an IANA name, `Europe/Madrid`; `None` if there is none.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    // The one in the program: that of the machine may be older, or not there.
    TimeZoneDatabase::bundled().get(name).ok()
}

/// A time of a day of service in a time zone. The format counts from twelve hours before noon, so that
/// times mean what the clock shows on the days on which the clock is changed as well.
pub(super) fn moment(day: Day, clock: Clock, zone: &TimeZone) -> Option<Zoned> {
    let noon = zone.to_ambiguous_zoned(day.0.at(12, 0, 0, 0)).earlier().ok()?;
    noon.checked_add(SignedDuration::from_secs(i64::from(clock.0) - 12 * 3600)).ok()
}

/// Whole minutes from midnight of a day to a moment, by the clock that stands there; negative before that day.
pub(super) fn minutes_since(day: Day, there: &Zoned) -> i64 {
    let days = there.date().duration_since(day.0).as_hours() / 24;
    days * 24 * 60 + i64::from(there.hour()) * 60 + i64::from(there.minute())
}

/// A moment as people read it: `2016-04-10T01:39:00-07:00`.
pub(super) fn rfc3339(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// A moment as the engine has it.
pub(super) fn timestamp(moment: &Zoned) -> Timestamp {
    Timestamp::from_ms(moment.timestamp().as_millisecond())
}

impl Feed {
    /// Checks that a trip runs on a day.
    ///
    /// # Errors
    /// The reason, in words.
    pub(super) fn runs(&self, trip: &TripRow, day: Day) -> Result<(), String> {
        let service = &trip.service_id;
        let mut declared = false;
        for (line, row) in self.dates.iter().filter(|(_, row)| row.service_id == *service) {
            declared = true;
            match (row.date == day, row.exception_type) {
                (true, 1) => return Ok(()),
                (true, 2) => {
                    let at = line_of("calendar_dates.txt", *line);
                    return Err(format!("{at} takes it out"));
                }
                (_, _) => {}
            }
        }
        let mut why = None;
        for (line, row) in self.calendar.iter().filter(|(_, row)| row.service_id == *service) {
            let at = line_of("calendar.txt", *line);
            if !(row.start_date..=row.end_date).contains(&day) {
                why = Some(format!("{at} is from {} to {}", row.start_date, row.end_date));
            } else if !row.runs_on(day.0.weekday()) {
                why = Some(format!("{at} does not run on a {}", day.0.strftime("%A")));
            } else {
                return Ok(());
            }
        }
        Err(why.unwrap_or_else(|| {
            if declared {
                format!("calendar_dates.txt does not add service {service} on it")
            } else {
                format!("service {service} is in neither calendar.txt nor calendar_dates.txt")
            }
        }))
    }

    /// The first day on which a trip runs, if it ever does.
    #[must_use]
    pub fn first_day(&self, trip: &str) -> Option<Day> {
        let (_, trip) = self.trips.iter().find(|(_, row)| row.trip_id == trip)?;
        let added = self.dates.iter().filter(|(_, row)| row.service_id == trip.service_id);
        let added = added.map(|(_, row)| row.date);
        let calendar = self.calendar.iter().filter(|(_, row)| row.service_id == trip.service_id);
        // A weekly pattern shows within a week, and a year of exceptions is more than any feed has.
        let regular = calendar.flat_map(|(_, row)| {
            let days = (0..366).filter_map(|days| row.start_date.plus(days));
            days.take_while(|day| *day <= row.end_date)
        });
        added.chain(regular).filter(|day| self.runs(trip, *day).is_ok()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::StrDeserializer;

    fn clock(text: &str) -> Result<Clock, String> {
        let text = StrDeserializer::<serde::de::value::Error>::new(text);
        Clock::deserialize(text).map_err(|error| error.to_string())
    }

    #[test]
    fn times_go_past_midnight_and_hours_may_have_one_digit() {
        for (text, seconds) in
            [("7:33:00", 27_180), ("07:33:00", 27_180), ("25:39:00", 92_340), ("0:00:00", 0)]
        {
            assert_eq!(clock(text), Ok(Clock(seconds)), "{text}");
        }
        assert_eq!(clock("7:03:09").unwrap().to_string(), "7:03:09");
        for text in
            ["", "7", "7:60:00", "7:00:60", "7:00", "7:00:00:00", "-7:00:00", "7:00:0a", "+7:00:00"]
        {
            assert!(clock(text).unwrap_err().contains("H:MM:SS"), "{text}");
        }
    }

    #[test]
    fn a_time_is_of_its_day_of_service_in_its_zone() {
        let at = |day: &str, time: &str, zone: &str| {
            let zone = self::zone(zone).unwrap();
            let moment = moment(day.parse().unwrap(), clock(time).unwrap(), &zone);
            rfc3339(&moment.unwrap())
        };
        let west = "America/Los_Angeles";
        assert_eq!(at("2016-04-09", "24:08:00", west), "2016-04-10T00:08:00-07:00");
        assert_eq!(at("20160409", "25:39:00", west), "2016-04-10T01:39:00-07:00");
        // On 2016-03-13 the clock went from 2:00 to 3:00, on 2016-11-06 from 2:00 back to 1:00.
        assert_eq!(at("2016-03-13", "7:33:00", west), "2016-03-13T07:33:00-07:00");
        assert_eq!(at("2016-11-06", "7:33:00", west), "2016-11-06T07:33:00-08:00");
        // The night before, which ends in the hour that is left out.
        assert_eq!(at("2016-03-12", "25:39:00", west), "2016-03-13T01:39:00-08:00");
        assert_eq!(at("2016-03-12", "26:39:00", west), "2016-03-13T03:39:00-07:00");
        assert_eq!(at("2026-03-29", "8:30:00", "Europe/Madrid"), "2026-03-29T08:30:00+02:00");
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2016-4-6",
            "2016-13-01",
            "20160431",
            "2016-04-06T00:00:00Z",
            "201604061",
            "２０１６0406",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        assert_eq!("20160406".parse::<Day>().unwrap().to_string(), "2016-04-06");
    }
}
