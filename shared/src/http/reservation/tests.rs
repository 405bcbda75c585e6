//! Every check of a reservation, with a request that it refuses.

use super::*;
use crate::http::checks::parse;
use engine::domain::basics::ids::Seat;
use engine::domain::basics::money::MinorUnits;
use engine::domain::inventory::choice::{Choice, Offset};
use engine::domain::order::attendee::Attendee;
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
    let keys = AttendeeKeys::new([&b"a key of more than thirty-two bytes"[..]]);
    parse::<ReservationBody>(body.as_bytes())?.requested(sale, &keys)
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
            (of_a(json!({ "pattern": [{"column": "A"}] })), "pattern[0].column: the tier has no"),
            (of_a(json!({ "best": {"count": 2}, "attendees": ["p"] })), "name none or all 2"),
            (of_a(json!({ "best": {"count": 2}, "attendees": ["p", "p"] })), "only one ticket"),
            (of_a(json!({ "best": {"count": 1}, "attendees": ["p#1"] })), "attendee id must be"),
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
    let line =
        |attendees: Value| json!([{ "tier": "a", "best": {"count": 2}, "attendees": attendees }]);
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
    let standing = json!([{ "tier": "standing", "from": "X", "to": "Z", "seats": ["standing-1"] }]);
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
            (pattern(json!([{"column": "C"}])), "pattern[0].column: the tier has no such column"),
            (pattern(json!([{"column": "A", "row": 1}])), "pattern[0].row: must be 0"),
            (pattern(json!([{"column": "A"}, {"column": "A", "row": 2}])), "pattern[1].row"),
            (pattern(json!([{"column": "A"}, {"column": "A"}])), "pattern[1]: the place is named"),
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
    assert_eq!((requested[0].price_minor, requested[0].line.legs.count()), (MinorUnits(300), 2));
}

#[test]
fn without_a_key_a_request_that_names_somebody_fails_and_no_other() {
    let body = |attendees: Value| {
        let line = json!({ "tier": "a", "best": {"count": 1}, "attendees": attendees });
        let body = json!({ "lines": [line] }).to_string();
        parse::<ReservationBody>(body.as_bytes()).unwrap()
    };
    let (sale, none) = (concert("optional"), AttendeeKeys::new([]));
    let refusal = body(json!(["p"])).requested(&sale, &none).unwrap_err();
    assert!(matches!(refusal, Refusal::Store(_)), "{refusal:?}");
    assert!(body(json!([])).requested(&sale, &none).is_ok());
}

#[test]
fn chosen_seats_are_sorted_with_their_attendees() {
    let sale = concert("optional");
    let lines = |seats: Value, attendees: Value| {
        requested(&sale, json!([{ "tier": "a", "seats": seats, "attendees": attendees }])).unwrap()
    };
    let one = lines(json!(["a-3", "a-1", "a-2"]), json!(["r", "p", "q"]));
    assert_eq!(one[0].line.choice, Choice::Seats(vec![Seat(0), Seat(1), Seat(2)]));
    let name = |attendee: &Attendee| attendee.id.as_ref().unwrap().to_string();
    let names: Vec<String> = one[0].attendees.iter().map(name).collect();
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
