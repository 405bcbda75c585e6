//! The tests of this importer on small inputs of their own.

use super::*;
use engine::domain::basics::ids::SeatName;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Focus;
use serde_json::{Value, json};
use std::sync::Arc;

fn seat(guid: &str, x: f64, category: &str) -> Value {
    json!({"seat_guid": guid, "seat_number": guid, "position": {"x": x, "y": 0}, "category": category})
}

fn row(number: &str, y: f64, seats: Vec<Value>) -> Value {
    json!({"row_number": number, "position": {"x": 0, "y": y}, "seats": seats})
}

fn plan(rows: Vec<Value>) -> Value {
    json!({
        "name": "Hall", "categories": [{"name": "Stalls", "color": "#fff"}, {"name": "樓座"}],
        "zones": [{"name": "Ground", "position": {"x": 0, "y": 0}, "rows": rows}]
    })
}

fn read(plan: &Value, order: RowOrder) -> Result<Import, Error> {
    let prices = Prices { for_all: Some(MinorUnits(1000)), ..Prices::default() };
    let terms = Terms::opening(Timestamp::from_ms(0));
    import("plan.json", plan.to_string().as_bytes(), &terms, &prices, order, None)
}

/// Each row of the first tier as text, seats by name and `_` for a hole.
fn rows(import: &Import) -> Vec<String> {
    let tier = &import.file.as_ref().unwrap().tiers[0];
    let columns = Arc::default();
    let rows = tier.sections.iter().flat_map(|section| section.laid(&section.section, &columns));
    let name = |name: Option<SeatName>| name.map_or("_".to_owned(), |name| name.to_string());
    rows.map(|row| row.places.unwrap().names().map(name).collect::<Vec<_>>().join(" ")).collect()
}

fn seats_at(xs: &[f64]) -> Vec<Value> {
    xs.iter().enumerate().map(|(index, x)| seat(&format!("s{index}"), *x, "Stalls")).collect()
}

#[test]
fn neighbours_are_those_who_lie_side_by_side() {
    let cases: [(&[f64], &str); 7] = [
        (&[0.0, 25.0, 50.0, 75.0, 100.0], "s0 s1 s2 s3 s4"),
        // Numbered from right to left, with fractions and below zero.
        (&[50.5, 25.5, 0.5, -24.5, -49.5], "s4 s3 s2 s1 s0"),
        // A pillar of one place, an aisle of three.
        (&[0.0, 25.0, 75.0, 100.0, 200.0], "s0 s1 _ s2 s3 _ s4"),
        // Up to half a pitch of play is no hole; more is.
        (&[0.0, 25.0, 62.0, 87.0, 125.0], "s0 s1 s2 s3 _ s4"),
        // Three blocks of two, most gaps of which are not holes, but many are.
        (&[0.0, 25.0, 100.0, 125.0, 200.0, 225.0], "s0 s1 _ s2 s3 _ s4 s5"),
        // A row that is wide throughout has no holes.
        (&[0.0, 60.0, 120.0, 180.0, 240.0], "s0 s1 s2 s3 s4"),
        // Listed in no order at all.
        (&[100.0, 0.0, 75.0, 25.0, 50.0], "s1 s3 s4 s2 s0"),
    ];
    for (xs, expected) in cases {
        let import = read(&plan(vec![row("1", 0.0, seats_at(xs))]), RowOrder::ByHeight);
        assert_eq!(rows(&import.unwrap()), [expected], "{xs:?}");
    }
}

#[test]
fn numbers_make_nobody_a_neighbour_and_part_nobody() {
    // Odd numbers side by side; a row that begins at 11; numbers that follow across an aisle.
    for (numbers, xs, expected) in [
        ([1, 3, 5, 9, 11], [0.0, 25.0, 50.0, 75.0, 100.0], "s0 s1 s2 s3 s4"),
        ([15, 14, 13, 12, 11], [0.0, 25.0, 50.0, 75.0, 100.0], "s0 s1 s2 s3 s4"),
        ([1, 2, 3, 4, 5], [0.0, 25.0, 100.0, 125.0, 150.0], "s0 s1 _ s2 s3 s4"),
        ([1, 1, 1, 1, 1], [0.5, 25.25, -24.5, 50.0, 75.0], "s2 s0 s1 s3 s4"),
    ] {
        let mut seats = seats_at(&xs);
        for (seat, number) in seats.iter_mut().zip(numbers) {
            seat["seat_number"] = json!(number.to_string());
        }
        let import = read(&plan(vec![row("1", 0.0, seats)]), RowOrder::ByHeight);
        assert_eq!(rows(&import.unwrap()), [expected]);
    }
}

#[test]
fn a_table_is_a_row_that_goes_round() {
    let round = |table: usize| {
        let seat = |seat: usize| {
            let (sin, cos) = (seat as f64 * 60_f64.to_radians()).sin_cos();
            json!({"seat_guid": format!("t{table}-{seat}"), "position": {"x": 30.0 * cos, "y": 30.0 * sin}, "category": "Stalls"})
        };
        // Listed in no order: 0, 4, 2, 1, 5, 3.
        let seats: Vec<Value> = [0, 4, 2, 1, 5, 3].into_iter().map(seat).collect();
        json!({"row_number": table.to_string(), "row_label": "Table %s", "position": {"x": 0, "y": 100 * table}, "seats": seats})
    };
    let import = read(&plan(vec![round(1), round(2)]), RowOrder::ByHeight).unwrap();
    assert_eq!(rows(&import), ["t1-0 t1-1 t1-2 t1-3 t1-4 t1-5", "t2-0 t2-1 t2-2 t2-3 t2-4 t2-5"]);
    assert!(import.report.notes.contains(&"2 rows go round, as at a table".to_owned()));
    let file = import.file.unwrap();
    assert_eq!(file.tiers[0].sections[0].rows[1].row, "Table 2");
}

#[test]
fn where_one_sees_best_is_a_point_of_the_plan() {
    let zone = |name: &str, x: f64, y: f64| {
        let seats = |row: &str| vec![seat(&format!("{name}{row}"), 0.0, "Stalls")];
        let rows =
            [row("1", 0.0, seats("1")), row("2", 25.0, seats("2")), row("3", 50.0, seats("3"))];
        json!({"name": name, "position": {"x": x, "y": y}, "rows": rows})
    };
    let mut plan = plan(vec![]);
    // The stage stands between the zones; positions add up: zone, row, seat.
    plan["zones"] =
        json!([zone("far", 900.0, 0.0), zone("north", 0.0, 0.0), zone("south", 0.0, 100.0)]);
    let order = |point: &str| RowOrder::NearestTo(point.parse().unwrap());
    assert_eq!(
        rows(&read(&plan, order("0,80")).unwrap()),
        ["south1", "south2", "south3", "north3", "north2", "north1", "far3", "far2", "far1"]
    );
    for text in ["", "1", "1,", "1,b", "1e300,0", "NaN,0", "1,2,3"] {
        assert!(text.parse::<Point>().is_err(), "{text:?}");
    }
}

#[test]
fn a_section_beside_the_point_has_its_best_seats_at_its_edge() {
    let zone = |name: &str, x: f64| {
        let seats = |row: &str| {
            let seats = (0..11)
                .map(|at| seat(&format!("{name}{row}-{at}"), 25.0 * f64::from(at), "Stalls"));
            seats.collect::<Vec<_>>()
        };
        let rows = [row("1", 0.0, seats("1")), row("2", 25.0, seats("2"))];
        json!({"name": name, "position": {"x": x, "y": 0.0}, "rows": rows})
    };
    let mut plan = plan(vec![]);
    plan["zones"] = json!([zone("left", 0.0), zone("middle", 300.0), zone("right", 600.0)]);
    let focus = |order: RowOrder| {
        let import = read(&plan, order).unwrap();
        let said = import
            .report
            .notes
            .iter()
            .any(|note| note.starts_with("2 sections have their best seats"));
        let file = import.file.unwrap();
        let mut sections = file.tiers[0].sections.clone();
        sections.sort_by(|one, other| one.section.cmp(&other.section));
        (sections.iter().map(|section| section.focus).collect::<Vec<_>>(), said)
    };
    let sides = vec![Some(Focus::Percent(100)), None, Some(Focus::Percent(0))];
    assert_eq!(focus(RowOrder::NearestTo("425,-50".parse().unwrap())), (sides, true));
    assert_eq!(focus(RowOrder::ByHeight), (vec![None; 3], false));
}

#[test]
fn a_short_row_takes_the_pitch_of_its_zone() {
    let long =
        |xs: &[f64]| xs.iter().map(|x| seat(&format!("l{x}"), *x, "Stalls")).collect::<Vec<_>>();
    let plan = plan(vec![
        row("1", 0.0, long(&[0.0, 25.0, 50.0, 75.0, 100.0])),
        row("2", 25.0, seats_at(&[0.0, 100.0])),
    ]);
    let import = read(&plan, RowOrder::ByHeight).unwrap();
    assert_eq!(rows(&import)[1], "s0 _ s1");
}

#[test]
fn a_row_that_runs_up_the_canvas_is_ordered_by_height() {
    let upright = |index: usize| json!({"seat_guid": format!("s{index}"), "position": {"x": index % 2, "y": 100 - 25 * index}, "category": "Stalls"});
    let plan = plan(vec![
        row("2", 30.0, (0..5).map(upright).collect()),
        row("1", 0.0, vec![seat("a", 0.0, "Stalls")]),
    ]);
    let import = read(&plan, RowOrder::ByHeight).unwrap();
    assert_eq!(rows(&import), ["a", "s4 s3 s2 s1 s0"]);
}

#[test]
fn rows_go_front_to_back_or_as_listed() {
    let plan = plan(vec![
        row("2", -5.5, vec![seat("b", 0.0, "Stalls")]),
        row("1", -30.0, vec![seat("a", 0.0, "Stalls")]),
    ]);
    assert_eq!(rows(&read(&plan, RowOrder::ByHeight).unwrap()), ["a", "b"]);
    assert_eq!(rows(&read(&plan, RowOrder::AsListed).unwrap()), ["b", "a"]);
}

#[test]
fn a_seat_of_another_category_parts_its_neighbours() {
    let seats = ["Stalls", "樓座", "Stalls", "Stalls"]
        .iter()
        .enumerate()
        .map(|(index, category)| seat(&format!("s{index}"), 25.0 * index as f64, category))
        .collect();
    let import = read(&plan(vec![row("1", 0.0, seats)]), RowOrder::ByHeight).unwrap();
    assert_eq!(rows(&import), ["s0 _ s2 s3"]);
    let tiers: Vec<String> =
        import.report.tiers.iter().map(|tier| format!("{} {}", tier.tier, tier.seats)).collect();
    assert_eq!(tiers, ["stalls 3", "t2 1"], "a name that is not ASCII is counted");
    assert!(import.accept(false).is_ok(), "no defect, no consent needed");
}

#[test]
fn a_newer_plan_is_read_as_well() {
    let plan = json!({
        "name": 17, "size": {"width": 1, "height": 1}, "categories": [{"name": " Stalls "}],
        "zones": [{
            "zone_id": "z1", "uuid": "u", "position": {"x": 0.5, "y": 0}, "areas": [{"shape": "text"}],
            "rows": [{
                "row_number": 1, "row_label": "A", "row_number_position": null, "uuid": "u", "seats": [
                    {"seat_guid": " 007 ", "seat_label": "7", "uuid": "u", "radius": 10, "start_direction": "left",
                     "position": {"x": -1.25, "y": 3.5}, "category": "Stalls "}]
            }]
        }]
    });
    let import = read(&plan, RowOrder::ByHeight).unwrap();
    assert_eq!(rows(&import), ["007"]);
    let file = import.file.as_ref().unwrap();
    assert_eq!((file.sale.as_str(), file.tiers[0].sections[0].section.as_str()), ("17", "z1"));
}

#[allow(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn each_defect_is_named_with_its_places_and_its_remedy() {
    let mut long = seat("x", 0.0, "Stalls");
    long["seat_guid"] = json!("y".repeat(65));
    let mut without = seat("x", 0.0, "Stalls");
    without["seat_guid"] = json!("  ");
    let cases = [
        // Another seat with the same key is renamed, the same seat listed again is dropped.
        (
            vec![
                row("1", 0.0, vec![seat("a", 0.0, "Stalls")]),
                row("2", 9.0, vec![seat("a", 0.0, "Stalls")]),
            ],
            "seat a is duplicated: zones[0].rows[0].seats[0] (Ground, row 1, seat a) and zones[0].rows[1].seats[0] (Ground, row 2, seat a)",
            "both are kept; the second is called Ground a",
            vec!["a", "Ground a"],
        ),
        (
            vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), seat("a", 0.0, "Stalls")])],
            "zones[0].rows[0].seats[0] (Ground, row 1, seat a) and zones[0].rows[0].seats[1]",
            "zones[0].rows[0].seats[1] (Ground, row 1, seat a) is left out (1 seat)",
            vec!["a"],
        ),
        // The new name must be free as well, also of seats that come later.
        (
            vec![row(
                "1",
                0.0,
                vec![
                    seat("a", 0.0, "Stalls"),
                    seat("a", 25.0, "Stalls"),
                    seat("Ground a", 50.0, "Stalls"),
                ],
            )],
            "seat a is duplicated",
            "both are kept; the second is called Ground 1 a",
            vec!["a Ground 1 a Ground a"],
        ),
        (
            vec![row(
                "1",
                0.0,
                vec![seat("a", 0.0, "Stalls"), seat("b", 25.0, "Boxes"), seat("c", 50.0, "Stalls")],
            )],
            "zones[0].rows[0].seats[1] (Ground, row 1, seat b) names category \"Boxes\", which is not declared",
            "is left out (1 seat)",
            vec!["a _ c"],
        ),
        (
            vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), long])],
            "has no usable key: seat name must be 1 to 64 bytes",
            "is left out (1 seat)",
            vec!["a"],
        ),
        (
            vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), without])],
            "has no usable key",
            "is left out (1 seat)",
            vec!["a"],
        ),
        (
            vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), seat("b", 0.0, "Stalls")])],
            "two seats lie at one point: zones[0].rows[0].seats[0] (Ground, row 1, seat a) and zones[0].rows[0].seats[1] (Ground, row 1, seat b)",
            "both are kept, and are no neighbours",
            vec!["a _ b"],
        ),
    ];
    for (listed, defect, remedy, resolved) in cases {
        let import = read(&plan(listed), RowOrder::ByHeight).unwrap();
        assert_eq!(rows(&import), resolved, "{defect}");
        let text = import.report.to_text();
        assert!(
            text.contains(defect) && text.contains(remedy),
            "{text}\nlacks {defect} / {remedy}"
        );
        let report = import.report.clone();
        assert_eq!(report.findings.len(), 1, "{text}");
        assert_eq!(report.seats_read, report.seats_placed + report.seats_left_out);
        let refused = import.accept(false).unwrap_err();
        assert_eq!(refused.outcome, Outcome::Refused);
    }
}

#[test]
fn a_category_declared_twice_is_one_tier() {
    let mut plan = plan(vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls")])]);
    plan["categories"] = json!([{"name": "Stalls"}, {"name": "Stalls"}]);
    let import = read(&plan, RowOrder::ByHeight).unwrap();
    assert!(import.report.to_text().contains("categories[0] (Stalls) and categories[1] (Stalls)"));
    let (file, report) = import.accept(true).unwrap();
    assert_eq!((file.tiers.len(), report.outcome), (1, Outcome::Resolved));
}

#[test]
fn a_plan_without_seats_is_refused_whatever_is_agreed_to() {
    let import = read(&plan(vec![row("1", 0.0, vec![])]), RowOrder::ByHeight).unwrap();
    assert!(import.accept(true).is_err());
}

#[test]
fn prices_are_given_for_every_tier_and_for_nothing_else() {
    let plan = plan(vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), seat("b", 9.0, "樓座")])]);
    let terms = Terms::opening(Timestamp::from_ms(0));
    let with = |by_category: &[(&str, i64)], for_all: Option<i64>| {
        let by_category =
            by_category.iter().map(|(name, price)| ((*name).to_owned(), MinorUnits(*price)));
        let by_category = by_category.collect();
        let prices = Prices { for_all: for_all.map(MinorUnits), by_category, uncategorised: None };
        import("p", plan.to_string().as_bytes(), &terms, &prices, RowOrder::ByHeight, None)
    };
    let file = with(&[("樓座", 5)], Some(9)).unwrap().accept(false).unwrap().0;
    assert_eq!(
        file.tiers.iter().map(|t| t.price_minor).collect::<Vec<_>>(),
        [9, 5].map(MinorUnits).map(Some)
    );
    let missing = with(&[("樓座", 5)], None).unwrap_err().to_string();
    assert!(missing.contains("no price for \"Stalls\""), "{missing}");
    let unknown = with(&[("Boxes", 5)], Some(9)).unwrap_err().to_string();
    assert!(unknown.contains("\"Boxes\""), "{unknown}");
    assert!(matches!(with(&[], Some(-1)), Err(Error::Rules { .. })));
}

#[test]
fn seats_without_a_category_are_sold_as_a_tier_that_is_named_for_them() {
    let mut without = seat("b", 25.0, "");
    without.as_object_mut().unwrap().remove("category");
    let seats = vec![seat("a", 0.0, " "), without, seat("c", 50.0, "Stalls")];
    let mut plan = plan(vec![row("1", 0.0, seats)]);
    let terms = Terms::opening(Timestamp::from_ms(0));
    let given = |plan: &Value, name: &str, price: &[(&str, i64)]| {
        let prices = Prices {
            for_all: Some(MinorUnits(9)),
            by_category: price
                .iter()
                .map(|(name, price)| ((*name).to_owned(), MinorUnits(*price)))
                .collect(),
            uncategorised: Some(Uncategorised {
                name: name.to_owned(),
                price_minor: MinorUnits(7),
            }),
        };
        import("p", plan.to_string().as_bytes(), &terms, &prices, RowOrder::ByHeight, None)
    };
    let (file, report) = given(&plan, "Boxes", &[]).unwrap().accept(false).unwrap();
    assert_eq!((report.findings.len(), report.seats_placed), (0, 3));
    let tiers = file.tiers.iter().map(|tier| (tier.tier.as_str(), tier.price_minor));
    assert_eq!(
        tiers.collect::<Vec<_>>(),
        [("stalls", Some(MinorUnits(9))), ("boxes", Some(MinorUnits(7)))]
    );

    // Without the option they are left out, and the refusal names it.
    let refused = read(&plan, RowOrder::ByHeight).unwrap().accept(false).unwrap_err();
    assert_eq!((refused.findings.len(), refused.seats_left_out), (2, 2));
    let text = refused.to_text();
    assert!(text.contains("2 seats have no category; --uncategorised-tier NAME=MINOR"), "{text}");
    let wrong: [(&str, &[(&str, i64)]); 3] =
        [("Stalls", &[]), ("", &[]), ("Boxes", &[("Boxes", 5)])];
    for (name, price) in wrong {
        let error = given(&plan, name, price).unwrap_err().to_string();
        assert!(error.contains(&format!("{name:?}")), "{error}");
    }
    // A category of that name which is not declared is not the tier without a category.
    plan["zones"][0]["rows"][0]["seats"][2]["category"] = json!("Boxes");
    let import = given(&plan, "Boxes", &[]).unwrap();
    assert!(import.report.to_text().contains("names category \"Boxes\", which is not declared"));
}

#[test]
fn a_plan_without_any_category_can_be_sold() {
    let mut plan = plan(vec![row("1", 0.0, vec![seat("a", 0.0, ""), seat("b", 25.0, "")])]);
    plan["categories"] = json!([]);
    let terms = Terms::opening(Timestamp::from_ms(0));
    let with = |prices: &Prices| {
        import("p", plan.to_string().as_bytes(), &terms, prices, RowOrder::ByHeight, None)
    };
    let tier = Uncategorised { name: "Hall".to_owned(), price_minor: MinorUnits(1500) };
    let import = with(&Prices { uncategorised: Some(tier), ..Prices::default() }).unwrap();
    assert_eq!(rows(&import), ["a b"]);
    assert!(import.accept(false).is_ok(), "no defect, no consent needed");
    // With nothing but consent it is refused, and says what to give.
    let refused = with(&Prices::default()).unwrap().accept(true).unwrap_err();
    assert!(refused.to_text().contains("--uncategorised-tier NAME=MINOR"));
    let by_category = [("Hall".to_owned(), MinorUnits(5))].into();
    let error = with(&Prices { by_category, ..Prices::default() }).unwrap_err().to_string();
    assert!(error.contains("it has none; give --uncategorised-tier NAME=MINOR"), "{error}");
}

#[test]
fn what_is_no_plan_is_an_error_with_its_place() {
    let terms = Terms::opening(Timestamp::from_ms(0));
    let long = format!(
        r#"{{"categories":[],"zones":[{{"rows":[{{"seats":[{{"position":{{"x":{},"y":0}}}}]}}]}}]}}"#,
        "1e300"
    );
    for text in
        ["", "[]", "{", "{\"zones\": []}", r#"{"categories":[],"zones":7}"#, &long, "\u{feff}{"]
    {
        let result = import(
            "plan.json",
            text.as_bytes(),
            &terms,
            &Prices::default(),
            RowOrder::ByHeight,
            None,
        );
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with("plan.json is malformed") && error.contains("line"), "{error}");
    }
    assert!(
        import("p", b"\xff\xfe", &terms, &Prices::default(), RowOrder::ByHeight, None).is_err()
    );
}

#[test]
fn a_mark_and_other_line_ends_do_not_matter() {
    let text =
        serde_json::to_string_pretty(&plan(vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls")])]));
    let text = format!("\u{feff}{}\r\n", text.unwrap().replace('\n', "\r\n"));
    let prices = Prices { for_all: Some(MinorUnits(1)), ..Prices::default() };
    let terms = Terms::opening(Timestamp::from_ms(0));
    let import = import("p", text.as_bytes(), &terms, &prices, RowOrder::ByHeight, None).unwrap();
    assert_eq!(rows(&import), ["a"]);
}

#[test]
fn the_coordinates_of_a_plan_become_its_map() {
    let mut plan = plan(vec![
        row("1", 0.0, seats_at(&[100.0, 125.0, 150.0])),
        row(
            "2",
            30.0,
            vec![
                seat("a", 100.0, "Stalls"),
                seat("b", 125.0, "Stalls"),
                seat("c", 210.0, "Stalls"),
            ],
        ),
    ]);
    plan["zones"][0]["position"] = json!({"x": -40, "y": 1000});
    plan["zones"][0]["areas"] = json!([
        {"shape": "rectangle", "position": {"x": 0, "y": -50}, "rotation": 0,
         "rectangle": {"width": 300, "height": 20}, "text": {"text": " STAGE ", "position": {"x": 1, "y": 1}}},
        {"shape": "circle", "position": {"x": 50, "y": 50}, "circle": {"radius": 10}},
        {"shape": "text", "position": {"x": 0, "y": 0}, "text": {"text": "Exit"}},
        {"shape": "rectangle", "rectangle": "large"},
        7
    ]);
    let import = read(&plan, RowOrder::ByHeight).unwrap();
    let map = serde_json::to_value(import.file.unwrap().map.unwrap()).unwrap();
    assert_eq!((&map["width"], &map["height"]), (&json!(340), &json!(150)));
    let rows = json!([
        {"row": "1", "from": [120, 70], "to": [170, 70]},
        {"row": "2", "seats": [[120, 100], [145, 100], null, [230, 100]]}
    ]);
    assert_eq!(map["sections"][0]["rows"], rows);
    let stage = &map["outlines"][0];
    assert_eq!((&stage["kind"], &stage["label"]), (&json!("stage"), &json!("STAGE")));
    assert_eq!(stage["points"], json!([[20, 20], [320, 20], [320, 40], [20, 40]]));
    assert_eq!(
        (&map["outlines"][1]["kind"], map["outlines"].as_array().unwrap().len()),
        (&json!("area"), 2)
    );
}

#[test]
fn a_plan_is_scaled_into_its_map_and_one_point_is_a_map() {
    let of = |xs: &[f64]| {
        let import = read(&plan(vec![row("1", 0.0, seats_at(xs))]), RowOrder::ByHeight).unwrap();
        serde_json::to_value(import.file.unwrap().map.unwrap()).unwrap()
    };
    assert_eq!(of(&[0.0, 1.0, 2.0])["width"], 240);
    assert_eq!(of(&[-1e9, 0.0, 1e9])["width"], 900_040);
    assert_eq!(of(&[3.0])["sections"][0]["rows"][0]["seats"], json!([[20, 20]]));
}

/// A plan of one seat, sold with an event of these documents.
fn sold_with(documents: &[Value]) -> Result<Import, Error> {
    let named = |(index, document): (usize, &Value)| {
        (format!("{index}.json"), document.to_string().into_bytes())
    };
    let documents: Vec<_> = documents.iter().enumerate().map(named).collect();
    let event = Event::read(&documents)?;
    let prices = Prices { for_all: Some(MinorUnits(1000)), ..Prices::default() };
    let terms = Terms::opening("2026-01-02T00:00:00Z".parse().unwrap());
    let plan = plan(vec![row("1", 0.0, seats_at(&[0.0]))]).to_string();
    import("plan.json", plan.as_bytes(), &terms, &prices, RowOrder::ByHeight, Some(&event))
}

/// An event as pretix's documentation shows one.
fn conference() -> Value {
    json!({
        "name": {"de": "Seekonzert", "en": "Lake Concert", "de-informal": ""}, "slug": "Lake.2026",
        "live": true, "testmode": false, "currency": "CHF",
        "date_from": "2026-11-21T20:00:00+01:00", "date_to": "2026-11-21T23:30:00+01:00",
        "date_admission": "2026-11-21T18:30:00+01:00", "is_public": true,
        "presale_start": null, "presale_end": null,
        "location": {"en": "Lakeside Hall\r\nAm Ufer 1\r\n8001 Zürich", "de": "Seehalle\nAm Ufer 1\n8001 Zürich"},
        "geo_lat": 47.3667, "geo_lon": 8.55, "has_subevents": false, "meta_data": {},
        "seating_plan": 7, "seat_category_mapping": {}, "plugins": [], "timezone": "Europe/Zurich",
        "item_meta_properties": {}, "valid_keys": {"pretix_sig1": []}, "sales_channels": ["web"]
    })
}

/// What a file says of its event, as JSON.
fn event_of(import: &Import) -> Value {
    serde_json::to_value(&import.file.as_ref().unwrap().event).unwrap()
}

fn event_notes(import: &Import) -> Vec<&str> {
    let notes = import.report.notes.iter().filter_map(|note| note.strip_prefix("event: "));
    notes.collect()
}

#[test]
fn a_sale_says_when_and_where_its_event_is() {
    let import = sold_with(&[conference()]).unwrap();
    let file = import.file.as_ref().unwrap();
    assert_eq!((file.title.as_str(), file.sale.to_string()), ("Lake Concert", "lake-2026".into()));
    assert_eq!(file.currency.to_string(), "CHF");
    assert_eq!(file.closes_at.to_string(), "2026-11-21T19:00:00.000Z", "when it begins");
    assert_eq!(
        event_of(&import),
        json!({
            "starts_at": "2026-11-21T19:00:00.000Z", "doors_at": "2026-11-21T17:30:00.000Z",
            "ends_at": "2026-11-21T22:30:00.000Z", "time_zone": "Europe/Zurich",
            "venue": {"name": "Lakeside Hall"},
            "about": {
                "address": {"en": "Lakeside Hall\nAm Ufer 1\n8001 Zürich", "de": "Seehalle\nAm Ufer 1\n8001 Zürich"},
                "latitude": 47.3667, "longitude": 8.55
            }
        })
    );
    assert_eq!(event_notes(&import), [""; 0]);
    // Selling ends when presale does; without an event nothing is said.
    let mut event = conference();
    event["presale_end"] = json!("2026-11-21T12:00:00+01:00");
    let import = sold_with(&[event]).unwrap();
    assert_eq!(import.file.unwrap().closes_at.to_string(), "2026-11-21T11:00:00.000Z");
    let import = sold_with(&[]).unwrap();
    let file = import.file.as_ref().unwrap();
    assert_eq!((&file.event, file.title.as_str()), (&None, "Hall"));
    assert_eq!(file.currency.to_string(), "EUR");
}

#[test]
fn a_date_of_a_series_has_the_zone_and_the_currency_of_its_series() {
    let date = json!({
        "id": 12, "name": {"en": "Second night"}, "event": "lake", "active": true,
        "date_from": "2026-11-22T20:00:00+01:00", "date_to": null, "date_admission": null,
        "presale_start": null, "presale_end": null, "location": null, "geo_lat": null, "geo_lon": null,
        "frontpage_text": {"en": "With **guests**."}, "item_price_overrides": [], "meta_data": {}
    });
    let import = sold_with(&[conference(), date.clone()]).unwrap();
    let file = import.file.as_ref().unwrap();
    assert_eq!((file.title.as_str(), file.sale.to_string()), ("Second night", "lake-12".into()));
    assert_eq!(file.currency.to_string(), "CHF");
    let event = event_of(&import);
    assert_eq!(event["starts_at"], "2026-11-22T19:00:00.000Z");
    assert_eq!((&event["doors_at"], &event["ends_at"]), (&Value::Null, &Value::Null));
    assert_eq!(event["time_zone"], "Europe/Zurich");
    assert_eq!(event["venue"]["name"], "Lakeside Hall");
    assert_eq!(event["about"]["latitude"], 47.3667);
    assert_eq!(event["about"]["description"], json!({"en": "With **guests**."}));
    let error = sold_with(&[json!({"name": "Hall", "categories": [], "zones": []})]).unwrap_err();
    assert!(error.to_string().contains("no date_from"), "{error}");
    let error = sold_with(&[date]).unwrap_err().to_string();
    assert!(error.contains("no timezone") && error.contains("--event SERIES.json"), "{error}");
}

#[test]
fn what_a_sale_cannot_say_of_an_event_is_left_out_and_noted() {
    let with = |changes: Value| {
        let mut event = conference();
        event.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        sold_with(&[event]).unwrap()
    };
    let long = "x".repeat(301);
    for (changes, field, note) in [
        (json!({"date_to": "2026-11-21T20:00:00+01:00"}), "/ends_at", "date_to is not later"),
        (
            json!({"date_admission": "2026-11-21T20:01:00+01:00"}),
            "/doors_at",
            "date_admission is later",
        ),
        (json!({"location": null}), "/venue", "no location"),
        (json!({"location": {"en": long}}), "/venue", "too long for a venue's name"),
        (
            json!({"location": {"en": format!("Hall\n{long}")}}),
            "/about/address",
            "location in \"en\" is left out: it has more than 300",
        ),
        (
            json!({"location": {"tlh!": "Hall\nStreet"}}),
            "/about/address",
            "location in \"tlh!\" is left out",
        ),
        (json!({"geo_lat": null}), "/about/longitude", "only one of geo_lat and geo_lon"),
    ] {
        let import = with(changes.clone());
        let notes = event_notes(&import);
        assert!(notes.iter().any(|said| said.contains(note)), "{changes}: {notes:?}");
        assert_eq!(event_of(&import).pointer(field), None, "{changes}");
    }
    // One text for all, numbers as texts, an underscore in a language: as older programs write them.
    let import = with(json!({
        "name": "Plain", "location": {"de_Informal": "Halle\nGasse 1", "de": null},
        "geo_lat": "47.5", "geo_lon": "8.5"
    }));
    assert_eq!(import.file.as_ref().unwrap().title, "Plain");
    let event = event_of(&import);
    assert_eq!(event["about"]["address"], json!({"de-Informal": "Halle\nGasse 1"}));
    assert_eq!(
        (&event["about"]["latitude"], &event["venue"]["name"]),
        (&json!(47.5), &json!("Halle"))
    );
    assert_eq!(event_notes(&import), [""; 0]);
}

#[test]
fn what_is_no_event_is_an_error_with_its_file() {
    for (event, why) in [
        (json!([]), "an event of pretix, which is an object"),
        (json!({"date_from": "tomorrow"}), "RFC 3339"),
        (json!({"timezone": "Mars/Base"}), "time zone of the IANA database"),
        (json!({"geo_lat": 200}), "180"),
        (json!({"name": 7}), "a text for each language"),
        (json!({"currency": "euros"}), "currency"),
    ] {
        let error = sold_with(&[conference(), event.clone()]).unwrap_err().to_string();
        assert!(error.starts_with("1.json is malformed: "), "{event}: {error}");
        assert!(error.contains(why), "{event}: {error}");
    }
}
