//! The body of a reservation, and the chain of checks that turns it into what a flow is given.

use std::collections::HashSet;

use lambda_http::Request;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use crate::http::tokens;
use engine::domain::choice::{Choice, Offset, Together};
use engine::domain::ids::{AttendeeId, Legs, Seat, SeatName, StopId, TierId};
use engine::domain::inventory::Line;
use engine::domain::requested::{MAX_LINES_PER_ORDER, MAX_SEATS_PER_ORDER, RequestedLine};
use engine::domain::sale::{AttendeeRule, Sale, Tier};

/// The header that may carry the admission token instead of the body.
const ADMISSION_HEADER: &str = "admission";

/// What a buyer sends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with lines")]
pub struct ReservationBody {
    /// The admission token, unless the header `Admission` carries it.
    #[serde(default)]
    admission: Option<String>,
    /// What is requested, at most one line a tier, and at most ten seats in all.
    #[schemars(length(min = 1, max = MAX_LINES_PER_ORDER))]
    lines: Vec<LineBody>,
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
    /// Which tier.
    tier: TierId,
    /// Where the journey begins; only on a train, and there it must be given.
    #[serde(default)]
    from: Option<StopId>,
    /// Where the journey ends; only on a train, and there it must be given.
    #[serde(default)]
    to: Option<StopId>,
    /// Exactly these seats.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SEATS_PER_ORDER), extend("uniqueItems" = true))]
    seats: Option<Vec<SeatName>>,
    /// So many of the best.
    #[serde(default)]
    best: Option<BestBody>,
    /// A first seat and its neighbours, anywhere in the tier.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SEATS_PER_ORDER))]
    pattern: Option<Vec<PlaceBody>>,
    /// Who will use the tickets: nobody is named, or one for each ticket.
    #[serde(default)]
    #[schemars(length(max = MAX_SEATS_PER_ORDER), extend("uniqueItems" = true))]
    attendees: Vec<AttendeeId>,
}

/// So many seats, adjacent if possible or if required.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with count")]
#[schemars(rename = "Best")]
struct BestBody {
    /// How many.
    #[schemars(range(min = 1, max = MAX_SEATS_PER_ORDER))]
    count: u16,
    /// Whether scattered seats will do.
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

/// A line of the request with the sale it is checked against and its place in the request.
struct Asked<'a> {
    sale: &'a Sale,
    at: String,
    line: &'a LineBody,
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

    /// What is requested, checked against its sale. Chosen seats come in ascending order, each with
    /// its attendee, so that a repeat in another order is the same request.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn requested(&self, sale: &Sale) -> Result<Vec<RequestedLine>, Refusal> {
        self.check_line_count()?;
        self.check_each_tier_once()?;
        let asked = |(index, line)| Asked { sale, at: format!("lines[{index}]"), line };
        let lines = self.lines.iter().enumerate().map(asked);
        let requested: Vec<RequestedLine> =
            lines.map(|asked| asked.requested()).collect::<Result<_, _>>()?;
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

impl Asked<'_> {
    fn requested(&self) -> Result<RequestedLine, Refusal> {
        let tier = self.known_tier()?;
        let legs = journey(self.sale, &self.at, self.line.from.as_ref(), self.line.to.as_ref())?;
        let price_minor = self.price(tier, legs)?;
        let choice = self.choice(tier)?;
        self.check_attendee_count(choice.count())?;
        let line = Line { tier: tier.tier.clone(), legs, choice };
        Ok(in_seat_order(RequestedLine {
            line,
            price_minor,
            attendees: self.line.attendees.clone(),
        }))
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

    fn price(&self, tier: &Tier, legs: Legs) -> Result<i64, Refusal> {
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
                // A row has at most 1,024 columns, so the distance fits.
                let offset = |&(row, column): &(u16, u16)| Offset {
                    row,
                    column: (i32::from(column) - i32::from(first)) as i16,
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
    let mut pairs: Vec<(Seat, Option<AttendeeId>)> =
        seats.into_iter().map(|seat| (seat, attendees.next())).collect();
    pairs.sort();
    let (seats, attendees): (Vec<Seat>, Vec<Option<AttendeeId>>) = pairs.into_iter().unzip();
    RequestedLine {
        line: Line { choice: Choice::Seats(seats), ..line },
        price_minor,
        attendees: attendees.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::checks::parse;
    use engine::domain::sale::SaleFile;
    use serde_json::{Value, json};

    fn terms() -> Value {
        json!({
            "sale": "s", "title": "S", "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "limit_per_buyer": 20, "pay_window_seconds": 600
        })
    }

    fn sale(change: Value) -> Sale {
        let mut file = terms();
        file.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        Sale::new(serde_json::from_value::<SaleFile>(file).unwrap()).unwrap()
    }

    #[test]
    fn a_refusal_of_another_shape_speaks_of_json_and_not_of_our_types() {
        for body in [
            r#"null"#,
            r#"[]"#,
            r#"{"lines": [1]}"#,
            r#"{"lines": [{"tier": "t", "best": 2}]}"#,
            r#"{"lines": [{"tier": "t", "pattern": [[]]}]}"#,
        ] {
            let refusal = parse::<ReservationBody>(body.as_bytes()).unwrap_err().to_string();
            assert!(!refusal.contains("struct") && !refusal.contains("Body"), "{refusal}");
        }
        let places = parse::<SaleFile>(
            br#"{"tiers": [{"tier": "t", "name": "T", "sections": [
                {"section": "s", "rows": [{"row": "1", "seats": 5}]}]}]}"#,
        );
        let refusal = places.unwrap_err().to_string();
        assert!(refusal.contains("a list of seat names, a run"), "{refusal}");
    }

    /// Two coaches of one row, columns A, aisle, B; and standing room.
    fn train() -> Sale {
        sale(json!({
            "stops": [{"stop": "X", "name": "x"}, {"stop": "Y", "name": "y"}, {"stop": "Z", "name": "z"}],
            "tiers": [
                { "tier": "second", "name": "Second", "columns": ["A", null, "B"],
                  "fares": [{"from": "X", "to": "Z", "price_minor": 300}],
                  "sections": [
                    {"section": "1", "rows": [
                        {"row": "1", "seats": ["1A", null, "1B"]},
                        {"row": "2", "seats": ["2A", null, "2B"]}]}] },
                { "tier": "standing", "name": "Standing", "price_minor": 100, "general_admission": 40 }
            ]
        }))
    }

    fn concert(attendees: &str) -> Sale {
        let tier = |id: &str| {
            json!({
                "tier": id, "name": id, "price_minor": 500,
                "sections": [{"section": id, "rows": [
                    {"row": "1", "seats": {"prefix": format!("{id}-"), "first": 1, "count": 20}}]}]
            })
        };
        let tiers: Vec<Value> = ["a", "b", "c", "d", "e"].into_iter().map(tier).collect();
        sale(json!({ "attendees": attendees, "tiers": tiers }))
    }

    fn requested(sale: &Sale, lines: Value) -> Result<Vec<RequestedLine>, Refusal> {
        let body = json!({ "lines": lines }).to_string();
        parse::<ReservationBody>(body.as_bytes())?.requested(sale)
    }

    fn refusals(sale: &Sale, cases: &[(Value, &str)]) {
        for (lines, expected) in cases {
            let refusal = requested(sale, lines.clone()).expect_err(expected).to_string();
            assert!(refusal.contains(expected), "{lines}: {refusal:?} does not say {expected:?}");
        }
    }

    #[test]
    fn each_check_refuses_what_it_is_for() {
        let best = |tier: &str| json!({ "tier": tier, "best": { "count": 1 } });
        let of_a = |change: Value| {
            let mut line = json!({ "tier": "a" });
            line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            json!([line])
        };
        let eleven: Vec<String> = (1..=11).map(|seat| format!("a-{seat}")).collect();
        refusals(
            &concert("optional"),
            &[
                (json!([]), "lines: must be 1 to 4 lines"),
                (json!([best("a"), best("b"), best("c"), best("d"), best("e")]), "1 to 4 lines"),
                (json!([best("a"), best("a")]), "lines[1].tier: a tier may have only one line"),
                (json!([best("z")]), "lines[0].tier: the sale has no such tier"),
                (json!([best("Z")]), "tier id must be"),
                (of_a(json!({ "from": "X", "to": "Y", "best": {"count": 1} })), "has no stops"),
                (of_a(json!({ "to": "Y", "best": {"count": 1} })), "has no stops"),
                (of_a(json!({})), "lines[0]: must have exactly one of"),
                (of_a(json!({ "seats": ["a-1"], "best": {"count": 1} })), "exactly one of"),
                (of_a(json!({ "pattern": [], "best": {"count": 1} })), "exactly one of"),
                (of_a(json!({ "seats": [] })), "lines[0].seats: must be 1 to 10"),
                (of_a(json!({ "seats": eleven })), "lines[0].seats: must be 1 to 10"),
                (of_a(json!({ "seats": ["a-1", "b-1"] })), "seats[1]: the tier has no such seat"),
                (of_a(json!({ "seats": ["a-2", "a-2"] })), "seats[1]: the seat is named twice"),
                (of_a(json!({ "best": {"count": 0} })), "best.count: must be 1 to 10"),
                (of_a(json!({ "best": {"count": 11} })), "best.count: must be 1 to 10"),
                (of_a(json!({ "best": {"count": -1} })), "invalid value"),
                (of_a(json!({ "best": {"count": 1, "together": "maybe"} })), "unknown variant"),
                (
                    of_a(json!({ "pattern": [{"column": "A"}] })),
                    "pattern[0].column: the tier has no",
                ),
                (of_a(json!({ "best": {"count": 2}, "attendees": ["p"] })), "name none or all 2"),
                (of_a(json!({ "best": {"count": 2}, "attendees": ["p", "p"] })), "only one ticket"),
                (
                    of_a(json!({ "best": {"count": 1}, "attendees": ["p#1"] })),
                    "attendee id must be",
                ),
                (of_a(json!({ "best": {"count": 1}, "price": 1 })), "unknown field `price`"),
                (
                    json!([{ "tier": "a", "best": {"count": 6} }, { "tier": "b", "best": {"count": 5} }]),
                    "lines: an order has at most 10 seats",
                ),
                (
                    json!([
                        { "tier": "a", "best": {"count": 1}, "attendees": ["p"] },
                        { "tier": "b", "best": {"count": 1}, "attendees": ["p"] }
                    ]),
                    "only one ticket",
                ),
            ],
        );
    }

    #[test]
    fn where_attendees_are_required_all_are_named() {
        let sale = concert("required");
        let line = |attendees: Value| json!([{ "tier": "a", "best": {"count": 2}, "attendees": attendees }]);
        refusals(
            &sale,
            &[
                (line(json!([])), "attendees: must name all 2"),
                (line(json!(["p"])), "attendees: must name all 2"),
                (line(json!(["p", "q", "r"])), "attendees: must name all 2"),
            ],
        );
        assert_eq!(requested(&sale, line(json!(["p", "q"]))).unwrap()[0].attendees.len(), 2);
    }

    #[test]
    fn each_check_of_a_train_refuses_what_it_is_for() {
        let on = |from: &str, to: &str, change: Value| {
            let mut line = json!({ "tier": "second", "from": from, "to": to });
            line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            json!([line])
        };
        let pattern = |places: Value| on("X", "Z", json!({ "pattern": places }));
        let best = || json!({ "best": {"count": 1} });
        let standing =
            json!([{ "tier": "standing", "from": "X", "to": "Z", "seats": ["standing-1"] }]);
        refusals(
            &train(),
            &[
                (json!([{ "tier": "second", "best": {"count": 1} }]), "from and to must be given"),
                (json!([{ "tier": "second", "from": "X", "best": {"count": 1} }]), "must be given"),
                (on("Z", "X", best()), "must be stops, in this order"),
                (on("X", "Q", best()), "must be stops"),
                (on("X", "Y", best()), "the tier does not sell this journey"),
                (standing, "lines[0].seats: the tier's spots cannot be chosen"),
                (pattern(json!([])), "lines[0].pattern: must be 1 to 10 seats"),
                (
                    pattern(json!([{"column": "C"}])),
                    "pattern[0].column: the tier has no such column",
                ),
                (pattern(json!([{"column": "A", "row": 1}])), "pattern[0].row: must be 0"),
                (pattern(json!([{"column": "A"}, {"column": "A", "row": 2}])), "pattern[1].row"),
                (
                    pattern(json!([{"column": "A"}, {"column": "A"}])),
                    "pattern[1]: the place is named",
                ),
            ],
        );
    }

    #[test]
    fn a_pattern_is_a_column_and_offsets() {
        let places = json!([{"column": "B"}, {"column": "A"}, {"column": "B", "row": 1}]);
        let lines = json!([{ "tier": "second", "from": "X", "to": "Z", "pattern": places }]);
        let requested = requested(&train(), lines).unwrap();
        let offsets = vec![Offset { row: 0, column: -2 }, Offset { row: 1, column: 0 }];
        assert_eq!(requested[0].line.choice, Choice::Pattern { column: 2, offsets });
        assert_eq!((requested[0].price_minor, requested[0].line.legs.count()), (300, 2));
    }

    #[test]
    fn chosen_seats_are_sorted_with_their_attendees() {
        let sale = concert("optional");
        let lines = |seats: Value, attendees: Value| {
            requested(&sale, json!([{ "tier": "a", "seats": seats, "attendees": attendees }]))
                .unwrap()
        };
        let one = lines(json!(["a-3", "a-1", "a-2"]), json!(["r", "p", "q"]));
        assert_eq!(one[0].line.choice, Choice::Seats(vec![Seat(0), Seat(1), Seat(2)]));
        let names: Vec<&str> = one[0].attendees.iter().map(AttendeeId::as_str).collect();
        assert_eq!(names, ["p", "q", "r"]);
        assert_eq!(one, lines(json!(["a-1", "a-2", "a-3"]), json!(["p", "q", "r"])));
    }

    #[test]
    fn the_token_comes_in_the_body_or_in_the_header() {
        let request = |body: Value, header: Option<&str>| {
            let mut request = Request::new(body.to_string().into());
            let headers = request.headers_mut();
            headers.insert("content-type", "application/json".parse().unwrap());
            if let Some(header) = header {
                headers.insert("Admission", header.parse().unwrap());
            }
            ReservationBody::read(&request).unwrap()
        };
        let bare = json!({ "lines": [] });
        assert_eq!(request(bare.clone(), None).admission(), Err(tokens::Defect::Missing));
        assert_eq!(request(bare, Some("jwt")).admission(), Ok("jwt"));
        let full = json!({ "admission": "body", "lines": [] });
        assert_eq!(request(full, Some("jwt")).admission(), Ok("body"));
    }
}
