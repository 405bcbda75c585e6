//! Days and clock times of trains: where a train calls when, by the clocks of the railway.
//!
//! A timetable says local times, and people read them as such: no offset is known and none is needed. The
//! clock of a train begins at midnight of the day on which it sets out, and goes on past 24 hours.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, Days, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::domain::ids::{InvalidId, Legs, SaleId, StopId};
use crate::domain::sale::{SaleFile, SaleState, Stop};

/// Minutes of a day.
const MINUTES_PER_DAY: u16 = 24 * 60;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct LocalTime {
    /// The day.
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

/// Two digits, and nothing else.
fn two_digits(text: &[u8]) -> Option<u16> {
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
    /// The minute of the day, 0 to 1439.
    #[must_use]
    pub fn minute(self) -> u16 {
        self.minute
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
    LocalTime: r"^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]$",
        "A minute by the clocks of the railway, without an offset.";
}

/// The minute of a day at which a train calls whose time is not known: after all others.
const NO_TIME: u16 = MINUTES_PER_DAY;

/// A stop as a search names it: by its id or by the name that people read, whatever the case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StopLabel(String);

impl StopLabel {
    /// The label of a text; `None` if it is none: empty, of more than 255 bytes, with control characters.
    fn new(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The text, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StopLabel {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        StopId::new(text.trim()).map(|plain| Self(plain.as_str().to_lowercase()))
    }
}

impl fmt::Display for StopLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Stop {
    /// What the stop is found by: its id, and its name unless that is the same, or too long for a label.
    fn labels(&self) -> impl Iterator<Item = StopLabel> {
        let id = StopLabel::new(self.stop.as_str());
        let name = StopLabel::new(&self.name).filter(|name| Some(name) != id.as_ref());
        id.into_iter().chain(name)
    }
}

/// A call of a train at which it can be boarded: what it is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrainCall {
    /// The stop.
    pub stop: StopLabel,
    /// The day there by the clocks of the railway.
    pub day: Day,
    /// Its place among the trains of the day.
    pub mark: CallMark,
    /// The stops that come later.
    pub later: BTreeSet<StopLabel>,
}

/// The place of a call among those of one day at one stop: by time, then by sale. As text, `0805#g35`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallMark {
    /// The minute of the day, 0 to 1439; 1440 if it is not known.
    minute: u16,
    /// The sale.
    pub sale: SaleId,
}

/// The text is no mark of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the `next` of another page")]
pub struct InvalidCallMark;

impl fmt::Display for CallMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}{:02}#{}", self.minute / 60, self.minute % 60, self.sale)
    }
}

impl FromStr for CallMark {
    type Err = InvalidCallMark;

    fn from_str(text: &str) -> Result<Self, InvalidCallMark> {
        let (time, sale) = text.split_once('#').ok_or(InvalidCallMark)?;
        let (hours, minutes) = time.as_bytes().split_at_checked(2).ok_or(InvalidCallMark)?;
        let (hours, minutes) = two_digits(hours).zip(two_digits(minutes)).ok_or(InvalidCallMark)?;
        let minute = hours * 60 + minutes;
        if minutes >= 60 || minute > NO_TIME {
            return Err(InvalidCallMark);
        }
        sale.parse().map(|sale| Self { minute, sale }).map_err(|_| InvalidCallMark)
    }
}

/// A page of the trains that call at one stop on a day, and at another one later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TrainsPage {
    /// Their calls at the first of the two, by time.
    pub calls: Vec<CallMark>,
    /// Where the next page begins; `None` at the end. A page may be short, or empty, and not the last.
    pub next: Option<CallMark>,
}

/// The day and the mark of each call at which a train can be boarded, by the index of its stop: none if its
/// file does not say when it runs, or it is cancelled.
fn boardings(file: &SaleFile) -> impl Iterator<Item = (usize, Day, CallMark)> {
    let runs_on = match file.state {
        SaleState::Open | SaleState::Paused => file.runs_on,
        SaleState::Cancelled => None,
    };
    let each = file.stops.iter().enumerate().take(file.stops.len().saturating_sub(1));
    let timed = runs_on.into_iter().flat_map(move |runs_on| {
        // Where no time is known, the day is that of the stop before.
        let mut day = runs_on;
        each.clone().map(move |(index, stop)| {
            let time = stop.departs.or(stop.arrives).map(|time| time.on(runs_on));
            day = time.map_or(day, |time| time.day);
            (index, day, time.map_or(NO_TIME, LocalTime::minute))
        })
    });
    timed.map(|(index, day, minute)| (index, day, CallMark { minute, sale: file.sale.clone() }))
}

/// The calls of a train by which it is found, each once: none if its file does not say when it runs, or it is
/// cancelled.
#[must_use]
pub fn calls(file: &SaleFile) -> Vec<TrainCall> {
    let mut calls: Vec<TrainCall> = Vec::new();
    for (index, day, mark) in boardings(file) {
        let later: BTreeSet<_> = file.stops[index + 1..].iter().flat_map(Stop::labels).collect();
        for stop in file.stops[index].labels() {
            let call = TrainCall { stop, day, mark: mark.clone(), later: later.clone() };
            // Two stops of one name and no time are one call, from which the later ones of the first are found.
            let is_known = |known: &TrainCall| {
                (&known.stop, known.day, &known.mark) == (&call.stop, call.day, &call.mark)
            };
            if !calls.iter().any(is_known) {
                calls.push(call);
            }
        }
    }
    calls
}

/// The journey of a train from the call at which it was found to the next stop of a label; `None` if it has no
/// such call (any more), or does not call there later.
#[must_use]
pub fn journey_from(
    file: &SaleFile,
    day: Day,
    from: &StopLabel,
    mark: &CallMark,
    to: &StopLabel,
) -> Option<Legs> {
    let is_called = |stop: &Stop, label: &StopLabel| stop.labels().any(|own| own == *label);
    let is_it = |(index, on, at): &(usize, Day, CallMark)| {
        (*on, at) == (day, mark) && is_called(&file.stops[*index], from)
    };
    let (begin, ..) = boardings(file).find(is_it)?;
    let end = (begin + 1..file.stops.len()).find(|index| is_called(&file.stops[*index], to))?;
    Legs::new(begin.try_into().ok()?, end.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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

    #[test]
    fn a_mark_is_read_as_it_is_written_and_sorts_by_time() {
        let mark = |minute| CallMark { minute, sale: SaleId::new("g35").unwrap() };
        for (minute, text) in [(0, "0000#g35"), (485, "0805#g35"), (1_440, "2400#g35")] {
            assert_eq!(
                (mark(minute).to_string(), text.parse()),
                (text.to_owned(), Ok(mark(minute)))
            );
        }
        for bad in [
            "",
            "0805",
            "805#g35",
            "0860#g35",
            "2401#g35",
            "0805#",
            "0805#A",
            "é5#g35",
            "08:05#g35",
        ] {
            assert_eq!(bad.parse::<CallMark>(), Err(InvalidCallMark), "{bad}");
        }
    }

    fn train(runs_on: Value, stops: Value) -> SaleFile {
        let mut file = json!({
            "sale": "g1", "title": "G1", "currency": "CNY",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "limit_per_buyer": 5, "pay_window_seconds": 600, "stops": stops,
            "tiers": [{ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 3 }]
        });
        file["runs_on"] = runs_on;
        serde_json::from_value(file).unwrap()
    }

    fn found(file: &SaleFile) -> Vec<String> {
        let text = |call: &TrainCall| {
            let later: Vec<&str> = call.later.iter().map(StopLabel::as_str).collect();
            format!("{} {} {} {}", call.stop, call.day, call.mark, later.join(","))
        };
        calls(file).iter().map(text).collect()
    }

    fn night_train() -> Value {
        json!([
            { "stop": "A", "name": "Alt", "departs": "22:10" },
            { "stop": "B", "name": "b", "arrives": "23:59", "departs": "24:05" },
            { "stop": "C", "name": "c" },
            { "stop": "D", "name": "d", "arrives": "31:00" }
        ])
    }

    #[test]
    fn a_train_is_found_at_each_stop_but_its_last_on_the_day_there_by_id_and_by_name() {
        let file = train(json!("2026-11-21"), night_train());
        let expected = [
            "a 2026-11-21 2210#g1 b,c,d",
            "alt 2026-11-21 2210#g1 b,c,d",
            "b 2026-11-22 0005#g1 c,d",
            "c 2026-11-22 2400#g1 d",
        ];
        assert_eq!(found(&file), expected);
        assert!(found(&train(Value::Null, night_train())).is_empty());
        assert!(found(&train(json!("2026-11-21"), json!([]))).is_empty());
        assert!(found(&SaleFile { state: SaleState::Cancelled, ..file.clone() }).is_empty());
        assert_eq!(found(&SaleFile { state: SaleState::Paused, ..file }), expected);
    }

    #[test]
    fn a_train_that_comes_back_is_found_at_each_of_its_calls() {
        // Ids are unique in a sale; names need not be.
        let stops = json!([
            { "stop": "A1", "name": "Ring", "departs": "08:00" },
            { "stop": "B", "name": "Park", "departs": "08:30" },
            { "stop": "A2", "name": "Ring", "departs": "09:00" },
            { "stop": "B2", "name": "Park", "arrives": "09:30" }
        ]);
        let file = train(json!("2026-11-21"), stops);
        let (day, label) =
            ("2026-11-21".parse().unwrap(), |text: &str| StopLabel::new(text).unwrap());
        let journey = |from: &str, mark: &str, to: &str| {
            let legs = journey_from(&file, day, &label(from), &mark.parse().unwrap(), &label(to));
            legs.map(|legs| (legs.from(), legs.to()))
        };
        assert_eq!(journey("ring", "0800#g1", "park"), Some((0, 1)), "to the next of that name");
        assert_eq!(journey("RING", "0900#g1", "Park"), Some((2, 3)));
        assert_eq!(journey("a1", "0800#g1", "b2"), Some((0, 3)));
        assert_eq!(journey("park", "0830#g1", "ring"), Some((1, 2)));
        assert_eq!(journey("ring", "0801#g1", "park"), None, "it leaves at another time");
        assert_eq!(journey("ring", "0800#g2", "park"), None, "another train");
        assert_eq!(journey("b2", "0930#g1", "ring"), None, "its last stop");
        let other = "2026-11-22".parse().unwrap();
        let mark = "0800#g1".parse().unwrap();
        assert_eq!(journey_from(&file, other, &label("ring"), &mark, &label("park")), None);
        // Without times both calls of a name are one.
        let stops = json!([
            { "stop": "A1", "name": "Ring" }, { "stop": "A2", "name": "Ring" }, { "stop": "B", "name": "b" }
        ]);
        let expected = [
            "a1 2026-11-21 2400#g1 a2,b,ring",
            "ring 2026-11-21 2400#g1 a2,b,ring",
            "a2 2026-11-21 2400#g1 b",
        ];
        assert_eq!(found(&train(json!("2026-11-21"), stops)), expected);
    }

    #[test]
    fn every_call_leads_to_a_journey_to_each_later_stop() {
        let file = train(json!("2026-11-21"), night_train());
        for call in calls(&file) {
            for to in &call.later {
                let legs = journey_from(&file, call.day, &call.stop, &call.mark, to);
                assert!(legs.is_some(), "{call:?} to {to}");
            }
        }
    }

    #[test]
    fn a_label_is_plain_text_without_case() {
        for (text, label) in [("VNP", "vnp"), (" 北京南 ", "北京南"), ("Köln Hbf", "köln hbf")]
        {
            assert_eq!(
                text.parse::<StopLabel>().map(|label| label.to_string()).as_deref(),
                Ok(label)
            );
        }
        for bad in ["", "  ", "a\nb", &"x".repeat(256)] {
            assert!(bad.parse::<StopLabel>().is_err(), "{bad:?}");
        }
    }
}
