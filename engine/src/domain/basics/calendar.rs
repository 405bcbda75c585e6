//! Days and clock times: local times, as timetables print them and people read them.
//!
//! No offset is known and none is needed. The clock of a train begins at midnight of the day on which it sets out, and
//! goes on past 24 hours.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, Days, NaiveDate};
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

/// Minutes of a day.
pub(in crate::domain) const MINUTES_PER_DAY: u16 = 24 * 60;
/// Years of the days that are read.
const YEARS: std::ops::RangeInclusive<i32> = 1900..=2999;

/// A day of the calendar, `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day(NaiveDate);

/// A time by the clock of a train, `HH:MM` from 00:00 to 99:59: from midnight of the day on which it sets out, so
/// that 25:10 is ten past one of the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClockTime(u16);

/// A minute of a day, without an offset: `2026-11-21T08:05`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LocalTime {
    pub day: Day,
    /// The minute of the day, 0 to 1439.
    minute: u16,
}

/// The text is no day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a day from 1900 to 2999, YYYY-MM-DD")]
pub struct InvalidDay;

/// The text is no clock time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a time from 00:00 to 99:59, HH:MM")]
pub struct InvalidClockTime;

/// The text is no minute of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a minute of a day, YYYY-MM-DDTHH:MM")]
pub struct InvalidLocalTime;

/// Two digits, and nothing else.
pub(in crate::domain) fn two_digits(text: &[u8]) -> Option<u16> {
    let [tens, ones] = text else { return None };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    Some(digit(*tens)? * 10 + digit(*ones)?)
}

impl Day {
    /// The day some days later; the same if the calendar has no such day.
    #[must_use]
    pub fn plus_days(self, days: u16) -> Self {
        Self(self.0.checked_add_days(Days::new(days.into())).unwrap_or(self.0))
    }

    /// Days from an earlier day to this one; negative if that is later.
    #[must_use]
    pub fn days_since(self, earlier: Self) -> i64 {
        self.0.signed_duration_since(earlier.0).num_days()
    }
}

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
            return Err(InvalidDay);
        };
        let read = |digits: [u8; 2]| two_digits(&digits).ok_or(InvalidDay);
        let year = i32::from(read([*y1, *y2])? * 100 + read([*y3, *y4])?);
        let (month, day) = (read([*m1, *m2])?, read([*d1, *d2])?);
        let date = NaiveDate::from_ymd_opt(year, month.into(), day.into());
        date.filter(|date| YEARS.contains(&date.year())).map(Self).ok_or(InvalidDay)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d"))
    }
}

impl ClockTime {
    /// The time so many minutes after midnight of the day on which the train sets out.
    ///
    /// # Errors
    /// Refuses more than 99:59.
    pub fn from_minutes(minutes: u32) -> Result<Self, InvalidClockTime> {
        let minutes = u16::try_from(minutes).map_err(|_| InvalidClockTime)?;
        if minutes < 100 * 60 { Ok(Self(minutes)) } else { Err(InvalidClockTime) }
    }

    /// Minutes since midnight of the day on which the train sets out.
    #[must_use]
    pub fn minutes(self) -> u16 {
        self.0
    }

    /// The time by the clocks of the railway, of a train that sets out on `day`.
    #[must_use]
    pub fn on(self, day: Day) -> LocalTime {
        LocalTime { day: day.plus_days(self.0 / MINUTES_PER_DAY), minute: self.0 % MINUTES_PER_DAY }
    }
}

impl FromStr for ClockTime {
    type Err = InvalidClockTime;

    fn from_str(text: &str) -> Result<Self, InvalidClockTime> {
        let [h1, h2, b':', m1, m2] = text.as_bytes() else { return Err(InvalidClockTime) };
        let read = |digits: [u8; 2]| two_digits(&digits).ok_or(InvalidClockTime);
        let (hours, minutes) = (read([*h1, *h2])?, read([*m1, *m2])?);
        if minutes < 60 { Ok(Self(hours * 60 + minutes)) } else { Err(InvalidClockTime) }
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl LocalTime {
    /// The same for the library of time zones.
    pub(super) fn civil(self) -> DateTime {
        let Day(day) = self.day;
        let part = |part: u32| i8::try_from(part).unwrap_or(i8::MAX);
        let year = i16::try_from(day.year()).unwrap_or(i16::MAX);
        // Each part is inside its bounds: so are those of a day and of its minutes.
        let (month, of_month) = (part(day.month()), part(day.day()));
        let (hour, minute) = (part((self.minute / 60).into()), part((self.minute % 60).into()));
        DateTime::new(year, month, of_month, hour, minute, 0, 0).unwrap_or_default()
    }

    /// The minute of the day, 0 to 1439.
    #[must_use]
    pub fn minute(self) -> u16 {
        self.minute
    }
}

impl FromStr for LocalTime {
    type Err = InvalidLocalTime;

    fn from_str(text: &str) -> Result<Self, InvalidLocalTime> {
        let (day, time) = text.split_once('T').ok_or(InvalidLocalTime)?;
        let day: Day = day.parse().map_err(|_| InvalidLocalTime)?;
        let ClockTime(minute) = time.parse().map_err(|_| InvalidLocalTime)?;
        if minute < MINUTES_PER_DAY { Ok(Self { day, minute }) } else { Err(InvalidLocalTime) }
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{:02}:{:02}", self.day, self.minute / 60, self.minute % 60)
    }
}

macro_rules! as_text {
    ($($name:ident $(, $error:ident)?: $pattern:literal, $description:literal;)*) => {$(
        $(impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        })?

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string", "pattern": $pattern, "description": $description
                })
            }
        }
    )*};
}

as_text! {
    Day, InvalidDay: r"^(19|2[0-9])[0-9]{2}-[01][0-9]-[0-3][0-9]$", "A day, YYYY-MM-DD.";
    ClockTime, InvalidClockTime: r"^[0-9]{2}:[0-5][0-9]$",
        "A time by the clock of a train, HH:MM, from midnight of the day on which it sets out: 25:10 is on the \
         next day.";
    LocalTime, InvalidLocalTime: r"^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]$",
        "A minute by the clocks of the railway, without an offset.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_a_day_is_read_as_it_is_written() {
        for text in ["2026-11-21T00:00", "2024-02-29T23:59"] {
            assert_eq!(text.parse::<LocalTime>().unwrap().to_string(), text);
        }
        for bad in ["", "2026-11-21", "2026-11-21T24:00", "2026-11-21 08:05", "2026-11-31T08:05"] {
            assert_eq!(bad.parse::<LocalTime>(), Err(InvalidLocalTime), "{bad}");
        }
    }

    #[test]
    fn a_day_has_one_text() {
        for text in ["2026-11-21", "2024-02-29", "1900-01-01", "2999-12-31"] {
            assert_eq!(text.parse::<Day>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "2026-11-31",
            "2025-02-29",
            "26-11-21",
            "2026-1-1",
            "+026-11-21",
            "1899-12-31",
            "2026-11-21 ",
            "3000-01-01",
            "２026-11-2",
        ] {
            assert_eq!(bad.parse::<Day>(), Err(InvalidDay), "{bad}");
        }
    }

    #[test]
    fn a_clock_goes_on_past_midnight() {
        let day: Day = "2026-12-31".parse().unwrap();
        for (text, local) in [
            ("00:00", "2026-12-31T00:00"),
            ("23:59", "2026-12-31T23:59"),
            ("24:00", "2027-01-01T00:00"),
            ("99:59", "2027-01-04T03:59"),
        ] {
            let time: ClockTime = text.parse().unwrap();
            assert_eq!(
                (time.to_string(), time.on(day).to_string()),
                (text.to_owned(), local.to_owned())
            );
        }
        for bad in ["", "8:05", "08:60", "008:05", "08:05:00", "-1:05", "100:00"] {
            assert_eq!(bad.parse::<ClockTime>(), Err(InvalidClockTime), "{bad}");
        }
        assert_eq!(ClockTime::from_minutes(6_000), Err(InvalidClockTime));
    }
}
