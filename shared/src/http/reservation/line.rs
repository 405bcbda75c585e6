//! The checks of one line of a reservation.

use super::{BestBody, LineBody, PlaceBody};
use crate::http::attendees::AttendeeKeys;
use crate::http::checks::Refusal;
use engine::domain::basics::ids::{Legs, Seat, SeatName, StopId};
use engine::domain::basics::limits::MAX_SEATS_PER_ORDER;
use engine::domain::basics::money::MinorUnits;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Offset};
use engine::domain::order::attendee::Attendee;
use engine::domain::order::requested::RequestedLine;
use engine::domain::sale::{AttendeeRule, Sale, Tier};
use engine::ports::StoreError;

/// A line of the request, checked against its sale.
pub(super) struct LineCheck<'a> {
    /// The sale that sells it.
    pub(super) sale: &'a Sale,
    /// The keys that hash its attendees.
    pub(super) keys: &'a AttendeeKeys,
    /// Path of the line in the request, such as `lines[0]`.
    pub(super) at: String,
    /// The line as it was sent.
    pub(super) line: &'a LineBody,
}

impl LineCheck<'_> {
    /// What is requested, with its price.
    ///
    /// # Errors
    /// Returns the first check that the line does not pass.
    pub(super) fn requested(&self) -> Result<RequestedLine, Refusal> {
        let tier = self.known_tier()?;
        let legs = journey(self.sale, &self.at, self.line.from.as_ref(), self.line.to.as_ref())?;
        let price_minor = self.price(tier, legs)?;
        let choice = self.choice(tier)?;
        self.check_attendee_count(choice.count())?;
        let line = Line { tier: tier.tier.clone(), legs, choice };
        let attendees = self.attendees()?;
        Ok(in_seat_order(RequestedLine { line, price_minor, attendees }))
    }

    fn attendees(&self) -> Result<Vec<Attendee>, Refusal> {
        let named = self.line.attendees.iter().map(|id| self.keys.attendee(self.sale.id(), id));
        let named: Result<Vec<Attendee>, _> = named.collect();
        named.map_err(|no_key| Refusal::Store(StoreError::Contract(no_key.to_string())))
    }

    fn refuse<T>(&self, part: &str, rule: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::invalid(format!("{}{part}", self.at), rule))
    }

    fn known_tier(&self) -> Result<&Tier, Refusal> {
        match self.sale.tier(&self.line.tier) {
            Some(tier) => Ok(tier),
            None => self.refuse(".tier", "the sale has no such tier"),
        }
    }

    fn price(&self, tier: &Tier, legs: Legs) -> Result<MinorUnits, Refusal> {
        match tier.price_minor(legs) {
            Some(price_minor) => Ok(price_minor),
            None => self.refuse("", "the tier does not sell this journey"),
        }
    }

    fn choice(&self, tier: &Tier) -> Result<Choice, Refusal> {
        let LineBody { seats, best, pattern, .. } = self.line;
        match (seats, best, pattern) {
            (Some(seats), None, None) => self.seats(tier, seats),
            (None, Some(best), None) => self.best(best),
            (None, None, Some(places)) => self.pattern(tier, places),
            _ => self.refuse("", "must have exactly one of seats, best and pattern"),
        }
    }

    fn seats(&self, tier: &Tier, names: &[SeatName]) -> Result<Choice, Refusal> {
        if tier.layout.is_general_admission() {
            return self.refuse(".seats", "the tier's spots cannot be chosen");
        }
        self.check_count(".seats", names.len())?;
        let mut seats = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let at = format!(".seats[{index}]");
            match tier.layout.seat(name) {
                None => return self.refuse(&at, "the tier has no such seat"),
                Some(seat) if seats.contains(&seat) => {
                    return self.refuse(&at, "the seat is named twice");
                }
                Some(seat) => seats.push(seat),
            }
        }
        Ok(Choice::Seats(seats))
    }

    fn best(&self, best: &BestBody) -> Result<Choice, Refusal> {
        self.check_count(".best.count", usize::from(best.count))?;
        Ok(Choice::Best { count: best.count, together: best.together })
    }

    fn pattern(&self, tier: &Tier, places: &[PlaceBody]) -> Result<Choice, Refusal> {
        self.check_count(".pattern", places.len())?;
        let mut found: Vec<(u16, u16)> = Vec::with_capacity(places.len());
        for (index, place) in places.iter().enumerate() {
            let at = format!(".pattern[{index}]");
            let Some(column) = tier.layout.column(&place.column) else {
                return self.refuse(&(at + ".column"), "the tier has no such column");
            };
            if place.row > u16::from(index > 0) {
                let rule = "must be 0 for the first place, 0 or 1 for the others";
                return self.refuse(&(at + ".row"), rule);
            }
            if found.contains(&(place.row, column)) {
                return self.refuse(&at, "the place is named twice");
            }
            found.push((place.row, column));
        }
        match found.split_first() {
            None => self.refuse(".pattern", "must not be empty"),
            Some((&(_, first), others)) => {
                let offset = |&(row, column): &(u16, u16)| Offset {
                    row,
                    column: column.cast_signed().wrapping_sub(first.cast_signed()),
                };
                Ok(Choice::Pattern { column: first, offsets: others.iter().map(offset).collect() })
            }
        }
    }

    fn check_count(&self, part: &str, count: usize) -> Result<(), Refusal> {
        if (1..=MAX_SEATS_PER_ORDER).contains(&count) {
            Ok(())
        } else {
            self.refuse(part, format!("must be 1 to {MAX_SEATS_PER_ORDER} seats"))
        }
    }

    fn check_attendee_count(&self, tickets: usize) -> Result<(), Refusal> {
        let named = self.line.attendees.len();
        match self.sale.file().attendees {
            AttendeeRule::Optional if named == 0 => Ok(()),
            AttendeeRule::Required if named != tickets => {
                self.refuse(".attendees", format!("must name all {tickets} attendees"))
            }
            AttendeeRule::Optional | AttendeeRule::Required if named == tickets => Ok(()),
            AttendeeRule::Optional | AttendeeRule::Required => {
                self.refuse(".attendees", format!("must name none or all {tickets} attendees"))
            }
        }
    }
}

/// The legs between two stops, which are given if and only if the sale has stops.
///
/// # Errors
/// Returns [`Refusal::Invalid`] at `at`.
pub fn journey(
    sale: &Sale,
    at: &str,
    from: Option<&StopId>,
    to: Option<&StopId>,
) -> Result<Legs, Refusal> {
    let has_stops = !sale.file().stops.is_empty();
    match (from, to) {
        (Some(from), Some(to)) if has_stops => sale
            .journey(from, to)
            .ok_or_else(|| Refusal::invalid(at, "from and to must be stops, in this order")),
        (None, None) if !has_stops => Ok(Legs::ONE),
        (Some(_), Some(_)) | (Some(_), None) | (None, Some(_)) if !has_stops => {
            Err(Refusal::invalid(at, "the sale has no stops: from and to must be absent"))
        }
        (Some(_), Some(_)) | (Some(_), None) | (None, Some(_)) | (None, None) => {
            Err(Refusal::invalid(at, "from and to must be given"))
        }
    }
}

/// Chosen seats in ascending order, each with its attendee.
fn in_seat_order(requested: RequestedLine) -> RequestedLine {
    let RequestedLine { line, price_minor, attendees } = requested;
    let Choice::Seats(seats) = line.choice else {
        return RequestedLine { line, price_minor, attendees };
    };
    let mut attendees = attendees.into_iter();
    let mut pairs: Vec<(Seat, Option<Attendee>)> =
        seats.into_iter().map(|seat| (seat, attendees.next())).collect();
    pairs.sort();
    let (seats, attendees): (Vec<Seat>, Vec<Option<Attendee>>) = pairs.into_iter().unzip();
    RequestedLine {
        line: Line { choice: Choice::Seats(seats), ..line },
        price_minor,
        attendees: attendees.into_iter().flatten().collect(),
    }
}
