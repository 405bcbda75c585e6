//! Where a trip calls, in order, each call under an id of its own.

use engine::domain::basics::ids::StopId;
use engine::domain::sale::MAX_LEGS;

use super::super::tables::{Lined, line_of};
use super::super::{Place, Remedy, SourceDefect};
use super::Reading;
use super::feed::{StopRow, StopTimeRow};

/// A call of the trip at a stop.
pub(super) struct Call<'feed> {
    pub(super) time: &'feed Lined<StopTimeRow>,
    pub(super) stop: &'feed StopRow,
    /// The stop's id in the sale.
    pub(super) id: StopId,
}

impl<'feed> Reading<'feed> {
    /// The stops of the trip, each declared and under an id of its own.
    pub(super) fn calls(&mut self) -> Vec<Call<'feed>> {
        let times = self.feed.times(&self.trip.trip_id);
        if times.len() < 2 {
            let (at, stops) = (self.at.clone(), times.len());
            self.findings.add(SourceDefect::TooFewStops { at, stops }, Remedy::None);
        }
        if times.len() > MAX_LEGS + 1 {
            let (at, stops) = (self.at.clone(), times.len());
            self.findings.add(SourceDefect::TooManyStops { at, stops }, Remedy::None);
        }
        let mut calls: Vec<Call<'feed>> = Vec::new();
        for time in times {
            let at = place_of(time);
            let before = calls.last().map(|call| call.time);
            if let Some(before) = before {
                self.compare(before, time, &at);
            }
            let id = &time.1.stop_id;
            let Some((_, stop)) = self.feed.stops.get(id) else {
                let what = format!("stop {id:?}");
                self.findings.add(SourceDefect::Undeclared { what, at }, Remedy::None);
                continue;
            };
            let Some(own) = self.own_id(id, &calls, &at) else { continue };
            calls.push(Call { time, stop, id: own });
        }
        calls
    }

    /// A stop's id in the sale: its own, or a counted one where the trip calls again.
    fn own_id(&mut self, id: &str, calls: &[Call<'_>], at: &Place) -> Option<StopId> {
        let is_taken = |id: &StopId| calls.iter().any(|call| call.id == *id);
        let own = match StopId::new(id) {
            Ok(own) => own,
            Err(why) => {
                let defect = SourceDefect::UnusableKey { at: at.clone(), why: why.to_string() };
                self.findings.add(defect, Remedy::None);
                return None;
            }
        };
        if !is_taken(&own) {
            return Some(own);
        }
        let counted = |count: usize| StopId::new(format!("{id} ({count})")).ok();
        let again = (2..=calls.len() + 2).filter_map(counted).find(|id| !is_taken(id));
        let first = calls.iter().find(|call| call.id == own).map(|call| place_of(call.time));
        let defect = SourceDefect::DeclaredTwice {
            what: format!("the call at stop {id}"),
            first: first.unwrap_or_else(|| at.clone()),
            again: at.clone(),
        };
        let remedy = match &again {
            Some(again) => Remedy::Believe { what: format!("the second is stop {again}") },
            None => Remedy::None,
        };
        self.findings.add(defect, remedy);
        again
    }

    /// Two calls that follow each other need sequences of their own, and times in order.
    fn compare(&mut self, before: &Lined<StopTimeRow>, time: &Lined<StopTimeRow>, at: &Place) {
        let first = place_of(before);
        if before.1.stop_sequence == time.1.stop_sequence {
            let defect = SourceDefect::DeclaredTwice {
                what: format!("stop_sequence {}", time.1.stop_sequence),
                first: first.clone(),
                again: at.clone(),
            };
            let what = "they are in the order of the table".to_owned();
            self.findings.add(defect, Remedy::Believe { what });
        }
        let leaves = before.1.departure_time.or(before.1.arrival_time);
        let arrives = time.1.arrival_time.or(time.1.departure_time);
        if let (Some(leaves), Some(arrives)) = (leaves, arrives)
            && arrives < leaves
        {
            let how = format!("the train leaves at {leaves} and arrives at {arrives}");
            let defect = SourceDefect::Disagreement { first, again: at.clone(), how };
            let what = "stop_sequence decides".to_owned();
            self.findings.add(defect, Remedy::Believe { what });
        }
    }
}

pub(super) fn name_of(stop: &StopRow) -> &str {
    stop.stop_name.as_deref().unwrap_or(&stop.stop_id)
}

pub(super) fn place_of((line, row): &Lined<StopTimeRow>) -> Place {
    Place {
        at: line_of("stop_times.txt", *line),
        label: format!("stop {} of trip {}", row.stop_id, row.trip_id),
    }
}
