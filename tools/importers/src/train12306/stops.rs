//! The stops of a train and the stations that they name.

use engine::domain::basics::calendar::{ClockTime, Day};
use engine::domain::basics::ids::StopId;
use engine::domain::sale::Stop;

use super::super::tables::Lined;
use super::super::terms::keep_ordered_times;
use super::super::{Place, Remedy, SourceDefect};
use super::Reading;
use super::rows::{StopRow, place_of_station, place_of_stop};

/// Day and clock time of `2023-06-01 09:56:00`.
pub(super) fn moment(text: &str) -> Option<(Day, ClockTime)> {
    let (day, time) = text.split_once([' ', 'T'])?;
    Some((day.parse().ok()?, time.get(..5)?.parse().ok()?))
}

impl Reading<'_> {
    /// The stops in order of their sequence, each under its station's code.
    pub(super) fn stops(&mut self) -> Vec<Stop> {
        let mut listed = self.of_train(&self.tables.stops, |row| &row.train_id);
        listed.sort_by_key(|(_, row)| row.sequence);
        let mut stops = Vec::new();
        let mut kept: Vec<&Lined<StopRow>> = Vec::new();
        for stop in listed {
            let (_, row) = stop;
            let at = place_of_stop(stop);
            let repeats = |(_, other): &&&Lined<StopRow>| {
                other.sequence == row.sequence || other.departure == row.departure
            };
            if let Some(first) = kept.iter().find(repeats) {
                let what = format!("stop {} ({})", row.sequence, row.departure);
                let leave_out = Remedy::LeaveOut { what: at.clone(), seats: 0 };
                let first = place_of_stop(first);
                self.findings
                    .add(SourceDefect::DeclaredTwice { what, first, again: at }, leave_out);
            } else if let Some(station) = self.station(row, &at) {
                let same = stops.iter().position(|other: &Stop| other.stop == station.stop);
                if let Some(first) = same {
                    let what = format!("the code {}", station.stop);
                    let first = place_of_stop(kept[first]);
                    self.findings
                        .add(SourceDefect::DeclaredTwice { what, first, again: at }, Remedy::None);
                    continue;
                }
                kept.push(stop);
                stops.push(station);
            }
        }
        if stops.len() < 2 {
            let (at, stops) = (self.at.clone(), stops.len());
            self.findings.add(SourceDefect::TooFewStops { at, stops }, Remedy::None);
        }
        if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
            self.compare_end("starts", &self.train.start_station, first);
            self.compare_end("ends", &self.train.end_station, last);
        }
        // The first stop has an arrival that is no arrival, the last no departure worth a name.
        if let [first, .., last] = stops.as_mut_slice() {
            (first.arrives, last.departs) = (None, None);
        }
        keep_ordered_times(&mut stops);
        stops
    }

    /// A time of the tables by the clock of the train; `None` if it is none, or before the train sets out.
    fn clock(&self, text: &str) -> Option<ClockTime> {
        let (day, time) = moment(text)?;
        let (first, _) = moment(&self.train.departure_time)?;
        let days = u32::try_from(day.days_since(first)).ok()?;
        ClockTime::from_minutes(days.checked_mul(24 * 60)?.checked_add(time.minutes().into())?).ok()
    }

    fn compare_end(&mut self, verb: &str, station: &str, stop: &Lined<StopRow>) {
        if stop.1.departure != *station {
            let how = format!("the train {verb} at {station}, its stops at {}", stop.1.departure);
            let (first, again) = (self.at.clone(), place_of_stop(stop));
            let what = "train_stations.csv decides".to_owned();
            self.findings
                .add(SourceDefect::Disagreement { first, again, how }, Remedy::Believe { what });
        }
    }

    /// The station that a stop names; without one the train cannot be imported.
    fn station(&mut self, stop: &StopRow, at: &Place) -> Option<Stop> {
        let mut matching =
            self.tables.stations.iter().filter(|(_, station)| station.name == stop.departure);
        let Some(found) = matching.next() else {
            let defect = SourceDefect::Undeclared {
                what: format!("station {:?}", stop.departure),
                at: at.clone(),
            };
            self.findings.add(defect, Remedy::None);
            return None;
        };
        let (_, station) = found;
        if let Some(again) = matching.next() {
            let defect = SourceDefect::DeclaredTwice {
                what: format!("station {}", station.name),
                first: place_of_station(found),
                again: place_of_station(again),
            };
            let what = format!("its code is {}", station.code);
            self.findings.add(defect, Remedy::Believe { what });
        }
        if station.id != stop.station_id {
            let defect = SourceDefect::Disagreement {
                first: at.clone(),
                again: place_of_station(found),
                how: format!("the stop says station {}", stop.station_id),
            };
            let what = format!("the name {} decides, because fares go by it", station.name);
            self.findings.add(defect, Remedy::Believe { what });
        }
        match StopId::new(station.code.as_str()) {
            Ok(id) => Some(Stop {
                arrives: self.clock(&stop.arrival_time),
                departs: self.clock(&stop.departure_time),
                ..Stop::new(id, station.name.clone())
            }),
            Err(why) => {
                let (at, why) = (place_of_station(found), why.to_string());
                self.findings.add(SourceDefect::UnusableKey { at, why }, Remedy::None);
                None
            }
        }
    }
}
