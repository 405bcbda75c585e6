//! The body of a reservation, and the chain of checks that turns it into the requested lines of an
//! order: of the whole request here, of each line in `line`.

mod line;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use lambda_http::Request;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::attendees::AttendeeKeys;
use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use crate::http::tokens;
use engine::domain::basics::ids::{AttendeeId, SeatName, StopId, TierId};
use engine::domain::basics::limits::{MAX_LINES_PER_ORDER, MAX_SEATS_PER_ORDER};
use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::choice::Together;
use engine::domain::order::TicketName;
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::requested::RequestedLine;
use engine::domain::sale::Sale;

use line::LineCheck;
pub use line::journey;

/// The header that may carry the admission token instead of the body.
const ADMISSION_HEADER: &str = "admission";

/// Body of a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with lines")]
pub struct ReservationBody {
    /// The admission token, unless the header `Admission` carries it.
    #[serde(default)]
    admission: Option<String>,
    /// Requested lines: at most one a tier, and at most ten seats in all.
    #[schemars(length(min = 1, max = MAX_LINES_PER_ORDER))]
    lines: Vec<LineBody>,
    /// Tickets of a paid order of the buyer that the new ones replace.
    #[serde(default)]
    exchange: Option<ExchangeBody>,
}

/// Tickets that are exchanged, one for each ticket of the lines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with order and tickets")]
#[schemars(rename = "ExchangeRequest")]
struct ExchangeBody {
    /// The paid order that has them.
    order: OrderNumber,
    /// The tickets.
    #[schemars(length(min = 1, max = MAX_SEATS_PER_ORDER))]
    tickets: Vec<TicketName>,
}

/// One line. Exactly one of `seats`, `best` and `pattern` is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a line, which is an object")]
#[schemars(rename = "Line", extend("oneOf" = [
    { "required": ["seats"], "properties": { "seats": { "type": "array" } } },
    { "required": ["best"], "properties": { "best": { "type": "object" } } },
    { "required": ["pattern"], "properties": { "pattern": { "type": "array" } } }
]))]
struct LineBody {
    /// Tier id, unique in the sale.
    tier: TierId,
    /// Stop where the journey begins: required on a train, absent elsewhere.
    #[serde(default)]
    from: Option<StopId>,
    /// Stop where the journey ends: required on a train, absent elsewhere.
    #[serde(default)]
    to: Option<StopId>,
    /// Seats chosen by name.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SEATS_PER_ORDER), extend("uniqueItems" = true))]
    seats: Option<Vec<SeatName>>,
    /// Best available seats.
    #[serde(default)]
    best: Option<BestBody>,
    /// A first seat and its neighbours, anywhere in the tier.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SEATS_PER_ORDER))]
    pattern: Option<Vec<PlaceBody>>,
    /// Attendees who will use the tickets: none, or one for each ticket.
    #[serde(default)]
    #[schemars(length(max = MAX_SEATS_PER_ORDER), extend("uniqueItems" = true))]
    attendees: Vec<AttendeeId>,
}

/// Best available seats, adjacent if possible or if required.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with count")]
#[schemars(rename = "Best")]
struct BestBody {
    /// Number of seats.
    #[schemars(range(min = 1, max = MAX_SEATS_PER_ORDER))]
    count: u16,
    /// Adjacency: `preferred` also takes scattered seats.
    #[serde(default = "preferred")]
    together: Together,
}

fn preferred() -> Together {
    Together::Preferred
}

/// One place of a pattern: a column letter, in the first place's row or in the next.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with column")]
#[schemars(rename = "Place")]
struct PlaceBody {
    /// One of the tier's column letters.
    column: String,
    /// 0 for the first place; 0 or 1, the next row, for the others.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    row: u16,
}

impl ReservationBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Self, Refusal> {
        let mut body: Self = json_body(request, MAX_BODY_BYTES)?;
        let header = request.headers().get(ADMISSION_HEADER);
        let header = header.and_then(|value| value.to_str().ok()).map(str::to_owned);
        body.admission = body.admission.or(header);
        Ok(body)
    }

    /// The admission token.
    ///
    /// # Errors
    /// Returns [`tokens::Defect::Missing`].
    pub fn admission(&self) -> Result<&str, tokens::Defect> {
        self.admission.as_deref().ok_or(tokens::Defect::Missing)
    }

    /// The tickets that shall be exchanged for it.
    ///
    /// # Errors
    /// Refuses a number of tickets that no order has.
    pub fn exchange(&self) -> Result<Option<ExchangeRequest>, Refusal> {
        let Some(ExchangeBody { order, tickets }) = &self.exchange else { return Ok(None) };
        if !(1..=MAX_SEATS_PER_ORDER).contains(&tickets.len()) {
            let rule = format!("must be 1 to {MAX_SEATS_PER_ORDER} tickets");
            return Err(Refusal::invalid("exchange.tickets", rule));
        }
        // In any order they are the same request.
        let mut tickets = tickets.clone();
        tickets.sort();
        Ok(Some(ExchangeRequest { order: *order, tickets }))
    }

    /// What is requested, checked against its sale. Chosen seats come in ascending order, each with
    /// its attendee, so that a repeat in another order is the same request. `keys` hash the attendees.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn requested(
        &self,
        sale: &Sale,
        keys: &AttendeeKeys,
    ) -> Result<Vec<RequestedLine>, Refusal> {
        self.check_line_count()?;
        self.check_each_tier_once()?;
        let check = |(index, line)| LineCheck { sale, keys, at: format!("lines[{index}]"), line };
        let checks = self.lines.iter().enumerate().map(check);
        let requested: Vec<RequestedLine> =
            checks.map(|check| check.requested()).collect::<Result<_, _>>()?;
        check_seat_count(&requested)?;
        check_each_attendee_once(&requested)?;
        Ok(requested)
    }

    fn check_line_count(&self) -> Result<(), Refusal> {
        if (1..=MAX_LINES_PER_ORDER).contains(&self.lines.len()) {
            Ok(())
        } else {
            Err(Refusal::invalid("lines", format!("must be 1 to {MAX_LINES_PER_ORDER} lines")))
        }
    }

    fn check_each_tier_once(&self) -> Result<(), Refusal> {
        let mut seen = HashSet::new();
        match self.lines.iter().position(|line| !seen.insert(&line.tier)) {
            None => Ok(()),
            Some(index) => Err(Refusal::invalid(
                format!("lines[{index}].tier"),
                "a tier may have only one line",
            )),
        }
    }
}

fn check_seat_count(requested: &[RequestedLine]) -> Result<(), Refusal> {
    let seats: usize = requested.iter().map(|requested| requested.line.choice.count()).sum();
    if seats <= MAX_SEATS_PER_ORDER {
        Ok(())
    } else {
        Err(Refusal::invalid("lines", format!("an order has at most {MAX_SEATS_PER_ORDER} seats")))
    }
}

fn check_each_attendee_once(requested: &[RequestedLine]) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    let mut attendees = requested.iter().flat_map(|requested| &requested.attendees);
    match attendees.find(|attendee| !seen.insert(*attendee)) {
        None => Ok(()),
        Some(_) => Err(Refusal::invalid("lines", "an attendee may have only one ticket")),
    }
}
