//! The timetable of a train: its stops with their times, by the clocks of the railway, and the search by day and stops.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::{SaleFile, SaleState, Stop};
use crate::domain::basics::calendar::{Day, LocalTime, MINUTES_PER_DAY, two_digits};
use crate::domain::basics::ids::{InvalidId, Legs, SaleId, StopId};
use crate::domain::basics::time::Timestamp;

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
    /// When the train leaves; `None` where that is not known.
    pub departs: Option<Timestamp>,
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

impl SaleFile {
    /// When the train leaves each of its stops: a stop without a time is left when the one before it is. `None` where no
    /// time is known, or not by which clocks.
    #[must_use]
    pub fn departures(&self) -> Vec<Option<Timestamp>> {
        let mut last: Option<Timestamp> = None;
        let departure = |stop: &Stop| {
            let times = [stop.arrives, stop.departs].into_iter().flatten();
            for (zone, day, time) in
                times.filter_map(|time| Some((self.zone_of(stop)?, self.runs_on?, time)))
            {
                let [first, second] = zone.moments(time.on(day));
                // In the hour that clocks show twice, the one that fits.
                let moment = if last.is_some_and(|last| first < last) { second } else { first };
                last = last.max(Some(moment));
            }
            last
        };
        self.stops.iter().map(departure).collect()
    }

    /// When selling ends: at `closes_at`, or when the train leaves the last stop at which it can be boarded.
    #[must_use]
    pub fn sells_until(&self) -> Timestamp {
        until(self.closes_at, &self.departures())
    }
}

/// The end of selling of a train with these departures.
pub(super) fn until(closes_at: Timestamp, departures: &[Option<Timestamp>]) -> Timestamp {
    let last = departures.iter().rev().nth(1).copied().flatten();
    last.map_or(closes_at, |last| last.min(closes_at))
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
    let departures = file.departures();
    for (index, day, mark) in boardings(file) {
        let later: BTreeSet<_> = file.stops[index + 1..].iter().flat_map(Stop::labels).collect();
        for stop in file.stops[index].labels() {
            let (mark, later, departs) = (mark.clone(), later.clone(), departures[index]);
            let call = TrainCall { stop, day, mark, later, departs };
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
    fn a_train_leaves_by_the_clocks_of_each_stop() {
        let zoned = |stops: &[(&str, Option<&str>)]| {
            let stop = |(index, (times, zone)): (usize, &(&str, Option<&str>))| {
                let mut stop =
                    json!({ "stop": format!("s{index}"), "name": "n", "time_zone": zone });
                for time in times.split_whitespace() {
                    let (name, time) = time.split_at(1);
                    let name = if name == "a" { "arrives" } else { "departs" };
                    stop[name] = json!(time);
                }
                stop
            };
            json!(stops.iter().enumerate().map(stop).collect::<Vec<_>>())
        };
        let left = |day: &str, stops: &[(&str, Option<&str>)]| {
            let file = train(json!(day), zoned(stops));
            let text = |at: &Option<Timestamp>| {
                at.map_or("-".to_owned(), |at| at.to_string()[8..16].to_owned())
            };
            (file.departures().iter().map(text).collect::<Vec<_>>().join(" "), file.sells_until())
        };
        let (vienna, london) = (Some("Europe/Vienna"), Some("Europe/London"));
        let until = |text: &str| text.parse::<Timestamp>().unwrap();
        let closes_at = until("2030-01-01T00:00:00Z");
        // Eastward and westward; at an hour of arrival where there is no other, and of the stop before where there is none.
        assert_eq!(
            left(
                "2026-11-21",
                &[("d22:10", london), ("a24:00 d24:05", vienna), ("", None), ("a31:00", vienna)]
            ),
            ("21T22:10 21T23:05 21T23:05 22T06:00".to_owned(), until("2026-11-21T23:05:00Z"))
        );
        assert_eq!(
            left("2026-11-21", &[("d08:00", vienna), ("a07:30", london), ("a09:00", london)]),
            ("21T07:00 21T07:30 21T09:00".to_owned(), until("2026-11-21T07:30:00Z"))
        );
        // The hour that clocks show twice: the first, unless the train comes only then; and the one that they skip.
        assert_eq!(
            left("2026-10-25", &[("d02:30", vienna), ("a04:00", vienna)]).0,
            "25T00:30 25T03:00"
        );
        assert_eq!(
            left("2026-10-25", &[("d02:40", vienna), ("d02:10", vienna), ("a04:00", vienna)]).0,
            "25T00:40 25T01:10 25T03:00"
        );
        assert_eq!(
            left("2026-03-29", &[("d02:30", vienna), ("d03:10", vienna), ("a04:00", vienna)]).0,
            "29T01:30 29T01:30 29T02:00"
        );
        // Where no clock is known, nobody knows when it leaves.
        assert_eq!(
            left("2026-11-21", &[("d08:00", None), ("a09:00", None)]),
            ("- -".to_owned(), closes_at)
        );
        assert_eq!(train(Value::Null, json!([])).sells_until(), closes_at);
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
