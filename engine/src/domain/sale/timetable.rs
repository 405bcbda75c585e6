//! The timetable of a train: its stops with their times, by the clocks of the railway, the search by day and stops, and
//! the stops of a day, among which people choose those of a search.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SaleFile, SaleState, Stop};
use crate::domain::basics::calendar::{ClockTime, Day, LocalTime, MINUTES_PER_DAY, two_digits};
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
                last = last.max(Some(zone.moment_after(time.on(day), last)));
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

/// The separator of a [`StopMark`]: no label has it, and it sorts before all that a label has.
const MARK_SEPARATOR: char = '\t';

/// The place of a stop among those of a day: by name, then by id. As text, the two with a tab between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StopMark {
    name: StopLabel,
    stop: StopLabel,
}

/// The text is no mark of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the `next` of another page")]
pub struct InvalidStopMark;

impl StopMark {
    /// Most bytes of a mark as text, so that a key of DynamoDB (1,024 bytes) has room for it.
    pub const MAX_BYTES: usize = 1_000;

    /// The mark of two labels; `None` if it is too long.
    fn new(name: StopLabel, stop: StopLabel) -> Option<Self> {
        let bytes = name.as_str().len() + MARK_SEPARATOR.len_utf8() + stop.as_str().len();
        (bytes <= Self::MAX_BYTES).then_some(Self { name, stop })
    }
}

impl fmt::Display for StopMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{MARK_SEPARATOR}{}", self.name, self.stop)
    }
}

impl FromStr for StopMark {
    type Err = InvalidStopMark;

    fn from_str(text: &str) -> Result<Self, InvalidStopMark> {
        let (name, stop) = text.split_once(MARK_SEPARATOR).ok_or(InvalidStopMark)?;
        let labels = StopLabel::new(name).zip(StopLabel::new(stop));
        let mark = labels.and_then(|(name, stop)| Self::new(name, stop));
        // Only as it is written: in lower case, without blanks around a label.
        mark.filter(|mark| mark.to_string() == text).ok_or(InvalidStopMark)
    }
}

/// A stop as the list of a day has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListedStop {
    /// Its place in the list.
    pub mark: StopMark,
    /// The name that people read, which finds it; its id if its name finds nothing, as one of more than 255 bytes.
    pub name: String,
    /// Its id.
    pub stop: StopId,
}

impl ListedStop {
    /// The stop of a name and an id; `None` if the mark of the two is too long.
    #[must_use]
    pub fn new(name: &str, stop: &StopId) -> Option<Self> {
        let id = StopLabel::new(stop.as_str())?;
        let (label, name) = match StopLabel::new(name) {
            Some(label) => (label, name.trim()),
            None => (id.clone(), stop.as_str()),
        };
        let mark = StopMark::new(label, id)?;
        Some(Self { mark, name: name.to_owned(), stop: stop.clone() })
    }
}

/// A page of the stops of a day, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StopsPage {
    /// The stops.
    pub stops: Vec<ListedStop>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<StopMark>,
}

/// All stops of one name, whatever its case: a search by the name finds the trains of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStops {
    /// The name that people read.
    pub name: String,
    /// The ids of the stops, in order.
    pub stops: Vec<StopId>,
}

impl StopsPage {
    /// The page with one entry a name, and where the next page begins. A page does not end amid the stops of a name,
    /// unless all of its stops have that name: the last name is left to the next page.
    #[must_use]
    pub fn by_name(mut self) -> (Vec<NamedStops>, Option<StopMark>) {
        let last = self.stops.last().filter(|_| self.next.is_some());
        if let Some(last) = last.map(|last| last.mark.name.clone()) {
            let rest = self.stops.iter().position(|stop| stop.mark.name == last);
            if let Some(rest) = rest.filter(|rest| *rest > 0) {
                self.stops.truncate(rest);
                self.next = self.stops.last().map(|last| last.mark.clone());
            }
        }
        let of_a_name = self.stops.chunk_by(|one, next| one.mark.name == next.mark.name);
        let named = of_a_name.filter_map(|some| {
            let name = some.first()?.name.clone();
            Some(NamedStops { name, stops: some.iter().map(|one| one.stop.clone()).collect() })
        });
        (named.collect(), self.next)
    }
}

/// The stops at which people board or leave a train on each day on which it can be boarded, each once: on a day those
/// from the first at which it is boarded then to the last of all, whenever it arrives there. None if its file does not
/// say when it runs, or it is cancelled.
#[must_use]
pub fn stops_by_day(file: &SaleFile) -> BTreeSet<(Day, ListedStop)> {
    let mut first_of_day: BTreeMap<Day, usize> = BTreeMap::new();
    for (index, day, _) in boardings(file) {
        first_of_day.entry(day).or_insert(index);
    }
    let of_day = |(day, first): (Day, usize)| {
        let stops = file.stops.iter().skip(first);
        let listed = stops.filter_map(|stop| ListedStop::new(&stop.name, &stop.stop));
        listed.map(move |stop| (day, stop))
    };
    first_of_day.into_iter().flat_map(of_day).collect()
}

/// The journey of a whole train, as lists of sales show it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TrainRoute {
    /// The name of its first stop: at most 255 bytes.
    pub from: String,
    /// The name of its last stop, likewise.
    pub to: String,
    /// When it leaves its first stop, by the clocks there; absent if its file does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departs_at: Option<LocalTime>,
    /// When it arrives at its last stop, by the clocks there, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrives_at: Option<LocalTime>,
}

impl TrainRoute {
    /// The route of a train; `None` of a sale without stops.
    #[must_use]
    pub fn from_file(file: &SaleFile) -> Option<Self> {
        let (first, last) = file.stops.first().zip(file.stops.last())?;
        let name = |stop: &Stop| match StopLabel::new(&stop.name) {
            Some(_) => stop.name.trim().to_owned(),
            None => stop.stop.to_string(),
        };
        let at = |time: Option<ClockTime>| file.runs_on.zip(time).map(|(day, time)| time.on(day));
        Some(Self {
            from: name(first),
            to: name(last),
            departs_at: at(first.departs.or(first.arrives)),
            arrives_at: at(last.arrives.or(last.departs)),
        })
    }
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

    fn listed(stops: &[(&str, &str)]) -> Vec<ListedStop> {
        let one = |(name, stop): &(&str, &str)| {
            ListedStop::new(name, &StopId::new(*stop).unwrap()).unwrap()
        };
        let mut listed: Vec<ListedStop> = stops.iter().map(one).collect();
        listed.sort_by(|one, other| one.mark.cmp(&other.mark));
        listed
    }

    fn days(file: &SaleFile) -> Vec<String> {
        let all = stops_by_day(file);
        all.iter().map(|(day, stop)| format!("{day} {} {}", stop.name, stop.stop)).collect()
    }

    #[test]
    fn the_stops_of_a_day_are_those_where_it_is_boarded_and_left() {
        let file = train(json!("2026-11-21"), night_train());
        let expected = [
            "2026-11-21 Alt A",
            "2026-11-21 b B",
            "2026-11-21 c C",
            "2026-11-21 d D",
            "2026-11-22 b B",
            "2026-11-22 c C",
            "2026-11-22 d D",
        ];
        assert_eq!(days(&file), expected);
        assert!(days(&train(Value::Null, night_train())).is_empty());
        assert!(days(&SaleFile { state: SaleState::Cancelled, ..file.clone() }).is_empty());
        // Whatever a search of that day can name is in the list of that day.
        for call in calls(&file) {
            let of_day = stops_by_day(&file).into_iter().filter(|(day, _)| *day == call.day);
            let labels: BTreeSet<StopLabel> =
                of_day.flat_map(|(_, stop)| [stop.mark.name, stop.mark.stop]).collect();
            assert!(labels.contains(&call.stop) && labels.is_superset(&call.later), "{call:?}");
        }
    }

    #[test]
    fn a_stop_is_listed_by_a_name_that_finds_it() {
        let long = "x".repeat(256);
        let stops = json!([
            { "stop": "A", "name": " Alt " }, { "stop": "B", "name": "" }, { "stop": "C", "name": long }
        ]);
        let file = train(json!("2026-11-21"), stops);
        assert_eq!(days(&file), ["2026-11-21 Alt A", "2026-11-21 B B", "2026-11-21 C C"]);
        // Lower case may be longer: two such labels are no key of a table.
        let long = "\u{23a}".repeat(127);
        assert_eq!(
            ListedStop::new(&long, &StopId::new(&long).unwrap()).map(|one| one.name.len()),
            Some(254)
        );
        assert!(StopMark::new(StopLabel("x".repeat(600)), StopLabel("y".repeat(400))).is_none());
    }

    #[test]
    fn stops_of_one_name_are_one_entry_and_no_page_ends_amid_them() {
        let stops = [
            ("Neustadt", "2"),
            ("Newport", "g"),
            ("NEUSTADT", "1"),
            ("Alt", "a"),
            ("Neustadt", "3"),
        ];
        let all = listed(&stops);
        let shown = |(named, next): (Vec<NamedStops>, Option<StopMark>)| {
            let text = |one: &NamedStops| {
                let ids: Vec<&str> = one.stops.iter().map(StopId::as_str).collect();
                format!("{} {}", one.name, ids.join(","))
            };
            let named: Vec<String> = named.iter().map(text).collect();
            (named, next.map(|next| next.to_string()))
        };
        let whole = StopsPage { stops: all.clone(), next: None };
        let expected = ["Alt a", "NEUSTADT 1,2,3", "Newport g"].map(str::to_owned).to_vec();
        assert_eq!(shown(whole.by_name()), (expected, None));
        let part = |range: std::ops::Range<usize>| {
            let stops = all[range].to_vec();
            StopsPage { next: stops.last().map(|last| last.mark.clone()), stops }.by_name()
        };
        assert_eq!(shown(part(0..3)), (vec!["Alt a".to_owned()], Some("alt\ta".to_owned())));
        let amid = (vec!["NEUSTADT 1,2".to_owned()], Some("neustadt\t2".to_owned()));
        assert_eq!(shown(part(1..3)), amid, "a page of one name alone");
        assert_eq!(StopsPage::default().by_name(), (Vec::new(), None));
    }

    #[test]
    fn a_mark_of_a_stop_is_read_as_it_is_written_and_sorts_by_name() {
        let marks: Vec<String> = listed(&[("京 B", "1"), ("京", "2"), ("Ab", "X")])
            .iter()
            .map(|stop| stop.mark.to_string())
            .collect();
        assert_eq!(marks, ["ab\tx", "京\t2", "京 b\t1"]);
        let mut as_text = marks.clone();
        as_text.sort();
        assert_eq!(as_text, marks, "texts sort as their marks do");
        for mark in &marks {
            assert_eq!(mark.parse::<StopMark>().map(|mark| mark.to_string()).as_ref(), Ok(mark));
        }
        for bad in ["", "ab", "ab\t", "\tx", "Ab\tx", "ab \tx", "ab\tx\ty", "a\nb\tx"] {
            assert_eq!(bad.parse::<StopMark>(), Err(InvalidStopMark), "{bad:?}");
        }
    }

    #[test]
    fn the_route_of_a_train_is_from_its_first_stop_to_its_last() {
        let route = |file: &SaleFile| serde_json::to_value(TrainRoute::from_file(file)).unwrap();
        let expected = json!({
            "from": "Alt", "to": "d", "departs_at": "2026-11-21T22:10", "arrives_at": "2026-11-22T07:00"
        });
        let file = train(json!("2026-11-21"), night_train());
        assert_eq!(route(&file), expected);
        let read: Option<TrainRoute> = serde_json::from_value(expected).unwrap();
        assert_eq!(read, TrainRoute::from_file(&file), "it is read as it is written");
        let untimed =
            train(Value::Null, json!([{ "stop": "A", "name": "" }, { "stop": "B", "name": "b" }]));
        assert_eq!(route(&untimed), json!({ "from": "A", "to": "b" }));
        assert_eq!(route(&train(Value::Null, json!([]))), Value::Null);
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
