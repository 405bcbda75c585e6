//! Days and times of a feed: which days a service runs, and when a time of such a day is.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, Days, NaiveDate, TimeDelta, TimeZone as _};
use chrono_tz::Tz;
use engine::domain::basics::time::Timestamp;
use serde::{Deserialize, Deserializer};

use super::super::tables::line_of;
use super::feed::{Feed, TripRow};

/// A day of the calendar, `20160406` in a feed and `2016-04-06` for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(NaiveDate);

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
        NaiveDate::from_ymd_opt(year, part(4..6), part(6..8)).map(Self).ok_or(InvalidDay)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d"))
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
    /// Whole minutes since the day of service began.
    pub(super) fn minutes(self) -> u32 {
        self.0 / 60
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60, self.0 % 60)
    }
}

/// A time of a day of service in a time zone. The format counts from twelve hours before noon, so that
/// times mean what the clock shows on the days on which the clock is changed as well.
pub(super) fn moment(day: Day, clock: Clock, zone: Tz) -> Option<chrono::DateTime<Tz>> {
    let noon = zone.from_local_datetime(&day.0.and_hms_opt(12, 0, 0)?).earliest()?;
    noon.checked_add_signed(TimeDelta::seconds(i64::from(clock.0) - 12 * 3600))
}

/// A moment as the engine has it.
pub(super) fn timestamp(moment: &chrono::DateTime<Tz>) -> Timestamp {
    Timestamp::from_ms(moment.timestamp_millis())
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
                why = Some(format!("{at} does not run on a {}", day.0.format("%A")));
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
            let days =
                (0..366).filter_map(|days| row.start_date.0.checked_add_days(Days::new(days)));
            days.map(Day).take_while(|day| *day <= row.end_date)
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
            let moment = moment(day.parse().unwrap(), clock(time).unwrap(), zone.parse().unwrap());
            moment.unwrap().to_rfc3339()
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
